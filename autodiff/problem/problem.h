#pragma once
// What `simctl` is asked to do, in numbers: a model, how long it runs, from which state, under which controls; what is
// scored; what may be varied. The scene loader fills it in, the optimiser and the gradient check read it.
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "autodiff/problem/loss_measure.h"
#include "autodiff/problem/motion_record.h"
#include "autodiff/tape/gradient_window.h"
#include "integrators/rollout/arguments.h"
#include "models/coordinates.h"
#include "models/parameter_list.h"

namespace backdrive {

/// The integrator is the model's.
struct Simulation {
  double time_step = 1.0 / 240;  ///< s
  int steps = 240;
  /// Steps of which one of controls and tables is made: a control is held over so many, a table has a row for so many.
  /// Divides `steps`.
  int substeps = 1;

  int control_steps() const { return steps / substeps; }
  double control_time_step() const { return time_step * substeps; }  ///< s
};

/// A channel that is not zero all the time: one value for all steps, or knots spread evenly from the first to the last
/// step (as many knots as steps: one value per step).
struct ControlSignal {
  int joint = 0;
  ControlChannel channel = ControlChannel::effort;
  std::vector<double> values;
  bool hold = false;  ///< between knots: false: linear, true: the last knot's value
  int component = 0;  ///< which of the channel's numbers (channel_components)

  bool drives(int of_joint, ControlChannel of_channel, int of_component) const {
    return joint == of_joint && channel == of_channel && component == of_component;
  }
};

enum class LossQuantity {
  joint_position,
  joint_velocity,
  joint_orientation,  ///< of a ball or free joint
  body_position,
  body_orientation,
  body_velocity,          ///< of a point
  body_angular_velocity,  ///< world axes
  distance,               ///< between points of two bodies, or of one and the world
  joint_effort,           ///< that acted in the step, of which LossTerm::part says what
  joint_power,            ///< the same times the velocity that the step led to
  control,
  contact_force
};

/// The upper end of a range that is none: the target alone.
constexpr double kNoRange = -std::numeric_limits<double>::infinity();

/// Adds weight·|error|² at the end (terminal), or over steps (running): its time integral Σ Δt·weight·|error|², the
/// plain sum, or the least or greatest of them.
struct LossTerm {
  std::string name;  ///< column in tables: "terminal/hinge/position"
  LossQuantity quantity = LossQuantity::joint_position;
  bool terminal = true;
  /// Running: the first and the last step that are scored, counted from 1. Step k leads to time k·Δt: scored is the
  /// state there, or the control or force during the step. A window that reaches beyond the run ends with it.
  int first_step = 1, last_step = std::numeric_limits<int>::max();
  bool integral = true;                          ///< running: times Δt
  OverTime over = OverTime::sum;                 ///< running: otherwise without Δt
  ErrorMeasure measure = ErrorMeasure::squared;  ///< |error|², or |error|
  int index = 0;  ///< joint, body for body_* and distance, pair of the topology's contact_pairs for contact_force
  /// Of a joint or control: which of its positions, velocities or channel's numbers (models/coordinates.h).
  int component = 0;
  int other = -1;  ///< distance: the other body; −1: `other_point` is the world's
  ControlChannel channel = ControlChannel::effort;
  EffortPart part = EffortPart::actuator;
  /// Target: [value] of a joint, control, effort, power or distance; x, y, z of a point, its velocity or the angular
  /// velocity, or of the force on the pair's first body, in world axes; a unit quaternion of a body.
  std::array<double, 4> target{0, 0, 0, 1};
  /// Of each of the target's numbers but those of quaternions and on circles: the other end of a range, from `target`
  /// up, in which it costs nothing; ∓∞: no end. One from −∞ to ∞ is not scored.
  std::array<double, 3> upper{kNoRange, kNoRange, kNoRange};
  MotionRecord record{};  ///< running: the target at the time of each step, in place of `target`
  /// Whoever read the record: where, and which part of what stands there, to write it back. Nothing else asks.
  std::string record_path{};
  int record_part = 0;
  std::array<double, 3> point{0, 0, 0}, other_point{0, 0, 0};  ///< which points of the bodies, link axes, m
  /// error² = 2 − 2 cos(q − target): angles a full turn apart are equal, and the gradient has no jump.
  bool on_circle = false;
  double weight = 1;

