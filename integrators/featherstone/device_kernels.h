#pragma once
// The kernels as functors of a world, for GPUs: a thread runs all steps of one world with its own working set. The same
// source as on the CPU, with Real = T and one lane. Compiled for devices with BACKDRIVE_KERNELS=device.
//
// A functor is trivially copyable and is passed to the device by value; the pointers in its arguments, those of links,
// constants, status and clipped among them, are device pointers then. It runs for worlds 0 ≤ world < launch.worlds:
// there is no padding. visit_bucket and block_bytes run on the host, with a view of links that lie there.
#include <type_traits>

#include "integrators/featherstone/pose_kernel.h"
#include "integrators/featherstone/rollout_kernel.h"
#include "integrators/rollout/world_blocks.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// In place of a bucket: a tree of any size, with couplings or without, whose working set lies in kOwnBlock or in a
/// block of memory per world; and a model of any size in which something can touch something, likewise.
constexpr int kAnyLinks = 0, kContactLinks = -1;
constexpr bool in_blocks(int links) {
  return links <= 0;
}
/// Room for values that wait in a sweep: quadrupeds need 1, humanoids with hands 3.
constexpr int stack_room(int links) {
  return links / 8;
}

constexpr bool fits(const TopologyView& t, int stack, int links) {
  return t.link_count <= links && t.nq <= links && t.nv <= links && stack <= stack_room(links);
}

/// Calls visit(std::integral_constant<int, Links>{}) for the smallest bucket that holds the tree, or with kAnyLinks.
template <class Visit>
void visit_bucket(const TopologyView& t, Visit&& visit) {
  const int stack = stack_values(t);
  if (t.coupling_count > 0) return visit(std::integral_constant<int, kAnyLinks>{});
  if (fits(t, stack, 8)) return visit(std::integral_constant<int, 8>{});
  if (fits(t, stack, 16)) return visit(std::integral_constant<int, 16>{});
  if (fits(t, stack, 32)) return visit(std::integral_constant<int, 32>{});
  if (fits(t, stack, 64)) return visit(std::integral_constant<int, 64>{});
  visit(std::integral_constant<int, kAnyLinks>{});
}

/// The same for rollouts, with kContactLinks where there is contact.
template <class Visit>
void visit_rollout_bucket(const TopologyView& t, Visit&& visit) {
  if (t.contact_pair_count > 0) return visit(std::integral_constant<int, kContactLinks>{});
  visit_bucket(t, visit);
}

/// Items of sizeof(X) / sizeof(T) rows each, read where they lie.
template <class X, class T>
struct ItemsInPlace {
  const T* first;
  std::ptrdiff_t stride;  ///< between rows; 1 for the only column of what all worlds share

  BACKDRIVE_INLINE X operator[](int i) const {
    constexpr int rows = kNumbers<T, X>;
    X x;
    const T* at = first + i * rows * stride;
    for (int k = 0; k < rows; ++k) numbers_of<T>(&x)[k] = at[k * stride];
    return x;
  }
};
template <class X, class T>
BACKDRIVE_INLINE ItemsInPlace<X, T> items_in_place(const Launch<T>& launch, int first_row, int world) {
  const std::ptrdiff_t stride = launch.constants_per_world ? launch.stride : 1;
  return {launch.constants + first_row * stride + (launch.constants_per_world ? world : 0), stride};
}

/// Rows of a step, read and set where they lie. Null: zero, and for nobody.
template <class T>
struct RowsInPlace {
  T* at;
  std::ptrdiff_t stride;

  BACKDRIVE_INLINE T operator[](int k) const { return at ? at[k * stride] : T(0); }
  BACKDRIVE_INLINE void set(int k, const T& x) const {
    if (at) at[k * stride] = x;
  }
  BACKDRIVE_INLINE void take(const WorldGroup& group, const T* from, std::size_t first_row, int, int) {
    begin(group, const_cast<T*>(from), first_row);
  }
  BACKDRIVE_INLINE void pad(int, int, int) const {}
  BACKDRIVE_INLINE void begin(const WorldGroup& group, T* to, std::size_t first_row) {
    at = to ? to + group.at(first_row) : nullptr;
    stride = group.stride;
  }
  BACKDRIVE_INLINE void end(const WorldGroup&, T*, std::size_t, int, int) const {}
};

