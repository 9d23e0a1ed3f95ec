#pragma once
// Between bodies and the coordinates of their joints, both ways, each adjoint beneath its primal:
// docs/semi_implicit.md, (12) and (13). Coordinates are those of models/model.h, their cotangents as
// models/coordinates.h says: of quaternions three turns, with the fourth row left alone.
#include "engine/sincos.h"
#include "integrators/semi_implicit/step_adjoint.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

/// Row of a degree of freedom's position, or of its cotangent, among those of its joint.
BACKDRIVE_HD constexpr int position_row(JointType type, int dof) {
  return type == JointType::free && dof > 2 ? dof + 1 : dof;
}

// ---- (12) from bodies to coordinates --------------------------------------------------------------------------------

/// Coordinates of a joint whose rows have the rates `rate`; q holds where it was a moment ago (JointInputs::near).
template <class Real>
BACKDRIVE_PART void read_joint(JointType type, const JointGeometry<Real>& g, const Real (&rate)[kRows], Real* q,
                               Real* qd) {
  read_positions<Real>(type, g, q, q);
  if (type == JointType::free) q[4] = dot(g.P.cx, g.r), q[5] = dot(g.P.cy, g.r), q[6] = dot(g.P.cz, g.r);
  for (int row = 0; row < kRows; ++row) {
    const int dof = dof_of_row(type, row);
    if (dof >= 0) qd[dof] = rate[row];
  }
}

/// Where a joint finds its bodies, and the rates of its rows.
template <class Real>
BACKDRIVE_INLINE JointGeometry<Real> moving_joint(const System<Real>& system, const Workspace<Real>& ws, int j,
                                                  Real (&rate)[kRows]) {
  const Joint& joint = system.joints[j];
  const JointGeometry<Real> g = geometry_at(system, ws, j, &BodyScratch<Real>::pose);
  row_rates(g, ws.body[joint.child].velocity, joint.parent >= 0 ? &ws.body[joint.parent].velocity : nullptr, rate);
  return g;
}

/// Coordinates of joint j from body[].pose and body[].velocity; q and qd are the joint's own rows.
template <class Real>
BACKDRIVE_PART void read_coordinates(const System<Real>& system, const Workspace<Real>& ws, int j, Real* q, Real* qd) {
  Real rate[kRows];
  const JointGeometry<Real> g = moving_joint(system, ws, j, rate);
  read_joint(system.joints[j].type, g, rate, q, qd);
}

/// Adjoint of read_coordinates: cotangents of the joint's rows, which are left zero, to bar[] of its bodies and to the
/// gradients of `out`, added to.
template <class Real>
BACKDRIVE_PART void adj_read_coordinates(const System<Real>& system, Workspace<Real>& ws, int j, Real* q_bar,
                                         Real* qd_bar, const StepBar<Real>& out) {
  const Joint& joint = system.joints[j];
  const JointSides<Real> sides(ws, joint);
  const auto& [child, parent, child_bar, parent_bar] = sides;
  Real e[kRows], f[kRows];
  for (int row = 0; row < kRows; ++row) {
    const int dof = dof_of_row(joint.type, row);
    e[row] = dof < 0 ? constant<Real>(0) : q_bar[position_row(joint.type, dof)];
    f[row] = dof < 0 ? constant<Real>(0) : qd_bar[dof];
  }
  const JointSize size = joint_size(joint.type);
  for (int k = 0; k < size.nq; ++k) q_bar[k] = constant<Real>(0);
  for (int k = 0; k < size.nv; ++k) qd_bar[k] = constant<Real>(0);

  Real rate[kRows];
  const JointGeometry<Real> g = moving_joint(system, ws, j, rate);
  const GeometryBar<Real> to = sides.geometry_bar(joint, j, out);
  adj_errors(g, child.pose.axes, parent ? &parent->pose.axes : nullptr, turning_of_positions(joint.type, g, e),
             g.P.cx * e[3] + g.P.cy * e[4] + g.P.cz * e[5], to);
  DirectionBars<Real> direction;
  direction.add(g, f, child.velocity, parent ? &parent->velocity : nullptr);
  add_row_forces(g, f, child_bar.velocity, parent ? &parent_bar->velocity : nullptr);
  adj_directions(joint.type, g, child.pose.axes, direction, to);
}

