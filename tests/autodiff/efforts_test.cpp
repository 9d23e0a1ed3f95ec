// The efforts that acted and the velocities of bodies, by other routes: inverse dynamics, closed forms, differences.
#include "autodiff/tape/efforts.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "integrators/reference/inverse_dynamics.h"
#include "integrators/rollout/arguments.h"
#include "models/builder.h"
#include "tests/support/batch.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"

namespace backdrive {
namespace {

constexpr EffortPart kParts[] = {EffortPart::command, EffortPart::drive,    EffortPart::spring,
                                 EffortPart::damping, EffortPart::friction, EffortPart::limit};
constexpr int kSteps = 5, kWorlds = 3;

Model driven_tree(Integrator integrator, bool rotations = false) {
  test::TreeOptions options;
  options.rotations = rotations;
  options.links = rotations ? 12 : 9;
  options.forces = options.shapes = true;
  options.fixed = false;
  options.integrator = integrator;
  Model model = test::random_tree(7, options);
  // Attachments that give way by nothing: else accelerations of the first steps are those of their springs.
  for (std::size_t j = 0; j < model.joint_names.size(); ++j) {
    const int joint = static_cast<int>(j);
    model.joints.attachment.stiffness.at(joint) = 1e15, model.joints.attachment.damping.at(joint) = 0;
    model.joints.attachment.angular_stiffness.at(joint) = 1e14, model.joints.attachment.angular_damping.at(joint) = 0;
  }
  test::require_all(model);
  return model;
}

struct Driven {
  Model model;
  test::Batch<double> batch;
  RolloutOptions options;
  Trajectory<double> trajectory;

