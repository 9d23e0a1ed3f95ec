// Gradients of first derivatives that are recorded, of dynamics and of steps: against differences of the unrecorded
// functions on the manifold, and against what small turns that do not commute have to make of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "autodiff/tape/dynamics.h"
#include "autodiff/tape/step_jacobians.h"
#include "models/coordinates.h"
#include "models/parameter_list.h"
#include "tests/support/batch.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"
#include "tests/support/random.h"

namespace backdrive {
namespace {

constexpr double kStep = 0.01;

/// What a function is asked of: efforts or controls beside the state.
template <class T>
struct At {
  State<T> state;
  Buffer<T> given;
};

/// Matrices of one world, recorded where there is a tape.
template <class T>
using Matrices = std::function<std::vector<Buffer<T>>(Tape<T>*, const Model&, const At<T>&)>;

template <class T>
Matrices<T> of_dynamics() {
  return [](Tape<T>* tape, const Model& model, const At<T>& at) {
    const DynamicsDerivatives<T> of = dynamics_derivatives<T>(tape, model, at.state, at.given);
    return std::vector<Buffer<T>>{of.by_position, of.by_velocity, of.by_effort};
  };
}

template <class T>
Matrices<T> of_steps(int steps) {
  return [=](Tape<T>* tape, const Model& model, const At<T>& at) {
    RolloutOptions options;
    options.time_step = kStep;
    options.steps = steps;
    Control<T> control;
    control.u = at.given;
    const StepJacobians<T> of = step_jacobians<T>(tape, model, at.state, control, options);
    return std::vector<Buffer<T>>{of.A, of.B};
  };
}

/// Exact in either precision.
double weight(int matrix, int k) {
  return ((7 * k + 3 * matrix) % 16 - 7.5) / 8;
}

template <class T>
Gradients<T> gradients_of(const Matrices<T>& function, const Model& model, const At<T>& at) {
  Tape<T> tape;
  Seeds<T> seeds;
  const std::vector<Buffer<T>> all = function(&tape, model, at);
  for (std::size_t m = 0; m < all.size(); ++m) {
    Buffer<T> seed(all[m].rows(), all[m].worlds());
    for (int k = 0; k < seed.rows(); ++k) {
      for (int w = 0; w < seed.worlds(); ++w) seed.set(k, w, T(weight(static_cast<int>(m), k)));
    }
    if (!seed.empty()) seeds.add(all[m], seed);
  }
  return std::move(tape).backward(seeds, Disconnected::zero);
}

At<double> at_random(const Model& model) {
  const auto batch = test::random_batch<double>(model, 1, {0}, 5);
  At<double> at{batch.state, Buffer<double>(model.topology.nv, 1)};
  for (int v = 0; v < model.topology.nv; ++v) at.given.set(v, 0, std::sin(1.0 + 2 * v));
  return at;
}

At<double> step_at_random(const Model& model, int steps) {
  auto batch = test::random_batch<double>(model, steps, {0}, 8);
  return {place_bodies<double>(nullptr, model, batch.state, {}), batch.control.u};
}

/// Central differences of Σ weight · matrix, at h and 2 h. What they cut off at h is a third of how far apart they are;
/// of the sum's terms 1e-13 each is rounding, over h: a
/// step does some hundred operations for each.
class Differences {
 public:
  /// Of one number in `every`, an odd one: positions and velocities take turns.
  Differences(const Matrices<double>& function, Model model, At<double> at, double h, int every = 1)
      : function_(function),
        model_(std::move(model)),
        at_(std::move(at)),
        h_(h),
        every_(every),
        gradients_(gradients_of<double>(function, model_, at_)) {}

  /// How many numbers have a slope that differences know to 1e-4.
  int check() {
    check_state();
    for (const Field& field : fields()) check_field(field);
    return seen_;
  }

