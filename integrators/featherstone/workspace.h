#pragma once
// Lays the working set of one lane group out in scratch memory and fills in the constants.
#include <cstddef>
#include <new>

#include "integrators/featherstone/dynamics.h"
#include "integrators/featherstone/kernels.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// Hands out arrays of Real from a block, or only counts when the block is null.
class Carver {
 public:
  BACKDRIVE_HD explicit Carver(std::byte* block) : block_(block) {}
  template <class X>
  BACKDRIVE_HD X* take(std::size_t count) {
    X* at = reinterpret_cast<X*>(block_ ? block_ + used_ : nullptr);
    used_ += (count * sizeof(X) + 63) / 64 * 64;
    return at;
  }
  BACKDRIVE_HD std::size_t used() const { return used_; }

 private:
  std::byte* block_;
  std::size_t used_ = 0;
};

/// Workspace and the arrays that only the reverse sweep needs.
template <class Real>
struct GroupScratch {
  Workspace<Real, Real> ws;
  LinkConstants<Real>* constants;  ///< room for them, if they must be copied; read through ws.constants
  Mat3<Real>* alignment_room;
  const Mat3<Real>* alignment;
  /// Of all parameters, parameter_rows() numbers: `gradient` per link, then `gravity_bar`.
  Real* parameter_bar;
  LinkGradient<Real>* gradient;
  Vec3<Real>* gravity_bar;
  Real* parameter_bar_before;  ///< as it was when a gradient window began
  Real *q_bar, *qd_bar, *control_bar;
};

template <class Real>
BACKDRIVE_HD int parameter_rows(const TopologyView& t) {
  return t.link_count * kLinkGradients<Real> + 3;
}

template <class Real>
BACKDRIVE_INLINE void set_parameter_bar(GroupScratch<Real>& g, const TopologyView& t, Real* rows) {
  g.parameter_bar = rows;
  g.gradient = reinterpret_cast<LinkGradient<Real>*>(rows);
  g.gravity_bar = reinterpret_cast<Vec3<Real>*>(rows + t.link_count * kLinkGradients<Real>);
}

template <class Real>
BACKDRIVE_HD std::size_t carve(const TopologyView& t, std::byte* block, GroupScratch<Real>& g) {
  Carver carver(block);
  const std::size_t n = t.link_count, nu = t.nu ? t.nu : 1;
  g.ws.link = carver.take<LinkScratch<Real>>(n);
  g.ws.dof = carver.take<DofScratch<Real>>(t.nv);
  g.ws.q = carver.take<Real>(t.nq);
  g.ws.qd = carver.take<Real>(t.nv);
  g.ws.control = carver.take<Real>(nu);
  g.constants = carver.take<LinkConstants<Real>>(n);
  g.ws.bar = carver.take<LinkBar<Real>>(n);
  g.q_bar = carver.take<Real>(t.nq);
  g.qd_bar = carver.take<Real>(t.nv);
  g.control_bar = carver.take<Real>(nu);
  set_parameter_bar(g, t, carver.take<Real>(parameter_rows<Real>(t)));
  g.alignment_room = carver.take<Mat3<Real>>(n);
  g.parameter_bar_before = carver.take<Real>(parameter_rows<Real>(t));
  return carver.used();
}

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

/// The constants of a group of worlds, copied into its working set.
template <class Real>
BACKDRIVE_HD void fill_constants(GroupScratch<Real>& g, const Launch<StorageOf<Real>>& launch, int first_world) {
  const int n = launch.topology.link_count;
  constexpr int per_link = kLinkConstants<Real>;
  load_constants(launch, 0, first_world, reinterpret_cast<Real*>(g.constants), n * per_link);
  load_constants(launch, n * per_link, first_world, reinterpret_cast<Real*>(g.alignment_room), n * 9);
  load_constants(launch, n * (per_link + 9), first_world, &g.ws.gravity.x, 3);
  g.ws.constants = g.constants;
  g.alignment = g.alignment_room;
}

template <class Real>
BACKDRIVE_INLINE void set_model(GroupScratch<Real>& g, const Launch<StorageOf<Real>>& launch) {
  const TopologyView& t = launch.topology;
  g.ws.links = t.links;
  g.ws.link_count = t.link_count;
  g.ws.nq = t.nq, g.ws.nv = t.nv;
  g.ws.dt = Real(launch.time_step);
}

/// Workspace in `scratch` for the group of worlds that starts at first_world.
template <class Real>
GroupScratch<Real> prepare(const Launch<StorageOf<Real>>& launch, int first_world, std::byte* scratch) {
  GroupScratch<Real> g;
  carve(launch.topology, scratch, g);
  set_model(g, launch);
  fill_constants(g, launch, first_world);
  return g;
}

/// A GPU hides the wait for memory behind its other threads.
template <bool Write>
BACKDRIVE_INLINE void prefetch([[maybe_unused]] const void* at) {
#if !defined(__CUDA_ARCH__)
  __builtin_prefetch(at, Write);
#endif
}

/// Of one group of worlds. `next` is ±1 when the `rows` after or before these are read next: they are fetched ahead,
/// since no hardware sees the pattern in them.
template <class Real>
BACKDRIVE_INLINE void load_rows(const StorageOf<Real>* from, std::size_t first_row, int rows, int stride,
                                int first_world, Real* to, int next = 0) {
  const StorageOf<Real>* at = from + first_row * stride + first_world;
  const std::ptrdiff_t ahead = std::ptrdiff_t(next) * rows * stride;
  for (int r = 0; r < rows; ++r, at += stride) {
    if (next != 0) prefetch<false>(at + ahead);
    to[r] = load<Real>(at);
  }
}
template <class Real>
BACKDRIVE_INLINE void store_rows(StorageOf<Real>* to, std::size_t first_row, int rows, int stride, int first_world,
                                 const Real* from, int next = 0) {
  StorageOf<Real>* at = to + first_row * stride + first_world;
  const std::ptrdiff_t ahead = std::ptrdiff_t(next) * rows * stride;
  for (int r = 0; r < rows; ++r, at += stride) {
    if (next != 0) prefetch<true>(at + ahead);
    store<Real>(at, from[r]);
  }
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
