#pragma once
// Between the numbers that an optimiser moves, [number][world] in float64, and what a rollout reads and leaves.
#include <cmath>
#include <cstdint>
#include <limits>

#include "autodiff/problem/loss.h"
#include "autodiff/problem/variables.h"
#include "engine/real.h"
#include "engine/status.h"
#include "models/model_validity.h"

namespace backdrive {

/// A variable of the state or of the controls, as kernels read it.
struct VariableKernel {
  VariableKind kind;
  int offset;                ///< of its first number
  int size;                  ///< numbers
  int row;                   ///< of q, of qd, or in one step of the control
  double scale, shift;       ///< value = number · scale + shift
  const KnotWeights* knots;  ///< per step; controls
  int pulled;                ///< first row of its gradient
};

/// Puts the numbers into states and controls. Index step·worlds + world; the initial state belongs to step 0.
template <class T>
struct WriteVariables {
  const VariableKernel* variables;
  int count, worlds, nu;
  std::size_t stride;         ///< of the rollout's buffers
  const double* x;            ///< [number][world]
  std::size_t number_stride;  ///< of x
  T *q, *qd, *control;

  BACKDRIVE_HD void operator()(std::int64_t index) const {
    const std::int64_t step = index / worlds, world = index % worlds;
    for (int v = 0; v < count; ++v) {
      const VariableKernel& variable = variables[v];
      const double* const numbers = x + variable.offset * number_stride + world;
      if (variable.kind == VariableKind::control) {
        const KnotWeights& k = variable.knots[step];
        const double first = k.first_weight * variable.scale, second = k.second_weight * variable.scale;
        control[(step * nu + variable.row) * stride + world] =
            static_cast<T>(first * numbers[k.first * number_stride] + second * numbers[k.second * number_stride] +
                           (k.first_weight + k.second_weight) * variable.shift);
      } else if (step == 0) {
        T* const rows = variable.kind == VariableKind::initial_position ? q : qd;
        rows[variable.row * stride + world] = static_cast<T>(numbers[0] * variable.scale + variable.shift);
      }
    }
  }
};

/// The gradient of the numbers from that of states and controls, by variable and world: index variable·worlds + world.
template <class T>
struct PullVariables {
  const VariableKernel* variables;
  int worlds, nu, steps;
  std::size_t stride;
  const T *q_bar, *qd_bar, *control_bar;
  double* gradient;  ///< [number][world]
  std::size_t number_stride;

  BACKDRIVE_HD void operator()(std::int64_t index) const {
    const VariableKernel& variable = variables[index / worlds];
    const std::int64_t world = index % worlds;
    double* const numbers = gradient + variable.pulled * number_stride + world;
    if (variable.kind == VariableKind::control) {
      for (int k = 0; k < variable.size; ++k) numbers[k * number_stride] = 0;
      for (int step = 0; step < steps; ++step) {
        const KnotWeights& k = variable.knots[step];
        const double u_bar = static_cast<double>(control_bar[(std::size_t(step) * nu + variable.row) * stride + world]);
        numbers[k.first * number_stride] += u_bar * k.first_weight;
        numbers[k.second * number_stride] += u_bar * k.second_weight;
      }
      for (int k = 0; k < variable.size; ++k) numbers[k * number_stride] *= variable.scale;
    } else {
      const T* const rows = variable.kind == VariableKind::initial_position ? q_bar : qd_bar;
      numbers[0] = static_cast<double>(rows[variable.row * stride + world]) * variable.scale;
    }
  }
};

/// A parameter variable, as kernels read it.
struct ParameterKernel {
  Chart chart;
  int offset;           ///< of its first number
  int value_row;        ///< of the item's first component in WorldParameters::numbers()
  int gradient_row;     ///< of its first tangent in their gradient
  int components;       ///< of the item that are used
  ValueRule rule;       ///< of each component
  double scale, shift;  ///< value = number · scale + shift
  int pulled;           ///< first row of its gradient

