// Losses of a body that touches: where it is and what force acts, over a part of the run and at one time.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "autodiff/problem/loss.h"
#include "models/builder.h"
#include "tests/support/batch.h"
#include "tests/support/models.h"

namespace backdrive {
namespace {

constexpr int kSteps = 60, kTouch = 25;

LossTerm term_of(LossQuantity quantity, double weight) {
  LossTerm term;
  term.quantity = quantity;
  term.terminal = false;
  term.target = {0.1, 0.2, 3, 0};
  term.weight = weight;
  return term;
}

/// A ball on a slanting slider that hits the floor, slides on it and stops; scored while it touches.
Problem landing() {
  ModelBuilder builder;
  const int ball = builder.add_body("ball", {});
  JointOptions joint;
  joint.axis = {1, 0.2, -0.5};
  builder.add_joint("slide", JointType::prismatic, ModelBuilder::world, ball, joint);
  ShapeOptions shape;
  shape.type = GeometryType::sphere;
  shape.scale = {0.05, 0, 0};
  shape.density = 900;
  builder.add_shape("ball", ball, shape);
  ShapeOptions floor;
  floor.type = GeometryType::plane;
  floor.frame.position = {0, 0, -0.07};
  builder.add_shape("floor", ModelBuilder::world, floor);
  Problem p;
  p.model = builder.build();
  test::require_all(p.model);
  p.simulation = {0.002, kSteps};
  p.initial_position = {0};
  p.initial_velocity = {1};
  p.loss = {term_of(LossQuantity::contact_force, 1e-3), term_of(LossQuantity::body_position, 2),
            term_of(LossQuantity::joint_velocity, 3)};
  for (const LossTerm& whole : std::vector<LossTerm>(p.loss)) {
    LossTerm term = whole;
    term.first_step = kTouch;
    term.last_step = kTouch + 13;
    p.loss.push_back(term);
    term.last_step = term.first_step += 5;
    term.integral = false;
    p.loss.push_back(term);
  }
  for (std::size_t k = 0; k < p.loss.size(); ++k) p.loss[k].name = "term " + std::to_string(k);
  return p;
}

RolloutOptions options_of(const Problem& p) {
  RolloutOptions options;
  options.time_step = p.simulation.time_step;
  options.steps = p.simulation.steps;
  options.keep_contact = true;
  return options;
}

struct Result {
  Buffer<double> terms, q, qd;
  double friction;
};

Result gradient(const Problem& p, const MemoryPlan& plan) {
  RolloutOptions options = options_of(p);
  options.plan = plan;
  const State<double> state = initial_state<double>(p, 1);
  const Control<double> control = initial_control<double>(p, 1);
  Tape<double> tape;
  std::shared_ptr<LossObserver<double>> observer;
  if (!plan.keeps_all()) observer = observe_loss<double>(p, control, options, 1, default_memory());
  const Trajectory<double> t = rollout(tape, p.model, state, control, options, observer);
  const LossResult<double> loss = evaluate_loss(p, t, control, options, &tape, observer.get());
  const Gradients<double> g = std::move(tape).backward(loss.seeds, Disconnected::zero);
  return {loss.terms, g.of(state.q), g.of(state.qd), g.parameters().shapes.material.friction(0)};
}

/// Along a change of the initial velocity and of the ball's friction, by dual numbers.
double derivative(const Problem& p) {
  Parameters direction = zero_parameters(p.model);
  direction.shapes.material.friction.set(0, 0, 0.4);
  RolloutOptions options = options_of(p);
  options.direction = &direction;
  State<Dual<double>> state = initial_state<Dual<double>>(p, 1);
  state.qd.set(0, 0, {p.initial_velocity[0], 1});
  const auto t = rollout<Dual<double>>(p.model, state, {}, options);
  return evaluate_loss<Dual<double>>(p, t, {}, options, nullptr).total(0, 0).dot;
}

TEST(ContactLoss, EveryTermHasTheExactGradient) {
  Problem p = landing();
  const std::vector<LossTerm> all = p.loss;
  for (const LossTerm& term : all) {
    p.loss = {term};
    const Result g = gradient(p, {});
    const double want = derivative(p), tolerance = 1e-10 * (1 + std::abs(want));
    EXPECT_NEAR(g.qd(0, 0) + 0.4 * g.friction, want, tolerance) << term.name;
    EXPECT_GT(std::abs(want), 1e-4) << term.name;
    EXPECT_NE(g.friction, 0) << term.name;
    if (term.first_step == 1) continue;
    --p.loss[0].first_step;  // a window that is a step off would be seen
    --p.loss[0].last_step;
    EXPECT_GT(std::abs(derivative(p) - want), 100 * tolerance) << term.name;
  }
}

// Windows that begin and end within pieces of the rollout.
TEST(SeedsContactLoss, SameBitsForEveryPlan) {
  const Problem p = landing();
  const Result all = gradient(p, {});
  for (const MemoryPlan& plan : {MemoryPlan{60, 0}, {7, 9}, {7, 2}, {1, 5}, {29, 0}, {13, 1}}) {
    const Result pieces = gradient(p, plan);
    EXPECT_TRUE(test::same_bits(all.terms, pieces.terms)) << plan.piece;
    EXPECT_TRUE(test::same_bits(all.q, pieces.q)) << plan.piece;
    EXPECT_TRUE(test::same_bits(all.qd, pieces.qd)) << plan.piece;
    EXPECT_EQ(all.friction, pieces.friction) << plan.piece;
  }
}

// The force of a step is that of the contact that its trajectory tells of.
TEST(ContactLoss, ScoresTheStepsOfItsWindow) {
  const Problem p = landing();
  const RolloutOptions options = options_of(p);
  const Trajectory<double> t = rollout<double>(p.model, initial_state<double>(p, 1), {}, options);
  const auto loss = evaluate_loss<double>(p, t, {}, options, nullptr);
  const auto error = [&](int step) {  // from 1
    double sum = 0;
    for (int k = 0; k < 3; ++k) sum += std::pow(t.contact((step - 1) * kContactRows + k, 0) - p.loss[0].target[k], 2);
    return sum;
  };
  for (std::size_t k = 0; k < p.loss.size(); ++k) {
    const LossTerm& term = p.loss[k];
    if (!term.is_contact()) continue;
    double want = 0;
    for (int step = term.first_step; step <= std::min(term.last_step, kSteps); ++step) want += error(step);
    want *= 1e-3 * (term.integral ? 0.002 : 1);
    EXPECT_NEAR(loss.terms(static_cast<int>(k), 0), want, 1e-12 * want) << term.name;
  }
  EXPECT_EQ(t.contact(2, 0), 0);
  EXPECT_GT(std::abs(t.contact((kTouch + 5) * kContactRows, 0)), 0.1) << "touches and slides";
}

}  // namespace
}  // namespace backdrive
