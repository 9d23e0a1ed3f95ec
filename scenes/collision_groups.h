#pragma once
// Names of collision groups.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "scenes/reader.h"

namespace backdrive::scene {

/// Names of collision groups as bits of a CollisionFilter, in the order in which shapes name them.
class CollisionGroups {
 public:
  /// Learns the groups that a shape is in.
  void learn(const View& collision) {
    if (collision.kind() == NodeKind::scalar) return;
    for (const View& group : collision["groups"].items()) {
      if (std::ranges::find(names_, group.text()) != names_.end()) continue;
      if (names_.size() == 32) group.refuse("one of the 32 groups of the scene so far; there may not be more");
      names_.push_back(group.text());
    }
  }

  /// Of a shape, when all groups are known.
  CollisionFilter filter(const View& collision, const Mistakes& mistakes) const {
    if (collision.kind() == NodeKind::scalar) return {0, 0};
    const View meets = collision["meets"];
    return {bits(collision["groups"], mistakes), meets ? bits(meets, mistakes) : ~0u};
  }

 private:
  std::uint32_t bits(const View& groups, const Mistakes& mistakes) const {
    std::uint32_t result = 0;
    for (const View& group : groups.items()) {
      const auto found = std::ranges::find(names_, group.text());
      if (found == names_.end()) refuse_name(group, "a group that a shape is in", "shapes", names_, mistakes);
      result |= 1u << (found - names_.begin());
    }
    return result;
  }

  std::vector<std::string> names_{"default"};
};

}  // namespace backdrive::scene