 private:
  double sum(double* size = nullptr) const {
    const std::vector<Buffer<double>> all = function_(nullptr, model_, at_);
    double result = 0, terms = 0;
    for (std::size_t m = 0; m < all.size(); ++m) {
      for (int k = 0; k < all[m].rows(); ++k) {
        const double term = weight(static_cast<int>(m), k) * all[m](k, 0);
        result += term, terms += std::abs(term);
      }
    }
    if (size) *size = terms;
    return result;
  }

  /// move(x) moves a number by x from where it is.
  void expect(double exact, const std::function<void(double)>& move, const std::string& what) {
    if (count_++ % every_ != 0) return;
    double size = 0;
    const auto at = [&](double x) {
      move(x);
      const double result = sum(&size);
      move(0);
      return result;
    };
    const double near = (at(h_) - at(-h_)) / (2 * h_), far = (at(2 * h_) - at(-2 * h_)) / (4 * h_);
    const double tolerance = std::abs(far - near) + 1e-13 * size / h_;
    EXPECT_NEAR(exact, near, tolerance) << what;
    seen_ += std::abs(near) > 1e4 * tolerance;
  }

  void check_state() {
    const Topology& t = model_.topology;
    const std::vector<int> tangent = tangent_rows(t);
    const State<double> start = detach(at_.state);
    const Buffer<double> given = at_.given.clone(default_memory());
    const auto put = [&](int v, double by_q, double by_qd) {
      std::vector<double> q = test::column(start.q, 0), small(t.nv, 0.0);
      small[v] = by_q;
      add_tangent(t, small, q);
      for (int r = 0; r < t.nq; ++r) at_.state.q.set(r, 0, q[r]);
      at_.state.qd.set(v, 0, start.qd(v, 0) + by_qd);
    };
    // Taken first: what is written below are the same buffers.
    std::vector<double> by_q, by_qd, by_given;
    for (int v = 0; v < t.nv; ++v) {
      by_q.push_back(gradients_.of(at_.state.q)(tangent[v], 0));
      by_qd.push_back(gradients_.of(at_.state.qd)(v, 0));
    }
    for (int k = 0; k < given.rows(); ++k) by_given.push_back(gradients_.of(at_.given)(k, 0));
    for (int v = 0; v < t.nv; ++v) {
      expect(
          by_q[v], [&](double x) { put(v, x, 0); }, "position " + std::to_string(v));
      expect(
          by_qd[v], [&](double x) { put(v, 0, x); }, "velocity " + std::to_string(v));
    }
    for (int k = 0; k < given.rows(); ++k) {
      expect(
          by_given[k], [&](double x) { at_.given.set(k, 0, given(k, 0) + x); }, "given " + std::to_string(k));
    }
  }

  void check_field(const Field& field) {
    Parameter& p = field.of(model_);
    const Parameter& by = field.in(gradients_.parameters());
    for (int item = 0; item < p.items(); ++item) {
      if (!p.requires_grad(item)) continue;
      std::vector<double> own;
      for (int c = 0; c < p.components(); ++c) own.push_back(p(item, c));
      const int count = field.tangents < field.components ? field.tangents : used_components(model_, field, item);
      for (int c = 0; c < count; ++c) {
        if (own[c] == 0 && field.values != ValueRange::any) continue;  // no number lies below it
        const auto move = [&](double x) {
          std::vector<double> moved = own;
          if (field.tangents < field.components) {
            Vec3<double> theta{0, 0, 0};
            (c == 0 ? theta.x : c == 1 ? theta.y : theta.z) = x;
            const Quaternion<double> q = turned<TurnSide::right>(load_quaternion(own.data()), theta);
            moved = {q.v.x, q.v.y, q.v.z, q.w};
          } else {
            moved[c] += x;
          }
          if (field.leaf == "axis") {
            const double length = std::hypot(moved[0], moved[1], moved[2]);
            for (double& number : moved) number /= length;
          }
          for (std::size_t k = 0; k < moved.size(); ++k) p.set(item, static_cast<int>(k), moved[k]);
        };
        expect(by(item, c), move, std::string(field.leaf) + " of " + std::to_string(item) + "/" + std::to_string(c));
      }
    }
  }

