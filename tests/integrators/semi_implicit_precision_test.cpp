// What float32 makes of light and heavy bodies on joints, beside float64.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "autodiff/tape/rollout.h"
#include "tests/integrators/thrown_boxes.h"

namespace backdrive {
namespace {

using test::ThrownBoxes;

constexpr int kWorlds = 8, kSteps = 48;

template <class T>
struct Outcome {
  Buffer<T> end, gradient;  ///< q, and of Σ (positions of the last body) by q̇ at the start
};
template <class T>
Outcome<T> outcome(const ThrownBoxes& boxes, const Model& model) {
  const Topology& t = model.topology;
  RolloutOptions options;
  options.steps = kSteps;
  Tape<T> tape;
  const State<T> from = boxes.throws<T>(model, kWorlds, 3, 3 * boxes.size);
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
Difference precision(const ThrownBoxes& boxes) {
  const Model model = boxes.model();
  const Topology& t = model.topology;
  const Outcome<float> single = outcome<float>(boxes, model);
  const Outcome<double> exact = outcome<double>(boxes, model);
  Difference worst;
  for (int w = 0; w < kWorlds; ++w) {
    for (int body = 0; body < 3; ++body) {
      for (int k = 0; k < 7; ++k) {
        const int row = t.body_q(body) + k;
        const double off = std::abs(single.end(row, w) - exact.end(row, w));
        if (k < 4) worst.turn = std::max(worst.turn, off);
        if (k >= 4) worst.position = std::max(worst.position, off / boxes.size);
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
  constexpr double u = 6e-8;
  for (const double size : {0.001, 0.01, 0.1, 1., 10.}) {
    const double rounding = kSteps * u * (1 + 0.2 / size);
    Difference worst;
    for (const JointType first : ThrownBoxes::types) {
      for (const JointType second : ThrownBoxes::types) {
        const ThrownBoxes boxes{Integrator::semi_implicit, first, second, size};
        const Difference d = precision(boxes);
        EXPECT_LT(d.position, 4 * rounding) << boxes.name();
        EXPECT_LT(d.turn, 4 * rounding) << boxes.name();
        EXPECT_LT(d.gradient, 12 * rounding) << boxes.name();
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
