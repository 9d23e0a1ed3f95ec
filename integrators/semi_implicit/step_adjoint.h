#pragma once
// Adjoint of step.h: docs/semi_implicit.md, equations (7)-(11).
//
// With u of (M + Gᵀ A G) u = v̄⁺, what the kick passes back are the derivatives of
//
//   φ = u·(M (v − v⁺) + Δt (weights + wrenches)) + Σ rows w σ        w = G u,  σ = r − A (G v⁺ − t) the row's impulse
//
// with u and v⁺ held: one more solve with the factors of the step, and nothing of the solve is differentiated.
#include "integrators/contact/shape_constants.h"
#include "integrators/semi_implicit/flight_adjoint.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

/// Cotangents that one step produces or passes on.
template <class Real>
struct StepBar {
  BodyStateBar<Real>* state;             ///< in: of the state after the step; out: of the one before
  JointInputs<Real>* joints;             ///< out; of efforts that there are not: 0
  Spatial<Real>* wrenches = nullptr;     ///< out; null: nobody asked, as below
  BodyGradient<Real>* bodies = nullptr;  ///< added to
  JointGradient<Real>* joint_parameters = nullptr;
  Vec3<Real>* gravity = nullptr;
  // With contact only.
  ShapeGradient<Real>* shapes = nullptr;         ///< as bodies
  CouplingConstants<Real>* couplings = nullptr;  ///< likewise
  Real* ratios = nullptr;                        ///< likewise
  Vec3<Real>* pair_forces = nullptr;             ///< in: of the pairs' forces
  const Spatial<Real>* reported = nullptr;       ///< in: of the velocities v_d of the bodies after the step

  BACKDRIVE_INLINE bool wants_parameters() const { return bodies; }
  BACKDRIVE_INLINE Real& mass(int body) const { return bodies[body].mass; }
};

/// What the momenta of a body pass back (8): u is at hand.
template <class Real>
BACKDRIVE_PART void adj_momentum(const System<Real>& system, int i, const BodyScratch<Real>& s, BodyBar<Real>& bar,
                                 const StepBar<Real>& out) {
  const Real& m = system.bodies[i].mass;
  const Vec3<Real>& u = s.u.ang;
  const Vec3<Real> lost = s.velocity.ang - s.next.ang;
  bar.turn += cross(s.inertia * lost, u) + cross(s.inertia * u, lost);
  bar.velocity = {s.inertia * u, s.u.lin * m};
  if (out.wrenches) out.wrenches[i] = s.u * system.dt;
  const Real fall = system.dt * weight_share(system.bodies[i]);
  if (out.gravity) *out.gravity += s.u.lin * (fall * m);
  if (!out.bodies) return;
  BodyGradient<Real>& g = out.bodies[i];
  add_bilinear(g.inertia, transposed_times(s.pose.axes, u), transposed_times(s.pose.axes, lost));
  g.mass += dot(s.u.lin, s.velocity.lin - s.next.lin) + fall * dot(s.u.lin, system.gravity);
  g.lift -= system.dt * m * dot(s.u.lin, system.gravity);
}

/// Cotangents of one joint's rows: what multiplies the variation of G u, G v⁺, G v and the rates after a free flight
/// alone, of the errors and the position.
template <class Real>
struct RowBars {
  Real u[kRows], next[kRows], start[kRows], flown[kRows], error[kRows];
  Real position[kRows];  ///< of the joint's positions by row; of a ball the turn
};

