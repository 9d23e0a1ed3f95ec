#pragma once
// Adjoint of straight_flight.h: equation (28) of docs/theory.md. As (23), sums of cotangents on the way to the root.
#include "integrators/featherstone/straight_flight.h"
#include "integrators/featherstone/whip_adjoint.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// Cotangents of a subtree: of its twist with v_d, and of turns and shifts of it at the start of the step and at its
/// end.
template <class Real>
struct FlightBar {
  Spatial<Real> v, start, end;
};
template <class Real>
BACKDRIVE_INLINE void operator+=(FlightBar<Real>& a, const FlightBar<Real>& b) {
  a.v += b.v, a.start += b.start, a.end += b.end;
}

/// One body, with the cotangent of its m (c + Δt ċ − c⁺).
template <class Layout>
BACKDRIVE_PART void flight_body_adjoint(const Workspace<Layout>& ws, int i,
                                        const Vec3<typename Layout::Real>& moment_bar, const StepBar<Layout>& bar,
                                        FlightBar<typename Layout::Real>& sum) {
  using Real = typename Layout::Real;
  const auto& c = ws.constants[i];
  const FlyingLink<Real>& own = ws.flights[i];
  const Vec3<Real> start = plus_times(own.start.origin, own.start.axes, c.com);
  const Vec3<Real> end = plus_times(own.end.origin, own.end.axes, c.com);
  const Vec3<Real> end_bar = moment_bar * -c.mass, velocity_bar = moment_bar * (c.mass * ws.dt);
  const Vec3<Real> start_bar = cross(velocity_bar, own.v.ang) - end_bar;
  sum.v += at_point(start, velocity_bar);
  sum.start += at_point(start, start_bar);
  sum.end += at_point(end, end_bar);
  if (!bar.wants_parameters()) return;
  bar.constants[i].com += transposed_times(own.start.axes, start_bar) + transposed_times(own.end.axes, end_bar);
}

/// One joint: q̄ of the step's start into middle.q_bar, that of its end, v̄_d and the gradient of its placement.
template <class Joint, class Layout>
BACKDRIVE_PART void flight_joint_adjoint(Workspace<Layout>& ws, int i, const typename Layout::Real* moved,
                                         FlightBar<typename Layout::Real>& sum, const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  constexpr int K = Joint::dofs;
  const Link& link = ws.links[i];
  const FlyingLink<Real>& own = ws.flights[i];
  if constexpr (K > 0) {
    const Mat3<Real> placed = broadcast<Real>(ws.constants[i].rotation);
    Spatial<Real> start[K], end[K];
    Joint::subspace(placed, own.start.axes, own.start.origin, start);
    Joint::subspace(placed, own.end.axes, own.end.origin, end);
    if constexpr (!Joint::fixed_in_world) {
      Spatial<Real> rate = start[0] * moved[link.v];
      for (int k = 1; k < K; ++k) rate += start[k] * moved[link.v + k];
      sum.start = plus_cross_force(sum.start, rate, sum.v);
    }
    constexpr int turns = Joint::fixed_in_world ? 3 : K;
    for (int k = 0; k < turns; ++k) {
      bar.reported[link.v + k] += dot(start[k], sum.v);
      ws.middle.q_bar[link.q + k] += dot(start[k], sum.start);
      bar.q[link.q + k] += dot(end[k], sum.end);
    }
  }
  if (link.parent < 0 || !bar.wants_parameters()) return;
  const FlyingLink<Real>& parent = ws.flights[link.parent];
  placement_adjoint(link, ws.constants[i], parent.start, sum.start, bar.constants[i]);
  placement_adjoint(link, ws.constants[i], parent.end, sum.end, bar.constants[i]);
}

template <class Layout>
BACKDRIVE_CALLED void flight_adjoint(Workspace<Layout>& ws, int root, int end, const typename Layout::Real* moved,
                                     const StepBar<Layout>& bar) {
  using Real = typename Layout::Real;
  static_assert(sizeof(FlightBar<Real>) <= kStackNumbers<Real> * sizeof(Real));
  const TreeFlight<Real> flight =
      fly_tree(ws, root, end, moved, [&](int i, const FlyingLink<Real>& own) { ws.flights[i] = own; });
  const Vec3<Real> position_bar = vector_at(bar.q + ws.links[root].q + 4), shift = flight.shift();
  const Vec3<Real> shift_bar = broadcast<Real>(ws.constants[root].rotation) * position_bar;
  ws.whip[root].whip_bar += dot(shift_bar, shift);
  const Vec3<Real> moment_bar = shift_bar * (ws.middle.whip[root] / flight.mass);
  FlightBar<Real> top;
  Stack<FlightBar<Real>> stack(ws.stack);
  for (int i = end - 1; i >= root; --i) {
    const Link& link = ws.links[i];
    if (link.leaf) top = FlightBar<Real>{};
    flight_body_adjoint(ws, i, moment_bar, bar, top);
    if (bar.wants_parameters()) {
      bar.constants[i].mass += dot(moment_bar, short_of_flight(ws.flights[i], ws.constants[i], ws.dt) - shift);
    }
    visit_joint(
        link.type, [&](auto joint) __attribute__((always_inline)) {
          flight_joint_adjoint<decltype(joint)>(ws, i, moved, top, bar);
        });
    if (i == root) break;
    if (!link.last_child) top += stack.pop();
    if (link.parent != i - 1) stack.push(top);
  }
}

/// Before adj_move(), with v_d in `moved`: adds to the cotangents of q⁺ in bar.q and of v_d in bar.reported. Those of q
/// are left in middle.q_bar.
template <class Layout>
BACKDRIVE_HD void adj_straight_flights(Workspace<Layout>& ws, const typename Layout::Real* moved,
                                       const StepBar<Layout>& bar) {
  for (int k = 0; k < ws.nq; ++k) ws.middle.q_bar[k] = constant<typename Layout::Real>(0);
  each_straight_flight(ws, [&](int root, int end) { flight_adjoint(ws, root, end, moved, bar); });
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
