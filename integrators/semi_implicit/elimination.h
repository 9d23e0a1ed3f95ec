#pragma once
// The order in which the joints' rows are eliminated, and the blocks of the factor. Once per system, on the host.
//
// Two joints are coupled when they share a body. That graph is chordal for a tree of bodies, so that taking the joint
// with least fill first (here by greedy search) fills in nothing: elimination costs O(joints) for bounded branching.
// A loop fills in what it must.
#include <algorithm>

#include "engine/pool_containers.h"
#include "integrators/semi_implicit/system.h"

namespace backdrive::semi_implicit {

class Elimination {
 public:
  /// O(joints³ · neighbours²) at worst; some milliseconds for a hundred joints.
  Elimination(const Joint* joints, int joint_count) : position_(joint_count, -1) {
    PoolVector<PoolVector<bool>> coupled(joint_count, PoolVector<bool>(joint_count, false));
    for (int a = 0; a < joint_count; ++a) {
      for (int b = 0; b < a; ++b) coupled[a][b] = coupled[b][a] = share_body(joints[a], joints[b]);
    }
    PoolVector<PoolVector<int>> later;  // per position, joints
    for (int k = 0; k < joint_count; ++k) later.push_back(eliminate_next(coupled, k));
    lay_out(later);
  }

  EliminationView view() const {
    return {order_.data(),        first_column_.data(), columns_.data(),
            first_target_.data(), targets_.data(),      static_cast<int>(order_.size() + columns_.size())};
  }
  /// Calls visit(table, where `view` points to it) for each.
  template <class Visit>
  void each_table(EliminationView& view, Visit&& visit) const {
    visit(order_, view.order);
    visit(first_column_, view.first_column);
    visit(columns_, view.columns);
    visit(first_target_, view.first_target);
    visit(targets_, view.targets);
  }
  /// Blocks that couple two joints, in the factor.
  int coupling_blocks() const { return static_cast<int>(columns_.size()); }

 private:
  static bool share_body(const Joint& a, const Joint& b) {
    return a.child == b.child || a.child == b.parent || a.parent == b.child || (a.parent >= 0 && a.parent == b.parent);
  }

  /// Joints not yet eliminated that `a` is coupled with.
  PoolVector<int> neighbours(const PoolVector<PoolVector<bool>>& coupled, int a) const {
    PoolVector<int> found;
    for (int b = 0; b < static_cast<int>(coupled.size()); ++b) {
      if (b != a && position_[b] < 0 && coupled[a][b]) found.push_back(b);
    }
    return found;
  }

  /// Chooses the joint for position k; returns those that it is coupled with then.
  PoolVector<int> eliminate_next(PoolVector<PoolVector<bool>>& coupled, int k) {
    int best = -1, least = 0;
    for (int a = 0; a < static_cast<int>(coupled.size()); ++a) {
      if (position_[a] >= 0) continue;
      const PoolVector<int> around = neighbours(coupled, a);
      int fill = 0;
      for (const int b : around) {
        for (const int c : around) fill += c < b && !coupled[b][c];
      }
      // Of equal fill, the fewest neighbours; the last joint of those, so that chains go from the leaf to the root.
      const int cost = fill * static_cast<int>(coupled.size()) + static_cast<int>(around.size());
      if (best < 0 || cost <= least) best = a, least = cost;
    }
    const PoolVector<int> around = neighbours(coupled, best);
    for (const int b : around) {
      for (const int c : around) coupled[b][c] = true;
    }
    position_[best] = k;
    order_.push_back(best);
    return around;
  }

  void lay_out(const PoolVector<PoolVector<int>>& later) {
    const int count = static_cast<int>(order_.size());
    for (int k = 0; k < count; ++k) {
      first_column_.push_back(static_cast<int>(columns_.size()));
      PoolVector<int> own;
      for (const int joint : later[k]) own.push_back(position_[joint]);
      std::sort(own.begin(), own.end());
      columns_.insert(columns_.end(), own.begin(), own.end());
    }
    first_column_.push_back(static_cast<int>(columns_.size()));
    for (int k = 0; k < count; ++k) {
      first_target_.push_back(static_cast<int>(targets_.size()));
      for (int i = first_column_[k]; i < first_column_[k + 1]; ++i) {
        for (int j = i; j < first_column_[k + 1]; ++j) targets_.push_back(block(columns_[i], columns_[j]));
      }
    }
  }

  /// Number of the block of positions a ≤ b.
  int block(int a, int b) const {
    if (a == b) return a;
    int entry = first_column_[a];
    while (columns_[entry] != b) ++entry;
    return static_cast<int>(order_.size()) + entry;
  }

  PoolVector<int> position_, order_, first_column_, columns_, first_target_, targets_;
};

}  // namespace backdrive::semi_implicit
