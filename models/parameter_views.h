#pragma once
// A model as kernels see it, on the host or on a device: its structure, its parameters, and where the gradients of a
// batch of worlds go.
#include "models/model.h"

namespace backdrive {

/// What does not depend on any parameter's value. Pointers are of the host or of a device, whoever is to read them.
struct ModelStructure {
  const Link* links;  ///< [link_count]
  int link_count;
  const GeometryType* shape_types;            ///< [shape_count]
  const int* shape_bodies;                    ///< [shape_count], −1: world
  const SolidMoments<double>* shape_moments;  ///< [shape_count], of meshes at scale 1
  int shape_count;
  int body_count;
  const ContactShape* contact_shapes;  ///< [contact_shape_count]
  int contact_shape_count;
  Integrator integrator;
  const JointType* joint_types;  ///< [joint_count]
  int joint_count;
  int coupling_count = 0;
  int coupling_term_count = 0;
};

/// Good until the model is changed or goes. O(1).
ModelStructure structure_of(const Model& model);

/// Where the parameters lie; good until one of them is resized, spread, assigned to or gone. O(fields).
ParametersView view_of(const Parameters& parameters);
/// Likewise, to add gradients to: every parameter has slots, uniform ones the same for all worlds. O(fields).
GradientSlots slots_of(Parameters& parameters);

/// How many numbers all parameters have together: those that are uniform once. O(fields).
std::size_t flat_size(const Parameters& parameters);
/// The parameters in one block of flat_size numbers, each field's [world][item][component] after the last one's. The
/// block need not be the host's: it is not read. O(fields).
ParametersView flat_view(const Parameters& parameters, const double* block);
/// Writes the block that flat_view reads. O(numbers).
void write_flat(const Parameters& parameters, double* block);

/// The gradients of all worlds on their way from kernels to a Parameters, in one block of numbers: of what has a
/// gradient of its own in every world [world][item][component], as there; then of what all worlds share a row for each
/// number, [row][world], of which a sum in any order makes one number. Only fields that ask for a gradient have room.
class GradientBlock {
 public:
  /// What `model` asks for, to be added to a `gradient` of this shape in which what is not uniform has `worlds` worlds.
  /// Both live longer. O(fields).
  GradientBlock(const Model& model, const Parameters& gradient, int worlds);

  std::size_t numbers() const { return own_ + static_cast<std::size_t>(rows_) * stride_; }
  /// Where the first row begins; rows are stride() apart.
  std::size_t first_row() const { return own_; }
  int rows() const { return rows_; }
  int stride() const { return stride_; }

  /// Of a block that holds zeros, on the host or on a device. O(fields).
  GradientSlots slots(double* block) const;
  /// Adds what is asked for to `gradient`: from the block (of which this reads the part before the rows) and from the
  /// sums of its rows. O(numbers).
  void add_to(Parameters& gradient, const double* block, const double* sums) const;

 private:
  /// Calls visit(field, whether it is uniform, numbers of one world) for each field that has room.
  template <class Visit>
  void each_field(Visit&& visit) const;

  const Model* model_;
  const Parameters* shape_;
  int worlds_;
  int stride_;
  int rows_ = 0;
  std::size_t own_ = 0;
};

}  // namespace backdrive
