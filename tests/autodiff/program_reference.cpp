#include "tests/autodiff/program_reference.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/autodiff/program_dynamics.h"

namespace backdrive::test::plain {

Model snapshot(const backdrive::Model& model) {
  Model plain;
  int channels = model.topology.nv;
  for (std::size_t j = 0; j < model.joint_types.size(); ++j) {
    const bool driven = model.topology.links[model.link_of_joint(static_cast<int>(j))].acts.drive;
    plain.joints.push_back(
        {model.joint_types[j] == JointType::prismatic, model.joint_parents[j], driven ? channels : -1});
    if (driven) channels += 2;
  }
  plain.nu = channels;
  plain.shape_bodies.assign(model.shape_bodies.begin(), model.shape_bodies.end());
  for (const Field& field : fields()) {
    const Parameter& p = field.in(model);
    FieldValues f{p.items(), p.components(), field.tangents, p.worlds(), {}, {}};
    for (int w = 0; w < f.worlds; ++w) {
      for (int i = 0; i < f.items; ++i) {
        for (int c = 0; c < f.components; ++c) f.values.push_back(p(i, c, w));
      }
    }
    for (int i = 0; i < f.items; ++i) f.asked.push_back(p.requires_grad(i));
    plain.fields.push_back(std::move(f));
  }
  return plain;
}

bool asks(const Model& model) {
  return std::any_of(model.fields.begin(), model.fields.end(), [](const FieldValues& f) {
    return std::find(f.asked.begin(), f.asked.end(), true) != f.asked.end();
  });
}

namespace {

using Duals = std::vector<D>;  // [row · worlds + world]

/// The recorded ops, run again on dual numbers.
class Replay {
 public:
  Replay(const Question& question, Fault fault) : question_(question), fault_(fault) {
    for (const Slot& slot : *question.slots) {
      base_.emplace_back();
      for (const double x : slot.numbers) base_.back().push_back(x);
    }
    for (std::size_t k = 0; k < question.ops.size(); ++k) {
      for (const int slot : question.ops[k].in) {
        inputs_.insert(slot);
        last_use_[slot] = k;
      }
      for (const int slot : question.ops[k].out) {
        if (slot >= 0) outputs_.insert(slot);
      }
    }
    // Numbers of outputs come from here too, not from the library.
    moved_.resize(base_.size());
    for (const Op& op : question.ops) run(op, Direction());
    for (const int slot : outputs_) base_[slot] = std::move(moved_[slot]);
  }

  std::vector<Numbers> values() const {
    std::vector<Numbers> all(base_.size());
    for (const int slot : outputs_) {
      for (const D& x : base_[slot]) all[slot].push_back(x.value);
    }
    return all;
  }
  std::vector<int> leaves() const {
    std::vector<int> result;
    std::set_difference(inputs_.begin(), inputs_.end(), outputs_.begin(), outputs_.end(), std::back_inserter(result));
    return result;
  }

  /// Derivative of the seeded sum along a direction, and its magnitude, in every world.
  Block derivative(const Direction& direction) {
    moved_.assign(base_.size(), {});
    const int worlds = question_.worlds;
    if (direction.slot >= 0) {
      moved_[direction.slot] = base_[direction.slot];
      for (int w = 0; w < worlds; ++w) moved_[direction.slot][direction.row * worlds + w].dot = 1;
    }
    for (std::size_t k = 0; k < question_.ops.size(); ++k) {
      const Op& op = question_.ops[k];
      hidden_ =
          fault_ == Fault::last_use_only && direction.slot >= 0 && last_use_[direction.slot] > k ? direction.slot : -1;
      const bool asked = direction.field >= 0 && op.model && asked_of(op).fields[direction.field].asked[direction.item];
      const auto touched = [&](int slot) { return slot != hidden_ && !moved_[source(slot)].empty(); };
      if (asked || std::any_of(op.in.begin(), op.in.end(), touched)) run(op, asked ? direction : Direction());
    }
    hidden_ = -1;
    Block result{Numbers(worlds), Numbers(worlds)};
    for (std::size_t k = 0; k < question_.seeds.size(); ++k) {
      const Seed& seed = question_.seeds[k];
      if (fault_ == Fault::last_seed_only && !last_of_its_slot(k)) continue;
      const Duals& output = moved_[source(seed.slot)];
      for (std::size_t i = 0; i < output.size(); ++i) {
        result.values[i % worlds] += seed.numbers[i] * output[i].dot;
        result.magnitudes[i % worlds] += std::abs(seed.numbers[i] * output[i].dot);
      }
    }
    return result;
  }