template <class T, bool Contact, bool Coupled>
struct ThreadRollout {
  using Real = T;
  using Link = RolloutLink<T>;
  using Dof = RolloutDof<T>;
  using Touch = MovingTouchLink<T>;
  using Constants = ItemsInPlace<LinkConstants<T>, T>;
  using ShapeRows = ItemsInPlace<ShapeConstants<T>, T>;
  using CouplingRows = ItemsInPlace<CouplingConstants<T>, T>;
  using RatioRows = ItemsInPlace<T, T>;
  using Control = RowsInPlace<T>;
  static constexpr bool ahead = false, contact = Contact, coupled = Coupled;
};
template <class T, bool Parameters, bool Contact, bool Coupled>
struct ThreadAdjoint : ThreadRollout<T, Contact, Coupled> {
  using Link = std::conditional_t<Parameters || Contact, ParameterLink<T>, AdjointLink<T>>;
  using Dof = std::conditional_t<Contact, ContactAdjointDof<T>, AdjointDof<T>>;
  using Touch = contact::TouchAdjointLink<T>;
  using ControlBar = RowsInPlace<T>;
  static constexpr bool parameters = Parameters;
};
template <class T>
struct ThreadPoses {
  using Real = T;
  using Link = PoseLink<T>;
  using Constants = ItemsInPlace<LinkConstants<T>, T>;
  using Alignments = ItemsInPlace<Mat3<T>, T>;
  static constexpr bool parameters = false;
};
template <class T, bool Parameters>
struct ThreadPosesAdjoint : ThreadPoses<T> {
  using Link = PoseAdjointLink<T>;
  static constexpr bool parameters = Parameters;
};

// ---- arrays of one thread -------------------------------------------------------------------------------------------
// Arrays of degrees of freedom and of positions are as long as those of links: a tree with a free root goes by them.

template <class Layout, int Links>
struct ThreadArrays {
  using T = typename Layout::Real;
  typename Layout::Link link[Links];
  typename Layout::Dof dof[Links];
  T q[Links], qd[Links], share[Links], qdd[Links], rates[Links];
  T stack[stack_room(Links) * kStackNumbers<T>];

  BACKDRIVE_INLINE void lay_out(Workspace<Layout>& ws) {
    ws.link = link, ws.dof = dof, ws.q = q, ws.qd = qd, ws.stack = stack;
    ws.middle.share = share, ws.middle.qdd = qdd, ws.middle.rates = rates;
  }
};
template <class Layout, int Links>
struct ThreadAdjointArrays : ThreadArrays<Layout, Links> {
  using T = typename Layout::Real;
  WhipLink<T> whip[Links];
  T q_bar[Links], qd_bar[Links];
  T rates_bar[Links], w[Links];
  T parameter_bar[Layout::parameters ? gradient_rows<T>(Links) : 1];

  BACKDRIVE_INLINE void lay_out(const TopologyView& t, AdjointScratch<Layout>& g) {
    ThreadArrays<Layout, Links>::lay_out(g.ws);
    g.ws.whip = whip;
    g.ws.middle.rates_bar = rates_bar, g.ws.middle.w = w;
    g.bar.q = q_bar, g.bar.qd = qd_bar, g.bar.rates = g.ws.qd;
    name_parameters(t, Layout::parameters ? parameter_bar : nullptr, g);
  }
};
template <class Layout, int Links>
struct ThreadPoseArrays {
  using T = typename Layout::Real;
  typename Layout::Link link[Links];
  T q[Links], qd[Links], q_bar[Links], qd_bar[Links];
  T parameter_bar[Layout::parameters ? gradient_rows<T>(Links) : 1];

  BACKDRIVE_INLINE void lay_out(PoseScratch<Layout>& g) {
    g.link = link, g.q = q, g.qd = qd, g.q_bar = q_bar, g.qd_bar = qd_bar;
    g.parameter_bar = Layout::parameters ? parameter_bar : nullptr;
    g.gradient = structs_of<LinkGradient<T>>(g.parameter_bar);
  }
};

