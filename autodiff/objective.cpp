// The loss of a batch of starts and its gradient: one rollout and one backward, each start a world.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "autodiff/loss.h"
#include "autodiff/search.h"
#include "autodiff/variables.h"
#include "engine/error.h"
#include "models/builder.h"

namespace backdrive {
namespace {

/// T: the number type of the rollout. Buffers come from one pool and have the same sizes from
/// evaluation to evaluation.
template <class T>
class RolloutObjective final : public BatchObjective {
 public:
  RolloutObjective(const Problem& problem, const ExecutionOptions& options)
      : problem_(problem), entries_(variable_entries(problem)), base_(problem.model), scratch_(problem.model) {
    const VariableLayout layout = variable_layout(problem);
    total_ = layout.total;
    rollout_options_.time_step = problem.simulation.time_step;
    rollout_options_.steps = problem.simulation.steps;
    rollout_options_.threads = options.threads;
    rollout_options_.window = problem.optimize.window;
    rollout_options_.plan = plan_objective(problem, options).plan;
    for (const Field& field : fields()) {
      Parameter& parameter = field.of(problem_.model);
      for (int item = 0; item < parameter.items(); ++item) parameter.requires_grad(item, false);
    }
    for (const VariableEntry& entry : entries_) {
      has_control_ = has_control_ || entry.kind == VariableKind::control;
      if (!entry.chart) continue;
      has_parameters_ = true;
      const ParameterChart& chart = *entry.chart;
      chart.field().of(problem_.model).requires_grad(chart.item(), true);
      chart.write(chart.field().of(base_), chart.start().data());
    }
    has_control_ = has_control_ || !problem.controls.empty();
  }

  void evaluate(const std::vector<std::vector<double>>& x, std::vector<double>& loss,
                std::vector<std::vector<double>>& gradient) override {
    const int worlds = static_cast<int>(x.size());
    loss.assign(worlds, std::numeric_limits<double>::infinity());
    gradient.resize(worlds);
    for (std::vector<double>& g : gradient) g.assign(total_, 0.0);
    status_.assign(worlds, WorldStatus{});
    if (worlds == 0) return;
    for (const std::vector<double>& point : x) {
      if (static_cast<int>(point.size()) != total_) {
        usage_error("a point of " + std::to_string(point.size()) + " numbers, expected " + std::to_string(total_));
      }
    }
    prepare(worlds);
    for (const VariableEntry& entry : entries_) write(entry, x);
    if (has_parameters_) write_parameters(x);

    Tape<T> tape(memory_);
    std::shared_ptr<LossObserver<T>> observer;
    if (!rollout_options_.plan.keeps_all()) observer = observe_loss<T>(problem_, rollout_options_, worlds, memory_);
    const Trajectory<T> trajectory = rollout(tape, problem_.model, state_, control_, rollout_options_, observer);
    const LossResult<T> result = evaluate_loss(problem_, trajectory, control_, rollout_options_, &tape, observer.get());
    status_ = *trajectory.status;
    const Gradients<T> gradients = std::move(tape).backward(result.seeds);
    windows_ = gradients.windows();
    for (const VariableEntry& entry : entries_) read(entry, x, gradients, gradient);
    for (int w = 0; w < worlds; ++w) finish(w, static_cast<double>(result.total(0, w)), loss, gradient);
  }

  const WorldStatuses& status() const override { return status_; }
  WindowCounts windows() const override { return windows_; }

 private:
  /// Buffers and per-world parameters for so many worlds.
  void prepare(int worlds) {
    if (worlds == worlds_) return;
    worlds_ = worlds;
    state_ = initial_state<T>(problem_, worlds, memory_);
    if (has_control_) control_ = initial_control<T>(problem_, worlds, memory_);
    possible_.assign(worlds, true);
    for (const VariableEntry& entry : entries_) {
      if (entry.chart) entry.chart->field().of(problem_.model).spread(worlds);
    }
  }

  void write(const VariableEntry& entry, const std::vector<std::vector<double>>& x) {
    if (entry.kind == VariableKind::control) {
      const int nu = problem_.model.topology.nu;
      T* rows = control_.u.write(0);
      for (size_t step = 0; step < entry.knots.size(); ++step) {
        const KnotWeights& k = entry.knots[step];
        const double first = k.first_weight * entry.scale, second = k.second_weight * entry.scale;
        T* row = rows + (step * nu + entry.row) * control_.u.stride();
        for (int w = 0; w < worlds_; ++w) {
          const double* knots = x[w].data() + entry.offset;
          row[w] = static_cast<T>(first * knots[k.first] + second * knots[k.second]);
        }
      }
    } else if (!entry.chart) {
      Buffer<T>& buffer = entry.kind == VariableKind::initial_position ? state_.q : state_.qd;
      T* row = buffer.write(entry.row);
      for (int w = 0; w < worlds_; ++w) row[w] = static_cast<T>(x[w][entry.offset] * entry.scale);
    }
  }

  /// Numbers of a parameter variable in one world, not scaled.
  static std::array<double, 6> values_of(const VariableEntry& entry, const std::vector<double>& x) {
    std::array<double, 6> values{};
    for (int k = 0; k < entry.size; ++k) values[k] = x[entry.offset + k] * entry.scale;
    return values;
  }

