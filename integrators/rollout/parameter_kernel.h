#pragma once
// Parameters into the constants of the kernels and back, a world at a time: the same source on the host and, a thread
// per world, on devices. Link by link, so that a thread holds one link's numbers and no scratch grows with the model.
#include "engine/dual.h"
#include "integrators/featherstone/link_constants.h"
#include "models/parameter_reader.h"

namespace backdrive {

/// Far beyond any travel; stands for an absent limit, since infinity times a zero slope is NaN.
constexpr double kNoLimit = 1e9;

/// The number type in which parameters are turned into rows of T.
template <class T>
using Exact = std::conditional_t<std::is_same_v<T, Dual<double>>, Dual<double>, double>;

/// The smallest rotation A with A e_z = a; for a in the lower half, the same after half a turn about x.
template <class C>
BACKDRIVE_HD inline Mat3<C> axis_alignment(Vec3<C> a) {
  const bool lower = value_of(a.z) < 0;
  if (lower) a = {a.x, -a.y, -a.z};
  const C one = constant<C>(1), h = one / (one + a.z);
  const Mat3<C> m{{one - h * a.x * a.x, -h * a.x * a.y, -a.x}, {-h * a.x * a.y, one - h * a.y * a.y, -a.y}, a};
  if (!lower) return m;
  const auto turned = [](const Vec3<C>& v) { return Vec3<C>{v.x, -v.y, -v.z}; };
  return {turned(m.cx), turned(m.cy), turned(m.cz)};
}

/// Walks the per-joint scalars: visit(number of LinkConstants or LinkGradient, which parameter).
template <class Visit>
BACKDRIVE_HD inline void each_joint_scalar(Visit&& visit) {
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

/// One world's parameters in the terms of links.
template <class C>
struct LinkReader {
  const ModelStructure& model;
  ParameterReader<C> read;

  /// A of a link; 1 for the world (−1) and for joints that are not about an axis.
  BACKDRIVE_HD Mat3<C> alignment(int i) const {
    if (i < 0 || !has_one_degree(model.links[i].type)) return identity3<C>();
    return axis_alignment(link_axis(read, model.links[i]));
  }
  /// Rotation and translation of LinkConstants, given A of the link and of its parent.
  BACKDRIVE_HD void place(int i, const Mat3<C>& A, const Mat3<C>& parent, Mat3<C>& rotation,
                          Vec3<C>& translation) const {
    const Link& link = model.links[i];
    rotation = A;
    translation = zero3<C>();
    if (link.first) {
      rotation = read.rotation(BACKDRIVE_PICK(joints.frame.orientation), link.joint) * A;
      translation = read.vector(BACKDRIVE_PICK(joints.frame.position), link.joint);
    }
    if (link.parent < 0) return;
    const Mat3<C> to_parent = transposed(parent);
    rotation = to_parent * rotation;
    translation = to_parent * translation;
  }
  /// The constants of a link that has A, whose parent has `parent` and whose body has `mass`. O(1).
  BACKDRIVE_HD LinkConstants<C> constants(int i, const Mat3<C>& A, const Mat3<C>& parent,
                                          const MassProperties<C>& mass) const {
    LinkConstants<C> c;
    place(i, A, parent, c.rotation, c.translation);
    const Mat3<C> to_link = transposed(A);
    c.mass = mass.mass;
    c.com = to_link * mass.com;
    c.inertia = rotated(to_link, mass.inertia);
    each_joint_scalar([&](auto number, auto pick) { number(c) = read.number(pick, model.links[i].joint); });
    c.limit_lower = maximum(c.limit_lower, constant<C>(-kNoLimit));
    c.limit_upper = minimum(c.limit_upper, constant<C>(kNoLimit));
    return c;
  }
};

/// Walks what shapes are made of: visit(number of ShapeConstants or ShapeGradient, which parameter).
template <class Visit>
BACKDRIVE_HD inline void each_contact_scalar(Visit&& visit) {
#define BACKDRIVE_SCALAR(name, member) \
  visit(                               \
      [](auto& c) -> auto& { return c.name; }, BACKDRIVE_PICK(shapes.member))
  BACKDRIVE_SCALAR(margin, geometry.margin);
  BACKDRIVE_SCALAR(stiffness, material.stiffness);
  BACKDRIVE_SCALAR(width, material.width);
  BACKDRIVE_SCALAR(dissipation, material.dissipation);
  BACKDRIVE_SCALAR(friction, material.friction);
  BACKDRIVE_SCALAR(creep, material.creep);
  BACKDRIVE_SCALAR(torsional_friction, material.torsional_friction);
  BACKDRIVE_SCALAR(rolling_friction, material.rolling_friction);
#undef BACKDRIVE_SCALAR
}

/// The constants of a shape on a link that has A. O(1).
template <class C>
BACKDRIVE_HD inline ShapeConstants<C> shape_constants(const ParameterReader<C>& read, int shape, const Mat3<C>& A) {
  const Mat3<C> to_link = transposed(A);
  ShapeConstants<C> c;
  c.rotation = to_link * read.rotation(BACKDRIVE_PICK(shapes.frame.orientation), shape);
  c.position = to_link * read.vector(BACKDRIVE_PICK(shapes.frame.position), shape);
  c.scale = read.vector(BACKDRIVE_PICK(shapes.geometry.scale), shape);
  each_contact_scalar([&](auto number, auto pick) { number(c) = read.number(pick, shape); });
  return c;
}

/// Writes the constants of one world, as Launch::constants wants them. Worlds past the last are copies of it, so that
/// padding stays as tame as what it pads. T is float, double or Dual<double>; devices know no directions.
template <class T>
struct ConstantsOfWorld {
  ModelStructure structure;
  ParametersView parameters;
  T* constants;  ///< [row][world]
  int stride;    ///< from row to row
  int worlds;
  const ParametersView* direction = nullptr;  ///< gives the dots of dual numbers; null: zeros

  /// O(links · shapes), a thread's work.
  BACKDRIVE_HD void operator()(int world) const {
    using C = Exact<T>;
    const LinkReader<C> link{structure, {parameters, direction, world < worlds ? world : worlds - 1}};
    for (int i = 0; i < structure.link_count; ++i) {
      const Mat3<C> A = link.alignment(i), parent = link.alignment(structure.links[i].parent);
      const MassProperties<C> mass = body_mass(structure, link.read, structure.links[i].body);
      write(world, i * kLinkConstants<C>, link.constants(i, A, parent, mass));
      write(world, alignment_row<C>(structure.link_count) + i * kNumbers<Mat3<C>>, A);
    }
    write(world, gravity_row<C>(structure.link_count), link.read.vector(BACKDRIVE_PICK(gravity), 0));
    for (int k = 0; k < structure.contact_shape_count; ++k) {
      const ContactShape& shape = structure.contact_shapes[k];
      write(world, shape_row<C>(structure.link_count) + k * kShapeConstants<C>,
            shape_constants(link.read, shape.shape, link.alignment(shape.link)));
    }
  }

  /// Numbers of one world into the rows from first_row on.
  template <class Numbers>
  BACKDRIVE_HD void write(int world, int first_row, const Numbers& from) const {
    const auto* numbers = reinterpret_cast<const Exact<T>*>(&from);
    T* to = constants + static_cast<std::size_t>(first_row) * stride + world;
    for (int k = 0; k < kNumbers<Numbers>; ++k) to[static_cast<std::size_t>(k) * stride] = T(numbers[k]);
  }

 private:
  template <class Numbers>
  static constexpr int kNumbers = sizeof(Numbers) / sizeof(Exact<T>);
};

/// Adjoint of ConstantsOfWorld: adds the gradient of one world's parameters to its slots, and of dual numbers the
/// derivative along the direction to `dots`.
template <class T>
struct ParameterGradientOfWorld {
  ModelStructure structure;
  ParametersView parameters;
  const T* constants_bar;  ///< [row][world], gradient_rows()
  int stride;              ///< from row to row
  GradientSlots slots;
  bool shapes = false;  ///< with those of contact shapes
  const ParametersView* direction = nullptr;
  const GradientSlots* dots = nullptr;

  using C = Exact<T>;

  /// O(links · shapes), a thread's work.
  BACKDRIVE_HD void operator()(int world) const {
    const LinkReader<C> link{structure, {parameters, direction, world}};
    for (int i = 0; i < structure.link_count; ++i) add_link(link, i);
    add(BACKDRIVE_PICK(gravity), 0, world, read<Vec3<C>>(world, gravity_gradient_row<C>(structure.link_count)));
    for (int k = 0; shapes && k < structure.contact_shape_count; ++k) {
      const ContactShape& shape = structure.contact_shapes[k];
      add_shape(world, shape.shape, link.alignment(shape.link), bar_of_shape(world, k));
    }
  }

  /// Numbers of one world from the rows from first_row on.
  template <class Numbers>
  BACKDRIVE_HD Numbers read(int world, int first_row) const {
    Numbers result;
    auto* numbers = reinterpret_cast<C*>(&result);
    const T* from = constants_bar + static_cast<std::size_t>(first_row) * stride + world;
    for (int k = 0; k < static_cast<int>(sizeof(Numbers) / sizeof(C)); ++k) {
      numbers[k] = C(from[static_cast<std::size_t>(k) * stride]);
    }
    return result;
  }
  template <class Pick>
  BACKDRIVE_HD void add(Pick pick, int item, int component, int world, const C& x) const {
    if (!pick(slots)) return;
    pick(slots)(item, component, world) += value_of(x);
    if constexpr (!std::is_same_v<C, double>) {
      if (dots) pick (*dots)(item, component, world) += x.dot;
    }
  }
  template <class Pick>
  BACKDRIVE_HD void add(Pick pick, int item, int world, const Vec3<C>& x) const {
    add(pick, item, 0, world, x.x);
    add(pick, item, 1, world, x.y);
    add(pick, item, 2, world, x.z);
  }

  /// Spreads the cotangent `bar` of a body's mass properties, `whole`, over the body and its shapes.
  BACKDRIVE_HD void add_body(const ParameterReader<C>& reader, int body, const MassProperties<C>& whole,
                             const MassProperties<C>& bar) const {
    const int world = reader.world;
    const MassProperties<C> own = part_bar(explicit_mass(reader, body), whole, bar);
    add(BACKDRIVE_PICK(bodies.mass), body, 0, world, own.mass);
    add(BACKDRIVE_PICK(bodies.com), body, world, own.com);
    const C inertia[6] = {own.inertia.xx, own.inertia.yy, own.inertia.zz,
                          own.inertia.xy, own.inertia.xz, own.inertia.yz};
    for (int k = 0; k < 6; ++k) add(BACKDRIVE_PICK(bodies.inertia), body, k, world, inertia[k]);
    each_shape_of(structure, body, [&](int s) {
      const SolidShape<C> solid = solid_shape(structure, reader, s);
      SolidShapeBar<C> solid_bar;
      adj_shape_mass(solid, part_bar(shape_mass(solid), whole, bar), solid_bar);
      add(BACKDRIVE_PICK(shapes.geometry.scale), s, world, solid_bar.scale);
      add(BACKDRIVE_PICK(shapes.density), s, 0, world, solid_bar.density);
      add(BACKDRIVE_PICK(shapes.frame.position), s, world, solid_bar.position);
      add(BACKDRIVE_PICK(shapes.frame.orientation), s, world, solid_bar.theta);
    });
  }

  /// What touching adds to a shape, whose mass is its body's affair, on a link that has A.
  BACKDRIVE_HD void add_shape(int world, int shape, const Mat3<C>& A, const ShapeGradient<C>& bar) const {
    add(BACKDRIVE_PICK(shapes.frame.position), shape, world, A * bar.position);
    add(BACKDRIVE_PICK(shapes.frame.orientation), shape, world, bar.rotation);
    add(BACKDRIVE_PICK(shapes.geometry.scale), shape, world, bar.scale);
    each_contact_scalar([&](auto number, auto pick) { add(pick, shape, 0, world, number(bar)); });
  }

 private:
  BACKDRIVE_HD LinkGradient<C> bar_of(int world, int i) const {
    return read<LinkGradient<C>>(world, i * kLinkGradients<C>);
  }

  BACKDRIVE_HD ShapeGradient<C> bar_of_shape(int world, int k) const {
    return read<ShapeGradient<C>>(world, gradient_rows<C>(structure.link_count) + k * kShapeGradients<C>);
  }

  /// Calls visit(j) for each child of link i, from the first to the last.
  template <class Visit>
  BACKDRIVE_HD void each_child(int i, Visit&& visit) const {
    if (structure.links[i].leaf) return;
    for (int j = i + 1; j < structure.link_count; ++j) {
      if (structure.links[j].parent != i) continue;
      visit(j);
      if (structure.links[j].last_child) return;
    }
  }

  /// Cotangent η of A → A exp(η) by way of the link's own inertia: com' = Aᵀ com, J' = Aᵀ J A.
  BACKDRIVE_HD static Vec3<C> inertia_turn(const Vec3<C>& com, const Sym3<C>& J, const LinkGradient<C>& bar) {
    const Sym3<C> B = symmetric_gradient(bar.inertia);
    // −2 vee(B J − J B), entries of the antisymmetric matrix (BJ)_ij − (BJ)_ji
    const auto row = [](const Sym3<C>& s, int i) {
      return i == 0 ? Vec3<C>{s.xx, s.xy, s.xz} : (i == 1 ? Vec3<C>{s.xy, s.yy, s.yz} : Vec3<C>{s.xz, s.yz, s.zz});
    };
    const auto bj = [&](int i, int j) { return dot(row(B, i), row(J, j)); };
    const C two = constant<C>(2);
    const Vec3<C> turn{-two * (bj(2, 1) - bj(1, 2)), -two * (bj(0, 2) - bj(2, 0)), -two * (bj(1, 0) - bj(0, 1))};
    return cross(bar.com, com) + turn;
  }

  /// η by way of what stands in A's axes: the link's own joint and body, and its children's joints.
  BACKDRIVE_HD Vec3<C> alignment_bar(const LinkReader<C>& link, int i, const Mat3<C>& A, const MassProperties<C>& mass,
                                     const LinkGradient<C>& bar) const {
    const Mat3<C> to_link = transposed(A);
    Vec3<C> eta = bar.rotation + bar.alignment + inertia_turn(to_link * mass.com, rotated(to_link, mass.inertia), bar);
    each_child(i, [&](int j) {
      const LinkGradient<C> child = bar_of(link.read.world, j);
      Mat3<C> rotation;
      Vec3<C> translation;
      link.place(j, link.alignment(j), A, rotation, translation);
      eta += cross(child.translation, translation) - rotation * child.rotation;
    });
    for (int k = 0; shapes && k < structure.contact_shape_count; ++k) {
      const ContactShape& shape = structure.contact_shapes[k];
      if (shape.link != i) continue;
      const ShapeGradient<C> own = bar_of_shape(link.read.world, k);
      const ShapeConstants<C> c = shape_constants(link.read, shape.shape, A);
      eta += cross(own.position, c.position) - c.rotation * own.rotation;
    }
    return eta;
  }

  BACKDRIVE_HD void add_link(const LinkReader<C>& link, int i) const {
    const int world = link.read.world, joint = structure.links[i].joint, body = structure.links[i].body;
    const LinkGradient<C> bar = bar_of(world, i);
    const Mat3<C> A = link.alignment(i);
    const MassProperties<C> mass = body_mass(structure, link.read, body);
    const int parent = structure.links[i].parent;
    if (structure.links[i].first) {
      add(BACKDRIVE_PICK(joints.frame.position), joint, world,
          parent < 0 ? bar.translation : link.alignment(parent) * bar.translation);
      add(BACKDRIVE_PICK(joints.frame.orientation), joint, world, A * bar.rotation);
    }
    if (body >= 0) {
      add_body(link.read, body, mass,
               {bar.mass, A * bar.com, six_numbers(rotated(A, symmetric_gradient(bar.inertia)))});
    }
    each_joint_scalar([&](auto number, auto pick) {
      // An absent limit was replaced by a constant, which has no gradient.
      if (std::abs(value_of(link.read.number(pick, joint))) < kNoLimit) add(pick, joint, 0, world, number(bar));
    });
    if (!has_one_degree(structure.links[i].type) || structure.links[i].axis != LinkAxis::parameter) return;
    // A exp(η) turns the axis A e_z by A (η × e_z).
    const Vec3<C> eta = alignment_bar(link, i, A, mass, bar);
    add(BACKDRIVE_PICK(joints.axis), joint, world, A * Vec3<C>{eta.y, -eta.x, constant<C>(0)});
  }
};

/// What runs on devices, a thread per world (ConstantsOfWorld also for the padding).
#define BACKDRIVE_PARAMETER_FUNCTORS(X)         \
  X(backdrive::ConstantsOfWorld<float>)         \
  X(backdrive::ConstantsOfWorld<double>)        \
  X(backdrive::ParameterGradientOfWorld<float>) \
  X(backdrive::ParameterGradientOfWorld<double>)

}  // namespace backdrive