/// Cotangents of the rows' impulses (9), and gradients of the joint's forces. `resisted`: Σ (G X)(G Y) of other solves
/// with A by row.
template <class Real>
BACKDRIVE_PART RowBars<Real> adj_row_impulses(const System<Real>& system, const JointScratch<Real>& s, int j,
                                              const JointInputs<Real>& in, const Real (&resisted)[kRows],
                                              const StepBar<Real>& out) {
  const Joint& joint = system.joints[j];
  const JointConstants<Real>& c = system.constants[j];
  const Real &dt = system.dt, zero = constant<Real>(0);
  JointEfforts<Real> efforts{};
  JointGradient<Real>* const gradient = out.joint_parameters ? out.joint_parameters + j : nullptr;
  JointInputs<Real>& input_bar = out.joints[j];
  for (Real& x : input_bar.effort) x = zero;
  for (int k = 0; k < kMostDriven; ++k) {
    input_bar.target_position[k] = input_bar.target_velocity[k] = input_bar.near[k] = zero;
  }
  RowBars<Real> bar;
  if (!system.holds(j)) {
    for (int row = 0; row < kRows; ++row) {
      bar.u[row] = bar.next[row] = bar.start[row] = bar.flown[row] = bar.error[row] = bar.position[row] = zero;
    }
    return bar;
  }
  const bool as_one = turns_as_one(joint.type, joint.acts);
  BallInputBar<Real> ball;
  if (as_one) {
    const auto of = [&](int row) { return s.rate[row] * (s.next[row] - s.start[row]) + resisted[row]; };
    ball = adj_ball_force(joint, c.efforts, ball_input(s.position, s.start, in), dt,
                          {vector_at(s.rate) * dt, {of(0), of(1), of(2)}}, gradient ? &efforts : nullptr);
  }
  for (int row = 0; row < kRows; ++row) {
    const int dof = dof_of_row(joint.type, row);
    const Real &w = s.rate[row], &A = s.inertia[row];
    bar.u[row] = s.impulse[row] - A * s.off[row];
    bar.next[row] = -(w * A);
    bar.error[row] = bar.flown[row] = bar.position[row] = zero;
    if (dof < 0) {
      const Real K = row_stiffness(c.attach, row);
      const Real stretch = s.error[row] + dt * (s.next[row] - s.start[row]);
      bar.error[row] = -(w * dt * K);
      bar.start[row] = w * dt * dt * K;
      if (!gradient) continue;
      (row < 3 ? gradient->attach.angular_stiffness : gradient->attach.stiffness) -=
          w * dt * stretch + dt * dt * resisted[row];
      (row < 3 ? gradient->attach.angular_damping : gradient->attach.damping) -=
          w * dt * s.next[row] + dt * resisted[row];
    } else {
      const JointForceBar<Real> of{w * dt, w * (s.next[row] - s.start[row]) + resisted[row]};
      const JointInputBar<Real> b =
          as_one ? component(ball, dof)
                 : adj_joint_force(joint, c.efforts, effort_input(joint, dof, s.position, s.start[row], in), dt, of,
                                   gradient ? &efforts : nullptr);
      bar.flown[row] = -(w * c.efforts.armature);
      bar.start[row] = b.qd + w * A - bar.flown[row];
      if (gradient) gradient->efforts.armature -= w * (s.flown[row] - s.start[row]);
      bar.position[row] = b.q;
      input_bar.effort[dof] = b.effort;
      if (!joint.acts.drive) continue;
      input_bar.target_position[dof] = b.target_position, input_bar.target_velocity[dof] = b.target_velocity;
    }
  }
  if (gradient) add_efforts(efforts, gradient->efforts);
  return bar;
}

/// Where the cotangents of one joint's geometry go.
template <class Real>
struct GeometryBar {
  BodyGradient<Real>*parent_body, *child_body;  ///< null: nobody asked
  JointGradient<Real>* joint;                   ///< likewise
  Vec3<Real>*parent_turn, *parent_centre;       ///< null: the world
  Vec3<Real>*child_turn, *child_centre;
};

/// A joint's bodies and their cotangents; the parent's are null where it is the world.
template <class Real>
struct JointSides {
  const BodyScratch<Real>&child, *parent;
  BodyBar<Real>&child_bar, *parent_bar;

