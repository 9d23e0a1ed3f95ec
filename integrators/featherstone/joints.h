#pragma once
#if !defined(BACKDRIVE_KERNELS)
#define BACKDRIVE_KERNELS generic
#endif
// The types of links, one struct each. A new type is a struct here with its cases in visit_joint, visit_dofs and
// each_coordinate, rows in models/model.h and models/coordinates.*, and its word in the scenes' schema. Its subspace S
// must be fixed in the child's axes, for which equations (1) and (8) hold as they stand; a root whose S is fixed in the
// world says so (fixed_in_world).
#include <type_traits>

#include "engine/rotation.h"
#include "engine/sincos.h"
#include "engine/spatial.h"
#include "models/model.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// Turns about z of the joint axes.
struct Revolute {
  static constexpr int dofs = 1;
  static constexpr bool displaced = true, fixed_in_world = false;

  /// What move needs of q: apart from it, since a sine takes long and does not depend on other joints.
  template <class Real>
  BACKDRIVE_INLINE static void displace(const Real* q, Real (&d)[2]) {
    sincos(q[0], d[0], d[1]);
  }
  /// From the joint's placement (axes, origin) to the link's.
  template <class Real>
  BACKDRIVE_INLINE static void move(const Real*, const Real (&d)[2], Mat3<Real>& axes, Vec3<Real>&) {
    const Real &s = d[0], &c = d[1];
    const Vec3<Real> x = axes.cx;
    axes.cx = x * c + axes.cy * s;
    axes.cy = axes.cy * c - x * s;
  }
  /// `placed`: axes before the joint moved them.
  template <class Real>
  BACKDRIVE_INLINE static void subspace(const Mat3<Real>&, const Mat3<Real>& axes, const Vec3<Real>& origin,
                                        Spatial<Real>* S) {
    S[0] = {axes.cz, cross(origin, axes.cz)};
  }
};

/// Slides along z of the joint axes.
struct Prismatic {
  static constexpr int dofs = 1;
  static constexpr bool displaced = true, fixed_in_world = false;

  template <class Real>
  BACKDRIVE_INLINE static void displace(const Real* q, Real (&d)[2]) {
    d[0] = q[0];
  }
  template <class Real>
  BACKDRIVE_INLINE static void move(const Real*, const Real (&d)[2], Mat3<Real>& axes, Vec3<Real>& origin) {
    origin += axes.cz * d[0];
  }
  template <class Real>
  BACKDRIVE_INLINE static void subspace(const Mat3<Real>&, const Mat3<Real>& axes, const Vec3<Real>&,
                                        Spatial<Real>* S) {
    S[0] = {zero3<Real>(), axes.cz};
  }
};

struct Fixed {
  static constexpr int dofs = 0;
  static constexpr bool displaced = false, fixed_in_world = false;

  template <class Real>
  BACKDRIVE_INLINE static void displace(const Real*, Real (&)[2]) {}
  template <class Real>
  BACKDRIVE_INLINE static void move(const Real*, const Real (&)[2], Mat3<Real>&, Vec3<Real>&) {}
  template <class Real>
  BACKDRIVE_INLINE static void subspace(const Mat3<Real>&, const Mat3<Real>&, const Vec3<Real>&, Spatial<Real>*) {}
};

/// Turns any way about the link origin; angular velocity in the child's axes.
struct Ball {
  static constexpr int dofs = 3;
  static constexpr bool displaced = false, fixed_in_world = false;

  template <class Real>
  BACKDRIVE_INLINE static void displace(const Real*, Real (&)[2]) {}
  template <class Real>
  BACKDRIVE_INLINE static void move(const Real* q, const Real (&)[2], Mat3<Real>& axes, Vec3<Real>&) {
    axes = axes * rotation_matrix(load_quaternion(q));
  }
  template <class Real>
  BACKDRIVE_INLINE static void subspace(const Mat3<Real>&, const Mat3<Real>& axes, const Vec3<Real>& origin,
                                        Spatial<Real>* S) {
    S[0] = {axes.cx, cross(origin, axes.cx)};
    S[1] = {axes.cy, cross(origin, axes.cy)};
    S[2] = {axes.cz, cross(origin, axes.cz)};
  }
};

