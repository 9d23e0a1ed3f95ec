#pragma once
// A whole rollout of one lane group, and its adjoint: the states of every step are kept, everything else is computed
// again on the way back. The same for all integrators, of which a working set `Set` says
//
//   Real, has_contact, q, qd, control                       and with contact: reported
//   has_ways                                                and where it has: ways
//   lay_out(a, first_world, arena, set)                     takes its arrays from the arena and fills in the model,
//                                                           unless the arena only counts
//   step_group(a, set, step, number, first_world, halted)   one step: `step` of this launch, `number` of the rollout
//   reported_of(set)                                        with contact: the velocity that moved q here
//   in_touch(set)                                           with contact: whether something may have acted in the step
//   joint_at_fault(set, lane)                               which joint made a lane non-finite
//
// and of an adjoint, `Scratch`, with the working set in `ws` and the cotangents in `bar`,
//
//   parameter_rows(topology), parameter_bar                 cotangents of the constants
//   walk_step_back(a, scratch, step, first_world)           takes `bar` over the step whose first state is in `ws`;
//                                                           with contact, bar.reported is of the velocity that moved q
//                                                           to the one and the other
//
// `halted` is zero for the lanes that go on and NaN for those that have stopped, which keep their state.
#include "integrators/rollout/arena.h"
#include "integrators/rollout/rows.h"

