#pragma once
// What a rollout (rollout/shell.h) asks of this integrator: a step that moves the state on, and one back.
#include "integrators/rollout/shell.h"
#include "integrators/semi_implicit/coordinates.h"
#include "integrators/semi_implicit/parameter_rows.h"
#include "integrators/semi_implicit/tables.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

/// The working set of one group of worlds. Nothing in it outlives a step but q, qd and the constants.
template <class R>
struct Space {
  using Real = R;
  static constexpr bool has_contact = false, has_ways = false;

  TablesView tables;
  System<Real> system;
  Workspace<Real> ws;
  BodyState<Real>* state;     ///< [body_count], as q and qd say
  JointInputs<Real>* inputs;  ///< [joint_count]
  Real *q, *qd;               ///< the state as it lies in buffers
  CopiedRows<Real> control;

  BACKDRIVE_HD Real* joint_q(int j) const { return q + tables.rows[j].q; }
  BACKDRIVE_HD Real* joint_qd(int j) const { return qd + tables.rows[j].v; }
};

/// The numbers of a BodyState in the rows of a state.
template <class Real>
BACKDRIVE_HD void load_body(const TablesView& t, int body, const Real* q, const Real* qd, BodyState<Real>& to) {
  q += t.joint_nq + body * kBodyPositions, qd += t.joint_nv + body * kBodyVelocities;
  to = {load_quaternion(q), {q[4], q[5], q[6]}, {{qd[0], qd[1], qd[2]}, {qd[3], qd[4], qd[5]}}};
}
template <class Real>
BACKDRIVE_HD void store_body(const TablesView& t, int body, const BodyState<Real>& from, Real* q, Real* qd) {
  q += t.joint_nq + body * kBodyPositions, qd += t.joint_nv + body * kBodyVelocities;
  const Vec3<Real>&p = from.position, &w = from.velocity.ang, &v = from.velocity.lin;
  store_quaternion(from.rotation, q);
  q[4] = p.x, q[5] = p.y, q[6] = p.z;
  qd[0] = w.x, qd[1] = w.y, qd[2] = w.z, qd[3] = v.x, qd[4] = v.y, qd[5] = v.z;
}
/// Its cotangent, in tangent rows.
template <class Real>
BACKDRIVE_HD BodyStateBar<Real> load_body_bar(const TablesView& t, int body, const Real* q, const Real* qd) {
  BodyState<Real> bar;
  load_body(t, body, q, qd, bar);
  return {bar.rotation.v, bar.position, bar.velocity};
}
template <class Real>
BACKDRIVE_HD void store_body_bar(const TablesView& t, int body, const BodyStateBar<Real>& from, Real* q, Real* qd) {
  store_body(t, body, {{from.turn, constant<Real>(0)}, from.position, from.velocity}, q, qd);
}