// ---- (13) from coordinates to bodies --------------------------------------------------------------------------------

/// A joint that places its child: frames and ways in world axes, and what its coordinates and their rates amount to.
template <class Real>
struct PlacedJoint {
  Mat3<Real> P, C;                  ///< the joint's axes on the parent and on the child
  Vec3<Real> arm, slide, lever;     ///< from the parent's origin to the joint's, on to where it slid, to the child's
  Vec3<Real> turn_of_P, turn_of_C;  ///< angular velocity against the parent, about axes of P and of C
  Vec3<Real> slide_rate;
};

/// `parent`: its axes.
template <class Real>
BACKDRIVE_PART PlacedJoint<Real> placed_joint(JointType type, const JointConstants<Real>& c, const Mat3<Real>& parent,
                                              const Real* q, const Real* qd) {
  const Vec3<Real> zero = zero3<Real>();
  PlacedJoint<Real> p{parent * c.parent_axes, {}, parent * c.parent_origin, zero, zero, zero, zero, zero};
  Mat3<Real>& C = p.C;
  C = p.P;
  const auto turn_about_z = [&](const Real& angle, const Real& rate) __attribute__((always_inline)) {
    Real s, c;
    sincos(angle, s, c);
    C.cx = p.P.cx * c + p.P.cy * s;
    C.cy = p.P.cy * c - p.P.cx * s;
    p.turn_of_P = p.P.cz * rate;
  };
  switch (type) {
    case JointType::revolute:
      turn_about_z(q[0], qd[0]);
      break;
    case JointType::prismatic:
      p.slide = p.P.cz * q[0];
      p.slide_rate = p.P.cz * qd[0];
      break;
    case JointType::universal: {
      Real s, c;
      sincos(q[0], s, c);
      C.cy = p.P.cy * c + p.P.cz * s;
      const Vec3<Real> z = p.P.cz * c - p.P.cy * s;
      sincos(q[1], s, c);
      C.cx = p.P.cx * c - z * s;
      C.cz = z * c + p.P.cx * s;
      p.turn_of_P = p.P.cx * qd[0];
      p.turn_of_C = C.cy * qd[1];
      break;
    }
    case JointType::planar:
      turn_about_z(q[2], qd[2]);
      p.slide = p.P.cx * q[0] + p.P.cy * q[1];
      p.slide_rate = p.P.cx * qd[0] + p.P.cy * qd[1];
      break;
    case JointType::ball:
      C = p.P * rotation_matrix(load_quaternion(q));
      p.turn_of_C = C * Vec3<Real>{qd[0], qd[1], qd[2]};
      break;
    case JointType::free:
      C = p.P * rotation_matrix(load_quaternion(q));
      p.turn_of_P = p.P * Vec3<Real>{qd[0], qd[1], qd[2]};
      p.slide = p.P * Vec3<Real>{q[4], q[5], q[6]};
      p.slide_rate = p.P * Vec3<Real>{qd[3], qd[4], qd[5]};
      break;
    case JointType::fixed:
      break;
  }
  p.lever = -(C * transposed_times(c.child_axes, c.child_origin));
  return p;
}

/// A joint whose child its coordinates place.
template <class Real>
struct PlacingJoint {
  JointType type;
  const JointConstants<Real>& constants;
  const BodyState<Real>* parent;  ///< null: the world
  const Real *q, *qd;             ///< its coordinates
};
/// Where its cotangents go.
template <class Real>
struct PlacingJointBar {
  BodyStateBar<Real>* parent;  ///< null: the world
  Real *q, *qd;
  JointGradient<Real>* frames;  ///< null: nobody asked
};

