// A recording goes by what a model's numbers and flags are when it is made, whatever way they were written: nothing
// that is derived from them can be stale.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "autodiff/tape/rollout.h"
#include "autodiff/tape/stepper.h"
#include "models/builder.h"
#include "models/views.h"
#include "tests/support/models.h"
#include "tests/support/random.h"

namespace backdrive {
namespace {

using test::Random;

/// Everything that comes out of a rollout and a backward of a loss that looks at all of the last state.
struct Bits {
  std::vector<double> numbers;

  explicit Bits(const Model& model) {
    constexpr int worlds = 3;
    State<double> state(model, worlds);
    for (int k = 0; k < state.qd.rows(); ++k) {
      for (int w = 0; w < worlds; ++w) state.qd.set(k, w, 0.3 * std::sin(1.0 + k + w));
    }
    const RolloutOptions options{.time_step = 0.01, .steps = 20};
    Tape<double> tape;
    const State<double> start = place_bodies(&tape, model, state, options);
    const Trajectory<double> t = rollout(tape, model, start, {}, options);
    Seeds<double> seeds;
    for (const Buffer<double>* b : {&t.final.q, &t.final.qd}) {
      Buffer<double> ones(b->rows(), worlds);
      ones.fill(1);
      seeds.add(*b, ones);
      for (int k = 0; k < b->rows(); ++k) numbers.insert(numbers.end(), b->row(k), b->row(k) + worlds);
    }
    const Gradients<double> gradients = std::move(tape).backward(seeds, Disconnected::zero);
    for (const Field& field : fields()) {
      const Parameter& p = field.in(gradients.parameters());
      const double* const first = p.values().first;
      numbers.insert(numbers.end(), first, first + static_cast<std::size_t>(p.worlds()) * p.items() * p.components());
    }
    // What is not recorded is the same.
    const Trajectory<double> again = rollout(model, start, {}, options);
    Stepper<double> stepper(model, detach(start), {}, 0.01);
    for (int step = 0; step < 20; ++step) stepper.step();
    for (int k = 0; k < again.final.q.rows(); ++k) {
      for (int w = 0; w < worlds; ++w) {
        EXPECT_EQ(again.final.q(k, w), t.final.q(k, w));
        EXPECT_EQ(stepper.state().q(k, w), t.final.q(k, w));
      }
    }
  }
  bool operator==(const Bits& other) const {
    return numbers.size() == other.numbers.size() &&
           std::memcmp(numbers.data(), other.numbers.data(), numbers.size() * sizeof(double)) == 0;
  }
};

/// Writes one number by one of the ways there are.
void write(Random& random, Model& model, const Field& field, int item, double value) {
  Parameter& p = field.of(model);
  switch (random.index(5)) {
    case 0:
      for (int w = 0; w < p.worlds(); ++w) p.at(item, 0, w) = value;
      break;
    case 1:
      p.set(item, 0, value);
      break;
    case 2:
      for (int w = 0; w < p.worlds(); ++w) p.slots()(item, 0, w) = value;
      break;
    case 3:
      view(model, path_of(model, {&field, item, -1})).set(0, value);
      break;
    default: {
      Parameter other = p;
      other.set(item, 0, value);
      p = random.chance(0.5) ? other : std::move(other);
    }
  }
}

/// Numbers that any model may have, of parts that act only where they are not zero or not infinite.
double value_for(Random& random, const Field& field) {
  if (field.leaf == "limit/lower") return random.chance(0.3) ? -kInfinity : -random.uniform(0.01, 0.1);
  if (field.may_be_infinite) return random.chance(0.3) ? kInfinity : random.uniform(0.01, 0.1);
  return random.chance(0.4) ? 0 : random.uniform(0.05, 0.5);
}

/// All of bodies, joints and couplings that acts only where it is not zero or not infinite.
std::vector<const Field*> switching_fields() {
  const std::string_view leaves[] = {"friction",
                                     "damping",
                                     "limit/lower",
                                     "limit/upper",
                                     "limit/stiffness",
                                     "limit/velocity",
                                     "armature",
                                     "spring/rest",
                                     "spring/stiffness",
                                     "limit/damping",
                                     "limit/velocity_damping",
                                     "drive/stiffness",
                                     "drive/damping",
                                     "drive/effort_limit",
                                     "gravity_compensation"};
  std::vector<const Field*> found;
  for (const Field& field : fields()) {
    if (std::ranges::find(leaves, field.leaf) != std::end(leaves)) found.push_back(&field);
  }
  return found;
}

TEST(ModelSnapshot, WhateverWayNumbersAreWritten) {
  const std::vector<const Field*> switching = switching_fields();
  EXPECT_EQ(switching.size(), 14u + 14u + 1u) << "of joints, of couplings, of bodies";
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    test::TreeOptions options;
    options.forces = seed % 2 == 0;
    options.fixed = false;
    options.integrator = seed % 4 < 2 ? Integrator::featherstone : Integrator::semi_implicit;
    options.couplings = options.integrator == Integrator::featherstone ? 4 : 0;
    Model written = test::random_tree(seed, options);
    Bits before(written);
    for (int k = 0; k < 30; ++k) {
      const Field& field = *switching[random.index(static_cast<int>(switching.size()))];
      const int items = field.in(written).items();
      const int item = items > 0 ? random.index(items) : 0;
      // On what is held nothing else acts.
      if (items == 0 || (field.group == FieldGroup::couplings && written.coupling_holds[item])) continue;
      if (random.chance(0.3)) {
        field.of(written).requires_grad(item, random.chance(0.7));
      } else if (random.chance(0.1) && field.in(written).uniform()) {
        field.of(written).spread(3);
      } else {
        write(random, written, field, item, value_for(random, field));
      }
    }
    Model fresh = test::random_tree(seed, options);
    for (const Field& field : fields()) field.of(fresh) = field.in(written);
    validate(fresh);
    const Bits after(written);
    EXPECT_TRUE(after == Bits(fresh)) << "seed " << seed;
    EXPECT_FALSE(after == before);
  }
}

/// A slide with friction of its own flag, limit and mass, pushed along.
State<double> moving(const Model& model) {
  State<double> state(model, 1);
  state.qd.set(0, 0, 2);
  return state;
}

TEST(ModelSnapshot, FrictionsGradientIsNoSilentZero) {
  Model model = test::slider(1);
  model.gravity.set(0, 2, 0);
  model.joints.friction.requires_grad(0, true);  // its level is 0, so nothing but the flag says that it is there
  const State<double> state = moving(model);
  Tape<double> tape;
  const Trajectory<double> t = rollout(tape, model, state, {}, {.time_step = 0.01, .steps = 10});
  Buffer<double> one(1, 1);
  one.set(0, 0, 1);
  Seeds<double> seeds;
  seeds.add(t.final.q, one);
  const double gradient = std::move(tape).backward(seeds).parameters().joints.friction(0);
  // A force of −1 N per N on 1 kg: −Δt² N(N + 1)/2 but for the smoothing, ε/v.
  EXPECT_NEAR(gradient, -0.01 * 0.01 * 55, 1e-6);
}

TEST(ModelSnapshot, ALimitThatIsSetHolds) {
  Model model = test::slider(1);
  model.joints.limit.upper.set(0, 0, 0.1);
  model.joints.limit.stiffness.set(0, 0, 1e5);
  const Trajectory<double> t = rollout(model, moving(model), {}, {.time_step = 1e-3, .steps = 1000});
  EXPECT_LT(t.final.q(0, 0), 0.15);
}

TEST(ModelSnapshot, ANegativeMassDoesNotRun) {
  Model model = test::slider(1);
  model.bodies.mass.at(0) = -1;
  const State<double> state = moving(model);
  EXPECT_THROW(rollout(model, state, {}, {.steps = 1}), ModelError);
  Tape<double> tape;
  EXPECT_THROW(rollout(tape, model, state, {}, {.steps = 1}), ModelError);
  EXPECT_THROW(Stepper<double>(model, moving(model), {}, 0.01), ModelError);
  model.bodies.mass.at(0) = 1;
  EXPECT_NO_THROW(rollout(model, state, {}, {.steps = 1}));
}

TEST(ModelSnapshot, ADirectionAlongNoFrictionIsSeen) {
  using D = Dual<double>;
  Model model = test::slider(1);
  model.gravity.set(0, 2, 0);
  Parameters direction = zero_parameters(model);
  direction.joints.friction.at(0) = 1;
  State<D> state(model, 1);
  state.qd.set(0, 0, D(2));
  RolloutOptions options{.time_step = 0.01, .steps = 10};
  options.direction = &direction;
  const Trajectory<D> t = rollout(model, state, {}, options);
  EXPECT_NEAR(t.final.q(0, 0).dot, -0.01 * 0.01 * 55, 1e-6);
}

}  // namespace
}  // namespace backdrive
