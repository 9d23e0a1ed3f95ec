#pragma once
// Minimises a problem's loss over its variables, several starts at once as worlds of one batch.
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "autodiff/problem.h"
#include "autodiff/rollout.h"
#include "engine/status.h"

namespace backdrive {

enum class Precision { float32, float64 };

struct ExecutionOptions {
  Precision precision = Precision::float64;
  int threads = 1;
  std::uint64_t seed = 0;
  int worlds = 0;  ///< optimize: number of starts, 0: what the problem says
  /// optimize: bytes that states, controls, their gradients and the optimiser's own vectors may take together; 0: any.
  std::size_t memory_budget = 0;
  std::vector<Device> devices = {Device{}};  ///< worlds are split over them; at least one
};

/// What "auto" stands for: lbfgs, or adam for more starts on devices than lbfgs takes at once. Throws Error (input) for
/// another word.
const char* chosen_method(const Problem& problem, const ExecutionOptions& options);
/// Starts that are searched from at once: on a device, all that Adam is given.
int largest_batch(const Problem& problem, const ExecutionOptions& options);
/// Starts that are evaluated at once on a device, as worlds of one batch.
int batch_worlds(const Problem& problem, const ExecutionOptions& options);

/// The memory that evaluations of a problem need, and the plan that keeps it within the budget. Throws Error (usage)
/// when no plan does.
struct ObjectiveMemory {
  RolloutSize size;
  MemoryPlan plan;
};
ObjectiveMemory plan_objective(const Problem& problem, const ExecutionOptions& options);

/// Variables as one flat list of scaled numbers, variable by variable.
struct VariableLayout {
  std::vector<int> offset;  ///< per variable
  std::vector<int> size;
  int total = 0;
};
VariableLayout variable_layout(const Problem& problem);

/// Where each start begins: [start][number], scaled, within bounds. Start 0 has no random part when there are several.
std::vector<std::vector<double>> initial_points(const Problem& problem, int starts, std::uint64_t seed);

/// The problem with the variables' values (unscaled from `x`) put in place of its own.
Problem with_values(const Problem& problem, const std::vector<double>& x);

/// Losses and their gradients with respect to the scaled variables, in many worlds at once, on one device. A world that
/// stops gets an infinite loss and a zero gradient, and its status says where.
class BatchObjective {
 public:
  virtual ~BatchObjective() = default;

  int numbers() const { return numbers_; }
  /// Where the worlds are computed.
  Memory& memory() { return memory_; }
  /// x [number][world] → loss [1][world], gradient [number][world], all in memory(). On a device this returns before it
  /// is done.
  virtual void evaluate(const Buffer<double>& x, Buffer<double>& loss, Buffer<double>& gradient) = 0;
  virtual const WorldStatuses& status() const = 0;
  /// Gradient windows of the last evaluation.
  virtual WindowCounts windows() const { return {}; }

  /// The same for points of the host: x[world] → loss[world], gradient[world]. Waits.
  void evaluate(const std::vector<std::vector<double>>& x, std::vector<double>& loss,
                std::vector<std::vector<double>>& gradient);
  /// Its two halves, so that several devices work at once.
  void post(std::span<const std::vector<double>> x);
  void collect(double* loss, std::vector<double>* gradient);

 protected:
  BatchObjective(int numbers, Memory memory)
      : numbers_(numbers), memory_(std::move(memory)), staging_(Memory::pinned(memory_.device())) {}

 private:
  int numbers_;
  Memory memory_, staging_;
  Buffer<double> x_, loss_, gradient_, staged_x_, staged_loss_, staged_gradient_;
};
std::unique_ptr<BatchObjective> make_objective(const Problem& problem, const ExecutionOptions& options,
                                               const Device& device);
/// On the first of the devices.
std::unique_ptr<BatchObjective> make_objective(const Problem& problem, const ExecutionOptions& options);

struct OptimizeProgress {
  int iteration = 0;   ///< of the best start
  int iterations = 0;  ///< at most
  double best_loss = 0;
  double gradient_norm = 0;  ///< of the best start, scaled and projected onto the bounds
  double evaluations = 0;    ///< world-evaluations so far
  double world_steps_per_second = 0;
  double seconds = 0;
  int running = 0;        ///< starts still going
  WindowCounts windows;   ///< of all evaluations so far
  std::vector<double> x;  ///< in the history of problems with contact: the best start's numbers, scaled
};

struct StartResult {
  std::vector<double> x;  ///< scaled
  double loss = 0;
  double gradient_norm = 0;
  int iterations = 0;
  std::string stopped_by;  ///< "goal", "tolerance", "iterations", "line search", "non-finite", "interrupted"
  WorldStatus status;
};

struct OptimizeResult {
  std::vector<StartResult> starts;
  int best = 0;
  Problem problem;  ///< with the best start's values filled in
  std::vector<OptimizeProgress> history;
  bool reached_goal = false;
  double seconds = 0;
};

/// `progress` is called after every iteration of the batch; returning false interrupts. Throws Error when the problem
/// has no variables or no loss.
OptimizeResult optimize(const Problem& problem, const ExecutionOptions& options,
                        const std::function<bool(const OptimizeProgress&)>& progress = {});

}  // namespace backdrive
