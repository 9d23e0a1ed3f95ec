#pragma once
// Which numbers can be those of something that exists and can be simulated, world by world: the same source for
// validate(), which says what is wrong, and for kernels, which tell only that something is. Reads and writes through
// views, of the host or of a device.
#include <cmath>

#include "models/parameter_reader.h"

namespace backdrive {

struct Field;

// ---- numbers one by one ---------------------------------------------------------------------------------------------

/// Which values a number may have.
struct ValueRule {
  bool may_be_infinite, nonnegative, positive;

  BACKDRIVE_HD bool allows(double x) const {
    return (is_finite(x) || (may_be_infinite && x == x)) && !(nonnegative && x < 0) && !(positive && !(x > 0));
  }
};
/// Of those components of a field that are used; the others of a scale may be anything.
ValueRule rule_of(const Field& field);

/// Makes an item's components (finite ones) a unit vector. False for zero, which stays.
BACKDRIVE_HD inline bool normalize(const ParameterSlots& p, int item, int world) {
  double largest = 0, squares = 0;
  for (int c = 0; c < p.components; ++c) largest = maximum(largest, std::abs(p(item, c, world)));
  if (largest == 0) return false;
  for (int c = 0; c < p.components; ++c) {
    const double share = p(item, c, world) / largest;
    squares += share * share;
  }
  const double length = largest * std::sqrt(squares);
  // What is a unit vector to rounding stays as it is, so that a second call changes no bit.
  if (std::abs(length - 1) < 1e-15) return true;
  for (int c = 0; c < p.components; ++c) p(item, c, world) /= length;
  return true;
}

// ---- inertias -------------------------------------------------------------------------------------------------------

/// Principal moments may break their inequalities by this share of the largest (files carry few digits).
constexpr double kInertiaTolerance = 1e-5;

/// Ascending.
struct PrincipalMoments {
  double least, middle, most;
};

/// Eigenvalues of a symmetric 3x3 matrix by cyclic Jacobi rotations; error a few ulp of the largest.
BACKDRIVE_HD inline PrincipalMoments principal_moments(const Sym3<double>& s) {
  double a[3][3] = {{s.xx, s.xy, s.xz}, {s.xy, s.yy, s.yz}, {s.xz, s.yz, s.zz}};
  const auto rotate = [&](int p, int q) {
    if (a[p][q] == 0) return;
    const double ratio = (a[q][q] - a[p][p]) / (2 * a[p][q]);
    const double t = std::copysign(1.0, ratio) / (std::abs(ratio) + std::hypot(1.0, ratio));
    const double c = 1 / std::hypot(1.0, t), sn = t * c;
    for (int k = 0; k < 3; ++k) {
      const double kp = a[k][p], kq = a[k][q];
      a[k][p] = c * kp - sn * kq;
      a[k][q] = sn * kp + c * kq;
    }
    for (int k = 0; k < 3; ++k) {
      const double pk = a[p][k], qk = a[q][k];
      a[p][k] = c * pk - sn * qk;
      a[q][k] = sn * pk + c * qk;
    }
  };
  for (int sweep = 0; sweep < 12; ++sweep) rotate(0, 1), rotate(0, 2), rotate(1, 2);
  const double low = minimum(a[0][0], a[1][1]), high = maximum(a[0][0], a[1][1]), last = a[2][2];
  return {minimum(low, last), maximum(low, minimum(high, last)), maximum(high, last)};
}

enum class InertiaFault { none, negative, unbalanced };

BACKDRIVE_HD inline InertiaFault fault_of(const PrincipalMoments& m) {
  const double tolerance = kInertiaTolerance * maximum(std::abs(m.least), std::abs(m.most));
  if (m.least < -tolerance) return InertiaFault::negative;
  return m.least + m.middle < m.most - tolerance ? InertiaFault::unbalanced : InertiaFault::none;
}

// ---- joints that move nothing ---------------------------------------------------------------------------------------

/// A 6x6 matrix in somebody else's memory, angular first.
struct Matrix6At {
  double* first;
  std::size_t stride;  ///< from one number to the next
  BACKDRIVE_HD double& operator()(int row, int column) const { return first[(row * 6 + column) * stride]; }
};

/// What a sweep over the links writes down: kInertiaScratch numbers per link, `stride` apart.
struct InertiaScratch {
  double* first;
  std::size_t stride;
  BACKDRIVE_HD Matrix6At articulated(int link) const { return {first + link * 72 * stride, stride}; }
  BACKDRIVE_HD Matrix6At composite(int link) const { return {first + (link * 72 + 36) * stride, stride}; }
};
constexpr int kInertiaScratch = 72;

/// Rigid inertia of a body about its link origin as a full matrix.
BACKDRIVE_HD inline void set_rigid(const Matrix6At& to, const MassProperties<double>& body) {
  RigidInertia<double> I;
  set(I, body.mass, body.com, body.inertia);
  for (int c = 0; c < 6; ++c) {
    double e[6] = {};
    e[c] = 1;
    const Spatial<double> f = I * Spatial<double>{{e[0], e[1], e[2]}, {e[3], e[4], e[5]}};
    const double column[6] = {f.ang.x, f.ang.y, f.ang.z, f.lin.x, f.lin.y, f.lin.z};
    for (int r = 0; r < 6; ++r) to(r, c) = column[r];
  }
}

/// to += Xᵀ I X, where X takes motions about the parent's origin to the child's, at `rotation` and `position`.
BACKDRIVE_HD inline void add_to_parent(const Matrix6At& to, const Matrix6At& I, const Mat3<double>& rotation,
                                       const Vec3<double>& position) {
  double X[6][6];
  for (int c = 0; c < 6; ++c) {
    double e[6] = {};
    e[c] = 1;
    const Vec3<double> ang{e[0], e[1], e[2]}, lin{e[3], e[4], e[5]};
    const Vec3<double> a = transposed_times(rotation, ang);
    const Vec3<double> l = transposed_times(rotation, lin + cross(ang, position));
    const double column[6] = {a.x, a.y, a.z, l.x, l.y, l.z};
    for (int r = 0; r < 6; ++r) X[r][c] = column[r];
  }
  for (int c = 0; c < 6; ++c) {
    double IX[6] = {};
    for (int r = 0; r < 6; ++r) {
      for (int k = 0; k < 6; ++k) IX[r] += I(r, k) * X[k][c];
    }
    for (int r = 0; r < 6; ++r) {
      for (int k = 0; k < 6; ++k) to(r, c) += X[k][r] * IX[k];
    }
  }
}

struct LinkPlacement {
  Mat3<double> rotation;  ///< link axes in the parent's
  Vec3<double> position;  ///< link origin in the parent's axes
};

/// One world's numbers, asked whether they can be.
struct WorldValidity {
  const ModelStructure& model;
  ParameterReader<double> read;

