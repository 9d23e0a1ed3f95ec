#pragma once
// The geometry of a model's contact shapes where kernels read it.
#include "engine/kernel_array.h"
#include "integrators/contact/geometry.h"
#include "models/model.h"

namespace backdrive {

/// Geometry per contact shape of a model, and how many points its pairs have. On the host good as long as the model.
/// T is float or double.
template <class T>
class GeometryTable {
 public:
  GeometryTable(const Model& model, Memory& memory);

  const contact::Geometry<T>* data() const { return table_.data(); }
  int points() const { return points_; }
  int most_points_of_pair() const { return most_; }

 private:
  PoolVector<contact::Geometry<T>> shapes_;
  KernelArray<contact::Geometry<T>> table_;
  int points_ = 0, most_ = 0;
};

}  // namespace backdrive
