#pragma once
// Where the bodies of a model are in given states and how they move, and what momentum that makes of all.
#include <span>
#include <vector>

#include "autodiff/tape/rollout.h"
#include "models/mass_properties.h"

namespace backdrive::app {

/// All vectors in world axes; masses are those of world 0.
class BodyStates {
 public:
  using Vec = Vec3<double>;

  /// Of `count` states, one behind the other: nq positions each, nv velocities. O(count · links).
  BodyStates(const Model& model, int count, std::span<const double> q, std::span<const double> qd);

  int bodies() const { return static_cast<int>(masses_.size()); }
  double mass(int body) const { return masses_[body].mass; }
  double mass_of_all() const { return mass_of_all_; }

  Vec position(int state, int body) const { return vector(state, body, 0); }
  Mat3<double> axes(int state, int body) const;
  Vec velocity(int state, int body) const { return vector(state, body, 12); }
  Vec angular_velocity(int state, int body) const { return vector(state, body, 15); }

  /// Of a body's centre of mass.
  struct Center {
    double mass;
    Vec position, velocity;
  };
  Center center(int state, int body) const;
  /// J ω about the centre of mass.
  Vec spin(int state, int body) const;

  // Of all bodies.
  Vec center_of_mass(int state) const;
  Vec momentum(int state) const;
  Vec velocity_of_center(int state) const { return momentum(state) * (1 / mass_of_all_); }
  /// About the centre of mass of all.
  Vec angular_momentum(int state) const;

 private:
  double number(int state, int body, int which) const;
  Vec vector(int state, int body, int first) const;

  Buffer<double> motions_;
  std::vector<MassProperties<double>> masses_;
  double mass_of_all_ = 0;
};

}  // namespace backdrive::app
