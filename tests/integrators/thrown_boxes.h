#pragma once
// Boxes on joints of any type and size, thrown: what single precision makes of them is held against double's.
#include <string>

#include "autodiff/tape/buffers.h"
#include "models/builder.h"
#include "tests/support/random.h"

namespace backdrive::test {

/// A box that flies and carries two, one on the other, all of some size and 1,000 kg/m³, with or without a floor.
struct ThrownBoxes {
  static constexpr int count = 3;
  static constexpr JointType types[] = {JointType::revolute, JointType::prismatic, JointType::ball,
                                        JointType::universal, JointType::fixed};  ///< of joints between them
  Integrator integrator;
  JointType first, second;
  double size;  ///< m
  bool floor = false;

  std::string name() const {
    return std::string(to_string(first)) + " and " + to_string(second) + " of " + std::to_string(size) + " m";
  }

  Model model() const {
    Random random(17);
    const auto within = [&](double bound) -> Numbers3 {
      return {random.symmetric(bound), random.symmetric(bound), random.symmetric(bound)};
    };
    ModelBuilder builder;
    builder.set_integrator(integrator);
    builder.set_gravity({0, 0, -9.81});
    BodyIndex carrier = ModelBuilder::world;
    for (const JointType type : {JointType::free, first, second}) {
      const bool root = carrier == ModelBuilder::world;
      const std::string body_name = "body" + std::to_string(carrier + 1);
      const BodyIndex body = builder.add_body(body_name, {});
      JointOptions joint;
      if (!root) joint.frame.position = within(1.2 * size);
      joint.axis = Numbers3{0.6, 0, 0.8};
      builder.add_joint(body_name, type, carrier, body, joint);
      ShapeOptions box{.type = GeometryType::box, .density = 1000};
      box.scale = {random.uniform(0.3, 1) * size, random.uniform(0.3, 1) * size, random.uniform(0.3, 1) * size};
      if (!root) box.frame.position = within(1.2 * size);
      builder.add_shape(body_name, body, box);
      carrier = body;
    }
    builder.exclude_contacts(0, 2);
    if (floor) builder.add_shape("floor", ModelBuilder::world, {.type = GeometryType::plane});
    return builder.build();
  }

  /// At rest in the origin but for rates of up to `turning`, rad/s, and `sliding`, m/s: the same numbers in every type,
  /// exact in float32.
  template <class T>
  State<T> throws(const Model& model, int worlds, double turning, double sliding) const {
    const Topology& t = model.topology;
    State<T> state(model, worlds);
    Random random(7);
    for (int w = 0; w < worlds; ++w) {
      for (int j = 0; j < count; ++j) {
        const JointType type = model.joint_types[j];
        for (int k = 0; k < joint_size(type).nv; ++k) {
          const bool slides = type == JointType::prismatic || (type == JointType::free && k >= 3);
          const double rate = random.symmetric(slides ? sliding : turning);
          state.qd.set(t.links[model.link_of_joint(j)].v + k, w, static_cast<T>(static_cast<float>(rate)));
        }
      }
    }
    return state;
  }
};

}  // namespace backdrive::test
