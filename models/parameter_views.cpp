#include "models/parameter_views.h"

#include <algorithm>

#include "engine/memory.h"
#include "models/parameter_list.h"

namespace backdrive {
namespace {

std::size_t numbers_of(const Parameter& parameter) {
  return static_cast<std::size_t>(parameter.items()) * parameter.components() * parameter.worlds();
}

}  // namespace

ModelStructure structure_of(const Model& model) {
  return {model.topology.links.data(),
          static_cast<int>(model.topology.links.size()),
          model.shape_types.data(),
          model.shape_bodies.data(),
          model.shape_moments.data(),
          static_cast<int>(model.shape_bodies.size()),
          static_cast<int>(model.body_names.size()),
          model.topology.contact_shapes.data(),
          static_cast<int>(model.topology.contact_shapes.size()),
          model.topology.integrator,
          model.joint_types.data(),
          static_cast<int>(model.joint_types.size()),
          static_cast<int>(model.topology.couplings.size()),
          static_cast<int>(model.topology.coupling_terms.size())};
}

ParametersView view_of(const Parameters& parameters) {
  ParametersView view;
  for (const Field& field : fields()) field.of(view) = field.in(parameters).values();
  return view;
}

GradientSlots slots_of(Parameters& parameters) {
  GradientSlots slots;
  for (const Field& field : fields()) field.of(slots) = field.of(parameters).slots();
  return slots;
}

std::size_t flat_size(const Parameters& parameters) {
  std::size_t size = 0;
  for (const Field& field : fields()) size += numbers_of(field.in(parameters));
  return size;
}

ParametersView flat_view(const Parameters& parameters, const double* block) {
  ParametersView view = view_of(parameters);
  for (const Field& field : fields()) {
    field.of(view).first = block;
    block += numbers_of(field.in(parameters));
  }
  return view;
}

void write_flat(const Parameters& parameters, double* block) {
  for (const Field& field : fields()) {
    const std::size_t count = numbers_of(field.in(parameters));
    std::copy_n(field.in(parameters).values().first, count, block);
    block += count;
  }
}

template <class Visit>
void GradientBlock::each_field(Visit&& visit) const {
  for (const Field& field : fields()) {
    const Parameter& shape = field.in(*shape_);
    if (field.in(*model_).any_requires_grad()) visit(field, shape.uniform(), shape.items() * shape.components());
  }
}

GradientBlock::GradientBlock(const Model& model, const Parameters& gradient, int worlds)
    : model_(&model), shape_(&gradient), worlds_(worlds), stride_(worlds == 1 ? 1 : row_stride<double>(worlds)) {
  each_field([&](const Field&, bool uniform, int numbers) {
    if (uniform) {
      rows_ += numbers;
    } else {
      own_ += static_cast<std::size_t>(numbers) * worlds_;
    }
  });
}

GradientSlots GradientBlock::slots(double* block) const {
  GradientSlots result;
  double* row = block + first_row();
  each_field([&](const Field& field, bool uniform, int numbers) {
    ParameterSlots& slots = field.of(result);
    slots.items = field.in(*shape_).items();
    slots.components = field.tangents;
    slots.first = uniform ? row : block;
    slots.world_stride = uniform ? 1 : numbers;
    slots.stride = uniform ? stride_ : 1;
    if (uniform) {
      row += static_cast<std::size_t>(numbers) * stride_;
    } else {
      block += static_cast<std::size_t>(numbers) * worlds_;
    }
  });
  return result;
}

void GradientBlock::add_to(Parameters& gradient, const double* block, const double* sums) const {
  each_field([&](const Field& field, bool uniform, int numbers) {
    const Parameter& asked = field.in(*model_);
    Parameter& to = field.of(gradient);
    const int worlds = uniform ? 1 : worlds_;
    const double*& from = uniform ? sums : block;
    for (int w = 0; w < worlds; ++w, from += numbers) {
      for (int k = 0; k < numbers; ++k) {
        const int item = k / field.tangents;
        if (asked.requires_grad(item)) to.at(item, k % field.tangents, w) += from[k];
      }
    }
  });
}

}  // namespace backdrive
