// Torsional and rolling friction of one contact (docs/contact.md, (T1)-(T4)) by themselves: against dual numbers,
// within their bounds, continuous with their slopes, and zero where nothing turns.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/dual.h"
#include "integrators/contact/turn_friction.h"
#include "tests/support/random.h"

namespace backdrive {
namespace {

using namespace contact;
using D = Dual<double>;
using test::Random;

constexpr double kStep = 1. / 240;

/// Everything that a contact's force and moment depend on.
template <class Real>
struct Inputs {
  ContactState<Real> state;
  Vec3<Real> e[2];  ///< of both predictors, of the point
  PairMaterial<Real> material;
  TurnRates<Real> rates;
  Vec3<Real> turn_e[2];
  TurnMaterial<Real> turning;
};
template <class Real>
Real* numbers_of(Inputs<Real>& x) {
  return reinterpret_cast<Real*>(&x);
}
constexpr int kInputs = sizeof(Inputs<double>) / sizeof(double);

Vec3<double> random_vector(Random& random, double bound) {
  return {random.symmetric(bound), random.symmetric(bound), random.symmetric(bound)};
}

Inputs<double> random_inputs(Random& random) {
  Inputs<double> x;
  const Vec3<double> n = random_vector(random, 1);
  x.state.normal = n * (1 / std::sqrt(dot(n, n)));
  x.state.depth = random.uniform(-1e-3, 2.5e-3);
  const double speed = std::pow(10, random.uniform(-3, 0)), rate = std::pow(10, random.uniform(-2, 1));
  x.state.start = random_vector(random, speed);
  x.state.smooth = x.state.start + random_vector(random, 0.3 * speed);
  for (auto& e : x.e) e = random_vector(random, speed) + x.state.normal * random.uniform(0, speed);
  x.material = {3e4, 1e-3, random.chance(0.3) ? 0 : random.uniform(0.1, 1), random.uniform(0.2, 1),
                random.chance(0.5) ? 1e-2 : 1e-4};
  x.rates.start = random_vector(random, rate);
  x.rates.smooth = x.rates.start + random_vector(random, 0.3 * rate);
  for (auto& e : x.turn_e) e = random_vector(random, rate) - late_turn(x.rates) * random.uniform(0, 1);
  // One in four has no friction yet: an optimiser may start there.
  x.turning = {random.chance(0.25) ? 0 : random.uniform(1e-3, 1e-2),
               random.chance(0.25) ? 0 : random.uniform(1e-3, 1e-2), x.material.creep / kTurnLength};
  return x;
}

/// A contact in its three stages.
template <class Real>
struct Stages {
  Vec3<Real> late;
  LinearModelTrace<Real> model;
  TurnDrag<Real> drag[2];
  SecondDrag<Real> second;
  ForceTrace<Real> force;
  Vec3<Real> moment;

