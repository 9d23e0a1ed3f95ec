#pragma once
// Parameters with values of their own in every world, where the worlds are computed: what kernels write before a
// rollout reads it, with no copy on the host. And what kernels that turn parameters into constants read of any model.
#include <cstdint>
#include <vector>

#include "engine/kernel_array.h"
#include "engine/memory.h"
#include "models/parameter_list.h"
#include "models/parameter_views.h"

namespace backdrive {

/// A model where kernels read it that work on `memory`: on the host the very same, which has to live as long and stay
/// as it is; on a device a copy.
struct PlacedModel {
  PlacedModel(const Model& model, Memory& memory);

  ModelStructure structure;
  ParametersView parameters;

 private:
  KernelArray<Link> links_;
  KernelArray<GeometryType> shape_types_;
  KernelArray<int> shape_bodies_;
  KernelArray<SolidMoments<double>> shape_moments_;
  KernelArray<JointType> joint_types_;
  KernelArray<ContactShape> contact_shapes_;
  KernelArray<double> numbers_;
};

/// All parameters of a model in a batch of worlds: some fields have values of their own in every world, [number][world]
/// in one buffer; the others are as the model has them. A rollout that is given one (RolloutOptions::parameters) takes
/// its values in place of the model's, and gives the gradients of those fields in such a buffer too.
class WorldParameters {
 public:
  /// In every world the values of the model, whose parameters have to be uniform. Keeps a copy of it.
  WorldParameters(const Model& model, std::vector<const Field*> own, int worlds, Memory& memory);
  WorldParameters(const WorldParameters&) = delete;
  WorldParameters& operator=(const WorldParameters&) = delete;

  int worlds() const { return numbers_.worlds(); }
  DeviceBackend* backend() const { return numbers_.backend(); }
  bool has(const Field& field) const;
  const ModelStructure& structure() const { return placed_.structure; }
  /// To read, by whoever works where the numbers are.
  const ParametersView& view() const { return view_; }

  /// The values, to be written by kernels. Whoever recorded a rollout with them leaves them alone until its backward.
  Buffer<double>& numbers() { return numbers_; }
  const Buffer<double>& numbers() const { return numbers_; }
  /// Rows of the first component of an item of a field that has values of its own: in numbers(), and in a gradient.
  int value_row(const Field& field, int item) const;
  int gradient_row(const Field& field, int item) const;

  /// Zeros for the gradient of every world: `tangents` rows for each item of the fields.
  Buffer<double> gradient(Memory& memory) const { return Buffer<double>(memory, gradient_rows_, worlds()); }
  /// Where kernels add to such a gradient. Other fields have no slots.
  GradientSlots slots(Buffer<double>& gradient) const;

 private:
  struct Own {
    const Field* field;
    int items, value_row, gradient_row;
  };
  const Own& own(const Field& field) const;

  Model model_;
  PlacedModel placed_;
  std::vector<Own> own_;
  int gradient_rows_ = 0;
  Buffer<double> numbers_;
  ParametersView view_;
};

}  // namespace backdrive
