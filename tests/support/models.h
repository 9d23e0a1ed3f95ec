#pragma once
// Models that tests share.
#include <cstdint>
#include <functional>

#include "models/builder.h"
#include "tests/support/random.h"

namespace backdrive::test {

struct TreeOptions {
  int links = 6;
  bool branched = true;  ///< each parent is any body before it, sometimes the world; false: a chain
  bool sliding = true;   ///< prismatic joints among the revolute
  bool slides = false;   ///< with rotations: prismatic ones in place of the revolute
  bool fixed = true;     ///< fixed joints too (never the last)
  bool forces = false;   ///< damping, friction, limits, drives and effort limits, by turns; armature on all
  bool shapes = false;   ///< one shape with a density per solid geometry type, and one on a body with mass of its own
  bool contact = false;  ///< shapes that touch each other and the floor, softly; otherwise nothing touches
  Integrator integrator = Integrator::featherstone;
  int loops = 0;  ///< with semi_implicit: ball and fixed joints by turns that close loops between random bodies
  bool rotations = false;  ///< a free root, and ball, universal and planar joints among the others
  double spread = 0.25;    ///< m, distance between joints
  /// Of hinges and slides, two or three each: by turns with all that can act on one, held, and stiff.
  int couplings = 0;
};

/// Three numbers within ±bound.
Numbers3 random_vector(Random& random, double bound);

/// A tree with random frames, axes, bodies, armatures and gravity. The same seed gives the same model.
Model random_tree(std::uint64_t seed, const TreeOptions& options);

/// One link that hangs from a hinge about y: all its mass (1 kg) at `length` below the hinge.
Model pendulum(double length = 1);
/// Two such links.
Model double_pendulum();
/// A body of `mass` kg that slides along z; gravity (0, 0, −9.81).
Model slider(double mass, const std::function<void(JointOptions&)>& change = {});
/// `links` hinges about alternating axes, 0.2 m apart, bodies of 1 kg: the shape of a serial arm.
Model chain(int links);

/// Every parameter that any motion of the model can depend on asks for a gradient.
void require_all(Model& model);

}  // namespace backdrive::test