/// Fills what every kernel needs, for the worlds from first_world on; only counts when there is no memory.
template <class Real>
BACKDRIVE_HD void prepare(const Launch<StorageOf<Real>>& launch, int first_world, bool adjoint, Arena& arena,
                          Space<Real>& s) {
  const TablesView& t = s.tables = *launch.bodies;
  BodyConstants<Real>* const bodies = arena.take<BodyConstants<Real>>(t.body_count);
  JointConstants<Real>* const joints = arena.take<JointConstants<Real>>(t.joint_count);
  s.system = {t.joints, t.joint_count, bodies, t.body_count, joints, t.elimination, {}, Real(launch.time_step)};
  const TopologyView& topology = launch.topology;
  CouplingConstants<Real>* const couplings = arena.take<CouplingConstants<Real>>(topology.coupling_count);
  Real* const ratios = arena.take<Real>(topology.coupling_term_count);
  s.system.couplings = {topology.coupling_count, topology.couplings, topology.coupling_terms, couplings, ratios};
  take_arrays(s.system, adjoint, arena, s.ws);
  s.state = arena.take<BodyState<Real>>(t.body_count);
  s.inputs = arena.take<JointInputs<Real>>(t.joint_count);
  s.q = arena.take<Real>(launch.topology.nq);
  s.qd = arena.take<Real>(launch.topology.nv);
  s.control.numbers = arena.take<Real>(launch.topology.nu);
  if (arena.only_counts()) return;
  const auto load = [&](int row, Real* to, std::size_t count) { load_constants(launch, row, first_world, to, count); };
  load(0, numbers_of<Real>(bodies), t.body_count * kNumbers<Real, BodyConstants<Real>>);
  load(joint_row<Real>(t.body_count), numbers_of<Real>(joints), t.joint_count * kNumbers<Real, JointConstants<Real>>);
  load(gravity_row<Real>(t.body_count, t.joint_count), &s.system.gravity.x, 3);
  const int shapes = topology.contact_shape_count;
  load(coupling_row<Real>(t.body_count, t.joint_count, shapes), numbers_of<Real>(couplings),
       topology.coupling_count * kNumbers<Real, CouplingConstants<Real>>);
  load(coupling_row<Real>(t.body_count, t.joint_count, shapes) +
           topology.coupling_count * kNumbers<Real, CouplingConstants<Real>>,
       ratios, topology.coupling_term_count);
  s.control.clear(launch.topology.nu);
}

// ---- forwards -------------------------------------------------------------------------------------------------------

/// Bodies and inputs of a step, from q, qd and control.
template <class Real>
BACKDRIVE_HD void take_inputs(Space<Real>& s) {
  const TablesView& t = s.tables;
  for (int i = 0; i < t.body_count; ++i) load_body(t, i, s.q, s.qd, s.state[i]);
  for (int j = 0; j < t.joint_count; ++j) {
    const JointRows& rows = t.rows[j];
    JointInputs<Real>& in = s.inputs[j];
    for (int k = 0; k < joint_size(t.joints[j].type).nv; ++k) in.effort[k] = s.control[rows.v + k];
    if (!may_be_driven(t.joints[j].type)) continue;
    for (int k = 0; k < joint_size(t.joints[j].type).nv; ++k) {
      in.target_position[k] = rows.target < 0 ? constant<Real>(0) : s.control[rows.target + 2 * k];
      in.target_velocity[k] = rows.target < 0 ? constant<Real>(0) : s.control[rows.target + 2 * k + 1];
      in.near[k] = s.q[rows.q + k];
    }
  }
  for (int c = 0; c < s.system.couplings.count; ++c) {
    const Coupling& coupling = s.system.couplings.couplings[c];
    const auto control = [&](int row) { return row < 0 ? constant<Real>(0) : s.control[row]; };
    JointInput<Real>& in = s.ws.coupled[c].in;
    in.effort = control(coupling.effort);
    in.target_position = control(coupling.target);
    in.target_velocity = control(coupling.target < 0 ? -1 : coupling.target + 1);
  }
}

template <class Real>
BACKDRIVE_HD void set_motions(Space<Real>& s) {
  for (int i = 0; i < s.tables.body_count; ++i) set_motion(s.system.bodies[i], s.state[i], s.ws.body[i]);
}

/// Which joint made a lane non-finite: the first with an effort or a rate that is not finite, else the fastest.
template <class Real>
BACKDRIVE_HD int joint_at_fault(const Space<Real>& s, int lane_index) {
  const auto number = [&](const Real& x) { return number_in(x, lane_index); };
  double most = -1;
  int fastest = 0;
  for (int j = 0; j < s.tables.joint_count; ++j) {
    const JointScratch<Real>& joint = s.ws.joint[j];
    double rates = 0;
    for (int row = 0; row < kRows; ++row) {
      const int dof = dof_of_row(s.tables.joints[j].type, row);
      if (dof >= 0 && !is_finite(number(s.inputs[j].effort[dof]))) return j;
      if (!is_finite(number(joint.start[row]))) return j;
      rates += std::abs(number(joint.start[row]));
    }
    if (rates > most) most = rates, fastest = j;
  }
  return fastest;
}

