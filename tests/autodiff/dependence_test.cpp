// A gradient that was asked for and cannot exist is an error that names it, or, on request, a marked zero.
#include "autodiff/problem/dependence.h"

#include <gtest/gtest.h>

#include "autodiff/problem/loss.h"
#include "autodiff/problem/variables.h"
#include "models/builder.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"

namespace backdrive {
namespace {

/// Two pendulums that hang from the world side by side.
Problem two_trees() {
  ModelBuilder builder;
  for (const char* side : {"left", "right"}) {
    BodyOptions body;
    body.mass = 1;
    body.com = {0, 0, -1};
    body.inertia = {0.1, 0.1, 0.1, 0, 0, 0};
    const int bob = builder.add_body(std::string(side) + "_bob", body);
    JointOptions joint;
    joint.axis = {0, 1, 0};
    joint.damping = 0.1;
    builder.add_joint(side, JointType::revolute, ModelBuilder::world, bob, joint);
  }
  Problem problem;
  problem.model = builder.build();
  problem.simulation.steps = 5;
  problem.initial_position = {0.4, -0.2};
  problem.initial_velocity = {0, 0};
  LossTerm term;
  term.name = "terminal/left/position";
  term.index = problem.model.find_joint("left");
  problem.loss.push_back(term);
  return problem;
}

struct Recorded {
  explicit Recorded(const Problem& problem)
      : state(initial_state<double>(problem, 2)), control(problem.model, problem.simulation.steps, 2) {
    options.steps = problem.simulation.steps;
    trajectory = rollout(tape, problem.model, state, control, options);
    seeds = evaluate_loss(problem, trajectory, control, options, &tape).seeds;
  }
  Gradients<double> backward(Disconnected policy = Disconnected::error) {
    return std::move(tape).backward(seeds, policy);
  }

