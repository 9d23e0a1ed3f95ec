#pragma once
// What contact adds to a step, after the accelerations of everything else: (C2)-(C7) of docs/contact.md, but for the
// solves, which are the integrator's.
//
// Points that cannot come to touch in this step are left out, group by group; lane by lane they count as far apart, so
// that a world's numbers do not depend on those beside it.
#include "engine/magnitude.h"
#include "integrators/contact/space.h"
#include "integrators/rollout/rows.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

/// Depth of what is out of reach, m.
constexpr double kOutOfReach = -1e6;
/// Beyond what they move by themselves, points come closer by being pushed: by no more than this, m/s, half of it for
/// each of two shapes.
constexpr double kPush = 10;

/// Radius of a ball about the shape's centre that holds it; negative: none does.
template <class Real>
BACKDRIVE_INLINE Real bounding_radius(const Geometry<ScalarOf<Real>>& geometry, const Vec3<Real>& s) {
  switch (geometry.kind) {
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
    case GeometryType::mesh: {
      const Vec3<Real> half{s.x * geometry.half[0], s.y * geometry.half[1], s.z * geometry.half[2]};
      return square_root(dot(half, half));
    }
    case GeometryType::plane:
    case GeometryType::height_field:
      break;
  }
  return constant<Real>(-1);
}

template <class Real>
BACKDRIVE_INLINE Real sum_of_magnitudes(const Vec3<Real>& v) {
  return magnitude(v.x) + magnitude(v.y) + magnitude(v.z);
}

/// What of balls and pairs no step changes; the balls of the world's shapes are done with that. Once per rollout.
template <class Space>
BACKDRIVE_HD void plan_contacts(Space& ws) {
  using Real = typename Space::Real;
  auto& space = ws.contact;
  for (int k = 0; k < space.shape_count; ++k) {
    const auto& c = space.constants[k];
    space.balls[k] = {broadcast<Real>(c.position), bounding_radius(space.geometry[k], broadcast<Real>(c.scale)),
                      broadcast<Real>(c.margin) + ws.dt * constant<Real>(kPush / 2)};
  }
  int root_a = -1, root_b = -1;
  for (int k = 0; k < space.pair_count; ++k) {
    const ContactPair& pair = space.pairs[k];
    const int of_a = carrier_of(ws, pair.a).root, of_b = carrier_of(ws, pair.b).root;
    space.plans[k] = {space.geometry[pair.b].kind == GeometryType::plane, of_a != root_a || of_b != root_b};
    root_a = of_a, root_b = of_b;
  }
}

/// Where the ball of one shape is. Its points move by no more than what the link's twists, before and after the smooth
/// motion, make of its farthest point from O: |v| + |ω| (|c| + r), in sums of magnitudes. O(1).
template <class Space>
BACKDRIVE_INLINE void move_ball(Space& ws, int shape) {
  using Real = typename Space::Real;
  const int link = carrier_of(ws, shape).link;
  if (link < 0) return;
  const auto& c = ws.contact.constants[shape];
  const auto& pose = pose_of(ws, link);
  const Spatial<Real>&start = velocity_of(ws, link), &smooth = ws.contact.link[link].smooth;
  ShapeBall<Real>& ball = ws.contact.balls[shape];
  ball.centre = plus_times(pose.origin, pose.axes, c.position);
  const Real turning = sum_of_magnitudes(start.ang) + sum_of_magnitudes(smooth.ang);
  ball.reach =
      c.margin + ws.dt * (constant<Real>(kPush / 2) + sum_of_magnitudes(start.lin) + sum_of_magnitudes(smooth.lin) +
                          turning * (ball.radius + sum_of_magnitudes(ball.centre)));
}

