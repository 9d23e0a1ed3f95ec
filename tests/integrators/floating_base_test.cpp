// Free and ball joints: Pinocchio's values for a quadruped (tests/reference/README.md), closed forms of free bodies,
// large turns, and what float32 keeps far from the world's origin.
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "integrators/reference/inverse_dynamics.h"
#include "integrators/reference/mass_matrix.h"
#include "models/builder.h"
#include "models/coordinates.h"
#include "tests/integrators/accelerations.h"
#include "tests/support/gradient_case.h"
#include "tests/support/models.h"
#include "tests/support/reference.h"

namespace backdrive {
namespace {

using nlohmann::json;
using Vector = std::vector<double>;
using Matrix = std::vector<std::vector<double>>;

const json& quadruped_file() {
  static const json content = test::read_reference("pinocchio_quadruped");
  return content;
}

Model quadruped() {
  ModelBuilder builder;
  builder.set_gravity(quadruped_file()["gravity"].get<Numbers3>());
  std::map<std::string, int> body{{"world", ModelBuilder::world}};
  for (const json& link : quadruped_file()["links"]) {
    const std::string child = link["child"], type = link["type"];
    body[child] = builder.add_body(
        child, {link["mass"], link["com"].get<Numbers3>(), link["inertia"].get<std::array<double, 6>>()});
    JointOptions joint;
    joint.frame = {link["position"].get<Numbers3>(), link["orientation"].get<std::array<double, 4>>()};
    joint.axis = link["axis"].get<Numbers3>();
    joint.armature = link["armature"];
    const JointType own = type == "free" ? JointType::free : type == "ball" ? JointType::ball : JointType::revolute;
    builder.add_joint(link["joint"], own, body.at(link["parent"]), body[child], joint);
  }
  return builder.build();
}

double largest(const Vector& values) {
  double result = 0;
  for (const double x : values) result = std::max(result, std::abs(x));
  return result;
}
Vector flat(const Matrix& matrix) {
  Vector all;
  for (const Vector& row : matrix) all.insert(all.end(), row.begin(), row.end());
  return all;
}
void expect_close(const Vector& ours, const Vector& theirs, double tolerance, const char* what) {
  ASSERT_EQ(ours.size(), theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_NEAR(ours[i], theirs[i], tolerance * largest(theirs)) << what << "[" << i << "]";
  }
}

class OracleQuadruped : public testing::Test {
 protected:
  const Model model = quadruped();
  const json& states = quadruped_file()["states"];
};

// As for the arm: 1e-12 of the largest number is some ten times what the condition of M makes of 1e-16.
TEST_F(OracleQuadruped, Dynamics) {
  ASSERT_EQ(model.topology.nq, 23);
  ASSERT_EQ(model.topology.nv, 21);
  for (const json& s : states) {
    const Vector q = s["q"], qd = s["qd"], tau = s["tau"], qdd = s["qdd"];
    EXPECT_GT(largest(qdd), 1);
    expect_close(test::accelerations(model, q, qd, tau), qdd, 1e-12, "qdd");
    expect_close(reference::inverse_dynamics(model, q, qd, qdd), tau, 1e-11, "tau");  // of sums larger than tau
    expect_close(reference::mass_matrix(model, q), flat(s["M"]), 1e-12, "M");
  }
}

TEST_F(OracleQuadruped, Pose) {
  const int body = model.find_body(quadruped_file()["pose_body"]);
  for (const json& s : states) {
    const Vector q = s["q"], position = s["position"];
    const Matrix rotation = s["rotation"];
    Buffer<double> state(model.topology.nq, 1);
    for (std::size_t i = 0; i < q.size(); ++i) state.set(static_cast<int>(i), 0, q[i]);
    const Buffer<double> pose = body_poses<double>(nullptr, model, state, std::span(&body, 1), {});
    for (int r = 0; r < 3; ++r) {
      EXPECT_NEAR(pose(r, 0), position[r], 1e-12);
      for (int c = 0; c < 3; ++c) EXPECT_NEAR(pose(3 + 3 * c + r, 0), rotation[r][c], 1e-12);
    }
  }
}

// The file's are good to 1e-9.
TEST_F(OracleQuadruped, Derivatives) {
  const std::vector<int> tangent = tangent_rows(model.topology);
  for (const json& s : states) {
    const test::AccelerationDerivatives d = test::acceleration_derivatives(model, s["q"], s["qd"], s["tau"]);
    Vector by_q, by_qd;
    for (std::size_t w = 0; w < d.q.size(); ++w) {
      for (const int row : tangent) by_q.push_back(d.q[w][row]);
      by_qd.insert(by_qd.end(), d.qd[w].begin(), d.qd[w].end());
      EXPECT_EQ(d.q[w][3], 0) << "the row of w";
    }
    EXPECT_GT(largest(by_q), 1);
    expect_close(by_q, flat(s["qdd_q"]), 1e-9, "qdd_q");
    expect_close(by_qd, flat(s["qdd_qd"]), 1e-9, "qdd_qd");
  }
}

TEST_F(OracleQuadruped, Rollout) {
  const json& run = quadruped_file()["rollout"];
  const Matrix q = run["q"], qd = run["qd"];
  const Vector tau = run["tau"];
  RolloutOptions options;
  options.time_step = quadruped_file()["time_step"];
  options.steps = static_cast<int>(q.size()) - 1;
  State<double> state(model, 1);
  Control<double> control(model, options.steps, 1);
  for (int i = 0; i < model.topology.nq; ++i) state.q.set(i, 0, q[0][i]);
  for (int i = 0; i < model.topology.nv; ++i) {
    state.qd.set(i, 0, qd[0][i]);
    for (int k = 0; k < options.steps; ++k) control.u.set(k * model.topology.nu + i, 0, tau[i]);
  }
  const Trajectory<double> t = rollout(model, state, control, options);
  for (int k = 0; k <= options.steps; ++k) {
    for (int i = 0; i < model.topology.nq; ++i) EXPECT_NEAR(t.q(k * model.topology.nq + i, 0), q[k][i], 1e-11);
    for (int i = 0; i < model.topology.nv; ++i) EXPECT_NEAR(t.qd(k * model.topology.nv + i, 0), qd[k][i], 1e-10);
  }
}

/// One free body with three different moments of inertia, its com at its origin.
Model spinner(JointType type = JointType::free, const Numbers3& gravity = {0, 0, 0}) {
  ModelBuilder builder;
  builder.set_gravity(gravity);
  builder.add_body("body", {1.5, {0, 0, 0}, {0.01, 0.02, 0.025, 0, 0, 0}});
  builder.add_joint("joint", type, ModelBuilder::world, 0, {});
  return builder.build();
}

/// Angular momentum in the world and kinetic energy of spin of the body of spinner().
struct Spin {
  Vec3<double> momentum;
  double energy;
};
Spin spin_of(const Vector& q, const Vector& qd) {
  const Mat3<double> R = rotation_matrix(load_quaternion(q.data()));
  const Vec3<double> omega{qd[0], qd[1], qd[2]}, own = transposed_times(R, omega);
  const Vec3<double> L{0.01 * own.x, 0.02 * own.y, 0.025 * own.z};
  return {R * L, 0.5 * dot(own, L)};
}
double length(const Vec3<double>& v) {
  return std::sqrt(dot(v, v));
}

/// Largest relative errors of momentum and energy over `seconds` of spin, and how far the mean energy of the last
/// quarter is from that of the first. Momentum in the middle of steps: a state's velocity is half a step ahead.
struct SpinErrors {
  double momentum, energy, drift;
};
SpinErrors spin_errors(double dt, double seconds) {
  const Model model = spinner();
  State<double> state(model, 1);
  const double omega[] = {3, 5, 2};
  for (int k = 0; k < 3; ++k) state.qd.set(k, 0, omega[k]);
  RolloutOptions options;
  options.time_step = dt;
  options.steps = static_cast<int>(std::lround(seconds / dt));
  const Trajectory<double> t = rollout<double>(model, state, {}, options);
  const auto velocity = [&](int k) { return test::column(t.qd, 0, 6 * k, 6); };
  const auto at = [&](int k) {
    Vector centred = velocity(k);
    for (int i = 0; i < 6; ++i) centred[i] = 0.5 * (centred[i] + velocity(k + 1)[i]);
    const Vector q = test::column(t.q, 0, 7 * k, 7);
    return Spin{spin_of(q, centred).momentum, spin_of(q, velocity(k)).energy};
  };
  const Spin start = at(0);
  SpinErrors errors{0, 0, 0};
  const int quarter = options.steps / 4;
  for (int k = 1; k < options.steps; ++k) {
    const Spin now = at(k);
    errors.momentum = std::max(errors.momentum, length(now.momentum - start.momentum) / length(start.momentum));
    errors.energy = std::max(errors.energy, std::abs(now.energy / start.energy - 1));
    const double share = now.energy / start.energy / (quarter - 1);
    if (k < quarter) errors.drift -= share;
    if (k > options.steps - quarter) errors.drift += share;
  }
  return errors;
}

// Torque-free rotation keeps energy and angular momentum, for as long as it goes on: both errors are of second order
// and do not grow. (12 of docs/theory.md; ω × J ω at the old ω gains 16 % of energy in this time.)
TEST(ClosedFormFreeBody, TorqueFreeRotationKeepsEnergyAndMomentum) {
  const SpinErrors coarse = spin_errors(1.0 / 240, 20), fine = spin_errors(1.0 / 480, 20);
  EXPECT_LT(coarse.energy, 1e-4);
  EXPECT_LT(coarse.momentum, 2e-4);
  EXPECT_LT(std::abs(coarse.drift), 1e-6);
  EXPECT_NEAR(std::log2(coarse.energy / fine.energy), 2, 0.1);
  EXPECT_NEAR(std::log2(coarse.momentum / fine.momentum), 2, 0.1);
  std::printf("spin of 6.2 rad/s for 20 s at 1/240 s: energy %.1e, momentum %.1e, drift of energy %.1e\n",
              coarse.energy, coarse.momentum, coarse.drift);
}

// Where the couple of a whole step cannot be had it is that of the start: no body stops for it.
TEST(ClosedFormFreeBody, BodiesWithoutInertiaAndTurnsBeyondAStepGoOn) {
  ModelBuilder builder;
  builder.add_body("massless", {0, {0, 0, 0}, {0, 0, 0, 0, 0, 0}});
  builder.add_joint("joint", JointType::free, ModelBuilder::world, 0, {});
  builder.add_body("body", {1.5, {0.1, 0, 0}, {0.01, 0.02, 0.025, 0, 0, 0}});
  builder.add_joint("weld", JointType::fixed, 0, 1, {});
  for (const Model& model : {builder.build(), spinner()}) {
    State<double> state(model, 1);
    for (int k = 0; k < 3; ++k) state.qd.set(k, 0, model.bodies.mass(0, 0) > 0 ? 1000 : 3);
    RolloutOptions options;
    options.time_step = 1.0 / 240;
    options.steps = 3;
    EXPECT_FALSE(rollout<double>(model, state, {}, options).any_stopped());
  }
}

// A spinning body falls as one that does not spin: exact in p and ṗ, and its gradient too: (K1) of
// docs/known_gradients.md.
TEST(ClosedFormFreeBody, SpinDoesNotDisturbTheFall) {
  constexpr int N = 50;
  constexpr double dt = 0.01;
  Model model = spinner(JointType::free, {0, 0, -9.81});
  set_requires_grad(model, "gravity", true);
  State<double> state(model, 1);
  const double start[] = {4, -7, 3, 1, 2, 3};
  for (int k = 0; k < 6; ++k) state.qd.set(k, 0, start[k]);
  RolloutOptions options;
  options.steps = N;
  options.time_step = dt;
  Tape<double> tape;
  const Trajectory<double> t = rollout<double>(tape, model, state, {}, options);
  const double fall = dt * dt * N * (N + 1) / 2;
  EXPECT_NEAR(t.final.q(4, 0), N * dt * 1, 1e-12);
  EXPECT_NEAR(t.final.q(5, 0), N * dt * 2, 1e-12);
  EXPECT_NEAR(t.final.q(6, 0), N * dt * 3 - 9.81 * fall, 1e-12);
  EXPECT_NEAR(t.final.qd(5, 0), 3 - 9.81 * N * dt, 1e-12);
  Buffer<double> bar(7, 1);
  bar.set(6, 0, 1);
  Seeds<double> seeds;
  seeds.add(t.final.q, bar);
  const Gradients<double> g = std::move(tape).backward(seeds);
  EXPECT_NEAR(g.of(state.qd)(5, 0), N * dt, 1e-13);
  EXPECT_NEAR(g.of(state.q)(6, 0), 1, 1e-15);
  EXPECT_NEAR(g.parameters().gravity(0, 2), fall, 1e-13);
  for (int k = 0; k < 3; ++k) EXPECT_NEAR(g.of(state.qd)(k, 0), 0, 1e-13);  // com at the origin
}

// q and −q are the same orientation: the same motion and the same gradient.
TEST(Rotations, SignOfTheQuaternionDoesNotMatter) {
  test::TreeOptions options;
  options.links = 5;
  options.rotations = true;
  Model model = test::random_tree(3, options);
  test::require_all(model);
  const test::GradientCase c = test::make_case(model, 10, 0.01, 2, 5);
  test::GradientCase flipped = c;
  flipped.batch.state.q = Buffer<double>(c.batch.state.q.rows(), 2);
  for (int r = 0; r < c.batch.state.q.rows(); ++r) {
    for (int w = 0; w < 2; ++w) flipped.batch.state.q.set(r, w, c.batch.state.q(r, w));
  }
  each_quaternion(model.topology, [&](TurnSide, int row, int) {
    for (int k = 0; k < 4; ++k) flipped.batch.state.q.set(row + k, 1, -c.batch.state.q(row + k, 1));
  });
  const test::CaseGradient a = test::gradient_by_tape<double>(c), b = test::gradient_by_tape<double>(flipped);
  EXPECT_TRUE(test::same_bits(a.q0, b.q0));
  EXPECT_TRUE(test::same_bits(a.qd0, b.qd0));
  EXPECT_NE(a.q0(0, 1), 0);
}

// Steps that turn by up to three radians: the Jacobian of exp is far from 1, and the quaternion's w passes zero.
TEST(Rotations, GradientsAreRightAtLargeTurns) {
  for (const JointType type : {JointType::free, JointType::ball}) {
    Model model = spinner(type);
    test::require_all(model);
    test::BatchScale scale;
    scale.qd = 30;
    const test::GradientCase c = test::make_case(model, 3, 0.05, 8, 21, scale);
    const test::CaseGradient gradient = test::gradient_by_tape<double>(c);
    for (const test::BlockError& e : test::compare_blocks(c, gradient, 4)) {
      EXPECT_LT(e.error, 1e-12) << to_string(type) << " " << e.block;
      if (e.block == "q0" || e.block == "qd0") {
        EXPECT_GT(e.size, 0.1);
      }
    }
  }
}

TEST(Rotations, QuaternionsStayUnitInSinglePrecision) {
  const Model model = spinner();
  State<float> state(model, 1);
  const float omega[] = {3, 5, 2};
  for (int k = 0; k < 3; ++k) state.qd.set(k, 0, omega[k]);
  RolloutOptions options;
  options.steps = 100000;
  options.time_step = 1e-3;
  options.keep_states = false;
  const Trajectory<float> t = rollout<float>(model, state, {}, options);
  double square = 0;
  for (int k = 0; k < 4; ++k) square += static_cast<double>(t.final.q(k, 0)) * t.final.q(k, 0);
  EXPECT_NEAR(square, 1, 1e-6);  // an ulp or two of float
}

// O moves with a free root: joints move the same a kilometre away, to the bit.
TEST(Rotations, DistanceFromTheOriginDoesNotMatterInSinglePrecision) {
  const Model model = quadruped();
  test::Batch<float> near = test::random_batch<float>(model, 60, test::first_worlds(2), 9);
  test::Batch<float> far = test::random_batch<float>(model, 60, test::first_worlds(2), 9);
  for (int w = 0; w < 2; ++w) far.state.q.set(4, w, far.state.q(4, w) + 1000), far.state.q.set(5, w, -1000);
  RolloutOptions options;
  options.steps = 60;
  options.time_step = 1.0 / 240;
  const Trajectory<float> a = rollout(model, near.state, near.control, options);
  const Trajectory<float> b = rollout(model, far.state, far.control, options);
  EXPECT_TRUE(test::same_bits(a.final.qd, b.final.qd));
  for (int r = 7; r < model.topology.nq; ++r) EXPECT_EQ(a.final.q(r, 0), b.final.q(r, 0));
  EXPECT_NE(a.final.qd(6, 0), near.state.qd(6, 0));
}

// Beyond what an angle can say, sine and cosine are noise: the world stops in this step and keeps its last orientation.
TEST(Rotations, AnAngleBeyondAllBoundsStopsTheWorld) {
  for (const JointType type : {JointType::ball, JointType::free}) {
    const Model model = spinner(type);
    for (const float speed : {1e12f, 1e20f, 1e38f}) {
      State<float> state(model, 2);
      state.qd.set(0, 0, speed);
      state.qd.set(0, 1, 3);
      RolloutOptions options;
      options.time_step = 1e-3;
      options.steps = 2;
      const Trajectory<float> t = rollout<float>(model, state, {}, options);
      EXPECT_EQ((*t.status)[0].stopped_step, 0) << speed;
      EXPECT_EQ((*t.status)[0].joint, 0);
      EXPECT_FALSE((*t.status)[1].stopped());
      EXPECT_EQ(t.final.q(3, 0), 1);
      EXPECT_EQ(t.final.q(0, 0), 0);
    }
  }
}

TEST(Rotations, AQuaternionThatIsNotUnitIsAUsageError) {
  const Model model = spinner();
  State<double> state(model, 2);
  state.q.set(0, 1, 0.5);
  try {
    rollout<double>(model, state, {}, {});
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("joint 'joint' in world 1"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace backdrive