/// q and qd of the bodies' new states, in lanes that go on.
template <class Real>
BACKDRIVE_HD void follow_bodies(Space<Real>& s, const Real& halted) {
  const TablesView& t = s.tables;
  const auto fine = is_finite(halted);
  set_motions(s);
  for (int i = 0; i < t.body_count; ++i) store_body(t, i, s.state[i], s.q, s.qd);
  for (int j = 0; j < t.joint_count; ++j) {
    Real q[kBodyPositions], qd[kBodyVelocities];
    const JointSize size = joint_size(t.joints[j].type);
    for (int k = 0; k < size.nq; ++k) q[k] = s.joint_q(j)[k];
    read_coordinates(s.system, s.ws, j, q, qd);
    for (int k = 0; k < size.nq; ++k) s.joint_q(j)[k] = select(fine, q[k], s.joint_q(j)[k]);
    for (int k = 0; k < size.nv; ++k) s.joint_qd(j)[k] = select(fine, qd[k], s.joint_qd(j)[k]);
  }
}

/// When the step is: joints may let go. `number`: of the rollout.
template <class Real, class T>
BACKDRIVE_HD void set_time(const Launch<T>& launch, int number, Space<Real>& s) {
  s.system.middle = (number + 0.5) * static_cast<double>(value_of(launch.time_step));
}

/// One step from q and qd, which it moves on: number `step` of this launch, `number` of the rollout. `halted` as in
/// step().
template <class Real>
BACKDRIVE_HD void step_group(const RolloutArguments<StorageOf<Real>>& a, Space<Real>& s, int, int number,
                             int first_world, Real& halted) {
  take_inputs(s);
  set_time(a.launch, number, s);
  step(s.system, s.state, {s.inputs, nullptr}, s.ws, s.state, halted);
  blame(s, !is_finite(halted), number, first_world, a.launch.worlds, a.status);
  follow_bodies(s, halted);
}

template <class T, class Real>
BACKDRIVE_HD void lay_out(const RolloutArguments<T>& a, int first_world, Arena& arena, Space<Real>& s) {
  prepare(a.launch, first_world, false, arena, s);
}

// ---- and back -------------------------------------------------------------------------------------------------------

/// Cotangents that run through an adjoint, in the rows of a state.
template <class Real>
struct StateRowsBar {
  Real *q, *qd;
  CopiedRows<Real> control;
  bool parameters;
  // With contact only.
  Real* reported = nullptr;           ///< in: of the velocities reported after the step
  Vec3<Real>* pair_forces = nullptr;  ///< in: of the pairs' forces; null: nobody asked

  BACKDRIVE_HD bool wants_parameters() const { return parameters; }
};

/// Workspace of an adjoint and the cotangents that run through it.
template <class R>
struct AdjointScratch {
  using Real = R;
  static constexpr bool has_contact = false, has_ways = false;

  Space<Real> ws;
  Real *after_q, *after_qd;  ///< state after the step
  BodyStateBar<Real>* state_bar;
  JointInputs<Real>* input_bar;
  StateRowsBar<Real> bar;
  Real* parameter_bar;  ///< gradient_rows() numbers

