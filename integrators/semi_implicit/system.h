#pragma once
#if !defined(BACKDRIVE_KERNELS)
#define BACKDRIVE_KERNELS generic
#endif
// What is stepped in maximal coordinates: loose bodies, and joints that hold pairs of them together in any graph,
// loops included. Units SI; world axes unless a comment says otherwise; 6-vectors angular first; quaternions (x, y, z,
// w). A cotangent of a rotation is a tangent vector: of states exp(θ) R, in world axes; of joint frames R exp(θ), in
// the frame's own.
#include "engine/rotation.h"
#include "engine/spatial.h"
#include "integrators/rollout/joint_efforts.h"
#include "models/model.h"

namespace backdrive::semi_implicit {

/// The same in all worlds. `parent` is −1 for the world; the child is always a body. Types as in models/model.h, seen
/// from the joint's frame on the parent; unlike there, a free joint may hang on a body and joints may close loops.
struct Joint {
  JointType type = JointType::fixed;
  int parent = -1;
  int child = 0;
  EffortParts acts = {};
  double release = __builtin_inf();  ///< s: it holds nothing in steps whose middle is later
};

/// Rows of every joint: turns about three directions, then slides along three. A row is either a degree of freedom of
/// the joint, on which its efforts act, or attached.
constexpr int kRows = 6;

/// Degree of freedom that a row is; −1: attached. Order of degrees of freedom as in models/model.h.
BACKDRIVE_HD constexpr int dof_of_row(JointType type, int row) {
  switch (type) {
    case JointType::revolute:
      return row == 2 ? 0 : -1;
    case JointType::prismatic:
      return row == 5 ? 0 : -1;
    case JointType::fixed:
      return -1;
    case JointType::universal:
      return row < 2 ? row : -1;
    case JointType::planar:
      return row == 3 ? 0 : row == 4 ? 1 : row == 2 ? 2 : -1;
    case JointType::ball:
      return row < 3 ? row : -1;
    case JointType::free:
      return row;
  }
  return -1;
}

/// A link frame's pose and velocity: `position` and velocity.lin are of its origin.
template <class Real>
struct BodyState {
  Quaternion<Real> rotation;
  Vec3<Real> position;
  Spatial<Real> velocity;
};
template <class Real>
struct BodyStateBar {
  Vec3<Real> turn, position;
  Spatial<Real> velocity;
};

/// Degrees of freedom of joints that have springs, limits and drives, at most.
constexpr int kMostDriven = 3;

/// Of one joint in one step, and the cotangents of that, of which `near` has none. Numbers beyond the joint's degrees
/// of freedom are not read.
template <class Real>
struct JointInputs {
  Real effort[kRows];  ///< N·m or N, by degree of freedom
  Real target_position[kMostDriven], target_velocity[kMostDriven];
  /// Where the joint was a moment ago. Bodies know no full turns: its angles are those nearest to this.
  Real near[kMostDriven];
};

/// Nothing is kept of a body but its parameters, and inverses that save a division in every step.
template <class Real>
struct BodyConstants {
  Real mass, inverse_mass;  ///< kg; positive
  Vec3<Real> com;           ///< m, link axes, from the link origin
  Sym3<Real> inertia;       ///< kg·m², link axes, about the com; positive definite
  Sym3<Real> inverse_inertia;
  Real lift;  ///< share of the weight that is cancelled
};
/// Cotangent of mass, com, inertia and lift; of the six stored numbers: off-diagonals count twice.
template <class Real>
struct BodyGradient {
  Real mass;
  Vec3<Real> com;
  Sym3<Real> inertia;
  Real lift;
};

/// Of an attachment: the springs and dampers that hold what a joint does not let go.
template <class Real>
struct Attachment {
  Real stiffness, damping;                  ///< N/m, N·s/m
  Real angular_stiffness, angular_damping;  ///< N·m/rad, N·m·s/rad
};
/// Joint frames are turned so that joints of one degree of freedom move about or along z (docs/theory.md, (0)).
template <class Real>
struct JointConstants {
  Mat3<Real> parent_axes;  ///< joint axes in the parent's link axes
  Vec3<Real> parent_origin;
  Mat3<Real> child_axes;  ///< and in the child's: where they meet, the joint is at position zero
  Vec3<Real> child_origin;
  JointEfforts<Real> efforts;
  Attachment<Real> attach;
};
template <class Real>
struct JointGradient {
  Vec3<Real> parent_turn, parent_origin, child_turn, child_origin;
  JointEfforts<Real> efforts;
  Attachment<Real> attach;
};

/// In which order joints are eliminated, and where that fills in: elimination.h. Positions count in that order.
struct EliminationView {
  const int* order;         ///< [joint_count]: joint at each position
  const int* first_column;  ///< [joint_count + 1]: of each position's entries in `columns`
  const int* columns;       ///< later positions that it is coupled with, rising
  const int* first_target;  ///< [joint_count]: of each position's entries in `targets`
  const int* targets;       ///< block that each pair of its columns adds to
  int block_count;          ///< diagonal blocks by position, then one per entry of `columns`
};

/// What all steps of a rollout share. The arrays outlive it.
template <class Real>
struct System {
  const Joint* joints;
  int joint_count;
  const BodyConstants<Real>* bodies;
  int body_count;
  const JointConstants<Real>* constants;  ///< [joint_count]
  EliminationView elimination;
  Vec3<Real> gravity;  ///< m/s²
  Real dt;             ///< s
  double middle = 0;   ///< of the step, s from the start of the rollout

  BACKDRIVE_HD bool holds(int joint) const { return middle <= joints[joint].release; }
};

/// Inputs of one step.
template <class Real>
struct StepInputs {
  const JointInputs<Real>* joints;  ///< [joint_count]
  const Spatial<Real>* wrenches;    ///< [body_count], moment about the com and force, world axes; null: none
};

}  // namespace backdrive::semi_implicit
