#include "autodiff/check/gradient_over_time.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "autodiff/problem/loss.h"
#include "autodiff/tape/rollout.h"

namespace backdrive {
namespace {

double norm_of(const Buffer<double>& buffer) {
  double squares = 0;
  for (int row = 0; row < buffer.rows(); ++row) squares += buffer(row, 0) * buffer(row, 0);
  return std::sqrt(squares);
}

/// Notes what passes from one piece of a rollout to the piece before it; scores the states as `loss` does.
class PassedCotangents final : public StateObserver<double> {
 public:
  PassedCotangents(std::shared_ptr<LossObserver<double>> loss, GradientOverTime& to)
      : loss_(std::move(loss)), to_(to) {}

  void forward(const Trajectory<double>& piece, int first_step) override {
    if (loss_) loss_->forward(piece, first_step);
  }
  StateSeeds<double> backward(const Trajectory<double>& piece, int first_step) override {
    return loss_ ? loss_->backward(piece, first_step) : StateSeeds<double>{};
  }
  void passed(const Buffer<double>& q_bar, const Buffer<double>& qd_bar, int first_step) override {
    to_.steps.push_back(first_step);
    to_.position.push_back(norm_of(q_bar));
    to_.velocity.push_back(norm_of(qd_bar));
  }
  void reads(Components& q, Components& qd) const override {
    if (loss_) loss_->reads(q, qd);
  }
  void finish(Cotangents<double>& bars, Parameters& gradient, Parameters& gradient_dot) override {
    if (loss_) loss_->finish(bars, gradient, gradient_dot);
  }

 private:
  std::shared_ptr<LossObserver<double>> loss_;
  GradientOverTime& to_;
};

}  // namespace

GradientOverTime gradient_over_time(const Problem& problem, int points, int threads) {
  GradientOverTime result;
  const int steps = problem.simulation.steps;
  if (problem.loss.empty() || steps < 1) return result;
  Model model = problem.model;
  set_requires_grad(model, "*", false);
  Memory& memory = default_memory();
  const Control<double> control = initial_control<double>(problem, 1);
  RolloutOptions options;
  options.time_step = problem.simulation.time_step;
  options.steps = steps;
  options.threads = threads;
  options.keep_contact = scores_contact(problem);
  options.plan.piece = std::max(1, steps / std::max(1, points));
  options.plan.slots = (steps + options.plan.piece - 1) / options.plan.piece;
  Tape<double> tape;
  const State<double> start = place_bodies(&tape, model, initial_state<double>(problem, 1), options);
  const std::shared_ptr<LossObserver<double>> loss = observe_loss<double>(problem, control, options, 1, memory);
  const Trajectory<double> trajectory =
      rollout(tape, model, start, control, options, std::make_shared<PassedCotangents>(loss, result));
  if ((*trajectory.status)[0].stopped()) return result;
  const LossResult<double> scored = evaluate_loss<double>(problem, trajectory, control, options, &tape, loss.get());
  std::move(tape).backward(scored.seeds, Disconnected::zero);
  for (std::vector<double>* norms : {&result.position, &result.velocity}) std::ranges::reverse(*norms);
  std::ranges::reverse(result.steps);
  for (std::size_t k = 0; k < result.steps.size(); ++k) {
    const auto size = [&](std::size_t i) { return std::hypot(result.position[i], result.velocity[i]); };
    const bool known = k + 1 < result.steps.size() && size(k) > 0 && size(k + 1) > 0;
    result.growth.push_back(known ? std::pow(size(k) / size(k + 1), 1.0 / (result.steps[k + 1] - result.steps[k]))
                                  : std::numeric_limits<double>::quiet_NaN());
  }
  return result;
}

}  // namespace backdrive
