#include "tests/support/turning_case.h"

#include "models/builder.h"
#include "tests/support/models.h"
#include "tests/support/random.h"

namespace backdrive::test {
namespace {

/// `share` differs from shape to shape.
ShapeOptions soft_shape(GeometryType type, double share) {
  ShapeOptions shape;
  shape.type = type;
  shape.scale = {0.1, 0, 0};
  shape.stiffness = 2e3;
  shape.width = 0.02;
  shape.dissipation = 0.3;
  shape.density = 100;
  shape.creep = 2e-3;
  shape.torsional_friction = share * 4e-3;
  shape.rolling_friction = share * 6e-3;
  return shape;
}

}  // namespace

GradientCase turning_case() {
  ModelBuilder builder;
  const char* const names[] = {"lower", "upper"};
  for (int b = 0; b < 2; ++b) {
    builder.add_body(names[b], {1, {0.004, -0.003, 0.002}, {3e-3, 4e-3, 4.5e-3, 2e-4, -1e-4, 3e-4}});
    builder.add_joint(names[b], JointType::free, ModelBuilder::world, b);
    builder.add_shape(names[b], b, soft_shape(GeometryType::sphere, 1 + 0.2 * b));
  }
  builder.add_shape("floor", ModelBuilder::world, soft_shape(GeometryType::plane, 0.7));
  Model model = builder.build();
  require_all(model);
  GradientCase c = make_case(std::move(model), 6, 1. / 240, 3, 5);
  Random random(6);
  for (int w = 0; w < c.worlds(); ++w) {
    for (int b = 0; b < 2; ++b) {
      c.batch.state.q.set(7 * b + 4, w, 0.01 * b);
      c.batch.state.q.set(7 * b + 5, w, 0.02 * b);
      c.batch.state.q.set(7 * b + 6, w, 0.09 + 0.185 * b);
      for (int k = 0; k < 6; ++k) {
        const double turn = (k % 2 == 1 ? -8 : 6) * (1 + 2 * b);  // against each other, and against the floor
        c.batch.state.qd.set(6 * b + k, w, k < 3 ? turn + random.symmetric(1) : random.symmetric(0.05));
      }
    }
  }
  return c;
}

}  // namespace backdrive::test
