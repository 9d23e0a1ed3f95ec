#pragma once
// What contact adds to a step, after the accelerations of everything else: (C2)-(C7) of docs/contact.md.
//
// Points that cannot come to touch in this step are left out, group by group; lane by lane they count as far apart, so
// that a world's numbers do not depend on those beside it.
#include "integrators/featherstone/contact_space.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// Depth of what is out of reach, m.
constexpr double kOutOfReach = -1e6;
/// Beyond what they move by themselves, points come closer by being pushed: by no more than this, m/s.
constexpr double kPush = 10;

/// Radius of a ball about the shape's centre that holds it; negative: none does.
template <class Real>
BACKDRIVE_INLINE Real bounding_radius(GeometryType type, const Vec3<Real>& s) {
  switch (type) {
    case GeometryType::sphere:
      return s.x;
    case GeometryType::capsule:
      return s.x + s.y;
    case GeometryType::cylinder:
      return square_root(s.x * s.x + s.y * s.y);
    case GeometryType::ellipsoid:
      return maximum(s.x, maximum(s.y, s.z));
    case GeometryType::box:
      return square_root(dot(s, s));
    default:
      return constant<Real>(-1);
  }
}

/// How near points of two shapes must be to touch within the step; `arm` from the first one's centre to its furthest
/// point.
template <class Layout>
BACKDRIVE_INLINE typename Layout::Real reach_of(const Workspace<Layout>& ws, const PairInStep<Layout>& pair,
                                                const Vec3<typename Layout::Real>& centre,
                                                const typename Layout::Real& arm) {
  using Real = typename Layout::Real;
  const auto speed = [&](const Spatial<Real>& twist) __attribute__((always_inline)) {
    const Vec3<Real> at = velocity_at(twist, centre);
    return square_root(dot(at, at)) + arm * square_root(dot(twist.ang, twist.ang));
  };
  const Real start = speed(pair.relative([&](int i) { return ws.link[i].v; }));
  const Real smooth = speed(pair.relative([&](int i) { return ws.contact.link[i].smooth; }));
  return ws.dt * (start + smooth + constant<Real>(kPush));
}

/// Whether a ball about the first shape reaches the second in any lane. O(1).
template <class Real>
BACKDRIVE_INLINE bool may_meet(GeometryType type, GeometryType other, const contact::Shape<Real>& A,
                               const contact::Shape<Real>& B, const Real& reach) {
  const Real radius = bounding_radius(type, A.scale), zero = constant<Real>(0);
  const Vec3<Real> apart = A.pose.origin - B.pose.origin;
  Real gap;
  if (other == GeometryType::plane) {
    gap = dot(B.pose.axes.cz, apart) - radius;
  } else {
    const Real radius_b = bounding_radius(other, B.scale);
    gap = square_root(dot(apart, apart)) - radius - radius_b;
    gap = select(value_of(radius_b) < value_of(zero), zero, gap);
  }
  gap = select(value_of(radius) < value_of(zero), zero, gap);
  return any(!(value_of(gap) > value_of(reach)));
}

/// The points of one pair that are in reach, appended.
template <class Layout>
BACKDRIVE_CALLED void find_contacts_of(Workspace<Layout>& ws, int number) {
  using Real = typename Layout::Real;
  auto& space = ws.contact;
  TouchingPair<Real>& touching = space.touching[space.touching_count];
  touching = {number, space.contact_count, 0, zero3<Real>()};
  const ContactPair& named = space.pairs[number];
  const ContactShape &of_a = space.shapes[named.a], &of_b = space.shapes[named.b];
  if (of_a.root != of_b.root) touching.shift = tree_origin(ws, of_a.root) - tree_origin(ws, of_b.root);
  const PairInStep<Layout> pair(ws, touching);
  const contact::Shape<Real> A = placed_shape(ws, pair.a, zero3<Real>()), B = placed_shape(ws, pair.b, touching.shift);
  const Real radius = maximum(bounding_radius(of_a.type, A.scale), constant<Real>(0));
  const Real margin = space.constants[pair.a].margin + space.constants[pair.b].margin;
  const Real reach = reach_of(ws, pair, A.pose.origin, radius) + margin;
  if (!may_meet(of_a.type, of_b.type, A, B, reach)) return;
  const auto &ga = space.geometry[pair.a], &gb = space.geometry[pair.b];
  contact::contact_points(ga, A, gb, B, space.points);
  const int count = contact::contact_count(ga, gb);
  for (int k = 0; k < count; ++k) {
    const contact::ContactPoint<Real>& p = space.points[k];
    const auto near = value_of(p.gap) < value_of(reach);
    if (!any(near)) continue;
    Contact<Real>& c = space.contacts[space.contact_count++];
    c.point = k;
    c.depth = select(near, margin - p.gap, constant<Real>(kOutOfReach));
    c.position = p.point;
    c.normal = p.normal;
    ++touching.count;
  }
  if (touching.count > 0) ++space.touching_count;
}

