#pragma once
// This integrator as rollout/make_kernel_table.h wants it described.
#include "integrators/featherstone/dynamics_kernel.h"
#include "integrators/featherstone/pose_kernel.h"
#include "integrators/featherstone/rollout_kernel.h"
#include "integrators/featherstone/step_jacobian_kernel.h"
#include "integrators/rollout/make_kernel_table.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

template <class R>
struct Kernels {
  using Real = R;
  using T = StorageOf<R>;
  template <bool Contact>
  using Rollout = Workspace<PackRollout<R, Contact>>;
  template <bool Contact>
  using Adjoint = AdjointScratch<PackAdjoint<R, Contact>>;
  static constexpr bool places = false, has_dynamics = true, linearises = std::is_floating_point_v<T>;

  static void poses(const PoseArguments<T>& a, int first_world, std::byte* scratch) {
    poses_group<R>(a, first_world, scratch);
  }
  static void poses_adjoint(const PoseArguments<T>& a, int first_world, std::byte* scratch) {
    poses_adjoint_group<R>(a, first_world, scratch);
  }
  static void step_jacobian(const StepJacobianArguments<T>& a, int first_world, std::byte* scratch) {
    step_jacobian_group<R>(a, first_world, scratch);
  }
  static void dynamics(const DynamicsArguments<T>& a, int first_world, std::byte* scratch) {
    dynamics_group<R>(a, first_world, scratch);
  }
  static void dynamics_adjoint(const DynamicsArguments<T>& a, int first_world, std::byte* scratch) {
    dynamics_adjoint_group<R>(a, first_world, scratch);
  }
  static std::size_t pose_scratch_bytes(const PoseArguments<T>& a) {
    return bytes_of<PoseScratch<PackPosesAdjoint<R>>>(a);
  }
};

/// Made by make_kernel_table, in a file of its own for each T (kernel_instances.cpp).
template <class T>
const KernelTable<T>& table();

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
