#pragma once
// The kernels as functors of a world, for GPUs: a thread runs all steps of one world with its own working set. The same
// source as on the CPU, with Real = T and one lane. Compiled for devices with BACKDRIVE_KERNELS=device.
//
// A functor is trivially copyable and is passed to the device by value; the pointers in its arguments are device
// pointers then. It runs for worlds 0 ≤ world < launch.worlds: there is no padding.
#include <type_traits>

#include "integrators/featherstone/pose_kernel.h"
#include "integrators/featherstone/rollout_kernel.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// In place of a bucket: a tree of any size, whose working set lies in a block of memory per world.
constexpr int kAnyLinks = 0;
constexpr int kLinkBuckets[] = {8, 16, 32, 64};

/// Smallest bucket that holds the tree, or kAnyLinks.
inline int link_bucket(const TopologyView& t) {
  for (const int links : kLinkBuckets) {
    if (t.link_count <= links && t.nq <= links && t.nv <= links && t.nu <= 3 * links) return links;
  }
  return kAnyLinks;
}

/// Calls visit(std::integral_constant<int, Links>{}) for the bucket that holds the tree.
template <class Visit>
void visit_bucket(const TopologyView& t, Visit&& visit) {
  switch (link_bucket(t)) {
    case 8:
      return visit(std::integral_constant<int, 8>{});
    case 16:
      return visit(std::integral_constant<int, 16>{});
    case 32:
      return visit(std::integral_constant<int, 32>{});
    case 64:
      return visit(std::integral_constant<int, 64>{});
    default:
      return visit(std::integral_constant<int, kAnyLinks>{});
  }
}

/// Working sets of trees larger than any bucket: world w's begins at first + w·bytes. Both are multiples of 64.
struct WorldBlocks {
  std::byte* first = nullptr;
  std::size_t bytes = 0;  ///< working_set_bytes of the tree
};

template <class T>
std::size_t working_set_bytes(const TopologyView& t) {
  GroupScratch<T> g;
  return carve<T>(t, nullptr, g);
}

/// The working set of one thread. Dof arrays are as long as the links: no joint so far has more than one.
template <class T, int Links>
struct ThreadScratch {
  LinkScratch<T> link[Links];
  DofScratch<T> dof[Links];
  LinkBar<T> bar[Links];
  LinkConstants<T> constants[Links];
  Mat3<T> alignment[Links];
  T q[Links], qd[Links], control[3 * Links];
  T q_bar[Links], qd_bar[Links], control_bar[3 * Links];
  T parameter_bar[Links * kLinkGradients<T> + 3], parameter_bar_before[Links * kLinkGradients<T> + 3];

  BACKDRIVE_HD explicit ThreadScratch(const TopologyView&, const WorldBlocks&, int) {}
  BACKDRIVE_INLINE void lay_out(GroupScratch<T>& g, const TopologyView& t) {
    g.ws.link = link, g.ws.dof = dof, g.ws.bar = bar;
    g.ws.q = q, g.ws.qd = qd, g.ws.control = control;
    g.constants = constants, g.alignment_room = alignment;
    g.q_bar = q_bar, g.qd_bar = qd_bar, g.control_bar = control_bar;
    set_parameter_bar(g, t, parameter_bar);
    g.parameter_bar_before = parameter_bar_before;
  }
};

template <class T>
struct ThreadScratch<T, kAnyLinks> {
  std::byte* block;

  BACKDRIVE_HD ThreadScratch(const TopologyView&, const WorldBlocks& blocks, int world)
      : block(blocks.first + world * blocks.bytes) {}
  BACKDRIVE_INLINE void lay_out(GroupScratch<T>& g, const TopologyView& t) { carve<T>(t, block, g); }
};

/// Constants that all worlds share are read where they lie: one column is an array of LinkConstants<T>, then one of
/// alignments, then gravity.
template <class T>
BACKDRIVE_INLINE void set_constants(GroupScratch<T>& g, const Launch<T>& launch, int world) {
  if (launch.constants_per_world) {
    fill_constants(g, launch, world);
    return;
  }
  const int n = launch.topology.link_count;
  g.ws.constants = reinterpret_cast<const LinkConstants<T>*>(launch.constants);
  g.alignment = reinterpret_cast<const Mat3<T>*>(launch.constants + n * kLinkConstants<T>);
  g.ws.gravity = *reinterpret_cast<const Vec3<T>*>(launch.constants + n * (kLinkConstants<T> + 9));
}

/// Calls body(arguments, working set, world).
template <class T, int Links, class Arguments, class Body>
BACKDRIVE_INLINE void run_world(const Arguments& a, const WorldBlocks& blocks, int world, const Body& body) {
  ThreadScratch<T, Links> scratch(a.launch.topology, blocks, world);
  GroupScratch<T> g;
  scratch.lay_out(g, a.launch.topology);
  set_model(g, a.launch);
  set_constants(g, a.launch, world);
  body(a, g, world);
}

/// Links: a bucket that holds the tree, or kAnyLinks with blocks.
template <class T, int Links>
struct RolloutWorld {
  RolloutArguments<T> arguments;
  WorldBlocks blocks{};
  BACKDRIVE_HD void operator()(int world) const {
    run_world<T, Links>(arguments, blocks, world,
                        [](const auto& a, GroupScratch<T>& g, int w) { rollout_worlds(a, g, w); });
  }
};

template <class T, int Links>
struct RolloutAdjointWorld {
  RolloutAdjointArguments<T> arguments;
  WorldBlocks blocks{};
  BACKDRIVE_HD void operator()(int world) const {
    run_world<T, Links>(arguments, blocks, world,
                        [](const auto& a, GroupScratch<T>& g, int w) { rollout_adjoint_worlds(a, g, w); });
  }
};

template <class T, int Links>
struct PosesWorld {
  PoseArguments<T> arguments;
  WorldBlocks blocks{};
  BACKDRIVE_HD void operator()(int world) const {
    run_world<T, Links>(arguments, blocks, world,
                        [](const auto& a, GroupScratch<T>& g, int w) { poses_worlds(a, g, w); });
  }
};

template <class T, int Links>
struct PosesAdjointWorld {
  PoseArguments<T> arguments;
  WorldBlocks blocks{};
  BACKDRIVE_HD void operator()(int world) const {
    run_world<T, Links>(arguments, blocks, world,
                        [](const auto& a, GroupScratch<T>& g, int w) { poses_adjoint_worlds(a, g, w); });
  }
};

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS

/// X(type) for every functor that is compiled for devices.
#define BACKDRIVE_DEVICE_FUNCTORS(X)     \
  BACKDRIVE_DEVICE_FUNCTORS_OF(X, float) \
  BACKDRIVE_DEVICE_FUNCTORS_OF(X, double)
#define BACKDRIVE_DEVICE_FUNCTORS_OF(X, T)                                     \
  BACKDRIVE_DEVICE_BUCKETS(X, backdrive::featherstone::RolloutWorld, T)        \
  BACKDRIVE_DEVICE_BUCKETS(X, backdrive::featherstone::RolloutAdjointWorld, T) \
  BACKDRIVE_DEVICE_BUCKETS(X, backdrive::featherstone::PosesWorld, T)          \
  BACKDRIVE_DEVICE_BUCKETS(X, backdrive::featherstone::PosesAdjointWorld, T)
#define BACKDRIVE_DEVICE_BUCKETS(X, Functor, T) \
  X(Functor<T, 8>)                              \
  X(Functor<T, 16>) X(Functor<T, 32>) X(Functor<T, 64>) X(Functor<T, backdrive::featherstone::kAnyLinks>)
