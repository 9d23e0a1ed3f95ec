#pragma once
// Loss terms on the states, controls, poses, forces and efforts of some steps, as rows for the kernel that scores them.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autodiff/problem/inputs.h"
#include "autodiff/problem/loss.h"
#include "autodiff/problem/loss_kernel.h"
#include "engine/error.h"
#include "engine/kernel_array.h"
#include "engine/launch.h"
#include "integrators/rollout/arguments.h"
#include "models/mass_properties.h"

namespace backdrive::scoring {

/// Bodies that the terms of one kind (terminal or running) read poses of, and whether they read velocities.
struct ReadBodies {
  PoolVector<int> bodies;
  bool motions = false;

  ReadBodies() = default;
  ReadBodies(const std::vector<LossTerm>& terms, bool terminal) {
    for (const LossTerm& term : terms) {
      if (!term.is_of_body() || term.terminal != terminal) continue;
      motions = motions || term.is_motion();
      for (const int body : {term.index, term.quantity == LossQuantity::distance ? term.other : -1}) {
        if (body >= 0 && position(body) == static_cast<int>(bodies.size())) bodies.push_back(body);
      }
    }
  }
  int rows() const { return motions ? kMotionRows : kPoseRows; }  ///< of a body
  int position(int body) const {
    return static_cast<int>(std::find(bodies.begin(), bodies.end(), body) - bodies.begin());
  }
};

/// A buffer that terms read in some of its states, and the cotangent that collects their seeds where some are asked
/// for.
template <class T>
struct Source {
  Buffer<T> values;
  int rows_per_state = 0;
  Buffer<T> bar;
  Components read{};  ///< where seeds may stand

