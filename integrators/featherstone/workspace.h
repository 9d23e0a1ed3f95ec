#pragma once
// The working set of one lane group: its parts, and how the pack kernels lay them out in scratch memory.
#include "integrators/featherstone/tree_contact_adjoint.h"
#include "integrators/rollout/arena.h"
#include "integrators/rollout/rows.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// The layouts of the pack kernels: `Link` and `Dof` are what is kept, `parameters` whether that is enough for their
/// gradients; `contact` whether anything can touch anything.
template <class R, bool Contact = false>
struct PackRollout {
  using Real = R;
  using Link = RolloutLink<R>;
  using Dof = DofAhead<RolloutDof<R>, R>;
  using Touch = MovingTouchLink<R>;
  using Constants = const LinkConstants<R>*;
  using ShapeRows = const ShapeConstants<R>*;
  using CouplingRows = const CouplingConstants<R>*;
  using RatioRows = const R*;
  using Control = CopiedRows<R>;
  static constexpr bool ahead = true, contact = Contact, coupled = true;
};
template <class R, bool Contact = false>
struct PackAdjoint : PackRollout<R, Contact> {
  using Link = ParameterLink<R>;
  using Dof = DofAhead<std::conditional_t<Contact, ContactAdjointDof<R>, AdjointDof<R>>, R>;
  using Touch = contact::TouchAdjointLink<R>;
  using ControlBar = CopiedRows<R>;
  static constexpr bool parameters = true;
};

/// Workspace of an adjoint and the cotangents that run through it.
template <class Layout>
struct AdjointScratch {
  using Real = typename Layout::Real;
  static constexpr bool has_contact = Layout::contact, has_ways = Layout::contact;

  Workspace<Layout> ws;
  StepBar<Layout> bar;
  Vec3<Real>* pair_forces;  ///< with contact only
  /// bar.constants, bar.gravity, bar.shapes, bar.couplings and bar.ratios: parameter_rows() numbers.
  Real* parameter_bar;

  BACKDRIVE_HD static int parameter_rows(const TopologyView& t) {
    return gradient_rows<Real>(t.link_count, has_contact ? t.contact_shape_count : 0, t.coupling_count,
                               t.coupling_term_count);
  }
};

/// Most values that ever wait in a sweep (see Stack): non-last children among a link and its ancestors. O(links).
BACKDRIVE_HD inline int stack_values(const TopologyView& t) {
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
  g.ws.poses = rows != nullptr;
  g.bar.constants = structs_of<LinkGradient<Real>>(rows);
  g.bar.gravity = rows ? structs_of<Vec3<Real>>(rows + gravity_gradient_row<Real>(t.link_count)) : nullptr;
  g.bar.shapes = rows ? structs_of<ShapeGradient<Real>>(rows + gradient_rows<Real>(t.link_count)) : nullptr;
  if constexpr (Layout::coupled) {
    const int shapes = Layout::contact ? t.contact_shape_count : 0;
    Real* const first = rows ? rows + gradient_rows<Real>(t.link_count, shapes) : nullptr;
    g.bar.couplings = structs_of<CouplingConstants<Real>>(first);
    g.bar.ratios = rows ? first + t.coupling_count * kCouplingConstants<Real> : nullptr;
  }
}

template <class Layout>
BACKDRIVE_HD void take_arrays(const TopologyView& t, Arena& arena, Workspace<Layout>& ws) {
  using Real = typename Layout::Real;
  ws.link = arena.take<typename Layout::Link>(t.link_count);
  ws.dof = arena.take<typename Layout::Dof>(t.nv);
  ws.q = arena.take<Real>(t.nq);
  ws.qd = arena.take<Real>(t.nv);
  const int numbers = Layout::contact ? kContactStackNumbers<Real> : kStackNumbers<Real>;
  ws.stack = arena.take<Real>(stack_values(t) * numbers);
  ws.middle.share = arena.take<Real>(t.link_count);
  ws.middle.qdd = arena.take<Real>(t.nv);
  ws.middle.rates = arena.take<Real>(t.nv);
  if constexpr (kIsAdjoint<Layout>) {
    ws.whip = arena.take<WhipLink<Real>>(t.link_count);
    ws.middle.rates_bar = arena.take<Real>(t.nv);
    ws.middle.w = arena.take<Real>(t.nv);
    ws.middle.links = arena.take<LinkAtStart<Real>>(Layout::contact ? t.link_count : 0);
    ws.middle.S = arena.take<Spatial<Real>>(Layout::contact ? t.nv : 0);
    ws.middle.q_bar = arena.take<Real>(Layout::contact ? t.nq : 0);
  }
  if constexpr (Layout::contact) {
    ws.reported = arena.take<Real>(t.nv);
    ws.ways = arena.take<Real>(t.way_count);
    ws.middle.whip = arena.take<Real>(t.link_count);
    if constexpr (kIsAdjoint<Layout>) ws.flights = arena.take<FlyingLink<Real>>(t.way_count > 0 ? t.link_count : 0);
    ws.with_blocks = arena.take<BlockFactors<Real>>(t.nv);
    contact::take_contact_arrays(t, t.link_count, kIsAdjoint<Layout>, arena, ws.contact);
    ws.watch.trees = arena.take<WatchedTree<Real>>(kMostWatchedTrees);
    ws.watch.weights = arena.take<Real>(t.nv);
    ws.watch.rates = arena.take<int>(t.nv);
  }
  if constexpr (Layout::coupled) take_coupling_arrays(t, arena, ws.coupling);
}

