#pragma once
// What a loss does in one world: the terms' values, and their cotangents beneath them.
#include <cstddef>

#include "autodiff/problem/loss_measure.h"
#include "engine/real.h"
#include "engine/rotation.h"
#include "engine/sincos.h"
#include "engine/status.h"

namespace backdrive {

enum class ErrorShape {
  scalar,       ///< x
  vector,       ///< three numbers
  circle,       ///< an angle: error² = 2 − 2 cos(x − target)
  position,     ///< position + R point of a pose
  orientation,  ///< angle between R and R*: error² = 3 − tr(R*ᵀ R)
  velocity,     ///< v + ω × R point of a body's motion
  ball,         ///< a quaternion of a state with turns R exp(θ), compared as `orientation`
  free,         ///< the same with turns exp(θ) R
  distance,     ///< of position + R point of two poses, or of one and a point of the world
};

/// A term as kernels read it. Rows are `stride` numbers apart, states `state_stride`.
template <class T>
struct LossTermKernel {
  ErrorShape shape = ErrorShape::scalar;
  ErrorMeasure measure = ErrorMeasure::squared;
  OverTime over = OverTime::sum;
  const T* values = nullptr;  ///< first row of the first state; null: zero throughout
  T* bar = nullptr;           ///< the same of the cotangent; null: not asked for
  std::ptrdiff_t other = 0;   ///< distance: numbers from the first pose to the second; 0: `other_point` is the world's
  int states = 1;
  std::size_t stride = 0, state_stride = 0;
  T weight = T(0);  ///< with Δt where the term is an integral over time
  /// Of the first state: an angle; lower and upper end of what costs nothing, for each number in turn, where equal ends
  /// are a target; the nine entries of R*, column by column, or the four of its quaternion.
  const T* target = nullptr;
  std::size_t target_stride = 0;  ///< to that of the next state; 0: the same for all
  T point[3] = {}, other_point[3] = {};
  /// least, greatest: error² of the best state so far and its number, per world; whether to look on for a better one.
  T *best = nullptr, *best_state = nullptr;
  bool look_on = true;
  int first_state = 0;  ///< number of the first state
};

/// How far x is beyond a range.
template <class T>
BACKDRIVE_INLINE T beyond(const T& x, const T& lower, const T& upper) {
  // With equal ends x − target, also of dual numbers at the target.
  const T over = x - upper, under = x - lower;
  const bool inside = value_of(x)<value_of(upper), above = value_of(x)> value_of(lower);
  return select(inside, select(above, T(0), under), over);
}
template <class T>
BACKDRIVE_INLINE T beyond(const T& x, const T* range) {
  return beyond(x, range[0], range[1]);
}

/// R p and position of a pose whose first row is at `pose`.
template <class T>
BACKDRIVE_INLINE T turned_point(const T* pose, std::size_t stride, const T* point, int axis) {
  T sum = T(0);
  for (int c = 0; c < 3; ++c) sum += pose[(3 + 3 * c + axis) * stride] * point[c];
  return sum;
}
template <class T>
BACKDRIVE_INLINE T point_of(const T* pose, std::size_t stride, const T* point, int axis) {
  return pose[axis * stride] + turned_point(pose, stride, point, axis);
}
/// Adds a cotangent of point_of.
template <class T>
BACKDRIVE_INLINE void adj_point_of(T* bar, std::size_t stride, const T* point, int axis, const T& slope) {
  bar[axis * stride] += slope;
  for (int c = 0; c < 3; ++c) bar[(3 + 3 * c + axis) * stride] += slope * point[c];
}

/// From the second point of a distance to the first.
template <class T>
BACKDRIVE_INLINE void apart(const LossTermKernel<T>& term, std::size_t at, T* difference) {
  for (int axis = 0; axis < 3; ++axis) {
    const T* const pose = term.values + at;
    const T there =
        term.other ? point_of(pose + term.other, term.stride, term.other_point, axis) : term.other_point[axis];
    difference[axis] = point_of(pose, term.stride, term.point, axis) - there;
  }
}

/// v + ω × R p of a motion: a pose, then v and ω.
template <class T>
BACKDRIVE_INLINE T point_velocity(const T* motion, std::size_t stride, const T* point, int axis) {
  const int j = (axis + 1) % 3, k = (axis + 2) % 3;
  return motion[(12 + axis) * stride] + motion[(15 + j) * stride] * turned_point(motion, stride, point, k) -
         motion[(15 + k) * stride] * turned_point(motion, stride, point, j);
}

/// Cosine and sine of how far an angle is from its target.
template <class T>
BACKDRIVE_INLINE void angle_error(const LossTermKernel<T>& term, const T* target, std::size_t at, T& s, T& c) {
  sincos(term.values ? term.values[at] - target[0] : -target[0], s, c);
}

/// Of a state's unit quaternion and its target.
template <class T>
struct QuaternionError {
  Quaternion<T> q, goal;