  const Model& asked_of(const Op& op) const {
    return fault_ == Fault::switch_at_backward ? *question_.model_now : *op.model;
  }

 private:
  const Model& values_of(const Op& op) const {
    return fault_ == Fault::values_at_backward ? *question_.model_now : *op.model;
  }
  /// The slot itself, but for a fault what it is a copy of, where that moved.
  int source(int slot) const {
    if (fault_ != Fault::flows_through_detach) return slot;
    while (moved_[slot].empty() && (*question_.slots)[slot].detached_from >= 0)
      slot = (*question_.slots)[slot].detached_from;
    return slot;
  }
  const Duals& numbers(int slot) const {
    if (slot == hidden_) return base_[slot];
    const Duals& moved = moved_[source(slot)];
    return moved.empty() ? base_[slot] : moved;
  }
  bool last_of_its_slot(std::size_t k) const {
    for (std::size_t other = k + 1; other < question_.seeds.size(); ++other) {
      if (question_.seeds[other].slot == question_.seeds[k].slot) return false;
    }
    return true;
  }

  void run(const Op& op, const Direction& direction) {
    switch (op.kind) {
      case OpKind::rollout:
        return run_rollout(op, direction);
      case OpKind::policy:
        return run_policy(op);
      default:
        return run_elementwise(op);
    }
  }

  void run_rollout(const Op& op, const Direction& direction) {
    const Model& model = values_of(op);
    const Duals &q0 = numbers(op.in[0]), &qd0 = numbers(op.in[1]);
    const Duals none, &u = op.in.size() > 2 ? numbers(op.in[2]) : none;
    const int worlds = question_.worlds, n = static_cast<int>(model.joints.size());
    const auto column = [&](const Duals& from, int first, int rows, int w) {
      Duals result;
      for (int r = 0; r < rows; ++r) result.push_back(from[(first + r) * worlds + w]);
      return result;
    };
    Duals all_q((op.steps + 1) * n * worlds), all_qd = all_q, last_q(n * worlds), last_qd = last_q;
    for (int w = 0; w < worlds; ++w) {
      Duals q = column(q0, 0, n, w), qd = column(qd0, 0, n, w);
      for (int k = 0; k <= op.steps; ++k) {
        for (int r = 0; r < n; ++r) {
          all_q[(k * n + r) * worlds + w] = last_q[r * worlds + w] = q[r];
          all_qd[(k * n + r) * worlds + w] = last_qd[r * worlds + w] = qd[r];
        }
        if (k == op.steps) break;
        step(model, direction, w, question_.time_step, q, qd, u.empty() ? none : column(u, k * model.nu, model.nu, w));
      }
    }
    put(op.out[0], std::move(last_q));
    put(op.out[1], std::move(last_qd));
    put(op.out[2], std::move(all_q));
    put(op.out[3], std::move(all_qd));
  }

  /// u = K (q, q̇, 1), as tests/support/policy.h has it.
  void run_policy(const Op& op) {
    const Duals &gains = numbers(op.in[0]), &q = numbers(op.in[1]), &qd = numbers(op.in[2]);
    const std::size_t state = q.size(), worlds = question_.worlds, inputs = 2 * state / worlds + 1;
    Duals u(gains.size() / inputs);
    for (std::size_t c = 0; c < u.size() / worlds; ++c) {
      for (std::size_t w = 0; w < worlds; ++w) {
        D sum;
        for (std::size_t k = 0; k < inputs; ++k) {
          const std::size_t at = k * worlds + w;
          const D x = at < state ? q[at] : at < 2 * state ? qd[at - state] : D(1);
          sum += gains[(c * inputs + k) * worlds + w] * x;
        }
        u[c * worlds + w] = sum;
      }
    }
    put(op.out[0], std::move(u));
  }

  void run_elementwise(const Op& op) {
    const Duals &a = numbers(op.in[0]), &b = numbers(op.in.back());
    Duals y;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (op.kind == OpKind::product) y.push_back(a[i] * b[i]);
      if (op.kind == OpKind::sum) y.push_back(a[i] + b[i]);
      if (op.kind == OpKind::sine) y.push_back({std::sin(a[i].value), std::cos(a[i].value) * a[i].dot});
      if (op.kind == OpKind::scaled) y.push_back(a[i] * D(op.factor));
    }
    put(op.out[0], std::move(y));
  }

