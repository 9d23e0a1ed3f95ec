#pragma once
// The trees that the benchmarks run: the speed of a step depends on their topology alone.
#include "autodiff/tape/buffers.h"

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

/// Puts quadrupeds into that posture, a little apart from world to world, with targets that hold it: the base at
/// `height` m, steps as many as `control` has.
template <class T>
void stand(const Model& quadruped, double height, State<T>& state, Control<T>& control) {
  const Topology& t = quadruped.topology;
  const int steps = control.u.rows() / t.nu;
  for (int w = 0; w < state.q.worlds(); ++w) {
    state.q.set(t.links[0].q + 6, w, T(height + 2e-4 * (w % 64)));
    for (const Link& link : t.links) {
      if (link.target < 0) continue;
      const bool knee = link.leaf, hip = !knee && !t.links[link.parent].leaf && t.links[link.parent].parent >= 0;
      const double angle = knee ? kKnee : hip ? kHip : 0;
      state.q.set(link.q, w, T(angle));
      for (int step = 0; step < steps; ++step) control.u.set(step * t.nu + link.target, w, T(angle));
    }
  }
}

}  // namespace backdrive::benchmarks
