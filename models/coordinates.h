#pragma once
// Positions and velocities of joints that are more than a number and its rate: their names, and the tangent space of
// quaternions. A small change of the positions has a component per velocity, in the axes of that velocity: of a ball
// R exp(θ), of a free joint's orientation exp(θ) R (engine/rotation.h). In rows that follow the positions, as seeds and
// gradients do, θ stands in the first three of a quaternion's four, and the last is zero.
#include <span>
#include <string>
#include <vector>

#include "engine/rotation.h"
#include "models/model.h"

namespace backdrive {

/// One number of a joint: `quantity` or `quantity/axis` behind the joint's name.
struct JointComponent {
  const char* quantity;
  const char* axis;  ///< "": it is the only one
  bool turns;        ///< rad, rad/s or N·m rather than m, m/s or N; an orientation's numbers have no unit

  std::string name() const { return *axis ? std::string(quantity) + "/" + axis : quantity; }
};

/// What the number of an effort is called that is commanded, where its own name stands for what acts: "command",
/// "command/x", "command/torque/x".
std::string command_name(const JointComponent& effort);

/// In the order of Topology's rows.
std::span<const JointComponent> position_components(JointType type);
std::span<const JointComponent> velocity_components(JointType type);
std::span<const JointComponent> effort_components(JointType type);

/// Which of a joint's control channels: an effort, or a target of its drive.
enum class ControlChannel { effort, target_position, target_velocity };

/// "effort", "target_position", "target_velocity".
const char* to_string(ControlChannel channel);

/// The numbers of a channel, one for each degree of freedom; none where the joint cannot have it. Efforts of ball and
/// free joints are called torque and force.
std::span<const JointComponent> channel_components(JointType type, ControlChannel channel);

/// Degree of freedom k of a joint, k < joint_size(type).nv: its link, and which of that link's it is.
struct DegreeOfFreedom {
  int link, dof;
};
DegreeOfFreedom degree_of_freedom(const Model& model, int joint, int k);

/// Whether a joint has control channels for targets.
bool is_driven(const Model& model, int joint);

/// One number of a step's controls, named joint/effort and the like.
struct ControlRow {
  std::string name;
  ControlChannel channel;
  int row;
  bool turns;  ///< as in JointComponent
  int controlled, component;
};
/// All of them, joint by joint, then coupling by coupling. O(joints).
std::vector<ControlRow> control_rows(const Model& model);

// Whatever has control channels goes by one number: that of a joint, or behind those of all joints that of a coupling.

/// −1 when there is none of that name.
int find_controlled(const Model& model, const std::string& name);
const std::string& name_of_controlled(const Model& model, int controlled);
/// Revolute or prismatic where all joints of a coupling are, else null: whose unit its position has.
const JointType* unit_of_coupling(const Model& model, int coupling);
/// The numbers of a channel, as those of a joint; whether a coupling's turns says unit_of_coupling().
std::span<const JointComponent> controlled_components(const Model& model, int controlled, ControlChannel channel);
/// Revolute or prismatic, for what turns and what slides; null: neither unit, a coupling's of both.
const JointType* unit_of_controlled(const Model& model, int controlled, ControlChannel channel, int component);
/// Position of a coupling at the positions q, and its rate at the velocities qd. O(terms).
double coupling_position(const Model& model, int coupling, std::span<const double> q);
double coupling_velocity(const Model& model, int coupling, std::span<const double> qd);
/// Row within a step's controls of one number of a channel; −1: a joint without a drive, a coupling without one or that
/// is held, has none.
int control_row(const Model& model, int controlled, ControlChannel channel, int component = 0);
/// A link of it: what moves it moves with that.
int link_of_controlled(const Model& model, int controlled);

/// Names of the rows of q and of q̇: "hinge/position", "base/orientation/x". O(joints).
std::vector<std::string> position_names(const Model& model);
std::vector<std::string> velocity_names(const Model& model);

/// Calls visit(side of its small turns, first row of q, first row of q̇) for every quaternion of a joint.
template <class Visit>
void each_quaternion(const Topology& topology, Visit&& visit) {
  for (const Link& link : topology.links) {
    if (link.type == JointType::ball) visit(TurnSide::right, link.q, link.v);
    if (link.type == JointType::free) visit(TurnSide::left, link.q, link.v);
  }
}

/// Calls visit(first row of q, first row of q̇) for every body of a state in maximal coordinates; its
/// quaternion has its small turns on the left.
template <class Visit>
void each_body(const Topology& topology, Visit&& visit) {
  for (int body = 0; body < topology.bodies(); ++body) visit(topology.body_q(body), topology.body_v(body));
}

/// Row of q that begins to move with velocity row v: of a quaternion's turns the one where their cotangent stands.
std::vector<int> tangent_rows(const Topology& topology);

/// Positions of rest: zeros, and quaternions of no turn. Those of bodies are none yet: place_bodies() makes them.
std::vector<double> neutral_positions(const Topology& topology);

/// The derivative of a quaternion's numbers along θ: ½ q (θ, 0) or ½ (θ, 0) q.
template <class R>
Quaternion<R> quaternion_rate(TurnSide side, const Quaternion<R>& q, const Vec3<R>& theta) {
  const Quaternion<R> half{theta * constant<R>(0.5), constant<R>(0)};
  return side == TurnSide::left ? half * q : q * half;
}
/// θ of a change of the numbers of a unit quaternion: 2 q* dq or 2 dq q*, without what only changes its length.
template <class R>
Vec3<R> turn_of_rate(TurnSide side, const Quaternion<R>& q, const Quaternion<R>& rate) {
  const Quaternion<R> inverse{-q.v, q.w};
  const Quaternion<R> turn = side == TurnSide::left ? rate * inverse : inverse * rate;
  return turn.v * constant<R>(2);
}

/// q moved by a small change of nv numbers. O(links).
void add_tangent(const Topology& topology, std::span<const double> change, std::span<double> q);

/// A gradient in tangent rows as a gradient of the quaternions' four numbers, for whoever takes them for free numbers:
/// the one of least length that agrees on unit quaternions. In place, nq numbers. O(links).
void to_quaternion_components(const Topology& topology, std::span<const double> q, std::span<double> gradient);
/// And back: what four free numbers receive, as far as it turns the unit quaternion. In place, nq numbers. O(links).
void to_tangent_components(const Topology& topology, std::span<const double> q, std::span<double> gradient);

}  // namespace backdrive