/// Contacts of this step. False: there are none in any lane.
template <class Layout>
BACKDRIVE_HD bool find_contacts(Workspace<Layout>& ws) {
  auto& space = ws.contact;
  space.touching_count = space.contact_count = 0;
  for (int k = 0; k < space.pair_count; ++k) find_contacts_of(ws, k);
  return space.contact_count > 0;
}

/// Calls visit(pair, contact, its number) for all contacts, and before each pair's begin(pair).
template <class Layout, class Begin, class Visit>
BACKDRIVE_INLINE void each_contact(Workspace<Layout>& ws, const Begin& begin, const Visit& visit) {
  auto& space = ws.contact;
  for (int k = 0; k < space.touching_count; ++k) {
    const auto& touching = space.touching[k];
    const PairInStep<Layout> pair(ws, touching);
    auto context = begin(pair);
    for (int c = touching.first; c < touching.first + touching.count; ++c) visit(pair, context, space.contacts[c], c);
  }
}

template <class Real>
BACKDRIVE_INLINE ArticulatedInertia<Real> zero_block() {
  ArticulatedInertia<Real> block;
  const Real o = constant<Real>(0);
  block.aa = block.ll = {o, o, o, o, o, o};
  block.al = {{o, o, o}, {o, o, o}, {o, o, o}};
  return block;
}

template <class Layout>
BACKDRIVE_HD void clear_loads(Workspace<Layout>& ws) {
  for (int i = 0; i < ws.link_count; ++i) {
    auto& t = ws.contact.link[i];
    t.load = zero6<typename Layout::Real>();
    t.touched = false;
  }
}

/// Adds θ Jᵀ K J of a contact: a point mass of K_t at x, and K_n − K_t along the normal.
template <class Real>
BACKDRIVE_INLINE void add_block(const Real& theta, const contact::Predictor<Real>& p, const Vec3<Real>& x,
                                const Vec3<Real>& n, TouchLink<Real>& t) {
  if (!t.touched) t.block = zero_block<Real>();
  t.touched = true;
  const Real o = constant<Real>(0);
  RigidInertia<Real> mass;
  set(mass, theta * p.tangential, x, Sym3<Real>{o, o, o, o, o, o});
  ArticulatedInertia<Real> point;
  set(point, mass);
  t.block += point;
  const Spatial<Real> normal = wrench_at(x, n);
  less_outer(t.block, normal * (theta * (p.tangential - p.normal)), normal);
}

/// The state of a contact that (C2)-(C6) want.
template <class Real>
struct PairTwists {
  Spatial<Real> start, smooth;  ///< relative
};
template <class Layout>
BACKDRIVE_INLINE PairTwists<typename Layout::Real> pair_twists(const Workspace<Layout>& ws,
                                                               const PairInStep<Layout>& pair) {
  return {pair.relative([&](int i) { return ws.link[i].v; }),
          pair.relative([&](int i) { return ws.contact.link[i].smooth; })};
}
template <class Real>
BACKDRIVE_INLINE contact::ContactState<Real> state_of(const Contact<Real>& c, const PairTwists<Real>& twists) {
  return {c.depth, c.normal, velocity_at(twists.start, c.position), velocity_at(twists.smooth, c.position)};
}

