#include "integrators/featherstone/link_constants.h"

#include <algorithm>

#include "models/mass_properties.h"

namespace backdrive {
namespace {

/// Far beyond any travel; stands for an absent limit, since infinity times a zero slope is NaN.
constexpr double kNoLimit = 1e9;

/// Reads parameters of one world, with their dots along a direction where C is dual.
template <class C>
struct Reader {
  const Model& model;
  const Parameters* direction;
  int world;

  C number(const Parameter& p, const Parameter* dots, int item, int component) const {
    if constexpr (std::is_same_v<C, double>) {
      return p(item, component, world);
    } else {
      return {p(item, component, world), dots ? (*dots)(item, component, world) : 0.0};
    }
  }
  template <class Pick>
  C number(Pick pick, int item, int component = 0) const {
    return number(pick(static_cast<const Parameters&>(model)), direction ? &pick(*direction) : nullptr, item,
                  component);
  }
  template <class Pick>
  Vec3<C> vector(Pick pick, int item) const {
    return {number(pick, item, 0), number(pick, item, 1), number(pick, item, 2)};
  }
  /// R(quaternion), and for duals R [θ̇]× with the direction's three tangents.
  Mat3<C> rotation(const FrameParameters& frame, const FrameParameters* dots, int item) const {
    const Parameter& o = frame.orientation;
    const Mat3<double> r = rotation_matrix(o(item, 0, world), o(item, 1, world), o(item, 2, world), o(item, 3, world));
    if constexpr (std::is_same_v<C, double>) {
      return r;
    } else {
      Vec3<double> t = zero3<double>();
      if (dots) t = vector_of(dots->orientation, item, world);
      const Mat3<double> dot = r * Mat3<double>{{0, t.z, -t.y}, {-t.z, 0, t.x}, {t.y, -t.x, 0}};
      const auto column = [](const Vec3<double>& v, const Vec3<double>& d) {
        return Vec3<C>{{v.x, d.x}, {v.y, d.y}, {v.z, d.z}};
      };
      return {column(r.cx, dot.cx), column(r.cy, dot.cy), column(r.cz, dot.cz)};
    }
  }
};

#define BACKDRIVE_PICK(member) [](const Parameters& p) -> const Parameter& { return p.member; }

/// The smallest rotation A with A e_z = a; for a in the lower half, the same after half a turn about x.
template <class C>
Mat3<C> axis_alignment(Vec3<C> a) {
  const bool lower = value_of(a.z) < 0;
  if (lower) a = {a.x, -a.y, -a.z};
  const C one = constant<C>(1), h = one / (one + a.z);
  Mat3<C> m{{one - h * a.x * a.x, -h * a.x * a.y, -a.x}, {-h * a.x * a.y, one - h * a.y * a.y, -a.y}, a};
  if (lower) {
    for (Vec3<C>* column : {&m.cx, &m.cy, &m.cz}) *column = {column->x, -column->y, -column->z};
  }
  return m;
}

template <class C>
Mat3<C> alignment_of(const Reader<C>& read, const Link& link) {
  if (link.type == JointType::fixed) return identity3<C>();
  return axis_alignment(read.vector(BACKDRIVE_PICK(joints.axis), link.joint));
}

template <class C>
SolidShape<C> solid_shape_of(const Reader<C>& read, int s) {
  const Model& m = read.model;
  return {m.shape_types[s], read.vector(BACKDRIVE_PICK(shapes.geometry.scale), s),
          read.number(BACKDRIVE_PICK(shapes.density), s), read.vector(BACKDRIVE_PICK(shapes.frame.position), s),
          read.rotation(m.shapes.frame, read.direction ? &read.direction->shapes.frame : nullptr, s)};
}

template <class C>
MassProperties<C> explicit_mass_of(const Reader<C>& read, int body) {
  const auto inertia = [&](int k) { return read.number(BACKDRIVE_PICK(bodies.inertia), body, k); };
  return {read.number(BACKDRIVE_PICK(bodies.mass), body),
          read.vector(BACKDRIVE_PICK(bodies.com), body),
          {inertia(0), inertia(1), inertia(2), inertia(3), inertia(4), inertia(5)}};
}

/// Calls visit(s) for each shape of a body.
template <class Visit>
void each_shape_of(const Model& model, int body, Visit&& visit) {
  for (int s = 0; s < static_cast<int>(model.shape_bodies.size()); ++s) {
    if (model.shape_bodies[s] == body) visit(s);
  }
}

template <class C>
MassProperties<C> body_mass_of(const Reader<C>& read, int body) {
  MassProperties<C> result = explicit_mass_of(read, body);
  each_shape_of(read.model, body, [&](int s) { result = combined(result, shape_mass(solid_shape_of(read, s))); });
  return result;
}

template <class C>
Mat3<C> joint_rotation(const Reader<C>& read, int joint) {
  return read.rotation(read.model.joints.frame, read.direction ? &read.direction->joints.frame : nullptr, joint);
}

/// Walks the per-joint scalars: visit(number of LinkConstants, number of LinkGradient, which Parameter).
template <class Visit>
void each_joint_scalar(Visit&& visit) {
#define BACKDRIVE_SCALAR(name, member) \
  visit(                               \
      [](auto& c) -> auto& { return c.name; }, BACKDRIVE_PICK(joints.member))
  BACKDRIVE_SCALAR(armature, armature);
  BACKDRIVE_SCALAR(damping, damping);
  BACKDRIVE_SCALAR(friction, friction);
  BACKDRIVE_SCALAR(limit_lower, limit.lower);
  BACKDRIVE_SCALAR(limit_upper, limit.upper);
  BACKDRIVE_SCALAR(limit_stiffness, limit.stiffness);
  BACKDRIVE_SCALAR(limit_damping, limit.damping);
  BACKDRIVE_SCALAR(drive_stiffness, drive.stiffness);
  BACKDRIVE_SCALAR(drive_damping, drive.damping);
  BACKDRIVE_SCALAR(effort_limit, drive.effort_limit);
#undef BACKDRIVE_SCALAR
}

/// Adds cotangents to the gradient of one world.
template <class C>
struct Adder {
  Parameters& value;
  Parameters* dot;
  int world;

