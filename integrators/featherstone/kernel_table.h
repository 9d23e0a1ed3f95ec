#pragma once
// The kernel table of one instruction set and number type.
#include "integrators/featherstone/pose_kernel.h"
#include "integrators/featherstone/rollout_kernel.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

template <class Arguments, void (*Group)(const Arguments&, int, std::byte*), int lanes>
void each_group(const Arguments& a, int begin, int end, std::byte* scratch) {
  for (int group = begin; group < end; ++group) Group(a, group * lanes, scratch);
}

template <class Real>
std::size_t scratch_bytes(const TopologyView& t) {
  GroupScratch<Real> g;
  return carve<Real>(t, nullptr, g);
}

template <class Real>
KernelTable<StorageOf<Real>> make_kernel_table() {
  using T = StorageOf<Real>;
  constexpr int lanes = RealTraits<Real>::lanes;
  return {lanes,
          scratch_bytes<Real>,
          each_group<RolloutArguments<T>, rollout_group<Real>, lanes>,
          each_group<RolloutAdjointArguments<T>, rollout_adjoint_group<Real>, lanes>,
          each_group<PoseArguments<T>, poses_group<Real>, lanes>,
          each_group<PoseArguments<T>, poses_adjoint_group<Real>, lanes>};
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