  /// Each world's parameters. A model that cannot be (an inertia no body has, a limit below the
  /// other) is replaced by the initial one, and its world counts as stopped.
  void write_parameters(const std::vector<std::vector<double>>& x) {
    for (int w = 0; w < worlds_; ++w) {
      for (const VariableEntry& entry : entries_) {
        if (entry.chart) {
          entry.chart->write(entry.chart->field().of(scratch_), values_of(entry, x[w]).data());
        }
      }
      possible_[w] = is_possible(scratch_);
      const Model& source = possible_[w] ? scratch_ : base_;
      for (const VariableEntry& entry : entries_) {
        if (!entry.chart) continue;
        const Parameter& from = entry.chart->field().in(source);
        Parameter& to = entry.chart->field().of(problem_.model);
        const int item = entry.chart->item();
        for (int c = 0; c < to.components(); ++c) to.at(item, c, w) = from(item, c);
      }
    }
    refresh_features(problem_.model);
  }

  static bool is_possible(Model& model) {
    try {
      validate(model);
      return true;
    } catch (const ModelError&) {
      return false;
    }
  }

  void read(const VariableEntry& entry, const std::vector<std::vector<double>>& x, const Gradients<T>& gradients,
            std::vector<std::vector<double>>& gradient) const {
    if (entry.kind == VariableKind::control) {
      pull_control(entry, gradients.of(control_.u), problem_.model.topology.nu, gradient);
    } else if (entry.chart) {
      const Parameter& field_gradient = entry.chart->field().in(gradients.parameters());
      for (int w = 0; w < worlds_; ++w) {
        double tangents[6];
        for (int c = 0; c < field_gradient.components(); ++c) {
          tangents[c] = field_gradient(entry.chart->item(), c, w);
        }
        entry.chart->pull(values_of(entry, x[w]).data(), tangents, gradient[w].data() + entry.offset);
      }
    } else {
      const bool position = entry.kind == VariableKind::initial_position;
      const Buffer<T>& bar = gradients.of(position ? state_.q : state_.qd);
      for (int w = 0; w < worlds_; ++w) {
        gradient[w][entry.offset] = static_cast<double>(bar(entry.row, w));
      }
    }
    for (std::vector<double>& g : gradient) {
      for (int k = 0; k < entry.size; ++k) g[entry.offset + k] *= entry.scale;
    }
  }

  /// A world that stopped, or whose numbers are not finite, tells the optimiser only that.
  void finish(int w, double total, std::vector<double>& loss, std::vector<std::vector<double>>& gradient) const {
    bool finite = possible_[w] && !status_[w].stopped() && std::isfinite(total);
    for (const double g : gradient[w]) finite = finite && std::isfinite(g);
    if (finite) {
      loss[w] = total;
    } else {
      gradient[w].assign(total_, 0.0);
    }
  }

  Problem problem_;  ///< with parameters per world where they vary
  std::vector<VariableEntry> entries_;
  Model base_;     ///< with the parameters at their initial values
  Model scratch_;  ///< one world's parameters, to be checked
  int total_ = 0, worlds_ = 0;
  bool has_control_ = false, has_parameters_ = false;
  RolloutOptions rollout_options_;
  Memory memory_ = default_memory();  ///< the same pool, so that its counters tell
  State<T> state_;
  Control<T> control_;
  std::vector<bool> possible_;
  WorldStatuses status_;
  WindowCounts windows_;
};

}  // namespace

int batch_worlds(const Problem& problem, const ExecutionOptions& options) {
  const int starts = options.worlds > 0 ? options.worlds : problem.optimize.starts;
  return problem.optimize.method == "lbfgs" ? std::min(starts, kLargestBatch) : starts;
}

ObjectiveMemory plan_objective(const Problem& problem, const ExecutionOptions& options) {
  const Topology& t = problem.model.topology;
  RolloutSize size;
  size.steps = problem.simulation.steps;
  size.worlds = batch_worlds(problem, options);
  size.number_bytes = options.precision == Precision::float32 ? 4 : 8;
  size.state_rows = t.nq + t.nv;
  const auto is_control = [](const auto& x) { return x.is_control(); };
  const bool has_control = !problem.controls.empty() || std::ranges::any_of(problem.variables, is_control);
  size.control_rows = has_control ? t.nu : 0;
  const GradientWindow& window = problem.optimize.window;
  if (window.clip > 0) size.window = window.steps > 0 ? window.steps : size.steps;
  std::set<int> bodies;
  for (const LossTerm& term : problem.loss) {
    if (!term.is_on_the_way()) continue;
    if (term.is_pose()) bodies.insert(term.index);
    size.seed_rows = size.state_rows;
  }
  if (!bodies.empty()) size.seed_rows += 2 * 12 * static_cast<int>(bodies.size()) + t.nq;
  // Cotangents of the controls that a loss of theirs starts from.
  if (std::ranges::any_of(problem.loss, is_control)) size.control_copies = 3;
  size.fixed_bytes = static_cast<std::size_t>(variable_layout(problem).total) * static_cast<std::size_t>(size.worlds) *
                     sizeof(double) * kOptimizerVectors;
  ObjectiveMemory memory{size, {}};
  if (options.memory_budget > 0) memory.plan = plan_memory(size, options.memory_budget);
  return memory;
}

std::unique_ptr<BatchObjective> make_objective(const Problem& problem, const ExecutionOptions& options) {
  if (options.precision == Precision::float32) {
    return std::make_unique<RolloutObjective<float>>(problem, options);
  }
  return std::make_unique<RolloutObjective<double>>(problem, options);
}

}  // namespace backdrive
