// Values of Pinocchio, committed with the script that made them (tests/reference/README.md), for the arm of
// scenes/arm_reach.yaml and for a random tree. Both sides round: differences are relative to the largest number of each
// vector or matrix, and 1e-12 of it is some ten times what the condition of these mass matrices makes of 1e-16.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "integrators/reference/inverse_dynamics.h"
#include "integrators/reference/mass_matrix.h"
#include "models/builder.h"
#include "tests/integrators/accelerations.h"
#include "tests/support/reference.h"

namespace backdrive {
namespace {

using nlohmann::json;
using Vector = std::vector<double>;
using Matrix = std::vector<std::vector<double>>;

constexpr double kTolerance = 1e-12;

const json& reference_file() {
  static const json content = test::read_reference("pinocchio_arm");
  return content;
}

JointType type_of(const std::string& name) {
  if (name == "revolute") return JointType::revolute;
  return name == "prismatic" ? JointType::prismatic : JointType::fixed;
}

Model model_of(const json& reference) {
  ModelBuilder builder;
  builder.set_gravity(reference_file()["gravity"].get<Numbers3>());
  std::map<std::string, int> body{{"world", ModelBuilder::world}};
  for (const json& link : reference["links"]) {
    const std::string child = link["child"];
    body[child] = builder.add_body(
        child, {link["mass"], link["com"].get<Numbers3>(), link["inertia"].get<std::array<double, 6>>()});
    JointOptions joint;
    joint.frame = {link["position"].get<Numbers3>(), link["orientation"].get<std::array<double, 4>>()};
    joint.axis = link["axis"].get<Numbers3>();
    joint.armature = link["armature"];
    builder.add_joint(link["joint"], type_of(link["type"]), body.at(link["parent"]), body[child], joint);
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
void expect_close(const Vector& ours, const Vector& theirs, const char* what) {
  ASSERT_EQ(ours.size(), theirs.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_NEAR(ours[i], theirs[i], kTolerance * largest(theirs)) << what << "[" << i << "]";
  }
}

class OraclePinocchio : public testing::TestWithParam<int> {
 protected:
  const json& reference = reference_file()["models"][GetParam()];
  Model model = model_of(reference);
};

TEST_P(OraclePinocchio, JointsAreInOurOrder) {
  for (std::size_t k = 0; k < reference["joints"].size(); ++k) {
    const int joint = model.find_joint(reference["joints"][k]);
    ASSERT_GE(joint, 0);
    EXPECT_EQ(model.topology.links[model.link_of_joint(joint)].v, static_cast<int>(k));
  }
}

TEST_P(OraclePinocchio, ForwardAndInverseDynamics) {
  ASSERT_GE(reference["states"].size(), 8u);
  for (const json& s : reference["states"]) {
    const Vector q = s["q"], qd = s["qd"], tau = s["tau"], qdd = s["qdd"];
    EXPECT_GT(largest(qdd), 1);
    expect_close(test::accelerations(model, q, qd, tau), qdd, "qdd");
    expect_close(reference::inverse_dynamics(model, q, qd, s["rnea_qdd"].get<Vector>()), s["rnea_tau"], "rnea_tau");
    expect_close(reference::forward_dynamics_dense(model, q, qd, tau), qdd, "dense qdd");
  }
}

TEST_P(OraclePinocchio, MassMatrix) {
  for (const json& s : reference["states"]) {
    expect_close(reference::mass_matrix(model, s["q"].get<Vector>()), flat(s["M"]), "M");
  }
}

TEST_P(OraclePinocchio, Derivatives) {
  for (const json& s : reference["states"]) {
    const test::AccelerationDerivatives d = test::acceleration_derivatives(model, s["q"], s["qd"], s["tau"]);
    expect_close(flat(d.q), flat(s["qdd_q"]), "qdd_q");
    expect_close(flat(d.qd), flat(s["qdd_qd"]), "qdd_qd");
    expect_close(flat(d.tau), flat(s["Minv"]), "Minv");
  }
}

TEST_P(OraclePinocchio, Pose) {
  const int body = model.find_body(reference["pose_body"]);
  ASSERT_GE(body, 0);
  for (const json& s : reference["states"]) {
    const Vector q = s["q"];
    Buffer<double> states(model.topology.nq, 1);
    for (std::size_t i = 0; i < q.size(); ++i) states.set(static_cast<int>(i), 0, q[i]);
    const Buffer<double> pose = body_poses<double>(nullptr, model, states, std::span(&body, 1), {});
    const Matrix rotation = s["rotation"];  // rows
    const Vector position = s["position"];
    for (int r = 0; r < 3; ++r) {
      EXPECT_NEAR(pose(r, 0), position[r], kTolerance);
      for (int c = 0; c < 3; ++c) EXPECT_NEAR(pose(3 + 3 * c + r, 0), rotation[r][c], kTolerance);
    }
  }
}

TEST_P(OraclePinocchio, Rollout) {
  const json& run = reference["rollout"];
  const Matrix q = run["q"], qd = run["qd"];
  const Vector tau = run["tau"];
  const int n = model.topology.nv;
  RolloutOptions options;
  options.time_step = reference_file()["time_step"];
  options.steps = static_cast<int>(q.size()) - 1;
  ASSERT_EQ(options.steps, 20);
  State<double> state(model, 1);
  Control<double> control(model, options.steps, 1);
  for (int i = 0; i < n; ++i) {
    state.q.set(i, 0, q[0][i]);
    state.qd.set(i, 0, qd[0][i]);
    for (int k = 0; k < options.steps; ++k) control.u.set(k * n + i, 0, tau[i]);
  }
  const Trajectory<double> t = rollout(model, state, control, options);
  Vector ours_q, ours_qd;
  for (int r = 0; r < t.q.rows(); ++r) ours_q.push_back(t.q(r, 0));
  for (int r = 0; r < t.qd.rows(); ++r) ours_qd.push_back(t.qd(r, 0));
  expect_close(ours_q, flat(q), "q");
  expect_close(ours_qd, flat(qd), "qd");
}

INSTANTIATE_TEST_SUITE_P(Models, OraclePinocchio, testing::Values(0, 1), [](const auto& info) {
  return reference_file()["models"][info.param]["name"].template get<std::string>();
});

}  // namespace
}  // namespace backdrive