  /// Number k of one world, not scaled.
  BACKDRIVE_HD double value(const double* x, std::size_t stride, std::int64_t world, int k) const {
    return x[(offset + k) * stride + world] * scale + shift;
  }
};

/// The values of a batch of worlds that parameter variables decide.
struct ParameterRows {
  const ParameterKernel* variables;
  int count;
  double* numbers;  ///< [number][world]
  std::size_t stride;

  /// Each item's value from what the charts make of the numbers, number(variable, k).
  template <class Number>
  BACKDRIVE_HD void write(std::int64_t world, const Number& number) const {
    for (int v = 0; v < count; ++v) {
      const ParameterKernel& variable = variables[v];
      variable.chart.write([&](int k) { return number(variable, k); },
                           [&](int c, double value) { numbers[(variable.value_row + c) * stride + world] = value; });
    }
  }
  BACKDRIVE_HD void write_start(std::int64_t world) const {
    write(world, [](const ParameterKernel& variable, int k) { return variable.chart.start(k); });
  }

  /// Whether every value may be, one by one; makes unit vectors of what is to be one.
  BACKDRIVE_HD bool settle(std::int64_t world) const {
    for (int v = 0; v < count; ++v) {
      const ParameterKernel& variable = variables[v];
      ParameterSlots item(variable.components);
      item.first = numbers + variable.value_row * stride + world;
      item.stride = static_cast<int>(stride);
      for (int c = 0; c < item.components; ++c) {
        if (!variable.rule.allows(item(0, c))) return false;
      }
      if (variable.chart.kind != Chart::Kind::plain && !normalize(item, 0, 0)) return false;
    }
    return true;
  }
};

/// What is known of a world's model.
enum class Possible : int { no, yes, undecided };

/// Puts the numbers into a world's parameters. A model that cannot be (an inertia no body has, a limit below the other)
/// is replaced by the initial one. Whether its joints move inertia may be left undecided.
struct WriteParameters {
  ParameterRows rows;
  ModelStructure structure;
  ParametersView parameters;  ///< where `rows` are written to
  int joints;
  const double* x;  ///< [number][world]
  std::size_t number_stride;
  int* possible;  ///< [world], Possible

  BACKDRIVE_HD void operator()(std::int64_t world) const {
    rows.write(world,
               [&](const ParameterKernel& variable, int k) { return variable.value(x, number_stride, world, k); });
    const Possible verdict = judge(world);
    if (verdict == Possible::no) rows.write_start(world);
    possible[world] = static_cast<int>(verdict);
  }

 private:
  BACKDRIVE_HD Possible judge(std::int64_t world) const {
    if (!rows.settle(world)) return Possible::no;
    const WorldValidity own{structure, {parameters, nullptr, static_cast<int>(world)}};
    for (int j = 0; j < joints; ++j) {
      if (!own.limits_in_order(j)) return Possible::no;
    }
    for (int c = 0; c < structure.coupling_count; ++c) {
      if (!own.coupling_limits_in_order(c)) return Possible::no;
    }
    if (!own.inertias_can_be()) return Possible::no;
    return own.all_joints_sound() ? Possible::yes : Possible::undecided;
  }
};

/// Decides about the worlds that WriteParameters left undecided: every moving joint has to move inertia. Index k takes
/// worlds k, k + lanes, ..., so that the room to do so in need not grow with the worlds.
struct DecideIdleJoints {
  ParameterRows rows;
  ModelStructure structure;
  ParametersView parameters;
  int worlds, lanes;
  double* scratch;  ///< [number of InertiaScratch][lane]
  std::size_t scratch_stride;
  int* possible;

  BACKDRIVE_HD void operator()(std::int64_t lane) const {
    for (int world = static_cast<int>(lane); world < worlds; world += lanes) {
      if (possible[world] != static_cast<int>(Possible::undecided)) continue;
      const WorldValidity own{structure, {parameters, nullptr, world}};
      const bool idle = own.idle_joint({scratch + lane, scratch_stride}) >= 0;
      if (idle) rows.write_start(world);
      possible[world] = static_cast<int>(idle ? Possible::no : Possible::yes);
    }
  }
};

/// The gradient of the numbers from that of the parameters, by variable and world: index variable·worlds + world.
struct PullParameters {
  const ParameterKernel* variables;
  int worlds;
  const double* x;  ///< [number][world]
  std::size_t number_stride;
  const double* bar;  ///< [tangent][world], WorldParameters::gradient()
  std::size_t bar_stride;
  double* gradient;  ///< [number][world]

