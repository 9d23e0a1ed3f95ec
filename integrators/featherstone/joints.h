#pragma once
#if !defined(BACKDRIVE_KERNELS)
#define BACKDRIVE_KERNELS generic
#endif
// The joint types, one struct each. A new type is a struct here, a row in joint_size (models/model.h) and a case in
// visit_joint; its subspace S must be fixed in the child's axes, for which equations (1) and (8) hold as they stand.
#include <type_traits>

#include "engine/sincos.h"
#include "engine/spatial.h"
#include "models/model.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// Most degrees of freedom of one joint.
constexpr int kMaxJointDofs = 1;

/// Turns about z of the joint axes.
struct Revolute {
  static constexpr int dofs = 1;

  /// What move needs of q: apart from it, since a sine takes long and does not depend on other joints.
  template <class Real>
  BACKDRIVE_INLINE static void displace(const Real* q, Real (&d)[2]) {
    sincos(q[0], d[0], d[1]);
  }
  /// From the joint's placement (axes, origin) to the link's.
  template <class Real>
  BACKDRIVE_INLINE static void move(const Real (&d)[2], Mat3<Real>& axes, Vec3<Real>&) {
    const Real &s = d[0], &c = d[1];
    const Vec3<Real> x = axes.cx;
    axes.cx = x * c + axes.cy * s;
    axes.cy = axes.cy * c - x * s;
  }
  template <class Real>
  BACKDRIVE_INLINE static void subspace(const Mat3<Real>& axes, const Vec3<Real>& origin, Spatial<Real>* S) {
    S[0] = {axes.cz, cross(origin, axes.cz)};
  }
};

/// Slides along z of the joint axes.
struct Prismatic {
  static constexpr int dofs = 1;

  template <class Real>
  BACKDRIVE_INLINE static void displace(const Real* q, Real (&d)[2]) {
    d[0] = q[0];
  }
  template <class Real>
  BACKDRIVE_INLINE static void move(const Real (&d)[2], Mat3<Real>& axes, Vec3<Real>& origin) {
    origin += axes.cz * d[0];
  }
  template <class Real>
  BACKDRIVE_INLINE static void subspace(const Mat3<Real>& axes, const Vec3<Real>&, Spatial<Real>* S) {
    S[0] = {zero3<Real>(), axes.cz};
  }
};

struct Fixed {
  static constexpr int dofs = 0;

  template <class Real>
  BACKDRIVE_INLINE static void displace(const Real*, Real (&)[2]) {}
  template <class Real>
  BACKDRIVE_INLINE static void move(const Real (&)[2], Mat3<Real>&, Vec3<Real>&) {}
  template <class Real>
  BACKDRIVE_INLINE static void subspace(const Mat3<Real>&, const Vec3<Real>&, Spatial<Real>*) {}
};

/// Calls visitor(Revolute{}) and so on for the link's type. The same for all worlds of a pack: a plain switch.
template <class Visitor>
BACKDRIVE_INLINE void visit_joint(JointType type, Visitor&& visitor) {
  switch (type) {
    case JointType::revolute:
      return visitor(Revolute{});
    case JointType::prismatic:
      return visitor(Prismatic{});
    case JointType::fixed:
      return visitor(Fixed{});
  }
}

/// Calls visitor with the joint's number of degrees of freedom as a std::integral_constant.
template <class Visitor>
BACKDRIVE_INLINE void visit_dofs(JointType type, Visitor&& visitor) {
  if (type == JointType::fixed) return visitor(std::integral_constant<int, 0>{});
  return visitor(std::integral_constant<int, 1>{});
}

/// Inverse of a symmetric positive definite K×K matrix in place, by Gauss-Jordan without pivoting.
template <int K, class Real>
BACKDRIVE_INLINE void invert(Real (&d)[kMaxJointDofs][kMaxJointDofs]) {
  for (int p = 0; p < K; ++p) {
    const Real pivot = constant<Real>(1) / d[p][p];
    d[p][p] = constant<Real>(1);
    for (int c = 0; c < K; ++c) d[p][c] *= pivot;
    for (int r = 0; r < K; ++r) {
      if (r == p) continue;
      const Real factor = d[r][p];
      d[r][p] = constant<Real>(0);
      for (int c = 0; c < K; ++c) d[r][c] -= factor * d[p][c];
    }
  }
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
