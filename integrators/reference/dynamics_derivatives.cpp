#include "integrators/reference/dynamics_derivatives.h"

#include <Eigen/Dense>
#include <complex>

#include "engine/error.h"
#include "integrators/reference/inverse_dynamics.h"
#include "integrators/reference/mass_matrix.h"
#include "models/coordinates.h"

namespace backdrive::reference {
namespace {

using Complex = std::complex<double>;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr double kComplexStep = 1e-30;  ///< its square is nothing beside 1

std::vector<Complex> complex_of(const std::vector<double>& x) {
  return {x.begin(), x.end()};
}

/// How the numbers of q begin to change with component `v` of a small change: nq numbers.
std::vector<double> direction(const Topology& topology, const std::vector<double>& q, int v) {
  std::vector<double> rate(q.size(), 0.0);
  rate[tangent_rows(topology)[v]] = 1;
  each_quaternion(topology, [&](TurnSide side, int at, int first) {
    if (v < first || v >= first + 3) return;
    const Vec3<double> theta{v == first ? 1.0 : 0.0, v == first + 1 ? 1.0 : 0.0, v == first + 2 ? 1.0 : 0.0};
    const Quaternion<double> change = quaternion_rate(side, load_quaternion(&q[at]), theta);
    rate[at] = change.v.x, rate[at + 1] = change.v.y, rate[at + 2] = change.v.z, rate[at + 3] = change.w;
  });
  return rate;
}

std::vector<double> numbers_of(const Matrix& matrix) {
  return {matrix.data(), matrix.data() + matrix.size()};
}

}  // namespace

DynamicsDerivatives dynamics_derivatives(const Model& model, const std::vector<double>& q,
                                         const std::vector<double>& qd, const std::vector<double>& tau, int world) {
  const int nv = model.topology.nv;
  const std::vector<double> qdd = forward_dynamics_dense(model, q, qd, tau, world);
  const std::vector<double> M = mass_matrix(model, q, world);
  const Eigen::LLT<Matrix> factors(Eigen::Map<const Matrix>(M.data(), nv, nv));
  const std::vector<Complex> still = complex_of(q), moving = complex_of(qd), accelerating = complex_of(qdd);
  Matrix by_q(nv, nv), by_qd(nv, nv);
  for (int v = 0; v < nv; ++v) {
    const std::vector<double> rate = direction(model.topology, q, v);
    std::vector<Complex> displaced = still, faster = moving;
    for (std::size_t k = 0; k < q.size(); ++k) displaced[k] += Complex(0, kComplexStep * rate[k]);
    faster[v] += Complex(0, kComplexStep);
    const std::vector<Complex> of_q = inverse_dynamics(model, displaced, moving, accelerating, world);
    const std::vector<Complex> of_qd = inverse_dynamics(model, still, faster, accelerating, world);
    for (int r = 0; r < nv; ++r) {
      by_q(r, v) = of_q[r].imag() / kComplexStep;
      by_qd(r, v) = of_qd[r].imag() / kComplexStep;
    }
  }
  return {numbers_of(-factors.solve(by_q)), numbers_of(-factors.solve(by_qd)),
          numbers_of(factors.solve(Matrix::Identity(nv, nv)))};
}

}  // namespace backdrive::reference
