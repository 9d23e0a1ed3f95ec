#pragma once
// Rollouts in which something can touch something: rollout_kernel.h with the steps of contact_step.h, the velocities
// that moved each state (v_d, which are what is reported), and the pairs' forces.
#include "integrators/semi_implicit/contact_step_adjoint.h"
#include "integrators/semi_implicit/rollout_kernel.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

/// Of a working set whose system is known.
template <class R, bool Adjoint>
BACKDRIVE_HD void prepare(const Launch<StorageOf<R>>& launch, int first_world, Arena& arena, Touching<R, Adjoint>& s) {
  take_arrays(launch.topology, arena, s);
  contact::prepare_shapes(launch, shape_row<R>(s.system.body_count, s.system.joint_count), first_world, arena, s);
}

// ---- forwards -------------------------------------------------------------------------------------------------------

/// Not to be copied: its parts point at each other.
template <class R>
struct ContactSet : Space<R> {
  static constexpr bool has_contact = true, has_ways = false;

  Touching<R, false> touching{this->system, this->ws};
  R* reported = nullptr;  ///< [nv]: velocities that moved the state here, as qd

  ContactSet() = default;
  ContactSet(const ContactSet&) = delete;
};

template <class Real>
BACKDRIVE_HD void prepare(const Launch<StorageOf<Real>>& launch, int first_world, Arena& arena, ContactSet<Real>& s) {
  prepare(launch, first_world, false, arena, static_cast<Space<Real>&>(s));
  s.reported = arena.take<Real>(launch.topology.nv);
  prepare(launch, first_world, arena, s.touching);
}

template <class Real>
BACKDRIVE_INLINE const Real* reported_of(const ContactSet<Real>& s) {
  return s.reported;
}
template <class Real>
BACKDRIVE_INLINE bool in_touch(const ContactSet<Real>& s) {
  return s.touching.contact.contact_count > 0;
}

/// [ω; velocity of the com] from that of the origin.
template <class Real>
BACKDRIVE_HD Spatial<Real> twist_of(const BodyScratch<Real>& body, const Spatial<Real>& velocity) {
  return {velocity.ang, plus_cross(velocity.lin, velocity.ang, body.lever)};
}

/// Rows of what is reported, in lanes that go on; the bodies are where the step has left them.
template <class Real>
BACKDRIVE_HD void report_velocities(ContactSet<Real>& s, const Real& halted) {
  const TablesView& t = s.tables;
  const auto fine = is_finite(halted);
  const auto put = [&](int row, const Real& x) { s.reported[row] = select(fine, x, s.reported[row]); };
  for (int i = 0; i < t.body_count; ++i) {
    const Spatial<Real>& v = s.touching.reported[i];
    const Real* const numbers = &v.ang.x;
    for (int k = 0; k < kBodyVelocities; ++k) put(t.joint_nv + i * kBodyVelocities + k, numbers[k]);
    s.ws.body[i].velocity = twist_of(s.ws.body[i], v);
  }
  for (int j = 0; j < t.joint_count; ++j) {
    Real rate[kRows];
    moving_joint(s.system, s.ws, j, rate);
    for (int row = 0; row < kRows; ++row) {
      const int dof = dof_of_row(t.joints[j].type, row);
      if (dof >= 0) put(t.rows[j].v + dof, rate[row]);
    }
  }
}

/// As without contact.
template <class Real>
BACKDRIVE_HD void step_group(const RolloutArguments<StorageOf<Real>>& a, ContactSet<Real>& s, int step, int number,
                             int first_world, Real& halted) {
  take_inputs(s);
  set_time(a.launch, number, s);
  s.touching.contact.begins = a.launch.begins(number);
  step_with_contact(s.touching, s.state, {s.inputs, nullptr}, s.state, halted);
  contact::report_contacts(a, s.touching, step, first_world);
  contact::note_unsolved(s.touching, number, first_world, a.launch.worlds, a.status);
  blame(s, !is_finite(halted), number, first_world, a.launch.worlds, a.status);
  follow_bodies(s, halted);
  report_velocities(s, halted);
}

template <class T, class Real>
BACKDRIVE_HD void lay_out(const RolloutArguments<T>& a, int first_world, Arena& arena, ContactSet<Real>& s) {
  prepare(a.launch, first_world, arena, s);
}

// ---- and back -------------------------------------------------------------------------------------------------------

