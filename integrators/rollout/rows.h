#pragma once
#if !defined(BACKDRIVE_KERNELS)
#define BACKDRIVE_KERNELS generic
#endif
// Rows of buffers, [row][world], in and out of the working set of one lane group.
#include "engine/real.h"
#include "integrators/rollout/arguments.h"

namespace backdrive::inline BACKDRIVE_KERNELS {

/// The number that one lane carries.
template <class Real>
BACKDRIVE_HD double number_in(const Real& x, [[maybe_unused]] int lane_index) {
  if constexpr (RealTraits<Real>::lanes == 1) {
    return value_of(x);
  } else {
    return x[lane_index];
  }
}

/// A GPU hides the wait for memory behind its other threads.
template <bool Write>
BACKDRIVE_INLINE void prefetch([[maybe_unused]] const void* at) {
#if !defined(__CUDA_ARCH__)
  __builtin_prefetch(at, Write);
#endif
}

/// Lanes beyond the last world take its numbers: what is computed there is then as tame, and ends as soon.
template <class Real>
BACKDRIVE_INLINE void fill_padding([[maybe_unused]] int first_world, [[maybe_unused]] int worlds,
                                   [[maybe_unused]] Real* numbers, [[maybe_unused]] int count) {
  constexpr int lanes = RealTraits<Real>::lanes;
  if constexpr (lanes > 1) {
    if (first_world + lanes <= worlds) return;
    alignas(64) StorageOf<Real> lane[lanes];
    for (int k = 0; k < count; ++k) {
      store<Real>(lane, numbers[k]);
      for (int l = worlds - first_world; l < lanes; ++l) lane[l] = lane[worlds - first_world - 1];
      numbers[k] = load<Real>(lane);
    }
  }
}

/// Where one group of worlds has its numbers in rows.
struct WorldGroup {
  int stride, first_world;

  template <class T>
  BACKDRIVE_INLINE WorldGroup(const Launch<T>& launch, int world) : stride(launch.stride), first_world(world) {}
  BACKDRIVE_INLINE std::size_t at(std::size_t row) const { return row * stride + first_world; }
};

/// `next` is ±1 when the `rows` after or before these are read next: they are fetched ahead, since no hardware sees the
/// pattern in them.
template <class Real>
BACKDRIVE_INLINE void load_rows(const WorldGroup& group, const StorageOf<Real>* from, std::size_t first_row, int rows,
                                Real* to, int next = 0) {
  const int stride = group.stride;
  const StorageOf<Real>* at = from + group.at(first_row);
  const std::ptrdiff_t ahead = std::ptrdiff_t(next) * rows * stride;
  for (int r = 0; r < rows; ++r, at += stride) {
    if (next != 0) prefetch<false>(at + ahead);
    to[r] = load<Real>(at);
  }
}
template <class Real>
BACKDRIVE_INLINE void store_rows(const WorldGroup& group, StorageOf<Real>* to, std::size_t first_row, int rows,
                                 const Real* from, int next = 0) {
  const int stride = group.stride;
  StorageOf<Real>* at = to + group.at(first_row);
  const std::ptrdiff_t ahead = std::ptrdiff_t(next) * rows * stride;
  for (int r = 0; r < rows; ++r, at += stride) {
    if (next != 0) prefetch<true>(at + ahead);
    store<Real>(at, from[r]);
  }
}

/// A state of one group of worlds, into `q` and `qd` of a working set.
template <class Set>
BACKDRIVE_INLINE void load_state(const Launch<StorageOf<typename Set::Real>>& launch,
                                 const StorageOf<typename Set::Real>* q, const StorageOf<typename Set::Real>* qd,
                                 int first_world, Set& s) {
  const TopologyView& t = launch.topology;
  const WorldGroup group(launch, first_world);
  load_rows(group, q, 0, t.nq, s.q);
  load_rows(group, qd, 0, t.nv, s.qd);
  fill_padding(first_world, launch.worlds, s.q, t.nq);
  fill_padding(first_world, launch.worlds, s.qd, t.nv);
}

/// Rows of one step, copied into the working set.
template <class Real>
struct CopiedRows {
  using T = StorageOf<Real>;
  Real* numbers;

  BACKDRIVE_INLINE const Real& operator[](int k) const { return numbers[k]; }
  BACKDRIVE_INLINE void set(int k, const Real& x) const { numbers[k] = x; }
  BACKDRIVE_INLINE void clear(int rows) const {
    for (int k = 0; k < rows; ++k) numbers[k] = constant<Real>(0);
  }
  /// To be read; null: they stay what they are.
  BACKDRIVE_INLINE void take(const WorldGroup& group, const T* from, std::size_t first_row, int rows, int next) const {
    if (from) load_rows(group, from, first_row, rows, numbers, next);
  }
  BACKDRIVE_INLINE void pad(int worlds, int first_world, int rows) const {
    fill_padding(first_world, worlds, numbers, rows);
  }
  /// To be set, and when all have been; null: for nobody.
  BACKDRIVE_INLINE void begin(const WorldGroup&, T*, std::size_t) const {}
  BACKDRIVE_INLINE void end(const WorldGroup& group, T* to, std::size_t first_row, int rows, int next) const {
    if (to) store_rows(group, to, first_row, rows, numbers, next);
  }
};

/// Copies `count` Reals of constants, row by row; uniform ones are broadcast.
template <class Real>
BACKDRIVE_HD void load_constants(const Launch<StorageOf<Real>>& launch, int first_row, int first_world, Real* to,
                                 std::size_t count) {
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t row = first_row + k;
    to[k] = launch.constants_per_world ? load<Real>(launch.constants + row * launch.stride + first_world)
                                       : Real(launch.constants[row]);
  }
}

}  // namespace backdrive::inline BACKDRIVE_KERNELS
