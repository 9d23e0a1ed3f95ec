#pragma once
// The six rows of a joint: directions, errors, and the adjoints of both. docs/semi_implicit.md, table of joints.
//
// P and C are the joint's axes on the parent and on the child, r the way from the joint's origin on the parent to that
// on the child, x the latter. A turning row U and a sliding row W have the rates
//
//   U·(ω_c − ω_p)      W·(ẋ_c − ẋ_p), both velocities taken at x
//
// which are the derivatives of their errors and of the joint's position to the last bit of algebra, and not only where
// errors vanish: attachments conserve energy when they are not stepped over. What acts along them on the child acts
// against it at the same point of the parent, so that momentum is kept by construction.
#include "engine/angle.h"
#include "integrators/rollout/ball_forces.h"
#include "integrators/semi_implicit/system.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

/// Where a body is: link axes, and its centre of mass in the world.
template <class Real>
struct BodyPose {
  Mat3<Real> axes;
  Vec3<Real> centre;
};

template <class Real>
struct JointGeometry {
  Mat3<Real> P, C;
  Vec3<Real> r;
  Vec3<Real> parent_arm, child_arm;  ///< from the bodies' centres of mass (of the world: its origin) to x
  Vec3<Real> turn[3];                ///< U; the sliding rows W are P's columns
};

template <class Real>
BACKDRIVE_INLINE const Vec3<Real>& column(const Mat3<Real>& m, int k) {
  return k == 0 ? m.cx : k == 1 ? m.cy : m.cz;
}
template <class Real>
BACKDRIVE_INLINE Vec3<Real>& column(Mat3<Real>& m, int k) {
  return k == 0 ? m.cx : k == 1 ? m.cy : m.cz;
}

/// Directions of the turning rows.
template <class Real>
BACKDRIVE_INLINE void turning_rows(JointType type, const Mat3<Real>& P, const Mat3<Real>& C, Vec3<Real> (&U)[3]) {
  switch (type) {
    case JointType::revolute:
    case JointType::planar:
      U[0] = cross(P.cy, C.cz);
      U[1] = cross(C.cz, P.cx);
      U[2] = (P.cz + C.cz) * (constant<Real>(1) / (constant<Real>(1) + dot(P.cz, C.cz)));
      return;
    case JointType::universal:
      U[0] = P.cx;
      U[1] = C.cy;
      U[2] = cross(C.cy, P.cx);
      return;
    case JointType::ball:
      U[0] = C.cx, U[1] = C.cy, U[2] = C.cz;
      return;
    case JointType::free:
      U[0] = P.cx, U[1] = P.cy, U[2] = P.cz;
      return;
    case JointType::prismatic:
    case JointType::fixed:
      break;
  }
  const Real half = constant<Real>(0.5);
  U[0] = (cross(C.cy, P.cz) - cross(C.cz, P.cy)) * half;
  U[1] = (cross(C.cz, P.cx) - cross(C.cx, P.cz)) * half;
  U[2] = (cross(C.cx, P.cy) - cross(C.cy, P.cx)) * half;
}

/// Adjoint of turning_rows, added to the cotangents of P's and C's columns.
template <class Real>
BACKDRIVE_INLINE void adj_turning_rows(JointType type, const JointGeometry<Real>& g, const Vec3<Real> (&U_bar)[3],
                                       Mat3<Real>& P_bar, Mat3<Real>& C_bar) {
  const Mat3<Real>&P = g.P, &C = g.C;
  const Real half = constant<Real>(0.5);
  switch (type) {
    case JointType::revolute:
    case JointType::planar: {
      adj_cross(P.cy, C.cz, U_bar[0], P_bar.cy, C_bar.cz);
      adj_cross(C.cz, P.cx, U_bar[1], C_bar.cz, P_bar.cx);
      const Real inverse = constant<Real>(1) / (constant<Real>(1) + dot(P.cz, C.cz));
      const Real cosine_bar = -(dot(U_bar[2], g.turn[2]) * inverse);
      P_bar.cz += U_bar[2] * inverse + C.cz * cosine_bar;
      C_bar.cz += U_bar[2] * inverse + P.cz * cosine_bar;
      return;
    }
    case JointType::universal:
      P_bar.cx += U_bar[0];
      C_bar.cy += U_bar[1];
      adj_cross(C.cy, P.cx, U_bar[2], C_bar.cy, P_bar.cx);
      return;
    case JointType::ball:
      for (int k = 0; k < 3; ++k) column(C_bar, k) += U_bar[k];
      return;
    case JointType::free:
      for (int k = 0; k < 3; ++k) column(P_bar, k) += U_bar[k];
      return;
    case JointType::prismatic:
    case JointType::fixed:
      break;
  }
  for (int k = 0; k < 3; ++k) {
    const int i = (k + 1) % 3, j = (k + 2) % 3;
    const Vec3<Real> bar = U_bar[k] * half;
    adj_cross(column(C, i), column(P, j), bar, column(C_bar, i), column(P_bar, j));
    adj_cross(column(C, j), column(P, i), -bar, column(C_bar, j), column(P_bar, i));
  }
}

