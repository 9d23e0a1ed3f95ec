// The loss of a batch of starts and its gradient: one rollout and one backward, each start a world.
#include <algorithm>
#include <limits>
#include <set>

#include "autodiff/problem/loss.h"
#include "autodiff/problem/objective.h"
#include "autodiff/problem/objective_kernels.h"
#include "autodiff/problem/variables.h"
#include "engine/error.h"
#include "engine/kernel_array.h"
#include "engine/launch.h"
#include "integrators/rollout/arguments.h"
#include "models/builder.h"

namespace backdrive {
namespace {

/// Threads of a device that look for joints that move no inertia, at most.
constexpr int kLanes = 1024;

/// T: the number type of the rollout. Buffers come from one pool and have the same sizes from evaluation to evaluation.
template <class T>
class RolloutObjective final : public BatchObjective {
 public:
  RolloutObjective(const Problem& problem, const ExecutionOptions& options, const Device& device)
      : BatchObjective(variable_layout(problem).total, default_memory(device)),
        problem_(problem),
        entries_(variable_entries(problem)),
        ties_(tie_products(problem, variable_layout(problem))) {
    rollout_options_.time_step = problem.simulation.time_step;
    rollout_options_.steps = problem.simulation.steps;
    rollout_options_.keep_contact = scores_contact(problem);
    rollout_options_.threads = options.threads;
    rollout_options_.window = problem.optimize.window;
    rollout_options_.checked = true;  // impossible points are found by write_parameters()
    rollout_options_.plan = plan_objective(problem, options).plan;
    rollout_options_.passed = options.passed;
    for (const Field& field : fields()) {
      Parameter& parameter = field.of(problem_.model);
      for (int item = 0; item < parameter.items(); ++item) parameter.requires_grad(item, false);
    }
    for (const VariableEntry& entry : entries_) {
      has_control_ = has_control_ || entry.kind == VariableKind::control;
      if (!entry.chart) continue;
      const ParameterChart& chart = *entry.chart;
      Parameter& parameter = chart.field().of(problem_.model);
      parameter.requires_grad(chart.item(), true);
      chart.write(parameter, chart.start().data());
      if (std::ranges::find(own_fields_, &chart.field()) == own_fields_.end()) own_fields_.push_back(&chart.field());
    }
    // Once, for all values to come: what is varied starts from finite limits and counts as present.
    if (has_parameters()) refresh_features(problem_.model);
    has_control_ = has_control_ || !problem.controls.empty();
    make_kernels();
  }

  void evaluate(const Buffer<double>& moved, Buffer<double>& loss, Buffer<double>& gradient) override {
    const int worlds = moved.worlds();
    prepare(worlds);
    if (!ties_.products.empty()) compute(moved);
    const Buffer<double>& x = ties_.products.empty() ? moved : computed_;
    write(x);
    if (has_parameters()) write_parameters(x);

    Tape<T> tape(memory());
    std::shared_ptr<LossObserver<T>> observer;
    if (!rollout_options_.plan.keeps_all())
      observer = observe_loss<T>(problem_, control_, rollout_options_, worlds, memory());
    const State<T> start = place_bodies(&tape, problem_.model, state_, rollout_options_);
    const Trajectory<T> trajectory = rollout(tape, problem_.model, start, control_, rollout_options_, observer);
    const LossResult<T> result = evaluate_loss(problem_, trajectory, control_, rollout_options_, &tape, observer.get());
    status_ = *trajectory.status;
    // That the loss can depend on every variable is known of all of them together (variable_entries).
    const Gradients<T> gradients = std::move(tape).backward(result.seeds, Disconnected::zero);
    windows_ = gradients.window_tally();
    Buffer<double>& pulled = pulled_.empty() ? gradient : pulled_;
    read(gradients, pulled);
    if (has_parameters()) read_parameters(x, gradients, pulled);
    if (!pulled_.empty()) {
      const AddTied add{tied_table_.data(),
                        static_cast<int>(tied_.size()),
                        numbers(),
                        pulled.address(),
                        gradient.write_address(),
                        static_cast<std::size_t>(pulled.stride()),
                        static_cast<std::size_t>(gradient.stride())};
      for_each_index(memory().backend(), 1, worlds, add);
    }
    if (!ties_.products.empty()) {
      const AddComputed add{product_table_.data(),
                            factor_table_.data(),
                            product_rows_.data(),
                            static_cast<int>(ties_.products.size()),
                            x.address(),
                            pulled.address(),
                            gradient.write_address(),
                            static_cast<std::size_t>(x.stride()),
                            static_cast<std::size_t>(pulled.stride()),
                            static_cast<std::size_t>(gradient.stride())};
      for_each_index(memory().backend(), 1, worlds, add);
    }
    const FinishWorld<T> finish{result.total.address(),
                                status_.address(),
                                has_parameters() ? possible_.address() : nullptr,
                                loss.write_address(),
                                gradient.write_address(),
                                numbers(),
                                static_cast<std::size_t>(gradient.stride())};
    for_each_index(memory().backend(), 1, worlds, finish);
  }

