#pragma once
// ⟨w, Jv⟩ and ⟨Jᵀw, v⟩ of rollouts in maximal coordinates that begin at the coordinates of joints, by all inputs.
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "autodiff/tape/rollout.h"
#include "integrators/rollout/arguments.h"
#include "models/parameter_list.h"
#include "tests/support/batch.h"

namespace backdrive::test {

using D = Dual<double>;

inline RolloutOptions options_of(int steps, int threads = 1) {
  RolloutOptions options;
  options.time_step = 0.005;
  options.steps = steps;
  options.threads = threads;
  options.keep_contact = true;
  return options;
}

constexpr int kSteps = 5;

/// OutputWeights of everything that a rollout leaves: states of joints and bodies, poses and motions, and, with
/// contact, the velocities that are reported and the forces.
struct OutputWeights {
  Buffer<double> q, qd, poses, reported, contact;
};

inline std::vector<int> all_bodies(const Model& model) {
  std::vector<int> bodies(model.body_names.size());
  std::iota(bodies.begin(), bodies.end(), 0);
  return bodies;
}

/// Of all bodies, with the velocities that q̇ says.
template <class T>
Buffer<T> motions(Tape<T>* tape, const Model& model, const Trajectory<T>& trajectory, const RolloutOptions& options) {
  State<T> states;
  states.q = trajectory.q;
  states.qd = trajectory.qd;
  return body_motions<T>(tape, model, states, all_bodies(model), options);
}

/// In tangent rows: none stands in a quaternion's fourth.
inline OutputWeights random_weights(const Model& model, Random& random) {
  const Topology& t = model.topology;
  OutputWeights w{Buffer<double>((kSteps + 1) * t.nq, 1),
                  Buffer<double>((kSteps + 1) * t.nv, 1),
                  Buffer<double>((kSteps + 1) * static_cast<int>(model.body_names.size()) * kMotionRows, 1),
                  {},
                  {}};
  const std::vector<int> rows = tangent_rows(t);
  for (int step = 0; step <= kSteps; ++step) {
    for (const int row : rows) w.q.set(step * t.nq + row, 0, random.symmetric(1));
  }
  if (!t.contact_pairs.empty()) {
    w.reported = Buffer<double>((kSteps + 1) * t.nv, 1);
    w.contact = Buffer<double>(kSteps * static_cast<int>(t.contact_pairs.size()) * kContactRows, 1);
  }
  for (Buffer<double>* b : {&w.qd, &w.poses, &w.reported}) {
    for (int r = 0; r < b->rows(); ++r) b->set(r, 0, random.symmetric(1));
  }
  for (int r = 0; r < w.contact.rows(); ++r) w.contact.set(r, 0, r % kContactRows < 3 ? random.symmetric(0.1) : 0);
  return w;
}

/// The name of a field's block of inputs: its leaf, of shapes after their group, whose frames are not those of joints.
inline std::string block_name(const Field& field) {
  const bool of_couplings = field.group == FieldGroup::couplings || field.group == FieldGroup::terms;
  return (field.group == FieldGroup::shapes ? "shapes/" : of_couplings ? "couplings/" : "") + std::string(field.leaf);
}

/// A direction through all inputs: joints' rows of the state, controls, parameters.
struct InputDirection {
  std::vector<double> q, qd, control;  // q by velocity row
  Parameters parameters;
};

inline InputDirection random_direction(const Model& model, Random& random) {
  InputDirection d{{}, {}, {}, zero_parameters(model)};
  const Topology& t = model.topology;
  for (int v = 0; v < t.joint_nv; ++v) d.q.push_back(random.symmetric(1)), d.qd.push_back(random.symmetric(1));
  for (int r = 0; r < kSteps * t.nu; ++r) d.control.push_back(random.symmetric(1));
  for (const Field& field : fields()) {
    const Parameter& values = field.in(model);
    Parameter& p = field.of(d.parameters);
    for (int i = 0; i < p.items(); ++i) {
      for (int c = 0; c < p.components(); ++c) {
        const double scale = field.tangents == 3 && field.components == 4 ? 1 : std::abs(values(i, c));
        if (values.requires_grad(i) && std::isfinite(scale)) p.at(i, c) = random.symmetric(0.1 * scale + 0.01);
      }
    }
    if (field.leaf != "axis") continue;
    for (int i = 0; i < p.items(); ++i) {  // stays a unit vector
      double along = 0;
      for (int c = 0; c < 3; ++c) along += p(i, c) * values(i, c);
      for (int c = 0; c < 3; ++c) p.at(i, c) -= along * values(i, c);
    }
  }
  return d;
}

/// A direction's tangents of q as dots of its numbers.
inline void set_dots(const Model& model, const InputDirection& d, State<D>& state, Control<D>& control) {
  const Topology& t = model.topology;
  const std::vector<int> rows = tangent_rows(t);
  for (int v = 0; v < t.joint_nv; ++v) {
    state.q.write(rows[v])[0].dot = d.q[v];
    state.qd.write(v)[0].dot = d.qd[v];
  }
  each_quaternion(t, [&](TurnSide side, int row, int v) {
    double q[4];
    for (int k = 0; k < 4; ++k) q[k] = state.q(row + k, 0).value;
    const auto rate = quaternion_rate(side, load_quaternion(q), Vec3<double>{d.q[v], d.q[v + 1], d.q[v + 2]});
    const double dots[] = {rate.v.x, rate.v.y, rate.v.z, rate.w};
    for (int k = 0; k < 4; ++k) state.q.write(row + k)[0].dot = dots[k];
  });
  for (int r = 0; r < control.u.rows(); ++r) control.u.write(r)[0].dot = d.control[r];
}

/// Σ weights · derivative of the outputs, quaternions' as turns.
inline double weighted(const Model& model, const OutputWeights& w, const Trajectory<D>& trajectory,
                       const Buffer<D>& poses) {
  const Topology& t = model.topology;
  double sum = 0;
  for (int r = 0; r < poses.rows(); ++r) sum += w.poses(r, 0) * poses(r, 0).dot;
  const auto add = [&](const Buffer<double>& weights, const Buffer<D>& numbers) {
    for (int r = 0; r < weights.rows(); ++r) sum += weights(r, 0) * numbers(r, 0).dot;
  };
  add(w.qd, trajectory.qd);
  add(w.reported, trajectory.reported);
  add(w.contact, trajectory.contact);
  const std::vector<int> rows = tangent_rows(t);
  for (int step = 0; step <= kSteps; ++step) {
    const int first = step * t.nq;
    std::vector<double> dots(t.nq, 0.0);
    for (const int row : rows) dots[row] = trajectory.q(first + row, 0).dot;
    const auto turn = [&](TurnSide side, int row, int) {
      Quaternion<double> q[2];
      for (int part = 0; part < 2; ++part) {
        double n[4];
        for (int k = 0; k < 4; ++k) {
          const D& x = trajectory.q(first + row + k, 0);
          n[k] = part ? x.dot : x.value;
        }
        q[part] = load_quaternion(n);
      }
      const Vec3<double> theta = turn_of_rate(side, q[0], q[1]);
      dots[row] = theta.x, dots[row + 1] = theta.y, dots[row + 2] = theta.z;
    };
    each_quaternion(t, turn);
    each_body(t, [&](int q, int v) { turn(TurnSide::left, q, v); });
    for (const int row : rows) sum += w.q(first + row, 0) * dots[row];
  }
  return sum;
}

inline double along_duals(const Model& model, const InputDirection& d, const OutputWeights& w, std::uint64_t seed) {
  Batch<D> batch = random_batch<D>(model, kSteps, {0}, seed);
  set_dots(model, d, batch.state, batch.control);
  RolloutOptions options = options_of(kSteps);
  options.direction = &d.parameters;
  const State<D> start = place_bodies<D>(nullptr, model, batch.state, options);
  const Trajectory<D> trajectory = rollout(model, start, batch.control, options);
  EXPECT_FALSE(trajectory.any_stopped());
  return weighted(model, w, trajectory, motions<D>(nullptr, model, trajectory, options));
}

/// A gradient by all inputs.
struct InputGradient {
  Buffer<double> q, qd, control;
  Parameters parameters;
};

/// Its products with a direction, by blocks of inputs.
using BlockSums = std::vector<std::pair<std::string, double>>;
inline BlockSums products(const Model& model, const InputDirection& d, const InputGradient& g) {
  BlockSums blocks{{"q", 0}, {"qd", 0}, {"control", 0}};
  const std::vector<int> rows = tangent_rows(model.topology);
  for (int v = 0; v < model.topology.joint_nv; ++v) {
    blocks[0].second += g.q(rows[v], 0) * d.q[v];
    blocks[1].second += g.qd(v, 0) * d.qd[v];
  }
  for (std::size_t r = 0; r < d.control.size(); ++r) {
    blocks[2].second += g.control(static_cast<int>(r), 0) * d.control[r];
  }
  for (const Field& field : fields()) {
    const Parameter &bar = field.in(g.parameters), &v = field.in(d.parameters);
    double sum = 0;
    for (int i = 0; i < bar.items(); ++i) {
      for (int c = 0; c < bar.components(); ++c) sum += bar(i, c) * v(i, c);
    }
    blocks.emplace_back(block_name(field), sum);
  }
  return blocks;
}

/// ⟨Jᵀw, v⟩ by blocks of inputs.
inline BlockSums along_adjoint(const Model& model, const InputDirection& d, const OutputWeights& w,
                               std::uint64_t seed) {
  const Batch<double> batch = random_batch<double>(model, kSteps, {0}, seed);
  const RolloutOptions options = options_of(kSteps);
  Tape<double> tape;
  const State<double> start = place_bodies(&tape, model, batch.state, options);
  const Trajectory<double> trajectory = rollout(tape, model, start, batch.control, options);
  const Buffer<double> poses = motions(&tape, model, trajectory, options);
  Seeds<double> seeds;
  seeds.add(trajectory.q, w.q);
  seeds.add(trajectory.qd, w.qd);
  seeds.add(poses, w.poses);
  if (!w.reported.empty()) {
    seeds.add(trajectory.reported, w.reported);
    seeds.add(trajectory.contact, w.contact);
  }
  const Gradients<double> g = std::move(tape).backward(seeds);
  return products(model, d, {g.of(batch.state.q), g.of(batch.state.qd), g.of(batch.control.u), g.parameters()});
}

}  // namespace backdrive::test