  BACKDRIVE_INLINE JointSides(const Workspace<Real>& ws, const Joint& joint)
      : child(ws.body[joint.child]),
        parent(joint.parent >= 0 ? ws.body + joint.parent : nullptr),
        child_bar(ws.bar[joint.child]),
        parent_bar(joint.parent >= 0 ? ws.bar + joint.parent : nullptr) {}

  /// Of joint j, for what acts at the poses of the start.
  BACKDRIVE_INLINE GeometryBar<Real> geometry_bar(const Joint& joint, int j, const StepBar<Real>& out) const {
    return {out.bodies && parent ? out.bodies + joint.parent : nullptr,
            out.bodies ? out.bodies + joint.child : nullptr,
            out.joint_parameters ? out.joint_parameters + j : nullptr,
            parent ? &parent_bar->turn : nullptr,
            parent ? &parent_bar->centre : nullptr,
            &child_bar.turn,
            &child_bar.centre};
  }
};

/// Adjoint of errors and position: `turning` and `sliding`, their cotangents summed along U and W, since rows are exact
/// derivatives. They act on the poses as a wrench would, at the joint's origin on the child.
template <class Real>
BACKDRIVE_PART void adj_errors(const JointGeometry<Real>& g, const Mat3<Real>& child_axes,
                               const Mat3<Real>* parent_axes, const Vec3<Real>& turning, const Vec3<Real>& sliding,
                               const GeometryBar<Real>& to) {
  *to.child_turn += turning + cross(g.child_arm, sliding);
  *to.child_centre += sliding;
  if (parent_axes) {
    *to.parent_turn -= turning + cross(g.parent_arm, sliding);
    *to.parent_centre -= sliding;
  }
  if (to.joint) {
    to.joint->child_turn += transposed_times(g.C, turning);
    to.joint->child_origin += transposed_times(child_axes, sliding);
    to.joint->parent_turn -= transposed_times(g.P, turning + cross(g.r, sliding));
    to.joint->parent_origin -= parent_axes ? transposed_times(*parent_axes, sliding) : sliding;
  }
  if (to.child_body) to.child_body->com -= transposed_times(child_axes, sliding);
  if (to.parent_body && parent_axes) {
    to.parent_body->com += transposed_times(*parent_axes, sliding);
  }
}

/// Cotangents of the rows' directions and arms (10), from those, f, of the rates of some velocities of the bodies.
template <class Real>
struct DirectionBars {
  Vec3<Real> turn[3];
  Mat3<Real> P;
  Vec3<Real> parent_arm, child_arm;

  BACKDRIVE_INLINE DirectionBars() : P{zero3<Real>(), zero3<Real>(), zero3<Real>()} {
    for (Vec3<Real>& t : turn) t = zero3<Real>();
    parent_arm = child_arm = zero3<Real>();
  }
  BACKDRIVE_INLINE void add(const JointGeometry<Real>& g, const Real (&f)[kRows], const Spatial<Real>& child,
                            const Spatial<Real>* parent) {
    const Vec3<Real> force = g.P.cx * f[3] + g.P.cy * f[4] + g.P.cz * f[5];
    Vec3<Real> ang = child.ang, lin = plus_cross(child.lin, child.ang, g.child_arm);
    child_arm += cross(force, child.ang);
    if (parent) {
      ang -= parent->ang;
      lin -= plus_cross(parent->lin, parent->ang, g.parent_arm);
      parent_arm -= cross(force, parent->ang);
    }
    for (int k = 0; k < 3; ++k) {
      turn[k] += ang * f[k];
      column(P, k) += lin * f[3 + k];
    }
  }
};

