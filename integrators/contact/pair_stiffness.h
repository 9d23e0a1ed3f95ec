#pragma once
// How stiff contacts are and how long they last: for what is printed about them.
#include <vector>

#include "models/model.h"

namespace backdrive::contact {

/// Of the pairs that may touch. An impact of what weighs `mass` lasts π √(mass/stiffness).
struct PairStiffness {
  double stiffness;  ///< of the pair, N/m
  double mass;       ///< of the tree that meets the world; of two trees m_i m_j/(m_i + m_j), kg

  double impact() const;  ///< s
};

/// [contact pair] of one world, in steps of `time_step` seconds. O(pairs + shapes² · links).
std::vector<PairStiffness> pair_stiffnesses(const Model& model, double time_step, int world = 0);

}  // namespace backdrive::contact