/// Not to be copied, likewise.
template <class R>
struct ContactAdjointScratch : AdjointScratch<R> {
  static constexpr bool has_contact = true, has_ways = false;

  Touching<R, true> touching{this->ws.system, this->ws.ws};
  Vec3<R>* pair_forces = nullptr;      ///< [pair]
  Spatial<R>* reported_bar = nullptr;  ///< [body_count]

  ContactAdjointScratch() = default;
  ContactAdjointScratch(const ContactAdjointScratch&) = delete;

  BACKDRIVE_HD int parameter_rows(const TopologyView& t) const {
    return gradient_rows<R>(this->ws.tables.body_count, this->ws.tables.joint_count, t.contact_shape_count,
                            t.coupling_count, t.coupling_term_count);
  }
  BACKDRIVE_HD StepBar<R> step_bar() const {
    StepBar<R> to = AdjointScratch<R>::step_bar();
    to.pair_forces = this->bar.pair_forces;
    to.reported = reported_bar;
    if (!this->bar.wants_parameters()) return to;
    const TablesView& t = this->ws.tables;
    to.shapes = structs_of<ShapeGradient<R>>(this->parameter_bar + shape_gradient_row<R>(t.body_count, t.joint_count));
    this->name_couplings(touching.contact.shape_count, to);
    return to;
  }
};

template <class Real>
BACKDRIVE_HD void prepare(const Launch<StorageOf<Real>>& launch, int first_world, bool parameters, Arena& arena,
                          ContactAdjointScratch<Real>& g) {
  prepare_cotangents(launch, first_world, parameters, arena, g);
  g.bar.reported = arena.take<Real>(launch.topology.nv);
  g.pair_forces = arena.take<Vec3<Real>>(launch.topology.contact_pair_count);
  g.reported_bar = arena.take<Spatial<Real>>(g.ws.tables.body_count);
  prepare(launch, first_world, arena, g.touching);
}

/// As without contact. The step is computed again first: what it reports is not recorded where nobody asked.
template <class Real>
BACKDRIVE_HD void walk_step_back(const RolloutAdjointArguments<StorageOf<Real>>& a, ContactAdjointScratch<Real>& g,
                                 int step, int first_world) {
  Space<Real>& s = g.ws;
  const TablesView& t = s.tables;
  Workspace<Real>& end = g.touching.end;
  load_state_after(a, g, step, first_world);
  g.touching.contact.begins = a.launch.begins(a.launch.first_step + step);
  g.touching.contact.sought = may_have_touched<Real>(WorldGroup(a.launch, first_world), a.touched, step);
  seed_forces(a, g, step, first_world);
  take_inputs(s);
  set_time(a.launch, a.launch.first_step + step, s);
  const StepInputs<Real> in{s.inputs, nullptr};
  const bool touching = recompute_with_contact(g.touching, s.state, in);
  for (int i = 0; i < t.body_count; ++i) {
    BodyState<Real> after;
    load_body(t, i, g.after_q, g.after_qd, after);
    set_motion(s.system.bodies[i], after, end.body[i]);
    g.state_bar[i] = load_body_bar(t, i, g.bar.q, g.bar.qd);
    const Real* const reported = g.bar.reported + t.joint_nv + i * kBodyVelocities;
    g.reported_bar[i] = {{reported[0], reported[1], reported[2]}, {reported[3], reported[4], reported[5]}};
  }
  bars_of_joints_to_bodies(g, end, t.elimination.order, t.joint_count);
  for (int i = 0; i < t.body_count; ++i) end.body[i].velocity = twist_of(end.body[i], g.touching.reported[i]);
  // The coordinates have been passed on; the rates that are reported are others.
  bars_of_joints_to_bodies(g, end, t.elimination.order, t.joint_count, g.bar.reported,
                           [&](int i, const Spatial<Real>& x) { g.reported_bar[i] += x; });
  for (int k = 0; k < a.launch.topology.nv; ++k) g.bar.reported[k] = constant<Real>(0);  // steps do not read it
  step_adjoint_with_contact(g.touching, s.state, in, g.step_bar(), touching);
  store_step_cotangents(g);
}

template <class T, class Real>
BACKDRIVE_HD void lay_out(const RolloutAdjointArguments<T>& a, int first_world, Arena& arena,
                          ContactAdjointScratch<Real>& g) {
  prepare(a.launch, first_world, a.constants_bar != nullptr, arena, g);
}

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