/// The state of the child of a joint.
template <class Real>
BACKDRIVE_PART BodyState<Real> placed_child(const PlacingJoint<Real>& joint) {
  const JointConstants<Real>& c = joint.constants;
  const BodyState<Real>* const parent = joint.parent;
  const Mat3<Real> axes = parent ? rotation_matrix(parent->rotation) : identity3<Real>();
  const PlacedJoint<Real> p = placed_joint(joint.type, c, axes, joint.q, joint.qd);
  const Quaternion<Real> none{zero3<Real>(), constant<Real>(1)};
  BodyState<Real> child;
  child.rotation = quaternion_of(p.C * transposed(c.child_axes), none);
  const Vec3<Real> way = p.arm + p.slide;
  child.position = way + p.lever;
  child.velocity = {p.turn_of_P + p.turn_of_C, p.slide_rate};
  if (parent) {
    child.position += parent->position;
    child.velocity.ang += parent->velocity.ang;
    child.velocity.lin += plus_cross(parent->velocity.lin, parent->velocity.ang, way);
  }
  child.velocity.lin = plus_cross(child.velocity.lin, child.velocity.ang, p.lever);
  return child;
}

/// Cotangents of a joint's coordinates from `way`, those of the axes C against P and of the slide, and of their rates.
template <class Real>
BACKDRIVE_INLINE void add_to_coordinates(JointType type, const PlacedJoint<Real>& p, const Spatial<Real>& way,
                                         const Spatial<Real>& rate, const PlacingJointBar<Real>& to) {
  for (int row = 0; row < kRows; ++row) {
    const int dof = dof_of_row(type, row);
    if (dof < 0) continue;
    // A revolute's and a planar's rows are the third: C_z = P_z. A universal's second is about C_y.
    const bool on_child = type == JointType::ball || (type == JointType::universal && row == 1);
    const Vec3<Real>& axis = column(on_child ? p.C : p.P, row % 3);
    to.q[position_row(type, dof)] += dot(axis, row < 3 ? way.ang : way.lin);
    to.qd[dof] += dot(axis, row < 3 ? rate.ang : rate.lin);
  }
}

/// Adjoint of placed_child: adds the child's cotangents, `bar`, to those of all that places it. `child`: the state that
/// was made.
template <class Real>
BACKDRIVE_PART void adj_placed_child(const PlacingJoint<Real>& joint, const BodyState<Real>& child,
                                     const BodyStateBar<Real>& bar, const PlacingJointBar<Real>& to) {
  const BodyState<Real>* const parent = joint.parent;
  const Mat3<Real> axes = parent ? rotation_matrix(parent->rotation) : identity3<Real>();
  const PlacedJoint<Real> p = placed_joint(joint.type, joint.constants, axes, joint.q, joint.qd);
  const Vec3<Real>& v_bar = bar.velocity.lin;
  const Vec3<Real> lever_bar = bar.position + cross(v_bar, child.velocity.ang);
  const Vec3<Real> omega_bar = bar.velocity.ang + cross(p.lever, v_bar);
  const Vec3<Real> child_turn = bar.turn + cross(p.lever, lever_bar);  // of C, and of the child's axes C Hᵀ
  Vec3<Real> way_bar = bar.position;
  if (parent) way_bar += cross(v_bar, parent->velocity.ang);
  const Vec3<Real> C_turn = child_turn + cross(p.turn_of_C, omega_bar);
  const Vec3<Real> P_turn =
      C_turn + cross(p.slide, way_bar) + cross(p.slide_rate, v_bar) + cross(p.turn_of_P, omega_bar);
  add_to_coordinates<Real>(joint.type, p, {C_turn, way_bar}, {omega_bar, v_bar}, to);
  if (parent) {
    const Vec3<Real> way = p.arm + p.slide;
    to.parent->turn += P_turn + cross(p.arm, way_bar);
    to.parent->position += bar.position;
    to.parent->velocity += Spatial<Real>{omega_bar + cross(way, v_bar), v_bar};
  }
  if (!to.frames) return;
  to.frames->child_turn -= transposed_times(p.C, child_turn);
  to.frames->child_origin -= joint.constants.child_axes * transposed_times(p.C, lever_bar);
  to.frames->parent_turn += transposed_times(p.P, P_turn);
  to.frames->parent_origin += transposed_times(axes, way_bar);
}

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
