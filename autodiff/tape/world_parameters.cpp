#include "autodiff/tape/world_parameters.h"

#include <algorithm>

#include "engine/buffer_kernels.h"
#include "engine/error.h"
#include "engine/launch.h"

namespace backdrive {
namespace {

/// Numbers of one kind whose rows begin at `first`.
template <class X>
ParameterNumbers<X> rows_of(X* first, int items, int components, int stride) {
  ParameterNumbers<X> numbers(components);
  numbers.first = first;
  numbers.items = items;
  numbers.world_stride = 1;
  numbers.stride = stride;
  return numbers;
}

}  // namespace

PlacedModel::PlacedModel(const Model& model, Memory& memory)
    : structure(structure_of(model)),
      parameters(view_of(model)),
      links_(model.topology.links, memory),
      shape_types_(model.shape_types, memory),
      shape_bodies_(model.shape_bodies, memory),
      shape_moments_(model.shape_moments, memory),
      joint_types_(model.joint_types, memory),
      contact_shapes_(model.topology.contact_shapes, memory) {
  structure.links = links_.data();
  structure.shape_types = shape_types_.data();
  structure.shape_bodies = shape_bodies_.data();
  structure.shape_moments = shape_moments_.data();
  structure.joint_types = joint_types_.data();
  structure.contact_shapes = contact_shapes_.data();
  if (!memory.backend()) return;
  PoolVector<double> flat(flat_size(model));
  write_flat(model, flat.data());
  numbers_ = KernelArray<double>(flat, memory);
  parameters = flat_view(model, numbers_.data());
}

WorldParameters::WorldParameters(const Model& model, std::vector<const Field*> own, int worlds, Memory& memory)
    : model_(model), placed_(model_, memory), view_(placed_.parameters) {
  if (model.parameter_worlds() != 1) {
    usage_error(
        "values for every world of a model whose parameters differ from world to world already; expected "
        "uniform ones");
  }
  PoolVector<double> rows;
  for (const Field* field : own) {
    const ParameterValues values = field->in(model_).values();
    own_.push_back({field, values.items, static_cast<int>(rows.size()), gradient_rows_});
    rows.insert(rows.end(), values.first, values.first + values.items * values.components);
    gradient_rows_ += values.items * field->tangents;
  }
  numbers_ = Buffer<double>::uninitialized(memory, static_cast<int>(rows.size()), worlds);
  const KernelArray<double> table(rows, memory);
  for_each_index(
      memory.backend(), 1, worlds,
      SpreadRows<double>{table.data(), numbers_.write_address(), numbers_.rows(), std::size_t(numbers_.stride())});
  for (const Own& o : own_) {
    o.field->of(view_) = rows_of(numbers_.address(o.value_row), o.items, o.field->components, numbers_.stride());
  }
}

const WorldParameters::Own& WorldParameters::own(const Field& field) const {
  const auto found = std::ranges::find(own_, &field, &Own::field);
  if (found == own_.end()) usage_error(std::string(field.leaf) + " has no values of its own in every world");
  return *found;
}

bool WorldParameters::has(const Field& field) const {
  return std::ranges::find(own_, &field, &Own::field) != own_.end();
}

int WorldParameters::value_row(const Field& field, int item) const {
  return own(field).value_row + item * field.components;
}

int WorldParameters::gradient_row(const Field& field, int item) const {
  return own(field).gradient_row + item * field.tangents;
}

GradientSlots WorldParameters::slots(Buffer<double>& gradient) const {
  GradientSlots slots;
  for (const Own& o : own_) {
    o.field->of(slots) = rows_of(gradient.write_address(o.gradient_row), o.items, o.field->tangents, gradient.stride());
  }
  return slots;
}

}  // namespace backdrive