namespace backdrive::inline BACKDRIVE_KERNELS {

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

/// Notes step and joint for every lane of `bad` that has no entry yet.
template <class Set, class Mask>
BACKDRIVE_HD void blame(const Set& s, const Mask& bad, int step, int first_world, int worlds, WorldStatus* status) {
  if (!any(bad)) return;
  for (int l = 0; l < RealTraits<typename Set::Real>::lanes; ++l) {
    const int world = first_world + l;
    if (!lane(bad, l) || world >= worlds || status[world].stopped()) continue;
    status[world].stopped_step = step;
    status[world].joint = joint_at_fault(s, l);
  }
}

/// The velocity that moved q to a state: `rows` or, where they are null, q̇.
template <class Real>
BACKDRIVE_INLINE void load_reported(const WorldGroup& group, const StorageOf<Real>* rows, std::size_t first_row, int nv,
                                    const Real* qd, Real* reported) {
  if (rows) return load_rows(group, rows, first_row, nv, reported);
  for (int k = 0; k < nv; ++k) reported[k] = qd[k];
}

/// What State::ways() has of a state: `rows` or, where they are null, that nothing is known.
template <class Real>
BACKDRIVE_INLINE void load_ways(const WorldGroup& group, const StorageOf<Real>* rows, std::size_t first_row, int count,
                                Real* ways) {
  if (rows) return load_rows(group, rows, first_row, count, ways);
  for (int k = 0; k < count; ++k) ways[k] = constant<Real>(kUnknownWay);
}

/// Whether something may have acted in a step of a launch, in some lane: it is known of steps whose rows were kept.
template <class Real>
BACKDRIVE_INLINE bool may_have_touched(const WorldGroup& group, const StorageOf<Real>* touched, int step) {
  if (!touched || step < 0) return true;
  return any(value_of(load<Real>(touched + group.at(std::size_t(step)))) > value_of(constant<Real>(0)));
}

/// The rollout of one lane group, in a working set that a pack kernel or a GPU thread has laid out.
template <class Set>
BACKDRIVE_HD void rollout_worlds(const RolloutArguments<StorageOf<typename Set::Real>>& a, Set& s, int first_world) {
  using Real = typename Set::Real;
  const TopologyView& t = a.launch.topology;
  const WorldGroup group(a.launch, first_world);
  load_state(a.launch, a.q0, a.qd0, first_world, s);
  if constexpr (Set::has_contact) {
    load_reported(group, a.reported0, 0, t.nv, s.qd, s.reported);
  }
  if constexpr (Set::has_ways) load_ways(group, a.ways0, 0, t.way_count, s.ways);
  Real halted = halted_before<Real>(a.status, first_world, a.launch.worlds);
  const int first_step = a.launch.first_step + (a.launch.steps_before ? *a.launch.steps_before : 0);
  const auto store_state = [&](int step, int next) {
    store_rows(group, a.q, std::size_t(step) * t.nq, t.nq, s.q, next);
    store_rows(group, a.qd, std::size_t(step) * t.nv, t.nv, s.qd, next);
    if constexpr (Set::has_contact) {
      if (a.reported) store_rows(group, a.reported, std::size_t(step) * t.nv, t.nv, reported_of(s), next);
    }
    if constexpr (Set::has_ways) {
      if (a.ways) store_rows(group, a.ways, std::size_t(step) * t.way_count, t.way_count, s.ways, next);
    }
  };
  for (int step = 0; step < a.launch.steps; ++step) {
    if (a.q) store_state(step, 1);
    s.control.take(group, a.control, std::size_t(step) * t.nu, t.nu, step + 1 < a.launch.steps);
    s.control.pad(a.launch.worlds, first_world, t.nu);
    step_group(a, s, step, first_step + step, first_world, halted);
    if constexpr (Set::has_contact) {
      if (a.touched) store<Real>(a.touched + group.at(std::size_t(step)), constant<Real>(in_touch(s)));
    }
  }
  if (a.q) store_state(a.launch.steps, 0);
  store_rows(group, a.q_end, 0, t.nq, s.q);
  store_rows(group, a.qd_end, 0, t.nv, s.qd);
  if constexpr (Set::has_contact) {
    if (a.reported_end) store_rows(group, a.reported_end, 0, t.nv, reported_of(s));
  }
  if constexpr (Set::has_ways) {
    if (a.ways_end) store_rows(group, a.ways_end, 0, t.way_count, s.ways);
  }
}

/// The same in a working set of its own, which it lays out in `scratch`.
template <class Set, class T>
BACKDRIVE_HD void rollout_group(const RolloutArguments<T>& a, int first_world, std::byte* scratch) {
  Set s;
  Arena arena(scratch);
  lay_out(a, first_world, arena, s);
  rollout_worlds(a, s, first_world);
}

// ---- and back -------------------------------------------------------------------------------------------------------

/// Adds the seeds of recorded state `step` to the running cotangents.
template <class Real>
BACKDRIVE_INLINE void add_seeds(const WorldGroup& group, const StorageOf<Real>* seeds, std::size_t first_row, int rows,
                                Real* bar) {
  if (!seeds) return;
  const StorageOf<Real>* at = seeds + group.at(first_row);
  for (int r = 0; r < rows; ++r, at += group.stride) bar[r] += load<Real>(at);
}

/// NaN for the worlds of this group that stopped: their gradient does not exist, and is not zero.
template <class Real>
BACKDRIVE_HD void mark_stopped(const WorldGroup& group, const WorldStatus* status, int worlds, StorageOf<Real>* rows,
                               std::size_t count) {
  for (int l = 0; l < RealTraits<Real>::lanes; ++l) {
    const int world = group.first_world + l;
    if (!rows || world >= worlds || !status[world].stopped()) continue;
    for (std::size_t r = 0; r < count; ++r) {
      rows[r * group.stride + world] = StorageOf<Real>(__builtin_nanf(""));
    }
  }
}

/// visit(each running cotangent of a state): of q, q̇ and, with contact, of the velocity that moved q, and of ways.
template <class Scratch, class Visit>
BACKDRIVE_INLINE void each_state_bar(Scratch& g, const TopologyView& t, const Visit& visit) {
  for (int k = 0; k < t.nq; ++k) visit(g.bar.q[k]);
  for (int k = 0; k < t.nv; ++k) visit(g.bar.qd[k]);
  if constexpr (Scratch::has_contact) {
    for (int k = 0; k < t.nv; ++k) visit(g.bar.reported[k]);
  }
  if constexpr (Scratch::has_ways) {
    for (int k = 0; k < t.way_count; ++k) visit(g.bar.ways[k]);
  }
}
template <class Scratch>
BACKDRIVE_INLINE void clear_state_bar(Scratch& g, const TopologyView& t) {
  using Real = typename Scratch::Real;
  each_state_bar(
      g, t, [](Real & x) __attribute__((always_inline)) { x = constant<Real>(0); });
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
  each_state_bar(
      g, t, [&](const Real& x) __attribute__((always_inline)) { sum += x * x; });
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
  each_state_bar(
      g, t, [&](Real & x) __attribute__((always_inline)) { x = x * factor; });
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
  const TopologyView& t = a.launch.topology;
  const int rows = g.parameter_rows(t);
  const WorldGroup group(a.launch, first_world);
  clear_parameters(g, t);
  const bool clips = value_of(a.window.clip) > 0;
  if (a.resume) {
    load_rows(group, a.q0_bar, 0, t.nq, g.bar.q);
    load_rows(group, a.qd0_bar, 0, t.nv, g.bar.qd);
    if constexpr (Scratch::has_contact) load_rows(group, a.reported0_bar, 0, t.nv, g.bar.reported);
    if constexpr (Scratch::has_ways) load_rows(group, a.ways0_bar, 0, t.way_count, g.bar.ways);
    if (g.bar.wants_parameters() && !clips) {
      load_rows(group, a.constants_bar, 0, rows, g.parameter_bar);
    }
    return;
  }
  if (g.bar.wants_parameters() && clips) store_rows(group, a.constants_bar, 0, rows, g.parameter_bar);
  clear_state_bar(g, t);
  add_seeds(group, a.q_end_bar, 0, t.nq, g.bar.q);
  add_seeds(group, a.qd_end_bar, 0, t.nv, g.bar.qd);
  if constexpr (Scratch::has_contact) add_seeds(group, a.reported_end_bar, 0, t.nv, g.bar.reported);
  if constexpr (Scratch::has_ways) add_seeds(group, a.ways_end_bar, 0, t.way_count, g.bar.ways);
}

/// Cotangents of the forces of a step.
template <class Scratch>
BACKDRIVE_INLINE void seed_forces(const RolloutAdjointArguments<StorageOf<typename Scratch::Real>>& a, Scratch& g,
                                  int step, int first_world) {
  g.bar.pair_forces = a.contact_bar ? g.pair_forces : nullptr;
  if (!a.contact_bar) return;
  const int pairs = a.launch.topology.contact_pair_count;
  for (int k = 0; k < pairs; ++k) {
    load_rows(WorldGroup(a.launch, first_world), a.contact_bar, (std::size_t(step) * pairs + k) * kContactRows, 3,
              &g.pair_forces[k].x);
  }
}

/// Walks steps [begin, end) back.
template <class Scratch>
BACKDRIVE_HD void walk_back(const RolloutAdjointArguments<StorageOf<typename Scratch::Real>>& a, Scratch& g, int begin,
                            int end, int first_world) {
  const TopologyView& t = a.launch.topology;
  const WorldGroup group(a.launch, first_world);
  for (int step = end; step-- > begin;) {
    const std::size_t q_row = std::size_t(step) * t.nq, v_row = std::size_t(step) * t.nv;
    const std::size_t u_row = std::size_t(step) * t.nu;
    add_seeds(group, a.q_bar, q_row + t.nq, t.nq, g.bar.q);
    add_seeds(group, a.qd_bar, v_row + t.nv, t.nv, g.bar.qd);
    if constexpr (Scratch::has_contact) add_seeds(group, a.reported_bar, v_row + t.nv, t.nv, g.bar.reported);
    const int next = step > 0 ? -1 : 0;
    load_rows(group, a.q, q_row, t.nq, g.ws.q, next);
    load_rows(group, a.qd, v_row, t.nv, g.ws.qd, next);
    g.ws.control.take(group, a.control, u_row, t.nu, next);
    g.ws.control.pad(a.launch.worlds, first_world, t.nu);
    g.bar.control.begin(group, a.control_bar, u_row);
    walk_step_back(a, g, step, first_world);
    g.bar.control.end(group, a.control_bar, u_row, t.nu, next);
  }
}

/// What a launch leaves.
template <class Scratch>
BACKDRIVE_HD void store_cotangents(const RolloutAdjointArguments<StorageOf<typename Scratch::Real>>& a, Scratch& g,
                                   int first_world) {
  using Real = typename Scratch::Real;
  const TopologyView& t = a.launch.topology;
  const int rows = g.parameter_rows(t);
  const WorldGroup group(a.launch, first_world);
  const bool whole =
      a.launch.first_step == 0;  // else the seeds of the first state belong to the launch that ends there
  if (whole) {
    add_seeds(group, a.q_bar, 0, t.nq, g.bar.q);
    add_seeds(group, a.qd_bar, 0, t.nv, g.bar.qd);
    if constexpr (Scratch::has_contact) add_seeds(group, a.reported_bar, 0, t.nv, g.bar.reported);
  }
  if constexpr (Scratch::has_contact) {
    if (a.reported0_bar) store_rows(group, a.reported0_bar, 0, t.nv, g.bar.reported);
    for (int k = 0; !a.reported0_bar && k < t.nv; ++k) g.bar.qd[k] += g.bar.reported[k];
  }
  if constexpr (Scratch::has_ways) {
    if (a.ways0_bar) store_rows(group, a.ways0_bar, 0, t.way_count, g.bar.ways);
  }
  store_rows(group, a.q0_bar, 0, t.nq, g.bar.q);
  store_rows(group, a.qd0_bar, 0, t.nv, g.bar.qd);
  if (g.bar.wants_parameters() && !(value_of(a.window.clip) > 0)) {
    store_rows(group, a.constants_bar, 0, rows, g.parameter_bar);
  }
  const auto mark = [&](StorageOf<Real>* marked, std::size_t count) {
    mark_stopped<Real>(group, a.status, a.launch.worlds, marked, count);
  };
  mark(a.control_bar, std::size_t(a.launch.steps) * t.nu);
  if (!whole) return;
  mark(a.q0_bar, t.nq);
  mark(a.qd0_bar, t.nv);
  mark(a.reported0_bar, t.nv);
  mark(a.ways0_bar, t.way_count);
  mark(a.constants_bar, rows);
}

template <class Scratch>
BACKDRIVE_HD void rollout_adjoint_worlds(const RolloutAdjointArguments<StorageOf<typename Scratch::Real>>& a,
                                         Scratch& g, int first_world) {
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
    if (a.window.cut && number > 0 && number % a.window.steps == 0) clear_state_bar(g, t);
    end = begin;
  }
  store_cotangents(a, g, first_world);
}

/// The same in a working set of its own, which it lays out in `scratch`.
template <class Scratch, class T>
BACKDRIVE_HD void rollout_adjoint_group(const RolloutAdjointArguments<T>& a, int first_world, std::byte* scratch) {
  Scratch g;
  Arena arena(scratch);
  lay_out(a, first_world, arena, g);
  rollout_adjoint_worlds(a, g, first_world);
}

/// Bytes that lay_out takes for a launch.
template <class Set, class Arguments>
std::size_t bytes_of(const Arguments& a) {
  Set s;
  Arena counter(nullptr);
  lay_out(a, 0, counter, s);
  return counter.used();
}

}  // namespace backdrive::inline BACKDRIVE_KERNELS