template <class T, class Layout>
BACKDRIVE_INLINE void set_model_in_place(Workspace<Layout>& ws, const Launch<T>& launch, int world) {
  set_model(ws, launch);
  ws.constants = items_in_place<LinkConstants<T>>(launch, 0, world);
  if constexpr (Layout::contact) {
    ws.contact.constants = items_in_place<ShapeConstants<T>>(launch, shape_row<T>(launch.topology.link_count), world);
    ws.contact.geometry = launch.geometry;
  }
  ws.gravity = items_in_place<Vec3<T>>(launch, gravity_row<T>(launch.topology.link_count), world)[0];
  if constexpr (Layout::coupled) {
    const TopologyView& t = launch.topology;
    ws.coupling.constants =
        items_in_place<CouplingConstants<T>>(launch, coupling_row<T>(t.link_count, t.contact_shape_count), world);
    ws.coupling.ratios =
        items_in_place<T>(launch, ratio_row<T>(t.link_count, t.contact_shape_count, t.coupling_count), world);
  }
}

// ---- functors -------------------------------------------------------------------------------------------------------
// Links: a bucket that holds the tree, or kAnyLinks or kContactLinks with kOwnBlock or blocks. array_bytes is what a
// thread's arrays take: local memory beyond that is spills. least_blocks: of threads on a multiprocessor
// (cuda_launch.cuh); the part for trees that whip, seldom called, spills for that, where its registers would leave room
// for one block less.

/// Bytes of the arrays of a bucket.
template <template <class, int> class Arrays, class Layout, int Links>
constexpr std::size_t bytes_of_arrays() {
  if constexpr (in_blocks(Links)) {
    return kOwnBlock;
  } else {
    return sizeof(Arrays<Layout, Links>);
  }
}

template <class T, int Links>
struct RolloutWorld {
  using Layout = ThreadRollout<T, Links == kContactLinks, in_blocks(Links)>;
  static constexpr std::size_t array_bytes = bytes_of_arrays<ThreadArrays, Layout, Links>();
  static constexpr int least_blocks = sizeof(T) == 4 && !in_blocks(Links) ? 4 : 0;
  RolloutArguments<T> arguments;
  WorldBlocks blocks{};

  BACKDRIVE_HD void operator()(int world) const {
    Workspace<Layout> ws;
    set_model_in_place(ws, arguments.launch, world);
    if constexpr (in_blocks(Links)) {
      alignas(64) std::byte own[kOwnBlock];
      Arena arena(blocks.of(world, own));
      take_arrays(arguments.launch.topology, arena, ws);
      if constexpr (Layout::contact) {
        contact::plan_contacts(ws);
        watch_trees(ws);
      }
      rollout_worlds(arguments, ws, world);
    } else {
      ThreadArrays<Layout, Links> arrays;
      arrays.lay_out(ws);
      rollout_worlds(arguments, ws, world);
    }
  }
  static std::size_t block_bytes(const TopologyView& t) {
    Workspace<Layout> ws;
    Arena counter(nullptr);
    take_arrays(t, counter, ws);
    return counter.used();
  }
};

/// Parameters: with gradients of parameters, arguments.constants_bar not null; with contact, it may be null.
template <class T, int Links, bool Parameters>
struct RolloutAdjointWorld {
  using Layout = ThreadAdjoint<T, Parameters, Links == kContactLinks, in_blocks(Links)>;
  static constexpr std::size_t array_bytes = bytes_of_arrays<ThreadAdjointArrays, Layout, Links>();
  static constexpr int least_blocks = sizeof(T) == 4 && !in_blocks(Links) ? 3 : 0;
  RolloutAdjointArguments<T> arguments;
  WorldBlocks blocks{};

  BACKDRIVE_HD void operator()(int world) const {
    const TopologyView& t = arguments.launch.topology;
    AdjointScratch<Layout> g;
    set_model_in_place(g.ws, arguments.launch, world);
    if constexpr (in_blocks(Links)) {
      alignas(64) std::byte own[kOwnBlock];
      Arena arena(blocks.of(world, own));
      take_arrays(t, Parameters && arguments.constants_bar, arena, g);
      if constexpr (Layout::contact) {
        contact::plan_contacts(g.ws);
        watch_trees(g.ws);
      }
      rollout_adjoint_worlds(arguments, g, world);
    } else {
      ThreadAdjointArrays<Layout, Links> arrays;
      arrays.lay_out(t, g);
      rollout_adjoint_worlds(arguments, g, world);
    }
  }
  static std::size_t block_bytes(const TopologyView& t) {
    AdjointScratch<Layout> g;
    Arena counter(nullptr);
    take_arrays(t, Parameters, counter, g);
    return counter.used();
  }
};

