#pragma once
// Makes the kernel table of an integrator for one instruction set and number type. The integrator is described by
//
//   K::Real
//   K::Rollout<Contact>, K::Adjoint<Contact>    working sets of rollout/shell.h, without and with contact
//   K::poses, K::poses_adjoint                  (arguments, first world, scratch)
//   K::places, K::place, K::place_adjoint       the latter two where `places` is true
//   K::pose_scratch_bytes(arguments)            of an adjoint with gradients of parameters
//   K::has_dynamics, K::dynamics,               the latter two where `has_dynamics` is true,
//      K::dynamics_adjoint
//   K::linearises, K::step_jacobian             the latter where `linearises` is true; none of these takes more scratch
//                                                  than an adjoint of a rollout
#include <algorithm>

#include "integrators/rollout/effort_kernel.h"
#include "integrators/rollout/kernel_table.h"
#include "integrators/rollout/shell.h"

namespace backdrive::inline BACKDRIVE_KERNELS {

template <class Arguments, void (*Group)(const Arguments&, int, std::byte*), int lanes>
void each_group(const Arguments& a, int begin, int end, std::byte* scratch) {
  for (int group = begin; group < end; ++group) Group(a, group * lanes, scratch);
}

/// Enough for every kernel.
template <class K>
std::size_t scratch_bytes(const Launch<StorageOf<typename K::Real>>& launch) {
  using T = StorageOf<typename K::Real>;
  T some{};  // in place of what is asked for
  RolloutArguments<T> rollout{};
  RolloutAdjointArguments<T> adjoint{};
  PoseArguments<T> poses{};
  rollout.launch = adjoint.launch = poses.launch = launch;
  adjoint.constants_bar = poses.constants_bar = poses.q_bar = &some;
  return std::max({bytes_of<typename K::template Rollout<true>>(rollout),
                   bytes_of<typename K::template Adjoint<true>>(adjoint), K::pose_scratch_bytes(poses)});
}

/// Of models in which something can touch something; compiled apart from the others (contact_kernel_instances.cpp).
template <class K>
struct ContactKernels {
  using T = StorageOf<typename K::Real>;
  static void rollout(const RolloutArguments<T>& a, int begin, int end, std::byte* scratch);
  static void rollout_adjoint(const RolloutAdjointArguments<T>& a, int begin, int end, std::byte* scratch);
};
template <class K>
void ContactKernels<K>::rollout(const RolloutArguments<T>& a, int begin, int end, std::byte* scratch) {
  each_group<RolloutArguments<T>, rollout_group<typename K::template Rollout<true>, T>,
             RealTraits<typename K::Real>::lanes>(a, begin, end, scratch);
}
template <class K>
void ContactKernels<K>::rollout_adjoint(const RolloutAdjointArguments<T>& a, int begin, int end, std::byte* scratch) {
  each_group<RolloutAdjointArguments<T>, rollout_adjoint_group<typename K::template Adjoint<true>, T>,
             RealTraits<typename K::Real>::lanes>(a, begin, end, scratch);
}

/// Calls one of two kernels, by whether something can touch something.
template <class Arguments, void (*Free)(const Arguments&, int, int, std::byte*),
          void (*Touching)(const Arguments&, int, int, std::byte*)>
void by_contact(const Arguments& a, int begin, int end, std::byte* scratch) {
  (a.launch.topology.contact_pair_count > 0 ? Touching : Free)(a, begin, end, scratch);
}

template <class K>
constexpr KernelTable<StorageOf<typename K::Real>> make_kernel_table() {
  using T = StorageOf<typename K::Real>;
  using Forward = RolloutArguments<T>;
  using Back = RolloutAdjointArguments<T>;
  constexpr int lanes = RealTraits<typename K::Real>::lanes;
  using Free = typename K::template Rollout<false>;
  using FreeAdjoint = typename K::template Adjoint<false>;
  KernelTable<T> table{};
  table.lanes = lanes;
  table.scratch_bytes = scratch_bytes<K>;
  table.rollout = by_contact<Forward, each_group<Forward, rollout_group<Free, T>, lanes>, ContactKernels<K>::rollout>;
  table.rollout_adjoint = by_contact<Back, each_group<Back, rollout_adjoint_group<FreeAdjoint, T>, lanes>,
                                     ContactKernels<K>::rollout_adjoint>;
  table.poses = each_group<PoseArguments<T>, K::poses, lanes>;
  table.poses_adjoint = each_group<PoseArguments<T>, K::poses_adjoint, lanes>;
  table.efforts = each_group<EffortArguments<T>, efforts_group<typename K::Real>, lanes>;
  table.efforts_adjoint = each_group<EffortArguments<T>, efforts_adjoint_group<typename K::Real>, lanes>;
  if constexpr (K::linearises) table.step_jacobian = each_group<StepJacobianArguments<T>, K::step_jacobian, lanes>;
  if constexpr (K::has_dynamics) {
    table.dynamics = each_group<DynamicsArguments<T>, K::dynamics, lanes>;
    table.dynamics_adjoint = each_group<DynamicsArguments<T>, K::dynamics_adjoint, lanes>;
  }
  if constexpr (K::places) {
    table.place = each_group<PlaceArguments<T>, K::place, lanes>;
    table.place_adjoint = each_group<PlaceArguments<T>, K::place_adjoint, lanes>;
  }
  return table;
}

}  // namespace backdrive::inline BACKDRIVE_KERNELS
