#pragma once
// Which shapes of a model may touch.
#include "models/model.h"

namespace backdrive {

/// Whether there are contact points between two types, in either order.
bool can_touch(GeometryType a, GeometryType b);

/// Sets topology.contact_shapes and topology.contact_pairs: all pairs of shapes on different bodies whose types and
/// filters let them touch, but for bodies that a joint connects (bodies joined by fixed joints count as one; the world
/// touches what hangs on it, unless that cannot move). O(shapes²).
void find_contact_pairs(Model& model);

}  // namespace backdrive
