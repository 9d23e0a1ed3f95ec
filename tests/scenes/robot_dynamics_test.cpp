// The robots of scenes/*.urdf against Pinocchio, which reads the same files by itself (tests/reference/README.md), by
// two routes: the textbook algorithms and the kernels that simulate. And a humanoid that has to bear anything.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "autodiff/problem/inputs.h"
#include "autodiff/tape/rollout.h"
#include "engine/parallel.h"
#include "integrators/reference/dynamics_derivatives.h"
#include "integrators/reference/inverse_dynamics.h"
#include "integrators/reference/mass_matrix.h"
#include "scenes/scene.h"
#include "tests/integrators/accelerations.h"
#include "tests/support/places.h"
#include "tests/support/random.h"
#include "tests/support/reference.h"

namespace backdrive {
namespace {

using nlohmann::json;
using Vector = std::vector<double>;

const json& robots() {
  static const json content = test::read_reference("pinocchio_robots").at("robots");
  return content;
}

/// Without what is no part of M q̈ + h = τ.
Model bare_model(const std::string& name) {
  Model model = load_scene(test::kRepository + "/scenes/" + name + ".urdf").problem.model;
  for (int j = 0; j < static_cast<int>(model.joint_names.size()); ++j) {
    model.joints.damping.set(j, 0, 0);
    model.joints.friction.set(j, 0, 0);
    model.joints.limit.lower.set(j, 0, -kInfinity);
    model.joints.limit.upper.set(j, 0, kInfinity);
    model.joints.limit.velocity.set(j, 0, kInfinity);
  }
  model.topology.couplings.clear();  // nor is what makes joints mimic others
  model.topology.coupling_terms.clear();
  return model;
}

TEST(RobotDynamics, IsPinocchios) {
  // Both sides round; what goes through M⁻¹ by its condition number: 2e6 of the humanoid, with its thumbs and eyes.
  constexpr double kDirect = 1e-14, kSolved = 1e-9;
  for (const json& robot : robots()) {
    const std::string name = robot["name"];
    const Model model = bare_model(name);
    // The kernels' rows go down the tree, those of the file need not.
    std::vector<int> row;
    for (const std::string joint : robot["joints"]) {
      row.push_back(model.topology.links[model.link_of_joint(model.find_joint(joint))].v);
    }
    const int n = static_cast<int>(row.size());
    ASSERT_EQ(n, model.topology.nv) << name;
    const auto placed = [&](const json& theirs) {
      Vector ours(n);
      for (int i = 0; i < n; ++i) ours[row[i]] = theirs[i];
      return ours;
    };
    const auto placed_matrix = [&](const json& theirs) {
      Vector ours(static_cast<std::size_t>(n) * n);
      for (int r = 0; r < n; ++r) {
        for (int c = 0; c < n; ++c) ours[static_cast<std::size_t>(row[r]) * n + row[c]] = theirs[r][c];
      }
      return ours;
    };
    for (const json& s : robot["states"]) {
      SCOPED_TRACE(name);
      const Vector q = placed(s["q"]), qd = placed(s["qd"]), tau = placed(s["tau"]);
      EXPECT_LT(test::relative_difference(reference::mass_matrix(model, q), placed_matrix(s["M"])), kDirect);
      EXPECT_LT(test::relative_difference(reference::inverse_dynamics(model, q, qd, placed(s["rnea_qdd"])),
                                          placed(s["rnea_tau"])),
                kDirect);
      EXPECT_LT(test::relative_difference(reference::forward_dynamics_dense(model, q, qd, tau), placed(s["qdd"])),
                kSolved);
      EXPECT_LT(test::relative_difference(test::accelerations(model, q, qd, tau), placed(s["qdd"])), kSolved);
      const reference::DynamicsDerivatives d = reference::dynamics_derivatives(model, q, qd, tau);
      EXPECT_LT(test::relative_difference(d.q, placed_matrix(s["qdd_q"])), kSolved);
      EXPECT_LT(test::relative_difference(d.qd, placed_matrix(s["qdd_qd"])), kSolved);
      // It can fail: a gram more in every link is seen.
      Model heavier = model;
      for (int b = 0; b < heavier.bodies.mass.items(); ++b) heavier.bodies.mass.at(b) += 1e-3;
      EXPECT_GT(test::relative_difference(reference::mass_matrix(heavier, q), placed_matrix(s["M"])), 1e3 * kDirect);
    }
  }
}

/// Along small turns of a free base and of a ball joint, by central differences of the forward dynamics: error h² of
/// the third derivative and 1e-16/h of rounding, 1e-9 together at h = 1e-5.
TEST(RobotDynamics, DerivativesAlongTurnsAreDifferences) {
  const Scene scene = parse_scene(R"(model:
  bodies:
    a: {mass: 2, com: [0.1, 0.2, 0], inertia: [0.3, 0.4, 0.5, 0.02, 0, 0.01]}
    b: {mass: 1, com: [0, 0.1, 0.3], inertia: [0.1, 0.2, 0.15]}
    c: {mass: 1, com: [0.2, 0, 0.1], inertia: [0.1, 0.1, 0.15]}
  joints:
    base: {type: free, child: a}
    ball: {type: ball, parent: a, child: b, frame: {position: [0, 0, 0.5]}}
    hinge: {type: revolute, parent: b, child: c, axis: [0, 1, 0], frame: {position: [0.3, 0, 0.5]}}
)",
                                  "turns.yaml", ".");
  const Model& model = scene.problem.model;
  test::Random random(3);
  const int nv = model.topology.nv;
  Vector q = neutral_positions(model.topology), qd(nv), tau(nv), turn(nv);
  for (int v = 0; v < nv; ++v) {
    qd[v] = random.uniform(-1, 1), tau[v] = random.uniform(-1, 1), turn[v] = random.uniform(-1, 1);
  }
  add_tangent(model.topology, turn, q);
  const reference::DynamicsDerivatives d = reference::dynamics_derivatives(model, q, qd, tau);
  constexpr double h = 1e-5;
  for (int v = 0; v < nv; ++v) {
    const auto moved = [&](double by) {
      Vector change(nv, 0.0), at = q;
      change[v] = by;
      add_tangent(model.topology, change, at);
      return reference::forward_dynamics_dense(model, at, qd, tau);
    };
    const Vector high = moved(h), low = moved(-h);
    for (int r = 0; r < nv; ++r) {
      EXPECT_NEAR(d.q[static_cast<std::size_t>(r) * nv + v], (high[r] - low[r]) / (2 * h), 1e-8) << r << ", " << v;
    }
  }
}

/// Gains for an arm and 2 N·m on 3e-5 kg·m²: the limit by itself is 280 rad/s in a step.
TEST(RobotDynamics, ADriveThrowsALightJointNotPastItsTarget) {
  for (const char* const integrator : {"featherstone", "semi_implicit"}) {
    const Scene scene = parse_scene(std::string("simulation: {integrator: ") + integrator + R"(}
model:
  bodies: {eye: {mass: 0.05, inertia: [3e-5, 3e-5, 3e-5]}}
  joints: {gaze: {type: revolute, child: eye, drive: {stiffness: 100, damping: 5, effort_limit: 2}}}
initial_state: {gaze: {position: 0.5}}
)",
                                    "eye.yaml", ".");
    const Model& model = scene.problem.model;
    RolloutOptions options;
    options.steps = 240;
    const Control<double> control(model, options.steps, 1);
    const State<double> start = place_bodies<double>(nullptr, model, initial_state<double>(scene.problem, 1), options);
    const Trajectory<double> motion = rollout(model, start, control, options);
    double lowest = 0;
    for (int step = 0; step <= options.steps; ++step) {
      lowest = std::min(lowest, motion.q(step * model.topology.nq, 0));
    }
    EXPECT_GT(lowest, -1e-3) << integrator;  // overdamped: e^(−20 t)
    EXPECT_NEAR(motion.final.q(0, 0), 0, 1e-3) << integrator;
  }
}