  BACKDRIVE_HD bool limits_in_order(int joint) const {
    return read.number(BACKDRIVE_PICK(joints.limit.lower), joint) <
           read.number(BACKDRIVE_PICK(joints.limit.upper), joint);
  }
  BACKDRIVE_HD bool coupling_limits_in_order(int coupling) const {
    return read.number(BACKDRIVE_PICK(couplings.limit.lower), coupling) <
           read.number(BACKDRIVE_PICK(couplings.limit.upper), coupling);
  }
  /// Of the inertia a body was given, without its shapes.
  BACKDRIVE_HD PrincipalMoments moments(int body) const { return principal_moments(explicit_mass(read, body).inertia); }

  BACKDRIVE_HD bool inertias_can_be() const {
    for (int i = 0; i < model.link_count; ++i) {
      const Link& link = model.links[i];
      if (link.body < 0 || link.unphysical_inertia) continue;
      if (fault_of(moments(link.body)) != InertiaFault::none) return false;
    }
    return true;
  }

  /// Whether the joint of every link that moves moves inertia for sure, whatever hangs on it: its body resists every
  /// motion by itself, or it has an armature.
  BACKDRIVE_HD bool all_joints_sound() const {
    if (model.integrator == Integrator::semi_implicit) return joint_of_hollow_body() < 0;
    for (int i = 0; i < model.link_count; ++i) {
      const Link& link = model.links[i];
      if (link.body < 0) continue;  // the last of its chain decides
      if (joint_size(link.type).nv > 0 && !(armature(link) > 0) && !solid(link.body)) return false;
    }
    return true;
  }
  /// A joint that moves no inertia, −1: none. A single configuration may be singular (a wrist stretched out), so only
  /// what is without inertia in three generic ones counts.
  BACKDRIVE_HD int idle_joint(const InertiaScratch& scratch) const {
    if (model.integrator == Integrator::semi_implicit) return joint_of_hollow_body();
    const double phases[3] = {0.137, 0.419, 0.853};
    int joint = 0;
    for (int k = 0; k < 3 && joint >= 0; ++k) joint = joint_without_inertia(phases[k], scratch);
    return joint;
  }

