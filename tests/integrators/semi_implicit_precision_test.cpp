// What float32 makes of light and heavy bodies on joints, beside float64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "autodiff/tape/rollout.h"
#include "models/builder.h"
#include "tests/support/batch.h"

namespace backdrive {
namespace {

using test::Random;

constexpr int kWorlds = 8, kSteps = 48;

Numbers3 within(double bound, Random& random) {
  return {random.symmetric(bound), random.symmetric(bound), random.symmetric(bound)};
}

/// A box that flies and carries two, one on the other, all of some `size`, m, and 1,000 kg/m³.
Model thrown(JointType first, JointType second, double size, Random& random) {
  ModelBuilder builder;
  builder.set_integrator(Integrator::semi_implicit);
  builder.set_gravity({0, 0, -9.81});
  BodyIndex carrier = ModelBuilder::world;
  for (const JointType type : {JointType::free, first, second}) {
    const bool root = carrier == ModelBuilder::world;
    const std::string name = "body" + std::to_string(carrier + 1);
    const BodyIndex body = builder.add_body(name, {});
    JointOptions joint;
    if (!root) joint.frame.position = within(1.2 * size, random);
    joint.axis = Numbers3{0.6, 0, 0.8};
    builder.add_joint(name, type, carrier, body, joint);
    ShapeOptions box{.type = GeometryType::box, .density = 1000};
    box.scale = {random.uniform(0.3, 1) * size, random.uniform(0.3, 1) * size, random.uniform(0.3, 1) * size};
    if (!root) box.frame.position = within(1.2 * size, random);
    builder.add_shape(name, body, box);
    carrier = body;
  }
  builder.exclude_contacts(0, 2);
  return builder.build();
}

/// Throws of it, the same numbers in every type, exact in float32.
template <class T>
State<T> start(const Model& model, double size) {
  const Topology& t = model.topology;
  State<T> state(model, kWorlds);
  Random random(7);
  for (int w = 0; w < kWorlds; ++w) {
    for (int j = 0; j < 3; ++j) {
      const JointType type = model.joint_types[j];
      for (int k = 0; k < joint_size(type).nv; ++k) {
        const bool slides = type == JointType::prismatic || (type == JointType::free && k >= 3);
        const double rate = random.symmetric(slides ? 3 * size : 3);
        state.qd.set(t.links[model.link_of_joint(j)].v + k, w, static_cast<T>(static_cast<float>(rate)));
      }
    }
  }
  return state;
}

template <class T>
struct Outcome {
  Buffer<T> end, gradient;  ///< q, and of Σ (positions of the last body) by q̇ at the start
};
template <class T>
Outcome<T> outcome(const Model& model, double size) {
  const Topology& t = model.topology;
  RolloutOptions options;
  options.steps = kSteps;
  Tape<T> tape;
  const State<T> from = start<T>(model, size);
  const Trajectory<T> trajectory =
      rollout(tape, model, place_bodies(&tape, model, from, options), Control<T>(model, kSteps, kWorlds), options);
  Buffer<T> bar(t.nq, kWorlds);
  for (int k = 4; k < 7; ++k) {
    for (int w = 0; w < kWorlds; ++w) bar.set(t.body_q(2) + k, w, T(1));
  }
  Seeds<T> seeds;
  seeds.add(trajectory.final.q, bar);
  return {trajectory.final.q, std::move(tape).backward(seeds).of(from.qd)};
}

struct Difference {
  double position = 0;  ///< of bodies, over their size
  double turn = 0;      ///< of quaternions
  double gradient = 0;  ///< over the largest of turns and of slides in its world
};
Difference precision(JointType first, JointType second, double size) {
  Random random(17);
  const Model model = thrown(first, second, size, random);
  const Topology& t = model.topology;
  const Outcome<float> single = outcome<float>(model, size);
  const Outcome<double> exact = outcome<double>(model, size);
  Difference worst;
  for (int w = 0; w < kWorlds; ++w) {
    for (int body = 0; body < 3; ++body) {
      for (int k = 0; k < 7; ++k) {
        const int row = t.body_q(body) + k;
        const double off = std::abs(single.end(row, w) - exact.end(row, w));
        if (k < 4) worst.turn = std::max(worst.turn, off);
        if (k >= 4) worst.position = std::max(worst.position, off / size);
      }
    }
    for (const bool slides : {false, true}) {
      double largest = 1e-300, off = 0;
      for (int v = 0; v < 6; ++v) {
        if (slides != (v >= 3)) continue;
        largest = std::max(largest, std::abs(exact.gradient(v, w)));
        off = std::max(off, std::abs(single.gradient(v, w) - exact.gradient(v, w)));
      }
      worst.gradient = std::max(worst.gradient, off / largest);
    }
  }
  return worst;
}

// Positions of size and of 0.2 m, by which all fall, are rounded by u of them a few times in every step, and what
// joints are open by for that makes velocities that are carried on. (With what attachments pull as a right-hand side,
// 1e7 times the momentum of bodies of a gram, boxes of 1 cm fly apart in the first steps.)
TEST(SemiImplicitPrecision, IsThatOfRoundingWhateverTheSize) {
  constexpr JointType types[] = {JointType::revolute, JointType::prismatic, JointType::ball, JointType::universal,
                                 JointType::fixed};
  constexpr double u = 6e-8;
  for (const double size : {0.001, 0.01, 0.1, 1., 10.}) {
    const double rounding = kSteps * u * (1 + 0.2 / size);
    Difference worst;
    for (const JointType first : types) {
      for (const JointType second : types) {
        const Difference d = precision(first, second, size);
        const auto at = [&] { return std::string(to_string(first)) + " and " + to_string(second); };
        EXPECT_LT(d.position, 4 * rounding) << at() << ", " << size << " m";
        EXPECT_LT(d.turn, 4 * rounding) << at() << ", " << size << " m";
        EXPECT_LT(d.gradient, 12 * rounding) << at() << ", " << size << " m";
        worst = {std::max(worst.position, d.position), std::max(worst.turn, d.turn),
                 std::max(worst.gradient, d.gradient)};
      }
    }
    EXPECT_GT(worst.position, 0);
    std::printf("boxes of %g m: positions within %.1e of the size, quaternions %.1e, gradients %.1e\n", size,
                worst.position, worst.turn, worst.gradient);
  }
}

}  // namespace
}  // namespace backdrive
