#include "integrators/reference/mass_matrix.h"

#include "engine/error.h"
#include "integrators/reference/inverse_dynamics.h"
#include "integrators/reference/link_motion.h"

namespace backdrive::reference {

// Table 6.2 of the book.
std::vector<double> mass_matrix(const Model& model, const std::vector<double>& q, int world) {
  const Topology& t = model.topology;
  if (q.size() != static_cast<std::size_t>(t.nq)) {
    usage_error("q has " + std::to_string(q.size()) + " numbers, expected " + std::to_string(t.nq));
  }
  const auto motions = link_motions(model, q, world);
  const int n = static_cast<int>(t.links.size());
  std::vector<Matrix6<double>> composite(n);
  for (int i = 0; i < n; ++i) composite[i] = link_inertia(model, t.links[i], world);
  std::vector<double> M(static_cast<std::size_t>(t.nv) * t.nv);
  const auto at = [&](int r, int c) -> double& { return M[static_cast<std::size_t>(r) * t.nv + c]; };
  for (int i = n - 1; i >= 0; --i) {
    const Link& link = t.links[i];
    const Matrix6<double>& X = motions[i].X;
    if (link.parent >= 0) composite[link.parent] += X.transpose() * composite[i] * X;
    Eigen::Matrix<double, 6, Eigen::Dynamic> F = composite[i] * motions[i].S;
    for (int j = i;;) {
      const Eigen::MatrixXd block = motions[j].S.transpose() * F;
      for (int r = 0; r < block.rows(); ++r) {
        for (int c = 0; c < block.cols(); ++c) {
          at(t.links[j].v + r, link.v + c) = at(link.v + c, t.links[j].v + r) = block(r, c);
        }
      }
      if (t.links[j].parent < 0) break;
      F = (motions[j].X.transpose() * F).eval();
      j = t.links[j].parent;
    }
    for (int k = 0; k < motions[i].dofs(); ++k) {
      at(link.v + k, link.v + k) += model.joints.armature(link.joint, 0, world);
    }
  }
  return M;
}

std::vector<double> forward_dynamics_dense(const Model& model, const std::vector<double>& q,
                                           const std::vector<double>& qd, const std::vector<double>& tau, int world) {
  const int nv = model.topology.nv;
  if (tau.size() != static_cast<std::size_t>(nv)) {
    usage_error("tau has " + std::to_string(tau.size()) + " numbers, expected " + std::to_string(nv));
  }
  const std::vector<double> bias = inverse_dynamics(model, q, qd, std::vector<double>(nv, 0.0), world);
  const std::vector<double> M = mass_matrix(model, q, world);
  const Eigen::Map<const Eigen::MatrixXd> matrix(M.data(), nv, nv);
  const Eigen::Map<const Eigen::VectorXd> force(tau.data(), nv), h(bias.data(), nv);
  const Eigen::LLT<Eigen::MatrixXd> factors(matrix);
  if (factors.info() != Eigen::Success) {
    usage_error("the mass matrix is not positive definite: a joint moves no inertia here");
  }
  const Eigen::VectorXd qdd = factors.solve(force - h);
  return {qdd.data(), qdd.data() + nv};
}

}  // namespace backdrive::reference