/// A body that a joint is on: where it is, and its com in the link's axes.
template <class Real>
struct JointSide {
  const BodyPose<Real>& pose;
  const Vec3<Real>& com;
};
/// Not `carried`: by the world; `parent` is then any body. (With a null pointer for the world, ptxas 13.0 for sm_90
/// reads ahead of the branch that asks for it.)
template <class Real>
BACKDRIVE_PART JointGeometry<Real> joint_geometry(JointType type, const JointConstants<Real>& c, bool carried,
                                                  const JointSide<Real>& parent, const JointSide<Real>& child) {
  JointGeometry<Real> g;
  g.C = child.pose.axes * c.child_axes;
  g.child_arm = child.pose.axes * (c.child_origin - child.com);
  const Vec3<Real> x = child.pose.centre + g.child_arm;
  if (carried) {
    g.P = parent.pose.axes * c.parent_axes;
    g.parent_arm = x - parent.pose.centre;
    g.r = g.parent_arm - parent.pose.axes * (c.parent_origin - parent.com);
  } else {
    g.P = c.parent_axes;
    g.parent_arm = x;
    g.r = x - c.parent_origin;
  }
  turning_rows(type, g.P, g.C, g.turn);
  return g;
}

/// Errors of the rows that are attached; of the others, what they would be: nobody reads them.
template <class Real>
BACKDRIVE_INLINE void joint_errors(JointType type, const JointGeometry<Real>& g, Real (&e)[kRows]) {
  const Real half = constant<Real>(0.5);
  const Mat3<Real>&P = g.P, &C = g.C;
  e[0] = e[1] = e[2] = constant<Real>(0);
  if (type == JointType::revolute || type == JointType::planar) {
    e[0] = -dot(P.cy, C.cz);
    e[1] = dot(P.cx, C.cz);
  } else if (type == JointType::universal) {
    e[2] = dot(P.cx, C.cy);
  } else if (type == JointType::prismatic || type == JointType::fixed) {
    e[0] = half * (dot(P.cz, C.cy) - dot(P.cy, C.cz));
    e[1] = half * (dot(P.cx, C.cz) - dot(P.cz, C.cx));
    e[2] = half * (dot(P.cy, C.cx) - dot(P.cx, C.cy));
  }
  e[3] = dot(P.cx, g.r), e[4] = dot(P.cy, g.r), e[5] = dot(P.cz, g.r);
}

/// Angle of (x, y), of all that differ by full turns the one nearest to `near`.
template <class Real>
BACKDRIVE_INLINE Real angle_near(const Real& near, const Real& x, const Real& y) {
  const Real turn = constant<Real>(6.28318530717958647693), angle = angle_of(x, y);
  return angle + turn * nearest_whole((near - angle) / turn);
}
/// Of the child about the joint's z.
template <class Real>
BACKDRIVE_INLINE Real angle_about_z(const JointGeometry<Real>& g, const Real& near) {
  return angle_near(near, dot(g.P.cx, g.C.cx) + dot(g.P.cy, g.C.cy), dot(g.P.cy, g.C.cx) - dot(g.P.cx, g.C.cy));
}

/// The unit quaternion of a rotation matrix, on the side of `near`: from whichever of its numbers is largest, so that
/// nothing is lost by cancellation.
template <class Real>
BACKDRIVE_INLINE Quaternion<Real> quaternion_of(const Mat3<Real>& m, const Quaternion<Real>& near) {
  const Real one = constant<Real>(1);
  const Quaternion<Real> by[4] = {
      {{one + m.cx.x - m.cy.y - m.cz.z, m.cx.y + m.cy.x, m.cx.z + m.cz.x}, m.cy.z - m.cz.y},
      {{m.cx.y + m.cy.x, one - m.cx.x + m.cy.y - m.cz.z, m.cy.z + m.cz.y}, m.cz.x - m.cx.z},
      {{m.cx.z + m.cz.x, m.cy.z + m.cz.y, one - m.cx.x - m.cy.y + m.cz.z}, m.cx.y - m.cy.x},
      {{m.cy.z - m.cz.y, m.cz.x - m.cx.z, m.cx.y - m.cy.x}, one + m.cx.x + m.cy.y + m.cz.z}};
  const Real squares[4] = {by[0].v.x, by[1].v.y, by[2].v.z, by[3].w};
  Quaternion<Real> q = by[3];
  Real largest = squares[3];
  for (int k = 0; k < 3; ++k) {
    const auto larger = value_of(squares[k]) > value_of(largest);
    largest = select(larger, squares[k], largest);
    q.v = {select(larger, by[k].v.x, q.v.x), select(larger, by[k].v.y, q.v.y), select(larger, by[k].v.z, q.v.z)};
    q.w = select(larger, by[k].w, q.w);
  }
  const Real length = square_root(dot(q.v, q.v) + q.w * q.w);
  const auto other_side = value_of(dot(q.v, near.v) + q.w * near.w) < value_of(constant<Real>(0));
  const Real scale = one / select(other_side, -length, length);
  return {q.v * scale, q.w * scale};
}

