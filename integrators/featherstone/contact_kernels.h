#pragma once
// The kernels with contact: a definition of what kernel_table.h declares, for the files that compile them.
#include "integrators/featherstone/kernel_table.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

template <class Real>
void ContactKernels<Real>::rollout(const RolloutArguments<T>& a, int begin, int end, std::byte* scratch) {
  each_group<RolloutArguments<T>, rollout_group<Real, true>, RealTraits<Real>::lanes>(a, begin, end, scratch);
}
template <class Real>
void ContactKernels<Real>::rollout_adjoint(const RolloutAdjointArguments<T>& a, int begin, int end,
                                           std::byte* scratch) {
  each_group<RolloutAdjointArguments<T>, rollout_adjoint_group<Real, true>, RealTraits<Real>::lanes>(a, begin, end,
                                                                                                     scratch);
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
