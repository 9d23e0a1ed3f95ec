// Contacts and limits of MJCF files: as soft as MuJoCo's under the load that they are fitted for.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "scenes/scene.h"
#include "tests/scenes/robot_values.h"
#include "tests/support/places.h"
#include "tests/support/reference.h"

namespace backdrive {
namespace {

/// Where an increasing function of a depth is `wanted`.
double depth_at(const std::function<double(double)>& of, double wanted) {
  double low = 0, high = 1;
  for (int i = 0; i < 200; ++i) (of(0.5 * (low + high)) < wanted ? low : high) = 0.5 * (low + high);
  return high;
}

/// What MuJoCo's default lets a contact of unit mass push with: K d²r/(1 − d), d from 0.9 to 0.95 over 1 mm.
double default_push(double r) {
  const double x = r / 0.001, y = x < 0.5 ? 2 * x * x : x < 1 ? 1 - 2 * (1 - x) * (1 - x) : 1;
  const double d = 0.9 + 0.05 * y, k = 1 / (0.95 * 0.95 * 0.02 * 0.02);
  return k * d * d * r / (1 - d);
}
double ramp(double x, double width) {
  return x < width ? x * x / (2 * width) : x - width / 2;
}

class MjcfSoftness : public RobotFolder {
 protected:
  struct Law {
    double stiffness, width;
    /// Depth at which it carries a force.
    double depth(double force) const {
      return depth_at([&](double x) { return stiffness * ramp(x, width); }, force);
    }
  };
  /// Of the geom "g" of a free body of 2 kg over a floor.
  Law contact(const std::string& geom, const std::string& floor = "", const std::string& option = "") const {
    const Model m =
        load_scene(write("m.xml", "<mujoco><option " + option + "/><worldbody><geom type=\"plane\" size=\"1 1 1\" " +
                                      floor + "/><body><freejoint/><geom name=\"g\" size=\"0.1\" mass=\"2\" " + geom +
                                      "/></body></worldbody></mujoco>"))
            .problem.model;
    const ShapeIndex s = m.find_shape("g");
    return {m.shapes.material.stiffness(s), m.shapes.material.width(s)};
  }
};

constexpr double kFitted = 1.5 * 9.81;  // m/s²

TEST_F(MjcfSoftness, AContactSinksInAsFarAsMujocos) {
  const double fitted = depth_at(default_push, kFitted);
  EXPECT_NEAR(contact("").depth(2 * kFitted), fitted, 1e-9 * fitted);
  // Elsewhere it is another law (docs/robots.md, section 3).
  for (const double load : {0.1, 0.5, 2.0, 4.0}) {
    EXPECT_NEAR(contact("").depth(2 * load * 9.81), depth_at(default_push, load * 9.81), 1.3e-4) << load;
  }
  // The softest of gymnasium's: half-cheetah, whose impedance grows from nothing to 0.8 over 10 mm.
  const auto soft = [](double r) {
    const double x = r / 0.01, d = 0.8 * (x < 0.5 ? 2 * x * x : x < 1 ? 1 - 2 * (1 - x) * (1 - x) : 1);
    return d * d * r / (1 - d) / (0.8 * 0.8 * 0.02 * 0.02);
  };
  const std::string words = "solref=\"0.02 1\" solimp=\"0 0.8 0.01\"";
  for (const double load : {0.5, 1.0, 1.5, 2.0}) {
    EXPECT_NEAR(contact(words, words).depth(2 * load * 9.81), depth_at(soft, load * 9.81), 1.6e-3) << load;
  }
}

TEST_F(MjcfSoftness, WhatTouchesTheWorldIsMixedWithIt) {
  const std::string stiff = "solref=\"0.01 1\"", soft = "solref=\"0.03 1\"";
  const double usual = contact("").stiffness;
  EXPECT_NEAR(contact(stiff, soft).stiffness, usual, 1e-9 * usual);  // the mean of time constants
  EXPECT_LT(contact(stiff, soft + " solmix=\"0.5\"").depth(2 * kFitted), 0.9 * contact("").depth(2 * kFitted));
  EXPECT_EQ(contact(stiff, soft + " priority=\"1\"").stiffness, contact(soft, soft).stiffness);
  EXPECT_EQ(contact(stiff + " priority=\"1\"", soft).stiffness, contact(stiff, stiff).stiffness);
  // What it does not touch says nothing.
  EXPECT_EQ(contact(stiff, soft + " contype=\"0\" conaffinity=\"0\"").stiffness, contact(stiff, stiff).stiffness);
}

TEST_F(MjcfSoftness, StiffnessAndDampingMayBeGiven) {
  // Of the same K, and half of it.
  const double k = 1 / (0.02 * 0.02);
  const auto direct = [&](double stiffness) {
    const std::string words = "solref=\"" + std::to_string(-stiffness) + " -100\"";
    return contact(words, words);
  };
  const double usual = contact("").stiffness;
  EXPECT_NEAR(direct(k).stiffness, usual, 1e-9 * usual);
  EXPECT_GT(direct(k / 2).depth(2 * kFitted), 1.3 * contact("").depth(2 * kFitted));
  EXPECT_NEAR(contact("solref=\"-1 100\"", "solref=\"5 -1\"").stiffness, usual, 1e-9 * usual);  // as MuJoCo: neither
}

TEST_F(MjcfSoftness, StepsBoundIt) {
  // Time constants are at least two steps, and contact takes four.
  EXPECT_EQ(contact("solref=\"0.001 1\"", "solref=\"0.001 1\"", "timestep=\"0.01\"").stiffness,
            contact("solref=\"0.02 1\"", "solref=\"0.02 1\"", "timestep=\"0.01\"").stiffness);
  const double most = std::pow(M_PI / (4 * 0.002), 2) * 2;
  EXPECT_NEAR(contact("solref=\"0.004 1\"", "solref=\"0.004 1\"").stiffness, most, 1e-9 * most);
  // Nothing that no spring has: such shapes are as all shapes are.
  EXPECT_TRUE(std::isinf(contact("solref=\"0 0\"", "solref=\"0 0\"").stiffness));
  for (const std::string words : {"solimp=\"2 -5 0 0 -1\"", "solimp=\"1 1 -1\"", "solref=\"1e300 1e300\"",
                                  "solimp=\"0.99 0.01 1e-9 1e-9 500\"", "solref=\"-1e300 -1e300\""}) {
    const Law law = contact(words, words);
    EXPECT_GT(law.stiffness, 0) << words;
    EXPECT_GT(law.width, 0) << words;
    EXPECT_TRUE(std::isfinite(law.width)) << words;
  }
}

/// By how much each body and joint gives way, against MuJoCo's own body_invweight0 and dof_invweight0.
TEST_F(MjcfSoftness, LimbsAreAsHeavyAsMujocos) {
  const nlohmann::json content = test::read_reference("mujoco_parts");
  const Scene scene = load_scene(test::kRepository + "/scenes/walker.xml");
  const Model& m = scene.problem.model;
  const auto& masses = content.at("walker").at("inverse_masses");
  const auto stiffness = [&](const std::string& shape) { return m.shapes.material.stiffness(m.find_shape(shape)); };
  const double rate = stiffness("trunk") * masses.at("trunk").get<double>();
  for (const std::string body : {"left_thigh", "left_shank", "left_foot", "right_thigh", "right_foot"}) {
    EXPECT_NEAR(stiffness(body) * masses.at(body).get<double>(), rate, 1e-9 * rate) << body;
  }
  const auto& inertias = content.at("walker").at("inverse_inertias");
  const double depth = depth_at(default_push, 98.1);
  for (const std::string joint : {"left_hip", "left_knee", "right_ankle"}) {
    const JointIndex j = m.find_joint(joint);
    const double held = m.joints.limit.stiffness(j) * ramp(depth, kLimitRamp) * inertias.at(joint).get<double>();
    EXPECT_NEAR(held, 98.1, 1e-7) << joint;
    EXPECT_GT(m.joints.limit.damping(j), 0) << joint;
  }
  // Free and ball joints, several joints of a body, slides, and what is fixed to bodies.
  const Model parts = load_scene(test::kRepository + "/tests/reference/mujoco_parts.xml").problem.model;
  const auto& inverse = content.at("parts").at("inverse_masses");
  double first = 0;
  int compared = 0;
  for (const ContactShape& shape : parts.topology.contact_shapes) {
    const double k = parts.shapes.material.stiffness(shape.shape);
    if (shape.fixed || !std::isfinite(k)) continue;
    const auto weight = inverse.find(parts.body_names[BodyIndex(shape.body)]);
    if (weight == inverse.end() || weight->get<double>() == 0) continue;
    if (first == 0) first = k * weight->get<double>();
    EXPECT_NEAR(k * weight->get<double>(), first, 1e-8 * first) << weight.key();
    ++compared;
  }
  EXPECT_GE(compared, 8);
}

TEST_F(MjcfSoftness, MarginsAddAndGapsDoNotLessenThem) {
  const Model m = load_scene(write("m.xml",
                                   "<mujoco><worldbody><body><freejoint/><geom name=\"g\" size=\"1\" margin=\"0.02\" "
                                   "gap=\"0.015\"/></body></worldbody></mujoco>"))
                      .problem.model;
  EXPECT_EQ(m.shapes.geometry.margin(m.find_shape("g")), 0.02);
}

}  // namespace
}  // namespace backdrive