  Driven(Integrator integrator, double time_step, bool rotations = false) : model(driven_tree(integrator, rotations)) {
    batch = test::random_batch<double>(model, kSteps, test::first_worlds(kWorlds), 3);
    options.time_step = time_step;
    options.steps = kSteps;
    trajectory = rollout(model, place_bodies<double>(nullptr, model, batch.state, options), batch.control, options);
  }
  std::vector<int> joints() const {
    std::vector<int> all;
    for (std::size_t j = 0; j < model.joint_names.size(); ++j) {
      if (has_one_degree(model.joint_types[j])) all.push_back(static_cast<int>(j));
    }
    return all;
  }
  double effort(int joint, EffortPart part, int step, int world, bool power = false, int degree = 0) const {
    const EffortTerm term = effort_term(model, joint, part, power, degree);
    return acting_efforts<double>(nullptr, model, {trajectory, batch.control}, std::span(&term, 1), options)(step,
                                                                                                             world);
  }
  int row(int joint) const { return model.topology.links[model.link_of_joint(joint)].v; }
  double rate(int joint, int state, int world) const {
    return trajectory.qd(state * model.topology.nv + row(joint), world);
  }
  double acceleration(int joint, int step, int world) const {
    return (rate(joint, step + 1, world) - rate(joint, step, world)) / options.time_step;
  }
};

// M q̈ + h, by the Newton-Euler recursion from the accelerations that the steps led to. Steps so short that velocity
// terms are those of the start (theory.md, (24)).
TEST(Efforts, AllOfThemAreThoseOfInverseDynamics) {
  const Driven run(Integrator::featherstone, 1e-6);
  const Topology& t = run.model.topology;
  double largest = 0;
  for (int world = 0; world < kWorlds; ++world) {
    for (int step = 0; step < kSteps; ++step) {
      const std::vector<double> qd = test::column(run.trajectory.qd, world, step * t.nv, t.nv);
      std::vector<double> qdd = test::column(run.trajectory.qd, world, (step + 1) * t.nv, t.nv);
      for (int k = 0; k < t.nv; ++k) qdd[k] = (qdd[k] - qd[k]) / run.options.time_step;
      const std::vector<double> want = reference::inverse_dynamics<double>(
          run.model, test::column(run.trajectory.q, world, step * t.nq, t.nq), qd, qdd);
      for (const int joint : run.joints()) {
        const int row = run.row(joint);
        // Accelerations are differences of velocities: 1e-16 of those over Δt, times inertias.
        const double tolerance = 1e-8 * (1 + std::abs(want[row]));
        EXPECT_NEAR(run.effort(joint, EffortPart::total, step, world), want[row], tolerance);
        largest = std::max(largest, std::abs(want[row]));
      }
    }
  }
  EXPECT_GT(largest, 1);
}

// Of balls, whose components act as one, of universal and planar joints. What turns has the couple of (12), which is
// that of inverse dynamics to first order in the step.
TEST(Efforts, OfSeveralDegreesAreThoseOfInverseDynamics) {
  const Driven run(Integrator::featherstone, 1e-6, true);
  const Model& model = run.model;
  const Topology& t = model.topology;
  std::map<JointType, double> largest;
  for (int step = 0; step < kSteps; ++step) {
    const std::vector<double> qd = test::column(run.trajectory.qd, 1, step * t.nv, t.nv);
    std::vector<double> qdd = test::column(run.trajectory.qd, 1, (step + 1) * t.nv, t.nv);
    for (int k = 0; k < t.nv; ++k) qdd[k] = (qdd[k] - qd[k]) / run.options.time_step;
    const std::vector<double> want =
        reference::inverse_dynamics<double>(model, test::column(run.trajectory.q, 1, step * t.nq, t.nq), qd, qdd);
    for (int joint = 0; joint < static_cast<int>(model.joint_names.size()); ++joint) {
      const JointType type = model.joint_types[joint];
      for (int k = 0; k < joint_size(type).nv && type != JointType::free; ++k) {
        const double expected = want[control_row(model, joint, ControlChannel::effort, k)];
        double sum = 0;
        for (const EffortPart part : kParts) sum += run.effort(joint, part, step, 1, false, k);
        // 1e-6 of couples and their rates; accelerations are differences of velocities over it.
        const double total = run.effort(joint, EffortPart::total, step, 1, false, k);
        EXPECT_NEAR(total, expected, 3e-5 * (1 + std::abs(expected))) << to_string(type);
        EXPECT_NEAR(sum, total, 1e-10 * (1 + std::abs(total))) << to_string(type);
        largest[type] = std::max(largest[type], std::abs(expected));
      }
    }
  }
  for (const JointType type : {JointType::ball, JointType::universal, JointType::planar}) EXPECT_GT(largest[type], 0.5);
}

/// The largest difference between the effort by inverse dynamics and acting_efforts(). Without the first step: joints
/// hold bodies by their places at its beginning, J(q)q̇⁺ = 0, so that its accelerations lack J̇q̇; the later ones make up
/// for what the one before has left.
double error_in_maximal_coordinates(double time_step) {
  const Driven run(Integrator::semi_implicit, time_step);
  const Topology& t = run.model.topology;
  const Model tree = driven_tree(Integrator::featherstone);
  double error = 0;
  for (int world = 0; world < kWorlds; ++world) {
    for (int step = 1; step < kSteps; ++step) {
      const std::vector<double> qd = test::column(run.trajectory.qd, world, step * t.nv, t.joint_nv);
      std::vector<double> qdd = test::column(run.trajectory.qd, world, (step + 1) * t.nv, t.joint_nv);
      for (int k = 0; k < t.joint_nv; ++k) qdd[k] = (qdd[k] - qd[k]) / time_step;
      const std::vector<double> want = reference::inverse_dynamics<double>(
          tree, test::column(run.trajectory.q, world, step * t.nq, t.joint_nq), qd, qdd);
      for (const int joint : run.joints()) {
        const double got = run.effort(joint, EffortPart::total, step, world);
        error = std::max(error, std::abs(got - want[run.row(joint)]) / (1 + std::abs(got)));
      }
    }
  }
  return error;
}

// There the joint's rate is read where the bodies are after the step: first order.
TEST(Efforts, InMaximalCoordinatesToFirstOrder) {
  const double coarse = error_in_maximal_coordinates(1e-3), fine = error_in_maximal_coordinates(1e-4);
  EXPECT_LT(coarse, 0.1);
  EXPECT_LT(fine, 0.15 * coarse);
  EXPECT_GT(coarse, 1e-4);
}

TEST(Efforts, PartsAddUp) {
  for (const Integrator integrator : {Integrator::featherstone, Integrator::semi_implicit}) {
    const Driven run(integrator, 0.002);
    std::map<EffortPart, double> largest;
    for (const int joint : run.joints()) {
      for (int step = 0; step < kSteps; ++step) {
        double sum = 0;
        for (const EffortPart part : kParts) {
          const double x = run.effort(joint, part, step, 1);
          sum += x;
          largest[part] = std::max(largest[part], std::abs(x));
        }
        const auto of = [&](EffortPart part) { return run.effort(joint, part, step, 1); };
        EXPECT_NEAR(of(EffortPart::total), sum, 1e-12 * (1 + std::abs(sum)));
        EXPECT_NEAR(of(EffortPart::actuator), of(EffortPart::command) + of(EffortPart::drive), 1e-12);
        EXPECT_NEAR(run.effort(joint, EffortPart::total, step, 1, true), sum * run.rate(joint, step + 1, 1), 1e-11);
      }
    }
    for (const EffortPart part : kParts) EXPECT_GT(largest[part], 1e-6) << static_cast<int>(part);
  }
}

/// A pendulum of 2 kg on 0.5 m that a drive holds at 30 degrees.
Model held_pendulum(double effort_limit) {
  ModelBuilder builder;
  builder.add_body("rod", {2, {0, 0, -0.5}, {1e-3, 1e-3, 1e-3, 0, 0, 0}});
  JointOptions joint;
  joint.axis = {0, 1, 0};
  joint.driven = true;
  joint.drive = {1e4, 300, effort_limit};
  builder.add_joint("hinge", JointType::revolute, ModelBuilder::world, 0, joint);
  return builder.build();
}

/// Its effort after 2 s at 1/240 s, in N·m.
std::array<double, 2> held(double effort_limit, double command) {
  const Model model = held_pendulum(effort_limit);
  RolloutOptions options;
  options.steps = 480;
  State<double> state(model, 1);
  state.q.set(0, 0, M_PI / 6);
  Control<double> control(model, options.steps, 1);
  for (int step = 0; step < options.steps; ++step) {
    control.u.set(step * model.topology.nu, 0, command);
    control.u.set(step * model.topology.nu + 1, 0, M_PI / 6);
  }
  const Trajectory<double> trajectory = rollout(model, state, control, options);
  const EffortTerm terms[] = {effort_term(model, 0, EffortPart::actuator), effort_term(model, 0, EffortPart::drive)};
  const Buffer<double> efforts = acting_efforts<double>(nullptr, model, {trajectory, control}, terms, options);
  return {efforts(2 * (options.steps - 1), 0), efforts(2 * (options.steps - 1) + 1, 0)};
}

// m g l sin θ at the angle that the drive's spring leaves: 1e4 N·m/rad give way by 5e-4 rad.
TEST(Efforts, ADriveThatHoldsShowsWhatItHolds) {
  const double weight = 2 * 9.81 * 0.5;
  const auto free = held(std::numeric_limits<double>::infinity(), 0);
  EXPECT_NEAR(free[0], weight * 0.5, 5e-3);
  EXPECT_DOUBLE_EQ(free[0], free[1]);
  const auto helped = held(std::numeric_limits<double>::infinity(), 1.5);
  EXPECT_NEAR(helped[0], weight * 0.5, 5e-3);
  EXPECT_NEAR(helped[1], helped[0] - 1.5, 1e-12);
  // One that is too weak gives all it has, whatever the command, but for what it lets go within a step: docs/theory.md
  // (13).
  EXPECT_NEAR(held(1, 0)[0], 1, 0.02);
  EXPECT_NEAR(held(1, 5)[0], 1, 0.02);
}

TEST(Efforts, AreOfDegreesOfFreedomAndOfKeptStates) {
  const Driven run(Integrator::featherstone, 0.002);
  for (std::size_t j = 0; j < run.model.joint_names.size(); ++j) {
    const int degrees = joint_size(run.model.joint_types[j]).nv;
    for (const int degree : {-1, degrees}) {
      EXPECT_THROW(effort_term(run.model, static_cast<int>(j), EffortPart::total, false, degree), Error);
    }
  }
  Trajectory<double> bare = run.trajectory;
  bare.q = {};
  test::expect_usage_error(
      [&] {
        acting_efforts<double>(nullptr, run.model, {bare, run.batch.control}, {}, run.options);
      },
      {"keep_states"});
}

// A step moves q by Δt q̇⁺: poses before and after it differ by Δt times the motion between, to O(Δt).
TEST(MotionsOfBodies, AreDifferencesOfPoses) {
  for (const Integrator integrator : {Integrator::featherstone, Integrator::semi_implicit}) {
    constexpr double dt = 1e-7;
    const Driven run(integrator, dt);
    std::vector<int> bodies(run.model.body_names.size());
    std::iota(bodies.begin(), bodies.end(), 0);
    State<double> states;
    states.q = run.trajectory.q, states.qd = run.trajectory.qd;
    const Buffer<double> m = body_motions<double>(nullptr, run.model, states, bodies, run.options);
    const int rows = kMotionRows * static_cast<int>(bodies.size());
    double fastest = 0;
    for (const int body : bodies) {
      for (int w = 0; w < kWorlds; ++w) {
        const auto at = [&](int state, int row) { return m(state * rows + body * kMotionRows + row, w); };
        const auto middle = [&](int row) { return 0.5 * (at(1, row) + at(2, row)); };
        for (int k = 0; k < 3; ++k) {
          EXPECT_NEAR((at(2, k) - at(1, k)) / dt, at(2, 12 + k), 1e-4) << run.model.body_names[body];
          fastest = std::max(fastest, std::abs(at(2, 15 + k)));
        }
        for (int c = 0; c < 3; ++c) {
          for (int k = 0; k < 3; ++k) {
            const int i = (k + 1) % 3, j = (k + 2) % 3;
            const double turned = at(2, 15 + i) * middle(3 + 3 * c + j) - at(2, 15 + j) * middle(3 + 3 * c + i);
            EXPECT_NEAR((at(2, 3 + 3 * c + k) - at(1, 3 + 3 * c + k)) / dt, turned, 1e-4);
          }
        }
      }
    }
    EXPECT_GT(fastest, 0.1);
  }
}

}  // namespace
}  // namespace backdrive
