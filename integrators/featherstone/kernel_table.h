#pragma once
// The kernel table of one instruction set and number type.
#include <algorithm>

#include "integrators/featherstone/pose_kernel.h"
#include "integrators/featherstone/rollout_kernel.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

template <class Arguments, void (*Group)(const Arguments&, int, std::byte*), int lanes>
void each_group(const Arguments& a, int begin, int end, std::byte* scratch) {
  for (int group = begin; group < end; ++group) Group(a, group * lanes, scratch);
}

template <class Scratch, class Arguments>
std::size_t bytes_of(const Arguments& a) {
  Scratch scratch;
  Carver counter(nullptr);
  prepare_group(a, 0, counter, scratch);
  return counter.used();
}

/// Enough for every kernel.
template <class Real>
std::size_t scratch_bytes(const Launch<StorageOf<Real>>& launch) {
  using T = StorageOf<Real>;
  T some{};  // in place of what is asked for
  RolloutArguments<T> rollout{};
  RolloutAdjointArguments<T> adjoint{};
  PoseArguments<T> poses{};
  rollout.launch = adjoint.launch = poses.launch = launch;
  adjoint.constants_bar = poses.constants_bar = poses.q_bar = &some;
  return std::max({bytes_of<Workspace<PackRollout<Real, true>>>(rollout),
                   bytes_of<AdjointScratch<PackAdjoint<Real, true>>>(adjoint),
                   bytes_of<PoseScratch<PackPosesAdjoint<Real>>>(poses)});
}

/// Of models in which something can touch something; compiled apart from the others.
template <class Real>
struct ContactKernels {
  using T = StorageOf<Real>;
  static void rollout(const RolloutArguments<T>& a, int begin, int end, std::byte* scratch);
  static void rollout_adjoint(const RolloutAdjointArguments<T>& a, int begin, int end, std::byte* scratch);
};

/// Calls one of two kernels, by whether something can touch something.
template <class Arguments, void (*Free)(const Arguments&, int, int, std::byte*),
          void (*Touching)(const Arguments&, int, int, std::byte*)>
void by_contact(const Arguments& a, int begin, int end, std::byte* scratch) {
  (a.launch.topology.contact_pair_count > 0 ? Touching : Free)(a, begin, end, scratch);
}

template <class Real>
KernelTable<StorageOf<Real>> make_kernel_table() {
  using T = StorageOf<Real>;
  constexpr int lanes = RealTraits<Real>::lanes;
  return {lanes,
          scratch_bytes<Real>,
          by_contact<RolloutArguments<T>, each_group<RolloutArguments<T>, rollout_group<Real, false>, lanes>,
                     ContactKernels<Real>::rollout>,
          by_contact<RolloutAdjointArguments<T>,
                     each_group<RolloutAdjointArguments<T>, rollout_adjoint_group<Real, false>, lanes>,
                     ContactKernels<Real>::rollout_adjoint>,
          each_group<PoseArguments<T>, poses_group<Real>, lanes>,
          each_group<PoseArguments<T>, poses_adjoint_group<Real>, lanes>};
}

/// Made by make_kernel_table, in a file of its own for each T (kernel_instances.cpp).
template <class T>
const KernelTable<T>& table();

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