  BACKDRIVE_HD int parameter_rows(const TopologyView& t) const {
    return gradient_rows<Real>(ws.tables.body_count, ws.tables.joint_count, 0, t.coupling_count, t.coupling_term_count);
  }
  /// Those of couplings stand behind those of so many contact shapes.
  BACKDRIVE_HD void name_couplings(int shapes, StepBar<Real>& to) const {
    const int count = ws.system.couplings.count;
    if (count == 0) return;
    Real* const first = parameter_bar + gradient_rows<Real>(ws.tables.body_count, ws.tables.joint_count, shapes);
    to.couplings = structs_of<CouplingConstants<Real>>(first);
    to.ratios = first + count * kNumbers<Real, CouplingConstants<Real>>;
  }
  /// What a step's adjoint adds to, null where nobody asked.
  BACKDRIVE_HD StepBar<Real> step_bar() const {
    StepBar<Real> to{state_bar, input_bar};
    if (!bar.wants_parameters()) return to;
    const int bodies = ws.tables.body_count, joints = ws.tables.joint_count;
    to.bodies = structs_of<BodyGradient<Real>>(parameter_bar);
    to.joint_parameters = structs_of<JointGradient<Real>>(parameter_bar + joint_gradient_row<Real>(bodies));
    to.gravity = structs_of<Vec3<Real>>(parameter_bar + gravity_gradient_row<Real>(bodies, joints));
    name_couplings(0, to);
    return to;
  }
};

/// Of any adjoint's; `Scratch` knows how many rows its parameters have.
template <class Scratch>
BACKDRIVE_HD void prepare_cotangents(const Launch<StorageOf<typename Scratch::Real>>& launch, int first_world,
                                     bool parameters, Arena& arena, Scratch& g) {
  using Real = typename Scratch::Real;
  const TopologyView& t = launch.topology;
  prepare(launch, first_world, true, arena, g.ws);
  g.after_q = arena.take<Real>(t.nq), g.after_qd = arena.take<Real>(t.nv);
  g.bar.q = arena.take<Real>(t.nq), g.bar.qd = arena.take<Real>(t.nv);
  g.bar.control.numbers = arena.take<Real>(t.nu);
  g.bar.parameters = parameters;
  g.state_bar = arena.take<BodyStateBar<Real>>(g.ws.tables.body_count);
  g.input_bar = arena.take<JointInputs<Real>>(g.ws.tables.joint_count);
  g.parameter_bar = arena.take<Real>(parameters ? g.parameter_rows(t) : 0);
}

template <class Real>
BACKDRIVE_HD void prepare(const Launch<StorageOf<Real>>& launch, int first_world, bool parameters, Arena& arena,
                          AdjointScratch<Real>& g) {
  prepare_cotangents(launch, first_world, parameters, arena, g);
}

/// Takes cotangents of joints' coordinates, which are left zero, to at.bar, which it overwrites. `joints`: which.
template <class Real>
BACKDRIVE_CALLED void adj_coordinates(AdjointScratch<Real>& g, Workspace<Real>& at, const int* joints, int count,
                                      Real* qd_bar, const StepBar<Real>& out) {
  const TablesView& t = g.ws.tables;
  for (int i = 0; i < t.body_count; ++i) {
    at.bar[i].turn = at.bar[i].centre = zero3<Real>();
    at.bar[i].velocity = zero6<Real>();
  }
  for (int k = 0; k < count; ++k) {
    const int j = joints[k];
    adj_read_coordinates(g.ws.system, at, j, g.bar.q + t.rows[j].q, qd_bar + t.rows[j].v, out);
  }
}

/// And on to those of the bodies that are in at.body, of which those of velocities are added to by add(body,
/// cotangent).
template <class Real, class Add>
BACKDRIVE_HD void bars_of_joints_to_bodies(AdjointScratch<Real>& g, Workspace<Real>& at, const int* joints, int count,
                                           Real* qd_bar, const Add& add) {
  const TablesView& t = g.ws.tables;
  const StepBar<Real> out = g.step_bar();
  adj_coordinates(g, at, joints, count, qd_bar, out);
  for (int i = 0; i < t.body_count; ++i) {
    BodyStateBar<Real> more;
    adj_set_motion(at.body[i], at.bar[i], more, out.bodies ? out.bodies + i : nullptr);
    g.state_bar[i].turn += more.turn;
    g.state_bar[i].position += more.position;
    add(i, more.velocity);
  }
}
/// The same to g.state_bar.
template <class Real>
BACKDRIVE_HD void bars_of_joints_to_bodies(AdjointScratch<Real>& g, Workspace<Real>& at, const int* joints, int count) {
  bars_of_joints_to_bodies(g, at, joints, count, g.bar.qd,
                           [&](int i, const Spatial<Real>& x) { g.state_bar[i].velocity += x; });
}

