#pragma once
// How far open the loops of a state are.
#include <vector>

#include "autodiff/tape/buffers.h"

namespace backdrive {

/// What a joint that closes a loop holds together and finds apart.
struct LoopGap {
  int joint;
  double distance;  ///< m, along what the joint does not let slide
  double angle;     ///< rad, about what it does not let turn; for small ones
};

/// One per joint that closes a loop, of one world's bodies as place_bodies() puts them. On the host; O(loops).
std::vector<LoopGap> loop_gaps(const Model& model, const State<double>& state, int world = 0);

}  // namespace backdrive