  const WorldStatuses& status() const override { return status_; }
  WindowCounts windows() const override { return windows_.total(); }

 private:
  bool has_parameters() const { return !own_fields_.empty(); }

  /// What the kernels read of states and controls. Knots stand one variable after the other.
  void make_kernels() {
    for (const VariableEntry& entry : entries_) knots_.insert(knots_.end(), entry.knots.begin(), entry.knots.end());
    knot_table_ = KernelArray<KnotWeights>(knots_, memory());
    const KnotWeights* knots = knot_table_.data();
    int rows = numbers();
    for (std::size_t v = 0; v < entries_.size(); ++v) {
      const VariableEntry& entry = entries_[v];
      int pulled = entry.offset;
      if (problem_.variables[v].is_tied()) {
        pulled = rows;
        rows += entry.size;
        if (!problem_.variables[v].is_expression()) tied_.push_back({entry.offset, pulled, entry.size});
      }
      pulled_rows_.push_back(pulled);
      if (entry.chart) continue;
      variables_.push_back({entry.kind, entry.offset, entry.size, entry.row, entry.scale, entry.shift, knots, pulled});
      knots += entry.knots.size();
    }
    gradient_rows_ = rows;
    tied_table_ = KernelArray<TiedNumbers>(tied_, memory());
    for (const TieProduct& product : ties_.products) row_of_product_.push_back(pulled_rows_[product.variable]);
    product_table_ = KernelArray<TieProduct>(ties_.products, memory());
    factor_table_ = KernelArray<TieFactor>(ties_.factors, memory());
    product_rows_ = KernelArray<int>(row_of_product_, memory());
    variable_table_ = KernelArray<VariableKernel>(variables_, memory());
  }

  /// Buffers for so many worlds.
  void prepare(int worlds) {
    if (worlds == worlds_) return;
    worlds_ = worlds;
    state_ = initial_state<T>(problem_, worlds, memory());
    if (has_control_) control_ = initial_control<T>(problem_, worlds, memory());
    if (gradient_rows_ > numbers()) pulled_ = Buffer<double>(memory(), gradient_rows_, worlds);
    if (!ties_.products.empty()) {
      computed_ = Buffer<double>(memory(), numbers() + variable_layout(problem_).computed, worlds);
    }
    if (has_parameters()) prepare_parameters();
  }

  void prepare_parameters() {
    parameters_ = std::make_shared<WorldParameters>(problem_.model, own_fields_, worlds_, memory());
    rollout_options_.parameters = parameters_;
    possible_ = Buffer<int>(memory(), 1, worlds_);
    const int links = static_cast<int>(problem_.model.topology.links.size());
    const int lanes = memory().backend() ? std::min(worlds_, kLanes) : 1;
    scratch_ = Buffer<double>::uninitialized(memory(), links * kInertiaScratch, lanes);
    parameter_variables_.clear();
    for (std::size_t v = 0; v < entries_.size(); ++v) {
      const VariableEntry& entry = entries_[v];
      if (!entry.chart) continue;
      const Field& field = entry.chart->field();
      const int item = entry.chart->item();
      const int components = used_components(problem_.model, field, item);
      parameter_variables_.push_back({entry.chart->chart(), entry.offset, parameters_->value_row(field, item),
                                      parameters_->gradient_row(field, item), components, rule_of(field), entry.scale,
                                      entry.shift, pulled_rows_[v]});
    }
    parameter_table_ = KernelArray<ParameterKernel>(parameter_variables_, memory());
  }