TEST(RobotDynamics, AHumanoidBearsAnyStart) {
  // 10 s at 240 steps per second in float32, 200 worlds, drives on every joint, thrown about over a floor.
  const std::vector<Override> set{{"model/base", "floating"}};
  std::string text = "simulation: {duration: 10 s}\nmodel:\n  file: humanoid.urdf\n  base: floating\n  joints:\n";
  const Model bare = load_scene(test::kRepository + "/scenes/humanoid.urdf", set).problem.model;
  for (std::size_t j = 0; j < bare.joint_names.size(); ++j) {
    if (bare.joint_types[j] == JointType::revolute) {
      text += "    " + bare.joint_names[j] + ": {drive: {stiffness: 100, damping: 5}}\n";
    }
  }
  text += "  shapes: {floor: {body: world, geometry: {type: plane}}}\n";
  const Scene scene = parse_scene(text, "humanoid.yaml", test::kRepository + "/scenes");
  const Model& model = scene.problem.model;
  const Topology& t = model.topology;
  EXPECT_GE(t.joint_nv, 36);
  constexpr int kWorlds = 200;
  State<float> state(model, kWorlds);
  test::Random random(11);
  for (int w = 0; w < kWorlds; ++w) {
    Vector q = neutral_positions(t), change(t.nv);
    for (int v = 0; v < t.nv; ++v) {
      change[v] = random.uniform(-1, 1) * (v < 3 ? 3 : 1);
      state.qd.set(v, w, static_cast<float>(random.uniform(-2, 2)));
    }
    add_tangent(t, change, q);
    q[t.links[0].q + 6] = random.uniform(1, 3);  // above the floor
    for (int i = 0; i < t.nq; ++i) state.q.set(i, w, static_cast<float>(q[i]));
  }
  RolloutOptions options;
  options.steps = 240;
  options.keep_states = false;
  options.threads = hardware_threads();
  const Control<float> control(model, options.steps, kWorlds);
  Trajectory<float> after;
  for (int second = 0; second < 10; ++second) {
    after = rollout(model, state, control, options);
    for (int w = 0; w < kWorlds; ++w) {
      double m = 0;
      int at = 0;
      for (int v = 0; v < t.nv; ++v)
        if (std::abs(after.final.qd(v, w)) > m) m = std::abs(after.final.qd(v, w)), at = v;
      if (m > 50 || (*after.status)[w].stopped())
        printf("%d s w %d: %g at %d stop %d z %g\n", second, w, m, at, (*after.status)[w].stopped_step,
               (double)after.final.q(t.links[0].q + 6, w));
    }
    state = after.final;
  }
  for (int w = 0; w < kWorlds; ++w) {
    EXPECT_FALSE((*after.status)[w].stopped()) << "world " << w << ", step " << (*after.status)[w].stopped_step;
    EXPECT_LT(std::abs(after.final.q(t.links[0].q + 6, w)), 3) << w;  // on the floor, not through it or in the sky
    for (int v = 0; v < t.nv; ++v) EXPECT_LT(std::abs(after.final.qd(v, w)), 50) << w << ", " << v;
  }
}

}  // namespace
}  // namespace backdrive