  template <class Pick>
  void number(Pick pick, int item, int component, const C& x) const {
    const auto add = [&](Parameters& to, double amount) {
      Parameter& p = const_cast<Parameter&>(pick(static_cast<const Parameters&>(to)));
      p.at(item, component, p.uniform() ? 0 : world) += amount;
    };
    add(value, value_of(x));
    if constexpr (!std::is_same_v<C, double>) {
      if (dot) add(*dot, x.dot);
    }
  }
  template <class Pick>
  void vector(Pick pick, int item, const Vec3<C>& x) const {
    number(pick, item, 0, x.x);
    number(pick, item, 1, x.y);
    number(pick, item, 2, x.z);
  }
};

template <class C>
void add_body_gradient(const Reader<C>& read, const Adder<C>& add, int body, const MassProperties<C>& bar) {
  const MassProperties<C> whole = body_mass_of(read, body);
  const MassProperties<C> own = part_bar(explicit_mass_of(read, body), whole, bar);
  add.number(BACKDRIVE_PICK(bodies.mass), body, 0, own.mass);
  add.vector(BACKDRIVE_PICK(bodies.com), body, own.com);
  const C inertia[6] = {own.inertia.xx, own.inertia.yy, own.inertia.zz, own.inertia.xy, own.inertia.xz, own.inertia.yz};
  for (int k = 0; k < 6; ++k) add.number(BACKDRIVE_PICK(bodies.inertia), body, k, inertia[k]);
  each_shape_of(read.model, body, [&](int s) {
    const SolidShape<C> solid = solid_shape_of(read, s);
    SolidShapeBar<C> solid_bar;
    adj_shape_mass(solid, part_bar(shape_mass(solid), whole, bar), solid_bar);
    add.vector(BACKDRIVE_PICK(shapes.geometry.scale), s, solid_bar.scale);
    add.number(BACKDRIVE_PICK(shapes.density), s, 0, solid_bar.density);
    add.vector(BACKDRIVE_PICK(shapes.frame.position), s, solid_bar.position);
    add.vector(BACKDRIVE_PICK(shapes.frame.orientation), s, solid_bar.theta);
  });
}

/// Cotangent η of A → A exp(η) by way of the link's own inertia: com' = Aᵀ com, J' = Aᵀ J A.
template <class C>
Vec3<C> inertia_turn(const LinkConstants<C>& c, const LinkGradient<C>& bar) {
  const Sym3<C> B = symmetric_gradient(bar.inertia);
  const Sym3<C>& J = c.inertia;
  // −2 vee(B J − J B), entries of the antisymmetric matrix (BJ)_ij − (BJ)_ji
  const auto row = [](const Sym3<C>& s, int i) {
    return i == 0 ? Vec3<C>{s.xx, s.xy, s.xz} : (i == 1 ? Vec3<C>{s.xy, s.yy, s.yz} : Vec3<C>{s.xz, s.yz, s.zz});
  };
  const auto bj = [&](int i, int j) { return dot(row(B, i), row(J, j)); };
  const C two = constant<C>(2);
  const Vec3<C> turn{-two * (bj(2, 1) - bj(1, 2)), -two * (bj(0, 2) - bj(2, 0)), -two * (bj(1, 0) - bj(0, 1))};
  return cross(bar.com, c.com) + turn;
}

}  // namespace

template <class C>
void model_constants(const Model& model, int world, const Parameters* direction, ModelConstants<C>& result) {
  const Reader<C> read{model, direction, world};
  const PoolVector<Link>& links = model.topology.links;
  result.links.resize(links.size());
  result.alignment.resize(links.size());
  result.gravity = read.vector(BACKDRIVE_PICK(gravity), 0);
  for (size_t i = 0; i < links.size(); ++i) {
    const Link& link = links[i];
    LinkConstants<C>& c = result.links[i];
    const Mat3<C> A = result.alignment[i] = alignment_of(read, link);
    c.rotation = joint_rotation(read, link.joint) * A;
    c.translation = read.vector(BACKDRIVE_PICK(joints.frame.position), link.joint);
    if (link.parent >= 0) {
      const Mat3<C> to_parent = transposed(result.alignment[link.parent]);
      c.rotation = to_parent * c.rotation;
      c.translation = to_parent * c.translation;
    }
    const MassProperties<C> body = body_mass_of(read, link.body);
    const Mat3<C> to_link = transposed(A);
    c.mass = body.mass;
    c.com = to_link * body.com;
    c.inertia = rotated(to_link, body.inertia);
    each_joint_scalar([&](auto number, auto pick) { number(c) = read.number(pick, link.joint); });
    c.limit_lower = maximum(c.limit_lower, constant<C>(-kNoLimit));
    c.limit_upper = minimum(c.limit_upper, constant<C>(kNoLimit));
  }
}

template <class C>
void add_parameter_gradient(const Model& model, int world, const Parameters* direction,
                            std::span<const LinkGradient<C>> links_bar, const Vec3<C>& gravity, Parameters& value,
                            Parameters* dot) {
  const Reader<C> read{model, direction, world};
  const Adder<C> add{value, dot, world};
  ModelConstants<C> constants;
  model_constants(model, world, direction, constants);
  const PoolVector<Link>& links = model.topology.links;
  add.vector(BACKDRIVE_PICK(gravity), 0, gravity);
  PoolVector<Vec3<C>> eta(links.size());  // cotangents of the alignments
  for (size_t i = 0; i < links.size(); ++i) {
    const LinkGradient<C>& bar = links_bar[i];
    const LinkConstants<C>& c = constants.links[i];
    eta[i] = bar.rotation + bar.alignment + inertia_turn(c, bar);
    Vec3<C> translation = bar.translation;
    if (const int p = links[i].parent; p >= 0) {
      eta[p] += cross(bar.translation, c.translation) - c.rotation * bar.rotation;
      translation = constants.alignment[p] * translation;
    }
    const Mat3<C>& A = constants.alignment[i];
    add.vector(BACKDRIVE_PICK(joints.frame.position), links[i].joint, translation);
    add.vector(BACKDRIVE_PICK(joints.frame.orientation), links[i].joint, A * bar.rotation);
    add_body_gradient(
        read, add, links[i].body,
        MassProperties<C>{bar.mass, A * bar.com, six_numbers(rotated(A, symmetric_gradient(bar.inertia)))});
    LinkGradient<C> copy = bar;
    each_joint_scalar([&](auto number, auto pick) {
      // An absent limit was replaced by a constant, which has no gradient.
      if (std::abs(value_of(read.number(pick, links[i].joint))) < kNoLimit) {
        add.number(pick, links[i].joint, 0, number(copy));
      }
    });
  }
  for (size_t i = 0; i < links.size(); ++i) {
    if (links[i].type == JointType::fixed) continue;
    // A exp(η) turns the axis A e_z by A (η × e_z).
    const Vec3<C> tangent{eta[i].y, -eta[i].x, constant<C>(0)};
    add.vector(BACKDRIVE_PICK(joints.axis), links[i].joint, constants.alignment[i] * tangent);
  }
}

#undef BACKDRIVE_PICK

#define BACKDRIVE_INSTANTIATE(C)                                                                                  \
  template void model_constants<C>(const Model&, int, const Parameters*, ModelConstants<C>&);                     \
  template void add_parameter_gradient<C>(const Model&, int, const Parameters*, std::span<const LinkGradient<C>>, \
                                          const Vec3<C>&, Parameters&, Parameters*);
BACKDRIVE_INSTANTIATE(double)
BACKDRIVE_INSTANTIATE(Dual<double>)

}  // namespace backdrive