  void compute(const Buffer<double>& x) {
    const ComputeNumbers kernel{product_table_.data(),
                                factor_table_.data(),
                                static_cast<int>(ties_.products.size()),
                                numbers(),
                                computed_.rows(),
                                x.address(),
                                computed_.write_address(),
                                static_cast<std::size_t>(x.stride()),
                                static_cast<std::size_t>(computed_.stride())};
    for_each_index(memory().backend(), 1, worlds_, kernel);
  }

  void write(const Buffer<double>& x) {
    if (variables_.empty()) return;
    const WriteVariables<T> kernel{variable_table_.data(),
                                   static_cast<int>(variables_.size()),
                                   worlds_,
                                   problem_.model.topology.nu,
                                   static_cast<std::size_t>(state_.q.stride()),
                                   x.address(),
                                   static_cast<std::size_t>(x.stride()),
                                   state_.q.write_address(),
                                   state_.qd.write_address(),
                                   has_control_ ? control_.u.write_address() : nullptr};
    const std::int64_t steps = has_control_ ? rollout_options_.steps : 1;
    for_each_index(memory().backend(), 1, std::int64_t{steps} * worlds_, kernel);
  }

  /// Each world's parameters. One whose model cannot be counts as stopped.
  void write_parameters(const Buffer<double>& x) {
    Buffer<double>& numbers = parameters_->numbers();
    const ParameterRows rows{parameter_table_.data(), static_cast<int>(parameter_variables_.size()),
                             numbers.write_address(), static_cast<std::size_t>(numbers.stride())};
    const ModelStructure& structure = parameters_->structure();
    const ParametersView& view = parameters_->view();
    const WriteParameters write{rows,
                                structure,
                                view,
                                static_cast<int>(problem_.model.joint_names.size()),
                                x.address(),
                                static_cast<std::size_t>(x.stride()),
                                possible_.write_address()};
    for_each_index(memory().backend(), 1, worlds_, write);
    const int lanes = scratch_.worlds();
    const DecideIdleJoints decide{rows,
                                  structure,
                                  view,
                                  worlds_,
                                  lanes,
                                  scratch_.write_address(),
                                  static_cast<std::size_t>(scratch_.stride()),
                                  possible_.write_address()};
    for_each_index(memory().backend(), 1, lanes, decide);
  }

  void read(const Gradients<T>& gradients, Buffer<double>& gradient) {
    const auto bar = [&](VariableKind kind, const Buffer<T>& buffer) -> const T* {
      const auto asks = [&](const VariableEntry& entry) { return entry.kind == kind; };
      return std::ranges::any_of(entries_, asks) ? gradients.of(buffer).address() : nullptr;
    };
    const PullVariables<T> kernel{variable_table_.data(),
                                  worlds_,
                                  problem_.model.topology.nu,
                                  rollout_options_.steps,
                                  static_cast<std::size_t>(state_.q.stride()),
                                  bar(VariableKind::initial_position, state_.q),
                                  bar(VariableKind::initial_velocity, state_.qd),
                                  bar(VariableKind::control, control_.u),
                                  gradient.write_address(),
                                  static_cast<std::size_t>(gradient.stride())};
    for_each_index(memory().backend(), 1, std::int64_t{worlds_} * static_cast<int>(variables_.size()), kernel);
  }

  void read_parameters(const Buffer<double>& x, const Gradients<T>& gradients, Buffer<double>& gradient) {
    const Buffer<double>& bar = gradients.of_worlds();
    const PullParameters kernel{parameter_table_.data(),
                                worlds_,
                                x.address(),
                                static_cast<std::size_t>(x.stride()),
                                bar.address(),
                                static_cast<std::size_t>(bar.stride()),
                                gradient.write_address()};
    const auto count = static_cast<std::int64_t>(parameter_variables_.size());
    for_each_index(memory().backend(), 1, worlds_ * count, kernel);
  }

