#pragma once
// The kernel table of one instruction set and number type.
#include "integrators/featherstone/kernel_table.h"
#include "integrators/semi_implicit/contact_rollout_kernel.h"
#include "integrators/semi_implicit/pose_kernel.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

/// Enough for every kernel: an adjoint with parameters.
template <class Real>
std::size_t scratch_bytes(const Launch<StorageOf<Real>>& launch) {
  ContactAdjointScratch<Real> g;
  featherstone::Carver counter(nullptr);
  prepare(launch, 0, true, counter, g);
  return counter.used();
}

/// Of models in which something can touch something; compiled apart from the others.
template <class Real>
struct ContactKernels {
  using T = StorageOf<Real>;
  static void rollout(const RolloutArguments<T>& a, int begin, int end, std::byte* scratch);
  static void rollout_adjoint(const RolloutAdjointArguments<T>& a, int begin, int end, std::byte* scratch);
};

template <class Real>
KernelTable<StorageOf<Real>> make_kernel_table() {
  using T = StorageOf<Real>;
  using featherstone::by_contact;
  using featherstone::each_group;
  constexpr int lanes = RealTraits<Real>::lanes;
  return {{lanes, scratch_bytes<Real>,
           by_contact<RolloutArguments<T>, each_group<RolloutArguments<T>, rollout_group<Real>, lanes>,
                      ContactKernels<Real>::rollout>,
           by_contact<RolloutAdjointArguments<T>,
                      each_group<RolloutAdjointArguments<T>, rollout_adjoint_group<Real>, lanes>,
                      ContactKernels<Real>::rollout_adjoint>,
           each_group<PoseArguments<T>, poses_group<Real>, lanes>,
           each_group<PoseArguments<T>, poses_adjoint_group<Real>, lanes>},
          each_group<PlaceArguments<T>, place_group<Real>, lanes>,
          each_group<PlaceArguments<T>, place_adjoint_group<Real>, lanes>};
}

/// Made by make_kernel_table, in a file of its own for each T (kernel_instances.cpp).
template <class T>
const KernelTable<T>& table();

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