  BACKDRIVE_INLINE QuaternionError(const LossTermKernel<T>& term, const T* target, std::size_t at)
      : q{{term.values[at], term.values[at + term.stride], term.values[at + 2 * term.stride]},
          term.values[at + 3 * term.stride]},
        goal{{target[0], target[1], target[2]}, target[3]} {}
  /// Of half the angle between them.
  BACKDRIVE_INLINE T cosine() const { return dot(q.v, goal.v) + q.w * goal.w; }
  /// Vector part of q* goal, in the axes of R exp(θ), or of goal q*, in those of exp(θ) R: the sine of that half angle.
  BACKDRIVE_INLINE Vec3<T> sine(bool on_the_right) const {
    const Vec3<T> bent = cross(q.v, goal.v);
    return goal.v * q.w - q.v * goal.w + (on_the_right ? -bent : bent);
  }
};

/// error² of the state and world that `at` leads to.
template <ErrorShape shape, class T>
BACKDRIVE_INLINE T squared_error(const LossTermKernel<T>& term, const T* target, std::size_t at) {
  if constexpr (shape == ErrorShape::scalar) {
    const T error = beyond(term.values ? term.values[at] : T(0), target);
    return error * error;
  } else if constexpr (shape == ErrorShape::circle) {
    T s, c;
    angle_error(term, target, at, s, c);
    return constant<T>(2) - constant<T>(2) * c;
  } else if constexpr (shape == ErrorShape::orientation) {
    T sum = constant<T>(3);
    for (int k = 0; k < 9; ++k) sum -= target[k] * term.values[at + (3 + k) * term.stride];
    return sum;
  } else if constexpr (shape == ErrorShape::ball || shape == ErrorShape::free) {
    const Vec3<T> sine = QuaternionError<T>(term, target, at).sine(shape == ErrorShape::ball);
    return constant<T>(4) * dot(sine, sine);  // 3 − tr(R*ᵀ R) = 4 sin²
  } else if constexpr (shape == ErrorShape::distance) {
    T d[3];
    apart(term, at, d);
    const T square = d[0] * d[0] + d[1] * d[1] + d[2] * d[2];
    if (value_of(target[1]) == 0) return square;
    const T error = beyond(square_root(square), target);
    return error * error;
  } else {
    T sum = T(0);
    for (int axis = 0; axis < 3; ++axis) {
      T x;
      if constexpr (shape == ErrorShape::vector) x = term.values[at + axis * term.stride];
      if constexpr (shape == ErrorShape::position) x = point_of(term.values + at, term.stride, term.point, axis);
      if constexpr (shape == ErrorShape::velocity) x = point_velocity(term.values + at, term.stride, term.point, axis);
      const T error = beyond(x, target + 2 * axis);
      sum += error * error;
    }
    return sum;
  }
}

/// Its adjoint: `slope` is the cotangent of error².
template <ErrorShape shape, class T>
BACKDRIVE_INLINE void adj_squared_error(const LossTermKernel<T>& term, const T* target, std::size_t at,
                                        const T& slope) {
  const T twice = constant<T>(2) * slope;
  const std::size_t stride = term.stride;
  const T* const values = term.values + at;
  T* const bar = term.bar + at;
  if constexpr (shape == ErrorShape::scalar) {
    bar[0] += twice * beyond(values[0], target);
  } else if constexpr (shape == ErrorShape::circle) {
    T s, c;
    angle_error(term, target, at, s, c);
    bar[0] += twice * s;
  } else if constexpr (shape == ErrorShape::orientation) {
    for (int k = 0; k < 9; ++k) bar[(3 + k) * stride] -= slope * target[k];
  } else if constexpr (shape == ErrorShape::ball || shape == ErrorShape::free) {
    // A turn θ of R changes the cosine by ½ sine·θ, and error² = 4 (1 − cosine²).
    const QuaternionError<T> error(term, target, at);
    const Vec3<T> turn = error.sine(shape == ErrorShape::ball) * (-(constant<T>(4) * slope * error.cosine()));
    bar[0] += turn.x, bar[stride] += turn.y, bar[2 * stride] += turn.z;
  } else if constexpr (shape == ErrorShape::vector) {
    for (int axis = 0; axis < 3; ++axis) bar[axis * stride] += twice * beyond(values[axis * stride], target + 2 * axis);
  } else if constexpr (shape == ErrorShape::position) {
    for (int axis = 0; axis < 3; ++axis) {
      const T error = beyond(point_of(values, stride, term.point, axis), target + 2 * axis);
      adj_point_of(bar, stride, term.point, axis, twice * error);
    }
  } else if constexpr (shape == ErrorShape::distance) {
    T d[3];
    apart(term, at, d);
    T share = twice;  // of each component
    if (value_of(target[1]) != 0) {
      const T length = square_root(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
      // Points in one place are apart in no direction.
      const bool meet = value_of(length) == 0;
      share = select(meet, T(0), twice * beyond(length, target) / select(meet, constant<T>(1), length));
    }
    for (int axis = 0; axis < 3; ++axis) {
      adj_point_of(bar, stride, term.point, axis, share * d[axis]);
      if (term.other) adj_point_of(bar + term.other, stride, term.other_point, axis, -(share * d[axis]));
    }
  } else {
    static_assert(shape == ErrorShape::velocity);
    for (int axis = 0; axis < 3; ++axis) {
      const int j = (axis + 1) % 3, k = (axis + 2) % 3;
      const T error = beyond(point_velocity(values, stride, term.point, axis), target + 2 * axis);
      const T velocity_bar = twice * error;
      bar[(12 + axis) * stride] += velocity_bar;
      bar[(15 + j) * stride] += velocity_bar * turned_point(values, stride, term.point, k);
      bar[(15 + k) * stride] -= velocity_bar * turned_point(values, stride, term.point, j);
      for (int c = 0; c < 3; ++c) {
        bar[(3 + 3 * c + k) * stride] += velocity_bar * values[(15 + j) * stride] * term.point[c];
        bar[(3 + 3 * c + j) * stride] -= velocity_bar * values[(15 + k) * stride] * term.point[c];
      }
    }
  }
}

/// What error² costs, and its slope.
template <class T>
BACKDRIVE_INLINE T cost(const LossTermKernel<T>& term, const T& square) {
  return term.weight * (term.measure == ErrorMeasure::squared ? square : square_root(square));
}
template <class T>
BACKDRIVE_INLINE T cost_slope(const LossTermKernel<T>& term, const T& square) {
  if (term.measure == ErrorMeasure::squared) return term.weight;
  // |x| has no slope at 0: the one in the middle is taken.
  const bool flat = !(value_of(square) > 0);
  const T length = square_root(select(flat, constant<T>(1), square));
  return select(flat, T(0), term.weight / (constant<T>(2) * length));
}

/// Adds the cost of the state and world that `at` leads to, and its cotangent.
template <ErrorShape shape, class T>
BACKDRIVE_INLINE void score(const LossTermKernel<T>& term, const T* target, std::size_t at, T& sum) {
  const T square = squared_error<shape>(term, target, at);
  sum += cost(term, square);
  if (term.bar) adj_squared_error<shape>(term, target, at, cost_slope(term, square));
}

/// A term of the least or the greatest error: takes a state into account.
template <ErrorShape shape, class T>
BACKDRIVE_INLINE void compare(const LossTermKernel<T>& term, int state, int world) {
  const T* const target = term.target + state * term.target_stride;
  const T square = squared_error<shape>(term, target, state * term.state_stride + world);
  const auto now = value_of(square), before = value_of(term.best[world]);
  const bool better = term.over == OverTime::least ? now < before : now > before;
  const bool first = value_of(term.best_state[world]) < 0;
  if (!better && !first) return;
  term.best[world] = square;
  term.best_state[world] = constant<T>(term.first_state + state);
}

/// Its cost, in place of a sum, and the cotangent of its one state if that is among these.
template <ErrorShape shape, class T>
BACKDRIVE_INLINE void score_best(const LossTermKernel<T>& term, int world, T& sum) {
  const int number = static_cast<int>(value_of(term.best_state[world]));
  if (number < 0) return;
  sum = cost(term, term.best[world]);
  const int state = number - term.first_state;
  if (!term.bar || state < 0 || state >= term.states) return;
  const T* const target = term.target + state * term.target_stride;
  const std::size_t at = state * term.state_stride + world;
  adj_squared_error<shape>(term, target, at, cost_slope(term, term.best[world]));
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
    case ErrorShape::velocity:
      return visitor.template operator()<ErrorShape::velocity>();
    case ErrorShape::ball:
      return visitor.template operator()<ErrorShape::ball>();
    case ErrorShape::free:
      return visitor.template operator()<ErrorShape::free>();
    case ErrorShape::distance:
      return visitor.template operator()<ErrorShape::distance>();
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
        if (term.over != OverTime::sum) {
          for (int state = 0; state < term.states && term.look_on; ++state) {
            for (int w = begin; w < end; ++w) compare<shape>(term, state, w);
          }
          for (int w = begin; w < end; ++w) score_best<shape>(term, w, sum[w]);
          return;
        }
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