  void collect_seeds(Memory& memory) {
    if (!bar.empty() || values.empty()) return;
    bar = Buffer<T>::uninitialized(memory, values.rows(), values.worlds());
  }
};

/// Which terms an evaluation is about.
enum class Terms { all, states_on_the_way, others };

inline bool is_among(const LossTerm& term, Terms which) {
  return which == Terms::all || term.is_on_the_way() == (which == Terms::states_on_the_way);
}

/// What is scored, of some steps in a row.
struct Score {
  const std::vector<LossTerm>& terms;
  const Model& model;
  double time_step;
  int steps_before;  ///< of the rollout
  int steps;
  int threads;
  Terms which = Terms::all;
  bool seeds = false;  ///< asked for too
};

/// Steps of a score that a running term is about, counted from 1 within it.
struct ScoredSteps {
  int first, count;
};

inline ScoredSteps scored_steps(const LossTerm& term, const Score& score) {
  if (term.first_step < 1 || term.last_step < term.first_step) {
    usage_error("loss term " + term.name + " of steps " + std::to_string(term.first_step) + " to " +
                std::to_string(term.last_step) + "; expected one step or more, counted from 1");
  }
  const int first = std::max(term.first_step - score.steps_before, 1);
  const int last = std::min(term.last_step - score.steps_before, score.steps);
  return {first, std::max(last - first + 1, 0)};
}

inline ErrorShape shape_of(const LossTerm& term, const Model& model) {
  switch (term.quantity) {
    case LossQuantity::contact_force:
    case LossQuantity::body_angular_velocity:
      return ErrorShape::vector;
    case LossQuantity::body_position:
      return ErrorShape::position;
    case LossQuantity::body_orientation:
      return ErrorShape::orientation;
    case LossQuantity::joint_orientation:
      return model.joint_types[term.index] == JointType::free ? ErrorShape::free : ErrorShape::ball;
    case LossQuantity::body_velocity:
      return ErrorShape::velocity;
    case LossQuantity::distance:
      return ErrorShape::distance;
    case LossQuantity::joint_position:
    case LossQuantity::joint_velocity:
    case LossQuantity::joint_effort:
    case LossQuantity::joint_power:
    case LossQuantity::control:
      break;
  }
  return term.on_circle ? ErrorShape::circle : ErrorShape::scalar;
}

/// Numbers of a target, as kernels read it (LossTermKernel::target).
constexpr int kernel_numbers(ErrorShape shape) {
  switch (shape) {
    case ErrorShape::circle:
      return 1;
    case ErrorShape::scalar:
    case ErrorShape::distance:
      return 2;
    case ErrorShape::vector:
    case ErrorShape::position:
    case ErrorShape::velocity:
      return 6;
    case ErrorShape::ball:
    case ErrorShape::free:
      return 4;
    case ErrorShape::orientation:
      break;
  }
  return 9;
}

inline constexpr std::array<double, 3> kNoUpper{kNoRange, kNoRange, kNoRange};

/// Appends a target or range, as LossTerm has them.
template <class T>
void put_target(const std::array<double, 4>& target, const std::array<double, 3>& upper, ErrorShape shape,
                PoolVector<T>& to) {
  if (shape == ErrorShape::orientation) {
    const Mat3<double> goal = rotation_matrix(target[0], target[1], target[2], target[3]);
    for (int k = 0; k < 9; ++k) to.push_back(constant<T>((&goal.cx.x)[k]));
  } else if (shape == ErrorShape::ball || shape == ErrorShape::free) {
    for (const double x : target) to.push_back(constant<T>(x));
  } else if (shape == ErrorShape::circle) {
    to.push_back(constant<T>(target[0]));
  } else {
    for (int k = 0; k < kernel_numbers(shape) / 2; ++k) {
      to.push_back(constant<T>(target[k]));
      to.push_back(constant<T>(upper[k] == kNoRange ? target[k] : upper[k]));
    }
  }
}

/// Throws unless a term is one.
inline void check_term(const LossTerm& term) {
  const auto refuse = [&](const char* what) { usage_error("loss term " + term.name + what); };
  if (term.terminal && term.over != OverTime::sum) refuse(": the least or greatest over time is of running terms");
  if (term.terminal && term.is_of_steps()) refuse(": controls, efforts and forces have no terminal value");
  if (term.terminal && !term.record.empty()) refuse(": a record is followed on the way, not at the end");
  const int numbers = term.target_numbers();
  for (int k = 0; k < numbers && numbers < 4; ++k) {
    const LossTerm::Range range = term.range(k);
    if (!(range.lower <= range.upper)) refuse(": a range that ends below its beginning");
    if (range.lower == range.upper && std::isinf(range.lower)) refuse(": an infinite target");
    const bool is_range = range.lower != range.upper;
    if (is_range && (term.on_circle || !term.record.empty())) refuse(": a range on a circle or beside a record");
  }
}

/// Terms scored on one piece of a trajectory: adds to their sums and seeds the cotangents of what they read.
template <class T>
class Evaluation {
 public:
  Evaluation(const Score& score, const Trajectory<T>& trajectory, const Control<T>& control, Memory& memory,
             Buffer<T>* best = nullptr)
      : score_(score), memory_(memory), best_(best), worlds_(trajectory.final.q.worlds()), status_(*trajectory.status) {
    const Topology& t = score.model.topology;
    q_[0] = {trajectory.q, t.nq, {}};
    q_[1] = {trajectory.final.q, t.nq, {}};
    qd_[0] = {trajectory.velocity(), t.nv, {}};
    qd_[1] = {trajectory.final_velocity(), t.nv, {}};
    control_ = {control.u, t.nu, {}};
    contact_ = {trajectory.contact, row_count(static_cast<std::int64_t>(t.contact_pairs.size()), kContactRows), {}};
  }

  /// Poses or motions of the bodies that terms read, of the last state or on the way.
  void set_poses(bool terminal, const ReadBodies& bodies, Buffer<T> poses) {
    bodies_[terminal] = bodies;
    poses_[terminal] = {
        std::move(poses), row_count(static_cast<std::int64_t>(bodies.bodies.size()), bodies.rows()), {}};
  }

  /// Of all terms of efforts, in their order.
  void set_efforts(int count, Buffer<T> efforts) { efforts_ = {std::move(efforts), count, {}}; }

