#pragma once
// States and controls of a batch, and comparisons of buffers to the bit.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "autodiff/tape/buffers.h"
#include "engine/dual.h"
#include "models/parameter_list.h"
#include "tests/support/random.h"

namespace backdrive::test {

template <class T>
struct Batch {
  State<T> state;
  Control<T> control;
};

struct BatchScale {
  double q = 0.3, qd = 1, effort = 1, target = 0.5;
};

/// A batch whose column w has the numbers of world worlds[w]: they depend on that name and the seed alone, so that the
/// same world can stand in any batch at any place, in any number type.
template <class T>
Batch<T> random_batch(const Model& model, int steps, const std::vector<int>& worlds, std::uint64_t seed,
                      const BatchScale& scale = {}) {
  const Topology& t = model.topology;
  const int count = static_cast<int>(worlds.size());
  Batch<T> batch{State<T>(model, count), Control<T>(model, steps, count)};
  for (int w = 0; w < count; ++w) {
    Random random(seed * 1000003 + static_cast<std::uint64_t>(worlds[w]));
    const auto number = [&](double bound) { return constant<T>(random.symmetric(bound)); };
    for (int r = 0; r < t.nq; ++r) batch.state.q.set(r, w, number(scale.q));
    each_quaternion(t, [&](TurnSide, int row, int) {  // any orientation at all
      double numbers[4], square;
      do {
        square = 0;
        for (double& x : numbers) x = random.symmetric(1), square += x * x;
      } while (square < 0.01 || square > 1);
      for (int k = 0; k < 4; ++k) batch.state.q.set(row + k, w, constant<T>(numbers[k] / std::sqrt(square)));
    });
    for (int r = 0; r < t.nv; ++r) batch.state.qd.set(r, w, number(scale.qd));
    for (int r = 0; r < steps * t.nu; ++r) {
      batch.control.u.set(r, w, number(r % t.nu < t.joint_nv ? scale.effort : scale.target));
    }
  }
  return batch;
}

/// 0, 1, ..., count − 1.
inline std::vector<int> first_worlds(int count) {
  std::vector<int> worlds(count);
  std::iota(worlds.begin(), worlds.end(), 0);
  return worlds;
}

template <class T>
std::vector<T> column(const Buffer<T>& buffer, int world, int first_row = 0, int rows = -1) {
  std::vector<T> values;
  for (int r = 0; r < (rows < 0 ? buffer.rows() : rows); ++r) {
    values.push_back(buffer(first_row + r, world));
  }
  return values;
}

/// Column `wa` of a and column `wb` of b, compared to the bit.
template <class T>
testing::AssertionResult same_bits(const Buffer<T>& a, int wa, const Buffer<T>& b, int wb) {
  if (a.rows() != b.rows()) return testing::AssertionFailure() << a.rows() << " and " << b.rows() << " rows";
  for (int r = 0; r < a.rows(); ++r) {
    if (std::memcmp(&a(r, wa), &b(r, wb), sizeof(T)) != 0) {
      return testing::AssertionFailure() << "row " << r << ", worlds " << wa << " and " << wb << ": "
                                         << value_of(a(r, wa)) << " and " << value_of(b(r, wb));
    }
  }
  return testing::AssertionSuccess();
}

/// All columns.
template <class T>
testing::AssertionResult same_bits(const Buffer<T>& a, const Buffer<T>& b) {
  if (a.worlds() != b.worlds()) return testing::AssertionFailure() << "different numbers of worlds";
  for (int w = 0; w < a.worlds(); ++w) {
    if (const auto result = same_bits(a, w, b, w); !result) return result;
  }
  return testing::AssertionSuccess();
}

/// Expects all numbers of two nests of one shape to be equal. Returns whether any of them is not zero.
inline bool expect_equal_parameters(const Parameters& a, const Parameters& b) {
  bool any = false;
  for (const Field& field : fields()) {
    const Parameter &x = field.in(a), &y = field.in(b);
    for (int i = 0; i < x.items(); ++i) {
      for (int k = 0; k < x.components(); ++k) {
        EXPECT_EQ(x(i, k), y(i, k)) << field.leaf << " of item " << i;
        any = any || x(i, k) != 0;
      }
    }
  }
  return any;
}

}  // namespace backdrive::test