/// Whether points of two shapes may come as near as `reach` in any lane: a ball about the first against one about the
/// second, or against its plane of this normal. O(1).
template <class Real>
BACKDRIVE_INLINE bool may_meet(const ShapeBall<Real>& a, const ShapeBall<Real>& b, const Vec3<Real>& apart,
                               const Vec3<Real>* plane_normal, const Real& reach) {
  const Real near = a.radius + reach;
  if (plane_normal) return any(!(value_of(dot(*plane_normal, apart)) > value_of(near)));
  const Real zero = constant<Real>(0), sum = near + b.radius;
  const auto boundless = value_of(b.radius) < value_of(zero);
  return any(boundless || !(value_of(dot(apart, apart)) > value_of(sum * sum)));
}

/// The points of one pair that are in reach, appended.
template <class Space>
BACKDRIVE_CALLED void find_points_of(Space& ws, const TouchingPair<typename Space::Real>& found,
                                     const typename Space::Real& reach) {
  using Real = typename Space::Real;
  auto& space = ws.contact;
  TouchingPair<Real>& touching = space.touching[space.touching_count];
  touching = found;
  const PairSides<Space> sides(ws, touching);
  const Shape<Real> A = placed_shape(ws, sides.a, zero3<Real>()), B = placed_shape(ws, sides.b, sides.shift);
  const auto &ga = space.geometry[sides.a], &gb = space.geometry[sides.b];
  const Real margin = space.constants[sides.a].margin + space.constants[sides.b].margin;
  contact_points(ga, A, gb, B, space.points);
  const int count = contact_count(ga, gb);
  for (int k = 0; k < count; ++k) {
    const ContactPoint<Real>& p = space.points[k];
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

/// The same of a pair that may be far apart. shift: from O of the second body's tree to that of the first's.
template <class Space>
BACKDRIVE_INLINE void find_contacts_of(Space& ws, int number, const Vec3<typename Space::Real>& shift) {
  using Real = typename Space::Real;
  auto& space = ws.contact;
  const ContactPair& pair = space.pairs[number];
  const ShapeBall<Real>&a = space.balls[pair.a], &b = space.balls[pair.b];
  const Real reach = a.reach + b.reach;
  const Vec3<Real> normal = broadcast<Real>(space.constants[pair.b].rotation).cz;  // planes belong to the world
  if (may_meet(a, b, a.centre - b.centre + shift, space.plans[number].plane ? &normal : nullptr, reach)) {
    find_points_of(ws, TouchingPair<Real>{number, space.contact_count, 0, shift}, reach);
  }
}

/// Contacts of this step. False: there are none in any lane.
template <class Space>
BACKDRIVE_HD bool find_contacts(Space& ws) {
  using Real = typename Space::Real;
  auto& space = ws.contact;
  space.touching_count = space.contact_count = 0;
  for (int k = 0; k < space.shape_count; ++k) move_ball(ws, k);
  Vec3<Real> shift = zero3<Real>();  // between the two trees
  for (int k = 0; k < space.pair_count; ++k) {
    if (space.plans[k].new_trees) {
      const int of_a = carrier_of(ws, space.pairs[k].a).root, of_b = carrier_of(ws, space.pairs[k].b).root;
      shift = of_a == of_b ? zero3<Real>() : tree_origin(ws, of_a) - tree_origin(ws, of_b);
    }
    find_contacts_of(ws, k, shift);
  }
  return space.contact_count > 0;
}

/// Calls visit(pair, contact, its number) for all contacts, and before each pair's begin(pair).
template <class Space, class Begin, class Visit>
BACKDRIVE_INLINE void each_contact(Space& ws, const Begin& begin, const Visit& visit) {
  auto& space = ws.contact;
  for (int k = 0; k < space.touching_count; ++k) {
    const auto& touching = space.touching[k];
    const PairInStep<Space> pair(ws, touching);
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

template <class Space>
BACKDRIVE_HD void clear_loads(Space& ws) {
  for (int i = 0; i < ws.contact.link_count; ++i) ws.contact.link[i].touched = false;
}

/// Adds θ Jᵀ K J of a contact: a point mass of K_t at x, and K_n − K_t along the normal. Before its add_load, which
/// marks the link.
template <class Real>
BACKDRIVE_INLINE void add_block(const Real& theta, const Predictor<Real>& p, const Vec3<Real>& x, const Vec3<Real>& n,
                                TouchLink<Real>& t) {
  if (!t.touched) t.block = zero_block<Real>();
  const Real o = constant<Real>(0);
  RigidInertia<Real> mass;
  set(mass, theta * p.tangential, x, Sym3<Real>{o, o, o, o, o, o});
  ArticulatedInertia<Real> point;
  set(point, mass);
  t.block += point;
  const Spatial<Real> normal = wrench_at(x, n);
  less_outer(t.block, normal * (theta * (p.tangential - p.normal)), normal);
}

/// The relative twists that (C2)-(C6) want.
template <class Real>
struct PairTwists {
  Spatial<Real> start, smooth;
  Spatial<Real> change;  ///< of the last predictor before a stage: none, the first, the second
};
template <int Stage, class Space>
BACKDRIVE_INLINE PairTwists<typename Space::Real> contact_twists(const Space& ws, const PairInStep<Space>& pair) {
  const auto touch = [&](int i) -> const auto& {
    return ws.contact.link[i];
  };
  PairTwists<typename Space::Real> twists;
  twists.start = pair.relative([&](int i) { return velocity_of(ws, i); });
  twists.smooth = pair.relative([&](int i) { return touch(i).smooth; });
  if constexpr (Stage > 0) twists.change = pair.relative([&](int i) { return touch(i).change[Stage - 1]; });
  return twists;
}
template <class Real>
BACKDRIVE_INLINE ContactState<Real> state_of(const Contact<Real>& c, const PairTwists<Real>& twists) {
  return {c.depth, c.normal, velocity_at(twists.start, c.position), velocity_at(twists.smooth, c.position)};
}

/// Adds a wrench to the first body's load and takes it from the second's.
template <class Space>
BACKDRIVE_INLINE void add_load(Space& ws, const PairInStep<Space>& pair, const Spatial<typename Space::Real>& wrench) {
  const auto of = [&](int link) -> auto& {
    auto& t = ws.contact.link[link];
    if (!t.touched) t.load = zero6<typename Space::Real>();
    t.touched = true;
    return t.load;
  };
  of(pair.i) += wrench;
  if (pair.j >= 0) of(pair.j) -= pair.to_second(wrench);
}

/// The drag of a predictor: that of the linear model, or c₂.
template <int Stage, class Real>
BACKDRIVE_INLINE const Real& drag_of(const Contact<Real>& c) {
  return Stage == 0 ? c.model.drag : c.drag;
}

/// A wrench that only turns.
template <class Real>
BACKDRIVE_INLINE Spatial<Real> couple(const Vec3<Real>& moment) {
  return {moment, zero3<Real>()};
}
template <class Real>
BACKDRIVE_INLINE TurnRates<Real> turn_rates(const PairTwists<Real>& twists) {
  return {twists.start.ang, twists.smooth.ang};
}

/// Adds θ K of friction against turns; after the contact's add_load.
template <class Real>
BACKDRIVE_INLINE void add_turn_block(const Real& theta, const Predictor<Real>& p, const Vec3<Real>& n,
                                     TouchLink<Real>& t) {
  const Real across = theta * p.tangential;
  const Vec3<Real> along = n * (theta * (p.normal - p.tangential));
  Sym3<Real>& aa = t.block.aa;
  aa.xx += across + along.x * n.x, aa.yy += across + along.y * n.y, aa.zz += across + along.z * n.z;
  aa.xy += along.x * n.y, aa.xz += along.x * n.z, aa.yz += along.y * n.z;
}

/// (T1)-(T3) of one contact: block and impulse of a predictor. force: N_r, for the second f_n with the first's e.
template <int Stage, class Space>
BACKDRIVE_CALLED void load_turn_predictor(Space& ws, const PairInStep<Space>& pair,
                                          const PairTwists<typename Space::Real>& twists, int number,
                                          const typename Space::Real& force) {
  using Real = typename Space::Real;
  const TurnMaterial<Real> m = pair.turning(ws);
  const Vec3<Real>& n = ws.contact.contacts[number].normal;
  const TurnRates<Real> rates = turn_rates(twists);
  const Vec3<Real> late = late_turn(rates);
  TurnDrag<Real>& drag = ws.contact.turns[number].drag[Stage];
  if constexpr (Stage == 0) {
    drag = first_turn_drag(m, n, rates, force);
  } else {
    drag = second_turn_drag(m, n, late, twists.change.ang, force);
  }
  const Predictor<Real> p = turn_predictor(m, n, late, drag, ws.dt);
  add_turn_block(pair.theta_i, p, n, ws.contact.link[pair.i]);
  if (pair.j >= 0) add_turn_block(pair.theta_j, p, n, ws.contact.link[pair.j]);
  add_load(ws, pair, couple(p.impulse));
}

/// (T4) of one contact: its moment; force: f_n.
template <class Space>
BACKDRIVE_CALLED void load_moment(Space& ws, const PairInStep<Space>& pair,
                                  const PairTwists<typename Space::Real>& twists, int number,
                                  const typename Space::Real& force) {
  using Real = typename Space::Real;
  ContactTurn<Real>& turn = ws.contact.turns[number];
  turn.moment = turn_moment(pair.turning(ws), ws.contact.contacts[number].normal, late_turn(turn_rates(twists)),
                            turn.drag[1], twists.change.ang, force);
  add_load(ws, pair, couple(turn.moment * ws.dt));
}

/// (C2)-(C4), (C5a): blocks and impulses of a predictor onto the links.
template <int Stage, class Space>
BACKDRIVE_CALLED void load_predictor(Space& ws) {
  using Real = typename Space::Real;
  clear_loads(ws);
  each_contact(
      ws, [&](const auto& pair) { return contact_twists<Stage>(ws, pair); },
      [&](const auto& pair, const auto& twists, Contact<Real>& c, int number) {
        const ContactState<Real> state = state_of(c, twists);
        Real pressing;
        if constexpr (Stage == 0) {
          c.model = linear_model(pair.material, state, ws.dt);
          pressing = c.model.centred_force;
        } else {
          c.change[0] = velocity_at(twists.change, c.position);
          const auto second = second_drag(pair.material, state, c.model, c.change[0], ws.dt);
          c.drag = second.value;
          pressing = second.normal.value;
        }
        const Predictor<Real> p = predictor_of(c.model, state, drag_of<Stage>(c), ws.dt);
        add_block(pair.theta_i, p, c.position, c.normal, ws.contact.link[pair.i]);
        if (pair.j >= 0) {
          add_block(pair.theta_j, p, c.position + pair.shift, c.normal, ws.contact.link[pair.j]);
        }
        add_load(ws, pair, wrench_at(c.position, p.impulse));
        if (pair.resists_turns) load_turn_predictor<Stage>(ws, pair, twists, number, pressing);
      });
}

/// (C5)-(C6): the forces, from the second predictor's change of velocity, onto the links as impulses.
template <class Space>
BACKDRIVE_CALLED void load_forces(Space& ws) {
  using Real = typename Space::Real;
  clear_loads(ws);
  each_contact(
      ws, [&](const auto& pair) { return contact_twists<2>(ws, pair); },
      [&](const auto& pair, const auto& twists, Contact<Real>& c, int number) {
        const ContactState<Real> state = state_of(c, twists);
        c.change[1] = velocity_at(twists.change, c.position);
        const auto trace = contact_force(pair.material, state, c.model, c.drag, c.change[1], ws.dt);
        c.force = trace.result;
        add_load(ws, pair, wrench_at(c.position, c.force * ws.dt));
        if (pair.resists_turns) load_moment(ws, pair, twists, number, trace.normal.value);
      });
}

/// What is told of a pair in a step: kContactRows numbers.
template <class Real>
struct PairReport {
  Vec3<Real> force;  ///< on the first body, world axes
  Vec3<Real> point;  ///< where, in the world: the points' mean by their normal forces; zero where there is no force
  Real depth;        ///< of the deepest point; zero apart
};

template <class Space>
BACKDRIVE_HD PairReport<typename Space::Real> report_of(const Space& ws,
                                                        const TouchingPair<typename Space::Real>& touching) {
  using Real = typename Space::Real;
  const auto& space = ws.contact;
  const Real zero = constant<Real>(0);
  PairReport<Real> r{zero3<Real>(), zero3<Real>(), zero};
  Vec3<Real> moment = zero3<Real>();
  Real normal = zero;
  for (int k = touching.first; k < touching.first + touching.count; ++k) {
    const Contact<Real>& c = space.contacts[k];
    const Real own = dot(c.normal, c.force);
    r.force += c.force;
    r.depth = maximum(r.depth, c.depth);
    moment += c.position * own;
    normal += own;
  }
  const auto pressed = value_of(normal) > value_of(zero);
  const Vec3<Real> origin = tree_origin(ws, carrier_of(ws, space.pairs[touching.pair].a).root);
  const Vec3<Real> mean = origin + moment * (constant<Real>(1) / select(pressed, normal, constant<Real>(1)));
  r.point = {select(pressed, mean.x, zero), select(pressed, mean.y, zero), select(pressed, mean.z, zero)};
  return r;
}

/// Writes the rows of one step, before the state moves on: [pair][kContactRows].
template <class Space>
BACKDRIVE_CALLED void store_contacts(const Space& ws, StorageOf<typename Space::Real>* rows, int stride,
                                     int first_world) {
  using Real = typename Space::Real;
  const auto& space = ws.contact;
  static_assert(sizeof(PairReport<Real>) == kContactRows * sizeof(Real));
  int next = 0;
  for (int pair = 0; pair < space.pair_count; ++pair) {
    const Real zero = constant<Real>(0);
    PairReport<Real> r{zero3<Real>(), zero3<Real>(), zero};
    if (next < space.touching_count && space.touching[next].pair == pair) r = report_of(ws, space.touching[next++]);
    const Real* const numbers = &r.force.x;
    StorageOf<Real>* at = rows + static_cast<std::size_t>(pair) * kContactRows * stride + first_world;
    for (int k = 0; k < kContactRows; ++k, at += stride) store<Real>(at, numbers[k]);
  }
}

/// Rows of the pairs' forces of a step, where they are asked for, before the state moves on.
template <class T, class Space>
BACKDRIVE_HD void report_contacts(const RolloutArguments<T>& a, const Space& ws, int step, int first_world) {
  if (!a.contact) return;
  const std::size_t row = std::size_t(step) * a.launch.topology.contact_pair_count * kContactRows;
  store_contacts(ws, a.contact + row * a.launch.stride, a.launch.stride, first_world);
}

/// Takes the constants of the shapes, whose rows begin at first_row, for the worlds from first_world on.
template <class T, class Space>
BACKDRIVE_HD void prepare_shapes(const Launch<T>& launch, int first_row, int first_world, Arena& arena, Space& ws) {
  using Real = typename Space::Real;
  const int count = launch.topology.contact_shape_count;
  ShapeConstants<Real>* const constants = arena.take<ShapeConstants<Real>>(count);
  ws.contact.constants = constants;
  ws.contact.geometry = launch.geometry;
  if (arena.only_counts()) return;
  load_constants(launch, first_row, first_world, numbers_of<Real>(constants),
                 static_cast<std::size_t>(count) * kShapeConstants<Real>);
  plan_contacts(ws);
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
