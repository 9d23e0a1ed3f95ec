#pragma once
// The kernels with contact: a definition of what kernel_table.h declares, for the files that compile them.
#include "integrators/semi_implicit/kernel_table.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

template <class Real>
void ContactKernels<Real>::rollout(const RolloutArguments<T>& a, int begin, int end, std::byte* scratch) {
  featherstone::each_group<RolloutArguments<T>, contact_rollout_group<Real>, RealTraits<Real>::lanes>(a, begin, end,
                                                                                                      scratch);
}
template <class Real>
void ContactKernels<Real>::rollout_adjoint(const RolloutAdjointArguments<T>& a, int begin, int end,
                                           std::byte* scratch) {
  featherstone::each_group<RolloutAdjointArguments<T>, contact_rollout_adjoint_group<Real>, RealTraits<Real>::lanes>(
      a, begin, end, scratch);
}

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
