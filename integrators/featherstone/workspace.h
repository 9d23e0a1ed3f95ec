#pragma once
// The working set of one lane group: its parts, how the pack kernels lay them out in scratch memory, and rows of
// buffers in and out of it.
#include <cstddef>
#include <new>

#include "integrators/featherstone/kernels.h"
#include "integrators/featherstone/tree_contact_adjoint.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// Hands out arrays of Real from a block, or only counts when the block is null.
class Carver {
 public:
  BACKDRIVE_HD explicit Carver(std::byte* block) : block_(block) {}
  template <class X>
  BACKDRIVE_HD X* take(std::size_t count) {
    X* at = reinterpret_cast<X*>(block_ ? block_ + used_ : nullptr);
    used_ += (count * sizeof(X) + 63) / 64 * 64;
    return at;
  }
  BACKDRIVE_HD std::size_t used() const { return used_; }
  BACKDRIVE_HD std::byte* block() const { return block_; }

 private:
  std::byte* block_;
  std::size_t used_ = 0;
};

/// A GPU hides the wait for memory behind its other threads.
template <bool Write>
BACKDRIVE_INLINE void prefetch([[maybe_unused]] const void* at) {
#if !defined(__CUDA_ARCH__)
  __builtin_prefetch(at, Write);
#endif
}

/// Of one group of worlds. `next` is ±1 when the `rows` after or before these are read next: they are fetched ahead,
/// since no hardware sees the pattern in them.
template <class Real>
BACKDRIVE_INLINE void load_rows(const StorageOf<Real>* from, std::size_t first_row, int rows, int stride,
                                int first_world, Real* to, int next = 0) {
  const StorageOf<Real>* at = from + first_row * stride + first_world;
  const std::ptrdiff_t ahead = std::ptrdiff_t(next) * rows * stride;
  for (int r = 0; r < rows; ++r, at += stride) {
    if (next != 0) prefetch<false>(at + ahead);
    to[r] = load<Real>(at);
  }
}
template <class Real>
BACKDRIVE_INLINE void store_rows(StorageOf<Real>* to, std::size_t first_row, int rows, int stride, int first_world,
                                 const Real* from, int next = 0) {
  StorageOf<Real>* at = to + first_row * stride + first_world;
  const std::ptrdiff_t ahead = std::ptrdiff_t(next) * rows * stride;
  for (int r = 0; r < rows; ++r, at += stride) {
    if (next != 0) prefetch<true>(at + ahead);
    store<Real>(at, from[r]);
  }
}

/// Rows of one step, copied into the working set.
template <class Real>
struct CopiedRows {
  using T = StorageOf<Real>;
  Real* numbers;

  BACKDRIVE_INLINE const Real& operator[](int k) const { return numbers[k]; }
  BACKDRIVE_INLINE void set(int k, const Real& x) const { numbers[k] = x; }
  BACKDRIVE_INLINE void clear(int rows) const {
    for (int k = 0; k < rows; ++k) numbers[k] = constant<Real>(0);
  }
  /// To be read; null: they stay what they are.
  BACKDRIVE_INLINE void take(const T* from, std::size_t first_row, int rows, int stride, int world, int next) const {
    if (from) load_rows(from, first_row, rows, stride, world, numbers, next);
  }
  /// To be set, and when all have been; null: for nobody.
  BACKDRIVE_INLINE void begin(T*, std::size_t, int, int) const {}
  BACKDRIVE_INLINE void end(T* to, std::size_t first_row, int rows, int stride, int world, int next) const {
    if (to) store_rows(to, first_row, rows, stride, world, numbers, next);
  }
};

