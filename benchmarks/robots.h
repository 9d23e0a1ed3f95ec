#pragma once
// The trees that the benchmarks run: the speed of a step depends on their topology alone.
#include "models/model.h"

namespace backdrive::benchmarks {

/// `links` revolute joints in a row, axes x, y, z in turn.
Model chain(int links, Integrator integrator = Integrator::featherstone);
/// 18 revolute joints: a trunk of six with four legs of three.
Model tree18();
/// 30 revolute joints: a trunk of six with four limbs of six.
Model tree30();

/// Whether the quadruped's trunk and feet are shapes.
enum class Shapes { none, touching };
/// A floating base of 8 kg on four legs of three hinges with drives, of which the feet and the trunk may touch the
/// ground: the robot of mujoco_contact.py.
Model quadruped(Shapes shapes);
/// Height of its base, m, at which the feet lie a millimetre in the ground, in the posture that its drives hold.
constexpr double kQuadrupedHeight = 0.325, kHip = 0.7, kKnee = -1.4;

}  // namespace backdrive::benchmarks
