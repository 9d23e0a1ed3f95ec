#include "tests/support/rigid_case.h"

#include <cmath>
#include <iterator>
#include <string>

#include "models/builder.h"
#include "tests/support/models.h"
#include "tests/support/random.h"

namespace backdrive::test {

GradientCase rigid_case() {
  ModelBuilder builder;
  Random random(31);
  const auto within = [&](double bound) -> Numbers3 {
    return {random.symmetric(bound), random.symmetric(bound), random.symmetric(bound)};
  };
  struct Joint {
    JointType type;
    int parent;
  };
  constexpr Joint joints[] = {
      {JointType::free, ModelBuilder::world}, {JointType::fixed, 0}, {JointType::fixed, 1},    {JointType::fixed, 0},
      {JointType::ball, ModelBuilder::world}, {JointType::fixed, 4}, {JointType::revolute, 4}, {JointType::fixed, 6}};
  for (int b = 0; b < static_cast<int>(std::size(joints)); ++b) {
    const std::string name = "body" + std::to_string(b);
    const double size = 1 + 0.3 * b;
    builder.add_body(name, {0.5 * size, within(0.1), {0.02 * size, 0.03 * size, 0.035 * size, 1e-3, -2e-3, 3e-3}});
    JointOptions joint;
    joint.frame.position = within(0.2);
    const Numbers3 v = within(0.5);
    joint.frame.orientation = {v[0], v[1], v[2], std::sqrt(1 - (v[0] * v[0] + v[1] * v[1] + v[2] * v[2]))};
    joint.spins = joints[b].type == JointType::revolute;
    builder.add_joint(name, joints[b].type, joints[b].parent, b, joint);
  }
  ShapeOptions ball{.type = GeometryType::sphere, .scale = {0.3, 0, 0}};
  ball.stiffness = 2e3;
  ball.width = 0.02;
  ball.creep = 2e-3;
  ball.density = 0;
  builder.add_shape("ball", 2, ball);
  ShapeOptions floor = ball;
  floor.type = GeometryType::plane;
  builder.add_shape("floor", ModelBuilder::world, floor);
  Model model = builder.build();
  require_all(model);
  GradientCase c = make_case(std::move(model), 6, 0.01, 2, 5);
  for (int w = 0; w < c.worlds(); ++w) {
    for (int k = 0; k < 3; ++k) c.batch.state.q.set(4 + k, w, k == 2 ? 0.2 + 0.5 * w : 0);
    for (int k = 0; k < 6; ++k) c.batch.state.qd.set(k, w, k < 3 ? (k % 2 == 0 ? 25 : -15) + random.symmetric(5) : 0.3);
    for (int k = 6; k < 10; ++k) c.batch.state.qd.set(k, w, k == 9 ? 30 : (k % 2 == 0 ? 12 : -8) + random.symmetric(5));
  }
  return c;
}

}  // namespace backdrive::test
