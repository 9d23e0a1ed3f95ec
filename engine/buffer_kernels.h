#pragma once
// What is done to buffers as such, wherever they lie: function objects for engine/launch.h.
#include <cstddef>
#include <cstdint>

#include "engine/real.h"

namespace backdrive {

/// The same number in every world of a row.
template <class T>
struct SpreadRows {
  const T* numbers;
  T* to;
  int rows;
  std::size_t stride;
  BACKDRIVE_HD void operator()(std::int64_t world) const {
    for (int r = 0; r < rows; ++r) to[r * stride + world] = numbers[r];
  }
};

/// One number, raised.
struct CountUp {
  int* at;
  BACKDRIVE_HD void operator()(std::int64_t) const { ++*at; }
};

/// to += from, in one world.
template <class T>
struct AddInto {
  T* to;
  const T* from;
  int rows;
  std::size_t stride;
  BACKDRIVE_HD void operator()(std::int64_t world) const {
    for (int r = 0; r < rows; ++r) to[r * stride + world] += from[r * stride + world];
  }
};

}  // namespace backdrive
