#pragma once
// A policy in the loop as a custom operation: linear feedback u = K (q, q̇) + b with the gains as a leaf buffer.
#include "autodiff/tape/rollout.h"

namespace backdrive::test {

/// Gains of a policy, per world: row (channel·(nq + nv + 1) + input), the last input being the constant 1.
template <class T>
Buffer<T> policy_gains(const Model& model, int worlds) {
  const Topology& t = model.topology;
  return Buffer<T>(t.nu * (t.nq + t.nv + 1), worlds);
}

/// One step's control. With a tape, recorded as a custom operation with its own adjoint.
template <class T>
Control<T> apply_policy(Tape<T>* tape, const Model& model, const Buffer<T>& gains, const State<T>& state) {
  const Topology& t = model.topology;
  const int worlds = state.q.worlds(), inputs = t.nq + t.nv + 1;
  const Buffer<T> q = state.q, qd = state.qd;
  const auto input = [q, qd, nq = t.nq](int k, int w) {
    if (k < nq) return q(k, w);
    return k < nq + qd.rows() ? qd(k - nq, w) : T(1);
  };
  Control<T> control(model, 1, worlds);
  for (int c = 0; c < t.nu; ++c) {
    T* u = control.u.write(c);
    for (int k = 0; k < inputs; ++k) {
      for (int w = 0; w < worlds; ++w) u[w] += gains(c * inputs + k, w) * input(k, w);
    }
  }
  if (!tape) return control;
  const Buffer<T> u = control.u;
  const auto adjoint = [=, nq = t.nq, nu = t.nu](Cotangents<T>& bars) {
    const Buffer<T>* u_bar = bars.find(u);
    if (!u_bar) return;
    Buffer<T>&gains_bar = bars.of(gains), &q_bar = bars.of(q), &qd_bar = bars.of(qd);
    for (int c = 0; c < nu; ++c) {
      for (int k = 0; k < inputs; ++k) {
        for (int w = 0; w < worlds; ++w) {
          const T bar = (*u_bar)(c, w);
          gains_bar.write(c * inputs + k)[w] += bar * input(k, w);
          if (k < nq) {
            q_bar.write(k)[w] += bar * gains(c * inputs + k, w);
          } else if (k + 1 < inputs) {
            qd_bar.write(k - nq)[w] += bar * gains(c * inputs + k, w);
          }
        }
      }
    }
  };
  tape->record({{gains, q, qd}, {u}, adjoint});
  return control;
}

}  // namespace backdrive::test
