#pragma once
// Between the numbers that an optimiser moves, [number][world] in float64, and what a rollout reads and leaves.
#include <cmath>
#include <cstdint>
#include <limits>

#include "autodiff/loss.h"
#include "engine/real.h"
#include "engine/status.h"

namespace backdrive {

/// A variable of the state or of the controls, as kernels read it.
struct VariableKernel {
  VariableKind kind;
  int offset;                ///< of its first number
  int size;                  ///< numbers
  int row;                   ///< of q, of qd, or in one step of the control
  double scale;              ///< value = number · scale
  const KnotWeights* knots;  ///< per step; controls
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
            static_cast<T>(first * numbers[k.first * number_stride] + second * numbers[k.second * number_stride]);
      } else if (step == 0 && variable.kind != VariableKind::parameter) {
        T* const rows = variable.kind == VariableKind::initial_position ? q : qd;
        rows[variable.row * stride + world] = static_cast<T>(numbers[0] * variable.scale);
      }
    }
  }
};

/// The gradient of the numbers from that of states and controls, by variable and world: index variable·worlds + world.
/// Parameters' numbers are left as they are.
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
    double* const numbers = gradient + variable.offset * number_stride + world;
    if (variable.kind == VariableKind::control) {
      for (int k = 0; k < variable.size; ++k) numbers[k * number_stride] = 0;
      for (int step = 0; step < steps; ++step) {
        const KnotWeights& k = variable.knots[step];
        const double u_bar = static_cast<double>(control_bar[(std::size_t(step) * nu + variable.row) * stride + world]);
        numbers[k.first * number_stride] += u_bar * k.first_weight;
        numbers[k.second * number_stride] += u_bar * k.second_weight;
      }
      for (int k = 0; k < variable.size; ++k) numbers[k * number_stride] *= variable.scale;
    } else if (variable.kind != VariableKind::parameter) {
      const T* const rows = variable.kind == VariableKind::initial_position ? q_bar : qd_bar;
      numbers[0] = static_cast<double>(rows[variable.row * stride + world]) * variable.scale;
    }
  }
};

/// A world that stopped, whose model cannot be, or whose numbers are not finite tells the optimiser only that: an
/// infinite loss and a gradient of zeros.
template <class T>
struct FinishWorld {
  const T* total;
  const WorldStatus* status;
  const int* possible;  ///< null: all models can be
  double* loss;
  double* gradient;
  int numbers;
  std::size_t number_stride;

  BACKDRIVE_HD void operator()(std::int64_t world) const {
    const double value = static_cast<double>(total[world]);
    bool finite = (!possible || possible[world]) && !status[world].stopped() && is_finite(value);
    for (int k = 0; k < numbers; ++k) finite = finite && is_finite(gradient[k * number_stride + world]);
    loss[world] = finite ? value : std::numeric_limits<double>::infinity();
    for (int k = 0; k < numbers && !finite; ++k) gradient[k * number_stride + world] = 0;
  }
};

}  // namespace backdrive
