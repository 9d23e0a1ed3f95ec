#pragma once
// The kernels as functors of a world, for GPUs, as featherstone/device_kernels.h has them for trees: a thread runs all
// steps of one world. One functor for models of any size: its working set, a copy of the world's constants included,
// lies in kOwnBlock or in a block of memory per world; and another for models in which something can touch something.
// Compiled for devices with BACKDRIVE_KERNELS=device.
#include "integrators/rollout/world_blocks.h"
#include "integrators/semi_implicit/contact_rollout_kernel.h"
#include "integrators/semi_implicit/pose_kernel.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

/// What a functor carries. `arguments.launch.bodies` is the host's, which makes the functor; threads read `tables`.
template <class Arguments>
struct OfWorld {
  Arguments arguments;
  TablesView tables{};
  WorldBlocks blocks{};
  static constexpr std::size_t array_bytes = kOwnBlock;

 protected:
  /// Calls run(arguments as a thread reads them, its block).
  template <class Run>
  BACKDRIVE_HD void with_block(int world, const Run& run) const {
    Arguments own = arguments;
    own.launch.bodies = &tables;
    alignas(64) std::byte block[kOwnBlock];
    run(own, blocks.of(world, block));
  }
};

/// Bytes of a block, counted on the host. `adjoint` as prepare() of the scratch has it, where it has one.
template <class Scratch, class T, class... Adjoint>
std::size_t block_bytes(const Launch<T>& launch, Adjoint... adjoint) {
  Scratch s;
  Arena counter(nullptr);
  prepare(launch, 0, adjoint..., counter, s);
  return counter.used();
}

template <class T>
struct RolloutWorld : OfWorld<RolloutArguments<T>> {
  BACKDRIVE_HD void operator()(int world) const {
    this->with_block(world, [&](const auto& a, std::byte* block) { rollout_group<Space<T>>(a, world, block); });
  }
  std::size_t block_bytes() const { return semi_implicit::block_bytes<Space<T>>(this->arguments.launch, false); }
};

/// With or without gradients of parameters, as arguments.constants_bar says.
template <class T>
struct RolloutAdjointWorld : OfWorld<RolloutAdjointArguments<T>> {
  BACKDRIVE_HD void operator()(int world) const {
    this->with_block(
        world, [&](const auto& a, std::byte* block) { rollout_adjoint_group<AdjointScratch<T>>(a, world, block); });
  }
  std::size_t block_bytes() const {
    const auto& a = this->arguments;
    return semi_implicit::block_bytes<AdjointScratch<T>>(a.launch, a.constants_bar != nullptr);
  }
};

/// The same with contact.
template <class T>
struct ContactRolloutWorld : OfWorld<RolloutArguments<T>> {
  BACKDRIVE_HD void operator()(int world) const {
    this->with_block(world, [&](const auto& a, std::byte* block) { rollout_group<ContactSet<T>>(a, world, block); });
  }
  std::size_t block_bytes() const { return semi_implicit::block_bytes<ContactSet<T>>(this->arguments.launch); }
};
template <class T>
struct ContactRolloutAdjointWorld : OfWorld<RolloutAdjointArguments<T>> {
  BACKDRIVE_HD void operator()(int world) const {
    this->with_block(world, [&](const auto& a, std::byte* block) {
      rollout_adjoint_group<ContactAdjointScratch<T>>(a, world, block);
    });
  }
  std::size_t block_bytes() const {
    const auto& a = this->arguments;
    return semi_implicit::block_bytes<ContactAdjointScratch<T>>(a.launch, a.constants_bar != nullptr);
  }
};

template <class T>
struct PosesWorld : OfWorld<PoseArguments<T>> {
  BACKDRIVE_HD void operator()(int world) const {
    this->with_block(world, [&](const auto& a, std::byte* block) { poses_group<T>(a, world, block); });
  }
  std::size_t block_bytes() const { return 0; }
};

template <class T>
struct PosesAdjointWorld : OfWorld<PoseArguments<T>> {
  BACKDRIVE_HD void operator()(int world) const {
    this->with_block(world, [&](const auto& a, std::byte* block) { poses_adjoint_group<T>(a, world, block); });
  }
  std::size_t block_bytes() const {
    Arena counter(nullptr);
    counter.take<T>(this->arguments.launch.topology.nq);
    counter.take<T>(this->arguments.launch.topology.nv);
    return counter.used();
  }
};

template <class T>
struct PlaceWorld : OfWorld<PlaceArguments<T>> {
  BACKDRIVE_HD void operator()(int world) const {
    this->with_block(world, [&](const auto& a, std::byte* block) { place_group<T>(a, world, block); });
  }
  std::size_t block_bytes() const { return semi_implicit::block_bytes<Space<T>>(this->arguments.launch, false); }
};

/// As RolloutAdjointWorld.
template <class T>
struct PlaceAdjointWorld : OfWorld<PlaceArguments<T>> {
  BACKDRIVE_HD void operator()(int world) const {
    this->with_block(world, [&](const auto& a, std::byte* block) { place_adjoint_group<T>(a, world, block); });
  }
  std::size_t block_bytes() const {
    const auto& a = this->arguments;
    return semi_implicit::block_bytes<AdjointScratch<T>>(a.launch, a.constants_bar != nullptr);
  }
};

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS

/// X(type) for the functors of a part that are compiled for devices; those with contact take nvcc longest.
#define BACKDRIVE_SEMI_IMPLICIT_PART_free(X, T)       \
  X(backdrive::semi_implicit::RolloutWorld<T>)        \
  X(backdrive::semi_implicit::RolloutAdjointWorld<T>) \
  X(backdrive::semi_implicit::PosesWorld<T>)          \
  X(backdrive::semi_implicit::PosesAdjointWorld<T>)   \
  X(backdrive::semi_implicit::PlaceWorld<T>)          \
  X(backdrive::semi_implicit::PlaceAdjointWorld<T>)
#define BACKDRIVE_SEMI_IMPLICIT_PART_contact(X, T) X(backdrive::semi_implicit::ContactRolloutWorld<T>)
#define BACKDRIVE_SEMI_IMPLICIT_PART_contact_adjoint(X, T) X(backdrive::semi_implicit::ContactRolloutAdjointWorld<T>)