/// Moves any way; only a root. q̇ = [ω; ṗ] in the joint's axes on the world, about O, which goes along with the link's
/// origin p: S is made of those axes, and the spatial acceleration has the bias [0; ṗ × ω]. No
/// position enters the dynamics: `origin`, from O, stays zero.
struct Free {
  static constexpr int dofs = 6;
  static constexpr bool displaced = false, fixed_in_world = true;

  template <class Real>
  BACKDRIVE_INLINE static void displace(const Real*, Real (&)[2]) {}
  template <class Real>
  BACKDRIVE_INLINE static void move(const Real* q, const Real (&)[2], Mat3<Real>& axes, Vec3<Real>&) {
    axes = axes * rotation_matrix(load_quaternion(q));
  }
  template <class Real>
  BACKDRIVE_INLINE static void subspace(const Mat3<Real>& placed, const Mat3<Real>&, const Vec3<Real>&,
                                        Spatial<Real>* S) {
    const Vec3<Real> zero = zero3<Real>();
    S[0] = {placed.cx, zero}, S[1] = {placed.cy, zero}, S[2] = {placed.cz, zero};
    S[3] = {zero, placed.cx}, S[4] = {zero, placed.cy}, S[5] = {zero, placed.cz};
  }
};

/// Calls visitor(Revolute{}) and so on for the link's type. The same for all worlds of a pack: a plain switch.
template <class Visitor>
BACKDRIVE_INLINE void visit_joint(JointType type, Visitor&& visitor) {
  switch (type) {
    case JointType::revolute:
      return visitor(Revolute{});
    case JointType::prismatic:
      return visitor(Prismatic{});
    case JointType::ball:
      return visitor(Ball{});
    case JointType::free:
      return visitor(Free{});
    case JointType::fixed:
    case JointType::universal:  // chains of other links
    case JointType::planar:
      break;
  }
  return visitor(Fixed{});
}

/// Calls visitor with the link's number of degrees of freedom as a std::integral_constant.
template <class Visitor>
BACKDRIVE_INLINE void visit_dofs(JointType type, Visitor&& visitor) {
  switch (type) {
    case JointType::fixed:
      return visitor(std::integral_constant<int, 0>{});
    case JointType::ball:
      return visitor(std::integral_constant<int, Ball::dofs>{});
    case JointType::free:
      return visitor(std::integral_constant<int, Free::dofs>{});
    case JointType::revolute:
    case JointType::prismatic:
    case JointType::universal:  // chains of such links
    case JointType::planar:
      break;
  }
  return visitor(std::integral_constant<int, 1>{});
}

template <TurnSide Side>
using TurnSideConstant = std::integral_constant<TurnSide, Side>;

/// Walks positions and velocities together: scalar(row of q, row of q̇) where q follows q̇ as a number does, and
/// rotation(TurnSideConstant, first row of q, first row of q̇) for quaternions.
template <class Scalar, class Rotation>
BACKDRIVE_INLINE void each_coordinate(const Link* links, int link_count, int nq, int nv, const Scalar& scalar,
                                      const Rotation& rotation) {
  if (nq == nv) {
    for (int k = 0; k < nv; ++k) scalar(k, k);
    return;
  }
  for (int i = 0; i < link_count; ++i) {
    const Link& link = links[i];
    if (link.type == JointType::ball) {
      rotation(TurnSideConstant<TurnSide::right>{}, link.q, link.v);
    } else if (link.type == JointType::free) {
      rotation(TurnSideConstant<TurnSide::left>{}, link.q, link.v);
      for (int k = 0; k < 3; ++k) scalar(link.q + 4 + k, link.v + 3 + k);
    } else if (link.type != JointType::fixed) {
      scalar(link.q, link.v);
    }
  }
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
