#include "autodiff/problem/loss.h"

#include <algorithm>
#include <array>
#include <limits>

#include "autodiff/problem/loss_kernel.h"
#include "autodiff/tape/efforts.h"
#include "autodiff/tape/recorded.h"
#include "engine/buffer_kernels.h"
#include "engine/error.h"
#include "engine/kernel_array.h"
#include "engine/launch.h"
#include "integrators/rollout/arguments.h"
#include "models/mass_properties.h"

namespace backdrive {
namespace {

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

bool is_among(const LossTerm& term, Terms which) {
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

ScoredSteps scored_steps(const LossTerm& term, const Score& score) {
  if (term.first_step < 1 || term.last_step < term.first_step) {
    usage_error("loss term " + term.name + " of steps " + std::to_string(term.first_step) + " to " +
                std::to_string(term.last_step) + "; expected one step or more, counted from 1");
  }
  const int first = std::max(term.first_step - score.steps_before, 1);
  const int last = std::min(term.last_step - score.steps_before, score.steps);
  return {first, std::max(last - first + 1, 0)};
}

ErrorShape shape_of(const LossTerm& term, const Model& model) {
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

constexpr std::array<double, 3> kNoUpper{kNoRange, kNoRange, kNoRange};

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
void check_term(const LossTerm& term) {
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

template <class T>
class Evaluation {
 public:
  Evaluation(const Score& score, const Trajectory<T>& trajectory, const Control<T>& control, Memory& memory,
             Buffer<T>* best = nullptr)
      : score_(score),
        which_(score.which),
        seeds_(score.seeds),
        memory_(memory),
        best_(best),
        worlds_(trajectory.final.q.worlds()),
        status_(*trajectory.status) {
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
      if (!is_among(term, which_)) continue;
      Source<T>& source = source_of(term);
      if (seeds_) {
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
    kernel.look_on = !(seeds_ && which_ == Terms::states_on_the_way);  // on the way back it is known
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
  Terms which_;
  bool seeds_;
  Memory& memory_;
  Buffer<T>* best_;  // of set_best
  int worlds_;
  const WorldStatuses& status_;
  Source<T> q_[2], qd_[2], control_, contact_, efforts_, poses_[2];  // [running, terminal]
  ReadBodies bodies_[2];
};

/// Of the terms that score efforts.
PoolVector<EffortTerm> efforts_scored(const std::vector<LossTerm>& terms, const Model& model) {
  PoolVector<EffortTerm> efforts;
  for (const LossTerm& term : terms) {
    if (!term.is_effort()) continue;
    const bool power = term.quantity == LossQuantity::joint_power;
    efforts.push_back(effort_term(model, term.index, term.part, power, term.component));
  }
  return efforts;
}

/// Adds what may be empty to what may be.
template <class T>
void merge(Buffer<T> more, Buffer<T>& into) {
  if (more.empty()) return;
  if (!into.empty()) add_into(more, into);
  into = std::move(more);
}

/// Rows for set_best before any state was seen; none where no term wants any.
template <class T>
Buffer<T> nothing_best(const std::vector<LossTerm>& terms, int worlds, Memory& memory) {
  const auto wants = [](const LossTerm& term) { return term.over != OverTime::sum; };
  if (std::ranges::none_of(terms, wants)) return {};
  Buffer<T> none(2 * static_cast<int>(terms.size()), worlds);
  for (int row = 1; row < none.rows(); row += 2) {
    for (int w = 0; w < none.stride(); ++w) none.write(row)[w] = T(-1);
  }
  return none.clone(memory);
}

/// The running terms of a rollout that does not keep its states.
template <class T>
class RunningLoss final : public LossObserver<T> {
 public:
  RunningLoss(const Problem& problem, const Control<T>& control, const RolloutOptions& options, int worlds,
              Memory& memory)
      : terms_(problem.loss),
        control_(control),
        memory_(memory),
        recorded_(problem.model, options, worlds, memory),
        bodies_(problem.loss, false),
        links_(links_of(problem.model, bodies_.bodies)),
        sums_(memory, static_cast<int>(terms_.size()), worlds),
        best_(nothing_best<T>(terms_, worlds, memory_)),
        effort_terms_(efforts_scored(problem.loss, *recorded_.model)) {
    if (!links_.empty()) constants_bar_ = recorded_.constants_bar(memory, worlds);
  }

  void forward(const Trajectory<T>& piece, int first_step) override {
    if (first_step != next_step_) {
      usage_error("an observer of a loss saw step " + std::to_string(first_step) + ", expected " +
                  std::to_string(next_step_) + ": it is made for one rollout, and sums must not accumulate");
    }
    next_step_ += piece.steps;
    evaluation(piece, first_step, false).add_to(sums_);
  }

  StateSeeds<T> backward(const Trajectory<T>& piece, int first_step) override {
    Evaluation<T> seeds = evaluation(piece, first_step, true);
    Buffer<T> not_needed(memory_, sums_.rows(), sums_.worlds());
    seeds.add_to(not_needed);
    StateSeeds<T> result{seeds.q_bar(), seeds.qd_bar(), seeds.contact_bar(), {}};
    if (!seeds.poses_bar().empty()) {
      State<T> of_poses =
          poses_adjoint(recorded_, states_of(piece), links_, seeds.poses_bar(), {constants_bar_, resume_}, memory_);
      resume_ = true;
      merge(std::move(of_poses.q), result.q);
      merge(std::move(of_poses.qd), result.qd);
    }
    if (!seeds.efforts_bar().empty()) walk_efforts_back(piece, first_step, seeds.efforts_bar(), result);
    return result;
  }

  void reads(Components& q, Components& qd) const override {
    const Topology& t = recorded_.model->topology;
    LinkDependence posed(t.links.size());
    for (const int link : links_) posed.pose(t, link);
    q.add(posed_positions(t, posed));
    if (bodies_.motions) qd.add(posed_velocities(t, posed));
    for (const LossTerm& term : terms_) {
      if (!term.is_on_the_way() || term.is_of_body()) continue;
      if (term.is_contact()) {  // one of its tree's stands for all
        qd.add(t.links[t.contact_shapes[t.contact_pairs[term.index].a].root].v);
        continue;
      }
      if (term.is_effort()) {
        const EffortTerm effort = effort_term(*recorded_.model, term.index, term.part, false, term.component);
        const Link& link = t.links[effort.link];
        for (int k = 0; k < joint_size(link.type).nq; ++k) q.add(link.q + k);
        for (int k = 0; k < joint_size(link.type).nv; ++k) qd.add(link.v + k);
        continue;
      }
      const Link& link = t.links[recorded_.model->link_of_joint(term.index)];
      const bool velocity = term.quantity == LossQuantity::joint_velocity;
      const int numbers = term.quantity == LossQuantity::joint_orientation ? 3 : 1;
      for (int k = 0; k < numbers; ++k) (velocity ? qd : q).add((velocity ? link.v : link.q) + term.component + k);
    }
  }

  void finish(Cotangents<T>& bars, Parameters& gradient, Parameters& gradient_dot) override {
    if (resume_) recorded_.add_gradient(constants_bar_, bars, gradient, gradient_dot);
    if (!effort_constants_bar_.empty()) {
      recorded_.add_gradient(effort_constants_bar_, bars, gradient, gradient_dot);
    }
    if (!control_bar_.empty()) bars.add(control_.u, control_bar_);
  }

  const Buffer<T>& sums() const override { return sums_; }

 private:
  Evaluation<T> evaluation(const Trajectory<T>& piece, int first_step, bool seeds) {
    const RolloutOptions& o = recorded_.options;
    const Score score{terms_,    *recorded_.model,         o.time_step, first_step, piece.steps,
                      o.threads, Terms::states_on_the_way, seeds};
    Evaluation<T> result(score, piece, {}, memory_, best_.empty() ? nullptr : &best_);
    if (!effort_terms_.empty()) {
      result.set_efforts(static_cast<int>(effort_terms_.size()),
                         efforts_of<T>(recorded_.kernel_model, steps_of(piece, first_step), effort_terms_, o, memory_));
    }
    if (!links_.empty()) {
      result.set_poses(false, bodies_, poses_of(recorded_.kernel_model, states_of(piece), links_, o, memory_));
    }
    return result;
  }
  EffortSteps<T> steps_of(const Trajectory<T>& piece, int first_step) const {
    return {piece, control_, first_step * recorded_.model->topology.nu};
  }
  /// From the cotangents of a piece's efforts to those of its states, of the control and of the constants.
  void walk_efforts_back(const Trajectory<T>& piece, int first_step, const Buffer<T>& efforts_bar,
                         StateSeeds<T>& result) {
    const int worlds = sums_.worlds();
    const auto zeros = [&](const Buffer<T>& like) { return Buffer<T>(memory_, like.rows(), worlds); };
    if (control_bar_.empty() && !control_.u.empty()) control_bar_ = zeros(control_.u);
    if (effort_constants_bar_.empty() && recorded_.parameters) {
      effort_constants_bar_ = Buffer<T>(memory_, gradient_rows_of<T>(*recorded_.model, false), worlds);
    }
    Buffer<T> q = zeros(piece.q), qd = zeros(piece.qd), velocity;
    const bool apart = !piece.reported.empty();
    if (apart) velocity = zeros(piece.reported);
    // The first state of a piece is the last of the one before, which comes next.
    const int nq = recorded_.model->topology.nq, nv = recorded_.model->topology.nv;
    if (!first_q_bar_.empty()) {
      q.copy_rows(q.rows() - nq, first_q_bar_, 0, nq);
      qd.copy_rows(qd.rows() - nv, first_qd_bar_, 0, nv);
    }
    efforts_adjoint<T>(recorded_, steps_of(piece, first_step), effort_terms_, efforts_bar,
                       {q, qd, apart ? velocity : qd, control_bar_, effort_constants_bar_}, memory_);
    first_q_bar_ = Buffer<T>::uninitialized(memory_, nq, worlds);
    first_qd_bar_ = Buffer<T>::uninitialized(memory_, nv, worlds);
    first_q_bar_.copy_rows(0, q, 0, nq);
    first_qd_bar_.copy_rows(0, qd, 0, nv);
    merge(std::move(q), result.q);
    merge(std::move(apart ? velocity : qd), result.qd);
    if (apart) result.start_qd = std::move(qd);
  }
  State<T> states_of(const Trajectory<T>& piece) const {
    State<T> states;
    states.q = piece.q;
    if (bodies_.motions) states.qd = piece.velocity();
    return states;
  }

  std::vector<LossTerm> terms_;
  Control<T> control_;
  Memory memory_;  // a handle of its own: the tape may outlive whoever made this
  Recorded<T> recorded_;
  ReadBodies bodies_;
  PoolVector<int> links_;
  Buffer<T> sums_, constants_bar_, best_;
  PoolVector<EffortTerm> effort_terms_;
  Buffer<T> control_bar_, effort_constants_bar_, first_q_bar_, first_qd_bar_;
  int next_step_ = 0;
  bool resume_ = false;
};

}  // namespace

int LossTerm::target_numbers() const {
  if (quantity == LossQuantity::body_orientation || quantity == LossQuantity::joint_orientation) return 4;
  return (is_of_body() && quantity != LossQuantity::distance) || is_contact() ? 3 : 1;
}

bool scores_states_on_the_way(const Problem& problem) {
  return std::any_of(problem.loss.begin(), problem.loss.end(),
                     [](const LossTerm& term) { return term.is_on_the_way(); });
}

bool scores_contact(const Problem& problem) {
  return std::ranges::any_of(problem.loss, &LossTerm::is_contact);
}

template <class T>
std::shared_ptr<LossObserver<T>> observe_loss(const Problem& problem, const Control<T>& control,
                                              const RolloutOptions& options, int worlds, Memory& memory) {
  if (!scores_states_on_the_way(problem)) return nullptr;
  return std::make_shared<RunningLoss<T>>(problem, control, options, worlds, memory);
}

template <class T>
LossResult<T> evaluate_loss(const Problem& problem, const Trajectory<T>& trajectory, const Control<T>& control,
                            const RolloutOptions& options, Tape<T>* tape, const LossObserver<T>* observer) {
  const bool on_the_way = scores_states_on_the_way(problem) && !observer;
  if (on_the_way && trajectory.q.empty()) {
    usage_error("a running loss needs a rollout that keeps its states, or one with an observer of observe_loss()");
  }
  Memory& memory = tape ? tape->memory() : memory_beside(trajectory.final.q);
  Buffer<T> best = nothing_best<T>(problem.loss, trajectory.final.q.worlds(), memory);
  const Score score{problem.loss,
                    problem.model,
                    problem.simulation.time_step,
                    0,
                    problem.simulation.steps,
                    options.threads,
                    observer ? Terms::others : Terms::all,
                    tape != nullptr};
  Evaluation<T> evaluation(score, trajectory, control, memory, best.empty() ? nullptr : &best);
  // In the order in which an observer takes them: its gradients are added up likewise.
  if (const PoolVector<EffortTerm> efforts = efforts_scored(problem.loss, problem.model);
      on_the_way && !efforts.empty()) {
    evaluation.set_efforts(static_cast<int>(efforts.size()),
                           acting_efforts<T>(tape, problem.model, {trajectory, control}, efforts, options, memory));
  }
  for (const bool terminal : {false, true}) {
    if (!terminal && !on_the_way) continue;
    const ReadBodies read(problem.loss, terminal);
    if (read.bodies.empty()) continue;
    State<T> states;
    states.q = terminal ? trajectory.final.q : trajectory.q;
    if (read.motions) states.qd = terminal ? trajectory.final_velocity() : trajectory.velocity();
    evaluation.set_poses(terminal, read,
                         read.motions ? body_motions(tape, problem.model, states, read.bodies, options, memory)
                                      : body_poses(tape, problem.model, states.q, read.bodies, options, memory));
  }
  LossResult<T> result;
  const int worlds = trajectory.final.q.worlds(), terms = static_cast<int>(problem.loss.size());
  result.terms = observer ? observer->sums().clone(memory) : Buffer<T>(memory, std::max(terms, 1), worlds);
  evaluation.add_to(result.terms);
  if (tape) evaluation.collect(result.seeds);
  result.total = Buffer<T>(memory, 1, worlds);
  for_each_index(memory.backend(), 1, worlds,
                 TotalLoss<T>{result.terms.address(), result.total.write_address(), terms,
                              static_cast<std::size_t>(result.terms.stride())});
  return result;
}

#define BACKDRIVE_INSTANTIATE(T)                                                                                      \
  template LossResult<T> evaluate_loss<T>(const Problem&, const Trajectory<T>&, const Control<T>&,                    \
                                          const RolloutOptions&, Tape<T>*, const LossObserver<T>*);                   \
  template std::shared_ptr<LossObserver<T>> observe_loss<T>(const Problem&, const Control<T>&, const RolloutOptions&, \
                                                            int, Memory&);
BACKDRIVE_INSTANTIATE(float)
BACKDRIVE_INSTANTIATE(double)
BACKDRIVE_INSTANTIATE(Dual<double>)
#undef BACKDRIVE_INSTANTIATE

}  // namespace backdrive