/// What both pose functors do.
template <class Layout, int Links, class Body>
BACKDRIVE_INLINE void run_poses(const PoseArguments<typename Layout::Real>& a, const WorldBlocks& blocks, int world,
                                bool adjoint, const Body& body) {
  using T = typename Layout::Real;
  const TopologyView& t = a.launch.topology;
  PoseScratch<Layout> g;
  g.links = t.links;
  g.link_count = t.link_count;
  g.constants = items_in_place<LinkConstants<T>>(a.launch, 0, world);
  g.alignments = items_in_place<Mat3<T>>(a.launch, alignment_row<T>(t.link_count), world);
  if constexpr (Links == kAnyLinks) {
    alignas(64) std::byte own[kOwnBlock];
    Arena arena(blocks.of(world, own));
    take_arrays(t, adjoint, Layout::parameters, arena, g);
    body(g);
  } else {
    ThreadPoseArrays<Layout, Links> arrays;
    arrays.lay_out(g);
    body(g);
  }
}
template <class Layout>
std::size_t pose_block_bytes(const TopologyView& t, bool adjoint) {
  PoseScratch<Layout> g;
  Arena counter(nullptr);
  take_arrays(t, adjoint, Layout::parameters, counter, g);
  return counter.used();
}

template <class T, int Links>
struct PosesWorld {
  using Layout = ThreadPoses<T>;
  static constexpr std::size_t array_bytes = bytes_of_arrays<ThreadPoseArrays, Layout, Links>();
  PoseArguments<T> arguments;
  WorldBlocks blocks{};

  BACKDRIVE_HD void operator()(int world) const {
    run_poses<Layout, Links>(arguments, blocks, world, false,
                             [&](PoseScratch<Layout>& g) { poses_worlds(arguments, g, world); });
  }
  static std::size_t block_bytes(const TopologyView& t) { return pose_block_bytes<Layout>(t, false); }
};

template <class T, int Links, bool Parameters>
struct PosesAdjointWorld {
  using Layout = ThreadPosesAdjoint<T, Parameters>;
  static constexpr std::size_t array_bytes = bytes_of_arrays<ThreadPoseArrays, Layout, Links>();
  PoseArguments<T> arguments;
  WorldBlocks blocks{};

  BACKDRIVE_HD void operator()(int world) const {
    run_poses<Layout, Links>(arguments, blocks, world, true,
                             [&](PoseScratch<Layout>& g) { poses_adjoint_worlds(arguments, g, world); });
  }
  static std::size_t block_bytes(const TopologyView& t) { return pose_block_bytes<Layout>(t, true); }
};

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS

/// X(type) for the functors of a part that are compiled for devices; X is variadic, since a type has commas. What a
/// part has takes nvcc about as long as that of another (integrators/CMakeLists.txt names them).
#define BACKDRIVE_DEVICE_PART_contact(X, T) \
  X(backdrive::featherstone::RolloutWorld<T, backdrive::featherstone::kContactLinks>)
#define BACKDRIVE_DEVICE_PART_contact_adjoint(X, T) \
  X(backdrive::featherstone::RolloutAdjointWorld<T, backdrive::featherstone::kContactLinks, true>)
#define BACKDRIVE_DEVICE_PART_small(X, T) BACKDRIVE_DEVICE_BUCKET(X, T, 8) BACKDRIVE_DEVICE_BUCKET(X, T, 16)
#define BACKDRIVE_DEVICE_PART_large(X, T) BACKDRIVE_DEVICE_BUCKET(X, T, 32) BACKDRIVE_DEVICE_BUCKET(X, T, 64)
#define BACKDRIVE_DEVICE_PART_any(X, T) BACKDRIVE_DEVICE_BUCKET(X, T, backdrive::featherstone::kAnyLinks)
#define BACKDRIVE_DEVICE_BUCKET(X, T, Links)                       \
  X(backdrive::featherstone::RolloutWorld<T, Links>)               \
  X(backdrive::featherstone::RolloutAdjointWorld<T, Links, false>) \
  X(backdrive::featherstone::RolloutAdjointWorld<T, Links, true>)  \
  X(backdrive::featherstone::PosesWorld<T, Links>)                 \
  X(backdrive::featherstone::PosesAdjointWorld<T, Links, false>)   \
  X(backdrive::featherstone::PosesAdjointWorld<T, Links, true>)
