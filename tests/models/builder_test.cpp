// The builder: topology, and an error with path, value and expectation for everything that cannot
// be.
#include "models/builder.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "models/fields.h"
#include "tests/models/model_cases.h"

namespace backdrive {
namespace {

using test::cart_pole;
using test::expect_model_error;
using test::solid_body;

constexpr int kWorld = ModelBuilder::world;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Builds a tree of hinges; parents[i] is the parent body of body i, joints are listed in the order
/// of `joint_order`.
Model tree(const std::vector<int>& parents, const std::vector<int>& joint_order) {
  ModelBuilder builder;
  for (size_t b = 0; b < parents.size(); ++b) builder.add_body("b" + std::to_string(b), solid_body());
  for (int b : joint_order) builder.add_joint("j" + std::to_string(b), JointType::revolute, parents[b], b);
  return builder.build();
}

// A joint does not pass for a body, nor a body for a shape.
static_assert(!std::is_convertible_v<JointIndex, BodyIndex> && !std::is_convertible_v<BodyIndex, ShapeIndex>);
static_assert(std::is_convertible_v<JointIndex, int> && std::is_convertible_v<int, BodyIndex>);

TEST(Builder, CartPole) {
  const Model model = cart_pole().build();
  ASSERT_EQ(model.topology.links.size(), 2u);
  EXPECT_EQ(model.topology.nq, 2);
  EXPECT_EQ(model.topology.nv, 2);
  EXPECT_EQ(model.topology.nu, 4);
  const Link& slider = model.topology.links[0];
  const Link& hinge = model.topology.links[1];
  EXPECT_EQ(slider.parent, -1);
  EXPECT_EQ(hinge.parent, 0);
  EXPECT_TRUE(slider.acts.limit);
  EXPECT_FALSE(slider.acts.drive);
  EXPECT_EQ(slider.target, -1);
  EXPECT_FALSE(hinge.acts.limit);
  EXPECT_TRUE(hinge.acts.drive);
  EXPECT_EQ(hinge.target, 2);
  EXPECT_FALSE(hinge.acts.friction);
  EXPECT_DOUBLE_EQ(model.joints.axis(0, 0), 1);  // given with length 2
  EXPECT_EQ(model.shapes.geometry.scale(0, 0), 0.05);
  EXPECT_EQ(model.shapes.geometry.scale(0, 1), 0);  // a sphere uses one
  EXPECT_EQ(model.shapes.geometry.scale(1, 0), 0);  // a plane none
  EXPECT_EQ(model.gravity(0, 2), -9.81);
  EXPECT_EQ(model.find_joint("hinge"), 1);
  EXPECT_EQ(model.find_body("nobody"), -1);
  EXPECT_EQ(model.find_shape("floor"), 1);
  EXPECT_EQ(model.link_of_body(1), 1);
  EXPECT_EQ(model.link_of_joint(0), 0);
  EXPECT_EQ(model.link_of_joint(7), -1);
}

TEST(Builder, LinksAreDepthFirstAndComponentsFollowTheJointList) {
  // 0 and 3 hang on the world; 1 and 2 on 0; 4 on 3. Joints listed backwards.
  const Model model = tree({kWorld, 0, 0, kWorld, 3}, {4, 3, 2, 1, 0});
  std::vector<int> bodies, parents, q;
  std::vector<bool> leaves, last_children;
  for (const Link& link : model.topology.links) {
    bodies.push_back(link.body);
    parents.push_back(link.parent);
    q.push_back(link.q);
    leaves.push_back(link.leaf);
    last_children.push_back(link.last_child);
    EXPECT_EQ(link.q, link.v);
  }
  EXPECT_EQ(bodies, (std::vector{3, 4, 0, 2, 1}));
  EXPECT_EQ(parents, (std::vector{-1, 0, -1, 2, 2}));
  EXPECT_EQ(q, (std::vector{1, 0, 4, 2, 3}));
  EXPECT_EQ(leaves, (std::vector{false, true, false, true, true}));
  EXPECT_EQ(last_children, (std::vector{false, true, false, false, true}));
}

TEST(Builder, ParentsPrecedeChildrenAndSubtreesAreContiguous) {
  const Model model = tree({kWorld, 0, 1, 0, 3, 3, 1, 4, kWorld, 8}, {9, 0, 5, 1, 7, 3, 2, 8, 4, 6});
  const auto& links = model.topology.links;
  ASSERT_EQ(links.size(), 10u);
  for (size_t i = 0; i < links.size(); ++i) {
    EXPECT_LT(links[i].parent, static_cast<int>(i));
    // Depth first: the parent is the link before or one of its ancestors.
    int ancestor = static_cast<int>(i) - 1;
    while (ancestor >= 0 && ancestor != links[i].parent) ancestor = links[ancestor].parent;
    EXPECT_EQ(ancestor, links[i].parent);
    int last = -1;
    for (size_t c = i + 1; c < links.size(); ++c) {
      if (links[c].parent == static_cast<int>(i)) last = static_cast<int>(c);
    }
    EXPECT_EQ(links[i].leaf, last < 0);
    if (last >= 0) {
      EXPECT_TRUE(links[last].last_child);
    }
  }
}

TEST(Builder, FixedJointsHaveNoComponents) {
  ModelBuilder builder;
  const int base = builder.add_body("base", {});
  const int arm = builder.add_body("arm", solid_body());
  builder.add_joint("weld", JointType::fixed, kWorld, base);
  JointOptions driven;
  driven.driven = true;
  builder.add_joint("hinge", JointType::revolute, base, arm, driven);
  const Model model = builder.build();
  EXPECT_EQ(model.topology.nq, 1);
  EXPECT_EQ(model.topology.nu, 3);
  EXPECT_EQ(model.topology.links[1].q, 0);
  EXPECT_EQ(model.topology.links[1].target, 1);
}

TEST(Builder, EmptyModelBuilds) {
  const Model model = ModelBuilder().build();
  EXPECT_EQ(model.topology.nq, 0);
  EXPECT_EQ(model.gravity.items(), 1);
}

TEST(Builder, QuaternionsAreNormalizedOnce) {
  ModelBuilder builder;
  builder.add_body("b", solid_body());
  JointOptions options;
  options.frame.orientation = {1e200, 2e200, -3e200, 4e200};
  options.axis = {1, 1e-3, -0.3};
  builder.add_joint("j", JointType::revolute, kWorld, 0, options);
  Model model = builder.build();
  double squares = 0;
  for (int c = 0; c < 4; ++c) squares += std::pow(model.joints.frame.orientation(0, c), 2);
  EXPECT_NEAR(squares, 1, 1e-15);
  EXPECT_NEAR(model.joints.frame.orientation(0, 2), -3 / std::sqrt(30), 1e-15);
  const Model before = model;
  validate(model);
  for (int c = 0; c < 4; ++c) EXPECT_EQ(model.joints.frame.orientation(0, c), before.joints.frame.orientation(0, c));
  for (int c = 0; c < 3; ++c) EXPECT_EQ(model.joints.axis(0, c), before.joints.axis(0, c));
}

// ---- names and references
// -------------------------------------------------------------------------------------------

TEST(BuilderErrors, Names) {
  const auto with_body = [](const std::string& name) {
    return [name] {
      ModelBuilder builder = cart_pole();
      builder.add_body(name, solid_body());
      builder.build();
    };
  };
  expect_model_error(with_body(""), "bodies/2", {"empty name"});
  expect_model_error(with_body("a/b"), "bodies/a/b", {"'a/b'", "'/'"});
  expect_model_error(with_body("a*"), "bodies/a*", {"'a*'", "'*'"});
  expect_model_error(with_body("pole"), "bodies/pole", {"'pole'", "unique"});
  expect_model_error(with_body("world"), "bodies/world", {"'world'"});
  expect_model_error(
      [] {
        ModelBuilder builder = cart_pole();
        builder.add_shape("tip", 0, {});
        builder.build();
      },
      "shapes/tip", {"unique"});
}

TEST(BuilderErrors, References) {
  const auto with_joint = [](JointType type, int parent, int child, bool driven = false) {
    return [=] {
      ModelBuilder builder = cart_pole();
      JointOptions options;
      options.driven = driven;
      builder.add_body("extra", solid_body());
      builder.add_joint("new", type, parent, child, options);
      builder.build();
    };
  };
  expect_model_error(with_joint(JointType::revolute, 9, 2), "joints/new/parent", {"9", "3 bodies"});
  expect_model_error(with_joint(JointType::revolute, -2, 2), "joints/new/parent", {"-2"});
  expect_model_error(with_joint(JointType::revolute, 0, kWorld), "joints/new/child", {"the world"});
  expect_model_error(with_joint(JointType::revolute, 0, 1), "joints/new/child", {"'pole'", "'hinge'"});
  expect_model_error(with_joint(JointType::fixed, 0, 2, true), "joints/new/drive", {"fixed"});
  expect_model_error(with_joint(JointType::revolute, 2, 2), "joints/new/parent", {"loop", "'extra'"});
  expect_model_error(
      [] {
        ModelBuilder builder = cart_pole();
        builder.add_body("loose", solid_body());
        builder.build();
      },
      "bodies/loose", {"no joint"});
  expect_model_error(
      [] {
        ModelBuilder builder = cart_pole();
        ShapeOptions plane;
        plane.type = GeometryType::plane;
        builder.add_shape("wall", 1, plane);
        builder.build();
      },
      "shapes/wall/geometry/type", {"plane", "'pole'", "world"});
  expect_model_error(
      [] {
        ModelBuilder builder = cart_pole();
        builder.add_shape("ball", 5, {});
        builder.build();
      },
      "shapes/ball/body", {"5"});
}

TEST(BuilderErrors, LoopNamesItsBodies) {
  ModelBuilder builder;
  for (const char* name : {"a", "b", "c", "d"}) builder.add_body(name, solid_body());
  builder.add_joint("ab", JointType::revolute, 1, 0);
  builder.add_joint("bc", JointType::revolute, 2, 1);
  builder.add_joint("cb", JointType::revolute, 1, 2);
  builder.add_joint("d", JointType::revolute, kWorld, 3);
  try {
    builder.build();
    FAIL();
  } catch (const ModelError& error) {
    EXPECT_NE(error.message().find("loop"), std::string::npos);
    EXPECT_NE(error.message().find("'b'"), std::string::npos);
    EXPECT_NE(error.message().find("'c'"), std::string::npos);
    EXPECT_EQ(error.message().find("'a'"), std::string::npos) << "a only hangs on the loop";
  }
}

// ---- values
// ---------------------------------------------------------------------------------------------------------

/// Every component of every field: a NaN is refused, an infinity too (but where it means none), a
/// negative value where it has no meaning.
TEST(BuilderErrors, EveryNumberIsChecked) {
  ModelBuilder builder = cart_pole();
  builder.add_coupling("tie", {.ratios = {{0, 1}, {1, 0.5}}});
  const Model good = builder.build();
  int refused_negative = 0;
  for (const Field& field : fields()) {
    for (int c = 0; c < field.components; ++c) {
      for (double value : {kNaN, kInf, -kInf, -0.5}) {
        Model bad = good;
        field.of(bad).at(0, c) = value;
        const bool may_be_infinite = field.leaf == "limit/lower" || field.leaf == "limit/upper" ||
                                     field.leaf == "drive/effort_limit" || field.leaf == "limit/velocity" ||
                                     field.leaf == "material/stiffness";
        const bool must_throw = std::isnan(value) || (std::isinf(value) && !may_be_infinite) ||
                                (value < 0 && field.values != ValueRange::any);
        const bool unused = field.leaf == "geometry/scale" && c > 0;
        if (unused || !must_throw) continue;
        if (value == -0.5) ++refused_negative;
        try {
          validate(bad);
          ADD_FAILURE() << field.leaf << "/" << c << " = " << value << " was accepted";
        } catch (const ModelError& error) {
          const std::string path = path_of(bad, {&field, 0, c});
          EXPECT_EQ(path.rfind(error.path(), 0), 0u) << error.path() << " is not the path of " << path;
          EXPECT_NE(error.message().find("expected"), std::string::npos);
        }
      }
    }
  }
  EXPECT_GE(refused_negative, 10);
}

TEST(BuilderErrors, MessageNamesValueAndWorld) {
  Model model = cart_pole().build();
  model.bodies.mass.at(1) = -1.5;
  expect_model_error([&] { validate(model); }, "bodies/pole/mass", {"-1.5", ">= 0", "kg"});
  model.bodies.mass.at(1) = 1.5;
  model.joints.damping.spread(3);
  model.joints.damping.at(0, 0, 2) = kNaN;
  expect_model_error([&] { validate(model); }, "joints/slider/damping", {"nan", "world 2"});
  model.joints.damping.at(0, 0, 2) = 0;
  EXPECT_NO_THROW(validate(model));
  model.bodies.com.at(0, 1) = kInf;
  expect_model_error([&] { validate(model); }, "bodies/cart/com/y", {"inf", "finite"});
}

TEST(BuilderErrors, VectorsLimitsAndScales) {
  const Model good = cart_pole().build();
  Model model = good;
  for (int c = 0; c < 3; ++c) model.joints.axis.set(1, c, 0);
  expect_model_error([&] { validate(model); }, "joints/hinge/axis", {"zero", "vector"});
  model = good;
  for (int c = 0; c < 4; ++c) model.shapes.frame.orientation.set(1, c, 0);
  expect_model_error([&] { validate(model); }, "shapes/floor/frame/orientation", {"zero", "quaternion"});
  model = good;
  model.joints.limit.lower.set(0, 0, 2);
  expect_model_error([&] { validate(model); }, "joints/slider/limit", {"lower 2", "upper 2", "lower < upper"});
  model = good;
  model.joints.limit.lower.set(0, 0, kInf);
  expect_model_error([&] { validate(model); }, "joints/slider/limit", {"inf"});
  model = good;
  model.shapes.geometry.scale.set(0, 0, 0);
  expect_model_error([&] { validate(model); }, "shapes/tip/geometry/scale/0", {"0", "> 0", "sphere"});
}

// ---- inertias
// -------------------------------------------------------------------------------------------------------

Model with_inertia(const std::array<double, 6>& inertia) {
  ModelBuilder builder;
  builder.add_body("b", {1, {0.3, 0, 0}, inertia});
  builder.add_joint("j", JointType::revolute, kWorld, 0);
  return builder.build();
}

TEST(Inertia, PhysicallyPossible) {
  EXPECT_NO_THROW(with_inertia({1, 1, 1, 0, 0, 0}));
  EXPECT_NO_THROW(with_inertia({0, 0, 0, 0, 0, 0}));         // a point
  EXPECT_NO_THROW(with_inertia({1, 1, 2, 0, 0, 0}));         // a sheet: on the bound
  EXPECT_NO_THROW(with_inertia({1, 1, 0, 0, 0, 0}));         // a rod
  EXPECT_NO_THROW(with_inertia({1, 1, 2.000001, 0, 0, 0}));  // rounded in a file
  EXPECT_NO_THROW(with_inertia({2, 2, 2, 0.5, 0.5, 0.5}));   // moments 1.5, 1.5, 3
  expect_model_error([] { with_inertia({1, 1, 2.1, 0, 0, 0}); }, "bodies/b/inertia", {"[1, 1, 2.1]", "sum"});
  expect_model_error([] { with_inertia({1, -1, 1, 0, 0, 0}); }, "bodies/b/inertia", {"-1", "below zero"});
  // Every diagonal number is fine, the principal moments are not.
  expect_model_error([] { with_inertia({2, 2, 2, 0.7, 0.7, 0.7}); }, "bodies/b/inertia", {"3.4", "sum"});
  expect_model_error([] { with_inertia({1, 1, 1, 1.2, 0, 0}); }, "bodies/b/inertia", {"-0.2", "below zero"});
}

// ---- joints that move nothing
// ---------------------------------------------------------------------------------------

struct ChainBody {
  BodyOptions body;
  JointType type;
  Numbers3 axis;
  double armature = 0;
};

Model chain(const std::vector<ChainBody>& bodies) {
  ModelBuilder builder;
  for (size_t i = 0; i < bodies.size(); ++i) {
    builder.add_body("b" + std::to_string(i), bodies[i].body);
    JointOptions options;
    options.axis = bodies[i].axis;
    options.armature = bodies[i].armature;
    builder.add_joint("j" + std::to_string(i), bodies[i].type, static_cast<int>(i) - 1, static_cast<int>(i), options);
  }
  return builder.build();
}

TEST(MovedInertia, MasslessLeafIsRefused) {
  const auto turn = JointType::revolute;
  expect_model_error(
      [&] {
        chain({{solid_body(), turn, {0, 0, 1}}, {{}, turn, {0, 1, 0}}});
      },
      "joints/j1", {"moves no inertia", "'b1'", "armature"});
  EXPECT_NO_THROW(chain({{solid_body(), turn, {0, 0, 1}}, {{}, turn, {0, 1, 0}, 1e-6}}));
  expect_model_error([&] { chain({{{}, JointType::prismatic, {1, 0, 0}}}); }, "joints/j0", {"mass"});
  EXPECT_NO_THROW(chain({{{}, JointType::fixed, {1, 0, 0}}}));
}

TEST(MovedInertia, PointOnTheAxisIsRefused) {
  const auto turn = JointType::revolute;
  const BodyOptions point{1, {0, 0, 0.3}, {}};
  expect_model_error([&] { chain({{point, turn, {0, 0, 1}}}); }, "joints/j0", {"moves no inertia", "axis"});
  EXPECT_NO_THROW(chain({{point, turn, {0, 1, 0}}}));
  EXPECT_NO_THROW(chain({{point, JointType::prismatic, {0, 0, 1}}}));
}

TEST(MovedInertia, MasslessLinksBetweenOthersAreFine) {
  const auto turn = JointType::revolute;
  // universal joint: two hinges with a massless middle
  EXPECT_NO_THROW(chain({{{}, turn, {1, 0, 0}}, {solid_body(), turn, {0, 1, 0}}}));
  // a wrist z-y-z is singular at zero, and only there
  EXPECT_NO_THROW(chain({{{}, turn, {0, 0, 1}}, {{}, turn, {0, 1, 0}}, {solid_body(), turn, {0, 0, 1}}}));
  // a planar joint of two sliders
  EXPECT_NO_THROW(chain({{{}, JointType::prismatic, {1, 0, 0}}, {solid_body(), JointType::prismatic, {0, 1, 0}}}));
  // a welded tool gives its inertia to the massless link that carries it
  EXPECT_NO_THROW(chain({{{}, turn, {1, 0, 0}}, {solid_body(), JointType::fixed, {0, 1, 0}}}));
}

TEST(MovedInertia, TwoHingesOnOneAxisAreRefused) {
  const auto turn = JointType::revolute;
  // Together they carry inertia, but the outer one lets the inner one turn freely.
  expect_model_error(
      [&] {
        chain({{{}, turn, {0, 0, 1}}, {solid_body(), turn, {0, 0, 1}}});
      },
      "joints/j0", {"moves no inertia"});
}

TEST(MovedInertia, ShapesWithDensityCount) {
  ModelBuilder builder;
  builder.add_body("b", {});
  builder.add_joint("j", JointType::revolute, kWorld, 0);
  ShapeOptions ball;
  ball.density = 100;
  builder.add_shape("ball", 0, ball);
  Model model = builder.build();
  model.shapes.density.spread(2);
  EXPECT_NO_THROW(validate(model));
  model.shapes.density.at(0, 0, 1) = 0;
  expect_model_error([&] { validate(model); }, "joints/j", {"moves no inertia", "world 1"});
}

}  // namespace
}  // namespace backdrive
