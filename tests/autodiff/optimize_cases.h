#pragma once
// Problems that the optimiser's, the gradient check's and the Hessian's tests share.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "autodiff/optimize/optimize.h"
#include "autodiff/problem/loss.h"
#include "models/builder.h"

namespace backdrive::cases {

/// A rod of 1 kg and 1 m that hangs from a hinge about y.
inline ModelBuilder pendulum_builder(const JointOptions& hinge = {}) {
  ModelBuilder builder;
  const int rod = builder.add_body("rod", {.mass = 1, .com = {0, 0, -0.5}, .inertia = {0.08, 0.08, 0.001, 0, 0, 0}});
  JointOptions options = hinge;
  options.axis = {0, 1, 0};
  builder.add_joint("hinge", JointType::revolute, ModelBuilder::world, rod, options);
  return builder;
}

/// A pendulum that hangs, under effort, asked to stand at `angle` after a second.
inline Problem pendulum(double angle = 1) {
  Problem p;
  JointOptions hinge;
  hinge.damping = 0.05;
  p.model = pendulum_builder(hinge).build();
  p.simulation = {0.01, 100};
  p.initial_position = {0};
  p.initial_velocity = {0};
  p.loss.push_back({.name = "terminal/hinge/position", .target = {angle, 0, 0, 1}, .weight = 10});
  p.loss.push_back(
      {.name = "terminal/hinge/velocity", .quantity = LossQuantity::joint_velocity, .target = {0, 0, 0, 1}});
  p.loss.push_back({.name = "running/hinge/effort",
                    .quantity = LossQuantity::control,
                    .terminal = false,
                    .target = {0, 0, 0, 1},
                    .weight = 1e-3});
  Variable control;
  control.name = "control/hinge";
  control.knots = 10;
  control.scale = 2;
  control.random = 1;
  p.variables = {control};
  p.optimize.iterations = 200;
  return p;
}

/// Loss of the problem as it stands, by a plain rollout.
inline double final_loss(const Problem& problem) {
  RolloutOptions options;
  options.time_step = problem.simulation.time_step;
  options.steps = problem.simulation.steps;
  const Control<double> control = initial_control<double>(problem, 1);
  const auto trajectory = rollout(problem.model, initial_state<double>(problem, 1), control, options);
  return evaluate_loss<double>(problem, trajectory, control, options, nullptr).total(0, 0);
}

inline Variable parameter(const Model& model, const std::string& path) {
  Variable v;
  v.name = path;
  v.kind = VariableKind::parameter;
  v.parameter = select_fields(model, path).front();
  return v;
}

/// Adds parameter variables, each with a random part.
inline void add_parameters(Problem& problem, const std::vector<std::string>& paths, double random = 0.003) {
  for (const std::string& path : paths) {
    problem.variables.push_back(parameter(problem.model, path));
    problem.variables.back().random = random;
  }
}

/// A cart with a driven slider, soft limits and friction, a pole that is turned and off its joint's
/// axes, and a box with a density: every kind of parameter that the integrator knows acts on the
/// motion.
inline Problem cart_pole() {
  ModelBuilder builder;
  const int cart = builder.add_body(
      "cart", {.mass = 0.4, .com = {0.01, 0.02, 0.03}, .inertia = {0.02, 0.03, 0.04, 0.001, 0.002, -0.001}});
  const int pole = builder.add_body(
      "pole", {.mass = 0.1, .com = {0.01, -0.02, 0.5}, .inertia = {0.0083, 0.0084, 0.0009, 0.0001, -0.0002, 0.0003}});
  const int tip =
      builder.add_body("tip", {.mass = 0.05, .com = {0, 0.01, 0.02}, .inertia = {1e-4, 1.2e-4, 0.9e-4, 0, 0, 0}});
  JointOptions slider;
  slider.frame = {{0.1, 0.2, 0.3}, {0.05, -0.1, 0.02, 0.99}};
  slider.axis = {1, 0.1, -0.05};
  slider.damping = 0.1;
  slider.friction = 0.2;
  slider.armature = 0.01;
  slider.limit = {.lower = -0.3, .upper = 0.15, .stiffness = 50, .damping = 1};
  slider.driven = true;
  slider.drive = {.stiffness = 3, .damping = 0.5, .effort_limit = 50};
  builder.add_joint("slider", JointType::prismatic, ModelBuilder::world, cart, slider);
  JointOptions hinge;
  hinge.frame = {{0.02, 0.01, 0.1}, {0.1, 0.05, -0.2, 0.97}};
  hinge.axis = {0.1, 1, 0.2};
  hinge.damping = 0.02;
  builder.add_joint("hinge", JointType::revolute, cart, pole, hinge);
  JointOptions weld;
  weld.frame = {{0.01, 0.02, 0.9}, {0.3, 0.1, 0.2, 0.9}};
  builder.add_joint("weld", JointType::fixed, pole, tip, weld);
  builder.add_shape("box", cart,
                    {.type = GeometryType::box,
                     .scale = {0.2, 0.1, 0.08},
                     .frame = {{0.01, -0.02, 0.03}, {0.2, 0.1, -0.1, 0.95}},
                     .density = 60});
  builder.add_shape("ball", tip, {.type = GeometryType::sphere, .scale = {0.03, 0, 0}, .frame = {}});
  Problem p;
  p.model = builder.build();
  p.simulation = {0.01, 60};
  p.initial_position = {0.05, 2.5};
  p.initial_velocity = {0.7, -0.4};
  const int s = p.model.find_joint("slider"), h = p.model.find_joint("hinge");
  p.controls.push_back({s, ControlChannel::effort, {1, -2, 3, 0.5, 1}});
  p.controls.push_back({s, ControlChannel::target_position, {0.1, 0.3}});
  p.controls.push_back({h, ControlChannel::effort, {0.2, -0.1, 0.3}, true});
  p.loss.push_back(
      {.name = "terminal/hinge/position", .index = h, .target = {0, 0, 0, 1}, .on_circle = true, .weight = 3});
  p.loss.push_back(
      {.name = "terminal/slider/velocity", .quantity = LossQuantity::joint_velocity, .index = s, .weight = 0.5});
  p.loss.push_back(
      {.name = "running/slider/position", .terminal = false, .index = s, .target = {0.2, 0, 0, 1}, .weight = 2});
  p.loss.push_back({.name = "running/slider/effort",
                    .quantity = LossQuantity::control,
                    .terminal = false,
                    .index = s,
                    .weight = 0.01});
  p.loss.push_back({.name = "terminal/tip/position",
                    .quantity = LossQuantity::body_position,
                    .index = p.model.find_body("tip"),
                    .target = {0.3, 0.1, 0.8, 0},
                    .point = {0.01, 0.02, 0.03}});
  p.loss.push_back({.name = "running/pole/orientation",
                    .quantity = LossQuantity::body_orientation,
                    .terminal = false,
                    .index = p.model.find_body("pole"),
                    .target = {0.5, 0.5, 0.5, 0.5},
                    .weight = 0.7});
  return p;
}

/// The cart-pole with variables of every kind of parameter: numbers as they are, axes, orientations, all of an item and
/// one component, masses as given and as shapes make them.
inline Problem varied_cart_pole() {
  Problem p = cart_pole();
  add_parameters(p, {"bodies/pole/mass", "bodies/pole/com", "joints/hinge/axis", "joints/hinge/frame/position",
                     "joints/hinge/frame/orientation", "joints/weld/frame/position/z", "joints/slider/armature",
                     "joints/slider/damping", "joints/slider/friction", "joints/slider/limit/upper",
                     "joints/slider/drive/stiffness", "shapes/box/geometry/scale", "joints/weld/frame/orientation/y",
                     "shapes/box/density", "gravity/z"});
  p.variables.back().scale = 5;
  add_parameters(p, {"bodies/pole/inertia"}, 1e-5);
  return p;
}

/// Variables that reach models of every kind that cannot be.
inline Problem impossible_cart_pole() {
  Problem p = cart_pole();
  add_parameters(p,
                 {"bodies/pole/mass", "bodies/pole/inertia", "joints/hinge/axis", "joints/slider/limit/lower",
                  "joints/slider/drive/effort_limit", "shapes/box/geometry/scale", "bodies/cart/com"},
                 1e-5);
  return p;
}

/// Points of it, most of them wild.
inline std::vector<std::vector<double>> impossible_points(const Problem& problem, int count) {
  const double inf = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> points = initial_points(problem, count, 11);
  const int numbers = static_cast<int>(points[0].size());
  for (int k = 1; k < count; ++k) {
    double& x = points[k][(k * 7) % numbers];
    const double wild[] = {x, 0.0, -x, 3 * x, x / 50, 1e200, 1e-170, inf, -inf, inf - inf, -0.2, 0.2};
    x = wild[k % 12];
    if (k % 5 == 0) std::fill_n(points[k].begin() + 7, 3, k % 10 == 0 ? 0.0 : 1e-162);  // the axis
  }
  return points;
}

/// A hinge without armature that moves a rod, whose mass and inertia are varied: all zero, it moves nothing.
inline Problem weightless_pendulum() {
  Problem p = pendulum();
  p.variables.clear();
  p.simulation.steps = 5;
  add_parameters(p, {"bodies/rod/mass", "bodies/rod/inertia/yy", "bodies/rod/inertia/xx"});
  return p;
}

}  // namespace backdrive::cases