  Problem problem_;  ///< with the variables of parameters at their initial values
  std::vector<VariableEntry> entries_;
  std::vector<KnotWeights> knots_;
  std::vector<VariableKernel> variables_;  ///< of states and controls
  std::vector<TiedNumbers> tied_;
  TieProducts ties_;
  std::vector<int> row_of_product_;  ///< first of its variable's gradient
  int gradient_rows_ = 0;
  std::vector<int> pulled_rows_;  ///< of each variable's gradient
  std::vector<ParameterKernel> parameter_variables_;
  KernelArray<KnotWeights> knot_table_;
  KernelArray<VariableKernel> variable_table_;
  KernelArray<TiedNumbers> tied_table_;
  KernelArray<TieProduct> product_table_;
  KernelArray<TieFactor> factor_table_;
  KernelArray<int> product_rows_;
  Buffer<double> computed_;  ///< x with what is computed from it; empty: nothing is
  Buffer<double> pulled_;    ///< gradients before those of tied variables are added; empty: nothing is tied
  KernelArray<ParameterKernel> parameter_table_;
  std::vector<const Field*> own_fields_;  ///< with values for every world
  std::shared_ptr<WorldParameters> parameters_;
  int worlds_ = 0;
  bool has_control_ = false;
  RolloutOptions rollout_options_;
  State<T> state_;
  Control<T> control_;
  Buffer<int> possible_;    ///< Possible
  Buffer<double> scratch_;  ///< InertiaScratch, a column for each lane
  WorldStatuses status_;
  WindowTally windows_;
};

}  // namespace

const char* to_string(OptimizeMethod method) {
  switch (method) {
    case OptimizeMethod::automatic:
      return "auto";
    case OptimizeMethod::lbfgs:
      return "lbfgs";
    case OptimizeMethod::adam:
      return "adam";
  }
  return "";
}

OptimizeMethod chosen_method(const Problem& problem, const ExecutionOptions& options) {
  if (problem.optimize.method != OptimizeMethod::automatic) return problem.optimize.method;
  const int starts = options.worlds > 0 ? options.worlds : problem.optimize.starts;
  const bool many = starts > kLargestBatch && !options.devices.front().is_cpu();
  return many ? OptimizeMethod::adam : OptimizeMethod::lbfgs;
}

int largest_batch(const Problem& problem, const ExecutionOptions& options) {
  const bool on_host = options.devices.front().is_cpu();
  const bool adam = chosen_method(problem, options) == OptimizeMethod::adam;
  return adam && !on_host ? std::numeric_limits<int>::max() : kLargestBatch;
}

int batch_worlds(const Problem& problem, const ExecutionOptions& options) {
  const int starts = options.worlds > 0 ? options.worlds : problem.optimize.starts;
  const int devices = static_cast<int>(options.devices.size());
  return (std::min(starts, largest_batch(problem, options)) + devices - 1) / devices;
}

int kept_vectors(const Problem& problem, const ExecutionOptions& options) {
  constexpr int best = 1;
  // Of Adam (adam.cpp): six vectors, twice when those of starts that have stopped are left out, the gradient, and one
  // on its way from or to the host.
  if (chosen_method(problem, options) == OptimizeMethod::adam) return best + 2 * 6 + 1 + 1;
  // Of L-BFGS (LbfgsStart): pairs; x, gradient, both where the line began, direction, point. Of the batch: x, gradient.
  // Of the objective: both, and both on their way.
  return best + 2 * kLbfgsPairs + 6 + 2 + 4;
}

ObjectiveMemory plan_objective(const Problem& problem, const ExecutionOptions& options) {
  const Topology& t = problem.model.topology;
  RolloutSize size;
  size.steps = problem.simulation.steps;
  size.worlds = batch_worlds(problem, options);
  size.number_bytes = options.precision == Precision::float32 ? 4 : 8;
  const int pairs = static_cast<int>(t.contact_pairs.size());
  size.state_rows = t.nq + t.nv;
  // The velocities that led to them, ways, and whether something acted.
  if (pairs > 0) size.state_rows += t.nv + t.way_count + 1;
  if (scores_contact(problem)) size.state_rows += 2 * pairs * kContactRows;
  const auto is_control = [](const auto& x) { return x.is_control(); };
  const auto reads_control = [](const LossTerm& term) { return term.is_control() || term.is_effort(); };
  const bool has_control = !problem.controls.empty() || std::ranges::any_of(problem.variables, is_control);
  size.control_rows = has_control ? t.nu : 0;
  const GradientWindow& window = problem.optimize.window;
  if (window.clip > 0) size.window = window.steps > 0 ? window.steps : size.steps;
  std::set<int> bodies;
  int records = 0;
  bool motions = false;
  for (const LossTerm& term : problem.loss) {
    if (!term.is_on_the_way()) continue;
    if (!term.record.empty()) ++records;
    if (term.is_of_body()) bodies.insert(term.index);
    if (term.other >= 0) bodies.insert(term.other);
    motions = motions || term.is_motion();
    size.seed_rows = size.state_rows;
  }
  const int rows = motions ? kMotionRows : kPoseRows;
  if (const auto efforts = std::ranges::count_if(problem.loss, &LossTerm::is_effort); efforts > 0) {
    size.seed_rows += 2 * static_cast<int>(efforts) + size.state_rows;
  }
  if (!bodies.empty()) size.seed_rows += 2 * rows * static_cast<int>(bodies.size()) + t.nq + (motions ? t.nv : 0);
  // Recorded targets, at most nine numbers a step for all worlds together.
  size.seed_rows += (9 * records + size.worlds - 1) / size.worlds;
  // Cotangents of the controls that a loss of theirs starts from.
  if (std::ranges::any_of(problem.loss, reads_control)) size.control_copies = 3;
  size.fixed_bytes = static_cast<std::size_t>(variable_layout(problem).total) * static_cast<std::size_t>(size.worlds) *
                     sizeof(double) * kept_vectors(problem, options);
  ObjectiveMemory memory{size, {}};
  if (options.memory_budget > 0) memory.plan = plan_memory(size, options.memory_budget);
  if (memory.plan.keeps_all() && options.devices.front().is_cpu()) memory.plan = plan_in_pieces(size);
  return memory;
}

double evaluated_steps(const ObjectiveMemory& memory, int worlds) {
  return (2 + cost_of(memory.size, memory.plan).recomputed) * memory.size.steps * static_cast<double>(worlds);
}

std::unique_ptr<BatchObjective> make_objective(const Problem& problem, const ExecutionOptions& options,
                                               const Device& device) {
  if (options.precision == Precision::float32) {
    return std::make_unique<RolloutObjective<float>>(problem, options, device);
  }
  return std::make_unique<RolloutObjective<double>>(problem, options, device);
}

std::unique_ptr<BatchObjective> make_objective(const Problem& problem, const ExecutionOptions& options) {
  return make_objective(problem, options, options.devices.front());
}

void BatchObjective::post(std::span<const std::vector<double>> x) {
  const int worlds = static_cast<int>(x.size());
  for (const std::vector<double>& point : x) {
    if (static_cast<int>(point.size()) != numbers_) {
      usage_error("a point of " + std::to_string(point.size()) + " numbers, expected " + std::to_string(numbers_));
    }
  }
  DeviceBackend* const backend = memory_.backend();
  if (worlds != x_.worlds()) {
    x_ = Buffer<double>(memory_, numbers_, worlds);
    loss_ = Buffer<double>(memory_, 1, worlds);
    gradient_ = Buffer<double>(memory_, numbers_, worlds);
    if (backend) {
      staged_x_ = Buffer<double>(staging_, numbers_, worlds);
      staged_loss_ = Buffer<double>(staging_, 1, worlds);
      staged_gradient_ = Buffer<double>(staging_, numbers_, worlds);
    }
  }
  if (worlds == 0) return;
  Buffer<double>& here = backend ? staged_x_ : x_;
  double* const rows = here.write();
  for (int w = 0; w < worlds; ++w) {
    for (int i = 0; i < numbers_; ++i) rows[static_cast<std::size_t>(i) * here.stride() + w] = x[w][i];
  }
  if (backend) x_.copy_from(staged_x_);
  evaluate(x_, loss_, gradient_);
  if (!backend) return;
  staged_loss_.copy_from(loss_);
  staged_gradient_.copy_from(gradient_);
}

void BatchObjective::collect(double* loss, std::vector<double>* gradient) {
  DeviceBackend* const backend = memory_.backend();
  if (backend) backend->synchronize();
  const Buffer<double>&from = backend ? staged_loss_ : loss_, &g = backend ? staged_gradient_ : gradient_;
  for (int w = 0; w < x_.worlds(); ++w) {
    loss[w] = from(0, w);
    gradient[w].resize(numbers_);
    for (int i = 0; i < numbers_; ++i) gradient[w][i] = g(i, w);
  }
}

void BatchObjective::evaluate(const std::vector<std::vector<double>>& x, std::vector<double>& loss,
                              std::vector<std::vector<double>>& gradient) {
  post(x);
  loss.resize(x.size());
  gradient.resize(x.size());
  collect(loss.data(), gradient.data());
}

}  // namespace backdrive
