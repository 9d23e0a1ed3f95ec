// Shapes of the world of every kind, under bodies of every kind: as if a body that nothing moves carried them.
#include <gtest/gtest.h>

#include <cmath>

#include "models/meshes/convex_mesh.h"
#include "tests/support/contact_experiments.h"

namespace backdrive {
namespace {

using namespace test;

ShapeOptions shape_of(GeometryType type) {
  ShapeOptions s{.type = type, .scale = {0.1, 0.1, 0.1}};
  if (type != GeometryType::mesh) return s;
  std::vector<Vec3<double>> corners;
  for (int i = 0; i < 8; ++i) corners.push_back({i & 1 ? 1. : -1., i & 2 ? 1. : -1., i & 4 ? 1. : -1.});
  s.mesh = std::make_shared<const ConvexMesh>(convex_hull(corners, "cube"));
  return s;
}

/// Something falls onto the first, which the world holds itself or by a body.
Experiment dropped(GeometryType under, GeometryType falling, bool by_body, Integrator integrator) {
  ModelBuilder builder;
  builder.set_integrator(integrator);
  BodyIndex stand = ModelBuilder::world;
  if (by_body) {
    stand = builder.add_body("stand", {1, {0, 0, 0}, {1, 1, 1, 0, 0, 0}});
    builder.add_joint("held", JointType::fixed, ModelBuilder::world, stand);
  }
  builder.add_shape("stand", stand, shape_of(under));
  const BodyIndex body = builder.add_body("body", {1, {0, 0, 0}, {0.01, 0.01, 0.01, 0, 0, 0}});
  builder.add_joint("flight", JointType::free, ModelBuilder::world, body);
  builder.add_shape("body", body, shape_of(falling));
  Experiment e{builder.build(), {}, 1. / 480, 120, 0};
  e.state = State<double>(e.model, 1);
  e.row = e.q_of("flight") + 4;
  e.state.q.set(e.row, 0, 0.02), e.state.q.set(e.row + 1, 0, 0.03), e.state.q.set(e.row + 2, 0, 0.33);
  e.state.qd.set(e.v_of("flight") + 1, 0, 0.5), e.state.qd.set(e.v_of("flight") + 5, 0, -1);
  return e;
}

// A state's rounding, through contact that sticks: 1e-16 over creep of 1e-5 m/s.
TEST(ContactWithTheWorld, StandsForItselfWhateverKindItIs) {
  const GeometryType kinds[] = {GeometryType::sphere, GeometryType::capsule, GeometryType::box, GeometryType::mesh};
  for (const GeometryType under : kinds) {
    for (const GeometryType falling : kinds) {
      SCOPED_TRACE(std::string(to_string(falling)) + " on " + to_string(under));
      const Experiment own = dropped(under, falling, false, Integrator::featherstone);
      const ContactPair& pair = own.model.topology.contact_pairs[0];
      EXPECT_EQ(own.model.topology.contact_shapes[pair.b].link, -1);
      const Sensitivity world(own, {}), body(dropped(under, falling, true, Integrator::featherstone), {});
      EXPECT_NEAR(world.end(0), body.end(0), 1e-9);
      for (int k = 0; k < 6; ++k) {
        EXPECT_NEAR(world.by_velocity(own.v_of("flight") + k, 0), body.by_velocity(own.v_of("flight") + k, 0), 1e-7);
      }
      const Trajectory<double> tree = own.run();
      const Trajectory<double> loose = dropped(under, falling, false, Integrator::semi_implicit).run();
      EXPECT_GT(std::abs(tree.final.q(own.row + 2, 0) - (0.33 - 0.25 - 0.5 * kGravity / 16)), 0.1);  // it was held up
      for (int k = 0; k < 3; ++k) EXPECT_NEAR(tree.final.q(own.row + k, 0), loose.final.q(own.row + k, 0), 5e-3);
    }
  }
}

}  // namespace
}  // namespace backdrive
