#include "tests/autodiff/program_model.h"

#include "models/builder.h"
#include "models/parameter_list.h"
#include "tests/support/models.h"

namespace backdrive::test {
namespace {

BodyOptions random_body(Random& random) {
  BodyOptions body;
  body.mass = random.uniform(0.5, 2);
  body.com = random_vector(random, 0.1);
  for (int k = 0; k < 3; ++k) body.inertia[k] = random.uniform(0.02, 0.03);  // near a ball's: always a body's
  for (int k = 3; k < 6; ++k) body.inertia[k] = random.symmetric(0.001);
  return body;
}

/// Every kind of force; whether there is one goes by the structure, how strong it is by the values.
JointOptions random_joint(Random& structure, Random& values) {
  JointOptions joint;
  joint.frame = {random_vector(values, 0.25),
                 {values.symmetric(0.5), values.symmetric(0.5), values.symmetric(0.5), values.uniform(0.5, 1)}};
  joint.axis = {values.symmetric(0.5), values.symmetric(0.5), values.uniform(0.3, 1)};
  joint.armature = values.uniform(0.05, 0.1);
  joint.damping = values.uniform(0.05, 0.3);
  if (structure.chance(0.3)) joint.friction = values.uniform(0.1, 0.5);
  if (structure.chance(0.3)) {  // narrow: the motion runs into them
    joint.limit = {-values.uniform(0.02, 0.1), values.uniform(0.02, 0.1), values.uniform(20, 60),
                   values.uniform(0.2, 1)};
  }
  joint.driven = structure.chance(0.4);
  if (joint.driven) {
    joint.drive.stiffness = values.uniform(5, 20);
    joint.drive.damping = values.uniform(0.5, 2);
    if (structure.chance(0.5)) joint.drive.effort_limit = values.uniform(1, 3);  // low: it saturates at times
  }
  if (!joint.driven) joint.spring = {.stiffness = 100 * joint.armature, .rest = joint.axis[0]};
  return joint;
}

}  // namespace

Model program_model(int joints, std::uint64_t structure_seed, std::uint64_t value_seed) {
  Random structure(structure_seed), values(value_seed + 1000003);
  ModelBuilder builder;
  builder.set_gravity({values.symmetric(2), values.symmetric(2), -9.81 + values.symmetric(1)});
  for (int i = 0; i < joints; ++i) builder.add_body("b" + std::to_string(i), random_body(values));
  for (int i = 0; i < joints; ++i) {
    const JointType type = structure.chance(0.3) ? JointType::prismatic : JointType::revolute;
    const int parent = structure.chance(0.7) ? i - 1 : structure.index(i + 1) - 1;
    builder.add_joint("j" + std::to_string(i), type, parent, i, random_joint(structure, values));
  }
  const int balls = structure.index(3);
  for (int i = 0; i < balls; ++i) {
    ShapeOptions ball;
    ball.filter.groups = 0;  // the reference knows no contact
    ball.scale = {values.uniform(0.05, 0.1), 0, 0};
    ball.frame.position = random_vector(values, 0.1);
    ball.density = values.uniform(200, 1000);
    builder.add_shape("s" + std::to_string(i), structure.index(joints), ball);
  }
  return builder.build();
}

std::string random_path(const Model& model, Random& random) {
  static const char* const paths[] = {"*",
                                      "bodies",
                                      "joints",
                                      "gravity",
                                      "bodies/*/mass",
                                      "bodies/*/com",
                                      "bodies/b0",
                                      "joints/j0",
                                      "joints/*/frame",
                                      "joints/*/axis",
                                      "joints/*/drive",
                                      "joints/*/limit",
                                      "joints/*/friction",
                                      "joints/*/damping"};
  constexpr int count = std::size(paths);
  const int k = random.index(2 * count);
  if (k < count) return paths[k];
  if (!model.shape_names.empty() && random.chance(0.3))
    return random.chance(0.5) ? "shapes" : "shapes/s0/geometry/scale";
  const auto all = select_fields(model, "*");
  return path_of(model, all[random.index(static_cast<int>(all.size()))]);
}

}  // namespace backdrive::test