  const Matrices<double>& function_;
  Model model_;
  At<double> at_;
  double h_;
  int every_, count_ = 0;
  Gradients<double> gradients_;
  int seen_ = 0;
};

Model robot(int seed, int links, test::TreeOptions options = {}) {
  options.forces = options.rotations = true;
  options.links = links;
  Model model = test::random_tree(static_cast<std::uint64_t>(seed), options);
  test::require_all(model);
  return model;
}

TEST(SecondDerivatives, OfDynamicsAgreeWithDifferencesOnTheManifold) {
  const Matrices<double> function = of_dynamics<double>();
  for (int seed = 40; seed < 47; ++seed) {
    SCOPED_TRACE(seed);
    const Model model = robot(seed, seed % 7 + 2);
    // Of each degree of freedom position, velocity and effort act on most; of each body mass, com and inertia.
    EXPECT_GT(Differences(function, model, at_random(model), 1e-4).check(), 5 * model.topology.nv);
  }
}

/// Whether anything pushes anything.
bool touches(const Model& model, const At<double>& at) {
  RolloutOptions options;
  options.time_step = kStep;
  options.steps = at.given.rows() / model.topology.nu;
  options.keep_contact = true;
  Control<double> control;
  control.u = at.given;
  const Trajectory<double> after = rollout(model, at.state, control, options);
  double most = 0;
  for (int pair = 0; kContactRows * pair < after.contact.rows(); ++pair) {
    for (int k = 0; k < 3; ++k) most = std::max(most, std::abs(after.contact(kContactRows * pair + k, 0)));
  }
  return most > 0;
}

// Contact is smooth over less than hinges are: a shorter step there.
TEST(SecondDerivatives, OfStepsAgreeWithDifferencesOnTheManifold) {
  for (const auto integrator : {Integrator::featherstone, Integrator::semi_implicit}) {
    for (const bool contact : {false, true}) {
      const bool bodies = integrator == Integrator::semi_implicit;
      const int steps = contact ? 1 : 2;
      test::TreeOptions options;
      options.integrator = integrator;
      options.shapes = options.contact = contact;
      options.couplings = bodies ? 0 : 2;
      options.loops = bodies ? 1 : 0;
      const Model model = robot(contact ? 31 : 30, bodies ? 2 : 5, options);
      SCOPED_TRACE(std::string(bodies ? "semi_implicit" : "featherstone") + (contact ? ", contact" : ""));
      const Matrices<double> function = of_steps<double>(steps);
      const At<double> at = step_at_random(model, steps);
      EXPECT_EQ(touches(model, at), contact);
      // What has bodies has many numbers, and takes its time for each.
      const int every = bodies ? 5 : 3, seen = Differences(function, model, at, contact ? 1e-6 : 1e-4, every).check();
      EXPECT_GT(every * seen, 4 * model.topology.nv);
    }
  }
}

/// Gradients by positions of one number of a matrix, in tangent rows.
std::vector<double> gradient_of_entry(const Matrices<double>& function, const Model& model, const At<double>& at,
                                      int row) {
  Tape<double> tape;
  const Buffer<double> matrix = function(&tape, model, at)[0];
  Buffer<double> one(matrix.rows(), 1);
  one.set(row, 0, 1);
  Seeds<double> seeds;
  seeds.add(matrix, one);
  const Gradients<double> by = std::move(tape).backward(seeds, Disconnected::zero);
  std::vector<double> result;
  for (const int r : tangent_rows(model.topology)) result.push_back(by.of(at.state.q)(r, 0));
  return result;
}

/// A body on a ball joint, and one that is free, which hangs off its centre.
Model turning(JointType type) {
  test::TreeOptions options;
  options.links = 2;
  options.rotations = true;
  for (std::uint64_t seed = 1;; ++seed) {
    Model model = test::random_tree(seed, options);
    if (std::ranges::count(model.joint_types, type) == 1) return model;
  }
}

// Small turns a and then b are other than b and then a, by ±a × b: second derivatives in their axes are symmetric but
// for the first derivative along that, which is as large as they are. Rows of a turn that a step leads to stand in axes
// that turn themselves: less ±a × b of what a and b turn them by.
TEST(SecondDerivatives, OfTurnsAreSymmetricButForTheirCommutator) {
  for (const JointType type : {JointType::ball, JointType::free}) {
    const Model model = turning(type);
    const Topology& t = model.topology;
    const Link& link = *std::ranges::find(t.links, type, &Link::type);
    const double sign = type == JointType::ball ? 1 : -1;
    for (const bool of_step : {false, true}) {
      const At<double> at = of_step ? step_at_random(model, 1) : at_random(model);
      const Matrices<double> function = of_step ? of_steps<double>(1) : of_dynamics<double>();
      const Buffer<double> first = function(nullptr, model, at)[0];
      const int rows = of_step ? 2 * t.nv : t.nv;
      double most = 0;
      for (int row = 0; row < rows; ++row) {
        const auto entry = [&](int r, int k) { return first(r * rows + link.v + k, 0); };
        const auto second = [&](int j, int k) {  // of the derivative along k, along j
          return gradient_of_entry(function, model, at, row * rows + link.v + k)[link.v + j];
        };
        for (int k = 0; k < 3; ++k) {
          const int i = (k + 1) % 3, j = (k + 2) % 3;
          double commutator = sign * entry(row, k);
          each_quaternion(t, [&](TurnSide side, int, int v) {
            if (!of_step || row < v || row > v + 2) return;
            const int a = v + (row - v + 1) % 3, b = v + (row - v + 2) % 3;
            const double twist = entry(a, i) * entry(b, j) - entry(b, i) * entry(a, j);
            commutator -= side == TurnSide::right ? twist : -twist;
          });
          // Sums of some hundred terms of the largest of some hundred numbers.
          EXPECT_NEAR(second(i, j) - second(j, i), commutator, 1e-11) << row << ", " << k << ", " << of_step;
          most = std::max(most, std::abs(commutator));
        }
      }
      EXPECT_GT(most, of_step ? 1e-3 : 0.1);
    }
  }
}

/// The same numbers, of single precision.
At<float> in_floats(const At<double>& at) {
  At<float> result;
  result.state.q = Buffer<float>(at.state.q.rows(), 1);
  result.state.qd = Buffer<float>(at.state.qd.rows(), 1);
  result.given = Buffer<float>(at.given.rows(), 1);
  for (int r = 0; r < at.state.q.rows(); ++r) result.state.q.set(r, 0, float(at.state.q(r, 0)));
  for (int r = 0; r < at.state.qd.rows(); ++r) result.state.qd.set(r, 0, float(at.state.qd(r, 0)));
  for (int r = 0; r < at.given.rows(); ++r) result.given.set(r, 0, float(at.given(r, 0)));
  return result;
}
At<double> in_doubles(const Topology& t, const At<float>& at) {
  At<double> result;
  result.state.q = Buffer<double>(at.state.q.rows(), 1);
  result.state.qd = Buffer<double>(at.state.qd.rows(), 1);
  result.given = Buffer<double>(at.given.rows(), 1);
  for (int r = 0; r < at.state.q.rows(); ++r) result.state.q.set(r, 0, at.state.q(r, 0));
  for (int r = 0; r < at.state.qd.rows(); ++r) result.state.qd.set(r, 0, at.state.qd(r, 0));
  for (int r = 0; r < at.given.rows(); ++r) result.given.set(r, 0, at.given(r, 0));
  const auto unit = [&](TurnSide, int row, int) {
    double square = 0;
    for (int k = row; k < row + 4; ++k) square += result.state.q(k, 0) * result.state.q(k, 0);
    for (int k = row; k < row + 4; ++k) result.state.q.set(k, 0, result.state.q(k, 0) / std::sqrt(square));
  };
  each_quaternion(t, unit);
  each_body(t, [&](int q, int v) { unit(TurnSide::left, q, v); });
  return result;
}

// They are worked out in double precision: those of states are rounded once, 6e-8; parameters' differ by the rounding
// of unit quaternions, 1e-16, times what a step makes of it.
TEST(SecondDerivatives, OfSinglePrecisionAreThoseOfDoubleRounded) {
  test::TreeOptions touching;
  touching.shapes = touching.contact = true;
  for (const bool of_step : {false, true}) {
    const Model model = of_step ? robot(31, 4, touching) : robot(44, 5);
    const Topology& t = model.topology;
    const At<float> single = in_floats(of_step ? step_at_random(model, 1) : at_random(model));
    const At<double> same = in_doubles(t, single);
    const Gradients<float> of = gradients_of(of_step ? of_steps<float>(1) : of_dynamics<float>(), model, single);
    const Gradients<double> exact = gradients_of(of_step ? of_steps<double>(1) : of_dynamics<double>(), model, same);
    const auto expect_rounded = [](const Buffer<float>& got, const Buffer<double>& wanted) {
      for (int r = 0; r < got.rows(); ++r) {
        EXPECT_NEAR(got(r, 0), wanted(r, 0), 1e-7 * std::abs(wanted(r, 0)) + 1e-9) << r;
      }
    };
    expect_rounded(of.of(single.state.q), exact.of(same.state.q));
    expect_rounded(of.of(single.state.qd), exact.of(same.state.qd));
    expect_rounded(of.of(single.given), exact.of(same.given));
    int seen = 0;
    for (const Field& field : fields()) {
      const Parameter &got = field.in(of.parameters()), &wanted = field.in(exact.parameters());
      for (int i = 0; i < wanted.items(); ++i) {
        for (int c = 0; c < wanted.components(); ++c) {
          EXPECT_NEAR(got(i, c), wanted(i, c), 1e-9 * std::abs(wanted(i, c)) + 1e-9) << field.leaf << " of " << i;
          seen += std::abs(wanted(i, c)) > 1e-3;
        }
      }
    }
    EXPECT_GT(seen, 40);
  }
}

// Worlds beside one another leave no trace in each other, whose parameters may be their own.
TEST(SecondDerivatives, OfDynamicsAreEachWorldsOwn) {
  constexpr int kWorlds = 9;
  Model model = robot(41, 4);
  model.bodies.mass.spread(kWorlds);
  for (int w = 0; w < kWorlds; ++w) model.bodies.mass.at(2, 0, w) *= 1 + 0.1 * w;
  At<double> at{test::random_batch<double>(model, 1, test::first_worlds(kWorlds), 5).state,
                Buffer<double>(model.topology.nv, kWorlds)};
  at.given.fill(0.5);
  const Gradients<double> all = gradients_of(of_dynamics<double>(), model, at);
  Parameters sum = zero_parameters(model);
  for (int w = 0; w < kWorlds; ++w) {
    Model one = robot(41, 4);
    one.bodies.mass.set(2, 0, model.bodies.mass(2, 0, w));
    At<double> alone{test::random_batch<double>(one, 1, {w}, 5).state, Buffer<double>(one.topology.nv, 1)};
    alone.given.fill(0.5);
    const Gradients<double> own = gradients_of(of_dynamics<double>(), one, alone);
    EXPECT_TRUE(test::same_bits(all.of(at.state.q), w, own.of(alone.state.q), 0)) << w;
    EXPECT_TRUE(test::same_bits(all.of(at.state.qd), w, own.of(alone.state.qd), 0)) << w;
    EXPECT_TRUE(test::same_bits(all.of(at.given), w, own.of(alone.given), 0)) << w;
    EXPECT_EQ(all.parameters().bodies.mass(2, 0, w), own.parameters().bodies.mass(2, 0)) << w;
    EXPECT_NE(own.parameters().bodies.mass(2, 0), 0);
  }
}

// More rows than are recorded at a time, and one of them a loss reads alone.
TEST(SecondDerivatives, OfStepsAreEachWorldsOwn) {
  const Model model = robot(30, 4);
  constexpr int kWorlds = 300;
  ASSERT_GT(kWorlds * 2 * model.topology.nv, 4096);
  const auto at_worlds = [&](const std::vector<int>& worlds) {
    const auto batch = test::random_batch<double>(model, 1, worlds, 8);
    return At<double>{batch.state, batch.control.u};
  };
  const At<double> all = at_worlds(test::first_worlds(kWorlds));
  const Gradients<double> of_all = gradients_of(of_steps<double>(1), model, all);
  double mass = 0;
  for (int w = 0; w < kWorlds; ++w) {
    const At<double> one = at_worlds({w});
    const Gradients<double> own = gradients_of(of_steps<double>(1), model, one);
    mass += own.parameters().bodies.mass(1, 0);
    EXPECT_TRUE(test::same_bits(of_all.of(all.state.q), w, own.of(one.state.q), 0)) << w;
    EXPECT_TRUE(test::same_bits(of_all.of(all.state.qd), w, own.of(one.state.qd), 0)) << w;
    EXPECT_TRUE(test::same_bits(of_all.of(all.given), w, own.of(one.given), 0)) << w;
  }
  EXPECT_NEAR(of_all.parameters().bodies.mass(1, 0), mass, 1e-12 * kWorlds * std::abs(mass));
}

// A world that stops has none, and leaves those of parameters alone.
TEST(SecondDerivatives, OfWorldsThatStopAreNotNumbers) {
  for (const int steps : {1, 2}) {
    Model model = test::chain(3);
    test::require_all(model);
    const auto at_worlds = [&](const std::vector<int>& worlds) {
      const auto batch = test::random_batch<double>(model, steps, worlds, 8);
      return At<double>{batch.state, batch.control.u};
    };
    At<double> all = at_worlds({0, 1, 2}), rest = at_worlds({0, 2});
    all.state.qd.set(1, 1, 1e200);
    const Gradients<double> of_all = gradients_of(of_steps<double>(steps), model, all),
                            of_rest = gradients_of(of_steps<double>(steps), model, rest);
    EXPECT_EQ(of_all.stopped_worlds(), 1);
    for (int r = 0; r < all.state.q.rows(); ++r) {
      EXPECT_TRUE(std::isnan(of_all.of(all.state.q)(r, 1)));
      EXPECT_EQ(of_all.of(all.state.q)(r, 2), of_rest.of(rest.state.q)(r, 1));
    }
    for (int r = 0; r < all.given.rows(); ++r) EXPECT_TRUE(std::isnan(of_all.of(all.given)(r, 1)));
    EXPECT_TRUE(test::expect_equal_parameters(of_all.parameters(), of_rest.parameters()));
  }
}

// Behind a rollout, of whose last state they are: by its first one.
TEST(SecondDerivatives, PassOnThroughWhatWasRecordedBefore) {
  const Model model = robot(43, 4);
  for (const bool of_step : {false, true}) {
    const Matrices<double> behind = [&](Tape<double>* tape, const Model& m, const At<double>& at) {
      RolloutOptions options;
      options.steps = 3;
      State<double> end;
      if (tape) end = rollout(*tape, m, at.state, Control<double>(), options).final;
      if (!tape) end = rollout(m, at.state, Control<double>(), options).final;
      return (of_step ? of_steps<double>(1) : of_dynamics<double>())(tape, m, {end, at.given});
    };
    At<double> at = of_step ? step_at_random(model, 1) : at_random(model);
    EXPECT_GT(Differences(behind, model, at, 1e-4).check(), 3 * model.topology.nv);
  }
}

// 1/m of a mass that slides, which is ∂q̈/∂τ and, times Δt, of a step ∂q̇⁺/∂u.
TEST(SecondDerivatives, OfASlidingMassAreKnown) {
  constexpr double mass = 2;
  Model model = test::slider(mass);
  set_requires_grad(model, "bodies/*/mass", true);
  const At<double> at{State<double>(model, 1), Buffer<double>(1, 1)};
  for (const bool of_step : {false, true}) {
    Tape<double> tape;
    const Buffer<double> matrix = (of_step ? of_steps<double>(1) : of_dynamics<double>())(&tape, model, at).back();
    Buffer<double> seed(matrix.rows(), 1);
    seed.set(matrix.rows() - 1, 0, 1);
    Seeds<double> seeds;
    seeds.add(matrix, seed);
    const Gradients<double> by = std::move(tape).backward(seeds);
    EXPECT_NEAR(by.parameters().bodies.mass(0, 0), -(of_step ? kStep : 1) / (mass * mass), 1e-15);
  }
}

TEST(SecondDerivatives, KnowWhatTheyDoNotDependOn) {
  const Model model = test::chain(3);
  const At<double> at = at_random(model);
  for (const int matrix : {0, 1, 2}) {
    Tape<double> tape;
    const Buffer<double> read = of_dynamics<double>()(&tape, model, at)[matrix];
    Seeds<double> seeds;
    Buffer<double> one(read.rows(), 1);
    one.set(1, 0, 1);
    seeds.add(read, one);
    const Gradients<double> by = std::move(tape).backward(seeds);
    EXPECT_TRUE(by.is_connected(at.state.q));
    EXPECT_EQ(by.is_connected(at.state.qd), matrix < 2);
    EXPECT_EQ(by.is_connected(at.given), matrix < 1);
  }
}

TEST(SecondDerivatives, RefuseNumbersThatChangedSince) {
  const Model model = test::chain(2);
  for (const bool of_step : {false, true}) {
    At<double> at = of_step ? step_at_random(model, 1) : at_random(model);
    Tape<double> tape;
    const Buffer<double> matrix = (of_step ? of_steps<double>(1) : of_dynamics<double>())(&tape, model, at)[0];
    Seeds<double> seeds;
    seeds.add(matrix, Buffer<double>(matrix.rows(), 1));
    at.state.qd.set(0, 0, 2);
    test::expect_usage_error([&] { std::move(tape).backward(seeds); }, {"written to between record and backward"});
  }
  Model spread = model;
  spread.bodies.mass.spread(2);
  Tape<double> tape;
  test::expect_usage_error([&] { step_jacobians<double>(&tape, spread, State<double>(spread, 2), {}, {}); },
                           {"differ from world to world"});
}

// What is recorded is what it is unrecorded, to the bit.
TEST(SecondDerivatives, AreOfTheSameNumbers) {
  test::TreeOptions touching;
  touching.shapes = touching.contact = true;
  for (const bool contact : {false, true}) {
    const Model model = contact ? robot(31, 4, touching) : robot(44, 5);
    for (const bool of_step : {false, true}) {
      const Matrices<double> function = of_step ? of_steps<double>(1) : of_dynamics<double>();
      const At<double> at = of_step ? step_at_random(model, 1) : at_random(model);
      Tape<double> tape;
      const auto recorded = function(&tape, model, at), alone = function(nullptr, model, at);
      for (std::size_t m = 0; m < alone.size(); ++m) EXPECT_TRUE(test::same_bits(recorded[m], alone[m]));
    }
  }
}

}  // namespace
}  // namespace backdrive
