#pragma once
// Parameters into LinkConstants and back (rollout/constants.h), link by link.
#include "integrators/contact/shape_parameters.h"
#include "integrators/featherstone/link_constants.h"

namespace backdrive::featherstone {

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
    c.efforts = joint_efforts(read, model.links[i].joint);
    const int body = model.links[i].body;
    c.lift = body < 0 ? constant<C>(0) : read.number(BACKDRIVE_PICK(bodies.gravity_compensation), body);
    return c;
  }
};

/// Writes the constants of one world.
template <class T>
struct ConstantsOfWorld {
  using C = Exact<T>;
  WorldConstants<T> to;

  /// O(links · shapes), a thread's work.
  BACKDRIVE_HD void operator()(int world) const {
    const ModelStructure& structure = to.structure;
    const LinkReader<C> link{structure, to.reader(world)};
    for (int i = 0; i < structure.link_count; ++i) {
      const Mat3<C> A = link.alignment(i), parent = link.alignment(structure.links[i].parent);
      const MassProperties<C> mass = body_mass(structure, link.read, structure.links[i].body);
      to.write(world, i * kLinkConstants<C>, link.constants(i, A, parent, mass));
      to.write(world, alignment_row<C>(structure.link_count) + i * 9, A);
    }
    to.write(world, gravity_row<C>(structure.link_count), link.read.vector(BACKDRIVE_PICK(gravity), 0));
    for (int k = 0; k < structure.contact_shape_count; ++k) {
      const ContactShape& shape = structure.contact_shapes[k];
      to.write(world, shape_row<C>(structure.link_count) + k * kShapeConstants<C>,
               contact::shape_constants(structure, link.read, shape, link.alignment(shape.link)));
    }
    write_couplings(to, link.read, world, coupling_row<C>(structure.link_count, structure.contact_shape_count));
  }
};

/// Adjoint of ConstantsOfWorld.
template <class T>
struct ParameterGradientOfWorld {
  using C = Exact<T>;
  WorldGradient<T> to;

  /// O(links · shapes), a thread's work.
  BACKDRIVE_HD void operator()(int world) const {
    const LinkReader<C> link{to.structure, to.reader(world)};
    for (int i = 0; i < to.structure.link_count; ++i) add_link(link, i);
    to.add(BACKDRIVE_PICK(gravity), 0, world,
           to.template read<Vec3<C>>(world, gravity_gradient_row<C>(to.structure.link_count)));
    for (int k = 0; to.shapes && k < to.structure.contact_shape_count; ++k) {
      const ContactShape& shape = to.structure.contact_shapes[k];
      contact::add_shape(to, world, shape.shape, link.alignment(shape.link), bar_of_shape(world, k));
    }
    const int shapes = to.shapes ? to.structure.contact_shape_count : 0;
    if (to.couplings) add_couplings(to, link.read, gradient_rows<C>(to.structure.link_count, shapes));
  }

 private:
  BACKDRIVE_HD LinkGradient<C> bar_of(int world, int i) const {
    return to.template read<LinkGradient<C>>(world, i * kLinkGradients<C>);
  }

  BACKDRIVE_HD ShapeGradient<C> bar_of_shape(int world, int k) const {
    return to.template read<ShapeGradient<C>>(world,
                                              gradient_rows<C>(to.structure.link_count) + k * kShapeGradients<C>);
  }

  /// Calls visit(j) for each child of link i, from the first to the last.
  template <class Visit>
  BACKDRIVE_HD void each_child(int i, Visit&& visit) const {
    if (to.structure.links[i].leaf) return;
    for (int j = i + 1; j < to.structure.link_count; ++j) {
      if (to.structure.links[j].parent != i) continue;
      visit(j);
      if (to.structure.links[j].last_child) return;
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
    for (int k = 0; to.shapes && k < to.structure.contact_shape_count; ++k) {
      const ContactShape& shape = to.structure.contact_shapes[k];
      if (shape.link != i) continue;
      const ShapeGradient<C> own = bar_of_shape(link.read.world, k);
      const ShapeConstants<C> c = contact::shape_constants(to.structure, link.read, shape, A);
      eta += cross(own.position, c.position) - c.rotation * own.rotation;
    }
    return eta;
  }

  BACKDRIVE_HD void add_link(const LinkReader<C>& link, int i) const {
    const int world = link.read.world, joint = to.structure.links[i].joint, body = to.structure.links[i].body;
    LinkGradient<C> bar = bar_of(world, i);
    if (to.shapes && body >= 0) {
      bar.mass += contact::auto_mass_bar(to.structure, link.read, i, [&](int k) { return bar_of_shape(world, k); });
    }
    const Mat3<C> A = link.alignment(i);
    const MassProperties<C> mass = body_mass(to.structure, link.read, body);
    const int parent = to.structure.links[i].parent;
    if (to.structure.links[i].first) {
      to.add(BACKDRIVE_PICK(joints.frame.position), joint, world,
             parent < 0 ? bar.translation : link.alignment(parent) * bar.translation);
      to.add(BACKDRIVE_PICK(joints.frame.orientation), joint, world, A * bar.rotation);
    }
    if (body >= 0) {
      to.add_body(link.read, body, mass,
                  {bar.mass, A * bar.com, six_numbers(rotated(A, symmetric_gradient(bar.inertia)))});
      to.add(BACKDRIVE_PICK(bodies.gravity_compensation), body, 0, world, bar.lift);
    }
    to.add_efforts(link.read, joint, bar.efforts);
    if (!has_one_degree(to.structure.links[i].type) || to.structure.links[i].axis != LinkAxis::parameter) return;
    // A exp(η) turns the axis A e_z by A (η × e_z).
    const Vec3<C> eta = alignment_bar(link, i, A, mass, bar);
    to.add(BACKDRIVE_PICK(joints.axis), joint, world, A * Vec3<C>{eta.y, -eta.x, constant<C>(0)});
  }
};

/// What runs on devices, a thread per world (ConstantsOfWorld also for the padding).
#define BACKDRIVE_LINK_PARAMETER_FUNCTORS(X)                  \
  X(backdrive::featherstone::ConstantsOfWorld<float>)         \
  X(backdrive::featherstone::ConstantsOfWorld<double>)        \
  X(backdrive::featherstone::ParameterGradientOfWorld<float>) \
  X(backdrive::featherstone::ParameterGradientOfWorld<double>)

}  // namespace backdrive::featherstone
