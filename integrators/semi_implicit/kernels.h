#pragma once
// This integrator as rollout/make_kernel_table.h wants it described. A state has the coordinates of all joints and,
// behind them, the poses and velocities of all bodies (Topology): the bodies are what is stepped, and the joints' rows
// are read off after every step.
#include "integrators/rollout/make_kernel_table.h"
#include "integrators/semi_implicit/contact_rollout_kernel.h"
#include "integrators/semi_implicit/pose_kernel.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

template <class R>
struct Kernels {
  using Real = R;
  using T = StorageOf<R>;
  template <bool Contact>
  using Rollout = std::conditional_t<Contact, ContactSet<R>, Space<R>>;
  template <bool Contact>
  using Adjoint = std::conditional_t<Contact, ContactAdjointScratch<R>, AdjointScratch<R>>;
  static constexpr bool places = true, has_dynamics = false, linearises = false;

  static void poses(const PoseArguments<T>& a, int first_world, std::byte* scratch) {
    poses_group<R>(a, first_world, scratch);
  }
  static void poses_adjoint(const PoseArguments<T>& a, int first_world, std::byte* scratch) {
    poses_adjoint_group<R>(a, first_world, scratch);
  }
  static void place(const PlaceArguments<T>& a, int first_world, std::byte* scratch) {
    place_group<R>(a, first_world, scratch);
  }
  static void place_adjoint(const PlaceArguments<T>& a, int first_world, std::byte* scratch) {
    place_adjoint_group<R>(a, first_world, scratch);
  }
  static std::size_t pose_scratch_bytes(const PoseArguments<T>& a) {
    Arena counter(nullptr);
    counter.take<R>(a.launch.topology.nq);
    counter.take<R>(a.launch.topology.nv);
    return counter.used();
  }
};

/// Made by make_kernel_table, in a file of its own for each T (kernel_instances.cpp).
template <class T>
const KernelTable<T>& table();

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
