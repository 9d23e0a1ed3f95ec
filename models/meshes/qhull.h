#pragma once
// The one place that talks to qhull.
#include <span>
#include <string>
#include <vector>

#include "engine/spatial.h"

namespace backdrive {

/// A face's vertices as indices of the points, counterclockwise seen from outside.
using Polygon = std::vector<int>;

struct HullPolygons {
  std::vector<Polygon> faces;  ///< in no particular order; empty when qhull gives no sound hull
  std::string trouble;         ///< then: what it says
};

/// Hull of points about the origin whose largest coordinate is about 1. Neighbouring faces become one where they are
/// flat to `coplanar`. Sound means: polygons that together run along every edge once in each direction, each vertex in
/// three of them or more, and Euler's V − E + F = 2.
HullPolygons hull_polygons(std::span<const Vec3<double>> points, double coplanar);

}  // namespace backdrive
