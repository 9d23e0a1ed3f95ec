#include "tests/support/thrown_chain.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "autodiff/tape/rollout.h"
#include "integrators/featherstone/whip_share.h"
#include "integrators/reference/inverse_dynamics.h"
#include "models/coordinates.h"

namespace backdrive::test {

Model chain_of(int links, JointType first, JointType other, const std::function<void(ModelBuilder&)>& and_more) {
  ModelBuilder builder;
  builder.set_gravity({0, 0, 0});
  for (int i = 0; i < links; ++i) {
    builder.add_body("link" + std::to_string(i), {0.16, {0, 0, -0.07}, {3e-4, 2.8e-4, 3e-5, 0, 0, 0}});
    const bool root = i == 0;
    JointOptions options{.axis = {static_cast<double>(i % 2), static_cast<double>(1 - i % 2), 0}};
    if (!root) options.frame.position = {0, 0, -0.14};
    builder.add_joint("joint" + std::to_string(i), root ? first : other, root ? ModelBuilder::world : BodyIndex(i - 1),
                      i, options);
  }
  and_more(builder);
  return builder.build();
}

Model chain_on_floor(int links, JointType other) {
  return chain_of(links, JointType::free, other, [&](ModelBuilder& builder) {
    builder.set_gravity({0, 0, -9.81});
    for (int i = 0; i < links; ++i) {
      builder.add_shape("link" + std::to_string(i), i,
                        {.type = GeometryType::capsule,
                         .scale = {0.02, 0.05, 0.05},
                         .frame = {{0, 0, -0.07}, {0, 0, 0, 1}},
                         .filter = {2, 1}});
    }
    builder.add_shape("floor", ModelBuilder::world, {.type = GeometryType::plane});
  });
}

std::vector<double> between(const Topology& t, const std::vector<double>& a, const std::vector<double>& b,
                            double part) {
  std::vector<double> q;
  for (std::size_t k = 0; k < a.size(); ++k) q.push_back(a[k] + part * (b[k] - a[k]));
  each_quaternion(t, [&](TurnSide, int row, int) {
    double square = 0;
    for (int k = 0; k < 4; ++k) square += q[row + k] * q[row + k];
    for (int k = 0; k < 4; ++k) q[row + k] /= std::sqrt(square);
  });
  return q;
}

namespace {

constexpr int kLinks = 20;

std::vector<double> numbers(const Buffer<double>& from) {
  std::vector<double> to;
  for (int k = 0; k < from.rows(); ++k) to.push_back(from(k, 0));
  return to;
}

/// |ω|² of each joint.
std::vector<double> turns_of(const Topology& t, const std::vector<double>& qd) {
  std::vector<double> turns;
  for (const Link& link : t.links) {
    double square = 0;
    for (int k = 0; k < featherstone::turning_dofs(link); ++k) square += qd[link.v + k] * qd[link.v + k];
    turns.push_back(square);
  }
  return turns;
}

/// λ of (22).
double whip_share_of(const std::vector<double>& turns, double time_step) {
  const double time = featherstone::whip_time(time_step, true);
  double sum = 0;
  for (std::size_t i = 1; i < turns.size(); ++i) {
    sum += std::pow(featherstone::JointTurn<double>(turns[i] * time, turns[i - 1] * time).h, 4);
  }
  return featherstone::whip_share(sum).share;
}

/// Where a step has the energy of its last velocity: on the way that it would take without contact, q ⊕ ½ (1 − λ) Δt
/// v_s, v_s = 2 v_d − q̇. There contact kicks it, and from there links that whip fly on.
std::vector<double> place_of_energy(const Model& model, const State<double>& state, const State<double>& next,
                                    double rate) {
  const double share = whip_share_of(turns_of(model.topology, numbers(state.qd)), 1 / rate);
  const std::vector<double> moved = numbers(next.reported()), last = numbers(next.qd);
  std::vector<double> q = numbers(state.q), way;
  for (std::size_t k = 0; k < last.size(); ++k) way.push_back((1 - share) / (2 * rate) * (2 * moved[k] - last[k]));
  add_tangent(model.topology, way, q);
  return q;
}

State<double> thrown(const Model& model, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> draw(-1, 1);
  State<double> state(model, 1);
  const double pitch = 1.2 + 0.3 * draw(generator);
  state.q.set(0, 0, std::sin(pitch / 2)), state.q.set(3, 0, std::cos(pitch / 2));
  state.q.set(6, 0, 0.3 + 2.8 * std::cos(pitch));
  for (int k = 0; k < 6; ++k) state.qd.set(k, 0, (k < 3 ? 3 : 1) * draw(generator));
  return state;
}

}  // namespace

ChainEnergy energy_of(const ChainThrow& what) {
  const Model model = chain_on_floor(kLinks, what.other);
  const Topology& t = model.topology;
  State<double> state = thrown(model, what.seed);
  RolloutOptions options;
  options.time_step = 1 / what.rate;
  ChainEnergy result;
  double first = 0;
  bool followed = true;
  for (int step = 0; step < 2 * what.rate; ++step) {
    const Trajectory<double> run = rollout<double>(model, state, {}, options);
    if (run.any_stopped()) return {INFINITY, followed ? INFINITY : result.while_followed};
    State<double> next = run.final;
    const std::vector<double> q = numbers(state.q), on = numbers(next.q), turns = turns_of(t, numbers(state.qd));
    const double energy =
        reference::kinetic_energy(model, place_of_energy(model, state, next, what.rate), numbers(next.qd)) +
        (reference::potential_energy(model, q) + reference::potential_energy(model, on)) / 2;
    if (step == 0) first = energy;
    followed = followed && std::sqrt(*std::ranges::max_element(turns)) * options.time_step < 1;
    result.most = std::max(result.most, energy / first);
    if (followed) result.while_followed = result.most;
    if (what.forgets) next.set_reported({});
    state = std::move(next);
  }
  return result;
}

}  // namespace backdrive::test
