#pragma once
// Couplings that hold, held where their joints come to: docs/semi_implicit.md, (19).
//
// What (16) holds are rates in the axes of the start; where axes turn against each other, positions miss by the square
// of the step. So what these couplings ask for is mended by Newton's method, with the responses Z that are at hand,
//
//   (19) ask −= s⁺/Δt,  v⁺ += Z δf        until s⁺, their position after the free flight with v⁺, is zero
//
// whose slope is off by how far axes turn in a step: that much is left of s⁺ each time.
#include "integrators/semi_implicit/couplings.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

constexpr int kClosings = 8;
/// Of s⁺, rad or m: above it, one that grows is as far as this gets: its slope means nothing for gaps of a radian.
constexpr double kClosed = 1e-6;

template <class Real>
BACKDRIVE_INLINE bool holds_any(const System<Real>& system) {
  bool any = false;
  for (int c = 0; c < system.couplings.count; ++c) any = any || system.couplings.couplings[c].holds;
  return any;
}

/// Where the bodies of held joints come to with the velocities after the kick.
template <class Real>
BACKDRIVE_CALLED void fly_held(const System<Real>& system, const BodyState<Real>* state, Workspace<Real>& ws) {
  const auto fly = [&](int i) {
    if (i < 0) return;
    const BodyScratch<Real>& body = ws.body[i];
    const FreeFlight<Real> d = flight_of(flight_start(system, state, ws, i), body.next.ang);
    ws.held.pose[i] = {d.axes, body.pose.centre + body.next.lin * system.dt};
  };
  for (int c = 0; c < system.couplings.count; ++c) {
    if (!system.couplings.couplings[c].holds) continue;
    each_term(system, c, [&](int, int j, int) { fly(system.joints[j].child), fly(system.joints[j].parent); });
  }
}

template <class Real>
BACKDRIVE_INLINE JointGeometry<Real> held_geometry(const System<Real>& system, const Workspace<Real>& ws, int j) {
  return geometry_of(system, j, [&](int body) -> const BodyPose<Real>& { return ws.held.pose[body]; });
}
template <class Real>
BACKDRIVE_INLINE Real held_position(const System<Real>& system, const Workspace<Real>& ws, int j,
                                    const JointGeometry<Real>& g) {
  Real q[4] = {constant<Real>(0)};
  joint_positions(system.joints[j], g, ws.joint[j].position, q);
  return q[0];
}

/// (19), from v⁺ of (16) in body[].next and joint[].next.
template <class Real>
BACKDRIVE_CALLED void close_couplings(const System<Real>& system, const BodyState<Real>* state, Workspace<Real>& ws) {
  const int n = system.couplings.count;
  const Real zero = constant<Real>(0);
  Real going = constant<Real>(1), before = constant<Real>(1e30);
  for (int round = 0; round < kClosings; ++round) {
    fly_held(system, state, ws);
    Real size = zero;
    for (int c = 0; c < n; ++c) {
      Real& ask = ws.coupled[c].trial;
      ask = zero;
      if (!system.couplings.couplings[c].holds) continue;
      Real s = sum_of_terms(system, c,
                            [&](int j, int) { return held_position(system, ws, j, held_geometry(system, ws, j)); });
      s += system.couplings.constants[c].offset;
      size += maximum(s, -s);
      ask = -(s / system.dt);
    }
    const auto grows = value_of(size) > value_of(before) && value_of(size) > value_of(constant<Real>(kClosed));
    going = select(grows, zero, going);
    before = size;
    substitute(ws.response.matrix, n, [&](int c) -> Real& { return ws.coupled[c].trial; });
    for (int c = 0; c < n; ++c) {
      const Real push = ws.coupled[c].trial * going;
      ws.coupled[c].push += push;
      for (int i = 0; i < system.body_count; ++i) {
        ws.body[i].next += ws.response.bodies[c * system.body_count + i] * push;
      }
      for (int j = 0; j < system.joint_count; ++j) {
        const RowRates<Real>& z = ws.response.rows[c * system.joint_count + j];
        for (int row = 0; row < kRows; ++row) {
          ws.joint[j].next[row] += z.rate[row] * push;
          ws.joint[j].off[row] += z.rate[row] * push;
        }
      }
    }
  }
}

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
