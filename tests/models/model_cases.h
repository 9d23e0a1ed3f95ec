#pragma once
// Small models and helpers that the tests of models/ share.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "models/builder.h"

namespace backdrive::test {

/// A body that resists every motion.
inline BodyOptions solid_body(double mass = 1) {
  return {mass, {0.1, 0, 0}, {0.02, 0.03, 0.04, 0, 0, 0}};
}

/// World - slider - cart - hinge - pole, with a ball on the pole's tip and a floor.
inline ModelBuilder cart_pole() {
  ModelBuilder builder;
  const int cart = builder.add_body("cart", solid_body(2));
  const int pole = builder.add_body("pole", solid_body(0.5));
  JointOptions slider;
  slider.axis = {2, 0, 0};
  slider.limit.lower = -2;
  slider.limit.upper = 2;
  builder.add_joint("slider", JointType::prismatic, ModelBuilder::world, cart, slider);
  JointOptions hinge;
  hinge.axis = {0, 1, 0};
  hinge.driven = true;
  builder.add_joint("hinge", JointType::revolute, cart, pole, hinge);
  ShapeOptions tip;
  tip.scale = {0.05, 7, 7};
  tip.density = 100;
  builder.add_shape("tip", pole, tip);
  ShapeOptions floor;
  floor.type = GeometryType::plane;
  builder.add_shape("floor", ModelBuilder::world, floor);
  return builder;
}

/// Expects `action` to throw a ModelError about `path` whose message contains each of `words`.
inline void expect_model_error(const std::function<void()>& action, const std::string& path,
                               std::initializer_list<const char*> words) {
  try {
    action();
    ADD_FAILURE() << "no error, expected one about " << path;
  } catch (const ModelError& error) {
    EXPECT_EQ(error.path(), path) << error.what();
    EXPECT_EQ(error.kind(), ErrorKind::input);
    std::string lines;
    for (const ModelMistake& one : error.mistakes())
      lines += (lines.empty() ? "" : "\n") + one.path + ": " + one.message;
    EXPECT_EQ(std::string(error.what()), lines);
    for (const char* word : words) {
      EXPECT_NE(error.message().find(word), std::string::npos) << "no '" << word << "' in: " << error.what();
    }
  }
}

}  // namespace backdrive::test
