#pragma once
// The one table of a model's parameters. From it are made the nest that users write to and kernels read
// (parameters.h), the options of ModelBuilder (builder.h), the list that paths, --set, sweeps, gradients and printing
// walk (fields.h), the constants of kernels with their gradients (integrators/rollout/joint_efforts.h,
// integrators/contact/shape_constants.h), and the keys of scenes with their page (docs/scenes.md).
//
//   X(at, name, begins with, values, unit, meaning)
//
// `at` is where the nest stands, as `limit.`, or empty. A parameter has as many components as what it begins with; it
// may be infinite if that is. Where a joint's numbers measure angles or lengths by its type, the unit says both.
#include <array>
#include <cstddef>

#include "engine/real.h"

namespace backdrive {

using Numbers3 = std::array<double, 3>;
using Numbers4 = std::array<double, 4>;
using Numbers6 = std::array<double, 6>;

/// What values a parameter may have; others are refused.
enum class ValueRange { any, nonnegative, positive };

// clang-format off
#define BACKDRIVE_FRAME_PARAMETERS(X, at, what)                                                                        \
  X(at, position,           (Numbers3{0, 0, 0}),          any,         "m",      what)                                 \
  X(at, orientation,        (Numbers4{0, 0, 0, 1}),       any,         "1",      "quaternion (x, y, z, w) of the " what)

#define BACKDRIVE_BODY_PARAMETERS(X, at)                                                                               \
  X(at, mass,               0.0,                          nonnegative, "kg",     "beside what shapes with a density add") \
  X(at, com,                (Numbers3{0, 0, 0}),          any,         "m",      "centre of mass, link axes, from the link origin") \
  X(at, inertia,            (Numbers6{0, 0, 0, 0, 0, 0}), any,         "kg·m²",  "xx, yy, zz, xy, xz, yz about the com, link axes") \
  X(at, gravity_compensation, 0.0,                        any,         "1",      "share of its weight that is cancelled: 0 none, 1 all of it")

#define BACKDRIVE_AXIS_PARAMETERS(X, at)                                                                               \
  X(at, axis,               (Numbers3{0, 0, 1}),          any,         "1",      "unit vector in the joint frame")

// What the effort of a joint is made of (docs/theory.md, (9)), the same for all its degrees of freedom.
#define BACKDRIVE_RESISTANCE_PARAMETERS(X, at)                                                                         \
  X(at, armature,           0.0,                          nonnegative, "kg·m² or kg",        "reflected inertia of the actuator") \
  X(at, damping,            0.0,                          nonnegative, "N·m·s/rad or N·s/m", "viscous, implicit")      \
  X(at, friction,           0.0,                          nonnegative, "N·m or N",           "Coulomb level, smoothed")

#define BACKDRIVE_SPRING_PARAMETERS(X, at)                                                                             \
  X(at, stiffness,          0.0,                          nonnegative, "N·m/rad or N/m",     "of the spring; 0: none") \
  X(at, rest,               0.0,                          any,         "rad or m",           "position at which it pulls no way")

#define BACKDRIVE_LIMIT_PARAMETERS(X, at)                                                                              \
  X(at, lower,              -kInfinity,                   any,         "rad or m",           "lowest position; -inf: none")  \
  X(at, upper,              kInfinity,                    any,         "rad or m",           "highest position; +inf: none") \
  X(at, stiffness,          1e3,                          nonnegative, "N·m/rad or N/m",     "spring beyond the limits")     \
  X(at, damping,            10.0,                         nonnegative, "N·m·s/rad or N·s/m", "damper beyond the limits")     \
  X(at, velocity,           kInfinity,                    nonnegative, "rad/s or m/s",       "highest speed; +inf: none")    \
  X(at, velocity_damping,   1e3,                          nonnegative, "N·m·s/rad or N·s/m", "damper beyond that speed")

#define BACKDRIVE_DRIVE_PARAMETERS(X, at)                                                                              \
  X(at, stiffness,          0.0,                          nonnegative, "N·m/rad or N/m",     "gain on the position error")   \
  X(at, damping,            0.0,                          nonnegative, "N·m·s/rad or N·s/m", "gain on the velocity error")   \
  X(at, effort_limit,       kInfinity,                    nonnegative, "N·m or N",           "bounds drive + commanded effort; +inf: none")

// G(type, member, its parameters, what it is, passed on): nests of the effort.
#define BACKDRIVE_EFFORT_NESTS(G, X)                                                                                   \
  G(Spring, spring, BACKDRIVE_SPRING_PARAMETERS,                                                                       \
    "Spring of a joint. It acts from the start of a step, so that it keeps energy; it needs steps of less than 2/ω, ω its fastest oscillation. What is stiffer is a drive. Universal and planar joints: the same at each degree of freedom. Ball: towards orientation zero, with the angle of the turn. Free joints have none.", X) \
  G(Limit, limit, BACKDRIVE_LIMIT_PARAMETERS,                                                                          \
    "Soft limits of a joint's position: beyond them a spring of C¹ onset and a damper that acts only there; and of its speed. Universal and planar joints: the same at each degree of freedom. Ball: `upper` is the greatest angle of its turn, about any axis, and `velocity` that of its angular velocity. Free joints have none.", X) \
  G(Drive, drive, BACKDRIVE_DRIVE_PARAMETERS,                                                                          \
    "Position and velocity servo of a joint, treated implicitly: stiffness·(target − q⁺) + damping·(target velocity − q̇⁺). A joint with one has the control channels `target_position` and `target_velocity`. Universal and planar joints: the same gains at each degree of freedom. Ball: the target is a rotation vector (its axis times its angle) of the child against the joint. Free joints have none.", X)
#define BACKDRIVE_EFFORT_NEST_(type, member, parameters, what, X) parameters(X, member.)
#define BACKDRIVE_EFFORT_PARAMETERS(X)                                                                                 \
  BACKDRIVE_RESISTANCE_PARAMETERS(X, )                                                                                 \
  BACKDRIVE_EFFORT_NESTS(BACKDRIVE_EFFORT_NEST_, X)

#define BACKDRIVE_ATTACHMENT_PARAMETERS(X, at)                                                                         \
  X(at, stiffness,          1e7,                          nonnegative, "N/m",       "spring against slides that the joint does not allow (semi_implicit)") \
  X(at, damping,            0.0,                          nonnegative, "N·s/m",     "damper against slides that the joint does not allow (semi_implicit)") \
  X(at, angular_stiffness,  1e5,                          nonnegative, "N·m/rad",   "spring against turns that the joint does not allow (semi_implicit)")  \
  X(at, angular_damping,    0.0,                          nonnegative, "N·m·s/rad", "damper against turns that the joint does not allow (semi_implicit)")

#define BACKDRIVE_GEOMETRY_PARAMETERS(X, at)                                                                           \
  X(at, scale,              (Numbers3{0.1, 0.1, 0.1}),    nonnegative, "m",      "radii and half lengths, by type; factors (1) of a mesh") \
  X(at, margin,             0.0,                          nonnegative, "m",      "distance at which contact begins")

#define BACKDRIVE_MATERIAL_PARAMETERS(X, at)                                                                           \
  X(at, stiffness,          kInfinity,                    positive,    "N/m",    "contact spring; +inf: auto, by the mass that it stops (docs/contact.md)") \
  X(at, width,              1e-3,                         positive,    "m",      "depth over which the contact spring sets in") \
  X(at, dissipation,        1.0,                          nonnegative, "s/m",    "Hunt-Crossley dissipation")          \
  X(at, friction,           0.8,                          nonnegative, "1",      "Coulomb coefficient")                \
  X(at, creep,              1e-5,                         positive,    "m/s",    "stiction velocity: the slip at which a sticking contact carries all that friction can") \
  X(at, torsional_friction, 0.0,                          nonnegative, "m",      "most moment about the normal that resists turns, over the normal force") \
  X(at, rolling_friction,   0.0,                          nonnegative, "m",      "most moment about tangents that resists turns, over the normal force")

#define BACKDRIVE_DENSITY_PARAMETERS(X, at)                                                                            \
  X(at, density,            0.0,                          nonnegative, "kg/m³",  "0: the shape adds no mass")

// Of each joint in a coupling, and of the coupling (docs/theory.md, (14)).
#define BACKDRIVE_RATIO_PARAMETERS(X, at)                                                                              \
  X(at, ratios,             0.0,                          any,         "1",      "of the joint's position in that of the coupling")

#define BACKDRIVE_OFFSET_PARAMETERS(X, at)                                                                             \
  X(at, offset,             0.0,                          any,         "rad or m", "of its position, beside the sum over joints")

#define BACKDRIVE_WORLD_PARAMETERS(X, at)                                                                              \
  X(at, gravity,            (Numbers3{0, 0, -9.81}),      any,         "m/s²",   "world axes")

// All of them, X(group)(row) of bodies, joints, shapes, couplings and the model itself.
#define BACKDRIVE_JOINT_PARAMETERS(X)                                                                                  \
  BACKDRIVE_FRAME_PARAMETERS(X, frame., "joint in the parent link's frame")                                            \
  BACKDRIVE_FRAME_PARAMETERS(X, child_frame., "joint that closes a loop, in the child link's frame")                   \
  BACKDRIVE_AXIS_PARAMETERS(X, )                                                                                       \
  BACKDRIVE_EFFORT_PARAMETERS(X)                                                                                       \
  BACKDRIVE_ATTACHMENT_PARAMETERS(X, attachment.)
#define BACKDRIVE_SHAPE_PARAMETERS(X)                                                                                  \
  BACKDRIVE_FRAME_PARAMETERS(X, frame., "shape in its body's link frame")                                              \
  BACKDRIVE_GEOMETRY_PARAMETERS(X, geometry.)                                                                          \
  BACKDRIVE_MATERIAL_PARAMETERS(X, material.)                                                                          \
  BACKDRIVE_DENSITY_PARAMETERS(X, )
#define BACKDRIVE_COUPLING_PARAMETERS(X)                                                                               \
  BACKDRIVE_OFFSET_PARAMETERS(X, )                                                                                     \
  BACKDRIVE_EFFORT_PARAMETERS(X)
// clang-format on

constexpr int components_of(double) {
  return 1;
}
template <std::size_t N>
constexpr int components_of(const std::array<double, N>&) {
  return static_cast<int>(N);
}

constexpr double first_of(double begins) {
  return begins;
}
template <std::size_t N>
constexpr double first_of(const std::array<double, N>& begins) {
  return begins[0];
}

}  // namespace backdrive
