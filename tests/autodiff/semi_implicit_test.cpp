// Rollouts in maximal coordinates on a tape: gradients against dual numbers and differences, and what every rollout
// promises of bits, checkpoints, threads and allocations.
#include <gtest/gtest.h>

#include <cmath>

#include "autodiff/problem/loss.h"
#include "tests/autodiff/semi_implicit_identity.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"

namespace backdrive {
namespace {

using test::along_adjoint;
using test::along_duals;
using test::InputDirection;
using test::kSteps;
using test::options_of;
using test::OutputWeights;
using test::Random;
using test::random_direction;
using test::random_weights;

/// Trees with every type of joint and every force, and loops.
Model random_model(std::uint64_t seed) {
  test::TreeOptions options;
  options.links = 9;
  options.forces = options.shapes = options.rotations = true;
  options.integrator = Integrator::semi_implicit;
  options.loops = seed % 2 ? 2 : 0;
  options.couplings = seed % 4 ? 3 : 0;  // one of each kind
  Model model = test::random_tree(seed, options);
  // Stiff ones in a free fall onto loops make gradients of 1e6, which say little about the others.
  for (std::size_t j = 0; j < model.joint_names.size(); ++j) {
    const int joint = static_cast<int>(j);
    if (model.joint_loops[j]) continue;
    model.joints.attachment.stiffness.at(joint) = 2e4, model.joints.attachment.damping.at(joint) = 30;
    model.joints.attachment.angular_stiffness.at(joint) = 2e3, model.joints.attachment.angular_damping.at(joint) = 3;
  }
  // The one drive there is saturates in some models and never in others.
  if (seed % 4 == 3) model.joints.drive.effort_limit.at(3) = 1e9;
  test::require_all(model);
  return model;
}

/// The error of ⟨w, Jv⟩ = ⟨Jᵀw, v⟩, relative; `fault`: a block of the adjoint that is left out.
double identity_error(std::uint64_t seed, const std::string& fault = {}) {
  const Model model = random_model(seed);
  Random random(seed + 100);
  const OutputWeights w = random_weights(model, random);
  const InputDirection d = random_direction(model, random);
  double backward = 0, scale = 1;
  for (const auto& [block, sum] : along_adjoint(model, d, w, seed)) {
    if (block != fault) backward += sum;
    scale = std::max(scale, std::abs(sum));
  }
  return std::abs(backward - along_duals(model, d, w, seed)) / scale;
}

TEST(SemiImplicitTape, GradientsOfEverythingAreThoseOfDuals) {
  for (const int seed : {1, 2, 3, 4, 5, 6}) EXPECT_LT(identity_error(seed), 1e-11) << "seed " << seed;
}

// The check sees each of its inputs: without any one of them it fails.
TEST(SemiImplicitTape, TheCheckSeesEveryInput) {
  std::vector<std::string> blocks{"q", "qd", "control"};
  for (const Field& field : fields()) {
    const std::string leaf(field.leaf);
    // Nothing touches; and no sum over so different parameters tells one of the least apart.
    if (leaf != "geometry/margin" && !leaf.starts_with("material/")) blocks.push_back(test::block_name(field));
  }
  for (const std::string& block : blocks) {
    double error = 0;
    for (const int seed : {1, 3, 5}) error = std::max(error, identity_error(seed, block));
    EXPECT_GT(error, 1e-9) << block;
  }
}

TEST(SemiImplicitTape, GradientsAgreeWithDifferences) {
  const Model model = random_model(3);
  Random random(17);
  const test::Batch<double> batch = test::random_batch<double>(model, kSteps, {0}, 3);
  const Topology& t = model.topology;
  std::vector<double> weights;
  for (int k = 0; k < t.joint_nv; ++k) weights.push_back(random.symmetric(1));
  const auto loss_at = [&](int row, double h) {
    State<double> state = detach(batch.state);
    state.qd.set(row, 0, state.qd(row, 0) + h);
    const auto end = rollout(model, place_bodies<double>(nullptr, model, state, {}), batch.control, options_of(kSteps));
    double loss = 0;
    for (int v = 0; v < t.joint_nv; ++v) loss += weights[v] * end.final.qd(v, 0);
    return loss;
  };
  Tape<double> tape;
  const State<double> start = place_bodies(&tape, model, batch.state, options_of(kSteps));
  const Trajectory<double> trajectory = rollout(tape, model, start, batch.control, options_of(kSteps));
  Buffer<double> bar(t.nv, 1);
  for (int v = 0; v < t.joint_nv; ++v) bar.set(v, 0, weights[v]);
  Seeds<double> seeds;
  seeds.add(trajectory.final.qd, bar);
  const Gradients<double> g = std::move(tape).backward(seeds, Disconnected::zero);
  const int loops = t.links[model.link_of_joint(9)].v;  // the first loop's rows: no input, behind the tree's
  for (int row = 0; row < loops; ++row) {
    const double h = 1e-5, difference = (loss_at(row, h) - loss_at(row, -h)) / (2 * h);
    const double adjoint = g.of(batch.state.qd)(row, 0);
    EXPECT_NE(adjoint, difference);
    // The smoothed friction bends over 0.01 rad/s.
    EXPECT_NEAR(adjoint, difference, 1e-5 * (1 + std::abs(difference))) << "velocity " << row;
  }
}

/// A problem with all kinds of terms, scored on the way and at the end.
Problem busy_problem(int steps) {
  Problem problem;
  problem.model = random_model(3);
  problem.simulation = {0.005, steps};
  problem.initial_position = neutral_positions(problem.model.topology);
  problem.initial_velocity.assign(problem.model.topology.nv, 0.3);
  int joint = 0;
  while (!has_one_degree(problem.model.joint_types[joint])) ++joint;
  problem.controls.push_back({joint, ControlChannel::effort, {0.5, -1.0, 2.0}, false});
  for (const LossQuantity quantity : {LossQuantity::joint_position, LossQuantity::joint_velocity,
                                      LossQuantity::body_position, LossQuantity::body_orientation}) {
    for (const bool terminal : {true, false}) {
      LossTerm& term = problem.loss.emplace_back();
      term.quantity = quantity;
      term.terminal = terminal;
      const bool pose = quantity == LossQuantity::body_position || quantity == LossQuantity::body_orientation;
      term.index = pose ? 8 : joint;
      term.target = {0.1, 0.2, 0.3, 0.9};
      if (quantity == LossQuantity::body_orientation) term.target = {0, 0, 0.6, 0.8};
    }
  }
  return problem;
}

template <class T>
struct Result {
  Buffer<T> terms, q, qd, control;
  Parameters parameters;
};

template <class T>
Result<T> gradient(const Problem& problem, const MemoryPlan& plan, int threads = 1, const GradientWindow& window = {}) {
  constexpr int worlds = 11;
  RolloutOptions options = options_of(problem.simulation.steps, threads);
  options.plan = plan;
  options.window = window;
  State<T> state = initial_state<T>(problem, worlds, default_memory());
  for (int w = 0; w < worlds; ++w) state.qd.set(2, w, T(0.1 * w));
  const Control<T> control = initial_control<T>(problem, worlds, default_memory());
  Tape<T> tape;
  std::shared_ptr<LossObserver<T>> observer;
  if (!plan.keeps_all()) observer = observe_loss<T>(problem, control, options, worlds, default_memory());
  const State<T> start = place_bodies(&tape, problem.model, state, options);
  const Trajectory<T> trajectory = rollout(tape, problem.model, start, control, options, observer);
  EXPECT_FALSE(trajectory.any_stopped());
  const LossResult<T> loss = evaluate_loss(problem, trajectory, control, options, &tape, observer.get());
  const Gradients<T> g = std::move(tape).backward(loss.seeds, Disconnected::zero);  // trees beside that of body 8
  return {loss.terms, g.of(state.q), g.of(state.qd), g.of(control.u), g.parameters()};
}

template <class T>
void expect_same(const Result<T>& a, const Result<T>& b) {
  EXPECT_TRUE(test::same_bits(a.terms, b.terms));
  EXPECT_TRUE(test::same_bits(a.q, b.q));
  EXPECT_TRUE(test::same_bits(a.qd, b.qd));
  EXPECT_TRUE(test::same_bits(a.control, b.control));
  test::expect_equal_parameters(a.parameters, b.parameters);
}

template <class T>
class SemiImplicitBits : public testing::Test {};
using Precisions = testing::Types<float, double>;
TYPED_TEST_SUITE(SemiImplicitBits, Precisions);

TYPED_TEST(SemiImplicitBits, AreTheSameForEveryPlanAndNumberOfThreads) {
  const Problem problem = busy_problem(13);
  const Result<TypeParam> all = gradient<TypeParam>(problem, {});
  const Model& model = problem.model;
  EXPECT_NE(all.qd(model.topology.links[model.link_of_joint(8)].v, 0), TypeParam(0));
  for (const MemoryPlan& plan : {MemoryPlan{13, 0}, MemoryPlan{4, 3}, MemoryPlan{4, 1}, MemoryPlan{1, 2}}) {
    SCOPED_TRACE(testing::Message() << "pieces of " << plan.piece << ", " << plan.slots << " slots");
    expect_same(all, gradient<TypeParam>(problem, plan));
    expect_same(all, gradient<TypeParam>(problem, plan, 2));
  }
}

TYPED_TEST(SemiImplicitBits, OfStepsOneByOneAreThoseOfARollout) {
  using T = TypeParam;
  const Model model = random_model(3);
  const test::Batch<T> batch = test::random_batch<T>(model, kSteps, test::first_worlds(9), 4);
  const RolloutOptions options = options_of(kSteps);
  const State<T> start = place_bodies<T>(nullptr, model, batch.state, options);
  Tape<T> fused_tape, tape;
  const Trajectory<T> fused = rollout(fused_tape, model, start, batch.control, options);
  State<T> state = start;
  std::vector<Control<T>> controls(kSteps);
  for (int k = 0; k < kSteps; ++k) {
    controls[k].u = Buffer<T>(model.topology.nu, 9);
    for (int r = 0; r < model.topology.nu; ++r) {
      for (int w = 0; w < 9; ++w) controls[k].u.set(r, w, batch.control.u(k * model.topology.nu + r, w));
    }
    state = step(tape, model, state, controls[k], options);
  }
  EXPECT_TRUE(test::same_bits(fused.final.q, state.q));
  EXPECT_TRUE(test::same_bits(fused.final.qd, state.qd));
  const auto backward = [](Tape<T>& t, const State<T>& end) {
    Seeds<T> seeds;
    seeds.add(end.q, end.q);
    seeds.add(end.qd, end.qd);
    return std::move(t).backward(seeds);
  };
  const Gradients<T> a = backward(fused_tape, fused.final), b = backward(tape, state);
  EXPECT_TRUE(test::same_bits(a.of(start.q), b.of(start.q)));
  EXPECT_TRUE(test::same_bits(a.of(start.qd), b.of(start.qd)));
}

TEST(SemiImplicitWindows, CutOrBoundTheGradient) {
  const Problem problem = busy_problem(6);
  const Result<double> whole = gradient<double>(problem, {});
  const Result<double> cut = gradient<double>(problem, {}, 1, {1, true, 0});
  EXPECT_FALSE(test::same_bits(whole.control, cut.control));
  const Result<double> clipped = gradient<double>(problem, {}, 1, {2, false, 1e-3});
  double square = 0;
  for (int r = 0; r < 2 * problem.model.topology.nu; ++r) square += std::pow(clipped.control(r, 0), 2);
  EXPECT_LE(std::sqrt(square), 1e-3 * (1 + 1e-12));
  EXPECT_GT(square, 0);
}

TEST(SemiImplicitAllocations, NoneInALaterIteration) {
  const Problem problem = busy_problem(6);
  const auto iteration = [&] { gradient<double>(problem, {}); };
  iteration();
  iteration();
  const std::uint64_t before = default_memory().counters().allocations;
  iteration();
  EXPECT_EQ(default_memory().counters().allocations, before);
}

TEST(SemiImplicitErrors, AStateThatWasNotPlacedIsRefused) {
  const Model model = random_model(2);
  const State<double> state(model, 1);
  test::expect_usage_error([&] { rollout<double>(model, state, {}, options_of(1)); }, {"place_bodies()"});
}

TEST(SemiImplicitErrors, FeatherstoneKnowsNoLoops) {
  test::TreeOptions options;
  options.loops = 1;
  try {
    test::random_tree(1, options);
    FAIL();
  } catch (const ModelError& error) {
    EXPECT_EQ(error.path(), "joints/loop0/loop");
    EXPECT_NE(error.message().find("expected integrator semi_implicit"), std::string::npos) << error.message();
  }
}

TEST(SemiImplicitErrors, AWorldThatStopsNamesStepAndJoint) {
  const Model model = random_model(2);
  State<double> state(model, 3);
  Control<double> control(model, 4, 3);
  constexpr int joint = 8;  // one that moves anything, by no drive
  const int channel = model.topology.links[model.link_of_joint(joint)].v;
  control.u.set(2 * model.topology.nu + channel, 1, std::nan(""));
  const State<double> start = place_bodies<double>(nullptr, model, state, {});
  const Trajectory<double> t = rollout(model, start, control, options_of(4));
  const WorldStatus& status = (*t.status)[1];
  EXPECT_EQ(status.stopped_step, 2);
  EXPECT_EQ(status.joint, joint);
  EXPECT_FALSE((*t.status)[0].stopped());
  EXPECT_FALSE((*t.status)[2].stopped());
  for (int r = 0; r < model.topology.nq; ++r) {
    EXPECT_TRUE(std::isfinite(t.final.q(r, 1)));
    EXPECT_EQ(t.final.q(r, 1), t.q(2 * model.topology.nq + r, 1));  // it stays where it was
  }
}

}  // namespace
}  // namespace backdrive
