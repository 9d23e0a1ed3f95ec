// Each kind of loss against its formula, its seeds against dual numbers, and the signals that controls are made of.
#include "autodiff/problem/loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "autodiff/tape/efforts.h"
#include "integrators/reference/inverse_dynamics.h"
#include "integrators/rollout/arguments.h"
#include "tests/support/batch.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"

namespace backdrive {
namespace {

using test::expect_usage_error;

constexpr int kWorlds = 3;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr EffortPart kParts[] = {EffortPart::actuator, EffortPart::command,  EffortPart::drive, EffortPart::spring,
                                 EffortPart::damping,  EffortPart::friction, EffortPart::limit, EffortPart::total};

/// A driven tree with one term of every kind.
Problem loss_problem() {
  test::TreeOptions tree;
  tree.forces = true;
  tree.fixed = false;
  Problem p;
  p.model = test::random_tree(23, tree);
  // One joint on which everything acts.
  JointParameters& joints = p.model.joints;
  joints.friction.at(3) = 0.2, joints.damping.at(3) = 0.1;
  joints.spring.stiffness.at(3) = 1.5, joints.spring.rest.at(3) = 0.2;
  joints.limit.lower.at(3) = -0.01, joints.limit.upper.at(3) = 0.01, joints.limit.stiffness.at(3) = 15;
  test::require_all(p.model);
  p.simulation.time_step = 0.01;
  p.simulation.steps = 6;
  const auto add = [&](const char* name, LossQuantity quantity, bool terminal, int index) -> LossTerm& {
    p.loss.emplace_back();
    LossTerm& term = p.loss.back();
    term.name = name;
    term.quantity = quantity;
    term.terminal = terminal;
    term.index = index;
    term.weight = 0.5 + 0.25 * static_cast<double>(p.loss.size());
    return term;
  };
  for (const bool terminal : {false, true}) {
    add("position", LossQuantity::joint_position, terminal, 2).target[0] = 0.3;
    add("circle", LossQuantity::joint_position, terminal, 0).target[0] = 2.5;
    p.loss.back().on_circle = true;
    add("velocity", LossQuantity::joint_velocity, terminal, 4).target[0] = -0.2;
    LossTerm& point = add("point", LossQuantity::body_position, terminal, 5);
    point.target = {0.2, -0.1, 0.4, 0};
    point.point = {0.1, 0.2, -0.3};
    add("orientation", LossQuantity::body_orientation, terminal, 3).target = {0.5, -0.5, 0.5, 0.5};
  }
  add("effort", LossQuantity::control, false, 1).target[0] = 0.1;
  for (const LossTerm& term : std::vector<LossTerm>(p.loss)) {
    if (term.terminal) continue;
    LossTerm window = term;
    window.name = term.name + " of steps 3 to 5";
    window.first_step = 3;
    window.last_step = 5;
    p.loss.push_back(window);
    LossTerm waypoint = window;
    waypoint.name = term.name + " at step 4";
    waypoint.first_step = waypoint.last_step = 4;
    waypoint.integral = false;
    p.loss.push_back(waypoint);
    if (term.is_control()) continue;
    // Rows before, between and at steps 2 to 6.
    waypoint.name = term.name + " on record";
    waypoint.last_step = 6;
    waypoint.first_step = 2;
    waypoint.integral = true;
    waypoint.record.times = {0.005, 0.025, 0.03, 0.055};
    for (const double s : {0.4, -0.3, 0.1, 0.8}) waypoint.record.values.push_back({s, 1 - s, s * s, 0.6});
    if (term.quantity == LossQuantity::body_orientation) {
      waypoint.record.values = {{0, 0, 0, 1}, {-0.6, 0, 0, -0.8}, {0.6, 0, 0.8, 0}, {0, 1, 0, 0}};
    }
    p.loss.push_back(waypoint);
  }
  for (const bool terminal : {false, true}) {
    LossTerm& velocity = add("point velocity", LossQuantity::body_velocity, terminal, 5);
    velocity.target = {0.2, -0.1, 0.4, 0};
    velocity.point = {0.1, 0.2, -0.3};
    add("angular velocity", LossQuantity::body_angular_velocity, terminal, 4).target = {0.3, 0.1, -0.2, 0};
    LossTerm& gap = add("distance of two", LossQuantity::distance, terminal, 5);
    gap.other = 2;
    gap.target[0] = 0.3;
    gap.point = {0.1, 0.2, -0.3}, gap.other_point = {0, -0.1, 0.2};
    add("distance from a point", LossQuantity::distance, terminal, 3).other_point = {0.4, 0.1, 0.2};
    p.loss.back().target[0] = 0;
    LossTerm& beyond = add("beyond a range", LossQuantity::joint_position, terminal, 2);
    beyond.target[0] = -0.1, beyond.upper[0] = 0.05;
    LossTerm& box = add("out of a box, one axis free", LossQuantity::body_position, terminal, 5);
    box.target = {-0.1, -kInfinity, 0.1, 0}, box.upper = {0.1, kInfinity, kNoRange};
    add("absolute", LossQuantity::body_position, terminal, 5).target = {0.2, -0.1, 0.4, 0};
    p.loss.back().measure = ErrorMeasure::absolute;
  }
  for (const EffortPart part : kParts) {
    add("effort", LossQuantity::joint_effort, false, 3).part = part;
    p.loss.back().target[0] = 0.4;
    add("power", LossQuantity::joint_power, false, 3).part = part;
    p.loss.back().target[0] = 0.4;
  }
  for (const OverTime over : {OverTime::least, OverTime::greatest}) {
    for (const char* const name : {"point velocity", "distance of two", "effort"}) {
      const auto like = [&](const LossTerm& term) { return !term.terminal && term.name == name; };
      LossTerm best = *std::ranges::find_if(p.loss, like);
      best.name += over == OverTime::least ? ", least" : ", greatest";
      best.over = over;
      p.loss.push_back(best);
    }
  }
  add("target position", LossQuantity::control, false, 3).channel = ControlChannel::target_position;
  add("target velocity", LossQuantity::control, false, 3).channel = ControlChannel::target_velocity;
  return p;
}

RolloutOptions options_of(const Problem& p) {
  RolloutOptions options;
  options.time_step = p.simulation.time_step;
  options.steps = p.simulation.steps;
  return options;
}

struct Scored {
  Problem problem = loss_problem();
  test::Batch<double> batch =
      test::random_batch<double>(problem.model, problem.simulation.steps, test::first_worlds(kWorlds), 3);
  Trajectory<double> trajectory = rollout(problem.model, batch.state, batch.control, options_of(problem));
};

/// The target at a step's end: of a record by its definition.
LossTerm with_target_of(LossTerm term, int step) {
  if (term.record.empty()) return term;
  const double time = 0.01 * step;
  const std::vector<double>& times = term.record.times;
  std::size_t k = 0;
  while (k + 2 < times.size() && times[k + 1] < time) ++k;
  const double share = std::min((time - times[k]) / (times[k + 1] - times[k]), 1.0);
  double dot = 0, square = 0;
  for (int c = 0; c < 4; ++c) dot += term.record.values[k][c] * term.record.values[k + 1][c];
  const bool turns = term.quantity == LossQuantity::body_orientation;
  for (int c = 0; c < 4; ++c) {
    const double next = turns && dot < 0 ? -term.record.values[k + 1][c] : term.record.values[k + 1][c];
    term.target[c] = (1 - share) * term.record.values[k][c] + share * next;
    square += term.target[c] * term.target[c];
  }
  for (double& x : term.target) x /= turns ? std::sqrt(square) : 1;
  return term;
}

/// How far a number is beyond a range.
double beyond(const LossTerm& term, int number, double x) {
  const auto [lower, upper] = term.range(number);
  return std::max({x - upper, lower - x, 0.0});
}

/// The square of each number's error of a term of bodies' velocities or distances, or of an effort. What these are is
/// tested by themselves (MotionsOfBodies, Efforts).
double squared_error_of_motion(const Scored& s, const LossTerm& term, int state, int world) {
  const Model& model = s.problem.model;
  const RolloutOptions options = options_of(s.problem);
  if (term.is_effort()) {
    const EffortTerm effort = effort_term(model, term.index, term.part, term.quantity == LossQuantity::joint_power);
    const double x = acting_efforts<double>(nullptr, model, {s.trajectory, s.batch.control}, std::span(&effort, 1),
                                            options)(state - 1, world);
    return beyond(term, 0, x) * beyond(term, 0, x);
  }
  State<double> states;
  states.q = s.trajectory.q;
  states.qd = s.trajectory.qd;
  const auto rows = [&](int body) {
    const Buffer<double> all = body_motions<double>(nullptr, model, states, std::span(&body, 1), options);
    return test::column(all, world, state * kMotionRows, kMotionRows);
  };
  using Vec = std::array<double, 3>;
  const auto lever = [](const std::vector<double>& m, const Vec& point) {
    Vec r{};
    for (int k = 0; k < 3; ++k) {
      for (int c = 0; c < 3; ++c) r[k] += m[3 + 3 * c + k] * point[c];
    }
    return r;
  };
  const std::vector<double> m = rows(term.index);
  const Vec r = lever(m, term.point);
  double sum = 0;
  if (term.quantity == LossQuantity::distance) {
    Vec there = term.other_point;
    if (term.other >= 0) {
      const std::vector<double> o = rows(term.other);
      const Vec turned = lever(o, term.other_point);
      for (int k = 0; k < 3; ++k) there[k] = o[k] + turned[k];
    }
    for (int k = 0; k < 3; ++k) sum += std::pow(m[k] + r[k] - there[k], 2);
    return std::pow(beyond(term, 0, std::sqrt(sum)), 2);
  }
  for (int k = 0; k < 3; ++k) {
    const int a = (k + 1) % 3, b = (k + 2) % 3;
    const bool turning = term.quantity == LossQuantity::body_angular_velocity;
    const double x = turning ? m[15 + k] : m[12 + k] + m[15 + a] * r[b] - m[15 + b] * r[a];
    sum += std::pow(beyond(term, k, x), 2);
  }
  return sum;
}

/// error² of a term in one state, from its definition.
double error_of(const Scored& s, const LossTerm& of, int state, int world) {
  const LossTerm term = with_target_of(of, state);
  if (term.is_effort() || term.is_motion() || term.quantity == LossQuantity::distance) {
    return squared_error_of_motion(s, term, state, world);
  }
  const Topology& t = s.problem.model.topology;
  const bool joint = term.quantity != LossQuantity::body_position && term.quantity != LossQuantity::body_orientation;
  if (joint) {
    const Link& link = t.links[s.problem.model.link_of_joint(term.index)];
    double x = 0;
    if (term.quantity == LossQuantity::joint_position) x = s.trajectory.q(state * t.nq + link.q, world);
    if (term.quantity == LossQuantity::joint_velocity) x = s.trajectory.qd(state * t.nv + link.v, world);
    if (term.quantity == LossQuantity::control) {
      const int channel = static_cast<int>(term.channel);
      x = s.batch.control.u(state * t.nu + (channel == 0 ? link.v : link.target + channel - 1), world);
    }
    if (term.on_circle) return 2 - 2 * std::cos(x - term.target[0]);
    return std::pow(beyond(term, 0, x), 2);
  }
  const auto poses = reference::body_poses(s.problem.model, test::column(s.trajectory.q, world, state * t.nq, t.nq));
  const auto& pose = poses[term.index];
  double sum = 0;
  if (term.quantity == LossQuantity::body_position) {
    for (int k = 0; k < 3; ++k) {
      double x = pose.position[k];
      for (int c = 0; c < 3; ++c) x += pose.rotation[3 * c + k] * term.point[c];
      sum += std::pow(beyond(term, k, x), 2);
    }
    return sum;
  }
  // ½ |R − R*|² (Frobenius) = 3 − tr(R*ᵀ R)
  const double x = term.target[0], y = term.target[1], z = term.target[2], w = term.target[3];
  const double goal[9] = {1 - 2 * (y * y + z * z), 2 * (x * y + z * w),     2 * (x * z - y * w),
                          2 * (x * y - z * w),     1 - 2 * (x * x + z * z), 2 * (y * z + x * w),
                          2 * (x * z + y * w),     2 * (y * z - x * w),     1 - 2 * (x * x + y * y)};
  for (int k = 0; k < 9; ++k) sum += 0.5 * (pose.rotation[k] - goal[k]) * (pose.rotation[k] - goal[k]);
  return sum;
}

TEST(Loss, EveryTermIsWhatItSays) {
  const Scored s;
  const LossResult<double> loss =
      evaluate_loss<double>(s.problem, s.trajectory, s.batch.control, options_of(s.problem), nullptr);
  EXPECT_TRUE(loss.seeds.entries().empty());
  ASSERT_EQ(loss.terms.rows(), static_cast<int>(s.problem.loss.size()));
  const int steps = s.problem.simulation.steps;
  for (int w = 0; w < kWorlds; ++w) {
    double total = 0;
    for (std::size_t k = 0; k < s.problem.loss.size(); ++k) {
      const LossTerm& term = s.problem.loss[k];
      const bool control = term.quantity == LossQuantity::control;
      const auto cost = [&](int state) {
        const double square = error_of(s, term, state, w);
        return term.weight * (term.measure == ErrorMeasure::squared ? square : std::sqrt(square));
      };
      double want = 0, least = kInfinity, greatest = 0;
      if (term.terminal) {
        want = cost(steps);
      } else {  // after each step; a control during it
        for (int step = term.first_step; step <= std::min(term.last_step, steps); ++step) {
          const double now = cost(control ? step - 1 : step);
          want += now * (term.integral ? 0.01 : 1);
          least = std::min(least, now);
          greatest = std::max(greatest, now);
        }
        if (term.over == OverTime::least) want = least;
        if (term.over == OverTime::greatest) want = greatest;
      }
      EXPECT_NEAR(loss.terms(static_cast<int>(k), w), want, 1e-13 * (1 + want)) << term.name;
      EXPECT_GT(want, 1e-6) << term.name;
      total += loss.terms(static_cast<int>(k), w);
    }
    EXPECT_NEAR(loss.total(0, w), total, 1e-14 * total);
  }
}

/// Σ over worlds of the total along a direction in states and controls, by dual numbers.
double derivative(const Problem& p, const State<Dual<double>>& state, const Control<Dual<double>>& control,
                  const Parameters* direction) {
  RolloutOptions options = options_of(p);
  options.direction = direction;
  const auto t = rollout(p.model, state, control, options);
  const auto loss = evaluate_loss<Dual<double>>(p, t, control, options, nullptr);
  double sum = 0;
  for (int w = 0; w < kWorlds; ++w) sum += loss.total(0, w).dot;
  return sum;
}

void randomise_dots(Buffer<Dual<double>>& to, const Buffer<double>& from, test::Random& random, double size) {
  for (int r = 0; r < from.rows(); ++r) {
    for (int w = 0; w < from.worlds(); ++w) to.set(r, w, {from(r, w), random.symmetric(size)});
  }
}

double product(const Buffer<double>& g, const Buffer<Dual<double>>& v) {
  double sum = 0;
  for (int r = 0; r < g.rows(); ++r) {
    for (int w = 0; w < g.worlds(); ++w) sum += g(r, w) * v(r, w).dot;
  }
  return sum;
}

// Every term alone and all together: seeds through the tape against dual numbers.
TEST(Loss, SeedsGiveTheExactGradient) {
  Scored s;
  const std::vector<LossTerm> all = s.problem.loss;
  for (std::size_t k = 0; k <= all.size(); ++k) {
    if (k < all.size()) {
      s.problem.loss = {all[k]};
    } else {
      s.problem.loss = all;
    }
    Tape<double> tape;
    const auto t = rollout(tape, s.problem.model, s.batch.state, s.batch.control, options_of(s.problem));
    const auto loss = evaluate_loss(s.problem, t, s.batch.control, options_of(s.problem), &tape);
    const Gradients<double> g = std::move(tape).backward(loss.seeds, Disconnected::zero);
    test::Random random(k);
    State<Dual<double>> state(s.problem.model, kWorlds);
    Control<Dual<double>> control(s.problem.model, s.problem.simulation.steps, kWorlds);
    randomise_dots(state.q, s.batch.state.q, random, 1);
    randomise_dots(state.qd, s.batch.state.qd, random, 1);
    randomise_dots(control.u, s.batch.control.u, random, 1);
    Parameters direction = zero_parameters(s.problem.model);
    for (int b = 0; b < 6; ++b) direction.bodies.mass.set(b, 0, random.symmetric(1));
    double got = product(g.of(s.batch.state.q), state.q) + product(g.of(s.batch.state.qd), state.qd) +
                 product(g.of(s.batch.control.u), control.u);
    for (int b = 0; b < 6; ++b) got += g.parameters().bodies.mass(b) * direction.bodies.mass(b);
    const double want = derivative(s.problem, state, control, &direction);
    const double tolerance = 1e-12 * (1 + std::abs(want));
    EXPECT_NEAR(got, want, tolerance) << (k < all.size() ? all[k].name : "all");
    EXPECT_GT(std::abs(want), 1e-5) << (k < all.size() ? all[k].name : "all");
    if (k == all.size() || all[k].first_step == 1) continue;
    // A window, or a record, that is a step off would be seen.
    --s.problem.loss[0].first_step;
    --s.problem.loss[0].last_step;
    EXPECT_GT(std::abs(derivative(s.problem, state, control, &direction) - want), 1e3 * tolerance) << all[k].name;
  }
}

TEST(Loss, AWaypointAtTheEndIsATerminalTerm) {
  Scored s;
  std::vector<LossTerm>& terms = s.problem.loss;
  std::erase_if(terms, [](const LossTerm& term) { return !term.terminal; });
  for (const LossTerm& term : std::vector<LossTerm>(terms)) {
    terms.push_back(term);
    terms.back().terminal = terms.back().integral = false;
    terms.back().first_step = terms.back().last_step = s.problem.simulation.steps;
  }
  const auto loss = evaluate_loss<double>(s.problem, s.trajectory, s.batch.control, options_of(s.problem), nullptr);
  const int half = static_cast<int>(terms.size()) / 2;
  ASSERT_EQ(loss.terms.rows(), 2 * half);
  for (int k = 0; k < half; ++k) EXPECT_EQ(loss.terms(k, 0), loss.terms(k + half, 0)) << terms[k].name;
}

TEST(Loss, WindowsAddUpToTheWholeRun) {
  Scored s;
  const LossTerm whole = s.problem.loss[3];
  ASSERT_EQ(whole.name, "point");
  LossTerm first = whole, second = whole;
  first.last_step = 2;
  second.first_step = 3;
  second.last_step = 100;  // ends with the run
  s.problem.loss = {whole, first, second};
  const auto loss = evaluate_loss<double>(s.problem, s.trajectory, s.batch.control, options_of(s.problem), nullptr);
  EXPECT_NEAR(loss.terms(0, 0), loss.terms(1, 0) + loss.terms(2, 0), 1e-15);
  EXPECT_GT(loss.terms(1, 0), 0);
  EXPECT_GT(loss.terms(2, 0), 0);
}

// A full turn away is at the target; half a turn is worst, and flat there.
TEST(Loss, AnglesAreComparedOnTheCircle) {
  Problem p;
  p.model = test::pendulum();
  p.simulation.steps = 1;
  p.simulation.time_step = 1e-9;
  LossTerm term;
  term.on_circle = true;
  term.target[0] = 0.5;
  p.loss = {term};
  const auto loss_at = [&](double angle) {
    p.initial_position = {angle};
    p.initial_velocity = {0};
    const auto t = rollout<double>(p.model, initial_state<double>(p, 1), {}, options_of(p));
    return evaluate_loss<double>(p, t, {}, options_of(p), nullptr).total(0, 0);
  };
  EXPECT_NEAR(loss_at(0.5 + 2 * M_PI), 0, 1e-15);
  EXPECT_NEAR(loss_at(0.5 - 6 * M_PI), 0, 1e-14);
  EXPECT_NEAR(loss_at(0.5 + M_PI), 4, 1e-14);
  EXPECT_NEAR(loss_at(0.51), 1e-4, 1e-8);
}

TEST(Loss, AStoppedWorldHasNoLossAndSpoilsNoOther) {
  Scored s;
  const auto good = evaluate_loss<double>(s.problem, s.trajectory, s.batch.control, options_of(s.problem), nullptr);
  Tape<double> tape;
  s.batch.state.qd.set(1, 1, std::numeric_limits<double>::quiet_NaN());
  const auto t = rollout(tape, s.problem.model, s.batch.state, s.batch.control, options_of(s.problem));
  const auto loss = evaluate_loss(s.problem, t, s.batch.control, options_of(s.problem), &tape);
  EXPECT_TRUE(std::isnan(loss.total(0, 1)));
  for (int k = 0; k < loss.terms.rows(); ++k) EXPECT_TRUE(std::isnan(loss.terms(k, 1)));
  for (const int w : {0, 2}) EXPECT_TRUE(test::same_bits(loss.terms, w, good.terms, w));
  const Gradients<double> g = std::move(tape).backward(loss.seeds);
  EXPECT_TRUE(std::isnan(g.of(s.batch.state.q)(0, 1)));
  EXPECT_TRUE(std::isfinite(g.of(s.batch.state.q)(0, 0)));
  EXPECT_TRUE(std::isfinite(g.parameters().bodies.mass(0)));
  EXPECT_EQ(g.stopped_worlds(), 1);
}

TEST(Loss, WithoutControlsItsTermsScoreZero) {
  const Scored s;
  const auto t = rollout<double>(s.problem.model, s.batch.state, {}, options_of(s.problem));
  const auto loss = evaluate_loss<double>(s.problem, t, {}, options_of(s.problem), nullptr);
  const std::size_t effort = 10;  // behind what is scored at the end and on the way
  ASSERT_EQ(s.problem.loss[effort].name, "effort");
  EXPECT_NEAR(loss.terms(effort, 0), s.problem.loss[effort].weight * 6 * 0.01 * 0.1 * 0.1, 1e-16);
}

TEST(Loss, WhatCannotBeScoredIsAnError) {
  Scored s;
  RolloutOptions options = options_of(s.problem);
  options.keep_states = false;
  const auto end = rollout(s.problem.model, s.batch.state, s.batch.control, options);
  expect_usage_error([&] { evaluate_loss<double>(s.problem, end, s.batch.control, options, nullptr); },
                     {"running loss", "keeps its states"});
  // Terminal terms and controls need none.
  std::erase_if(s.problem.loss, [](const LossTerm& t) { return !t.terminal && t.quantity != LossQuantity::control; });
  EXPECT_GT(evaluate_loss<double>(s.problem, end, s.batch.control, options, nullptr).total(0, 0), 0);
  s.problem.loss.back().terminal = true;
  expect_usage_error([&] { evaluate_loss<double>(s.problem, end, s.batch.control, options, nullptr); },
                     {"no terminal value", "target velocity"});
  s = Scored();
  s.problem.loss[0].first_step = 0;
  const auto score = [&] {
    evaluate_loss<double>(s.problem, s.trajectory, s.batch.control, options_of(s.problem), nullptr);
  };
  expect_usage_error(score, {"steps 0 to", "counted from 1"});
  s.problem.loss[0].first_step = 4;
  s.problem.loss[0].last_step = 3;
  expect_usage_error(score, {"steps 4 to 3", "one step or more"});
  s.problem.loss = {s.problem.loss[5]};
  s.problem.loss[0].record = {{0}, {{1}}};
  expect_usage_error(score, {"a record is followed on the way"});
}

// ---- signals
// -----------------------------------------------------------------------------------------------------------

TEST(Knots, AreSpreadFromTheFirstToTheLastStep) {
  const auto value = [](const std::vector<double>& knots, int steps, int step, bool hold) {
    const KnotWeights k = knot_weights(static_cast<int>(knots.size()), steps, step, hold);
    EXPECT_NEAR(k.first_weight + k.second_weight, 1, 1e-15);
    return k.first_weight * knots[k.first] + k.second_weight * knots[k.second];
  };
  for (const int step : {0, 3, 9}) EXPECT_EQ(value({7}, 10, step, false), 7);
  for (const int step : {0, 3, 8}) EXPECT_NEAR(value({0, 4, 8}, 9, step, false), step, 1e-14);
  EXPECT_EQ(value({0, 4, 8}, 9, 8, false), 8);
  for (const int step : {0, 1, 2, 3}) EXPECT_EQ(value({5, 6, 7, 8}, 4, step, false), 5 + step);
  const std::vector<double> held{1, 2, 3};
  const std::vector<double> want{1, 1, 1, 2, 2, 2, 3, 3, 3};
  for (int step = 0; step < 9; ++step) EXPECT_EQ(value(held, 9, step, true), want[step]);
  EXPECT_EQ(value({4, 5}, 1, 0, false), 4);
}

TEST(Knots, SignalsFillTheirChannel) {
  Problem p = loss_problem();
  const Topology& t = p.model.topology;
  p.simulation.steps = 5;
  p.controls = {{1, ControlChannel::effort, {2}, false},
                {3, ControlChannel::target_position, {0, 4}, false},
                {3, ControlChannel::target_velocity, {1, 2, 3, 4, 5}, false}};
  const Control<double> control = initial_control<double>(p, 2);
  const Link &effort = t.links[p.model.link_of_joint(1)], &driven = t.links[p.model.link_of_joint(3)];
  ASSERT_GE(driven.target, 0);
  for (int step = 0; step < 5; ++step) {
    for (int w = 0; w < 2; ++w) {
      for (int r = 0; r < t.nu; ++r) {
        double want = 0;
        if (r == effort.v) want = 2;
        if (r == driven.target) want = step;
        if (r == driven.target + 1) want = step + 1;
        EXPECT_NEAR(control.u(step * t.nu + r, w), want, 1e-14) << "step " << step << " channel " << r;
      }
    }
  }
}

TEST(Knots, InitialStateIsThatOfEveryWorld) {
  Problem p = loss_problem();
  for (int i = 0; i < 6; ++i) p.initial_position.push_back(i), p.initial_velocity.push_back(-i);
  const State<float> state = initial_state<float>(p, 20);
  for (int w = 0; w < 20; ++w) {
    for (int i = 0; i < 6; ++i) {
      EXPECT_EQ(state.q(i, w), i);
      EXPECT_EQ(state.qd(i, w), -i);
    }
  }
}

}  // namespace
}  // namespace backdrive
