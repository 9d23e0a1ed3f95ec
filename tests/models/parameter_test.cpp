// Parameter, the shape of gradients, and the features that follow from values.
#include <gtest/gtest.h>

#include "models/model.h"
#include "models/parameter_list.h"
#include "tests/models/model_cases.h"
#include "tests/support/errors.h"

namespace backdrive {
namespace {

using test::cart_pole;

TEST(Parameter, ResizeKeepsValuesInEveryWorld) {
  Parameter p(2, 7);
  p.resize(2);
  EXPECT_EQ(p(1, 1), 7);
  p.at(0, 0) = 1;
  p.at(1, 1) = 2;
  p.requires_grad(1, true);
  p.spread(3);
  EXPECT_FALSE(p.uniform());
  p.at(1, 0, 2) = 5;
  p.resize(3);
  EXPECT_EQ(p.items(), 3);
  for (int w = 0; w < 3; ++w) {
    EXPECT_EQ(p(0, 0, w), 1);
    EXPECT_EQ(p(1, 1, w), 2);
    EXPECT_EQ(p(1, 0, w), w == 2 ? 5 : 7);
    EXPECT_EQ(p(2, 0, w), 7);
  }
  EXPECT_TRUE(p.requires_grad(1));
  EXPECT_FALSE(p.requires_grad(2));
  p.resize(1);
  EXPECT_EQ(p(0, 0, 2), 1);
  EXPECT_FALSE(p.any_requires_grad());
}

TEST(Parameter, UniformValueIsThatOfEveryWorld) {
  Parameter p(1);
  p.resize(1);
  p.at(0) = 3;
  EXPECT_EQ(p(0, 0, 41), 3);
  p.spread(2);
  p.set(0, 0, 4);
  EXPECT_EQ(p(0, 0, 1), 4);
  p.at(0, 0, 1) = 9;
  p.spread(4);  // of the first world's values
  for (int w = 0; w < 4; ++w) EXPECT_EQ(p(0, 0, w), 4);
}

TEST(Parameter, BadSizesAreUsageErrors) {
  Parameter p(1);
  EXPECT_THROW(p.resize(-1), Error);
  EXPECT_THROW(p.spread(0), Error);
}

TEST(Parameter, ZerosHaveTheTangentsShape) {
  Model model = cart_pole().build();
  set_requires_grad(model, "joints/hinge/frame", true);
  const Parameters zero = zero_parameters(model, 2);
  for (const Field& field : fields()) {
    const Parameter& own = field.in(zero);
    EXPECT_EQ(own.items(), field.in(model).items()) << field.leaf;
    EXPECT_EQ(own.components(), field.tangents) << field.leaf;
    EXPECT_EQ(own.worlds(), 2);
    for (int i = 0; i < own.items(); ++i) {
      for (int c = 0; c < own.components(); ++c) EXPECT_EQ(own(i, c, 1), 0);
    }
  }
  EXPECT_EQ(zero.joints.frame.orientation.components(), 3);
  EXPECT_TRUE(zero.joints.frame.orientation.requires_grad(1));
  EXPECT_FALSE(zero.joints.frame.orientation.requires_grad(0));
}

TEST(Model, APartThatWasMovedFromIsAnErrorThatNamesIt) {
  Model model = cart_pole().build();
  const JointParameters taken = std::move(model.joints);
  EXPECT_EQ(model.joints.damping.items(), 0);  // NOLINT: looked at on purpose
  EXPECT_EQ(taken.damping.items(), 2);
  test::expect_usage_error([&] { static_cast<void>(model.parameter_worlds()); },
                           {"joints/*/", "of 0 items in a model of 2"});
  model.joints = taken;
  EXPECT_EQ(model.parameter_worlds(), 1);
}

TEST(Model, ParameterWorldsMustAgree) {
  Model model = cart_pole().build();
  EXPECT_EQ(model.parameter_worlds(), 1);
  model.joints.damping.spread(4);
  model.gravity.spread(4);
  EXPECT_EQ(model.parameter_worlds(), 4);
  model.bodies.mass.spread(3);
  EXPECT_THROW(model.parameter_worlds(), Error);
}

TEST(Model, ShapesResistTurnsByValuesOfAnyWorldAndGradients) {
  ModelBuilder builder;
  builder.add_body("ball", {1, {0, 0, 0}, {1, 1, 1, 0, 0, 0}});
  builder.add_joint("joint", JointType::free, ModelBuilder::world, 0);
  builder.add_shape("ball", 0, {});
  ShapeOptions floor;
  floor.type = GeometryType::plane;
  builder.add_shape("floor", ModelBuilder::world, floor);
  Model model = builder.build();
  const auto resists = [&](int shape) {
    for (const ContactShape& s : model.topology.contact_shapes) {
      if (s.shape == shape) return s.resists_turns;
    }
    return false;
  };
  EXPECT_FALSE(resists(0) || resists(1));
  set_requires_grad(model, "shapes/ball/material/rolling_friction", true);
  EXPECT_TRUE(resists(0));
  EXPECT_FALSE(resists(1));
  set_requires_grad(model, "shapes/ball/material/rolling_friction", false);
  EXPECT_FALSE(resists(0));
  model.shapes.material.torsional_friction.spread(2);
  model.shapes.material.torsional_friction.at(1, 0, 1) = 0.1;
  validate(model);
  EXPECT_FALSE(resists(0));
  EXPECT_TRUE(resists(1));
  model.shapes.material.rolling_friction.at(0) = -1;
  EXPECT_THROW(validate(model), ModelError);
}

TEST(Model, FeaturesFollowValuesOfAnyWorldAndGradients) {
  Model model = cart_pole().build();
  EXPECT_FALSE(model.topology.links[1].acts.friction);
  set_requires_grad(model, "joints/hinge/friction", true);
  EXPECT_TRUE(model.topology.links[1].acts.friction);
  EXPECT_FALSE(model.topology.links[0].acts.friction);
  set_requires_grad(model, "joints/hinge/friction", false);
  EXPECT_FALSE(model.topology.links[1].acts.friction);
  model.joints.friction.spread(2);
  model.joints.friction.at(1, 0, 1) = 0.1;
  model.joints.limit.lower.spread(2);
  model.joints.limit.upper.spread(2);
  model.joints.limit.upper.at(1, 0, 1) = 1;
  refresh_features(model);
  EXPECT_TRUE(model.topology.links[1].acts.friction);
  EXPECT_TRUE(model.topology.links[1].acts.limit);
  EXPECT_TRUE(model.topology.links[1].acts.drive);
}

TEST(Model, NamesOfTypes) {
  EXPECT_STREQ(to_string(JointType::prismatic), "prismatic");
  EXPECT_STREQ(to_string(GeometryType::capsule), "capsule");
}

}  // namespace
}  // namespace backdrive
