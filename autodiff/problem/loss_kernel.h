#pragma once
// What a loss does in one world: the terms' values, and their cotangents beneath them.
#include <cstddef>

#include "engine/real.h"
#include "engine/sincos.h"
#include "engine/status.h"

namespace backdrive {

enum class ErrorShape {
  scalar,       ///< x − target
  vector,       ///< three numbers − target
  circle,       ///< an angle: error² = 2 − 2 cos(x − target)
  position,     ///< position + R point − target of a pose
  orientation,  ///< angle between R and R*: error² = 3 − tr(R*ᵀ R)
};

/// A term as kernels read it. Rows are `stride` numbers apart, states `state_stride`.
template <class T>
struct LossTermKernel {
  ErrorShape shape = ErrorShape::scalar;
  const T* values = nullptr;  ///< first row of the first state; null: zero throughout
  T* bar = nullptr;           ///< the same of the cotangent; null: not asked for
  int states = 1;
  std::size_t stride = 0, state_stride = 0;
  T weight = T(0);  ///< with Δt where the term is an integral over time
  T twice = T(0);   ///< 2 weight
  /// Of the first state: one number of a scalar; a vector; a point; the nine entries of weight·R*, column by column.
  const T* target = nullptr;
  std::size_t target_stride = 0;  ///< to that of the next state; 0: the same for all
  T point[3] = {};
  T thrice = T(0);  ///< 3 weight
};

/// Adds weight·error² of the state and world that `at` leads to, and its cotangent.
template <ErrorShape shape, class T>
BACKDRIVE_INLINE void score(const LossTermKernel<T>& term, const T* target, std::size_t at, T& sum) {
  if constexpr (shape == ErrorShape::scalar) {
    const T error = term.values ? term.values[at] - target[0] : -target[0];
    sum += term.weight * (error * error);
    if (term.bar) term.bar[at] += term.twice * error;
  } else if constexpr (shape == ErrorShape::vector) {
    for (int axis = 0; axis < 3; ++axis) {
      const T error = term.values[at + axis * term.stride] - target[axis];
      sum += term.weight * (error * error);
      if (term.bar) term.bar[at + axis * term.stride] += term.twice * error;
    }
  } else if constexpr (shape == ErrorShape::circle) {
    T s, c;
    sincos(term.values ? term.values[at] - target[0] : -target[0], s, c);
    sum += term.weight * (constant<T>(2) - constant<T>(2) * c);
    if (term.bar) term.bar[at] += term.twice * s;
  } else if constexpr (shape == ErrorShape::position) {
    for (int axis = 0; axis < 3; ++axis) {
      T error = term.values[at + axis * term.stride] - target[axis];
      for (int c = 0; c < 3; ++c) error += term.values[at + (3 + 3 * c + axis) * term.stride] * term.point[c];
      sum += term.weight * error * error;
      if (!term.bar) continue;
      const T slope = term.twice * error;
      term.bar[at + axis * term.stride] += slope;
      for (int c = 0; c < 3; ++c) term.bar[at + (3 + 3 * c + axis) * term.stride] += slope * term.point[c];
    }
  } else {
    sum += term.thrice;
    for (int k = 0; k < 9; ++k) {
      sum -= target[k] * term.values[at + (3 + k) * term.stride];
      if (term.bar) term.bar[at + (3 + k) * term.stride] -= target[k];
    }
  }
}

/// Calls visitor.operator()<shape>() for the term's shape.
template <class Visitor>
BACKDRIVE_INLINE void visit_shape(ErrorShape shape, Visitor&& visitor) {
  switch (shape) {
    case ErrorShape::scalar:
      return visitor.template operator()<ErrorShape::scalar>();
    case ErrorShape::vector:
      return visitor.template operator()<ErrorShape::vector>();
    case ErrorShape::circle:
      return visitor.template operator()<ErrorShape::circle>();
    case ErrorShape::position:
      return visitor.template operator()<ErrorShape::position>();
    case ErrorShape::orientation:
      return visitor.template operator()<ErrorShape::orientation>();
  }
}

/// Rows of cotangents.
template <class T>
struct BarRows {
  T* at;
  int rows;
};

/// All terms in a range of worlds. On a device each world is a thread's; the host takes many at a time, state by state.
template <class T>
struct LossKernel {
  const LossTermKernel<T>* terms;
  int count;
  const BarRows<T>* bars;  ///< to be cleared first
  int bar_count;
  std::size_t stride;  ///< of all rows
  T* sums;             ///< [term][world]
  const int* rows;     ///< of `sums`, per term
  int sum_rows;
  const WorldStatus* status;

  BACKDRIVE_HD void operator()(std::int64_t world) const {
    run(static_cast<int>(world), static_cast<int>(world) + 1, static_cast<int>(world) + 1);
  }
  /// Worlds [begin, end), and clears up to `padded`.
  BACKDRIVE_HD void run(int begin, int end, int padded) const {
    for (int b = 0; b < bar_count; ++b) {
      for (int r = 0; r < bars[b].rows; ++r) clear(bars[b].at + r * stride, begin, padded);
    }
    for (int k = 0; k < count; ++k) {
      const LossTermKernel<T>& term = terms[k];
      T* const sum = sums + rows[k] * stride;
      visit_shape(term.shape, [&]<ErrorShape shape>() {
        for (int state = 0; state < term.states; ++state) {
          const std::size_t first = state * term.state_stride;
          const T* const target = term.target + state * term.target_stride;
          for (int w = begin; w < end; ++w) score<shape>(term, target, first + w, sum[w]);
        }
      });
    }
    for (int w = begin; w < end; ++w) {
      if (status[w].stopped()) spoil(w);
    }
  }

 private:
  BACKDRIVE_HD static void clear(T* row, int begin, int end) {
    for (int w = begin; w < end; ++w) row[w] = T(0);
  }
  /// A world that stopped has no loss, and nothing to seed a gradient with.
  BACKDRIVE_HD void spoil(int world) const {
    for (int k = 0; k < sum_rows; ++k) sums[k * stride + world] = constant<T>(__builtin_nan(""));
    for (int b = 0; b < bar_count; ++b) {
      for (int r = 0; r < bars[b].rows; ++r) clear(bars[b].at + r * stride, world, world + 1);
    }
  }
};

/// total[world] = Σ terms.
template <class T>
struct TotalLoss {
  const T* sums;
  T* total;
  int terms;
  std::size_t stride;
  BACKDRIVE_HD void operator()(std::int64_t world) const {
    T sum = T(0);
    for (int k = 0; k < terms; ++k) sum += sums[k * stride + world];
    total[world] = sum;
  }
};

}  // namespace backdrive