  /// Worlds do not meet: each thread takes its share through all terms.
  void add_to(Buffer<T>& term_sums) {
    PoolVector<LossTermKernel<T>> terms;
    PoolVector<T> targets;
    PoolVector<std::size_t> first_targets;
    PoolVector<int> rows;
    for (std::size_t k = 0; k < score_.terms.size(); ++k) {
      const LossTerm& term = score_.terms[k];
      if (!is_among(term, score_.which)) continue;
      Source<T>& source = source_of(term);
      if (score_.seeds) {
        source.collect_seeds(memory_);
        const int numbers = numbers_read(term);
        for (int c = 0; c < numbers; ++c) source.read.add(row_of(term) + c);
        if (term.other >= 0) {
          for (int c = 0; c < numbers; ++c) source.read.add(body_row(term, term.other) + c);
        }
      }
      terms.push_back(kernel_of(term, source));
      set_best(term, static_cast<int>(k), terms.back());
      first_targets.push_back(targets.size());
      put_targets(term, targets);
      rows.push_back(static_cast<int>(k));
    }
    const KernelArray<T> target_table(targets, memory_);
    for (std::size_t k = 0; k < terms.size(); ++k) terms[k].target = target_table.data() + first_targets[k];
    PoolVector<BarRows<T>> bars;
    for (Source<T>* source : sources()) {
      if (!source->bar.empty()) bars.push_back({source->bar.write_address(), source->bar.rows()});
    }
    const KernelArray<LossTermKernel<T>> term_table(terms, memory_);
    const KernelArray<int> row_table(rows, memory_);
    const KernelArray<BarRows<T>> bar_table(bars, memory_);
    const int stride = term_sums.stride();
    const LossKernel<T> kernel{term_table.data(),
                               static_cast<int>(terms.size()),
                               bar_table.data(),
                               static_cast<int>(bars.size()),
                               static_cast<std::size_t>(stride),
                               term_sums.write_address(),
                               row_table.data(),
                               static_cast<int>(score_.terms.size()),
                               status_.address()};
    if (DeviceBackend* const backend = memory_.backend()) return launch_on_device(*backend, worlds_, kernel);
    const int pack = kPackWorlds<T>;
    parallel_for(score_.threads, stride / pack, [&](Range packs) {
      const int begin = packs.begin * pack, end = packs.end * pack;
      kernel.run(begin, std::min(end, worlds_), end);
    });
  }

  void collect(Seeds<T>& seeds) {
    for (Source<T>* source : sources()) {
      if (!source->bar.empty()) seeds.add(source->values, source->bar, source->read);
    }
  }
  /// Of the states on the way; empty where no term reads them.
  const Buffer<T>& q_bar() const { return q_[0].bar; }
  const Buffer<T>& qd_bar() const { return qd_[0].bar; }
  const Buffer<T>& poses_bar() const { return poses_[0].bar; }
  const Buffer<T>& contact_bar() const { return contact_.bar; }
  const Buffer<T>& efforts_bar() const { return efforts_.bar; }

 private:
  std::array<Source<T>*, 9> sources() {
    return {&q_[0], &q_[1], &qd_[0], &qd_[1], &control_, &contact_, &efforts_, &poses_[0], &poses_[1]};
  }

  Source<T>& source_of(const LossTerm& term) {
    if (term.is_of_body()) return poses_[term.terminal];
    if (term.is_control()) return control_;
    if (term.is_contact()) return contact_;
    if (term.is_effort()) return efforts_;
    return term.quantity == LossQuantity::joint_velocity ? qd_[term.terminal] : q_[term.terminal];
  }

  /// Rows of the source that a term reads, from row_of() on.
  int numbers_read(const LossTerm& term) const {
    if (term.quantity == LossQuantity::body_velocity) return kMotionRows;
    if (term.quantity == LossQuantity::body_angular_velocity || term.is_contact()) return 3;
    if (term.quantity == LossQuantity::joint_orientation) return 3;  // the turns, without the fourth row
    return term.is_of_body() ? kPoseRows : 1;
  }

  /// First row, within a state of its source, of what a term reads.
  int row_of(const LossTerm& term) const {
    // Of a motion the angular velocity stands last.
    const int first = term.quantity == LossQuantity::body_angular_velocity ? kMotionRows - 3 : 0;
    if (term.is_of_body()) return body_row(term, term.index) + first;
    if (term.is_contact()) return term.index * kContactRows;
    if (term.is_effort()) {
      int before = 0;
      for (const LossTerm* other = score_.terms.data(); other != &term; ++other) before += other->is_effort();
      return before;
    }
    if (term.is_control()) {
      return channel_row(score_.model, term.index, term.channel, term.component, {"loss term ", term.name});
    }
    return state_row(term);
  }