  explicit Stages(const Inputs<Real>& x) {
    const Real dt = constant<Real>(kStep);
    const Vec3<Real>& n = x.state.normal;
    late = late_turn(x.rates);
    model = linear_model(x.material, x.state, dt);
    drag[0] = first_turn_drag(x.turning, n, x.rates, model.centred_force);
    second = second_drag(x.material, x.state, model, x.e[0], dt);
    drag[1] = second_turn_drag(x.turning, n, late, x.turn_e[0], second.normal.value);
    force = contact_force(x.material, x.state, model, second.value, x.e[1], dt);
    moment = turn_moment(x.turning, n, late, drag[1], x.turn_e[1], force.normal.value);
  }
};

struct Weights {
  Predictor<double> predictor[2];
  Vec3<double> moment;
};
template <class Real>
Real weighted(const Inputs<Real>& x, const Weights& w) {
  const Stages<Real> s(x);
  Real sum = dot(s.moment, w.moment);
  for (int k = 0; k < 2; ++k) {
    const auto p = turn_predictor(x.turning, x.state.normal, s.late, s.drag[k], constant<Real>(kStep));
    sum += dot(p.impulse, w.predictor[k].impulse) + p.normal * Real(w.predictor[k].normal) +
           p.tangential * Real(w.predictor[k].tangential);
  }
  return sum;
}
enum class Fault { none, held_force, held_drag, held_axis };
Inputs<double> gradient_of(const Inputs<double>& x, const Weights& w, Fault fault) {
  Inputs<double> bar{};
  const auto& m = x.material;
  const Vec3<double>& n = x.state.normal;
  const Stages<double> s(x);
  auto model_bar = no_cotangents<double>();
  Vec3<double> late_bar{}, axis_bar{};
  TurnDrag<double> drag_bar[2]{};
  double force_bar = 0, slide_bar = 0;
  adj_turn_moment(x.turning, n, s.late, s.drag[1], x.turn_e[1], s.force.normal.value, w.moment, axis_bar, late_bar,
                  drag_bar[1], bar.turn_e[1], force_bar, bar.turning);
  if (fault == Fault::held_force) force_bar = 0;
  if (fault == Fault::held_axis) axis_bar = {0, 0, 0};
  adj_contact_force(m, x.state, s.model, s.second.value, x.e[1], s.force, kStep, {0, 0, 0}, force_bar, bar.e[1],
                    slide_bar, model_bar, bar.state, bar.material);
  adj_turn_predictor(x.turning, n, s.late, s.drag[1], kStep, w.predictor[1], axis_bar, late_bar, drag_bar[1],
                     bar.turning);
  if (fault == Fault::held_drag) drag_bar[1] = {0, 0};
  double second_bar = 0;
  adj_second_turn_drag(x.turning, n, s.late, x.turn_e[0], s.second.normal.value, drag_bar[1], axis_bar, late_bar,
                       bar.turn_e[0], second_bar, bar.turning);
  adj_second_drag(m, x.state, s.model, x.e[0], s.second, kStep, slide_bar, second_bar, bar.e[0], model_bar, bar.state,
                  bar.material);
  adj_turn_predictor(x.turning, n, s.late, s.drag[0], kStep, w.predictor[0], axis_bar, late_bar, drag_bar[0],
                     bar.turning);
  adj_first_turn_drag(x.turning, n, x.rates, s.model.centred_force, drag_bar[0], axis_bar, bar.rates,
                      model_bar.centred_force, bar.turning);
  adj_linear_model(m, x.state, s.model, kStep, model_bar, bar.state, bar.material);
  adj_late_turn(late_bar, bar.rates);
  bar.state.normal += axis_bar;
  return bar;
}

// Each number by a dual number through the very source; tolerance as for the force (contact_law_test.cpp).
TEST(TurnFriction, AdjointIsTheTransposeOfTheDerivative) {
  Random random(7);
  int held = 0, turning = 0, from_nothing = 0;
  double errors[3] = {};
  for (int i = 0; i < 1500; ++i) {
    const Inputs<double> x = random_inputs(random);
    Weights w;
    auto* const weights = reinterpret_cast<double*>(&w);
    for (std::size_t k = 0; k < sizeof(w) / sizeof(double); ++k) weights[k] = random.symmetric(1);
    Inputs<double> bar = gradient_of(x, w, Fault::none);
    Inputs<double> faulty[3];
    for (int f = 0; f < 3; ++f) faulty[f] = gradient_of(x, w, static_cast<Fault>(f + 1));
    const Stages<double> s(x);
    const double bound = x.turning.torsional * s.force.normal.value;
    const double about_normal = std::abs(dot(s.moment, x.state.normal));
    held += bound > 0 && about_normal < 0.95 * bound;
    turning += bound > 0 && about_normal > 0.999 * bound;
    from_nothing += bound == 0 && bar.turning.torsional != 0;
    for (int k = 0; k < kInputs; ++k) {
      Inputs<D> dual;
      for (int j = 0; j < kInputs; ++j) numbers_of(dual)[j] = D(reinterpret_cast<const double*>(&x)[j], j == k);
      const double exact = weighted(dual, w).dot, ours = numbers_of(bar)[k];
      const double scale = std::abs(exact) + std::abs(weighted(x, w)) + 1;
      EXPECT_NEAR(ours, exact, 1e-10 * scale) << "input " << k << " of case " << i;
      for (int f = 0; f < 3; ++f) errors[f] = std::max(errors[f], std::abs(numbers_of(faulty[f])[k] - exact) / scale);
    }
  }
  EXPECT_GT(held, 50);
  EXPECT_GT(turning, 50);
  EXPECT_GT(from_nothing, 50);
  for (const double error : errors) EXPECT_GT(error, 1e-3);
}

TEST(TurnFriction, NeverExceedsItsBounds) {
  Random random(8);
  for (int i = 0; i < 20000; ++i) {
    const Inputs<double> x = random_inputs(random);
    const Stages<double> s(x);
    const Vec3<double>& n = x.state.normal;
    const double force = s.force.normal.value;
    const Vec3<double> across = tangential(n, s.moment);
    EXPECT_LE(std::abs(dot(n, s.moment)), x.turning.torsional * force * (1 + 1e-12) + 1e-14);
    EXPECT_LE(std::sqrt(dot(across, across)), x.turning.rolling * force * (1 + 1e-12) + 1e-14);
  }
}

// From holding to turning and back: a jump of the moment or of its slope would be many times what the steps allow.
TEST(TurnFriction, IsContinuousWithItsSlope) {
  Random random(9);
  Inputs<double> x = random_inputs(random);
  x.state.depth = 2e-3;
  x.material.creep = 1e-2;
  x.turning = {4e-3, 6e-3, 1};
  x.rates = {{0, 0, 0}, {0, 0, 0}};
  const Vec3<double> direction = random_vector(random, 1);
  x.turn_e[0] = direction * -0.5;
  constexpr double h = 1e-3;
  constexpr int count = 12000;
  std::vector<double> values, slopes;
  for (int i = 0; i < count; ++i) {
    Inputs<D> dual;
    for (int j = 0; j < kInputs; ++j) numbers_of(dual)[j] = D(numbers_of(x)[j]);
    const double along = (i - count / 2) * h;
    const auto at = [&](double c) { return D(along * c, c); };
    dual.rates.start = dual.rates.smooth = {at(direction.x), at(direction.y), at(direction.z)};
    const Vec3<D> moment = Stages<D>(dual).moment;
    values.push_back((moment.x + moment.y + moment.z).value);
    slopes.push_back((moment.x + moment.y + moment.z).dot);
  }
  double steepest = 0, bend = 0;
  for (int i = 1; i < count; ++i) {
    steepest = std::max(steepest, std::abs(slopes[i]));
    bend = std::max(bend, std::abs(slopes[i] - slopes[i - 1]) / h);
    // A smooth function's steps are the mean of its slopes, to h² times a second derivative's change.
    EXPECT_NEAR(values[i] - values[i - 1], 0.5 * h * (slopes[i] + slopes[i - 1]), 0.05 * h * steepest);
  }
  EXPECT_GT(steepest, 0.01);
  EXPECT_LT(bend, 100 * steepest);  // the corner is rounded over 2 δ = 0.04 of the bound
}

TEST(TurnFriction, IsNothingWhereNothingTurnsNorTouches) {
  Random random(10);
  for (int i = 0; i < 100; ++i) {
    Inputs<double> x = random_inputs(random);
    const Vec3<double> o{0, 0, 0};
    if (i % 2) {
      x.state.depth = -0.1;
    } else {
      x.rates = {o, o};
      x.turn_e[0] = x.turn_e[1] = o;
    }
    const Stages<double> s(x);
    EXPECT_EQ(dot(s.moment, s.moment), 0);
    for (const auto& drag : s.drag) {
      const auto p = turn_predictor(x.turning, x.state.normal, s.late, drag, kStep);
      EXPECT_EQ(dot(p.impulse, p.impulse), 0);
      if (i % 2) {
        EXPECT_EQ(p.normal + p.tangential, 0);
      }
    }
  }
}

}  // namespace
}  // namespace backdrive
