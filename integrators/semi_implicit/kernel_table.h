#pragma once
// The kernel table of one instruction set and number type.
#include "integrators/featherstone/kernel_table.h"
#include "integrators/semi_implicit/pose_kernel.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

/// Enough for every kernel: an adjoint with parameters.
template <class Real>
std::size_t scratch_bytes(const Launch<StorageOf<Real>>& launch) {
  AdjointScratch<Real> g;
  featherstone::Carver counter(nullptr);
  prepare(launch, 0, true, counter, g);
  return counter.used();
}

template <class Real>
KernelTable<StorageOf<Real>> make_kernel_table() {
  using T = StorageOf<Real>;
  using featherstone::each_group;
  constexpr int lanes = RealTraits<Real>::lanes;
  return {lanes,
          scratch_bytes<Real>,
          each_group<RolloutArguments<T>, rollout_group<Real>, lanes>,
          each_group<RolloutAdjointArguments<T>, rollout_adjoint_group<Real>, lanes>,
          each_group<PoseArguments<T>, poses_group<Real>, lanes>,
          each_group<PoseArguments<T>, poses_adjoint_group<Real>, lanes>,
          each_group<PlaceArguments<T>, place_group<Real>, lanes>,
          each_group<PlaceArguments<T>, place_adjoint_group<Real>, lanes>};
}

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