  BACKDRIVE_HD void operator()(std::int64_t index) const {
    const ParameterKernel& variable = variables[index / worlds];
    const std::int64_t world = index % worlds;
    variable.chart.pull<double>([&](int k) { return variable.value(x, number_stride, world, k); },
                                [&](int c) { return bar[(variable.gradient_row + c) * bar_stride + world]; },
                                [&](int k, double pulled) {
                                  gradient[(variable.pulled + k) * number_stride + world] = pulled * variable.scale;
                                });
  }
};

/// Numbers of a tied variable: their gradients stand in rows of their own.
struct TiedNumbers {
  int offset, pulled, size;
};
/// Adds them to those of the numbers that they stand on.
struct AddTied {
  const TiedNumbers* tied;
  int count, numbers;
  const double* pulled;  ///< [number, then tied][world]
  double* gradient;      ///< [number][world]
  std::size_t pulled_stride, stride;

  BACKDRIVE_HD void operator()(std::int64_t world) const {
    for (int k = 0; k < numbers; ++k) gradient[k * stride + world] = pulled[k * pulled_stride + world];
    for (int t = 0; t < count; ++t) {
      for (int k = 0; k < tied[t].size; ++k) {
        gradient[(tied[t].offset + k) * stride + world] += pulled[(tied[t].pulled + k) * pulled_stride + world];
      }
    }
  }
};

/// The numbers of one world with those that are computed from them behind.
struct ComputeNumbers {
  const TieProduct* products;
  const TieFactor* factors;
  int count, numbers, all;
  const double* x;  ///< [number][world]
  double* to;       ///< with the computed ones, likewise
  std::size_t x_stride, stride;

  BACKDRIVE_HD void operator()(std::int64_t world) const {
    for (int k = 0; k < numbers; ++k) to[k * stride + world] = x[k * x_stride + world];
    for (int k = numbers; k < all; ++k) to[k * stride + world] = 0;
    for (int p = 0; p < count; ++p) TieProducts::add<double>(products[p], factors, {to + world, stride});
  }
};
/// And back: adds the gradients of what was computed to those of the numbers that it was made of.
struct AddComputed {
  const TieProduct* products;
  const TieFactor* factors;
  const int* pulled_rows;  ///< [product]: first row of its variable's gradient
  int count;
  const double *x, *pulled;
  double* gradient;
  std::size_t x_stride, pulled_stride, stride;

  BACKDRIVE_HD void operator()(std::int64_t world) const {
    for (int p = 0; p < count; ++p) {
      for (int k = 0; k < products[p].size; ++k) {
        TieProducts::pull<double>(products[p], factors, k, pulled[(pulled_rows[p] + k) * pulled_stride + world],
                                  {x + world, x_stride}, {gradient + world, stride});
      }
    }
  }
};

/// A world that stopped, whose model cannot be, or whose numbers are not finite tells the optimiser only that: an
/// infinite loss and a gradient of zeros.
template <class T>
struct FinishWorld {
  const T* total;
  const WorldStatus* status;
  const int* possible;  ///< Possible, decided; null: all models can be
  double* loss;
  double* gradient;
  int numbers;
  std::size_t number_stride;

  BACKDRIVE_HD void operator()(std::int64_t world) const {
    const double value = static_cast<double>(total[world]);
    bool finite = (!possible || possible[world] == static_cast<int>(Possible::yes)) && !status[world].stopped() &&
                  is_finite(value);
    for (int k = 0; k < numbers; ++k) finite = finite && is_finite(gradient[k * number_stride + world]);
    loss[world] = finite ? value : std::numeric_limits<double>::infinity();
    for (int k = 0; k < numbers && !finite; ++k) gradient[k * number_stride + world] = 0;
  }
};

}  // namespace backdrive
