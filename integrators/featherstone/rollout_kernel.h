#pragma once
// What a rollout (rollout/shell.h) asks of this integrator: a step that moves the state on, and one back.
#include "integrators/featherstone/straight_flight.h"
#include "integrators/featherstone/workspace.h"
#include "integrators/rollout/shell.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// Which joint made a lane non-finite. One non-finite acceleration spoils all others, so causes are looked for in turn:
/// a position, velocity or effort that is not finite (nearest the root); a singular D (nearest the leaves); else the
/// joint that was about to move furthest in this step.
template <class Layout>
BACKDRIVE_HD int joint_at_fault(const Workspace<Layout>& ws, int lane_index) {
  using Real = typename Layout::Real;
  const double dt = number_in(ws.dt, lane_index);
  double furthest = -1;
  int singular = -1, mover = -1;
  for (int i = 0; i < ws.link_count; ++i) {
    const Link& link = ws.links[i];
    const JointSize size = joint_size(link.type);
    for (int k = 0; k < size.nq; ++k) {
      if (!is_finite(number_in(ws.q[link.q + k], lane_index))) return link.joint;
    }
    for (int k = 0; k < size.nv; ++k) {
      const Real effort_now = link.type == JointType::ball ? LinkForces<Ball::dofs, Layout>(ws, i)(k).effort
                                                           : LinkForces<1, Layout>(ws, i)(k).effort;
      const double qd = number_in(ws.qd[link.v + k], lane_index), effort = number_in(effort_now, lane_index);
      const double inverse = number_in(ws.dof[link.v + k].inverse, lane_index);
      if (!is_finite(qd) || !is_finite(effort)) return link.joint;
      if (!is_finite(inverse)) singular = link.joint;
      const double distance = std::abs(qd) * dt + std::abs(effort * inverse) * dt * dt;
      if (distance > furthest) {
        furthest = distance;
        mover = link.joint;
      }
    }
  }
  return singular >= 0 ? singular : mover;
}

/// What a step makes of the velocities: q̇⁺, and what it moves q with. The same without contact; Kicked: with some.
template <bool Kicked, class Layout>
struct StepVelocities {
  using Real = typename Layout::Real;
  const Workspace<Layout>& ws;

  BACKDRIVE_INLINE Real next(int v) const {
    if constexpr (Kicked) return smooth(v) + ws.with_blocks[v].x;
    return smooth(v);
  }
  BACKDRIVE_INLINE Real reported(int v) const {
    if constexpr (Kicked) return smooth(v) + constant<Real>(0.5) * ws.with_blocks[v].x;  // (C7)
    return smooth(v);
  }

 private:
  BACKDRIVE_INLINE Real smooth(int v) const { return ws.qd[v] + ws.dt * ws.dof[v].x; }
};

/// Equation (5), from q̈ in dof[].x, or what contact leaves there. A lane whose new state is not finite keeps the old
/// one, then and ever after: `halted` is zero for the lanes that go on, NaN for the others.
template <bool Kicked, class Layout>
BACKDRIVE_PART void integrate(Workspace<Layout>& ws, int step, int first_world, int worlds,
                              typename Layout::Real& halted, WorldStatus* status) {
  using Real = typename Layout::Real;
  const StepVelocities<Kicked, Layout> velocity{ws};
  const auto each = [&](const auto& scalar, const auto& rotation) __attribute__((always_inline)) {
    each_coordinate(ws.links, ws.link_count, ws.nq, ws.nv, scalar, rotation);
  };
  const auto turned_on = [&](auto side, int q, int v) __attribute__((always_inline)) {
    const Vec3<Real> omega{velocity.reported(v), velocity.reported(v + 1), velocity.reported(v + 2)};
    return turned<side()>(load_quaternion(ws.q + q), omega * ws.dt);
  };
  Real check = halted;
  const auto must_be_finite = [&](const Real& x) __attribute__((always_inline)) {
    check += x - x;  // zero where finite and NaN else; the sum cannot overflow
  };
  each(
      [&](int q, int v) __attribute__((always_inline)) { must_be_finite(ws.q[q] + ws.dt * velocity.reported(v)); },
      [&](auto side, int q, int v) __attribute__((always_inline)) {
        // Of an angle beyond all bounds nothing is left but a quaternion that is none.
        const Quaternion<Real> next = turned_on(side, q, v);
        const Real excess = dot(next.v, next.v) + next.w * next.w - constant<Real>(1);
        must_be_finite(excess);
        must_be_finite(select(value_of(excess * excess) < value_of(constant<Real>(0.01)), excess,
                              constant<Real>(__builtin_huge_val())));
      });
  if constexpr (Layout::contact) {
    if (ws.middle.whips) find_flight_shifts(ws, velocity);
    each_flight_shift(ws, [&](int, const Real& shift, const auto&) { must_be_finite(shift); });
  }
  const auto fine = is_finite(check);
  const auto put = [&](Real & at, const Real& next) __attribute__((always_inline)) {
    at = select(fine, next, at);
  };
  // Where no lane was kicked and none keeps an old one, the reported is q̇⁺.
  bool was_apart = false, apart = Kicked;
  if constexpr (Layout::contact) {
    was_apart = ws.contact.reported_apart;
    apart = Kicked || (was_apart && any(!fine));
    ws.contact.reported_apart = apart;
  }
  if (apart) {
    for (int v = 0; v < ws.nv; ++v) {
      ws.reported[v] = select(fine, velocity.reported(v), was_apart ? ws.reported[v] : ws.qd[v]);
    }
  }
  each(
      [&](int q, int v) __attribute__((always_inline)) {
        put(ws.q[q], ws.q[q] + ws.dt * velocity.reported(v));
        put(ws.qd[v], velocity.next(v));
      },
      [&](auto side, int q, int v) __attribute__((always_inline)) {
        const Quaternion<Real> next = turned_on(side, q, v);
        put(ws.q[q], next.v.x), put(ws.q[q + 1], next.v.y), put(ws.q[q + 2], next.v.z), put(ws.q[q + 3], next.w);
        for (int k = v; k < v + 3; ++k) put(ws.qd[k], velocity.next(k));
      });
  if constexpr (Layout::contact) {
    each_flight_shift(
        ws, [&](int q, const Real& shift, const auto& on) { put(ws.q[q], select(on, ws.q[q] + shift, ws.q[q])); });
    for (int i = 0; i < ws.link_count; ++i) {
      if (ws.links[i].way >= 0) put(ws.ways[ws.links[i].way], ws.middle.share[i]);
    }
  }
  if (!any(!fine)) return;
  blame(ws, !fine, step, first_world, worlds, status);
  halted = check;
}

