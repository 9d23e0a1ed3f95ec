#pragma once
// A whole rollout of one lane group, and its adjoint: the states of every step are kept, everything else is computed
// again on the way back.
#include "integrators/featherstone/workspace.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// The number that one lane carries.
template <class Real>
BACKDRIVE_HD double number_in(const Real& x, [[maybe_unused]] int lane_index) {
  if constexpr (RealTraits<Real>::lanes == 1) {
    return value_of(x);
  } else {
    return x[lane_index];
  }
}

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
      Real effort_now, increment;
      joint_force(link, ws.constants[i], joint_input(ws, link, k), ws.dt, effort_now, increment);
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

/// Notes step and joint for every lane of `bad` that has no entry yet.
template <class Layout, class Mask>
BACKDRIVE_HD void blame(const Workspace<Layout>& ws, const Mask& bad, int step, int first_world, int worlds,
                        WorldStatus* status) {
  using Real = typename Layout::Real;
  for (int lane_index = 0; lane_index < RealTraits<Real>::lanes; ++lane_index) {
    const int world = first_world + lane_index;
    if (!lane(bad, lane_index) || world >= worlds || status[world].stopped()) continue;
    status[world] = {step, joint_at_fault(ws, lane_index)};
  }
}

/// What a step makes of the velocities: q̇⁺, and what it moves q with. The same without contact; Kicked: with some.
template <bool Kicked, class Layout>
struct StepVelocities {
  using Real = typename Layout::Real;
  const Workspace<Layout>& ws;

  BACKDRIVE_INLINE Real next(int v) const {
    const Real smooth = without_contact(v);
    if constexpr (!Kicked) return smooth;
    return smooth + ws.dof[v].x;
  }
  BACKDRIVE_INLINE Real drift(int v) const {
    const Real smooth = without_contact(v);
    if constexpr (!Kicked) return smooth;
    return smooth + constant<Real>(0.5) * ws.dof[v].x;  // (C7)
  }

 private:
  BACKDRIVE_INLINE Real without_contact(int v) const {
    const auto& dof = ws.dof[v];
    if constexpr (Layout::contact) {
      return ws.qd[v] + ws.dt * dof.qdd;
    } else {
      return ws.qd[v] + ws.dt * dof.x;
    }
  }
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
    const Vec3<Real> omega{velocity.drift(v), velocity.drift(v + 1), velocity.drift(v + 2)};
    return turned<side()>(load_quaternion(ws.q + q), omega * ws.dt);
  };
  Real check = halted;
  const auto must_be_finite = [&](const Real& x) __attribute__((always_inline)) {
    check += x - x;  // zero where finite and NaN else; the sum cannot overflow
  };
  each(
      [&](int q, int v) __attribute__((always_inline)) { must_be_finite(ws.q[q] + ws.dt * velocity.drift(v)); },
      [&](auto side, int q, int v) __attribute__((always_inline)) {
        // Of an angle beyond all bounds nothing is left but a quaternion that is none.
        const Quaternion<Real> next = turned_on(side, q, v);
        const Real excess = dot(next.v, next.v) + next.w * next.w - constant<Real>(1);
        must_be_finite(excess);
        must_be_finite(select(value_of(excess * excess) < value_of(constant<Real>(0.01)), excess,
                              constant<Real>(__builtin_huge_val())));
      });
  const auto fine = is_finite(check);
  const auto put = [&](Real & at, const Real& next) __attribute__((always_inline)) {
    at = select(fine, next, at);
  };
  // Where no lane was kicked and none keeps an old one, the drift is q̇⁺.
  bool was_apart = false, apart = Kicked;
  if constexpr (Layout::contact) {
    was_apart = ws.contact.drift_apart;
    apart = Kicked || (was_apart && any(!fine));
    ws.contact.drift_apart = apart;
  }
  const auto put_velocity = [&](int v) __attribute__((always_inline)) {
    if (apart) ws.drift[v] = select(fine, velocity.drift(v), was_apart ? ws.drift[v] : ws.qd[v]);
    put(ws.qd[v], velocity.next(v));
  };
  each(
      [&](int q, int v) __attribute__((always_inline)) {
        put(ws.q[q], ws.q[q] + ws.dt * velocity.drift(v));
        put_velocity(v);
      },
      [&](auto side, int q, int v) __attribute__((always_inline)) {
        const Quaternion<Real> next = turned_on(side, q, v);
        put(ws.q[q], next.v.x), put(ws.q[q + 1], next.v.y), put(ws.q[q + 2], next.v.z), put(ws.q[q + 3], next.w);
        for (int k = 0; k < 3; ++k) put_velocity(v + k);
      });
  if (!any(!fine)) return;
  blame(ws, !fine, step, first_world, worlds, status);
  halted = check;
}