/// And what poses and frames receive of them.
template <class Real>
BACKDRIVE_PART void adj_directions(JointType type, const JointGeometry<Real>& g, const Mat3<Real>& child_axes,
                                   DirectionBars<Real>& bar, const GeometryBar<Real>& to) {
  Mat3<Real> C_bar{zero3<Real>(), zero3<Real>(), zero3<Real>()};
  adj_turning_rows(type, g, bar.turn, bar.P, C_bar);
  Vec3<Real> parent = zero3<Real>(), child = zero3<Real>();  // turns of P and C
  for (int k = 0; k < 3; ++k) {
    parent += cross(column(g.P, k), column(bar.P, k));
    child += cross(column(g.C, k), column(C_bar, k));
  }
  // child_arm = R_c (t_c − com), parent_arm = c_c + child_arm − c_p
  const Vec3<Real> arm = bar.child_arm + bar.parent_arm;
  *to.child_turn += child + cross(g.child_arm, arm);
  *to.child_centre += bar.parent_arm;
  if (to.parent_turn) {
    *to.parent_turn += parent;
    *to.parent_centre -= bar.parent_arm;
  }
  const Vec3<Real> origin = transposed_times(child_axes, arm);
  if (to.joint) {
    to.joint->parent_turn += transposed_times(g.P, parent);
    to.joint->child_turn += transposed_times(g.C, child);
    to.joint->child_origin += origin;
  }
  if (to.child_body) to.child_body->com -= origin;
}

/// Adjoint of what a joint reads at the predicted pose: errors of its attached rows, rates of the others.
template <class Real>
BACKDRIVE_PART void adj_predicted(const System<Real>& system, Workspace<Real>& ws, int j, const RowBars<Real>& bar,
                                  const GeometryBar<Real>& to) {
  const Joint& joint = system.joints[j];
  const auto [child, parent, child_bar, parent_bar] = JointSides<Real>(ws, joint);
  const JointGeometry<Real> p = geometry_at(system, ws, j, &BodyScratch<Real>::predicted);
  const Real(&e)[kRows] = bar.error;
  adj_errors(p, child.predicted.axes, parent ? &parent->predicted.axes : nullptr,
             p.turn[0] * e[0] + p.turn[1] * e[1] + p.turn[2] * e[2], p.P.cx * e[3] + p.P.cy * e[4] + p.P.cz * e[5], to);
  DirectionBars<Real> direction;
  direction.add(p, bar.flown, child.predicted_velocity, parent ? &parent->predicted_velocity : nullptr);
  add_row_forces(p, bar.flown, child_bar.predicted_velocity, parent ? &parent_bar->predicted_velocity : nullptr);
  adj_directions(joint.type, p, child.predicted.axes, direction, to);
}

/// Solves with A of a step without contact: none but its own.
template <class Real>
struct NoKicks {
  BACKDRIVE_INLINE void resisted(int, Real (&sum)[kRows]) const {
    for (Real& x : sum) x = constant<Real>(0);
  }
  BACKDRIVE_INLINE void add_directions(int, DirectionBars<Real>&) const {}
  BACKDRIVE_INLINE Real resisted_of_coupling(int) const { return constant<Real>(0); }
  BACKDRIVE_INLINE Real of_ratio(int, int, int) const { return constant<Real>(0); }
};

/// (18): what couplings add to the cotangents of one joint's rows.
template <class Real, class Kicks>
BACKDRIVE_CALLED void add_coupling_bars(const System<Real>& system, Workspace<Real>& ws, int joint, const Kicks& kicks,
                                        const StepBar<Real>& out, RowBars<Real>& bar) {
  const JointScratch<Real>& s = ws.joint[joint];
  for (int c = 0; c < system.couplings.count; ++c) {
    const CoupledStep<Real>& of = ws.coupled[c];
    each_term(system, c, [&](int t, int j, int row) {
      if (j != joint) return;
      const Real ratio = constant<Real>(0) + system.couplings.ratios[t];
      bar.u[row] += of.push * ratio;
      bar.next[row] += of.push_bar * ratio;
      bar.start[row] += of.in_bar.qd * ratio;
      bar.flown[row] += of.flown_bar * ratio;
      bar.position[row] += of.in_bar.q * ratio;
      if (!out.ratios) return;
      out.ratios[t] += of.push * s.rate[row] + of.push_bar * s.next[row] + of.in_bar.q * s.position[0] +
                       of.in_bar.qd * s.start[row] + of.flown_bar * s.flown[row] + kicks.of_ratio(c, j, row);
    });
  }
}