template <class Layout>
BACKDRIVE_INLINE void integrate_kicked(Workspace<Layout>& ws, int step, int first_world, int worlds,
                                       typename Layout::Real& halted, WorldStatus* status) {
  if constexpr (Layout::contact) {
    if (in_touch(ws)) return integrate<true>(ws, step, first_world, worlds, halted, status);
  }
  integrate<false>(ws, step, first_world, worlds, halted, status);
}

template <class T, class Layout>
BACKDRIVE_HD void step_group(const RolloutArguments<T>& a, Workspace<Layout>& ws, [[maybe_unused]] int step, int number,
                             int first_world, typename Layout::Real& halted) {
  if constexpr (Layout::contact) {
    ws.contact.begins = a.launch.begins(number);
    forward_dynamics_with_contact(ws);
    contact::report_contacts(a, ws, step, first_world);
    contact::note_unsolved(ws, number, first_world, a.launch.worlds, a.status);
  } else {
    forward_dynamics(ws);
  }
  integrate_kicked(ws, number, first_world, a.launch.worlds, halted, a.status);
}

template <class T, class Layout>
void lay_out(const RolloutArguments<T>& a, int first_world, Arena& arena, Workspace<Layout>& ws) {
  take_arrays(a.launch.topology, arena, ws);
  prepare(a.launch, first_world, arena, ws);
}

/// Recomputes a step from g.ws and takes the cotangents over it.
template <class Layout>
BACKDRIVE_HD void walk_step_back(const RolloutAdjointArguments<StorageOf<typename Layout::Real>>& a,
                                 AdjointScratch<Layout>& g, int step, int first_world) {
  if constexpr (Layout::contact) {
    using Real = typename Layout::Real;
    const WorldGroup group(a.launch, first_world);
    auto& contact = g.ws.contact;
    contact.begins = a.launch.begins(a.launch.first_step + step);
    contact.sought = may_have_touched<Real>(group, a.touched, step);
    contact.reported_apart = may_have_touched<Real>(group, a.touched, step - 1);
    if (contact.reported_apart) {
      load_reported(group, a.reported, std::size_t(step) * g.ws.nv, g.ws.nv, g.ws.qd, g.ws.reported);
    }
    const int ways = a.launch.topology.way_count;
    load_ways(group, a.ways, std::size_t(step) * ways, ways, g.ws.ways);
    seed_forces(a, g, step, first_world);
    recompute_with_contact(g.ws);
    step_adjoint_with_contact(g.ws, g.bar);
  } else {
    accelerations_and_forces(g.ws);
    step_adjoint(g.ws, g.bar);
  }
}

template <class T, class Layout>
void lay_out(const RolloutAdjointArguments<T>& a, int first_world, Arena& arena, AdjointScratch<Layout>& g) {
  lay_out(a.launch, a.constants_bar != nullptr, first_world, arena, g);
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