template <class Layout>
BACKDRIVE_INLINE void integrate_kicked(Workspace<Layout>& ws, int step, int first_world, int worlds,
                                       typename Layout::Real& halted, WorldStatus* status) {
  if constexpr (Layout::contact) {
    if (ws.contact.contact_count > 0) return integrate<true>(ws, step, first_world, worlds, halted, status);
  }
  integrate<false>(ws, step, first_world, worlds, halted, status);
}

/// Velocity with which the last step moved q. Before the first, in which nothing was moved, q̇.
template <class Layout>
BACKDRIVE_INLINE const typename Layout::Real* drift_of(const Workspace<Layout>& ws) {
  return ws.contact.drift_apart ? ws.drift : ws.qd;
}

/// `halted` as earlier steps left it.
template <class Real>
BACKDRIVE_HD Real halted_before(const WorldStatus* status, int first_world, int worlds) {
  alignas(64) StorageOf<Real> halted[RealTraits<Real>::lanes];
  for (int l = 0; l < RealTraits<Real>::lanes; ++l) {
    const int world = first_world + l;
    const bool stopped = world < worlds && status[world].stopped();
    halted[l] = StorageOf<Real>(stopped ? __builtin_nanf("") : 0.0f);
  }
  return load<Real>(halted);
}

template <class Layout>
BACKDRIVE_HD void step_dynamics(Workspace<Layout>& ws) {
  if constexpr (Layout::contact) {
    forward_dynamics_with_contact(ws);
  } else {
    forward_dynamics(ws);
  }
}

/// The rollout of one lane group, in a workspace that a pack kernel or a GPU thread has laid out.
template <class Layout>
BACKDRIVE_HD void rollout_worlds(const RolloutArguments<StorageOf<typename Layout::Real>>& a, Workspace<Layout>& ws,
                                 int first_world) {
  using Real = typename Layout::Real;
  const TopologyView& t = a.launch.topology;
  const int stride = a.launch.stride;
  load_rows(a.q0, 0, t.nq, stride, first_world, ws.q);
  load_rows(a.qd0, 0, t.nv, stride, first_world, ws.qd);
  Real halted = halted_before<Real>(a.status, first_world, a.launch.worlds);
  const int first_step = a.launch.first_step + (a.launch.steps_before ? *a.launch.steps_before : 0);
  const auto store_state = [&](int step, int next) {
    store_rows(a.q, std::size_t(step) * t.nq, t.nq, stride, first_world, ws.q, next);
    store_rows(a.qd, std::size_t(step) * t.nv, t.nv, stride, first_world, ws.qd, next);
    if constexpr (Layout::contact) {
      if (a.drift) store_rows(a.drift, std::size_t(step) * t.nv, t.nv, stride, first_world, drift_of(ws), next);
    }
  };
  for (int step = 0; step < a.launch.steps; ++step) {
    if (a.q) store_state(step, 1);
    ws.control.take(a.control, std::size_t(step) * t.nu, t.nu, stride, first_world, step + 1 < a.launch.steps);
    step_dynamics(ws);
    if constexpr (Layout::contact) {
      const std::size_t row = std::size_t(step) * t.contact_pair_count * kContactRows;
      if (a.contact) store_contacts(ws, a.contact + row * stride, stride, first_world);
    }
    integrate_kicked(ws, first_step + step, first_world, a.launch.worlds, halted, a.status);
  }
  if (a.q) store_state(a.launch.steps, 0);
  store_rows(a.q_end, 0, t.nq, stride, first_world, ws.q);
  store_rows(a.qd_end, 0, t.nv, stride, first_world, ws.qd);
  if constexpr (Layout::contact) {
    if (a.drift_end) store_rows(a.drift_end, 0, t.nv, stride, first_world, drift_of(ws));
  }
}

template <class Layout>
void prepare_group(const RolloutArguments<StorageOf<typename Layout::Real>>& a, int first_world, Carver& carver,
                   Workspace<Layout>& ws) {
  carve(a.launch.topology, carver, ws);
  prepare(a.launch, first_world, carver, ws);
}

