#pragma once
// Models in maximal coordinates whose bodies touch, and the identity ⟨w, Jv⟩ = ⟨Jᵀw, v⟩ of each block of their inputs.
#include <algorithm>

#include "models/builder.h"
#include "tests/autodiff/semi_implicit_identity.h"
#include "tests/support/models.h"

namespace backdrive::test {

/// Trees with every type of joint and every force, whose shapes lie softly in each other and in the floor; every other
/// one has loops.
inline Model touching_model(std::uint64_t seed, bool slides = false) {
  TreeOptions options;
  options.links = 9;
  options.forces = options.shapes = options.rotations = options.contact = true;
  options.slides = slides;
  options.integrator = Integrator::semi_implicit;
  options.loops = seed % 2 ? 2 : 0;
  options.couplings = static_cast<int>(seed % 4);
  Model model = random_tree(seed, options);
  for (std::size_t j = 0; j < model.joint_names.size(); ++j) {
    const int joint = static_cast<int>(j);
    if (model.joint_loops[j]) continue;
    model.joints.attachment.stiffness.at(joint) = 2e4, model.joints.attachment.damping.at(joint) = 30;
    model.joints.attachment.angular_stiffness.at(joint) = 2e3, model.joints.attachment.angular_damping.at(joint) = 3;
  }
  require_all(model);
  return model;
}

/// Two bodies that no joint holds, of unequal moments, that lie softly in each other and in the floor.
inline Model loose_model() {
  ModelBuilder builder;
  builder.set_integrator(Integrator::semi_implicit);
  const auto soft = [](GeometryType type) {
    ShapeOptions shape{.type = type, .scale = {2, 0, 0}};
    shape.stiffness = 100, shape.width = 0.3, shape.dissipation = 0.1, shape.creep = 0.5;
    return shape;
  };
  for (const char* const name : {"one", "other"}) {
    const BodyIndex body = builder.add_body(name, {1.5, {0.1, -0.05, 0.02}, {0.3, 0.5, 0.6, 0.02, -0.03, 0.01}});
    builder.add_joint(name, JointType::free, ModelBuilder::world, body);
    builder.add_shape(name, body, soft(GeometryType::sphere));
  }
  builder.add_shape("floor", ModelBuilder::world, soft(GeometryType::plane));
  Model model = builder.build();
  require_all(model);
  return model;
}

/// The part of a direction that is of one block.
inline InputDirection of_block(const Model& model, const InputDirection& d, const std::string& block) {
  InputDirection part{std::vector<double>(d.q.size()), std::vector<double>(d.qd.size()),
                      std::vector<double>(d.control.size()), zero_parameters(model)};
  if (block == "q") part.q = d.q;
  if (block == "qd") part.qd = d.qd;
  if (block == "control") part.control = d.control;
  for (const Field& field : fields()) {
    if (block_name(field) == block) field.of(part.parameters) = field.in(d.parameters);
  }
  return part;
}

/// ⟨w, Jv⟩ by duals of each of the `blocks`.
inline BlockSums blocks_along_duals(const Model& model, const InputDirection& d, const OutputWeights& w,
                                    std::uint64_t seed, const BlockSums& blocks) {
  BlockSums result;
  for (const auto& [block, sum] : blocks) {
    result.emplace_back(block, along_duals(model, of_block(model, d, block), w, seed));
  }
  return result;
}

/// Error of each block's product, relative to the largest product.
inline BlockSums block_errors(const BlockSums& forward, const BlockSums& backward) {
  double scale = 1;
  for (const auto& [block, sum] : backward) scale = std::max(scale, std::abs(sum));
  BlockSums errors;
  for (std::size_t k = 0; k < backward.size(); ++k) {
    errors.emplace_back(backward[k].first, std::abs(backward[k].second - forward.at(k).second) / scale);
  }
  return errors;
}

}  // namespace backdrive::test