/// Adds a wrench to the first body's load and takes it from the second's.
template <class Layout>
BACKDRIVE_INLINE void add_load(Workspace<Layout>& ws, const PairInStep<Layout>& pair,
                               const Spatial<typename Layout::Real>& wrench) {
  ws.contact.link[pair.i].load += wrench;
  if (pair.j >= 0) ws.contact.link[pair.j].load -= pair.to_second(wrench);
}

/// (C2)-(C4): blocks and impulses of the predictor onto the links.
template <class Layout>
BACKDRIVE_CALLED void load_predictor(Workspace<Layout>& ws) {
  using Real = typename Layout::Real;
  clear_loads(ws);
  each_contact(
      ws, [&](const auto& pair) { return pair_twists(ws, pair); },
      [&](const auto& pair, const PairTwists<Real>& twists, const Contact<Real>& c, int) {
        const contact::ContactState<Real> state = state_of(c, twists);
        const contact::Predictor<Real> p = predictor_of(linear_model(pair.material, state, ws.dt), state, ws.dt);
        add_block(pair.theta_i, p, c.position, c.normal, ws.contact.link[pair.i]);
        if (pair.j >= 0) {
          add_block(pair.theta_j, p, c.position + pair.shift, c.normal, ws.contact.link[pair.j]);
        }
        add_load(ws, pair, wrench_at(c.position, p.impulse));
      });
}

/// (2)-(3) of one link for M̃ + Σ θ Jᵀ K J, as articulate_link for M̃.
template <int K, class Layout>
BACKDRIVE_PART void articulate_predictor(Workspace<Layout>& ws, int i, Articulated<typename Layout::Real>& top,
                                         Waiting<Articulated<typename Layout::Real>>& waiting) {
  using Real = typename Layout::Real;
  const Link& link = ws.links[i];
  constexpr int last = K > 0;
  Spatial<Real> U, UD;
  Real x;
  for (int k = K - 1; k >= 0; --k) {
    typename Layout::Dof& dof = ws.dof[link.v + k];
    U = top.IA * dof.S;
    const Real inverse = constant<Real>(1) / (dot(dof.S, U) + dof.increment);
    UD = U * inverse;
    x = -(inverse * dot(dof.S, top.P));
    dof.predictor.UD = UD;
    dof.predictor.inverse = inverse;
    dof.predictor.x = x;
    if (k == 0) break;
    less_outer(top.IA, U, UD);
    top.P += U * x;
  }
  if (link.parent < 0) return;
  read_again();
  if (link.last_child) {
    const auto& touch = ws.contact.link[link.parent];
    set_less_outer<last>(top.IA, ws.link[link.parent].I, top.IA, &U, &UD);
    top.P = top.P - touch.load;
    if (touch.touched) top.IA += touch.block;
  } else {
    const Articulated<Real>& others = waiting.pop();
    add_less_outer<last>(top.IA, others.IA, &U, &UD);
    top.P += others.P;
  }
  if constexpr (K > 0) top.P += U * x;
  if (link.parent != i - 1) waiting.push(top);
}

/// Leaves to root: factors of the predictor, with the loads of the links as right-hand side.
template <class Layout>
BACKDRIVE_CALLED void factor_predictor(Workspace<Layout>& ws) {
  using Real = typename Layout::Real;
  Articulated<Real> top;
  Waiting<Articulated<Real>> waiting(ws.waiting);
  for (int i = ws.link_count - 1; i >= 0; --i) {
    if (ws.links[i].leaf) {
      const auto& touch = ws.contact.link[i];
      set(top.IA, ws.link[i].I);
      if (touch.touched) top.IA += touch.block;
      top.P = zero6<Real>() - touch.load;
    }
    visit_dofs(
        ws.links[i].type, [&](auto dofs)
                              __attribute__((always_inline)) { articulate_predictor<dofs()>(ws, i, top, waiting); });
  }
}