template <class Real>
BACKDRIVE_INLINE void store_quaternion(const Quaternion<Real>& q, Real* to) {
  to[0] = q.v.x, to[1] = q.v.y, to[2] = q.v.z, to[3] = q.w;
}

/// Coordinates of a joint, of a free one its turn alone: of angles those nearest to `near`, of a quaternion the one on
/// its side. q may be near.
template <class Real>
BACKDRIVE_INLINE void read_positions(JointType type, const JointGeometry<Real>& g, const Real* near, Real* q) {
  const Mat3<Real>&P = g.P, &C = g.C;
  switch (type) {
    case JointType::revolute:
      q[0] = angle_about_z(g, near[0]);
      return;
    case JointType::prismatic:
      q[0] = dot(P.cz, g.r);
      return;
    case JointType::universal:  // Pᵀ C = Rx(q₀) Ry(q₁)
      q[0] = angle_near(near[0], dot(P.cy, C.cy), dot(P.cz, C.cy));
      q[1] = angle_near(near[1], dot(P.cx, C.cx), dot(P.cx, C.cz));
      return;
    case JointType::planar:
      q[0] = dot(P.cx, g.r), q[1] = dot(P.cy, g.r);
      q[2] = angle_about_z(g, near[2]);
      return;
    case JointType::free:
    case JointType::ball:
      store_quaternion(quaternion_of(transposed(P) * C, load_quaternion(near)), q);
      return;
    case JointType::fixed:
      return;
  }
}

/// Where a joint is, for the efforts that ask: JointScratch::position. Others are not asked, and stay 0. Of a ball, the
/// quaternion of the shortest turn.
template <class Real>
BACKDRIVE_INLINE void joint_positions(const Joint& joint, const JointGeometry<Real>& g, const Real* near, Real* q) {
  const bool asked = joint.acts.spring || joint.acts.limit || joint.acts.drive;
  if (!has_one_degree(joint.type) && !asked) return;
  const Real o = constant<Real>(0), no_turn[4] = {o, o, o, constant<Real>(1)};
  read_positions(joint.type, g, joint.type == JointType::ball ? no_turn : near, q);
}

/// Where the sum of the turning rows' cotangents e points: what a small turn of the child does to its joint's
/// coordinates. Rows are their derivatives but for a universal joint's, which are only where its axes P_x and C_y are
/// at right angles.
template <class Real>
BACKDRIVE_INLINE Vec3<Real> turning_of_positions(JointType type, const JointGeometry<Real>& g, const Real (&e)[kRows]) {
  if (type != JointType::universal) return g.turn[0] * e[0] + g.turn[1] * e[1] + g.turn[2] * e[2];
  const Real c = dot(g.P.cx, g.C.cy), scale = constant<Real>(1) / (constant<Real>(1) - c * c);
  return ((g.P.cx - g.C.cy * c) * e[0] + (g.C.cy - g.P.cx * c) * e[1]) * scale;
}

/// The inputs of joint_force for a row, whose joint is at `position`.
template <class Real>
BACKDRIVE_INLINE JointInput<Real> effort_input(const Joint& joint, int dof, const Real* position, const Real& rate,
                                               const JointInputs<Real>& in) {
  const Real zero = constant<Real>(0);
  const Real& q = joint.type == JointType::free ? zero : position[dof];
  if (!joint.acts.drive) return {q, rate, in.effort[dof], zero, zero};
  return {q, rate, in.effort[dof], in.target_position[dof], in.target_velocity[dof]};
}
/// And of ball_force, whose rows are the joint's first three.
template <class Real>
BACKDRIVE_INLINE BallInput<Real> ball_input(const Real* position, const Real* rate, const JointInputs<Real>& in) {
  return {load_quaternion(position), vector_at(rate), vector_at(in.effort), vector_at(in.target_position),
          vector_at(in.target_velocity)};
}

template <class Real>
BACKDRIVE_INLINE void add_efforts(const JointEfforts<Real>& from, JointEfforts<Real>& to) {
#define BACKDRIVE_ADD(at, name, ...) to.at name += from.at name;
  BACKDRIVE_EFFORT_PARAMETERS(BACKDRIVE_ADD)
#undef BACKDRIVE_ADD
}

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