/// The layouts of the pack kernels: `Link` and `Dof` are what is kept, `parameters` whether that is enough for their
/// gradients; `contact` whether anything can touch anything.
template <class R, bool Contact = false>
struct PackRollout {
  using Real = R;
  using Link = std::conditional_t<Contact, ContactLink<R>, RolloutLink<R>>;
  using Dof = DofAhead<std::conditional_t<Contact, ContactDof<R>, RolloutDof<R>>, R>;
  using Touch = TouchLink<R>;
  using Constants = const LinkConstants<R>*;
  using ShapeRows = const ShapeConstants<R>*;
  using Control = CopiedRows<R>;
  static constexpr bool ahead = true, contact = Contact;
};
template <class R, bool Contact = false>
struct PackAdjoint : PackRollout<R, Contact> {
  using Link = ParameterLink<R>;
  using Dof = DofAhead<std::conditional_t<Contact, ContactAdjointDof<R>, AdjointDof<R>>, R>;
  using Touch = TouchAdjointLink<R>;
  using ControlBar = CopiedRows<R>;
  static constexpr bool parameters = true;
};

/// Workspace of an adjoint and the cotangents that run through it.
template <class Layout>
struct AdjointScratch {
  using Real = typename Layout::Real;
  static constexpr bool contact = Layout::contact;

  Workspace<Layout> ws;
  StepBar<Layout> bar;
  Vec3<Real>* pair_forces;  ///< with contact only
  Real* parameter_bar;      ///< bar.constants, bar.gravity and bar.shapes: parameter_rows() numbers

  BACKDRIVE_HD static int parameter_rows(const TopologyView& t) {
    return gradient_rows<Real>(t.link_count, contact ? t.contact_shape_count : 0);
  }
};

/// Most values that ever wait in a sweep (see Waiting): non-last children among a link and its ancestors. O(links).
BACKDRIVE_HD inline int waiting_values(const TopologyView& t) {
  int now = 0, most = 0;
  for (int i = t.link_count - 1; i >= 0; --i) {
    if (t.links[i].parent < 0) continue;
    if (!t.links[i].last_child) --now;
    if (t.links[i].parent != i - 1) ++now;
    if (now > most) most = now;
  }
  return most;
}

/// Rows of parameters' cotangents (gradient_rows). Null: nobody asked for them.
template <class Layout>
BACKDRIVE_INLINE void name_parameters(const TopologyView& t, typename Layout::Real* rows, AdjointScratch<Layout>& g) {
  using Real = typename Layout::Real;
  g.parameter_bar = rows;
  g.bar.constants = reinterpret_cast<LinkGradient<Real>*>(rows);
  g.bar.gravity = rows ? reinterpret_cast<Vec3<Real>*>(rows + gravity_gradient_row<Real>(t.link_count)) : nullptr;
  g.bar.shapes = rows ? reinterpret_cast<ShapeGradient<Real>*>(rows + gradient_rows<Real>(t.link_count)) : nullptr;
}

/// `links`: how many the integrator has.
template <class Layout>
BACKDRIVE_HD void carve_contact_space(const TopologyView& t, int links, bool adjoint, Carver& carver,
                                      ContactSpace<Layout>& space) {
  using Real = typename Layout::Real;
  space.shapes = t.contact_shapes;
  space.pairs = t.contact_pairs;
  space.shape_count = t.contact_shape_count;
  space.pair_count = t.contact_pair_count;
  space.link_count = links;
  space.link = carver.take<typename Layout::Touch>(links);
  space.balls = carver.take<ShapeBall<Real>>(t.contact_shape_count);
  space.plans = carver.take<PairPlan>(t.contact_pair_count);
  space.points = carver.take<contact::ContactPoint<Real>>(t.most_points_of_pair);
  space.contacts = carver.take<Contact<Real>>(t.contact_point_count);
  space.bars = carver.take<ContactBar<Real>>(adjoint ? t.contact_point_count : 0);
  const int turns = t.resists_turns ? t.contact_point_count : 0;
  space.turns = carver.take<ContactTurn<Real>>(turns);
  space.turn_bars = carver.take<ContactTurnBar<Real>>(adjoint ? turns : 0);
  space.touching = carver.take<TouchingPair<Real>>(t.contact_pair_count);
}

