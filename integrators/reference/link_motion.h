#pragma once
// Spatial vectors and transforms in link coordinates, as Featherstone's book has them: what inverse_dynamics.cpp and
// mass_matrix.cpp share. Needs Eigen; the public headers beside it do not.
//
// Everything is read from the model's Parameters, nothing from the kernels' constants: this is the second opinion on
// them. Reference: Featherstone, Rigid Body Dynamics Algorithms (2008), chapters 2 and 4.
#include <Eigen/Dense>
#include <vector>

#include "models/model.h"

namespace backdrive::reference {

template <class Scalar>
using Vector3 = Eigen::Matrix<Scalar, 3, 1>;
template <class Scalar>
using Matrix3 = Eigen::Matrix<Scalar, 3, 3>;
template <class Scalar>
using Vector6 = Eigen::Matrix<Scalar, 6, 1>;
template <class Scalar>
using Matrix6 = Eigen::Matrix<Scalar, 6, 6>;

/// One link at its joint position.
template <class Scalar>
struct LinkMotion {
  Matrix3<Scalar> rotation;  ///< link axes in the parent's
  Vector3<Scalar> position;  ///< link origin in the parent's axes
  Matrix6<Scalar> X;         ///< motions about the parent's origin to motions about the link's (2.26)
  /// Joint subspace in link axes, a column per degree of freedom.
  Eigen::Matrix<Scalar, 6, Eigen::Dynamic> S;
  /// Whether the columns are fixed in the world: their apparent rate in the link's turning axes is then −ω × (both
  /// halves).
  bool fixed_in_world = false;

  int dofs() const { return static_cast<int>(S.cols()); }
  /// S x of a link's own numbers among those of all, from index `first` on.
  Vector6<Scalar> times(const std::vector<Scalar>& x, int first) const {
    Vector6<Scalar> sum = Vector6<Scalar>::Zero();
    for (int k = 0; k < dofs(); ++k) sum += S.col(k) * x[first + k];
    return sum;
  }
};

/// Rigid-body inertia of a body with its shapes, link axes, about the link origin (2.63).
Matrix6<double> link_inertia(const Model& model, const Link& link, int world);

/// All links in kernel order. `q` as in topology.links[i].q.
template <class Scalar>
std::vector<LinkMotion<Scalar>> link_motions(const Model& model, const std::vector<Scalar>& q, int world);

/// [v]× of a 3-vector.
template <class Scalar>
Matrix3<Scalar> skew(const Vector3<Scalar>& v) {
  Matrix3<Scalar> m;
  m << Scalar(0), -v.z(), v.y(), v.z(), Scalar(0), -v.x(), -v.y(), v.x(), Scalar(0);
  return m;
}

/// v × m for motions (2.31).
template <class Scalar>
Vector6<Scalar> motion_cross(const Vector6<Scalar>& v, const Vector6<Scalar>& m) {
  const Vector3<Scalar> w = v.template head<3>(), u = v.template tail<3>();
  Vector6<Scalar> result;
  result.template head<3>() = skew<Scalar>(w) * m.template head<3>();
  result.template tail<3>() = skew<Scalar>(w) * m.template tail<3>() + skew<Scalar>(u) * m.template head<3>();
  return result;
}

/// v ×* f for forces (2.32).
template <class Scalar>
Vector6<Scalar> force_cross(const Vector6<Scalar>& v, const Vector6<Scalar>& f) {
  const Vector3<Scalar> w = v.template head<3>(), u = v.template tail<3>();
  Vector6<Scalar> result;
  result.template head<3>() = skew<Scalar>(w) * f.template head<3>() + skew<Scalar>(u) * f.template tail<3>();
  result.template tail<3>() = skew<Scalar>(w) * f.template tail<3>();
  return result;
}

}  // namespace backdrive::reference
