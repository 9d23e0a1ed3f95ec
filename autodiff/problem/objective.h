#pragma once
// The loss of a problem and its gradient with respect to its variables, in many worlds at once.
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "autodiff/problem/problem.h"
#include "autodiff/tape/rollout.h"
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
  bool keep_points = false;                  ///< optimize: rows of the history keep their point, also without contact
  std::vector<Device> devices = {Device{}};  ///< worlds are split over them; at least one
  /// Of evaluations on processors: is called on the way, with the steps times worlds since the last time, forwards and
  /// backwards; what it throws ends them.
  std::function<void(std::int64_t)> passed{};
};

/// Starts that are searched from at a time where numbers are the host's, and so worlds of a batch at most.
inline constexpr int kLargestBatch = 256;
/// Pairs of steps and changes of the gradient that L-BFGS remembers: past twenty they rarely help.
inline constexpr int kLbfgsPairs = 12;

/// What "auto" stands for: lbfgs, or adam for more starts on devices than lbfgs takes at once. Throws Error (input) for
/// another word.
OptimizeMethod chosen_method(const Problem& problem, const ExecutionOptions& options);
/// Starts that are searched from at once: on a device, all that Adam is given.
int largest_batch(const Problem& problem, const ExecutionOptions& options);
/// Starts that are evaluated at once on a device, as worlds of one batch.
int batch_worlds(const Problem& problem, const ExecutionOptions& options);

/// Vectors of all numbers that are kept for each start while it is searched from: those of the method, of the batch, of
/// the objective, and the best point.
int kept_vectors(const Problem& problem, const ExecutionOptions& options);

/// The memory that evaluations of a problem need, and the plan that keeps it within the budget. Throws Error (usage)
/// when no plan does.
struct ObjectiveMemory {
  RolloutSize size;
  MemoryPlan plan;
};
ObjectiveMemory plan_objective(const Problem& problem, const ExecutionOptions& options);
/// Steps times worlds, forwards and backwards, that ExecutionOptions::passed hears of in an evaluation of so many
/// worlds.
double evaluated_steps(const ObjectiveMemory& memory, int worlds);

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

}  // namespace backdrive
