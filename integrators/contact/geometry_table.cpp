#include "integrators/contact/geometry_table.h"

#include <algorithm>

#include "integrators/contact/pairs.h"

namespace backdrive {

template <class T>
GeometryTable<T>::GeometryTable(const Model& model, Memory& memory) {
  for (const ContactShape& shape : model.topology.contact_shapes) shapes_.push_back({shape.type, {}, {}});
  for (const ContactPair& pair : model.topology.contact_pairs) {
    const int count = contact::contact_count(shapes_[pair.a], shapes_[pair.b]);
    points_ += count;
    most_ = std::max(most_, count);
  }
  table_ = KernelArray<contact::Geometry<T>>(shapes_, memory);
}

template class GeometryTable<float>;
template class GeometryTable<double>;

}  // namespace backdrive
