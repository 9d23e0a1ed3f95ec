// Swings a pendulum up: finds the torques that carry it from hanging to upright, by gradients through the simulation.
#include <backdrive/backdrive.h>
#include <backdrive/engine/parallel.h>

#include <cmath>
#include <cstdio>
#include <numbers>

using namespace backdrive;

int main() {
  // A rod of 1 m and 1 kg on a hinge; upright at zero, z up.
  ModelBuilder builder;
  const BodyIndex rod = builder.add_body("rod", {.mass = 1, .com = {0, 0, 0.5}, .inertia = {0.0833, 0.0833, 0.0004}});
  const JointIndex hinge =
      builder.add_joint("hinge", JointType::revolute, ModelBuilder::world, rod, {.axis = {0, 1, 0}, .damping = 0.02});
  Problem problem;
  problem.model = builder.build();
  problem.simulation = {.time_step = 0.005, .steps = 600};
  problem.initial_position = {std::numbers::pi};  // hanging
  problem.initial_velocity = {0};

  // At the end: upright (a full turn is the same) and at rest. On the way: little torque.
  problem.loss = {
      {.name = "upright", .quantity = LossQuantity::joint_position, .index = hinge, .on_circle = true, .weight = 100},
      {.name = "at rest", .quantity = LossQuantity::joint_velocity, .index = hinge, .weight = 10},
      {.name = "torque", .quantity = LossQuantity::control, .terminal = false, .index = hinge, .weight = 1e-3}};
  for (LossTerm& term : problem.loss) term.target = {0, 0, 0, 0};

  // The torque at 60 knots, of at most 2.5 N·m: half of what it takes to hold the rod level.
  problem.variables = {{.name = "torque",
                        .kind = VariableKind::control,
                        .joint = hinge,
                        .knots = 60,
                        .lower = -2.5,
                        .upper = 2.5,
                        .random = 1}};
  problem.optimize = {.method = OptimizeMethod::lbfgs, .iterations = 300, .starts = 8, .goal = 0.1};

  const OptimizeResult result = optimize(problem, {.threads = hardware_threads()});
  std::printf("loss %.4g after %.1f s\n", result.starts[result.best].loss, result.seconds);

  // What optimize() does at every step: a recorded rollout, and the gradient of its loss.
  const Problem& best = result.problem;
  Tape<double> tape;
  const State<double> state = initial_state<double>(best, 1);
  const Control<double> control = initial_control<double>(best, 1);
  const RolloutOptions options{.time_step = best.simulation.time_step, .steps = best.simulation.steps};
  const Trajectory<double> trajectory = rollout(tape, best.model, state, control, options);
  const LossResult<double> loss = evaluate_loss(best, trajectory, control, options, &tape);
  const Gradients<double> gradients = std::move(tape).backward(loss.seeds);
  std::printf("at the end: angle %.4f rad, velocity %.4f rad/s; d loss / d first torque %.3g\n",
              std::remainder(trajectory.final.q(0, 0), 2 * std::numbers::pi), trajectory.final.qd(0, 0),
              gradients.of(control.u)(0, 0));
  return result.reached_goal ? 0 : 1;
}
