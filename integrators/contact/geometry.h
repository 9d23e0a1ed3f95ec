#pragma once
// What all worlds share of shapes that touch, as kernels of every instruction set read it.
#include "models/model.h"

namespace backdrive::contact {

using ShapeKind = GeometryType;

constexpr bool is_ground(ShapeKind k) {
  return k == ShapeKind::plane || k == ShapeKind::height_field;
}

/// A convex polyhedron, the same in all worlds. Counter-clockwise triangles seen from outside; the edges without those
/// between coplanar triangles.
template <class T>
struct MeshView {
  const T* vertices = nullptr;  ///< [vertex_count][3]
  const int* faces = nullptr;   ///< [face_count][3]
  const int* edges = nullptr;   ///< [edge_count][4]: its ends, and of each of its two triangles the third vertex
  int vertex_count = 0, face_count = 0, edge_count = 0;
};

/// Heights over a grid that spans [-1, 1]² before scaling; two triangles to a cell, split from its lowest to its
/// highest corner in (x, y). Past the border the outermost triangles go on.
template <class T>
struct HeightFieldView {
  const T* heights;  ///< [ny][nx]
  int nx, ny;        ///< at least 2
};

/// `mesh` is also set for a box that meets a mesh or cylinder (box_mesh()).
template <class T>
struct Geometry {
  ShapeKind kind;
  MeshView<T> mesh;
  HeightFieldView<T> field;
  T half[3] = {};  ///< of a mesh before scaling: largest |x|, |y|, |z| of its vertices
};

}  // namespace backdrive::contact
