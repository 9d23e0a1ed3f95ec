#pragma once
// Repeated parts of a scene: entries with the key `repeat`, written out.
#include <string_view>

#include "scenes/document.h"

namespace backdrive::scene {

/// The document with the copies of every entry that has a key `repeat`, where the schema has one, in place of it; the
/// copies know where the entry was written. What holds none is shared with the given tree. Adds mistakes: an expression
/// that is none, two copies of one name, more values than a document may have; what is wrong is told in the tree then.
/// O(values that come out).
NodePtr expand_repeats(const NodePtr& root, const Sources& sources, Mistakes& mistakes);

/// Whether a path of an override goes into an entry that is repeated, or its `repeat`.
bool is_about_repeats(std::string_view path);

}  // namespace backdrive::scene