/// (9)-(10) of one joint. `kicks`: the other solves with A.
template <class Real, class Kicks>
BACKDRIVE_PART void adj_joint(const System<Real>& system, Workspace<Real>& ws, int j, const JointInputs<Real>& in,
                              const Kicks& kicks, const StepBar<Real>& out) {
  const Joint& joint = system.joints[j];
  const JointScratch<Real>& s = ws.joint[j];
  const JointGeometry<Real>& g = s.geometry;
  const JointSides<Real> sides(ws, joint);
  const auto& [child, parent, child_bar, parent_bar] = sides;
  Real resisted[kRows];
  kicks.resisted(j, resisted);
  RowBars<Real> bar = adj_row_impulses(system, s, j, in, resisted, out);
  if (is_coupled(system)) add_coupling_bars(system, ws, j, kicks, out, bar);
  DirectionBars<Real> direction;
  direction.add(g, bar.u, child.u, parent ? &parent->u : nullptr);
  direction.add(g, bar.next, child.next, parent ? &parent->next : nullptr);
  kicks.add_directions(j, direction);
  direction.add(g, bar.start, child.velocity, parent ? &parent->velocity : nullptr);
  add_row_forces(g, bar.start, child_bar.velocity, parent ? &parent_bar->velocity : nullptr);

  GeometryBar<Real> to = sides.geometry_bar(joint, j, out);
  adj_directions(joint.type, g, child.pose.axes, direction, to);
  if (has_one_degree(joint.type)) {
    const bool turns = joint.type == JointType::revolute;
    adj_errors(g, child.pose.axes, parent ? &parent->pose.axes : nullptr,
               turns ? g.turn[2] * bar.position[2] : zero3<Real>(), turns ? zero3<Real>() : g.P.cz * bar.position[5],
               to);
  } else if (joint.acts.spring || joint.acts.limit || joint.acts.drive) {
    const Real(&e)[kRows] = bar.position;
    adj_errors(g, child.pose.axes, parent ? &parent->pose.axes : nullptr, turning_of_positions(joint.type, g, e),
               g.P.cx * e[3] + g.P.cy * e[4] + g.P.cz * e[5], to);
  }
  to.child_turn = &child_bar.predicted_turn, to.child_centre = &child_bar.predicted_centre;
  if (parent) to.parent_turn = &parent_bar->predicted_turn, to.parent_centre = &parent_bar->predicted_centre;
  adj_predicted(system, ws, j, bar, to);
}

/// Adjoint of set_motion: from cotangents of pose and velocity, in `bar`, those of the state, set.
template <class Real>
BACKDRIVE_INLINE void adj_set_motion(const BodyScratch<Real>& s, const BodyBar<Real>& bar, BodyStateBar<Real>& state,
                                     BodyGradient<Real>* gradient) {
  // c = p + lever, v_c = ṗ + ω × lever
  const Vec3<Real> lever_bar = bar.centre + cross(bar.velocity.lin, s.velocity.ang);
  state.turn = bar.turn + cross(s.lever, lever_bar);
  state.position = bar.centre;
  state.velocity = {bar.velocity.ang + cross(s.lever, bar.velocity.lin), bar.velocity.lin};
  if (gradient) gradient->com += transposed_times(s.pose.axes, lever_bar);
}

/// Adjoint of (1), the predicted pose included (11): everything of a body comes together in the state before the step.
template <class Real>
BACKDRIVE_PART void adj_prepare_body(const FlightStart<Real>& start, const BodyScratch<Real>& s, BodyBar<Real>& bar,
                                     BodyStateBar<Real>& state, BodyGradient<Real>* gradient) {
  const FreeFlight<Real> d = flight_of(start, s.velocity.ang);
  const FlightBar<Real> end{bar.predicted_turn, bar.predicted_velocity.ang};
  const Vec3<Real> omega_bar = adj_flight_of(start, s.velocity.ang, d, end, bar.turn, gradient);
  bar.centre += bar.predicted_centre;
  bar.velocity += Spatial<Real>{omega_bar, bar.predicted_centre * start.dt + bar.predicted_velocity.lin};
  adj_set_motion(s, bar, state, gradient);
}

