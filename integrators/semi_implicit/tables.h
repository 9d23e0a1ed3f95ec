#pragma once
// A model as these kernels read it, beside its numbers. Made once per recording, on the host.
#include "engine/kernel_array.h"
#include "integrators/semi_implicit/elimination.h"

namespace backdrive::semi_implicit {

/// Where a joint's numbers stand: first rows of its position and velocity, where its efforts stand too, and of the two
/// targets of its drive (−1: none).
struct JointRows {
  int q, v, target;
};

struct TablesView {
  const Joint* joints;    ///< [joint_count]
  const JointRows* rows;  ///< [joint_count]
  int joint_count;
  const int* tree;  ///< [body_count]: the joints that place the bodies, parents first
  int body_count;
  const int* loops;  ///< [loop_count]: the other joints
  int loop_count;
  EliminationView elimination;
  int joint_nq, joint_nv;  ///< rows of the joints in a state, before those of the bodies
};

class Tables {
 public:
  /// O(links) and that of Elimination.
  explicit Tables(const Model& model)
      : joints_(joints_of(model)),
        elimination_(joints_.data(), static_cast<int>(joints_.size())),
        joint_nq_(model.topology.joint_nq),
        joint_nv_(model.topology.joint_nv) {
    rows_.resize(joints_.size());
    for (const Link& link : model.topology.links) {
      if (link.first) rows_[link.joint] = {link.q, link.v, link.target};
      if (link.body >= 0) tree_.push_back(link.joint);
      if (link.first && link.loop_child >= 0) loops_.push_back(link.joint);
    }
  }

  TablesView view() const {
    const auto count = [](const auto& items) { return static_cast<int>(items.size()); };
    return {joints_.data(), rows_.data(),  count(joints_),      tree_.data(), count(tree_),
            loops_.data(),  count(loops_), elimination_.view(), joint_nq_,    joint_nv_};
  }
  /// Calls visit(table, where `view` points to it) for each that is of numbers alone.
  template <class Visit>
  void each_index_table(TablesView& view, Visit&& visit) const {
    visit(tree_, view.tree);
    visit(loops_, view.loops);
    elimination_.each_table(view.elimination, visit);
  }

 private:
  static PoolVector<Joint> joints_of(const Model& model) {
    PoolVector<Joint> joints(model.joint_types.size());
    for (const Link& link : model.topology.links) {
      joints[link.joint] = {model.joint_types[link.joint], model.joint_parents[link.joint],
                            model.joint_children[link.joint], link.acts, model.joint_releases[link.joint]};
    }
    return joints;
  }

  PoolVector<Joint> joints_;
  PoolVector<JointRows> rows_;
  PoolVector<int> tree_, loops_;
  Elimination elimination_;
  int joint_nq_, joint_nv_;
};

/// Tables where kernels read them that work on `memory`: the very same on the host, a copy on a device.
class PlacedTables {
 public:
  PlacedTables() = default;
  PlacedTables(const Tables& tables, Memory& memory) : view_(tables.view()) {
    if (!memory.backend()) return;
    joints_ = {view_.joints, static_cast<std::size_t>(view_.joint_count), memory};
    rows_ = {view_.rows, static_cast<std::size_t>(view_.joint_count), memory};
    view_.joints = joints_.data();
    view_.rows = rows_.data();
    PoolVector<int> all;
    tables.each_index_table(
        view_, [&](const PoolVector<int>& table, const int*&) { all.insert(all.end(), table.begin(), table.end()); });
    indices_ = {all, memory};
    const int* next = indices_.data();
    tables.each_index_table(view_, [&](const PoolVector<int>& table, const int*& at) {
      at = next;
      next += table.size();
    });
  }

  const TablesView& view() const { return view_; }

 private:
  TablesView view_{};
  KernelArray<Joint> joints_;
  KernelArray<JointRows> rows_;
  KernelArray<int> indices_;
};

}  // namespace backdrive::semi_implicit
