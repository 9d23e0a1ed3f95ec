#include "integrators/contact/geometry_table.h"

#include <algorithm>
#include <cmath>

#include "integrators/contact/pairs.h"
#include "models/meshes/convex_mesh.h"
#include "models/meshes/height_field.h"

namespace backdrive {
namespace {

using contact::HeightFieldView;
using contact::MeshView;

/// Appends numbers and says where they begin.
template <class X, class Items>
std::size_t append(PoolVector<X>& to, const Items& items) {
  const std::size_t first = to.size();
  to.insert(to.end(), items.begin(), items.end());
  return first;
}

/// Of a face, the vertex furthest from an edge of it.
int third_vertex(const ConvexMesh& mesh, const ConvexMesh::Face& face, const ConvexMesh::Edge& edge) {
  const Vec3<double> from = mesh.vertices[edge.from], along = mesh.vertices[edge.to] - from;
  int furthest = -1;
  double distance = -1;
  for (const int v : mesh.vertices_of(face)) {
    const Vec3<double> lever = cross(along, mesh.vertices[v] - from);
    if (dot(lever, lever) <= distance) continue;
    distance = dot(lever, lever);
    furthest = v;
  }
  return furthest;
}

/// MeshView::edges.
std::vector<int> edges_of(const ConvexMesh& mesh) {
  std::vector<int> edges;
  for (const ConvexMesh::Edge& e : mesh.edges) {
    for (const int v :
         {e.from, e.to, third_vertex(mesh, mesh.faces[e.left], e), third_vertex(mesh, mesh.faces[e.right], e)}) {
      edges.push_back(v);
    }
  }
  return edges;
}

template <class T>
MeshView<T> view_of_box() {
  static constexpr contact::BoxMesh<T> box = contact::box_mesh<T>();
  return box.view();
}

}  // namespace

template <class T>
void GeometryTable<T>::add_meshes(const Model& model, Memory& memory) {
  struct Offsets {
    std::size_t numbers, faces, edges;
  };
  PoolVector<Offsets> of_meshes, of_fields;
  for (const auto& mesh : model.meshes) {
    std::vector<T> vertices;
    for (const Vec3<double>& v : mesh->vertices) vertices.insert(vertices.end(), {T(v.x), T(v.y), T(v.z)});
    std::vector<int> faces;
    for (const auto& triangle : triangles_of(*mesh).triangles) {
      faces.insert(faces.end(), triangle.begin(), triangle.end());
    }
    const std::vector<int> edges = edges_of(*mesh);
    of_meshes.push_back({append(numbers_, vertices), append(indices_, faces), append(indices_, edges)});
    MeshView<T>& view = meshes_.emplace_back();
    view.vertex_count = static_cast<int>(vertices.size() / 3);
    view.face_count = static_cast<int>(faces.size() / 3);
    view.edge_count = static_cast<int>(edges.size() / 4);
  }
  for (const auto& field : model.height_fields) {
    std::vector<T> heights;
    for (const double h : field->heights) heights.push_back(static_cast<T>(h));
    of_fields.push_back({append(numbers_, heights), 0, 0});
    fields_.push_back({nullptr, field->columns, field->rows});
  }
  // The box of those that meet meshes and cylinders, behind the others.
  const MeshView<T> box = view_of_box<T>();
  of_meshes.push_back({append(numbers_, std::span(box.vertices, 3 * box.vertex_count)),
                       append(indices_, std::span(box.faces, 3 * box.face_count)),
                       append(indices_, std::span(box.edges, 4 * box.edge_count))});
  meshes_.push_back(box);
  placed_numbers_ = KernelArray<T>(numbers_, memory);
  placed_indices_ = KernelArray<int>(indices_, memory);
  for (std::size_t k = 0; k < meshes_.size(); ++k) {
    meshes_[k].vertices = placed_numbers_.data() + of_meshes[k].numbers;
    meshes_[k].faces = placed_indices_.data() + of_meshes[k].faces;
    meshes_[k].edges = placed_indices_.data() + of_meshes[k].edges;
  }
  for (std::size_t k = 0; k < fields_.size(); ++k) {
    fields_[k].heights = placed_numbers_.data() + of_fields[k].numbers;
  }
}

template <class T>
void GeometryTable<T>::count_points(const Model& model) {
  for (const ContactPair& pair : model.topology.contact_pairs) {
    const int count = contact::contact_count(shapes_[pair.a], shapes_[pair.b]);
    points_ += count;
    most_ = std::max(most_, count);
  }
}

template <class T>
GeometryTable<T>::GeometryTable(const Model& model, Memory& memory) {
  if (model.topology.contact_pairs.empty()) return;
  add_meshes(model, memory);
  for (const ContactShape& shape : model.topology.contact_shapes) {
    contact::Geometry<T> geometry{shape.type, {}, {}};
    if (shape.type == GeometryType::mesh) {
      geometry.mesh = meshes_[shape.mesh];
      for (const Vec3<double>& v : model.meshes[shape.mesh]->vertices) {
        const double at[3] = {v.x, v.y, v.z};
        for (int k = 0; k < 3; ++k) geometry.half[k] = std::max(geometry.half[k], static_cast<T>(std::abs(at[k])));
      }
    }
    if (shape.type == GeometryType::box) geometry.mesh = meshes_.back();
    if (shape.type == GeometryType::height_field) geometry.field = fields_[shape.mesh];
    shapes_.push_back(geometry);
  }
  count_points(model);
  table_ = KernelArray<contact::Geometry<T>>(shapes_, memory);
}

template class GeometryTable<float>;
template class GeometryTable<double>;

}  // namespace backdrive