template <class Real, bool Contact>
void rollout_group(const RolloutArguments<StorageOf<Real>>& a, int first_world, std::byte* scratch) {
  Workspace<PackRollout<Real, Contact>> ws;
  Carver carver(scratch);
  prepare_group(a, first_world, carver, ws);
  rollout_worlds(a, ws, first_world);
}

/// Adds the seeds of recorded state `step` to the running cotangents.
template <class Real>
BACKDRIVE_INLINE void add_seeds(const StorageOf<Real>* seeds, std::size_t first_row, int rows, int stride,
                                int first_world, Real* bar) {
  if (!seeds) return;
  const StorageOf<Real>* at = seeds + first_row * stride + first_world;
  for (int r = 0; r < rows; ++r, at += stride) bar[r] += load<Real>(at);
}

/// NaN for the worlds of this group that stopped: their gradient does not exist, and is not zero.
template <class Real>
BACKDRIVE_HD void mark_stopped(const WorldStatus* status, int worlds, int first_world, StorageOf<Real>* rows,
                               std::size_t count, int stride) {
  for (int l = 0; l < RealTraits<Real>::lanes; ++l) {
    const int world = first_world + l;
    if (!rows || world >= worlds || !status[world].stopped()) continue;
    for (std::size_t r = 0; r < count; ++r) {
      rows[r * stride + world] = StorageOf<Real>(__builtin_nanf(""));
    }
  }
}

/// Scales what the window of steps [begin, end) contributes to a norm of at most a.window.clip: the cotangents of its
/// controls and of the state that it begins with, and, by the same factor, of the parameters, whose sum over the
/// windows so far stands in a.constants_bar.
template <class Scratch>
BACKDRIVE_HD void clip_window(const RolloutAdjointArguments<StorageOf<typename Scratch::Real>>& a, Scratch& g,
                              int begin, int end, int first_world) {
  using Real = typename Scratch::Real;
  const TopologyView& t = a.launch.topology;
  const int stride = a.launch.stride;
  Real sum = constant<Real>(0);
  for (int k = 0; k < t.nq; ++k) sum += g.bar.q[k] * g.bar.q[k];
  for (int k = 0; k < t.nv; ++k) sum += g.bar.qd[k] * g.bar.qd[k];
  StorageOf<Real>* const controls =
      a.control_bar ? a.control_bar + std::size_t(begin) * t.nu * stride + first_world : nullptr;
  const std::size_t control_rows = controls ? std::size_t(end - begin) * t.nu : 0;
  for (std::size_t r = 0; r < control_rows; ++r) {
    const Real x = load<Real>(controls + r * stride);
    sum += x * x;
  }
  const Real norm = square_root(sum), most = Real(a.window.clip), one = constant<Real>(1);
  const auto over = value_of(norm) > value_of(most);
  const Real factor = select(over, most / norm, one);
  if (g.bar.wants_parameters()) {
    for (int k = 0; k < g.parameter_rows(t); ++k) {
      StorageOf<Real>* const at = a.constants_bar + std::size_t(k) * stride + first_world;
      store<Real>(at, load<Real>(at) + g.parameter_bar[k] * factor);
    }
  }
  if (!any(over)) return;
  for (int l = 0; l < RealTraits<Real>::lanes && first_world + l < a.launch.worlds; ++l) {
    if (a.window.clipped && lane(over, l)) ++a.window.clipped[first_world + l];
  }
  for (int k = 0; k < t.nq; ++k) g.bar.q[k] = g.bar.q[k] * factor;
  for (int k = 0; k < t.nv; ++k) g.bar.qd[k] = g.bar.qd[k] * factor;
  for (std::size_t r = 0; r < control_rows; ++r) {
    StorageOf<Real>* const at = controls + r * stride;
    store<Real>(at, load<Real>(at) * factor);
  }
}

/// The first step, counted from this launch's, of the window that ends before step `end`; at least 0.
template <class T>
BACKDRIVE_HD int window_begin(const RolloutAdjointArguments<T>& a, int end) {
  if (a.window.steps <= 0) return 0;
  const int first = a.launch.first_step;
  const int begin = (first + end - 1) / a.window.steps * a.window.steps - first;
  return begin > 0 ? begin : 0;
}

