#pragma once
// Parameters of a shape into ShapeConstants and back.
#include "integrators/contact/shape_constants.h"
#include "integrators/rollout/constants.h"

namespace backdrive::contact {

/// Walks what shapes are made of: visit(number of ShapeConstants or ShapeGradient, which parameter).
template <class Visit>
BACKDRIVE_HD inline void each_contact_number(Visit&& visit) {
#define BACKDRIVE_VISIT(at, name, ...) \
  visit(                               \
      [](auto& c) -> auto& { return c.name; }, BACKDRIVE_PICK(shapes.at name));
  BACKDRIVE_VISIT(geometry., margin)
  BACKDRIVE_MATERIAL_PARAMETERS(BACKDRIVE_VISIT, material.)
#undef BACKDRIVE_VISIT
}

/// Whether a shape's stiffness is auto.
template <class C>
BACKDRIVE_HD inline bool is_automatic(const ParameterReader<C>& read, int shape) {
  return std::isinf(value_of(read.number(BACKDRIVE_PICK(shapes.material.stiffness), shape)));
}

/// The root of the tree that a link is on, and whether it is on a tree. O(depth).
BACKDRIVE_HD inline int tree_root(const Link* links, int link) {
  while (link >= 0 && links[link].parent >= 0) link = links[link].parent;
  return link;
}

/// What a tree weighs, kg; −1, the world: nothing. O(links · shapes).
template <class C>
BACKDRIVE_HD inline C tree_mass(const ModelStructure& model, const ParameterReader<C>& read, int root) {
  C sum = constant<C>(0);
  for (int i = 0; root >= 0 && i < model.link_count; ++i) {
    const Link& link = model.links[i];
    if (link.loop_child >= 0 || link.body < 0 || tree_root(model.links, i) != root) continue;
    sum += body_mass(model, read, link.body).mass;
  }
  return sum;
}

/// The constants of a shape on a link that has A. O(links · shapes).
template <class C>
BACKDRIVE_HD inline ShapeConstants<C> shape_constants(const ModelStructure& model, const ParameterReader<C>& read,
                                                      const ContactShape& contact_shape, const Mat3<C>& A) {
  const int shape = contact_shape.shape;
  const Mat3<C> to_link = transposed(A);
  ShapeConstants<C> c;
  c.rotation = to_link * read.rotation(BACKDRIVE_PICK(shapes.frame.orientation), shape);
  c.position = to_link * read.vector(BACKDRIVE_PICK(shapes.frame.position), shape);
  c.scale = read.vector(BACKDRIVE_PICK(shapes.geometry.scale), shape);
  c.auto_mass = constant<C>(0);
  each_contact_number([&](auto number, auto pick) { number(c) = read.number(pick, shape); });
  if (is_automatic(read, shape)) {
    c.stiffness = constant<C>(0);
    if (!contact_shape.fixed) c.auto_mass = tree_mass(model, read, contact_shape.root);
  }
  return c;
}

/// Adjoint of shape_constants, of what touching adds; a shape's mass is its body's affair, and that of its tree
/// auto_mass_bar's.
template <class T, class C = Exact<T>>
BACKDRIVE_HD void add_shape(const WorldGradient<T>& to, int world, int shape, const Mat3<C>& A,
                            const ShapeGradient<C>& bar) {
  to.add(BACKDRIVE_PICK(shapes.frame.position), shape, world, A * bar.position);
  to.add(BACKDRIVE_PICK(shapes.frame.orientation), shape, world, bar.rotation);
  to.add(BACKDRIVE_PICK(shapes.geometry.scale), shape, world, bar.scale);
  const ParameterReader<C> read = to.reader(world);
  each_contact_number([&](auto number, auto pick) {
    if (!std::isinf(value_of(read.number(pick, shape)))) to.add(pick, shape, 0, world, number(bar));
  });
}

/// Of the mass of the body on a link, by the shapes of its tree whose stiffness is auto; bar_of(contact shape).
/// O(shapes · depth).
template <class C, class BarOf>
BACKDRIVE_HD C auto_mass_bar(const ModelStructure& model, const ParameterReader<C>& read, int link,
                             const BarOf& bar_of) {
  C sum = constant<C>(0);
  const int root = tree_root(model.links, link);
  for (int k = 0; k < model.contact_shape_count; ++k) {
    const ContactShape& shape = model.contact_shapes[k];
    if (shape.root == root && !shape.fixed && is_automatic(read, shape.shape)) sum += bar_of(k).auto_mass;
  }
  return sum;
}

}  // namespace backdrive::contact
