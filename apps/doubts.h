#pragma once
#include <string>
#include <vector>

#include "scenes/scene.h"

namespace backdrive::app {

/// What of a valid scene is hardly meant, a sentence each, with its path: loops that are open at the start, angles of
/// more than a turn without a unit, starts beyond limits, shapes that begin in one another, contacts that are too short
/// for their gradients, quaternions that look like (w, x, y, z). O(the document + a step).
std::vector<std::string> doubts(const Scene& scene);

/// How stiff the contacts are and how many steps an impact lasts; empty where nothing may touch. O(pairs + shapes²).
std::string contact_words(const Problem& problem);

/// Contacts that last fewer steps than their gradients need, with the numbers that would do. O(pairs + shapes²).
std::vector<std::string> short_contacts(const Problem& problem);

}  // namespace backdrive::app
