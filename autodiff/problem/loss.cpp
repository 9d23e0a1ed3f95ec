#include "autodiff/problem/loss.h"

#include <algorithm>

#include "autodiff/problem/loss_evaluation.h"
#include "autodiff/tape/efforts.h"
#include "autodiff/tape/recorded.h"
#include "engine/buffer_kernels.h"
#include "engine/error.h"
#include "engine/launch.h"
#include "integrators/rollout/arguments.h"

namespace backdrive {
namespace {

using scoring::Evaluation;
using scoring::ReadBodies;
using scoring::Score;
using scoring::Terms;

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