  /// Of a joint's position, velocity or orientation.
  int state_row(const LossTerm& term) const {
    const JointType type = score_.model.joint_types[term.index];
    const bool velocity = term.quantity == LossQuantity::joint_velocity;
    const auto components = velocity ? velocity_components(type) : position_components(type);
    const auto is_one = [&](const JointComponent& c) { return std::string_view(c.quantity) != "orientation"; };
    const bool turns = term.quantity == LossQuantity::joint_orientation;
    const bool has = turns ? has_quaternion(type) && term.component == 0
                           : term.component >= 0 && term.component < static_cast<int>(components.size()) &&
                                 is_one(components[term.component]);
    if (!has) {
      input_error("loss term " + term.name + ": joint '" + score_.model.joint_names[term.index] + "' is " +
                  to_string(type) + " and has no such " +
                  (turns      ? "orientation"
                   : velocity ? "velocity"
                              : "position"));
    }
    const Link& link = score_.model.topology.links[score_.model.link_of_joint(term.index)];
    return (velocity ? link.v : link.q) + term.component;
  }

  int body_row(const LossTerm& term, int body) const {
    const ReadBodies& bodies = bodies_[term.terminal];
    return bodies.position(body) * bodies.rows();
  }

  /// Rows of `best_`: error² and number of the state, for each term.
  void set_best(const LossTerm& term, int number, LossTermKernel<T>& kernel) {
    if (term.over == OverTime::sum) return;
    if (!best_) usage_error("loss term " + term.name + ": the least or greatest over time needs where to keep it");
    kernel.best = best_->write_address(2 * number);
    kernel.best_state = best_->write_address(2 * number + 1);
    kernel.look_on = !(score_.seeds && score_.which == Terms::states_on_the_way);  // on the way back it is known
    kernel.first_state = score_.steps_before + scored_steps(term, score_).first;
  }

  LossTermKernel<T> kernel_of(const LossTerm& term, Source<T>& source) const {
    // One value for each step, and none for the state after the last.
    const bool of_steps = term.is_of_steps();
    check_term(term);
    if (term.is_contact() && source.values.empty()) usage_error("a loss of forces needs a rollout that keeps them");
    const double weight = term.weight_per_step(score_.time_step);
    // Terminal terms read the one state of the final buffers, running ones the states after each step.
    const ScoredSteps steps = term.terminal ? ScoredSteps{0, 1} : scored_steps(term, score_);
    LossTermKernel<T> kernel;
    kernel.shape = shape_of(term, score_.model);
    kernel.measure = term.measure;
    kernel.over = term.over;
    kernel.weight = constant<T>(weight);
    kernel.states = steps.count;
    for (int c = 0; c < 3; ++c) kernel.point[c] = constant<T>(term.point[c]);
    for (int c = 0; c < 3; ++c) kernel.other_point[c] = constant<T>(term.other_point[c]);
    if (!term.record.empty()) kernel.target_stride = kernel_numbers(kernel.shape);
    if (!source.values.empty() && steps.count > 0) {
      const int row = (of_steps ? steps.first - 1 : steps.first) * source.rows_per_state + row_of(term);
      kernel.values = source.values.address(row);
      if (!source.bar.empty()) kernel.bar = source.bar.write_address(row);
      kernel.stride = source.values.stride();
      kernel.state_stride = kernel.stride * source.rows_per_state;
      if (term.other >= 0) {
        const int apart = body_row(term, term.other) - body_row(term, term.index);
        kernel.other = static_cast<std::ptrdiff_t>(kernel.stride) * apart;
      }
    }
    return kernel;
  }

  /// Appends the target, or that of each step.
  void put_targets(const LossTerm& term, PoolVector<T>& to) const {
    const ErrorShape shape = shape_of(term, score_.model);
    if (term.record.empty()) return put_target(term.target, term.upper, shape, to);
    const ScoredSteps steps = scored_steps(term, score_);
    for (int k = 0; k < steps.count; ++k) {
      const double time = (score_.steps_before + steps.first + k) * score_.time_step;
      const bool turns = term.target_numbers() == 4;
      put_target(turns ? term.record.orientation_at(time) : term.record.at(time), kNoUpper, shape, to);
    }
  }

  Score score_;
  Memory& memory_;
  Buffer<T>* best_;  // of set_best
  int worlds_;
  const WorldStatuses& status_;
  Source<T> q_[2], qd_[2], control_, contact_, efforts_, poses_[2];  // [running, terminal]
  ReadBodies bodies_[2];
};

}  // namespace backdrive::scoring
