#pragma once
// The geometry of a model's contact shapes where kernels read it.
#include "engine/kernel_array.h"
#include "integrators/contact/pairs.h"
#include "models/model.h"

namespace backdrive {

/// Geometry per contact shape of a model, and how many points its pairs have. On the host good as long as the model.
template <class T>
class GeometryTable {
 public:
  GeometryTable(const Model& model, Memory& memory) {
    for (const ContactShape& shape : model.topology.contact_shapes) shapes_.push_back({shape.type, {}, {}});
    for (const ContactPair& pair : model.topology.contact_pairs) {
      const int count = contact::contact_count(shapes_[pair.a], shapes_[pair.b]);
      points_ += count;
      most_ = std::max(most_, count);
    }
    table_ = KernelArray<contact::Geometry<T>>(shapes_, memory);
  }
  const contact::Geometry<T>* data() const { return table_.data(); }
  int points() const { return points_; }
  int most_points_of_pair() const { return most_; }

 private:
  PoolVector<contact::Geometry<T>> shapes_;
  KernelArray<contact::Geometry<T>> table_;
  int points_ = 0, most_ = 0;
};

}  // namespace backdrive
