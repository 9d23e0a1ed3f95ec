#include "benchmarks/robots.h"

#include <string>

#include "models/builder.h"

namespace backdrive::benchmarks {
namespace {

Model revolute_tree(const std::vector<int>& parents, Integrator integrator = Integrator::featherstone) {
  ModelBuilder builder;
  builder.set_integrator(integrator);
  const Numbers3 axes[3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  for (size_t i = 0; i < parents.size(); ++i) {
    const std::string number = std::to_string(i);
    const int body = builder.add_body(
        "link" + number,
        {.mass = 1.5, .com = {0.01, -0.02, 0.1}, .inertia = {0.02, 0.025, 0.01, 0.001, 0.002, -0.001}});
    JointOptions options;
    options.frame.position = {0.02, 0.01, 0.2};
    options.axis = axes[i % 3];
    options.damping = 0.1;
    options.armature = 0.01;
    builder.add_joint("joint" + number, JointType::revolute, parents[i], body, options);
  }
  return builder.build();
}

/// A trunk of six links, at some of which limbs begin.
Model trunk_with_limbs(const std::vector<int>& roots, int limb) {
  std::vector<int> parents;
  for (int i = 0; i < 6; ++i) parents.push_back(i - 1);
  for (const int root : roots) {
    parents.push_back(root);
    for (int i = 1; i < limb; ++i) parents.push_back(static_cast<int>(parents.size()) - 1);
  }
  return revolute_tree(parents);
}

}  // namespace

Model chain(int links, Integrator integrator) {
  std::vector<int> parents;
  for (int i = 0; i < links; ++i) parents.push_back(i - 1);
  return revolute_tree(parents, integrator);
}

Model tree18() {
  return trunk_with_limbs({5, 5, 5, 5}, 3);
}

Model quadruped(Shapes shapes) {
  constexpr std::uint32_t robot = 1, ground = 2;
  ModelBuilder builder;
  const auto box = [](double mass, const Numbers3& half, const Numbers3& com = {0, 0, 0}) {
    const auto moment = [&](int i, int j) { return mass / 3 * (half[i] * half[i] + half[j] * half[j]); };
    return BodyOptions{mass, com, {moment(1, 2), moment(0, 2), moment(0, 1), 0, 0, 0}};
  };
  const auto add_shape = [&](const std::string& name, int body, GeometryType type, const Numbers3& scale,
                             const Numbers3& position = {0, 0, 0}) {
    ShapeOptions shape;
    shape.type = type;
    shape.scale = scale;
    shape.frame.position = position;
    shape.filter = body < 0 ? CollisionFilter{ground, robot} : CollisionFilter{robot, ground};
    if (shapes == Shapes::touching) builder.add_shape(name, body, shape);
  };
  const int trunk = builder.add_body("trunk", box(8, {0.2, 0.1, 0.05}));
  builder.add_joint("base", JointType::free, ModelBuilder::world, trunk);
  add_shape("trunk", trunk, GeometryType::box, {0.2, 0.1, 0.05});
  add_shape("floor", ModelBuilder::world, GeometryType::plane, {0, 0, 0});
  for (int leg = 0; leg < 4; ++leg) {
    const std::string name = std::to_string(leg);
    const double x = leg < 2 ? 0.2 : -0.2, y = leg % 2 == 0 ? 0.1 : -0.1;
    const auto add = [&](const std::string& part, int parent, const Numbers3& at, const Numbers3& axis,
                         const BodyOptions& options) {
      const int body = builder.add_body(part + name, options);
      JointOptions hinge;
      hinge.frame.position = at;
      hinge.axis = axis;
      hinge.armature = 0.01;
      hinge.damping = 0.1;
      hinge.driven = true;
      hinge.drive = {.stiffness = 60, .damping = 2};
      builder.add_joint(part + name, JointType::revolute, parent, body, hinge);
      return body;
    };
    const int hip = add("hip", trunk, {x, y, 0}, {1, 0, 0}, box(0.4, {0.03, 0.03, 0.03}));
    const int thigh = add("thigh", hip, {0, 0, 0}, {0, 1, 0}, box(0.4, {0.02, 0.02, 0.1}, {0, 0, -0.1}));
    const int shank = add("shank", thigh, {0, 0, -0.2}, {0, 1, 0}, box(0.1, {0.01, 0.01, 0.1}, {0, 0, -0.1}));
    add_shape("foot" + name, shank, GeometryType::sphere, {0.02, 0, 0}, {0, 0, -0.2});
  }
  return builder.build();
}

Model tree30() {
  return trunk_with_limbs({1, 3, 5, 5}, 6);
}

}  // namespace backdrive::benchmarks
