// Trees that whip: (21)-(22) of docs/theory.md.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>
#include <string>

#include "autodiff/tape/stepper.h"
#include "integrators/reference/inverse_dynamics.h"
#include "tests/support/batch.h"
#include "tests/support/gradient_case.h"
#include "tests/support/models.h"
#include "tests/support/thrown_chain.h"

namespace backdrive {
namespace {

using test::chain_of, test::chain_on_floor;

/// A state whose velocities are ±(0.5 to 1.5) times `speed`.
template <class T>
State<T> fast_state(const Model& model, double speed, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> draw(0.5, 1.5);
  State<T> state(model, 1);
  for (int k = 0; k < model.topology.nv; ++k) {
    const double sign = generator() % 2 ? 1 : -1;
    state.qd.set(k, 0, static_cast<T>(sign * speed * draw(generator)));
  }
  return state;
}

/// What a run adds to its kinetic energy, read with q of each step's start and the velocity that the step makes of it,
/// over what it is in the first step: at most in a step, and at most over all.
struct Gain {
  double of_a_step = 0, of_all = 0;
};
template <class T>
Gain gain(const Model& model, double speed, double time_step, int steps, unsigned seed) {
  const Topology& t = model.topology;
  RolloutOptions options;
  options.time_step = time_step;
  options.steps = steps;
  const Trajectory<T> run = rollout<T>(model, fast_state<T>(model, speed, seed), {}, options);
  if (run.any_stopped()) return {INFINITY, INFINITY};
  Gain result;
  double first = 0, before = 0;
  for (int step = 0; step < steps; ++step) {
    std::vector<double> q, qd;
    for (int k = 0; k < t.nq; ++k) q.push_back(run.q(step * t.nq + k, 0));
    for (int k = 0; k < t.nv; ++k) qd.push_back(run.qd((step + 1) * t.nv + k, 0));
    const double energy = reference::kinetic_energy(model, q, qd);
    if (step == 0) first = before = energy;
    result.of_a_step = std::max(result.of_a_step, (energy - before) / first);
    result.of_all = std::max(result.of_all, energy / first - 1);
    before = energy;
  }
  return result;
}

/// visit(model, words) for chains whose roots are held by a hinge or a ball, or fly.
template <class Visit>
void each_chain(int links, const Visit& visit) {
  for (const JointType first : {JointType::revolute, JointType::ball, JointType::free}) {
    for (const JointType other : {JointType::revolute, JointType::ball}) {
      visit(chain_of(links, first, other), std::string(to_string(first)) + " and " + std::string(to_string(other)));
    }
  }
}

// λ is 1 with so many fast pairs. 1e-12: rounding of float64 over twenty links.
TEST(Whip, NoStepFeedsAMotionThatIsFastEnough) {
  for (const double speed : {100.0, 200.0, 400.0}) {
    each_chain(20, [&](const Model& model, const std::string& words) {
      for (unsigned seed = 0; seed < 4; ++seed) {
        EXPECT_LE(gain<double>(model, speed, 1.0 / 240, 12, seed).of_a_step, 1e-12) << words << " at " << speed;
        EXPECT_LE(gain<float>(model, speed, 1.0 / 240, 12, seed).of_a_step, 1e-4) << words << " at " << speed;
      }
    });
  }
}

// At any speed and step: what (1) and (24) feed slow ones stays below a few times what they begin with. By themselves
// they let most of these grow without bound. Of 24 seeds two of 4,320 that are followed come to 3.3 and 4.5 times, and
// one of 2,592 others to 560 times; which, is chance of the last digits.
TEST(Whip, MotionsKeepToTheirEnergy) {
  Gain most, lost;
  for (const int links : {2, 3, 20}) {
    for (const double speed : {3.0, 10.0, 30.0, 100.0}) {
      for (const double rate : {5.0, 60.0, 240.0, 1000.0}) {
        each_chain(links, [&](const Model& model, const std::string& words) {
          for (unsigned seed = 0; seed < 4; ++seed) {
            const Gain g = gain<double>(model, speed, 1 / rate, static_cast<int>(2 * rate), seed);
            const bool followed = speed / rate < 0.5;  // else turns of up to 30 rad in a step
            Gain& of = followed ? most : lost;
            of.of_all = std::max(of.of_all, g.of_all);
            EXPECT_LT(g.of_all, followed ? 6 : 100) << links << " " << words << " at " << speed << ", " << rate << "/s";
          }
        });
      }
    }
  }
  std::printf(
      "chains of 2, 3 and 20 links, 3 to 100 rad/s, 5 to 1,000/s: of their energy gained %.2g, with turns of "
      "more than half a radian in a step %.2g\n",
      most.of_all, lost.of_all);
}

// What moved q is half a kick behind q̇, and where bodies were is worked out from it. Among the throws are those that
// came to 1.4 times when what the step before was like had to be guessed (hinges), to 1.5 with friction against slips
// that q̇ says, to 1.12 where arcs lifted them, and 1.13 with kicks at the middle of what q̇ makes of a step (balls).
// 1e-3 is what docs/contact.md promises; a flight strays by 2e-4 at 120/s.
TEST(Whip, KicksDoNotFeedThem) {
  const JointType hinge = JointType::revolute, ball = JointType::ball;
  std::vector<test::ChainThrow> throws{{hinge, 240, 101}, {hinge, 240, 107}, {hinge, 480, 101}, {ball, 120, 103},
                                       {ball, 120, 1106}, {ball, 120, 1129}, {ball, 240, 1106}, {ball, 240, 5014},
                                       {ball, 120, 5079}, {hinge, 1000, 0},  {ball, 1000, 0}};
  for (unsigned seed = 0; seed < 4; ++seed) throws.push_back({hinge, 240, seed}), throws.push_back({ball, 240, seed});
  double most = 0, forgetful = 0;
  for (test::ChainThrow what : throws) {
    const double energy = test::energy_of(what).most;
    most = std::max(most, energy);
    EXPECT_LT(energy, 1.001) << to_string(what.other) << ", " << what.rate << "/s, " << what.seed;
    what.forgets = true;
    if (what.seed < 100 && what.rate < 500) forgetful = std::max(forgetful, test::energy_of(what).most);
  }
  EXPECT_GT(forgetful, 100);
  std::printf("chains of 20 thrown on a floor: %.5f of their energy at most, %.3g where kicks are forgotten\n", most,
              forgetful);
}

/// How far from the parabola of its first step the common centre of mass of a chain comes to lie in twenty at 1/240 s,
/// high above anything, with `fall` the acceleration of its weight.
double off_its_parabola(const Model& model, double speed, double fall, unsigned seed) {
  State<double> start = fast_state<double>(model, speed, seed);
  start.q.set(6, 0, 100);
  RolloutOptions options;
  options.time_step = 1.0 / 240;
  options.steps = 20;
  const Trajectory<double> run = rollout<double>(model, start, {}, options);
  const int count = static_cast<int>(model.body_names.size());
  std::vector<int> bodies(count);
  std::iota(bodies.begin(), bodies.end(), 0);
  const Buffer<double> poses = body_poses<double>(nullptr, model, run.q, bodies, options);
  const auto centre = [&](int state) {  // of links that are alike, 0.07 m below their origins
    Vec3<double> sum{0, 0, 0};
    for (int b = 0; b < count; ++b) {
      const auto at = [&](int k) { return poses((state * count + b) * kPoseRows + k, 0); };
      sum += Vec3<double>{at(0) - 0.07 * at(9), at(1) - 0.07 * at(10), at(2) - 0.07 * at(11)} * (1.0 / count);
    }
    return sum;
  };
  const double steps = options.steps - 1;
  Vec3<double> off = centre(options.steps) - centre(1) - (centre(2) - centre(1)) * steps;
  off.z -= 0.5 * steps * (steps - 1) * fall * options.time_step * options.time_step;
  return std::sqrt(dot(off, off));
}

// (27), with λ = 1, to the rounding of a hundred metres in twenty steps. Chains that can touch nothing go by arcs,
// which shows that the test can tell.
TEST(Whip, CentresOfMassFlyOnParabolas) {
  for (const JointType other : {JointType::revolute, JointType::ball}) {
    const Model over_a_floor = chain_on_floor(20, other), alone = chain_of(20, JointType::free, other);
    for (unsigned seed = 0; seed < 3; ++seed) {
      EXPECT_LT(off_its_parabola(over_a_floor, 60, -9.81, seed), 1e-11) << to_string(other) << ", " << seed;
      EXPECT_GT(off_its_parabola(alone, 60, 0, seed), 0.01) << to_string(other) << ", " << seed;
    }
  }
}

// A state knows what moved it there: parts of a run are the run, and so are single steps.
TEST(Whip, RunsGoOnFromTheirStates) {
  const Model model = chain_on_floor(6, JointType::revolute);
  const int nv = model.topology.nv;
  RolloutOptions options;
  options.steps = 60;
  const State<double> start = fast_state<double>(model, 30, 1);
  const Trajectory<double> whole = rollout<double>(model, start, {}, options);
  const auto kicked = [&](int state) {
    for (int k = 0; k < nv; ++k) {
      if (whole.reported(state * nv + k, 0) != whole.qd(state * nv + k, 0)) return true;
    }
    return false;
  };
  int first = 1;
  while (first < options.steps && !kicked(first)) ++first;
  ASSERT_LT(first, options.steps);
  options.steps = first;
  State<double> between = rollout<double>(model, start, {}, options).final;
  options.steps = 60 - first;
  const State<double> parts = rollout<double>(model, between, {}, options).final;
  Stepper<double> stepper(model, detach(start), {}, options.time_step);
  for (int step = 0; step < 60; ++step) stepper.step();
  for (const State<double>* const other : {&parts, &stepper.state()}) {
    EXPECT_TRUE(test::same_bits(whole.final.q, other->q));
    EXPECT_TRUE(test::same_bits(whole.final.qd, other->qd));
    EXPECT_TRUE(test::same_bits(whole.final_reported, other->reported()));
    ASSERT_EQ(other->ways().rows(), 1);
    EXPECT_TRUE(test::same_bits(whole.final.ways(), other->ways()));
  }
  // Where the last kick is forgotten it is another; it is where somebody has written to the state.
  between.q.set(0, 0, between.q(0, 0));
  EXPECT_TRUE(between.reported().empty() && between.ways().empty());
  EXPECT_FALSE(test::same_bits(whole.final.q, rollout<double>(model, between, {}, options).final.q));
}

/// ∂(Σ q(T))/∂(q, q̇)(0), of a run that is recorded as `record` does.
template <class Record>
std::vector<Buffer<double>> gradient_of_end(const Model& model, const Record& record) {
  const State<double> start = fast_state<double>(model, 30, 1);
  Tape<double> tape;
  const State<double> end = record(tape, start);
  Buffer<double> ones(model.topology.nq, 1);
  ones.fill(1);
  Seeds<double> seeds;
  seeds.add(end.q, ones);
  const Gradients<double> g = std::move(tape).backward(seeds);
  return {g.of(start.q), g.of(start.qd)};
}

// And so is its gradient, by every plan to the last bit.
TEST(Whip, GradientsOfPartsAreThoseOfTheRun) {
  const Model model = chain_on_floor(6, JointType::ball);
  const auto by_plan = [&](const MemoryPlan& plan) {
    return gradient_of_end(model, [&](Tape<double>& tape, const State<double>& start) {
      RolloutOptions options;
      options.steps = 30;
      options.plan = plan;
      return rollout(tape, model, start, {}, options).final;
    });
  };
  const std::vector<Buffer<double>> whole = by_plan({});
  for (const MemoryPlan& plan : {MemoryPlan{7, 9}, MemoryPlan{7, 1}, MemoryPlan{1, 3}, MemoryPlan{30, 0}}) {
    const std::vector<Buffer<double>> parts = by_plan(plan);
    EXPECT_TRUE(test::same_bits(whole[0], parts[0]));
    EXPECT_TRUE(test::same_bits(whole[1], parts[1]));
  }
  const std::vector<Buffer<double>> steps = gradient_of_end(model, [&](Tape<double>& tape, const State<double>& start) {
    State<double> now = start;
    for (int k = 0; k < 30; ++k) now = step(tape, model, now, {}, {});
    return now;
  });
  double most = 0;
  for (int k = 0; k < model.topology.nv; ++k) most = std::max(most, std::abs(whole[1](k, 0)));
  // Only what two rows receive at the start is added in another order.
  for (int k = 0; k < model.topology.nv; ++k) EXPECT_NEAR(whole[1](k, 0), steps[1](k, 0), 1e-13 * most);
}

// Against (1) at a step so small that it is all there is: an error that goes with the step. Of a chain that may touch
// something, for which λ is 1 where turns are small enough that an order shows.
TEST(Whip, TheMotionIsThatOfTheEquations) {
  for (const JointType other : {JointType::revolute, JointType::ball}) {
    const Model model = chain_on_floor(3, other);
    const auto end_at = [&](double dt) {
      RolloutOptions options;
      options.time_step = dt;
      options.steps = static_cast<int>(std::lround(0.006 / dt));
      State<double> state = fast_state<double>(model, 150, 2);
      state.q.set(6, 0, 100);
      const Trajectory<double> run = rollout<double>(model, state, {}, options);
      std::vector<double> q;
      for (int k = 0; k < model.topology.nq; ++k) q.push_back(run.final.q(k, 0));
      return q;
    };
    const std::vector<double> exact = end_at(1e-6), coarse = end_at(4e-4), fine = end_at(2e-4);
    double coarse_error = 0, fine_error = 0;
    for (std::size_t k = 0; k < exact.size(); ++k) {
      coarse_error = std::max(coarse_error, std::abs(coarse[k] - exact[k]));
      fine_error = std::max(fine_error, std::abs(fine[k] - exact[k]));
    }
    EXPECT_NEAR(std::log2(coarse_error / fine_error), 1, 0.25) << to_string(other);
    EXPECT_LT(fine_error, 0.2) << to_string(other);
  }
}

// A mechanism of every kind of joint, thrown so that it whips: gradients of everything, by the adjoint and by dual
// numbers.
TEST(Whip, GradientsAgreeWithDuals) {
  ModelBuilder builder;
  const auto body = [&](const char* name) {
    builder.add_body(name, {0.8, {0.05, -0.02, 0.03}, {0.01, 0.012, 0.015, 0.001, -0.002, 0.0015}});
  };
  for (const char* const name : {"hip", "thigh", "slide", "weld", "socket", "cross", "rotor", "blade"}) body(name);
  for (const char* const name : {"flyer", "arm", "hand"}) body(name);
  const Frame frame{{0.02, 0.05, -0.1}, {0.1, 0.2, -0.3, 0.9}};
  builder.add_joint("hip", JointType::revolute, ModelBuilder::world, 0, {.frame = frame, .axis = {0, 1, 0}});
  builder.add_joint("thigh", JointType::revolute, 0, 1, {.frame = frame, .axis = {0.3, 0.1, 1}});
  builder.add_joint("slide", JointType::prismatic, 1, 2, {.frame = frame});
  builder.add_joint("weld", JointType::fixed, 2, 3, {.frame = frame});
  builder.add_joint("socket", JointType::ball, 3, 4, {.frame = frame});
  builder.add_joint("cross", JointType::universal, 1, 5, {.frame = frame});
  builder.add_joint("rotor", JointType::revolute, 5, 6, {.frame = frame, .axis = {1, 0.2, 0}, .spins = true});
  builder.add_joint("blade", JointType::fixed, 6, 7, {.frame = frame});
  builder.add_joint("flight", JointType::free, ModelBuilder::world, 8, {.frame = frame});
  builder.add_joint("arm", JointType::ball, 8, 9, {.frame = frame});
  builder.add_joint("hand", JointType::revolute, 9, 10, {.frame = frame});
  Model model = builder.build();
  test::require_all(model);
  for (const double speed : {3.0, 6.0, 12.0, 30.0, 100.0}) {
    test::BatchScale scale;
    scale.qd = speed;
    const test::GradientCase c = test::make_case(model, 10, 4e-3, 5, 3, scale);
    const test::CaseGradient gradient = test::gradient_by_tape<double>(c);
    for (const test::BlockError& e : test::compare_blocks(c, gradient, 4)) {
      EXPECT_LT(e.error, 1e-12) << e.block << " at " << speed << " rad/s";
    }
  }
}

// With contact and couplings, whose own digits are gradient_test.cpp's.
TEST(Whip, GradientsAgreeWithDualsWhereItTouches) {
  for (const double speed : {4.0, 10.0}) {
    test::TreeOptions options;
    options.links = 8;
    options.branched = options.forces = options.shapes = options.rotations = options.contact = true;
    options.couplings = 2;
    Model model = test::random_tree(23, options);
    test::require_all(model);
    test::BatchScale scale;
    scale.qd = speed;
    const test::GradientCase c = test::make_case(std::move(model), 10, 0.01, 2, 123, scale);
    for (const test::BlockError& e : test::compare_blocks(c, test::gradient_by_tape<double>(c), 4)) {
      EXPECT_TRUE(e.error < 3e-11 || e.size < 1e-9) << e.block << " at " << speed << " rad/s: " << e.error;
    }
  }
}

}  // namespace
}  // namespace backdrive
