#pragma once
// State, control and trajectory of a batch of worlds, as buffers [component][world].
#include <memory>
#include <utility>
#include <vector>

#include "engine/memory.h"
#include "engine/status.h"
#include "integrators/contact/geometry.h"
#include "models/coordinates.h"

namespace backdrive {

/// Positions [nq] and velocities [nv] of all worlds, components in the order of the model's joints. Quaternions have
/// unit length. What has the shape of q and stands for a change of it is in tangent rows (models/coordinates.h).
template <class T>
struct State {
  Buffer<T> q, qd;

  State() = default;
  /// Zeros, and quaternions of no turn.
  State(const Model& model, int worlds, Memory& memory = default_memory())
      : q(memory, model.topology.nq, worlds), qd(memory, model.topology.nv, worlds) {
    if (model.topology.nq == model.topology.nv) return;
    Buffer<T> neutral(model.topology.nq, worlds);
    each_quaternion(model.topology, [&](TurnSide, int row, int) {
      for (int w = 0; w < worlds; ++w) neutral.set(row + 3, w, T(1));
    });
    q.copy_from(neutral);
  }
  /// For what writes every number before anybody reads one.
  static State uninitialized(const Model& model, int worlds, Memory& memory) {
    State state;
    state.q = Buffer<T>::uninitialized(memory, model.topology.nq, worlds);
    state.qd = Buffer<T>::uninitialized(memory, model.topology.nv, worlds);
    return state;
  }

  /// As qd, where something can touch something: the velocity that moved q here, as Trajectory has it. Empty: q̇ did, or
  /// q or qd is not what it was then.
  const Buffer<T>& reported() const { return if_unchanged(reported_); }
  /// Of each tree that may whip and touch something (Link::way) μ of the step that led here, which says how far along
  /// that step its energy was to be had (docs/theory.md, "Trees that whip"); −1: nobody knows. Empty: of none of them.
  const Buffer<T>& ways() const { return if_unchanged(ways_); }
  /// Whether a motion begins here, of which contact may bear what rests (docs/contact.md, (C12)): no rollout ended
  /// here, whatever was written to q and qd since.
  bool begins() const { return reported_.empty(); }
  /// Of q and qd as they are now: other numbers in them, and both are forgotten.
  void set_reported(const Buffer<T>& velocity, const Buffer<T>& ways = {}) {
    reported_ = velocity, ways_ = ways;
    of_q_ = stamp(q), of_qd_ = stamp(qd);
  }

 private:
  using Stamp = std::pair<std::uint64_t, std::uint64_t>;
  static Stamp stamp(const Buffer<T>& buffer) { return {buffer.id(), buffer.version()}; }
  const Buffer<T>& if_unchanged(const Buffer<T>& buffer) const {
    static const Buffer<T> none;
    return of_q_ == stamp(q) && of_qd_ == stamp(qd) ? buffer : none;
  }
  Buffer<T> reported_, ways_;
  Stamp of_q_, of_qd_;
};

/// Controls of all steps: row step·nu + channel, channels as Topology::nu says. One step of it drives step().
template <class T>
struct Control {
  Buffer<T> u;

  Control() = default;
  Control(const Model& model, int steps, int worlds, Memory& memory = default_memory())
      : u(memory, row_count(steps, model.topology.nu), worlds) {}
};

/// What a rollout leaves. `q` and `qd` hold every state, row step·nq + component, steps + 1 of them (empty when the
/// rollout was asked to keep none); `final` is the last one.
///
/// Where something can touch something, a state's q̇ is not what moves: it is half a step of gravity ahead of a body at
/// rest. `reported` has the velocities that moved q to each state (of the first: what its State says), zero at rest,
/// and `final_reported` the last. They are what is to be looked at and scored; q̇ is what the next step starts from.
template <class T>
struct Trajectory {
  int steps = 0;
  Buffer<T> q, qd;
  State<T> final;
  Buffer<T> reported, final_reported;  ///< as qd and final.qd; empty where nothing can touch anything
  Buffer<T> ways;                      ///< State::ways() of every state, as `reported`; carries no gradient

  /// What touched in each step, row (step·pairs + pair)·7 + component: force on the first body of the pair (3), where
  /// it acts (3; both in the world), depth of the deepest point. Pairs as in Topology::contact_pairs. Empty unless
  /// asked for. Gradients are zero for every coordinate but the forces.
  Buffer<T> contact;

  /// Velocities to look at.
  const Buffer<T>& velocity() const { return final_reported.empty() ? qd : reported; }
  const Buffer<T>& final_velocity() const { return final_reported.empty() ? final.qd : final_reported; }

  std::shared_ptr<WorldStatuses> status;
  std::shared_ptr<const Model> model;  ///< that it was computed from, as it was then; null where a tape keeps it

  bool any_stopped() const { return status->any_stopped(); }
};

}  // namespace backdrive
