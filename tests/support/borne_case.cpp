#include "tests/support/borne_case.h"

#include "models/builder.h"
#include "tests/support/models.h"

namespace backdrive::test {

Model borne_model(Integrator integrator) {
  ModelBuilder builder;
  builder.set_integrator(integrator);
  builder.set_gravity({0.4, -0.7, -9.3});
  const auto soft = [](GeometryType type, double radius) {
    ShapeOptions shape{.type = type, .scale = {radius, 0, 0}};
    shape.stiffness = 300, shape.width = 0.3, shape.dissipation = 0.1, shape.creep = 0.5;
    return shape;
  };
  const auto add = [&](const char* name, BodyIndex parent, JointType type, JointOptions options = {}) {
    BodyOptions own{1.5, {0.1, -0.05, 0.02}, {0.3, 0.5, 0.6, 0.02, -0.03, 0.01}};
    own.gravity_compensation = type == JointType::free ? 0 : 0.3;
    const BodyIndex body = builder.add_body(name, own);
    builder.add_joint(name, type, parent, body, options);
    builder.add_shape(name, body, soft(GeometryType::sphere, 0.3));
    return body;
  };
  add("one", ModelBuilder::world, JointType::free, {.frame = {.position = {0, 0, 0.25}}});
  const BodyIndex other = add("other", ModelBuilder::world, JointType::free, {.frame = {.position = {0.6, 0.2, 0.25}}});
  add("arm", other, JointType::revolute, {.frame = {.position = {0.2, 0.1, -0.1}}});
  builder.add_shape("floor", ModelBuilder::world, soft(GeometryType::plane, 0));
  Model model = builder.build();
  model.joints.attachment.stiffness.at(2) = 2e4, model.joints.attachment.damping.at(2) = 30;
  model.joints.attachment.angular_stiffness.at(2) = 2e3, model.joints.attachment.angular_damping.at(2) = 3;
  require_all(model);
  return model;
}

GradientCase borne_case() {
  return make_case(borne_model(Integrator::featherstone), 3, 1. / 240, 4, 5);
}

}  // namespace backdrive::test