 private:
  /// Bodies that are stepped by themselves all need mass and inertia. The joint that carries one without, −1: none.
  BACKDRIVE_HD int joint_of_hollow_body() const {
    for (int i = 0; i < model.link_count; ++i) {
      if (model.links[i].body >= 0 && !solid(model.links[i].body)) return model.links[i].joint;
    }
    return -1;
  }
  BACKDRIVE_HD double armature(const Link& link) const {
    return read.number(BACKDRIVE_PICK(joints.armature), link.joint);
  }
  BACKDRIVE_HD bool solid(int body) const {
    if (body < 0) return false;
    const MassProperties<double> own = body_mass(model, read, body);
    const PrincipalMoments moments = principal_moments(own.inertia);
    return own.mass > 0 && moments.least > 1e-12 * moments.most;
  }

  /// At position q of a link of one degree of freedom; of other joints where they begin.
  BACKDRIVE_HD LinkPlacement placement(const Link& link, const Vec3<double>& axis, double q) const {
    LinkPlacement at{identity3<double>(), zero3<double>()};
    if (link.first) {
      at.rotation = read.rotation(BACKDRIVE_PICK(joints.frame.orientation), link.joint);
      at.position = read.vector(BACKDRIVE_PICK(joints.frame.position), link.joint);
    }
    if (link.type == JointType::prismatic) at.position += at.rotation * (axis * q);
    if (link.type == JointType::revolute) {
      const Vec3<double> s = axis * std::sin(q / 2);
      at.rotation = at.rotation * rotation_matrix(s.x, s.y, s.z, std::cos(q / 2));
    }
    return at;
  }

  /// (2) and (3) of the articulated-body algorithm in link axes for the motion S: I −= U D⁻¹ Uᵀ. False where D is zero.
  BACKDRIVE_HD static bool release(const double (&S)[6], double armature, const Matrix6At& I,
                                   const Matrix6At& composite) {
    double U[6] = {}, D = armature, scale = armature;
    for (int r = 0; r < 6; ++r) {
      for (int c = 0; c < 6; ++c) U[r] += I(r, c) * S[c];
    }
    for (int r = 0; r < 6; ++r) D += S[r] * U[r], scale += S[r] != 0 ? composite(r, r) : 0;
    // Rounding leaves about 1e-16 of the composite inertia where there should be nothing.
    if (!(armature > 0) && !(D > 1e-13 * scale)) return false;
    D = maximum(D, armature);
    for (int r = 0; r < 6; ++r) {
      for (int c = 0; c < 6; ++c) I(r, c) -= U[r] * U[c] / D;
    }
    return true;
  }
  /// All degrees of freedom of a link, one by one.
  BACKDRIVE_HD bool release_all(const Link& link, const Vec3<double>& axis, const Matrix6At& I,
                                const Matrix6At& composite) const {
    const int dofs = joint_size(link.type).nv;
    const bool turns = link.type == JointType::revolute, slides = link.type == JointType::prismatic;
    for (int k = 0; k < dofs; ++k) {
      double S[6] = {};
      if (turns || slides) {
        double* const half = S + (turns ? 0 : 3);
        half[0] = axis.x, half[1] = axis.y, half[2] = axis.z;
      } else {
        S[k] = 1;
      }
      if (!release(S, armature(link), I, composite)) return false;
    }
    return true;
  }

  /// The first joint (leaves first) with D = 0 at some generic configuration, −1: none. O(links).
  BACKDRIVE_HD int joint_without_inertia(double phase, const InertiaScratch& scratch) const {
    for (int i = 0; i < model.link_count; ++i) {
      const MassProperties<double> body = body_mass(model, read, model.links[i].body);
      set_rigid(scratch.articulated(i), body);
      set_rigid(scratch.composite(i), body);
    }
    for (int i = model.link_count - 1; i >= 0; --i) {
      const Link& link = model.links[i];
      // Golden-ratio steps: no two joints of a chain at angles that cancel.
      const double q = 2 * std::fmod(phase + 0.6180339887498949 * static_cast<double>(i), 1.0) - 1;
      const Vec3<double> axis = link_axis(read, link);
      const LinkPlacement at = placement(link, axis, q);
      const Matrix6At articulated = scratch.articulated(i), composite = scratch.composite(i);
      if (!release_all(link, axis, articulated, composite)) return link.joint;
      if (link.parent < 0) continue;
      add_to_parent(scratch.articulated(link.parent), articulated, at.rotation, at.position);
      add_to_parent(scratch.composite(link.parent), composite, at.rotation, at.position);
    }
    return -1;
  }
};

}  // namespace backdrive