/// The cotangents of a state and of the inputs of a step, where they are kept.
template <class Real>
BACKDRIVE_HD void store_step_cotangents(AdjointScratch<Real>& g) {
  const TablesView& t = g.ws.tables;
  for (int i = 0; i < t.body_count; ++i) store_body_bar(t, i, g.state_bar[i], g.bar.q, g.bar.qd);
  for (int j = 0; j < t.joint_count; ++j) {
    const JointRows& rows = t.rows[j];
    for (int k = 0; k < joint_size(t.joints[j].type).nv; ++k) g.bar.control.set(rows.v + k, g.input_bar[j].effort[k]);
    if (rows.target < 0) continue;
    for (int k = 0; k < joint_size(t.joints[j].type).nv; ++k) {
      g.bar.control.set(rows.target + 2 * k, g.input_bar[j].target_position[k]);
      g.bar.control.set(rows.target + 2 * k + 1, g.input_bar[j].target_velocity[k]);
    }
  }
  const System<Real>& system = g.ws.system;
  for (int c = 0; c < system.couplings.count; ++c) {
    const Coupling& coupling = system.couplings.couplings[c];
    const JointInputBar<Real>& bar = g.ws.ws.coupled[c].in_bar;
    if (coupling.effort >= 0) g.bar.control.set(coupling.effort, bar.effort);
    if (coupling.target < 0) continue;
    g.bar.control.set(coupling.target, bar.target_position);
    g.bar.control.set(coupling.target + 1, bar.target_velocity);
  }
}

/// The state after a step, as recorded.
template <class Real>
BACKDRIVE_HD void load_state_after(const RolloutAdjointArguments<StorageOf<Real>>& a, AdjointScratch<Real>& g, int step,
                                   int first_world) {
  const int nq = a.launch.topology.nq, nv = a.launch.topology.nv;
  const WorldGroup group(a.launch, first_world);
  load_rows(group, a.q, std::size_t(step + 1) * nq, nq, g.after_q);
  load_rows(group, a.qd, std::size_t(step + 1) * nv, nv, g.after_qd);
}

/// Takes the cotangents over a step, whose state before it is in g.ws.q and g.ws.qd. Found by walk_back().
template <class Real>
BACKDRIVE_HD void walk_step_back(const RolloutAdjointArguments<StorageOf<Real>>& a, AdjointScratch<Real>& g, int step,
                                 int first_world) {
  Space<Real>& s = g.ws;
  const TablesView& t = s.tables;
  load_state_after(a, g, step, first_world);
  for (int i = 0; i < t.body_count; ++i) {
    load_body(t, i, g.after_q, g.after_qd, s.state[i]);
    g.state_bar[i] = load_body_bar(t, i, g.bar.q, g.bar.qd);
  }
  set_motions(s);
  bars_of_joints_to_bodies(g, s.ws, t.elimination.order, t.joint_count);  // all of them, in whatever order
  take_inputs(s);
  set_time(a.launch, a.launch.first_step + step, s);
  step_adjoint(s.system, s.state, {s.inputs, nullptr}, s.ws, g.step_bar());
  store_step_cotangents(g);
}

template <class T, class Real>
BACKDRIVE_HD void lay_out(const RolloutAdjointArguments<T>& a, int first_world, Arena& arena, AdjointScratch<Real>& g) {
  prepare(a.launch, first_world, a.constants_bar != nullptr, arena, g);
}

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
