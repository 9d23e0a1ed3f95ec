// Contact with bodies that no other test has: light and heavy, small and large, thin, piled and squeezed, at the
// default material. A sample of what benchmarks/contact_trust.cpp prints.
#include "tests/support/contact_trust.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/batch.h"

namespace backdrive {
namespace {

using namespace test;

/// Of the start's energy 1e-3 more, of which rounding in float32 takes a part: 1.5 s are 3,000 steps of 1e-7 at most.
template <class T>
void expect_no_gain(const Experiment& e, const Throw& what) {
  for (const auto& x : largest_energy<T>(e)) {
    EXPECT_LE(x.largest, 1.001) << name_of(what.thing) << ", " << what.mass << " kg, " << what.rate << "/s";
  }
}

TEST(ContactTrust, ThrowsGainNoEnergy) {
  for (const Integrator integrator : {Integrator::featherstone, Integrator::semi_implicit}) {
    for (const Thing thing : {Thing::rod, Thing::disc, Thing::box, Thing::capsule, Thing::mesh, Thing::lens}) {
      for (const double rate : {120., 240., 1920.}) {
        for (const double mass : {1e-6, 1e-3, 1000., 1e6}) {
          const Throw what{thing, mass, rate < 1000 ? 0.1 : 0.01, rate, integrator};
          const Experiment e = thrown(what, Motion::toss, 4, 1.5, 5);
          expect_no_gain<double>(e, what);
          expect_no_gain<float>(e, what);
        }
      }
    }
  }
}

// Ellipsoids of 1 cm sink into the floor by more than their thickness at 120/s and are turned there by up to 1.5 rad in
// a step, those of 1 mm by more. A spring gave back at one place of them what it had been pressed by at another: of
// 1 cm every eighth lens gained, up to 3.5 times, and of eggs one in forty. With what turns take out (C11) taken by the
// way of the step, not by the velocity of its end, one lens in 200 and of 1 mm one in three still did, as a step that
// stops one throws it back as fast as it came. Now of 1 mm one in 700 does.
TEST(ContactTrust, WhatTurnsFarGainsNothing) {
  int throws = 0, gained = 0;
  for (const Integrator integrator : {Integrator::featherstone, Integrator::semi_implicit}) {
    for (const Thing thing : {Thing::egg, Thing::lens}) {
      for (const double mass : {1e-3, 1., 1000.}) {
        const Throw what{thing, mass, 0.01, 120, integrator};
        const Experiment e = thrown(what, Motion::toss, 100, 1.5, table_seed(what));
        expect_no_gain<double>(e, what);
        expect_no_gain<float>(e, what);
        const Throw small{thing, mass, 0.001, 120, integrator};
        for (const auto& x : largest_energy<double>(thrown(small, Motion::toss, 100, 1.5, table_seed(small)))) {
          ++throws;
          gained += !(x.largest <= 1.001);
        }
      }
    }
  }
  EXPECT_LE(gained, throws / 100) << "of 1 mm";
}

// A thin disc that falls wobbles to rest, or rolls on its rim, slower and slower. In 120 steps a second it turns by a
// quarter of a radian in one: with contact where the step begins, the rim was pushed behind its lowest point, and a
// disc at rest but for a wobble rolled after a second with all that it had fallen by.
TEST(ContactTrust, DiscsThatWobbleAreNotFed) {
  for (const Integrator integrator : {Integrator::featherstone, Integrator::semi_implicit}) {
    for (const double rate : {120., 240., 480.}) {
      const Throw what{Thing::disc, 30, 0.01, rate, integrator};
      for (const double x : energy_growth(thrown(what, Motion::toss, 20, 1.5, 331))) EXPECT_LT(x, 0.03) << rate;
    }
  }
}

// A ball whose moments are 2 : 4 : 5 rolls on a plane and wobbles, and nothing takes of its energy but the creep of
// friction, 1e-5 of its speed. With impulses that met the inertia and spin of a step's start it gained 5 % in these ten
// seconds in trees, and lost 6 % as a loose body; what is left is of the second order.
TEST(ContactTrust, RollingKeepsItsEnergyWhateverTheMoments) {
  constexpr double mass = 1, radius = 0.1;
  const Numbers3 inertia{1.6e-3, 3.2e-3, 4e-3};
  for (const Integrator integrator : {Integrator::featherstone, Integrator::semi_implicit}) {
    ModelBuilder builder;
    builder.set_integrator(integrator);
    builder.add_shape("floor", ModelBuilder::world, {.type = GeometryType::plane});
    const BodyIndex body = builder.add_body("ball", {mass, {0, 0, 0}, {inertia[0], inertia[1], inertia[2], 0, 0, 0}});
    builder.add_joint("ball", JointType::free, ModelBuilder::world, body);
    builder.add_shape("ball", body, {.type = GeometryType::sphere, .scale = {radius, 0, 0}});
    Experiment e{builder.build(), {}, 4e-3, 2500, 0};
    e.state = State<double>(e.model, 1);
    const double spin[] = {3, 10, 2};
    for (int k = 0; k < 3; ++k) e.state.qd.set(k, 0, spin[k]);
    e.state.qd.set(3, 0, radius * spin[1]);
    e.state.qd.set(4, 0, -radius * spin[0]);
    e.state.q.set(6, 0, radius - 9.81 / 5000 - 0.5e-3);  // where auto holds it
    const Trajectory<double> t = e.run(true);
    double first = 0;
    for (int step = 1; step <= e.steps; ++step) {
      const double energy = kinetic_energy<double>(t, {mass, inertia}, step, 0);
      if (step == 1) first = energy;
      ASSERT_NEAR(energy / first, 1, 1e-3) << to_string(integrator) << ", step " << step;
    }
  }
}

// Three bodies that fall on one another at 120 steps/s, so fast that some are squeezed into their cores. The bound of
// friction follows the normal force, which gains on it, and whole steps of Newton's method lead far away: in float64
// one of a thousand piles of wedges left at 500 m/s, in float32, which knows nothing more of a solution after such a
// step, every fourth one became non-finite.
TEST(ContactTrust, PilesThatReachTheirCoresStay) {
  for (const Integrator integrator : {Integrator::featherstone, Integrator::semi_implicit}) {
    for (const Thing thing :
         {Thing::mesh, Thing::box, Thing::capsule, Thing::cylinder, Thing::disc, Thing::egg, Thing::lens}) {
      const Throw what{thing, 1, 0.1, 120, integrator};
      const Experiment e = thrown(what, Motion::pile, 48, 1, 1127);
      for (const auto& x : largest_energy<double>(e)) {
        EXPECT_LE(x.largest, 1.001) << name_of(thing);
        EXPECT_TRUE(x.is_solved) << name_of(thing);
      }
      expect_no_gain<float>(e, what);
    }
  }
}

// Things of other shapes, sizes and masses on one another.
TEST(ContactTrust, MixedPilesGainNoEnergy) {
  for (const Integrator integrator : {Integrator::featherstone, Integrator::semi_implicit}) {
    for (const Thing thing : kThings) {
      if (thing == Thing::two_links) continue;
      for (const double size : {0.01, 1.}) {
        const Throw what{thing, 1, size, size < 0.1 ? 480. : 120., integrator};
        const Experiment e = thrown(what, Motion::mixed, 4, 1, 7);
        expect_no_gain<double>(e, what);
        expect_no_gain<float>(e, what);
      }
    }
  }
}

// Steps that float32 does not solve, of capsules 4 mm deep in each other's cores, gave them what such cores would have
// stored had they been pressed so far: 13.9 times all that three bodies had.
TEST(ContactTrust, WhatIsNotSolvedGivesNothingBackOfCores) {
  for (const Integrator integrator : {Integrator::featherstone, Integrator::semi_implicit}) {
    const Throw what{Thing::capsule, 1000, 0.01, 240, integrator};
    const auto all = largest_energy<float>(thrown(what, Motion::mixed, 24, 0.2, table_seed(what)));
    EXPECT_TRUE(std::ranges::any_of(all, [](const ThrownEnergy& x) { return !x.is_solved; }));
    for (const ThrownEnergy& x : all) EXPECT_LE(x.largest, 1.001);
  }
}

// What a step that is far too long leaves of the twists is not the solution that its wrenches are: discs of 1 mm,
// thrown to 40 times their energy in a step that counted as solved, as the impulses on the way to it had been within
// bounds, and what was left of them, 1e10 times as much, was not asked.
TEST(ContactTrust, WhatIsLeftOnTheWayCountsAsLongSteps) {
  const Throw what{Thing::disc, 1, 0.01, 240};
  const Experiment e = thrown(what, Motion::pile, 30, 1.5, table_seed(what) + 1000003);
  expect_no_gain<double>(e, what);
}

// Of wedges of 1 cm that move by more than their core's depth in a step the nearest features change in every one. One
// throw of these came to 1.06 of its energy.
TEST(ContactTrust, CoresGiveNothingBackOfLargeSteps) {
  for (const Integrator integrator : {Integrator::featherstone, Integrator::semi_implicit}) {
    for (const double mass : {1e-3, 1., 1000.}) {
      const Throw what{Thing::mesh, mass, 0.01, 480, integrator};
      const Experiment e = thrown(what, Motion::pile, 20, 0.5, table_seed(what));
      expect_no_gain<double>(e, what);
    }
  }
}

// Worlds that are hard to solve wait for others that are harder.
TEST(ContactTrust, PilesHaveTheirOwnBits) {
  const auto expect_own_bits = [](const Experiment& e, const std::string& name) {
    const auto run = [&](int first, int worlds) {
      RolloutOptions options;
      options.time_step = e.time_step;
      options.steps = e.steps;
      return rollout<float>(e.model, start_of<float>(e, first, worlds), {}, options);
    };
    const Trajectory<float> together = run(0, 16);
    for (int w = 0; w < 16; ++w) {
      const Trajectory<float> alone = run(w, 1);
      for (int r = 0; r < e.state.qd.rows(); ++r) {
        ASSERT_EQ(alone.final.qd(r, 0), together.final.qd(r, w)) << name << ", world " << w;
      }
    }
  };
  // Seeds of which worlds next to one that is hard to solve had other last digits, in packs of eight.
  for (const Integrator integrator : {Integrator::featherstone, Integrator::semi_implicit}) {
    for (const Thing thing : {Thing::mesh, Thing::box, Thing::capsule, Thing::cylinder, Thing::egg}) {
      for (const int seed : {1127, 8}) {
        expect_own_bits(thrown({thing, 1, 0.1, 120, integrator}, Motion::pile, 16, 1, seed),
                        name_of(thing) + std::string(", seed ") + std::to_string(seed));
      }
    }
  }
}

/// A rollout as it is, and as many of one step.
template <class T>
void expect_same_step_by_step(const Experiment& e, int worlds, const std::string& name) {
  RolloutOptions options;
  options.time_step = e.time_step;
  options.steps = e.steps;
  State<T> state = start_of<T>(e, 0, worlds);
  const Trajectory<T> whole = rollout<T>(e.model, state, {}, options);
  options.steps = 1;
  for (int k = 0; k < e.steps; ++k) state = rollout<T>(e.model, state, {}, options).final;
  EXPECT_TRUE(same_bits(state.q, whole.final.q)) << name;
  EXPECT_TRUE(same_bits(state.qd, whole.final.qd)) << name;
}

// Links keep what contacts are made of while shapes are close, and the step in which they come close is begun anew
// (integrators/contact/find_contacts.h): in a rollout some are, and of steps by themselves all that see a contact.
TEST(ContactTrust, StepsThatAreBegunAnewHaveTheSameBits) {
  for (const Thing thing : {Thing::sphere, Thing::capsule, Thing::box, Thing::two_links}) {
    for (const double rate : {240., 1920.}) {
      const Experiment e = thrown({thing, 1, 0.1, rate}, Motion::toss, 5, 1, 3);
      expect_same_step_by_step<float>(e, 5, name_of(thing));
      expect_same_step_by_step<double>(e, 5, name_of(thing));
    }
  }
}

// Differences over 1 mm/s and 1 cm/s that say the same within 5 % are what a user would call the slope. The table in
// docs/contact.md has 2 to 5 % of the adjoints off by more than that: where a body rattles from corner to corner,
// slopes are sums of many small jumps. None is of another size.
TEST(ContactTrust, AdjointsAreTheSlopes) {
  int defined = 0, off = 0, faulty = 0;
  for (const Thing thing : {Thing::sphere, Thing::capsule, Thing::box, Thing::rod}) {
    for (const Motion motion : {Motion::toss, Motion::roll}) {
      for (const double mass : {0.01, 100.}) {
        for (const double rate : {240., 1920.}) {
          const Throw what{thing, mass, 0.1 * std::cbrt(mass), rate};
          for (const Slope& s : slopes(thrown(what, motion, 8, 0.7, 3))) {
            EXPECT_LT(std::abs(s.adjoint), 100);
            if (!s.defined()) continue;
            ++defined;
            off += s.is_off();
            EXPECT_LT(s.error(), 1) << name_of(thing) << " " << name_of(motion) << " " << mass << " kg, " << rate;
            faulty += Slope{1.2 * s.adjoint, s.near, s.far}.is_off();
          }
        }
      }
    }
  }
  EXPECT_GT(defined, 200);
  EXPECT_LT(off, 0.05 * defined);
  EXPECT_GT(faulty, 0.9 * defined);  // an adjoint that is wrong by a fifth would be noticed
}

// Where a body rattles from corner to corner the loss jumps, and no derivative is the slope over a distance: what
// `simctl gradient` and `optimize` warn of is each gradient of the table that is off, and hardly one that is not.
TEST(ContactTrust, AdjointsThatAreNotTheSlopesAreDoubted) {
  int off = 0, told = 0, right = 0, told_of_right = 0;
  const auto count = [&](const Throw& what, Motion motion) {
    const Experiment e = thrown(what, motion, 20, 1, table_seed(what));
    const std::vector<Slope> all = slopes(e);
    for (int w = 0; w < 20; ++w) {
      if (!all[w].defined()) continue;
      const bool is_off = all[w].is_off(), is_told = is_doubted(e, w);
      ++(is_off ? off : right);
      (is_off ? told : told_of_right) += is_told;
    }
  };
  count({Thing::box, 100, 0.1 * std::cbrt(100), 240}, Motion::tip);
  count({Thing::box, 1, 0.1, 480}, Motion::tip);
  count({Thing::disc, 0.01, 0.1 * std::cbrt(0.01), 120}, Motion::drop);
  EXPECT_GE(off, 4);
  EXPECT_EQ(told, off);
  EXPECT_GT(right, 20);
  EXPECT_LE(told_of_right, 1);
}

// A step of three wedges of 10 g and 2 cm that fall on one another: friction of the one that lies below gains on the
// normal forces, so that corrections of (A4) stall or grow, and BiCGSTAB solves it. Such a step is solved to 1e-10 of
// its impulses (C9), some 1e-11 m: differences over 1e-3 m/s know 1e-8 of slopes of up to 5e-3, and leave out the
// squares.
TEST(ContactTrust, AdjointsAreSolvedWhereFrictionGainsOnTheNormalForce) {
  const std::vector<double> q{
      0.105176746,  -0.00263258845, -0.0792476034, 0.991287415,   -0.00160696745, -0.0038408799,   0.00578614607,
      -0.142173682, 0.128735821,    0.479717708,   0.856203629,   -0.00578420463, -3.94443037e-05, 0.020686639,
      0.439353163,  0.886106454,    -0.14725186,   -0.0100519051, -0.00313886672, 0.00825102402,   0.0311832148};
  const std::vector<double> qd{-10.6688428, -6.98975646, 0.326061891, -0.0785510896, -0.0827425544, -0.456906754,
                               -40.6739911, 30.802219,   -2.79035816, 0.0252714756,  0.0941107783,  -0.679679196,
                               29.2508039,  -42.8721804, 5.86833237,  -0.0394322356, 0.224256882,   -0.571555549};
  Experiment e = thrown({Thing::mesh, 0.01, 0.1 * std::cbrt(0.01), 240}, Motion::pile, 1, 1. / 240, 1);
  for (int k = 0; k < 21; ++k) e.state.q.set(k, 0, q[k]);
  const auto end_of = [&](int row, int moved, double by) {
    for (int k = 0; k < 18; ++k) e.state.qd.set(k, 0, qd[k] + (k == moved ? by : 0));
    return e.run().final.q(row, 0);
  };
  constexpr double step = 1e-3;
  double largest = 0;
  for (const char* body : {"body0", "body1", "body2"}) {
    for (int k = 4; k < 7; ++k) {
      e.row = e.q_of(body) + k;
      end_of(e.row, 0, 0);
      const Sensitivity s(e, {});
      for (int v = 0; v < 18; ++v) {
        const double slope = (end_of(e.row, v, step) - end_of(e.row, v, -step)) / (2 * step);
        EXPECT_NEAR(s.by_velocity(v, 0), slope, 1e-7) << body << ", row " << k << " by " << v;
        largest = std::max(largest, std::abs(slope));
      }
    }
  }
  EXPECT_GT(largest, 1e-3);
}

/// Boxes of these masses at rest on one another.
template <class T>
Trajectory<T> stacked(const std::vector<double>& masses, double seconds, Integrator integrator) {
  constexpr double half = 0.1;
  ModelBuilder builder;
  builder.set_integrator(integrator);
  builder.add_shape("floor", ModelBuilder::world, {.type = GeometryType::plane});
  for (std::size_t i = 0; i < masses.size(); ++i) {
    const std::string name = "box" + std::to_string(i);
    const double m = masses[i], inertia = m * 2 / 3 * half * half;
    const BodyIndex body = builder.add_body(name, {m, {0, 0, 0}, {inertia, inertia, inertia, 0, 0, 0}});
    builder.add_shape(name, body, {.type = GeometryType::box, .scale = {half, half, half}});
    builder.add_joint(name, JointType::free, ModelBuilder::world, body);
  }
  const Model model = builder.build();
  RolloutOptions options;
  options.time_step = 1. / 240;
  options.steps = static_cast<int>(std::lround(seconds * 240));
  State<T> state(model, 1);
  for (std::size_t i = 0; i < masses.size(); ++i) {
    const int row = model.topology.links[model.link_of_joint(static_cast<int>(i))].q;
    state.q.set(row + 6, 0, static_cast<T>(half + 2 * half * static_cast<double>(i)));
  }
  return rollout<T>(model, place_bodies<T>(nullptr, model, state, options), {}, options);
}
/// How far the boxes lean, and whether each is above the one below.
template <class T>
void expect_standing(const Trajectory<T>& t, int boxes, double lean, double apart = 0.15) {
  ASSERT_FALSE(t.any_stopped());
  double below = -0.1;
  for (int i = 0; i < boxes; ++i) {
    const auto at = [&](int k) { return static_cast<double>(t.final.q(7 * i + k, 0)); };
    EXPECT_LT(std::hypot(at(4), at(5)), lean) << i;
    EXPECT_GT(at(6) - below, apart) << i;
    below = at(6);
  }
}

// 6e-8 of 2 m, through 1e-5 m/s of creep: in float32 a stack wanders by micrometres a second.
TEST(ContactTrust, StacksStand) {
  for (const Integrator integrator : {Integrator::featherstone, Integrator::semi_implicit}) {
    expect_standing(stacked<double>(std::vector<double>(10, 4.0), 2, integrator), 10, 1e-6);
    expect_standing(stacked<float>(std::vector<double>(10, 4.0), 2, integrator), 10, 5e-3);
    expect_standing(stacked<double>({1000, 1}, 4, integrator), 2, 1e-6);
  }
}

// Auto of the one below is made for its own weight: it goes into the floor up to its second spring, which holds. 1e-16
// of the force, through the friction of 1e-5 m/s, is nothing; 6e-8 of it in float32 is a hundred micrometres a second.
TEST(ContactTrust, LightBodiesCarryHeavyOnes) {
  for (const Integrator integrator : {Integrator::featherstone, Integrator::semi_implicit}) {
    for (const double mass : {10., 1000.}) {
      SCOPED_TRACE(std::string(to_string(integrator)) + ", " + std::to_string(mass));
      expect_standing(stacked<double>({1, mass}, 10, integrator), 2, 1e-6, 0.05);
      expect_standing(stacked<float>({1, mass}, 10, integrator), 2, 5e-3, 0.05);
    }
  }
}

// g/ω² over the four corners, and half of the ramp: whatever it weighs. A number is taken as it is.
TEST(ContactTrust, AutomaticStiffnessCarriesAnyMass) {
  for (const double mass : {1e-3, 1., 1000.}) {
    const Trajectory<double> t = stacked<double>({mass}, 4, Integrator::featherstone);
    EXPECT_NEAR(0.1 - t.final.q(6, 0), 9.81 / 5000 / 4 + 0.5e-3, 1e-6) << mass;
  }
}

// Its gradients go to the mass that it is made of: at rest none is left, and in a toss what differences say. A
// stiffness that was a number would have given the first box −2.5e-4 m/kg.
TEST(ContactTrust, AutomaticStiffnessHasGradients) {
  const std::string mass = "bodies/body0/mass";
  Experiment rest = thrown({Thing::box, 2, 0.1, 240}, Motion::slide, 1, 3, 1);
  rest.state.qd = Buffer<double>(rest.state.qd.rows(), 1);
  rest.row += 2;  // its height
  EXPECT_NEAR(Sensitivity(rest, {mass}).by(mass, 0), 0, 1e-9);
  for (const Integrator integrator : {Integrator::featherstone, Integrator::semi_implicit}) {
    const Throw what{Thing::box, 2, 0.1, 960, integrator};
    const auto tossed = [&](double by) {
      Experiment e = thrown(what, Motion::toss, 4, 0.25, 11);
      e.row += 2;
      e.model.bodies.mass.at(0) += by;
      return e;
    };
    const Sensitivity s(tossed(0), {mass});
    constexpr double step = 1e-6;
    const Trajectory<double> more = tossed(step).run(), less = tossed(-step).run();
    double largest = 0;
    for (int w = 0; w < 4; ++w) {
      const int row = tossed(0).row;
      const double slope = (more.final.q(row, w) - less.final.q(row, w)) / (2 * step);
      // 1e-16 over the step, and the step's share of a ramp.
      EXPECT_NEAR(s.by(mass, w), slope, 1e-4 * std::abs(slope) + 1e-8) << w;
      largest = std::max(largest, std::abs(slope));
    }
    EXPECT_GT(largest, 1e-3);
  }
}

}  // namespace
}  // namespace backdrive