/// Σ weight s⁺ of the couplings that hold, weights in coupled[].trial: to the poses held.bar (added), and, unless null,
/// to gradients of ratios, offsets and where joints sit.
template <class Real>
BACKDRIVE_CALLED void adj_held_positions(const System<Real>& system, Workspace<Real>& ws, const StepBar<Real>* out) {
  for (int c = 0; c < system.couplings.count; ++c) {
    if (!system.couplings.couplings[c].holds) continue;
    const Real& weight = ws.coupled[c].trial;
    if (out && out->couplings) out->couplings[c].offset += weight;
    each_term(system, c, [&](int t, int j, int) {
      const Joint& joint = system.joints[j];
      const int child = joint.child, parent = joint.parent;
      const JointGeometry<Real> g = held_geometry(system, ws, j);
      const bool turns = joint.type == JointType::revolute;
      if (out && out->ratios) out->ratios[t] += weight * held_position(system, ws, j, g);
      const Real bar = weight * system.couplings.ratios[t];
      const GeometryBar<Real> to{out && out->bodies && parent >= 0 ? out->bodies + parent : nullptr,
                                 out && out->bodies ? out->bodies + child : nullptr,
                                 out && out->joint_parameters ? out->joint_parameters + j : nullptr,
                                 parent >= 0 ? &ws.held.bar[parent].turn : nullptr,
                                 parent >= 0 ? &ws.held.bar[parent].centre : nullptr,
                                 &ws.held.bar[child].turn,
                                 &ws.held.bar[child].centre};
      adj_errors(g, ws.held.pose[child].axes, parent >= 0 ? &ws.held.pose[parent].axes : nullptr,
                 turns ? g.turn[2] * bar : zero3<Real>(), turns ? zero3<Real>() : g.P.cz * bar, to);
    });
  }
}

/// From there over the free flight: the cotangents of velocities after the kick, added to body[].u, and, unless `out`
/// is null, of poses at the start and of parameters.
template <class Real>
BACKDRIVE_CALLED void adj_held_flight(const System<Real>& system, const BodyState<Real>* state, Workspace<Real>& ws,
                                      const StepBar<Real>* out) {
  for (int i = 0; i < system.body_count; ++i) {
    BodyScratch<Real>& body = ws.body[i];
    const PoseBar<Real>& bar = ws.held.bar[i];
    const FlightStart<Real> start = flight_start(system, state, ws, i);
    const FreeFlight<Real> d = flight_of(start, body.next.ang);
    Vec3<Real> turn_bar = zero3<Real>();
    body.u += Spatial<Real>{adj_flight_of<Real>(start, body.next.ang, d, {bar.turn, zero3<Real>()}, turn_bar,
                                                out && out->bodies ? out->bodies + i : nullptr),
                            bar.centre * system.dt};
    if (!out) continue;
    ws.bar[i].turn += turn_bar;
    ws.bar[i].centre += bar.centre;
  }
}