  void put(int slot, Duals numbers) {
    if (slot >= 0) moved_[slot] = std::move(numbers);
  }

  const Question& question_;
  Fault fault_;
  std::vector<Duals> base_, moved_;  ///< by slot; `moved_` is empty where the direction does not reach
  std::set<int> inputs_, outputs_;
  std::map<int, std::size_t> last_use_;  ///< by slot, the op
  int hidden_ = -1;                      ///< a slot whose dots are not to be seen
};

/// Zeros in the shape of the first model that asks, or of the first of all. False when those that ask differ.
bool shape_fields(const Question& question, const Replay& replay, std::vector<FieldGradient>& result) {
  const Model* shape = nullptr;
  bool asking = false;
  for (const Op& op : question.ops) {
    if (!op.model) continue;
    const Model& model = *op.model;
    if (!asking && asks(model)) {
      shape = &model;
      asking = true;
    } else if (asking && asks(model)) {
      for (std::size_t f = 0; f < model.fields.size(); ++f) {
        if (model.fields[f].worlds != shape->fields[f].worlds) return false;
      }
    } else if (!shape) {
      shape = &model;
    }
  }
  if (!shape) return true;
  for (std::size_t f = 0; f < shape->fields.size(); ++f) {
    const FieldValues& values = shape->fields[f];
    FieldGradient g{values.items, values.tangents, values.worlds, std::vector<bool>(values.items), {}};
    g.block.values.resize(static_cast<std::size_t>(g.items) * g.tangents * g.worlds);
    g.block.magnitudes = g.block.values;
    for (const Op& op : question.ops) {
      for (int i = 0; op.model && i < g.items; ++i) g.asked[i] = g.asked[i] || replay.asked_of(op).fields[f].asked[i];
    }
    result.push_back(std::move(g));
  }
  return true;
}

void fill_field(Replay& replay, Fault fault, int field, int worlds, FieldGradient& g) {
  for (int i = 0; i < g.items; ++i) {
    if (!g.asked[i]) continue;
    for (int t = 0; t < g.tangents; ++t) {
      const Block d = replay.derivative({-1, 0, field, i, t});
      for (int w = 0; w < worlds; ++w) {
        if (g.worlds == 1 && w > 0 && fault == Fault::one_world_only) break;
        const std::size_t at = (static_cast<std::size_t>(g.worlds == 1 ? 0 : w) * g.items + i) * g.tangents + t;
        g.block.values[at] += d.values[w];
        g.block.magnitudes[at] += d.magnitudes[w];
      }
    }
  }
}

void add(Block& to, const Block& from) {
  if (to.values.size() != from.values.size()) return;
  for (std::size_t i = 0; i < to.values.size(); ++i) to.values[i] += from.values[i];
}

}  // namespace

Answer Reference::answer(const Question& question) {
  Replay replay(question, fault_);
  Answer answer;
  answer.refused = !shape_fields(question, replay, answer.fields);
  if (answer.refused) return answer;
  answer.values = replay.values();
  for (const int slot : replay.leaves()) {
    Block& block = answer.buffers[slot];
    for (int row = 0; row < (*question.slots)[slot].rows; ++row) {
      const Block d = replay.derivative({slot, row, -1, 0, 0});
      block.values.insert(block.values.end(), d.values.begin(), d.values.end());
      block.magnitudes.insert(block.magnitudes.end(), d.magnitudes.begin(), d.magnitudes.end());
    }
  }
  for (std::size_t f = 0; f < answer.fields.size(); ++f) {
    fill_field(replay, fault_, static_cast<int>(f), question.worlds, answer.fields[f]);
  }
  if (fault_ == Fault::accumulated_twice) {
    for (auto& [slot, block] : answer.buffers) {
      if (const auto before = buffers_before_.find(slot); before != buffers_before_.end()) add(block, before->second);
      buffers_before_[slot] = block;
    }
    for (std::size_t f = 0; f < answer.fields.size() && f < fields_before_.size(); ++f) {
      add(answer.fields[f].block, fields_before_[f].block);
    }
    if (!answer.fields.empty()) fields_before_ = answer.fields;
  }
  return answer;
}

}  // namespace backdrive::test::plain
