#pragma once
// Chains that are thrown on a floor, and what becomes of their energy. The tests hold a sample, and
// `contact_trust chains` prints a table of many.
#include <functional>
#include <vector>

#include "models/builder.h"

namespace backdrive::test {

/// Links of 14 cm and 0.16 kg, the first one's joint of a type of its own, that weigh nothing.
Model chain_of(
    int links, JointType first, JointType other,
    const std::function<void(ModelBuilder&)>& and_more = [](ModelBuilder&) {});

/// Such a chain that flies over a floor, of capsules, with its weight.
Model chain_on_floor(int links, JointType other);

/// Positions between two that are near, `part` of the way.
std::vector<double> between(const Topology& t, const std::vector<double>& a, const std::vector<double>& b, double part);

struct ChainThrow {
  JointType other = JointType::revolute;
  double rate = 240;  ///< steps/s
  unsigned seed = 0;
  bool forgets = false;  ///< what moved it in each step
};
/// The most energy over that at the start, of a chain of 20 within two seconds: of all, and until a joint turns by more
/// than a radian in a step. Infinite where a run stops.
struct ChainEnergy {
  double most = 0, while_followed = 0;
};
ChainEnergy energy_of(const ChainThrow& what);

}  // namespace backdrive::test