/// (19): adds what keeps positions held to the cotangents of v⁺ in body[].u, such that what these couplings ask for has
/// none: y of s⁺ with push_bar = 0.
template <class Real>
BACKDRIVE_CALLED void adj_close_couplings(const System<Real>& system, const BodyState<Real>* state, Workspace<Real>& ws,
                                          const StepBar<Real>& out) {
  const int n = system.couplings.count, bodies = system.body_count;
  const Real zero = constant<Real>(0), one = constant<Real>(1);
  const auto holds = [&](int c) { return system.couplings.couplings[c].holds; };
  const auto pushes_back = [&]() __attribute__((always_inline)) {
    solve_coupled(system, ws, OwnMasses<Real>{system, ws}, ws.factors,
                  {ws.response, &CoupledStep<Real>::push_bar, false, false});
  };
  const auto clear = [&]() __attribute__((always_inline)) {
    for (int i = 0; i < bodies; ++i) ws.held.bar[i] = {zero3<Real>(), zero3<Real>()};
  };
  for (int i = 0; i < bodies; ++i) ws.coupled_bodies[i] = ws.body[i].u;
  fly_held(system, state, ws);
  for (int c = 0; c < n; ++c) {
    for (int k = 0; k < n; ++k) ws.coupled[k].trial = k == c ? one : zero;
    clear();
    for (int i = 0; i < bodies; ++i) ws.body[i].u = zero6<Real>();
    if (holds(c)) {
      adj_held_positions<Real>(system, ws, nullptr);
      adj_held_flight<Real>(system, state, ws, nullptr);
      pushes_back();
    }
    for (int k = 0; k < n; ++k) {
      ws.held.matrix[k * n + c] = holds(c) && holds(k) ? ws.coupled[k].push_bar : k == c ? one : zero;
    }
  }
  for (int i = 0; i < bodies; ++i) ws.body[i].u = ws.coupled_bodies[i];
  pushes_back();
  for (int k = 0; k < n; ++k) ws.coupled[k].trial = holds(k) ? -ws.coupled[k].push_bar : zero;
  eliminate(ws.held.matrix, n);
  substitute(ws.held.matrix, n, [&](int k) -> Real& { return ws.coupled[k].trial; });
  clear();
  adj_held_positions(system, ws, &out);
  for (int i = 0; i < bodies; ++i) ws.body[i].u = ws.coupled_bodies[i];
  adj_held_flight(system, state, ws, &out);
}

/// (8): u, with its rates, and what couplings ask for back.
template <class Real, class Kicks>
BACKDRIVE_HD void solve_for_u(const System<Real>& system, const BodyState<Real>* state, Workspace<Real>& ws,
                              const Kicks& kicks, const StepBar<Real>& bar) {
  if (!is_coupled(system)) return solve(system, ws);
  if (holds_any(system)) adj_close_couplings(system, state, ws, bar);
  solve_coupled(system, ws, OwnMasses<Real>{system, ws}, ws.factors,
                {ws.response, &CoupledStep<Real>::push_bar, false, false});
  adj_prepare_couplings(
      system, ws, [&](int c) { return kicks.resisted_of_coupling(c); }, bar.couplings);
}

/// Adjoint of one step, from the state before it: everything else is computed again. On entry bar.state holds the
/// cotangent of the state after the step, on return that of `state`. Some 2.5 times the work of a step.
template <class Real>
BACKDRIVE_HD void step_adjoint(const System<Real>& system, const BodyState<Real>* state, const StepInputs<Real>& in,
                               Workspace<Real>& ws, const StepBar<Real>& bar) {
  const auto gradient = [&](int i) { return bar.bodies ? bar.bodies + i : nullptr; };
  kick(system, state, in, ws);
  for (int i = 0; i < system.body_count; ++i) {
    adj_state_after(flight_start(system, state, ws, i), bar.state[i], ws.body[i], ws.bar[i], gradient(i));
    ws.bar[i].predicted_turn = ws.bar[i].predicted_centre = zero3<Real>();
    ws.bar[i].predicted_velocity = zero6<Real>();
  }
  solve_for_u(system, state, ws, NoKicks<Real>{}, bar);
  for (int i = 0; i < system.body_count; ++i) adj_momentum(system, i, ws.body[i], ws.bar[i], bar);
  for (int j = 0; j < system.joint_count; ++j) adj_joint(system, ws, j, in.joints[j], NoKicks<Real>{}, bar);
  for (int i = 0; i < system.body_count; ++i) {
    adj_prepare_body(flight_start(system, state, ws, i), ws.body[i], ws.bar[i], bar.state[i], gradient(i));
  }
}

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
