#pragma once
#include "engine/pool_containers.h"

namespace backdrive {

/// How a world fared. A world that becomes non-finite stops: its state stays what it was before that step, the others
/// go on.
struct WorldStatus {
  int stopped_step = -1;  ///< step whose result was not finite; −1: none
  int joint = -1;         ///< joint (index in the model) whose acceleration or state was not finite

  constexpr bool stopped() const { return stopped_step >= 0; }
};

/// One per world.
using WorldStatuses = PoolVector<WorldStatus>;

}  // namespace backdrive
