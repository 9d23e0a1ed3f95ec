// Which shapes may touch: types, joints, filters, and what the user adds and leaves out.
#include "models/contact_pairs.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/meshes/convex_mesh.h"
#include "models/meshes/height_field.h"
#include "tests/models/model_cases.h"

namespace backdrive {
namespace {

using test::expect_model_error;
using test::solid_body;
using Names2 = std::pair<std::string, std::string>;
using Pairs = std::vector<Names2>;

constexpr int kWorld = ModelBuilder::world;
constexpr GeometryType kTypes[] = {GeometryType::plane,   GeometryType::sphere,      GeometryType::ellipsoid,
                                   GeometryType::capsule, GeometryType::box,         GeometryType::cylinder,
                                   GeometryType::mesh,    GeometryType::height_field};

std::shared_ptr<const ConvexMesh> tetrahedron() {
  const std::vector<Vec3<double>> points{{0, 0, 0}, {1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  return std::make_shared<const ConvexMesh>(convex_hull(points, "tetrahedron"));
}
std::shared_ptr<const HeightField> slope() {
  return std::make_shared<const HeightField>(make_height_field(2, 2, {1, 1}, {0, 0, 1, 1}, "slope"));
}

ShapeOptions shape_of(GeometryType type, CollisionFilter filter = {}) {
  ShapeOptions options;
  options.type = type;
  options.filter = filter;
  options.mesh = type == GeometryType::mesh ? tetrahedron() : nullptr;
  options.height_field = type == GeometryType::height_field ? slope() : nullptr;
  return options;
}

/// Bodies and shapes of the same names.
struct Scenery {
  ModelBuilder builder;

  int body(const std::string& name, int parent, JointType type = JointType::revolute) {
    const int index = builder.add_body(name, solid_body());
    builder.add_joint(name, type, parent, index);
    return index;
  }
  int shape(const std::string& name, int body, GeometryType type = GeometryType::sphere, CollisionFilter filter = {}) {
    return builder.add_shape(name, body, shape_of(type, filter));
  }
  int body_with_shape(const std::string& name, int parent, JointType type = JointType::revolute) {
    const int index = body(name, parent, type);
    shape(name, index);
    return index;
  }
};

Pairs names_of(const Model& model) {
  const Topology& t = model.topology;
  Pairs names;
  for (const ContactPair& pair : t.contact_pairs) {
    names.emplace_back(model.shape_names[t.contact_shapes[pair.a].shape],
                       model.shape_names[t.contact_shapes[pair.b].shape]);
  }
  return names;
}
Pairs pairs_of(const Scenery& scenery) {
  return names_of(scenery.builder.build());
}

TEST(ContactPairs, TypesThatCanTouch) {
  const auto is_ground = [](GeometryType t) { return t == GeometryType::plane || t == GeometryType::height_field; };
  for (const GeometryType a : kTypes) {
    for (const GeometryType b : kTypes) {
      const bool expected = !is_ground(a) || !is_ground(b);
      EXPECT_EQ(can_touch(a, b), expected) << to_string(a) << " " << to_string(b);
      EXPECT_EQ(can_touch(b, a), expected);
    }
  }
}

/// Every two types that can touch, listed either way: the ground last, else as GeometryType has them.
TEST(ContactPairs, OrderOfAPairIsThatOfTheTypes) {
  const auto is_ground = [](GeometryType t) { return t == GeometryType::plane || t == GeometryType::height_field; };
  for (const GeometryType a : kTypes) {
    for (const GeometryType b : kTypes) {
      if (!can_touch(a, b)) continue;
      SCOPED_TRACE(std::string(to_string(a)) + " " + to_string(b));
      Scenery scenery;
      scenery.shape("a", is_ground(a) ? kWorld : scenery.body("one", kWorld), a);
      scenery.shape("b", is_ground(b) ? kWorld : scenery.body("other", kWorld), b);
      const bool swapped = is_ground(a) || (!is_ground(b) && b < a);
      EXPECT_EQ(pairs_of(scenery), (Pairs{swapped ? Names2{"b", "a"} : Names2{"a", "b"}}));
    }
  }
}

TEST(ContactPairs, BodiesThatAJointConnectsDoNotTouch) {
  Scenery scenery;
  const int a = scenery.body_with_shape("a", kWorld);
  const int b = scenery.body_with_shape("b", a);
  scenery.body_with_shape("c", b, JointType::universal);
  EXPECT_EQ(pairs_of(scenery), (Pairs{{"a", "c"}}));
}

TEST(ContactPairs, ShapesOfOneBodyDoNotTouch) {
  Scenery scenery;
  const int a = scenery.body_with_shape("a", kWorld);
  scenery.shape("a2", a);
  scenery.shape("floor", kWorld, GeometryType::plane);
  scenery.shape("stone", kWorld);
  EXPECT_EQ(pairs_of(scenery), (Pairs{{"a", "floor"}, {"a", "stone"}, {"a2", "floor"}, {"a2", "stone"}}));
}

/// a - b = b2 - c: what b's weld carries hangs on a, and c hangs on b.
TEST(ContactPairs, FixedJointsMakeOneBody) {
  Scenery scenery;
  const int a = scenery.body_with_shape("a", kWorld);
  const int b = scenery.body_with_shape("b", a);
  const int b2 = scenery.body_with_shape("b2", b, JointType::fixed);
  const int b3 = scenery.body_with_shape("b3", b2, JointType::fixed);
  scenery.body_with_shape("c", b3);
  EXPECT_EQ(pairs_of(scenery), (Pairs{{"a", "c"}}));
}

TEST(ContactPairs, WhatHangsOnTheWorldTouchesIt) {
  Scenery scenery;
  scenery.shape("stone", kWorld);
  scenery.body_with_shape("a", kWorld, JointType::free);
  EXPECT_EQ(pairs_of(scenery), (Pairs{{"a", "stone"}}));
}

/// What stands on the world is the second, whatever its type and place among the shapes: kernels look for a link of the
/// first.
TEST(ContactPairs, ShapesOfTheWorldAreTheSecond) {
  const GeometryType types[] = {GeometryType::sphere, GeometryType::capsule, GeometryType::box};
  for (const GeometryType of_world : types) {
    for (const GeometryType of_body : types) {
      Scenery scenery;
      scenery.shape("before", kWorld, of_world);
      scenery.shape("a", scenery.body("a", kWorld, JointType::free), of_body);
      scenery.shape("behind", kWorld, of_world);
      EXPECT_EQ(pairs_of(scenery), (Pairs{{"a", "before"}, {"a", "behind"}}));
    }
  }
}

/// Of what is fixed to the world only the joint's own parent is left out.
TEST(ContactPairs, WhatIsFixedToTheWorldIsTheWorldButForTheOwnBase) {
  Scenery scenery;
  scenery.shape("floor", kWorld, GeometryType::plane);
  const int table = scenery.body_with_shape("table", kWorld, JointType::fixed);
  const int base = scenery.body_with_shape("base", table, JointType::fixed);
  const int link = scenery.body_with_shape("link", base);
  scenery.body_with_shape("hand", link);
  EXPECT_EQ(pairs_of(scenery),
            (Pairs{{"link", "floor"}, {"hand", "floor"}, {"table", "link"}, {"table", "hand"}, {"base", "hand"}}));
}

TEST(ContactPairs, FiltersWorkBothWays) {
  Scenery scenery;
  // Bits: 1 legs, 2 trunk, 4 ghosts.
  scenery.shape("leg", scenery.body("leg", kWorld), GeometryType::sphere, {1, 2});
  scenery.shape("trunk", scenery.body("trunk", kWorld), GeometryType::sphere, {2, ~0u});
  scenery.shape("leg2", scenery.body("leg2", kWorld), GeometryType::sphere, {1, 2});
  scenery.shape("ghost", scenery.body("ghost", kWorld), GeometryType::sphere, {4, ~0u});
  scenery.shape("none", scenery.body("none", kWorld), GeometryType::sphere, {0, 0});
  scenery.shape("blind", scenery.body("blind", kWorld), GeometryType::sphere, {1, 0});
  EXPECT_EQ(pairs_of(scenery), (Pairs{{"leg", "trunk"}, {"trunk", "leg2"}, {"trunk", "ghost"}}));
}

TEST(ContactPairs, ExcludedBodiesDoNotTouch) {
  Scenery scenery;
  const int a = scenery.body_with_shape("a", kWorld), b = scenery.body_with_shape("b", kWorld);
  scenery.shape("a2", a);
  scenery.shape("floor", kWorld, GeometryType::plane);
  scenery.builder.exclude_contacts(b, a);
  scenery.builder.exclude_contacts(kWorld, a);
  EXPECT_EQ(pairs_of(scenery), (Pairs{{"b", "floor"}}));
}

TEST(ContactPairs, ExcludedShapesDoNotTouch) {
  Scenery scenery;
  const int a = scenery.body("a", kWorld), b = scenery.body("b", kWorld);
  const int sa = scenery.shape("a", a), sb = scenery.shape("b", b);
  scenery.shape("a2", a);
  const int floor = scenery.shape("floor", kWorld, GeometryType::plane);
  scenery.builder.exclude_shapes(sb, sa);
  scenery.builder.exclude_shapes(sa, floor);
  EXPECT_EQ(pairs_of(scenery), (Pairs{{"b", "a2"}, {"b", "floor"}, {"a2", "floor"}}));
  scenery.builder.include_contact(floor, sa);
  EXPECT_EQ(pairs_of(scenery), (Pairs{{"a", "floor"}, {"b", "a2"}, {"b", "floor"}, {"a2", "floor"}}));
}

TEST(ContactPairs, IncludedShapesTouchWhateverElseIsSaid) {
  Scenery scenery;
  const int a = scenery.body("a", kWorld), b = scenery.body("b", a);
  const int sa = scenery.shape("a", a, GeometryType::box), sb = scenery.shape("b", b);
  const int hidden = scenery.shape("hidden", b, GeometryType::sphere, {0, 0});
  const int floor = scenery.shape("floor", kWorld, GeometryType::plane);
  scenery.builder.exclude_contacts(b, kWorld);
  EXPECT_EQ(pairs_of(scenery), (Pairs{{"a", "floor"}}));
  scenery.builder.include_contact(sa, sb);
  scenery.builder.include_contact(sb, sa);  // once more changes nothing
  scenery.builder.include_contact(floor, hidden);
  scenery.builder.include_contact(sa, floor);
  EXPECT_EQ(pairs_of(scenery), (Pairs{{"b", "a"}, {"a", "floor"}, {"hidden", "floor"}}));
}

TEST(ContactPairs, CopiesOfAModelKeepWhatTheUserSaid) {
  Scenery scenery;
  const int a = scenery.body_with_shape("a", kWorld), b = scenery.body_with_shape("b", a);
  scenery.body_with_shape("c", b);
  scenery.builder.exclude_contacts(a, 2);
  scenery.builder.include_contact(0, 1);
  const Model model = scenery.builder.build();
  EXPECT_EQ(names_of(model), (Pairs{{"a", "b"}}));
  Model copy = model;
  copy.topology.contact_pairs.clear();
  find_contact_pairs(copy);
  EXPECT_EQ(names_of(copy), names_of(model));
}

TEST(ContactPairs, ContactShapesSayLinkRootAndMesh) {
  Scenery scenery;
  const int a = scenery.body("a", kWorld, JointType::planar), b = scenery.body("b", a, JointType::universal);
  scenery.shape("unused", a, GeometryType::sphere, {0, 0});
  scenery.shape("hull", b, GeometryType::mesh);
  scenery.shape("ground", kWorld, GeometryType::height_field);
  const Model model = scenery.builder.build();
  const Topology& t = model.topology;
  ASSERT_EQ(t.contact_shapes.size(), 2u);
  const ContactShape &hull = t.contact_shapes[0], &ground = t.contact_shapes[1];
  EXPECT_EQ(hull.shape, 1);
  EXPECT_EQ(hull.link, model.link_of_body(b));
  EXPECT_EQ(hull.link, 4);  // three links of the planar joint, two of the universal one
  EXPECT_EQ(hull.root, 0);
  EXPECT_EQ(hull.type, GeometryType::mesh);
  EXPECT_EQ(hull.mesh, 0);
  EXPECT_EQ(ground.shape, 2);
  EXPECT_EQ(ground.link, -1);
  EXPECT_EQ(ground.root, -1);
  EXPECT_EQ(ground.mesh, 0);
  const TopologyView view = view_of(t);
  EXPECT_EQ(view.contact_shape_count, 2);
  EXPECT_EQ(view.contact_pair_count, 1);
  EXPECT_EQ(view.contact_pairs[0].b, 1);
}

TEST(ContactPairs, RefusesIncludedPairsThatCannotTouch) {
  const auto refused = [](int a, int b, std::initializer_list<const char*> words) {
    Scenery scenery;
    const int one = scenery.body("one", kWorld), other = scenery.body("other", one, JointType::fixed);
    scenery.shape("ball", one);                             // 0
    scenery.shape("box", other, GeometryType::box);         // 1, of the same rigid body
    scenery.shape("wall", kWorld, GeometryType::plane);     // 2
    scenery.shape("floor", kWorld, GeometryType::plane);    // 3
    scenery.shape("stone", kWorld, GeometryType::capsule);  // 4
    scenery.builder.include_contact(0, 4);
    scenery.builder.include_contact(a, b);
    expect_model_error([&] { scenery.builder.build(); }, "contacts/include/1", words);
  };
  refused(0, 0, {"'ball' with itself", "expected two shapes"});
  refused(0, 1, {"'ball'", "'box'", "one rigid body", "expected two that move against each other"});
  refused(4, 3, {"one rigid body"});
  refused(2, 3, {"plane and plane", "expected types that can touch"});
  refused(0, 5, {"shape index 5", "expected one of the 5 shapes"});
  refused(-1, 0, {"shape index -1"});
}

TEST(ContactPairs, RefusesExcludedBodiesThatAreNone) {
  const auto refused = [](int a, int b, std::initializer_list<const char*> words) {
    Scenery scenery;
    scenery.body("one", kWorld);
    scenery.builder.exclude_contacts(a, b);
    expect_model_error([&] { scenery.builder.build(); }, "contacts/exclude/0", words);
  };
  refused(0, 0, {"body 'one' with itself", "expected two bodies"});
  refused(kWorld, kWorld, {"the world with itself"});
  refused(0, 1, {"body index 1", "expected one of the 1 bodies or the world"});
  refused(-2, 0, {"body index -2"});
}

TEST(ContactPairs, TooManyAreRefused) {
  Scenery scenery;
  const int a = scenery.body("a", kWorld), b = scenery.body("b", kWorld);
  for (int i = 0; i < 1001; ++i) {
    scenery.shape("a" + std::to_string(i), a);
    scenery.shape("b" + std::to_string(i), b);
  }
  expect_model_error([&] { scenery.builder.build(); }, "shapes", {"more than 1000000 pairs", "expected fewer"});
}

TEST(ContactPairs, GroundIsOfTheWorldAndMeshesHaveAMesh) {
  Scenery field;
  field.shape("hill", field.body("a", kWorld), GeometryType::height_field);
  expect_model_error([&] { field.builder.build(); }, "shapes/hill/geometry/type",
                     {"a height field on body 'a'", "expected a height field on the world"});
  for (const GeometryType type : {GeometryType::mesh, GeometryType::height_field}) {
    Scenery scenery;
    ShapeOptions options;
    options.type = type;
    scenery.builder.add_shape("s", kWorld, options);
    expect_model_error([&] { scenery.builder.build(); }, "shapes/s/geometry", {"expected one in the shape's options"});
  }
}

}  // namespace
}  // namespace backdrive