/// Leaves-to-root half of a solve whose right-hand side is the links' loads alone: factors_of(dof) has UD, inverse, x.
template <class Layout, class FactorsOf>
BACKDRIVE_INLINE void solve_loads_inwards(Workspace<Layout>& ws, const FactorsOf& factors_of) {
  using Real = typename Layout::Real;
  Spatial<Real> force = zero6<Real>();
  Waiting<Spatial<Real>> waiting(ws.waiting);
  for (int i = ws.link_count - 1; i >= 0; --i) {
    const Link& link = ws.links[i];
    if (link.leaf) force = zero6<Real>();
    force -= ws.contact.link[i].load;
    visit_dofs(
        link.type, [&](auto dofs) __attribute__((always_inline)) {
          for (int k = dofs() - 1; k >= 0; --k) {
            typename Layout::Dof& dof = ws.dof[link.v + k];
            auto& factors = factors_of(dof);
            const Real r = -dot(dof.S, force);
            factors.x = factors.inverse * r;
            force += factors.UD * r;
          }
        });
    if (link.parent < 0) continue;
    if (!link.last_child) force += waiting.pop();
    if (link.parent != i - 1) waiting.push(force);
  }
}

/// Root-to-leaves half of a solve with the predictor's factors: keep(dof, solution), visit(link, its twist).
template <class Layout, class Keep, class Visit>
BACKDRIVE_INLINE void solve_predictor_outwards(Workspace<Layout>& ws, const Keep& keep, const Visit& visit) {
  solve_outwards_with(
      ws, [](auto& dof) -> auto& { return dof.predictor; }, keep, visit);
}

/// (C5)-(C6): the forces, from the predictor's change of velocity, onto the links as impulses.
template <class Layout>
BACKDRIVE_CALLED void load_forces(Workspace<Layout>& ws) {
  using Real = typename Layout::Real;
  clear_loads(ws);
  struct Context {
    PairTwists<Real> twists;
    Spatial<Real> change;
  };
  each_contact(
      ws,
      [&](const auto& pair) {
        return Context{pair_twists(ws, pair), pair.relative([&](int i) { return ws.contact.link[i].change; })};
      },
      [&](const auto& pair, const Context& context, Contact<Real>& c, int) {
        const contact::ContactState<Real> state = state_of(c, context.twists);
        c.change = velocity_at(context.change, c.position);
        c.force =
            contact_force(pair.material, state, linear_model(pair.material, state, ws.dt), c.change, ws.dt).result;
        add_load(ws, pair, wrench_at(c.position, c.force * ws.dt));
      });
}

/// Twists with v_s, from those with q̇ and of q̈. For links in their order, from solve_outwards.
template <class Layout>
BACKDRIVE_INLINE void keep_smooth(Workspace<Layout>& ws, int i, const Spatial<typename Layout::Real>& delta) {
  ws.contact.link[i].smooth = ws.link[i].v + delta * ws.dt;
}

/// The predictor, and with it the force of every contact, as impulses on the links. False: nothing is in reach of
/// anything, and nothing was written.
template <class Layout>
BACKDRIVE_HD bool predict_forces(Workspace<Layout>& ws) {
  using Real = typename Layout::Real;
  if (!find_contacts(ws)) return false;
  load_predictor(ws);
  factor_predictor(ws);
  solve_predictor_outwards(
      ws, [](auto& dof, const Real& x) __attribute__((always_inline)) {
        if constexpr (requires { dof.change; }) dof.change = x;
      },
      [&](int i, const Spatial<Real>& delta) __attribute__((always_inline)) { ws.contact.link[i].change = delta; });
  load_forces(ws);
  return true;
}

/// (1)-(4) and (C1)-(C7): q̈ of all but contact into dof[].qdd, and what contact adds to the velocity into dof[].x.
template <class Layout>
BACKDRIVE_HD void forward_dynamics_with_contact(Workspace<Layout>& ws) {
  using Real = typename Layout::Real;
  kinematics(ws);
  articulate(ws);
  solve_outwards(
      ws, &Layout::Dof::qdd, [&](int i, const Spatial<Real>& delta) __attribute__((always_inline)) {
        keep_smooth(ws, i, delta);
      });
  if (!predict_forces(ws)) {
    for (int k = 0; k < ws.nv; ++k) ws.dof[k].x = constant<Real>(0);
    return;
  }
  solve_loads_inwards(
      ws, [](auto& dof) -> auto& { return dof; });
  solve_outwards(ws, &Layout::Dof::x, [](int, const auto&) __attribute__((always_inline)){});
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
