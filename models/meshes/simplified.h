#pragma once
// Meshes of fewer triangles, to be looked at.
#include "models/meshes/triangle_mesh.h"

namespace backdrive {

/// A mesh of at most `most_triangles` (at least 1) that looks alike, or the mesh itself where it has no more. Vertices
/// in one cell of a grid become one, where the planes of their triangles meet best (Lindstrom, "Out-of-core
/// simplification of large polygonal models", 2000); what has no area then is left out. Any triangles will do: they
/// need not bound a volume. Colours are left out. O(n log n).
TriangleMesh simplified(const TriangleMesh& mesh, std::size_t most_triangles);

}  // namespace backdrive
