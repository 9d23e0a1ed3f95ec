#pragma once
// Which shapes of a model may touch.
#include "models/model.h"

namespace backdrive {

/// Pairs of one model that may touch; a million take 8 MB and every step looks at all of them.
constexpr int kMostContactPairs = 1'000'000;

/// Whether there are contact points between two types, in either order: of all but planes and height fields, which do
/// not touch each other.
bool can_touch(GeometryType a, GeometryType b);

/// Sets topology.contact_shapes and topology.contact_pairs: all pairs of shapes whose types and filters let them touch
/// and that move against each other, in the order of the model's shapes. Bodies joined by fixed joints count as one,
/// also with the world. Left out are pairs of bodies that a joint connects (the world is touched by what hangs on it;
/// of bodies fixed to the world the one is not that the joint names as its parent) and those of excluded_contacts and
/// excluded_shapes; included_contacts are there in any case. Throws ModelError: an included pair that cannot touch, too
/// many pairs. O(shapes² + links), but of shapes that stand beside others of the same rigid body.
void find_contact_pairs(Model& model);

}  // namespace backdrive