template <class Layout>
BACKDRIVE_HD void carve(const TopologyView& t, Carver& carver, Workspace<Layout>& ws) {
  using Real = typename Layout::Real;
  ws.link = carver.take<typename Layout::Link>(t.link_count);
  ws.dof = carver.take<typename Layout::Dof>(t.nv);
  ws.q = carver.take<Real>(t.nq);
  ws.qd = carver.take<Real>(t.nv);
  const int numbers = Layout::contact ? kContactWaitingNumbers<Real> : kWaitingNumbers<Real>;
  ws.waiting = carver.take<Real>(waiting_values(t) * numbers);
  if constexpr (Layout::contact) {
    ws.drift = carver.take<Real>(t.nv);
    carve_contact_space(t, t.link_count, kIsAdjoint<Layout>, carver, ws.contact);
  }
}

/// With or without room for gradients of parameters.
template <class Layout>
BACKDRIVE_HD void carve(const TopologyView& t, bool parameters, Carver& carver, AdjointScratch<Layout>& g) {
  using Real = typename Layout::Real;
  carve(t, carver, g.ws);
  g.bar.q = carver.take<Real>(t.nq);
  g.bar.qd = carver.take<Real>(t.nv);
  g.bar.drift = Layout::contact ? carver.take<Real>(t.nv) : nullptr;
  g.pair_forces = Layout::contact ? carver.take<Vec3<Real>>(t.contact_pair_count) : nullptr;
  name_parameters(t, parameters ? carver.take<Real>(g.parameter_rows(t)) : nullptr, g);
}

/// Copies `count` Reals of constants, row by row; uniform ones are broadcast.
template <class Real>
BACKDRIVE_HD void load_constants(const Launch<StorageOf<Real>>& launch, int first_row, int first_world, Real* to,
                                 std::size_t count) {
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t row = first_row + k;
    to[k] = launch.constants_per_world ? load<Real>(launch.constants + row * launch.stride + first_world)
                                       : Real(launch.constants[row]);
  }
}

template <class Layout>
BACKDRIVE_INLINE void set_model(Workspace<Layout>& ws, const Launch<StorageOf<typename Layout::Real>>& launch) {
  const TopologyView& t = launch.topology;
  ws.links = t.links;
  ws.link_count = t.link_count;
  ws.nq = t.nq, ws.nv = t.nv;
  ws.dt = typename Layout::Real(launch.time_step);
}

template <class Layout>
void prepare_shapes(const Launch<StorageOf<typename Layout::Real>>& launch, int first_world, Carver& carver,
                    Workspace<Layout>& ws) {
  using Real = typename Layout::Real;
  const int count = launch.topology.contact_shape_count;
  ShapeConstants<Real>* const constants = carver.take<ShapeConstants<Real>>(count);
  ws.contact.constants = constants;
  ws.contact.geometry = launch.geometry;
  if (!carver.block()) return;
  load_constants(launch, shape_row<Real>(launch.topology.link_count), first_world, reinterpret_cast<Real*>(constants),
                 static_cast<std::size_t>(count) * kShapeConstants<Real>);
  plan_contacts(ws);
}

/// Fills what every pack kernel needs into a workspace that has been carved, for the worlds from first_world on.
template <class Layout>
void prepare(const Launch<StorageOf<typename Layout::Real>>& launch, int first_world, Carver& carver,
             Workspace<Layout>& ws) {
  using Real = typename Layout::Real;
  const TopologyView& t = launch.topology;
  set_model(ws, launch);
  ws.control.numbers = carver.take<Real>(t.nu);
  LinkConstants<Real>* const constants = carver.take<LinkConstants<Real>>(t.link_count);
  ws.constants = constants;
  if constexpr (Layout::contact) prepare_shapes(launch, first_world, carver, ws);
  if (!carver.block()) return;
  load_constants(launch, 0, first_world, reinterpret_cast<Real*>(constants), t.link_count * kLinkConstants<Real>);
  load_constants(launch, gravity_row<Real>(t.link_count), first_world, &ws.gravity.x, 3);
  ws.control.clear(t.nu);
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
