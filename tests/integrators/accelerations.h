#pragma once
// q̈ as the kernels compute it, for tests that compare with other routes.
#include "autodiff/tape/dynamics.h"

namespace backdrive::test {

/// q̈ of M q̈ + h = τ: by forward_dynamics(), whose parts are those of a step.
inline std::vector<double> accelerations(const Model& model, const std::vector<double>& q,
                                         const std::vector<double>& qd, const std::vector<double>& tau) {
  const Topology& t = model.topology;
  State<double> state(model, 1);
  Buffer<double> efforts(t.nv, 1);
  for (int i = 0; i < t.nq; ++i) state.q.set(i, 0, q[i]);
  for (int i = 0; i < t.nv; ++i) state.qd.set(i, 0, qd[i]), efforts.set(i, 0, tau[i]);
  const Buffer<double> result = forward_dynamics<double>(nullptr, model, state, efforts);
  std::vector<double> qdd;
  for (int i = 0; i < t.nv; ++i) qdd.push_back(result(i, 0));
  return qdd;
}

/// ∂q̈/∂(q, q̇, τ) by its adjoint, a row for each component of q̈. `q`: by rows of a state.
struct AccelerationDerivatives {
  std::vector<std::vector<double>> q, qd, tau;
};
inline AccelerationDerivatives acceleration_derivatives(const Model& model, const std::vector<double>& q,
                                                        const std::vector<double>& qd, const std::vector<double>& tau) {
  const int n = model.topology.nv, nq = model.topology.nq;
  State<double> state(model, n);
  Buffer<double> efforts(n, n), seed(n, n);
  for (int w = 0; w < n; ++w) {  // world w has the seed of q̈_w
    for (int i = 0; i < nq; ++i) state.q.set(i, w, q[i]);
    for (int i = 0; i < n; ++i) state.qd.set(i, w, qd[i]), efforts.set(i, w, tau[i]);
    seed.set(w, w, 1);
  }
  Tape<double> tape;
  const Buffer<double> result = forward_dynamics<double>(&tape, model, state, efforts);
  Seeds<double> seeds;
  seeds.add(result, seed);
  const Gradients<double> g = std::move(tape).backward(seeds);
  AccelerationDerivatives d{std::vector(n, std::vector<double>(nq)), std::vector(n, std::vector<double>(n)),
                            std::vector(n, std::vector<double>(n))};
  for (int w = 0; w < n; ++w) {
    for (int i = 0; i < nq; ++i) d.q[w][i] = g.of(state.q)(i, w);
    for (int i = 0; i < n; ++i) d.qd[w][i] = g.of(state.qd)(i, w);
    for (int i = 0; i < n; ++i) d.tau[w][i] = g.of(efforts)(i, w);
  }
  return d;
}

}  // namespace backdrive::test