template <class Scratch>
BACKDRIVE_INLINE void clear_parameters(Scratch& g, const TopologyView& t) {
  using Real = typename Scratch::Real;
  if (!g.bar.wants_parameters()) return;
  for (int k = 0; k < g.parameter_rows(t); ++k) g.parameter_bar[k] = constant<Real>(0);
}

/// The cotangents that a launch begins with: none, or what the one before has left.
template <class Scratch>
BACKDRIVE_HD void load_cotangents(const RolloutAdjointArguments<StorageOf<typename Scratch::Real>>& a, Scratch& g,
                                  int first_world) {
  using Real = typename Scratch::Real;
  const TopologyView& t = a.launch.topology;
  const int stride = a.launch.stride, rows = g.parameter_rows(t);
  clear_parameters(g, t);
  const bool clips = value_of(a.window.clip) > 0;
  if (a.resume) {
    load_rows(a.q0_bar, 0, t.nq, stride, first_world, g.bar.q);
    load_rows(a.qd0_bar, 0, t.nv, stride, first_world, g.bar.qd);
    if (g.bar.wants_parameters() && !clips) {
      load_rows(a.constants_bar, 0, rows, stride, first_world, g.parameter_bar);
    }
    return;
  }
  if (g.bar.wants_parameters() && clips) store_rows(a.constants_bar, 0, rows, stride, first_world, g.parameter_bar);
  for (int k = 0; k < t.nq; ++k) g.bar.q[k] = constant<Real>(0);
  for (int k = 0; k < t.nv; ++k) g.bar.qd[k] = constant<Real>(0);
  add_seeds(a.q_end_bar, 0, t.nq, stride, first_world, g.bar.q);
  add_seeds(a.qd_end_bar, 0, t.nv, stride, first_world, g.bar.qd);
}

/// Cotangents of the velocity that led to state `step`, counted from this launch's first: what the seeds say.
template <class Scratch>
BACKDRIVE_INLINE void seed_drift(const RolloutAdjointArguments<StorageOf<typename Scratch::Real>>& a, Scratch& g,
                                 int step, int first_world) {
  using Real = typename Scratch::Real;
  const int nv = a.launch.topology.nv, stride = a.launch.stride;
  for (int k = 0; k < nv; ++k) g.bar.drift[k] = constant<Real>(0);
  add_seeds(a.drift_bar, std::size_t(step) * nv, nv, stride, first_world, g.bar.drift);
  if (step == a.launch.steps && !a.resume) add_seeds(a.drift_end_bar, 0, nv, stride, first_world, g.bar.drift);
}

/// Cotangents of the forces of a step.
template <class Scratch>
BACKDRIVE_INLINE void seed_forces(const RolloutAdjointArguments<StorageOf<typename Scratch::Real>>& a, Scratch& g,
                                  int step, int first_world) {
  g.bar.pair_forces = a.contact_bar ? g.pair_forces : nullptr;
  if (!a.contact_bar) return;
  const int pairs = a.launch.topology.contact_pair_count;
  for (int k = 0; k < pairs; ++k) {
    load_rows(a.contact_bar, (std::size_t(step) * pairs + k) * kContactRows, 3, a.launch.stride, first_world,
              &g.pair_forces[k].x);
  }
}

/// Recomputes a step from g.ws and takes the cotangents over it.
template <class Layout>
BACKDRIVE_HD void walk_step_back(const RolloutAdjointArguments<StorageOf<typename Layout::Real>>& a,
                                 AdjointScratch<Layout>& g, int step, int first_world) {
  if constexpr (Layout::contact) {
    seed_drift(a, g, step + 1, first_world);
    seed_forces(a, g, step, first_world);
    step_adjoint_with_contact(g.ws, g.bar, recompute_with_contact(g.ws));
  } else {
    accelerations_and_forces(g.ws);
    step_adjoint(g.ws, g.bar);
  }
}