/// With or without room for gradients of parameters.
template <class Layout>
BACKDRIVE_HD void take_arrays(const TopologyView& t, bool parameters, Arena& arena, AdjointScratch<Layout>& g) {
  using Real = typename Layout::Real;
  take_arrays(t, arena, g.ws);
  g.bar.q = arena.take<Real>(t.nq);
  g.bar.qd = arena.take<Real>(t.nv);
  g.bar.rates = g.ws.qd;
  g.bar.reported = Layout::contact ? arena.take<Real>(t.nv) : nullptr;
  g.bar.ways = Layout::contact ? arena.take<Real>(t.way_count) : nullptr;
  g.pair_forces = Layout::contact ? arena.take<Vec3<Real>>(t.contact_pair_count) : nullptr;
  name_parameters(t, parameters ? arena.take<Real>(g.parameter_rows(t)) : nullptr, g);
}

template <class Layout>
BACKDRIVE_INLINE void set_model(Workspace<Layout>& ws, const Launch<StorageOf<typename Layout::Real>>& launch) {
  const TopologyView& t = launch.topology;
  ws.links = t.links;
  ws.link_count = t.link_count;
  ws.nq = t.nq, ws.nv = t.nv;
  ws.lifted = t.lifted;
  ws.dt = typename Layout::Real(launch.time_step);
}

/// Fills what every pack kernel needs into a workspace that has its arrays, for the worlds from first_world on.
template <class Layout>
void prepare(const Launch<StorageOf<typename Layout::Real>>& launch, int first_world, Arena& arena,
             Workspace<Layout>& ws) {
  using Real = typename Layout::Real;
  const TopologyView& t = launch.topology;
  set_model(ws, launch);
  ws.control.numbers = arena.take<Real>(t.nu);
  LinkConstants<Real>* const constants = arena.take<LinkConstants<Real>>(t.link_count);
  ws.constants = constants;
  if constexpr (Layout::contact) {
    contact::prepare_shapes(launch, shape_row<Real>(t.link_count), first_world, arena, ws);
  }
  CouplingConstants<Real>* const couplings = arena.take<CouplingConstants<Real>>(t.coupling_count);
  Real* const ratios = arena.take<Real>(t.coupling_term_count);
  ws.coupling.constants = couplings;
  ws.coupling.ratios = ratios;
  if (arena.only_counts()) return;
  const int first_coupling = coupling_row<Real>(t.link_count, t.contact_shape_count);
  load_constants(launch, first_coupling, first_world, numbers_of<Real>(couplings),
                 t.coupling_count * kCouplingConstants<Real>);
  load_constants(launch, ratio_row<Real>(t.link_count, t.contact_shape_count, t.coupling_count), first_world, ratios,
                 t.coupling_term_count);
  load_constants(launch, 0, first_world, numbers_of<Real>(constants), t.link_count * kLinkConstants<Real>);
  load_constants(launch, gravity_row<Real>(t.link_count), first_world, &ws.gravity.x, 3);
  ws.control.clear(t.nu);
  if constexpr (Layout::contact) watch_trees(ws);
}

/// All of an adjoint, with or without room for gradients of parameters.
template <class Layout>
void lay_out(const Launch<StorageOf<typename Layout::Real>>& launch, bool parameters, int first_world, Arena& arena,
             AdjointScratch<Layout>& g) {
  take_arrays(launch.topology, parameters, arena, g);
  prepare(launch, first_world, arena, g.ws);
  g.bar.control.numbers = arena.take<typename Layout::Real>(launch.topology.nu);
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
