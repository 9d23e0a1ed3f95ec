// Every shape on every other that it may lie on: that it comes to rest and stays, and that cylinders stand and roll on
// faces as on the ground.
#include <gtest/gtest.h>

#include <cmath>

#include "models/meshes/convex_mesh.h"
#include "models/meshes/height_field.h"
#include "tests/integrators/contact_bodies.h"
#include "tests/support/random.h"

namespace backdrive {
namespace {

using test::contact_bodies::box_of;
using test::contact_bodies::largest;
using test::contact_bodies::norm;
using test::contact_bodies::shape;
using test::contact_bodies::simulate;

/// An irregular polyhedron of some 0.12 m.
std::shared_ptr<const ConvexMesh> stone() {
  static const auto mesh = [] {
    test::Random random(7);
    std::vector<Vec3<double>> points;
    while (points.size() < 24) {
      const Vec3<double> p{random.symmetric(1), random.symmetric(1), random.symmetric(1)};
      const double length = norm(p);
      if (length > 0.2 && length < 1) points.push_back(p * (0.12 / length));
    }
    return std::make_shared<const ConvexMesh>(convex_hull(points, "stone"));
  }();
  return mesh;
}
/// A bowl of 2 x 2 m, 0.2 m deep, lowest in the middle at z = 0.
std::shared_ptr<const HeightField> bowl() {
  static const auto field = [] {
    std::vector<double> heights;
    for (int row = 0; row < 9; ++row) {
      for (int column = 0; column < 9; ++column) {
        heights.push_back(0.1 * ((row - 4) * (row - 4) + (column - 4) * (column - 4)) / 16.);
      }
    }
    return std::make_shared<const HeightField>(make_height_field(9, 9, {0.25, 0.25}, heights, "bowl"));
  }();
  return field;
}

Numbers3 size_of(GeometryType type) {
  switch (type) {
    case GeometryType::sphere:
      return {0.1, 0, 0};
    case GeometryType::ellipsoid:
      return {0.15, 0.12, 0.08};
    case GeometryType::capsule:
      return {0.06, 0.15, 0};
    case GeometryType::box:
      return {0.15, 0.12, 0.06};
    case GeometryType::cylinder:
      return {0.12, 0.06, 0};
    default:
      return {1, 1, 1};
  }
}

enum class Ground { plane, height_field, stand };
struct Resting {
  GeometryType body;
  Ground ground;
  GeometryType stand = GeometryType::plane;  ///< four of these, on a body that is fixed to the world
};
std::string name_of(const Resting& r) {
  const std::string ground = r.ground == Ground::plane          ? "plane"
                             : r.ground == Ground::height_field ? "height_field"
                                                                : to_string(r.stand);
  return std::string(to_string(r.body)) + "_on_" + ground;
}
std::vector<Resting> all_restings() {
  using G = GeometryType;
  std::vector<Resting> all;
  for (const Ground ground : {Ground::plane, Ground::height_field}) {
    for (const G body : {G::sphere, G::ellipsoid, G::capsule, G::box, G::cylinder, G::mesh}) {
      all.push_back({body, ground});
    }
  }
  for (const G body : {G::sphere, G::ellipsoid, G::capsule, G::box, G::cylinder, G::mesh}) {
    for (const G stand : {G::sphere, G::ellipsoid, G::capsule, G::box, G::cylinder, G::mesh}) {
      all.push_back({body, Ground::stand, stand});
    }
  }
  return all;
}

/// How far a body that lies reaches down from its centre, or a part of the stand up.
double reach(GeometryType type, bool stands) {
  const Numbers3 size = size_of(type);
  switch (type) {
    case GeometryType::sphere:
      return size[0];
    case GeometryType::capsule:
      return stands ? size[0] + size[1] : size[0];
    case GeometryType::box:
      return stands ? 0.08 : size[2];
    case GeometryType::ellipsoid:
      return size[2];
    case GeometryType::cylinder:
      return size[1];
    default:
      return 0.12;
  }
}

Model resting_model(const Resting& r) {
  ModelBuilder builder;
  builder.add_body("body", {});
  JointOptions air;
  air.damping = 0.05;  // stops what rolls, which friction does not
  builder.add_joint("joint", JointType::free, ModelBuilder::world, 0, air);
  ShapeOptions own = shape(r.body, size_of(r.body));
  own.density = 500;
  if (r.body == GeometryType::mesh) own.mesh = stone();
  if (r.body == GeometryType::capsule) own.frame.orientation = {0, std::sqrt(0.5), 0, std::sqrt(0.5)};  // lies along x
  builder.add_shape("body", 0, own);
  if (r.ground == Ground::plane) builder.add_shape("ground", ModelBuilder::world, shape(GeometryType::plane));
  if (r.ground == Ground::height_field) {
    ShapeOptions field = shape(GeometryType::height_field, {1, 1, 1});
    field.height_field = bowl();
    builder.add_shape("ground", ModelBuilder::world, field);
  }
  if (r.ground != Ground::stand) return builder.build();
  builder.add_body("stand", box_of(1, {0.2, 0.2, 0.1}));
  builder.add_joint("fixed", JointType::fixed, ModelBuilder::world, 1);
  for (int k = 0; k < 4; ++k) {
    ShapeOptions part = shape(r.stand, r.stand == GeometryType::box ? Numbers3{0.08, 0.08, 0.08} : size_of(r.stand));
    part.frame.position = {k % 2 == 0 ? -0.1 : 0.1, k < 2 ? -0.1 : 0.1, 0};
    if (r.stand == GeometryType::mesh) part.mesh = stone();
    builder.add_shape("stand" + std::to_string(k), 1, part);
  }
  return builder.build();
}

// A cylinder rolls on a box, and stands on it, as on the plane through the box's top; on the end face of a larger
// cylinder, too, but that this one's middle stands beneath it as a point more.
TEST(ContactBodies, CylindersRollAndStandOnFacesAsOnAPlane) {
  const auto thrown = [](GeometryType ground, bool stands) {
    ModelBuilder builder;
    const double half = 0.05, radius = 0.1;
    builder.add_body("wheel", {4, {0, 0, 0}, {0.013, 0.013, 0.02, 0, 0, 0}});
    builder.add_joint("joint", JointType::free, ModelBuilder::world, 0);
    builder.add_shape("wheel", 0, shape(GeometryType::cylinder, {radius, half, 0}));
    ShapeOptions floor = shape(ground, ground == GeometryType::cylinder ? Numbers3{3, 0.2, 0} : Numbers3{3, 3, 0.2});
    if (ground != GeometryType::plane) floor.frame.position = {0, 0, -0.2};
    builder.add_shape("floor", ModelBuilder::world, floor);
    const Model model = builder.build();
    State<double> state(model, 1);
    state.q.set(6, 0, (stands ? half : radius) + 0.01);
    if (!stands) state.q.set(0, 0, std::sqrt(0.5)), state.q.set(3, 0, std::sqrt(0.5));  // its axis along y
    state.qd.set(3, 0, 1);
    state.qd.set(0, 0, 0.2);
    return simulate(model, state, 1).final.q;
  };
  for (const bool stands : {true, false}) {
    const Buffer<double> plane = thrown(GeometryType::plane, stands);
    EXPECT_GT(plane(4, 0), 0.05);
    for (const GeometryType ground : {GeometryType::box, GeometryType::cylinder}) {
      const Buffer<double> face = thrown(ground, stands);
      const double tolerance = ground == GeometryType::box ? 1e-9 : 1e-3;
      for (int k = 0; k < 7; ++k) EXPECT_NEAR(face(k, 0), plane(k, 0), tolerance) << to_string(ground) << " " << k;
    }
  }
}

// End faces that lie on each other hold with points that stay while they tilt by little: with the lowest points of both,
// which wander over all of a face and past the other's rim, discs kept rocking at 0.5 rad/s for good.
TEST(ContactBodies, DiscsComeToRestOnDiscs) {
  const double radius = 0.0215, half = radius / 10;
  for (const bool on_free_disc : {true, false}) {
    ModelBuilder builder;
    ShapeOptions disc;  // of the default material
    disc.type = GeometryType::cylinder, disc.scale = {radius, half, 0};
    const BodyOptions body{0.01, {0, 0, 0}, {2.3e-6, 2.3e-6, 2.3e-6, 0, 0, 0}};
    builder.add_shape("floor", ModelBuilder::world, {.type = GeometryType::plane});
    builder.add_joint("joint", JointType::free, ModelBuilder::world, builder.add_body("disc", body));
    builder.add_shape("disc", 0, disc);
    if (on_free_disc) {
      builder.add_joint("second", JointType::free, ModelBuilder::world, builder.add_body("second", body));
      builder.add_shape("second", 1, disc);
    } else {
      disc.scale = {1, half, 0}, disc.frame.position = {0, 0, half};
      builder.add_shape("plate", ModelBuilder::world, disc);
    }
    const Model model = builder.build();
    State<double> state(model, 1);
    state.q.set(0, 0, 0.05), state.q.set(3, 0, std::sqrt(1 - 0.05 * 0.05));
    state.q.set(6, 0, 3 * half + 0.02);
    if (on_free_disc) state.q.set(11, 0, 0.006), state.q.set(12, 0, 0.004), state.q.set(13, 0, half);
    const Trajectory<double> t = simulate(model, state, 6);
    EXPECT_LT(largest(t.final_reported, 0, model.topology.nv), 1e-3);
    EXPECT_GT(t.final.q(6, 0), 2 * half);  // on top
  }
}

class ContactBodiesResting : public testing::TestWithParam<Resting> {};
INSTANTIATE_TEST_SUITE_P(All, ContactBodiesResting, testing::ValuesIn(all_restings()),
                         [](const auto& info) { return name_of(info.param); });

/// Dropped from 3 cm, a little tilted.
struct Drop {
  double start, support;  ///< heights, m
  Trajectory<double> path;
};
Drop drop(const Resting& r, double seconds, double rate) {
  const Model model = resting_model(r);
  State<double> state(model, 1);
  const double support = r.ground == Ground::stand ? reach(r.stand, true) : 0;
  const double start = support + reach(r.body, false) + 0.03;
  constexpr double tilt = 0.05;
  state.q.set(6, 0, start);
  state.q.set(1, 0, std::sin(tilt / 2));
  state.q.set(3, 0, std::cos(tilt / 2));
  return {start, support, simulate(model, state, seconds, true, rate)};
}

/// What rolls in a bowl or rocks on its round side, which friction does not stop; and what lies across the gap between
/// boxes, or cylinders, and turns from edge to edge.
bool rocks(const Resting& r) {
  using G = GeometryType;
  if (r.body == G::ellipsoid) return true;
  if (r.ground == Ground::height_field && (r.body == G::sphere || r.body == G::capsule)) return true;
  return (r.stand == G::box || r.stand == G::cylinder) && (r.body == G::capsule || r.body == G::mesh);
}

// It stays on what carries it: within 0.1 m of where it was dropped, for a stone turns onto one of its faces, and as
// good as at rest; what rocks takes longer than these two seconds for the last 10 cm/s.
TEST_P(ContactBodiesResting, StaysOnWhatCarriesIt) {
  const Resting& r = GetParam();
  const Drop d = drop(r, 2, 960);
  double lowest = d.start, highest = 0;
  for (int step = 0; step <= d.path.steps; ++step) {
    lowest = std::min(lowest, d.path.q(step * 7 + 6, 0));
    highest = std::max(highest, d.path.q(step * 7 + 6, 0));
  }
  EXPECT_GT(lowest, 0.045);  // half the thickness of the flattest, but for the depth; a stand's parts are about z = 0
  EXPECT_LT(highest, d.start + 1e-9);
  EXPECT_LT(largest(d.path.final.q, 4, 2), 0.1);
  EXPECT_LT(largest(d.path.final_reported, 3, 3), rocks(r) ? 0.1 : 0.05);
}

// At the rate that the defaults are for. What turns from edge to edge does so for ten seconds and more, at up to half a
// radian a second, and at one time at any of these.
TEST_P(ContactBodiesResting, ComesToRestAt240StepsPerSecond) {
  const Drop d = drop(GetParam(), 8, 240);
  EXPECT_LT(largest(d.path.final_reported, 0, 6), rocks(GetParam()) ? 0.5 : 1e-3);
  EXPECT_LT(largest(d.path.final.q, 4, 2), 0.1);
}

// A cylinder that lands in a bowl, its middle over a node, stands within two seconds. With its points placed by the
// triangle below its middle, and those jumping with each edge that it passed, it rocked at 0.5 rad/s for one to fifteen,
// at each rate for another time.
TEST(ContactBodies, CylindersStandInABowlAtAnyRate) {
  for (const double rate : {120., 200., 239., 240., 241., 250., 260., 480., 960.}) {
    const Drop d = drop({GeometryType::cylinder, Ground::height_field}, 2, rate);
    EXPECT_LT(largest(d.path.final_reported, 0, 6), 1e-3) << rate;
  }
}

}  // namespace
}  // namespace backdrive
