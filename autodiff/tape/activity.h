#pragma once
// Activity analysis: what outputs depend on, by structure alone. A gradient that is zero at some values is a gradient;
// one that cannot be anything else is a mistake of whoever asked for it, and is told so.
#include <cstdint>
#include <vector>

#include "engine/memory.h"
#include "models/parameter_list.h"

namespace backdrive {

/// Which components of the states in a buffer are read: none, some, or all.
class Components {
 public:
  static Components everything() {
    Components all;
    all.all_ = true;
    return all;
  }
  void add(int component);
  void add(const Components& other);
  bool any() const { return all_ || !some_.empty(); }
  bool has(int component) const;

 private:
  bool all_ = false;
  PoolVector<int> some_;
};

/// Activity of a model's links: which of their numbers a loss depends on.
struct LinkDependence {
  /// In trees that move: all that decides their motion counts. All links of a tree act on each other, and on those of
  /// trees that it may touch.
  PoolVector<bool> moved;
  /// On the way from the world to a body whose pose is read: where their joints sit counts.
  PoolVector<bool> posed;

  explicit LinkDependence(std::size_t links) : moved(links), posed(links) {}
  /// Of a link, or of any: −1.
  bool moves(int link) const;
  /// Why nothing depends on a link that does not count.
  const char* reason_unmoved() const;
  void move_tree_of(const Topology& topology, int link);
  void pose(const Topology& topology, int link);
};

/// Whether a link's tree may touch the world or another tree.
bool touches_beyond(const Topology& topology, int link);

/// Link that a parameter's item belongs to, −1: none in particular.
int link_of_item(const Model& model, const Field& field, int item);
/// Why a parameter of joints is none of this model's integrator, or of no use to it; or null.
const char* foreign_reason(const Model& model, const Field& field, int item);
/// Why no motion can depend on a parameter in this model, or null when it may.
const char* unused_reason(const Model& model, const Field& field, int item);

/// Why a loss cannot depend on a parameter, or null when it may.
const char* disconnected_reason(const Model& model, const LinkDependence& links, const Field& field, int item);

/// Buffers that are read, as far as is known while a tape is walked backwards in search of what its seeds reach.
class Reach {
 public:
  void read(std::uint64_t buffer, const Components& components);
  /// Null: nothing reads it.
  const Components* of(std::uint64_t buffer) const;

 private:
  PoolMap<std::uint64_t, Components> buffers_;
};

/// Components of the positions that poses are made of, and of the velocities beside them.
Components posed_positions(const Topology& topology, const LinkDependence& links);
Components posed_velocities(const Topology& topology, const LinkDependence& links);
/// Components of positions, velocities and controls that belong to trees that move.
Components moved_positions(const Topology& topology, const LinkDependence& links);
Components moved_velocities(const Topology& topology, const LinkDependence& links);
Components moved_controls(const Topology& topology, const LinkDependence& links);
/// And of State::ways().
Components moved_ways(const Topology& topology, const LinkDependence& links);

}  // namespace backdrive