/// Walks steps [begin, end) back.
template <class Scratch>
BACKDRIVE_HD void walk_back(const RolloutAdjointArguments<StorageOf<typename Scratch::Real>>& a, Scratch& g, int begin,
                            int end, int first_world) {
  const TopologyView& t = a.launch.topology;
  const int stride = a.launch.stride;
  for (int step = end; step-- > begin;) {
    const std::size_t q_row = std::size_t(step) * t.nq, v_row = std::size_t(step) * t.nv;
    const std::size_t u_row = std::size_t(step) * t.nu;
    add_seeds(a.q_bar, q_row + t.nq, t.nq, stride, first_world, g.bar.q);
    add_seeds(a.qd_bar, v_row + t.nv, t.nv, stride, first_world, g.bar.qd);
    const int next = step > 0 ? -1 : 0;
    load_rows(a.q, q_row, t.nq, stride, first_world, g.ws.q, next);
    load_rows(a.qd, v_row, t.nv, stride, first_world, g.ws.qd, next);
    g.ws.control.take(a.control, u_row, t.nu, stride, first_world, next);
    g.bar.control.begin(a.control_bar, u_row, stride, first_world);
    walk_step_back(a, g, step, first_world);
    g.bar.control.end(a.control_bar, u_row, t.nu, stride, first_world, next);
  }
}

/// What a launch leaves.
template <class Scratch>
BACKDRIVE_HD void store_cotangents(const RolloutAdjointArguments<StorageOf<typename Scratch::Real>>& a, Scratch& g,
                                   int first_world) {
  using Real = typename Scratch::Real;
  const TopologyView& t = a.launch.topology;
  const int stride = a.launch.stride, rows = g.parameter_rows(t);
  const bool whole =
      a.launch.first_step == 0;  // else the seeds of the first state belong to the launch that ends there
  if (whole) {
    add_seeds(a.q_bar, 0, t.nq, stride, first_world, g.bar.q);
    add_seeds(a.qd_bar, 0, t.nv, stride, first_world, g.bar.qd);
    if constexpr (Scratch::contact) add_seeds(a.drift_bar, 0, t.nv, stride, first_world, g.bar.qd);
  }
  store_rows(a.q0_bar, 0, t.nq, stride, first_world, g.bar.q);
  store_rows(a.qd0_bar, 0, t.nv, stride, first_world, g.bar.qd);
  if (g.bar.wants_parameters() && !(value_of(a.window.clip) > 0)) {
    store_rows(a.constants_bar, 0, rows, stride, first_world, g.parameter_bar);
  }
  const auto mark = [&](StorageOf<Real>* marked, std::size_t count) {
    mark_stopped<Real>(a.status, a.launch.worlds, first_world, marked, count, stride);
  };
  mark(a.control_bar, std::size_t(a.launch.steps) * t.nu);
  if (!whole) return;
  mark(a.q0_bar, t.nq);
  mark(a.qd0_bar, t.nv);
  mark(a.constants_bar, rows);
}

template <class Scratch>
BACKDRIVE_HD void rollout_adjoint_worlds(const RolloutAdjointArguments<StorageOf<typename Scratch::Real>>& a,
                                         Scratch& g, int first_world) {
  using Real = typename Scratch::Real;
  const TopologyView& t = a.launch.topology;
  const bool clips = value_of(a.window.clip) > 0;
  load_cotangents(a, g, first_world);
  for (int end = a.launch.steps; end > 0;) {
    const int begin = window_begin(a, end);
    walk_back(a, g, begin, end, first_world);
    if (clips) {
      clip_window(a, g, begin, end, first_world);
      clear_parameters(g, t);
    }
    const int number = a.launch.first_step + begin;
    if (a.window.cut && number > 0 && number % a.window.steps == 0) {
      for (int k = 0; k < t.nq; ++k) g.bar.q[k] = constant<Real>(0);
      for (int k = 0; k < t.nv; ++k) g.bar.qd[k] = constant<Real>(0);
    }
    end = begin;
  }
  store_cotangents(a, g, first_world);
}

template <class Layout>
void prepare_group(const RolloutAdjointArguments<StorageOf<typename Layout::Real>>& a, int first_world, Carver& carver,
                   AdjointScratch<Layout>& g) {
  using Real = typename Layout::Real;
  carve(a.launch.topology, a.constants_bar != nullptr, carver, g);
  prepare(a.launch, first_world, carver, g.ws);
  g.bar.control.numbers = carver.take<Real>(a.launch.topology.nu);
}

template <class Real, bool Contact>
void rollout_adjoint_group(const RolloutAdjointArguments<StorageOf<Real>>& a, int first_world, std::byte* scratch) {
  AdjointScratch<PackAdjoint<Real, Contact>> g;
  Carver carver(scratch);
  prepare_group(a, first_world, carver, g);
  rollout_adjoint_worlds(a, g, first_world);
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
