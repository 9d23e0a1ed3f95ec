#pragma once
// The derivatives of one step by state and controls, without contact: forward dynamics once, and then equations (6)-(8)
// once for each component of q̇⁺, since
//
//   q⁺ = q ⊕ Δt q̇⁺
//
// makes the rows of q⁺ from those of q̇⁺ (5). An adjoint of the rollout does as much for every row of either.
#include "integrators/featherstone/workspace.h"

namespace backdrive::featherstone::inline BACKDRIVE_KERNELS {

/// As PackAdjoint, without what gradients of parameters need.
template <class R>
struct PackStepJacobian : PackAdjoint<R> {
  using Link = AdjointLink<R>;
  static constexpr bool parameters = false;
};

/// Rows of one group of worlds: entries (row, column) of A and (row, control) of B.
template <class Real>
class StepJacobianRows {
 public:
  BACKDRIVE_INLINE StepJacobianRows(const StepJacobianArguments<StorageOf<Real>>& a, int first_world)
      : group_(a.launch, first_world),
        by_state_(a.by_state),
        by_control_(a.by_control),
        nv_(a.launch.topology.nv),
        nu_(a.launch.topology.nu) {}

  BACKDRIVE_INLINE void set(int row, int column, const Real& x) const {
    store<Real>(by_state_ + group_.at(row_begin(row) + column), x);
  }
  BACKDRIVE_INLINE void set_control(int row, const Real* numbers) const {
    if (by_control_) store_rows(group_, by_control_, std::size_t(row) * nu_, nu_, numbers);
  }

  /// Row `row` is Σ factors[k] · row (first + k), with that of a position beside (set, thereafter).
  template <int count>
  BACKDRIVE_INLINE void combine(int row, int first, const Real (&factors)[count]) const {
    combine_in(by_state_, std::size_t(2) * nv_, row, first, factors);
    if (by_control_) combine_in(by_control_, nu_, row, first, factors);
  }
  BACKDRIVE_INLINE void add(int row, int column, const Real& x) const {
    StorageOf<Real>* const at = by_state_ + group_.at(row_begin(row) + column);
    store<Real>(at, load<Real>(at) + x);
  }

 private:
  BACKDRIVE_INLINE std::size_t row_begin(int row) const { return std::size_t(row) * 2 * nv_; }

  template <int count>
  BACKDRIVE_INLINE void combine_in(StorageOf<Real>* rows, std::size_t columns, int row, int first,
                                   const Real (&factors)[count]) const {
    for (std::size_t c = 0; c < columns; ++c) {
      Real sum = constant<Real>(0);
      for (int k = 0; k < count; ++k) sum += factors[k] * load<Real>(rows + group_.at((first + k) * columns + c));
      store<Real>(rows + group_.at(row * columns + c), sum);
    }
  }

  WorldGroup group_;
  StorageOf<Real>*by_state_, *by_control_;
  int nv_, nu_;
};

/// Row nv + k of A and B, for every k: that of q̇⁺[k].
template <class Layout>
BACKDRIVE_HD void velocity_rows(AdjointScratch<Layout>& g, const StepJacobianRows<typename Layout::Real>& rows) {
  using Real = typename Layout::Real;
  Workspace<Layout>& ws = g.ws;
  const auto each = [&](const auto& scalar, const auto& rotation) {
    each_coordinate(ws.links, ws.link_count, ws.nq, ws.nv, scalar, rotation);
  };
  for (int k = 0; k < ws.nv; ++k) {
    for (int i = 0; i < ws.nq; ++i) g.bar.q[i] = constant<Real>(0);
    for (int i = 0; i < ws.nv; ++i) g.bar.qd[i] = ws.dof[i].x = constant<Real>(0);
    g.bar.qd[k] = constant<Real>(1);
    ws.dof[k].x = ws.dt;
    acceleration_adjoint(ws, g.bar);
    if (ws.middle.on) exchange_solves(ws, false);
    each([&](int q, int v) { rows.set(ws.nv + k, v, g.bar.q[q]); },
         [&](auto, int q, int v) {
           for (int i = 0; i < 3; ++i) rows.set(ws.nv + k, v + i, g.bar.q[q + i]);
         });
    for (int i = 0; i < ws.nv; ++i) rows.set(ws.nv + k, ws.nv + i, g.bar.qd[i]);
    rows.set_control(ws.nv + k, g.bar.control.numbers);
  }
}

/// Rows 0 to nv of A and B, those of q⁺, from those of q̇⁺: of q⁺ = q + Δt q̇⁺, and of the rotations, tangent rows.
template <class Layout>
BACKDRIVE_HD void position_rows(const Workspace<Layout>& ws, const StepJacobianRows<typename Layout::Real>& rows) {
  using Real = typename Layout::Real;
  const auto unit = [](int k, int i) { return constant<Real>(k == i ? 1 : 0); };
  const auto turn = [&](int v) { return ws.dt * (ws.qd[v] + ws.dt * ws.dof[v].qdd); };
  each_coordinate(
      ws.links, ws.link_count, ws.nq, ws.nv,
      [&](int, int v) {
        rows.template combine<1>(v, ws.nv + v, {ws.dt});
        rows.add(v, v, constant<Real>(1));
      },
      [&](auto side, int, int v) {
        for (int k = 0; k < 3; ++k) {
          Vec3<Real> theta{unit(k, 0), unit(k, 1), unit(k, 2)}, phi = zero3<Real>();
          adj_turned<side()>({turn(v), turn(v + 1), turn(v + 2)}, theta, phi);
          rows.template combine<3>(v + k, ws.nv + v, {ws.dt * phi.x, ws.dt * phi.y, ws.dt * phi.z});
          for (int i = 0; i < 3; ++i) rows.add(v + k, v + i, component(theta, i));
        }
      });
}

template <class Real>
void step_jacobian_group(const StepJacobianArguments<StorageOf<Real>>& a, int first_world, std::byte* scratch) {
  AdjointScratch<PackStepJacobian<Real>> g;
  Arena arena(scratch);
  lay_out(a.launch, false, first_world, arena, g);
  load_state(a.launch, a.q, a.qd, first_world, g.ws);
  g.ws.control.take(WorldGroup(a.launch, first_world), a.control, 0, a.launch.topology.nu, 0);
  g.ws.control.pad(a.launch.worlds, first_world, a.launch.topology.nu);
  accelerations_and_forces(g.ws);
  const StepJacobianRows<Real> rows(a, first_world);
  velocity_rows(g, rows);
  position_rows(g.ws, rows);
}

}  // namespace backdrive::featherstone::inline BACKDRIVE_KERNELS