  RolloutOptions options;
  State<double> state;
  Control<double> control;
  Tape<double> tape;
  Trajectory<double> trajectory;
  Seeds<double> seeds;
};

TEST(SeedsDisconnected, AParameterOfAnotherTreeIsAnErrorThatNamesIt) {
  Problem problem = two_trees();
  set_requires_grad(problem.model, "joints/right/damping", true);
  set_requires_grad(problem.model, "joints/left/damping", true);
  Recorded r(problem);
  test::expect_usage_error([&] { static_cast<void>(r.backward()); },
                           {"no gradient of joints/right/damping: the loss only reads what hangs from the world by "
                            "other joints"});
}

TEST(SeedsDisconnected, AParameterThatNothingReadsIsAnError) {
  Problem problem = two_trees();
  set_requires_grad(problem.model, "joints/left/limit/stiffness", true);
  Recorded r(problem);
  test::expect_usage_error([&] { static_cast<void>(r.backward()); },
                           {"no gradient of joints/left/limit/stiffness: the joint has no limits"});
}

TEST(SeedsDisconnected, OnRequestItIsAMarkedZero) {
  Problem problem = two_trees();
  set_requires_grad(problem.model, "joints/*/damping", true);
  Recorded r(problem);
  const Gradients<double> g = r.backward(Disconnected::zero);
  ASSERT_EQ(g.disconnected().size(), 1u);
  EXPECT_EQ(g.disconnected()[0].path, "joints/right/damping");
  const Parameter& damping = g.parameters().joints.damping;
  EXPECT_EQ(damping(problem.model.find_joint("right")), 0);
  EXPECT_NE(damping(problem.model.find_joint("left")), 0);
}

TEST(SeedsDisconnected, AZeroThatCouldBeSomethingElseIsAGradient) {
  Problem problem = two_trees();
  set_requires_grad(problem.model, "joints/left/damping", true);
  problem.initial_position = {0, 0};  // at rest on the target: every seed is zero, by value
  Recorded r(problem);
  const Gradients<double> g = r.backward();
  EXPECT_EQ(g.parameters().joints.damping(problem.model.find_joint("left")), 0);
  EXPECT_TRUE(g.disconnected().empty());
  EXPECT_TRUE(g.is_connected(r.state.q));
}

TEST(SeedsDisconnected, BuffersToo) {
  Problem problem = two_trees();
  LossTerm term;
  term.quantity = LossQuantity::control;
  term.terminal = false;
  problem.loss = {term};
  Recorded r(problem);
  const Gradients<double> g = r.backward();
  EXPECT_NO_THROW(g.of(r.control.u));
  EXPECT_FALSE(g.is_connected(r.state.q));
  test::expect_usage_error([&] { static_cast<void>(g.of(r.state.q)); },
                           {"no gradient of this buffer: the loss does not depend on it"});
  Recorded again(problem);
  const Gradients<double> zeros = again.backward(Disconnected::zero);
  EXPECT_EQ(zeros.of(again.state.q)(0, 0), 0);
  EXPECT_FALSE(zeros.is_connected(again.state.q));
}

TEST(SeedsDisconnected, NothingPassesADetachedState) {
  Problem problem = two_trees();
  set_requires_grad(problem.model, "joints/left/damping", true);
  problem.loss.clear();
  Tape<double> tape;
  RolloutOptions options;
  options.steps = 3;
  const State<double> start = initial_state<double>(problem, 1);
  const Trajectory<double> first = rollout(tape, problem.model, start, {}, options);
  const State<double> middle = detach(first.final);
  const Trajectory<double> second = rollout(tape, problem.model, middle, {}, options);
  Seeds<double> seeds;
  Buffer<double> ones(second.final.q.rows(), 1);
  ones.fill(1);
  seeds.add(second.final.q, ones);
  const Gradients<double> g = std::move(tape).backward(seeds);
  EXPECT_NE(g.of(middle.q)(0, 0), 0);
  EXPECT_FALSE(g.is_connected(start.q));
  EXPECT_THROW(g.of(start.q), Error);
}

// What one recording asks for is not given by another that did not ask, however much it moves.
TEST(SeedsDisconnected, ARecordingThatDidNotAskDoesNotCount) {
  Model model = test::pendulum();
  Tape<double> tape;
  RolloutOptions options;
  options.steps = 3;
  State<double> start(model, 1);
  start.q.fill(0.5);
  const Trajectory<double> silent = rollout(tape, model, start, {}, options);
  set_requires_grad(model, "joints/hinge/damping", true);
  rollout(tape, model, start, {}, options);
  Seeds<double> seeds;
  seeds.add(silent.final.q, silent.final.q);
  test::expect_usage_error([&] { static_cast<void>(std::move(tape).backward(seeds)); },
                           {"no gradient of joints/hinge/damping: the loss does not depend on any motion"});
}

// Robots of other shapes may share a tape as long as at most one shape is asked for gradients.
TEST(SeedsDisconnected, ModelsOfAnyShapeShareATape) {
  for (const bool small_first : {true, false}) {
    Model small = test::pendulum(), large = test::chain(70);
    set_requires_grad(large, "joints/*/damping", true);
    Tape<double> tape;
    RolloutOptions options;
    options.steps = 2;
    const auto record = [&](const Model& model) {
      State<double> start(model, 1);
      start.q.fill(0.3);
      return rollout(tape, model, start, {}, options).final.q;
    };
    Buffer<double> last[2];
    for (const bool first : {true, false}) last[first == small_first] = record(first == small_first ? small : large);
    Seeds<double> seeds;
    for (const Buffer<double>& q : last) seeds.add(q, q);
    const Gradients<double> g = std::move(tape).backward(seeds);
    EXPECT_EQ(g.parameters().joints.damping.items(), 70);
    EXPECT_NE(g.parameters().joints.damping(69), 0);
  }
}

TEST(SeedsDisconnected, PosesDependOnTheJointsBeforeThem) {
  Problem problem;
  problem.model = test::double_pendulum();
  const Model& model = problem.model;
  Tape<double> tape;
  RolloutOptions options;
  const State<double> state(model, 1);
  const int upper = 0;
  set_requires_grad(problem.model, "joints/*/frame/position", true);
  const Buffer<double> poses = body_poses<double>(&tape, problem.model, state.q, std::span(&upper, 1), options);
  Seeds<double> seeds;
  Buffer<double> ones(poses.rows(), 1);
  ones.fill(1);
  seeds.add(poses, ones);
  const Gradients<double> g = std::move(tape).backward(seeds, Disconnected::zero);
  ASSERT_EQ(g.disconnected().size(), 1u);
  EXPECT_EQ(g.disconnected()[0].path, "joints/" + model.joint_names[1] + "/frame/position");
  EXPECT_TRUE(g.is_connected(state.q));
}

TEST(Dependence, OfVariables) {
  Problem problem = two_trees();
  Variable variable;
  variable.kind = VariableKind::initial_position;
  variable.name = "initial_state/right/position";
  variable.joint = problem.model.find_joint("right");
  const auto reason = [&] { return disconnected_reason(problem, loss_dependence(problem), variable); };
  EXPECT_NE(reason(), nullptr);
  problem.variables = {variable};
  try {
    variable_entries(problem);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_EQ(std::string(error.what()).rfind("initial_state/right/position cannot change the loss", 0), 0u);
  }
  variable.joint = problem.model.find_joint("left");
  EXPECT_EQ(reason(), nullptr);
  variable.kind = VariableKind::control;
  EXPECT_EQ(reason(), nullptr);
  variable.joint = problem.model.find_joint("right");
  EXPECT_NE(reason(), nullptr);
  LossTerm term;
  term.quantity = LossQuantity::control;
  term.terminal = false;
  term.index = variable.joint;
  problem.loss.push_back(term);
  EXPECT_EQ(reason(), nullptr);
}

}  // namespace
}  // namespace backdrive
