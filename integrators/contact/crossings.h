#pragma once
// Shapes that went through each other: found in the states of a rollout, after it. docs/contact.md, "What crosses is
// told".
#include <memory>
#include <span>

#include "models/model.h"

namespace backdrive::contact {

/// How a pair came to where its contact cannot hold it.
enum class CrossingKind {
  through,  ///< it went through, between two states or over several
  under,    ///< it lies under the ground by more than its size
  started,  ///< it began so deep that which side is its own cannot be said
};

struct Crossing {
  CrossingKind kind = CrossingKind::through;
  int step = 0;      ///< it was seen in the state after this one; of `started` in state 0
  int pair = -1;     ///< of the topology's contact_pairs
  double speed = 0;  ///< of the two against each other, at most, m/s
  double room = 0;   ///< how far the two may go into each other, m
};

struct Crossings {
  long long count = 0;  ///< a pair that goes through twice counts twice
  Crossing first;
};

/// Follows the shapes of one world from state to state. Two shapes that overlap tell by the normal of their deepest
/// point which way they are pushed apart; if it turns by more than 120° while they move by less than their inner radii
/// together, or are deeper in one another than half of that, each went through the middle of the other: what rolls
/// around something moves by more. Fast ones are looked at in as many places between two states as that takes, every
/// body on a straight line and turning at a constant rate.
/// O(pairs) a state, and contact points of the pairs that are near.
class CrossingFinder {
 public:
  /// As long as it lives, the model stays as it is.
  CrossingFinder(const Model& model, double time_step, int world = 0);
  ~CrossingFinder();
  CrossingFinder(const CrossingFinder&) = delete;
  CrossingFinder& operator=(const CrossingFinder&) = delete;

  /// Of all bodies in the next state: [body][12], position and rotation matrix, column by column.
  void see(std::span<const double> poses);
  const Crossings& found() const;

 private:
  struct Paths;
  std::unique_ptr<Paths> paths_;
};

}  // namespace backdrive::contact