  bool is_control() const { return quantity == LossQuantity::control; }
  bool is_effort() const { return quantity == LossQuantity::joint_effort || quantity == LossQuantity::joint_power; }
  /// Of what happens during steps: no state has it.
  bool is_of_steps() const { return is_control() || is_contact() || is_effort(); }
  bool is_contact() const { return quantity == LossQuantity::contact_force; }
  /// Reads how a body moves; poses and motions are of bodies.
  bool is_motion() const {
    return quantity == LossQuantity::body_velocity || quantity == LossQuantity::body_angular_velocity;
  }
  bool is_of_body() const {
    return is_motion() || quantity == LossQuantity::body_position || quantity == LossQuantity::body_orientation ||
           quantity == LossQuantity::distance;
  }
  /// One number, three, or a quaternion.
  int target_numbers() const;
  /// One of the target's numbers as a range; of one that is not scored from −∞ to ∞.
  struct Range {
    double lower, upper;
  };
  Range range(int number) const {
    const bool is_range = number < 3 && upper[number] != kNoRange;
    return {target[number], is_range ? upper[number] : target[number]};
  }
  double weight_per_step(double time_step) const {
    return !terminal && integral && over == OverTime::sum ? weight * time_step : weight;
  }
  /// Reads states before the last.
  bool is_on_the_way() const { return !terminal && !is_control(); }
};

enum class VariableKind { control, initial_position, initial_velocity, parameter };

/// One product of a tie: factor · the values of other variables, none of which is tied itself.
struct TieTerm {
  double factor = 1;
  std::vector<int> of = {};
};
/// value = factor · that of another variable + shift, or Σ terms + shift, number by number; in products a variable of
/// one number goes with every number of the others.
struct Tie {
  int to = -1;  ///< which variable, not tied itself; −1: none
  double factor = 1, shift = 0;
  std::vector<TieTerm> terms = {};  ///< in place of `to` and `factor`
};

/// Something the optimiser may change; a control with n knots is n numbers.
struct Variable {
  std::string name;  ///< "control/slider", "initial_state/hinge/position", "joints/hinge/damping"
  VariableKind kind = VariableKind::control;
  int joint = 0;
  int component = 0;  ///< which of the joint's positions, velocities or channel's numbers (models/coordinates.h)
  ControlChannel channel = ControlChannel::effort;
  int knots = 0;      ///< control: number of knots, 0: one value per step
  bool hold = false;  ///< as ControlSignal
  FieldSelection parameter{};
  double lower = -std::numeric_limits<double>::infinity();
  double upper = std::numeric_limits<double>::infinity();
  double scale = 1;   ///< the optimiser works on value / scale
  double random = 0;  ///< each start adds a normal number of this standard deviation to the initial value
  /// Initial value: empty: what the scene has otherwise (a control signal, state or parameter); one number; or one per
  /// knot.
  std::vector<double> initial;

  /// One that is tied has no numbers, bounds, scale and initial values of its own; its values have to stay where they
  /// may be as the other's do.
  Tie tie;

  bool is_control() const { return kind == VariableKind::control; }
  bool is_tied() const { return tie.to >= 0 || is_expression(); }
  bool is_expression() const { return !tie.terms.empty(); }
  /// Whether its values are made of those of variable v.
  bool is_tied_to(int v) const;
};

enum class OptimizeMethod { automatic, lbfgs, adam };
/// "auto", "lbfgs", "adam".
const char* to_string(OptimizeMethod method);

struct OptimizeOptions {
  OptimizeMethod method = OptimizeMethod::automatic;  ///< chosen_method() says which
  int iterations = 200;
  double tolerance = 1e-6;      ///< stop when the norm of the scaled (projected) gradient is below
  double learning_rate = 0.05;  ///< adam
  int starts = 1;
  double goal = std::numeric_limits<double>::infinity();  ///< asked-for loss; exit code 1 when it is not reached
  GradientWindow window;                                  ///< where gradients are cut or clipped
};

struct Problem {
  Model model;
  Simulation simulation;
  std::vector<double> initial_position;  ///< [nq], kernel order (topology.links[i].q)
  std::vector<double> initial_velocity;  ///< [nv]
  std::vector<ControlSignal> controls;
  std::vector<LossTerm> loss;
  std::vector<Variable> variables;
  OptimizeOptions optimize;
};

}  // namespace backdrive
