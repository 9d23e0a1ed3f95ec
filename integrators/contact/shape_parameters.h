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

/// The constants of a shape on a link that has A. O(1).
template <class C>
BACKDRIVE_HD inline ShapeConstants<C> shape_constants(const ParameterReader<C>& read, int shape, const Mat3<C>& A) {
  const Mat3<C> to_link = transposed(A);
  ShapeConstants<C> c;
  c.rotation = to_link * read.rotation(BACKDRIVE_PICK(shapes.frame.orientation), shape);
  c.position = to_link * read.vector(BACKDRIVE_PICK(shapes.frame.position), shape);
  c.scale = read.vector(BACKDRIVE_PICK(shapes.geometry.scale), shape);
  each_contact_number([&](auto number, auto pick) { number(c) = read.number(pick, shape); });
  return c;
}

/// Adjoint of shape_constants, of what touching adds; a shape's mass is its body's affair.
template <class T, class C = Exact<T>>
BACKDRIVE_HD void add_shape(const WorldGradient<T>& to, int world, int shape, const Mat3<C>& A,
                            const ShapeGradient<C>& bar) {
  to.add(BACKDRIVE_PICK(shapes.frame.position), shape, world, A * bar.position);
  to.add(BACKDRIVE_PICK(shapes.frame.orientation), shape, world, bar.rotation);
  to.add(BACKDRIVE_PICK(shapes.geometry.scale), shape, world, bar.scale);
  each_contact_number([&](auto number, auto pick) { to.add(pick, shape, 0, world, number(bar)); });
}

}  // namespace backdrive::contact
