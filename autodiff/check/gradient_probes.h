#pragma once
// What a gradient check varies: one number or direction at a time, in worlds of a batch.
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autodiff/check/gradient_check.h"
#include "autodiff/check/step_defect.h"
#include "autodiff/problem/variables.h"

namespace backdrive {

/// One direction in which the inputs may be moved.
struct Probe {
  enum class Kind { position, velocity, control, all_controls, parameter };
  Kind kind;
  int row = 0;        ///< of q, qd or the control
  int chart = -1;     ///< of a parameter
  int component = 0;  ///< in the chart
  double scale = 1;   ///< size of such numbers, in which steps are measured
  double unit = 0;    ///< `scale` of the variable that varies this number; 0: none has one
};

/// Probes that share a row of the report.
struct ProbeGroup {
  std::string name;
  std::string_view unit;
  int total = 0;
  std::vector<Probe> probes;
  std::vector<int> index;        ///< what each probe is called in the report
  const char* unused = nullptr;  ///< why there are no probes
  FieldSelection field{};        ///< of an unused parameter
};

/// Losses and gradients of a batch: loss[world], gradient[world][probe].
struct ProbedGradients {
  std::vector<double> loss;
  std::vector<std::vector<double>> gradient;
  std::vector<double> by_controls;  ///< per world: root mean square of the gradient by all controls
  Parameters parameters;
};

/// A random number in [0, 1), the same on every platform.
inline double unit_interval(std::mt19937_64& generator) {
  return static_cast<double>(generator() >> 11) * 0x1p-53;
}

class ProbedProblem {
 public:
  ProbedProblem(const Problem& problem, const GradientCheckOptions& options);

  const std::vector<ProbeGroup>& groups() const { return groups_; }

  /// The adjoint's gradients as a user gets them: one world, uniform parameters. T is the number type of the rollout,
  /// float or double. Throws Error (non_finite) when the world stops.
  template <class T>
  ProbedGradients gradients() const;
  /// The same in `worlds` worlds with parameters per world, in all of which but the first every
  /// input is disturbed by a random amount up to relative·max(1, |x|) (relative·|x| for
  /// parameters).
  template <class T>
  ProbedGradients disturbed_gradients(int worlds, double relative) const;

  struct Step {
    Probe probe;
    double amount;
  };
  /// Losses after moving the inputs; NaN where the world stops.
  std::vector<double> losses(std::span<const Step> steps) const;
  /// Whether the number may be lower by so much.
  bool may_fall(const Probe& probe, double amount) const;
  /// How far steps in dual numbers end from those in float64 (step_defect.h).
  double step_defect() const { return backdrive::step_defect(problem_, options_); }
  /// Exact derivatives of the loss along the probes.
  std::vector<double> derivatives(std::span<const Probe> probes) const;
  /// How far each of these moves under a disturbance as that of disturbed_gradients(): so many worlds for each probe.
  std::vector<double> derivative_rounding(std::span<const Probe> probes, int worlds, double relative) const;

 private:
  template <class T>
  struct Batch;
  template <class T>
  Batch<T> batch(std::span<const Step> steps) const;
  /// Every input but those of world 0 by a random amount. Parameters get a value for each world.
  template <class T>
  void disturb(Batch<T>& batch, double relative) const;
  std::vector<double> derivatives_of(const Batch<Dual<double>>& batch) const;
  /// Moves a position by an amount, where T is dual its dot; a row of a quaternion turns it.
  template <class T>
  void move_position(Buffer<T>& q, int row, int world, double amount) const;
  void add_state_groups();
  void add_control_groups(int sample, std::uint64_t seed);
  void add_parameter_groups();
  /// Probes of what variables vary get their scales.
  void add_units(const Problem& problem);
  /// Tells that so many more rollouts are done.
  void tell(std::size_t rollouts) const;
  double parameter_scale(const Field& field, int item) const;
  template <class T>
  ProbedGradients gradients_of(Batch<T>& batch) const;

  Problem problem_;
  Memory memory_;
  RolloutOptions options_;
  std::uint64_t seed_;
  std::function<void(long long, long long)> progress_;
  long long expected_ = 0;  ///< rollouts
  mutable long long done_ = 0;
  std::vector<ParameterChart> charts_;
  std::vector<double> direction_;  ///< of all controls, unit length
  std::vector<ProbeGroup> groups_;
};

}  // namespace backdrive
