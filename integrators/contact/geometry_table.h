#pragma once
// The geometry of a model's contact shapes where kernels read it.
#include "engine/kernel_array.h"
#include "integrators/contact/geometry.h"
#include "models/model.h"

namespace backdrive {

/// Geometry per contact shape of a model, and how many points its pairs have. On the host good as long as the model.
/// T is float or double. O(vertices of all meshes + heights of all height fields).
template <class T>
class GeometryTable {
 public:
  GeometryTable(const Model& model, Memory& memory);

  const contact::Geometry<T>* data() const { return table_.data(); }
  int points() const { return points_; }
  int most_points_of_pair() const { return most_; }

 private:
  /// Meshes and height fields as one list of numbers and one of indices.
  void add_meshes(const Model& model, Memory& memory);
  void count_points(const Model& model);

  PoolVector<contact::MeshView<T>> meshes_;
  PoolVector<contact::HeightFieldView<T>> fields_;
  PoolVector<contact::Geometry<T>> shapes_;
  PoolVector<T> numbers_;
  PoolVector<int> indices_;
  KernelArray<T> placed_numbers_;
  KernelArray<int> placed_indices_;
  KernelArray<contact::Geometry<T>> table_;
  int points_ = 0, most_ = 0;
};

}  // namespace backdrive
