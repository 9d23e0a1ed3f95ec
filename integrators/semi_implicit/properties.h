#pragma once
// Parameters into what a step reads, and the cotangents of that back into gradients of the parameters: once per rollout
// and world, in float64 (or dual numbers of it).
#include "integrators/rollout/constants.h"
#include "integrators/semi_implicit/system.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

template <class C>
struct BodyProperties {
  C mass;           ///< kg; positive
  Vec3<C> com;      ///< m, link axes, from the link origin
  Sym3<C> inertia;  ///< kg·m², link axes, about the com; positive definite: a point has no orientation to solve for
  C lift = constant<C>(0);  ///< share of the weight that is cancelled
};

/// A joint frame on a body or on the world.
template <class C>
struct JointFrame {
  Vec3<C> position;           ///< m
  Quaternion<C> orientation;  ///< unit
};
template <class C>
struct JointFrameBar {
  Vec3<C> position, orientation;  ///< orientation·exp(θ)
};

template <class C>
struct JointProperties {
  JointFrame<C> parent, child;
  Vec3<C> axis;  ///< unit, in the joint frame; of joints of one degree of freedom
  JointEfforts<C> efforts;
  Attachment<C> attach;
};
template <class C>
struct JointPropertiesBar {
  JointFrameBar<C> parent, child;
  Vec3<C> axis;  ///< tangent to the sphere
  JointEfforts<C> efforts;
  Attachment<C> attach;
};

/// s⁻¹ by cofactors.
template <class C>
BACKDRIVE_HD inline Sym3<C> inverse(const Sym3<C>& s) {
  const C xx = s.yy * s.zz - s.yz * s.yz, xy = s.xz * s.yz - s.xy * s.zz, xz = s.xy * s.yz - s.xz * s.yy;
  const C scale = constant<C>(1) / (s.xx * xx + s.xy * xy + s.xz * xz);
  return {xx * scale, (s.xx * s.zz - s.xz * s.xz) * scale, (s.xx * s.yy - s.xy * s.xy) * scale, xy * scale,
          xz * scale, (s.xy * s.xz - s.xx * s.yz) * scale};
}

template <class C>
BACKDRIVE_HD inline BodyConstants<C> body_constants(const BodyProperties<C>& p) {
  return {p.mass, constant<C>(1) / p.mass, p.com, p.inertia, inverse(p.inertia), p.lift};
}

/// Turn of the joint's axes that brings the axis to z; 1 for joints without an axis.
template <class C>
BACKDRIVE_HD inline Mat3<C> alignment_of(JointType type, const Vec3<C>& axis) {
  return has_one_degree(type) ? axis_alignment(axis) : identity3<C>();
}

template <class C>
BACKDRIVE_HD inline JointConstants<C> joint_constants(JointType type, const JointProperties<C>& p) {
  const Mat3<C> A = alignment_of(type, p.axis);
  return {rotation_matrix(p.parent.orientation) * A,
          p.parent.position,
          rotation_matrix(p.child.orientation) * A,
          p.child.position,
          p.efforts,
          p.attach};
}

/// Adjoint of joint_constants, with right tangents throughout: of R A exp θ, the frame R receives A θ̄ and the alignment
/// A exp η both frames' θ̄; āxis = A (η̄ × e_z). Sets `bar`.
template <class C>
BACKDRIVE_HD inline void adj_joint_constants(JointType type, const JointProperties<C>& p, const JointGradient<C>& g,
                                             JointPropertiesBar<C>& bar) {
  const Mat3<C> A = alignment_of(type, p.axis);
  const Vec3<C> eta = g.parent_turn + g.child_turn;
  bar.parent = {g.parent_origin, A * g.parent_turn};
  bar.child = {g.child_origin, A * g.child_turn};
  bar.axis = has_one_degree(type) ? A * Vec3<C>{eta.y, -eta.x, constant<C>(0)} : zero3<C>();
  bar.efforts = g.efforts;
  bar.attach = g.attach;
}

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
