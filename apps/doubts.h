#pragma once
#include <string>
#include <vector>

#include "scenes/scene.h"

namespace backdrive::app {

/// What of a valid scene is hardly meant, a sentence each, with its path: loops that are open at the start, angles of
/// more than a turn without a unit, starts beyond limits, shapes that begin in one another, quaternions that look like
/// (w, x, y, z). O(the document + a step).
std::vector<std::string> doubts(const Scene& scene);

}  // namespace backdrive::app
