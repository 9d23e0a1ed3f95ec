#pragma once
// Solves (M + Gᵀ A G) x = b for the velocities x of all bodies: docs/semi_implicit.md, equations (3) and (4).
//
// M holds the bodies' masses and inertias, G the rows of all joints, the diagonal A ≥ 0 their springs, dampers and
// armatures. With S = G M⁻¹ Gᵀ and the rows' impulses λ = A G x,
//
//   x = M⁻¹ (b − Gᵀ λ)      (1 + A S) λ = A G M⁻¹ b
//
// eliminated row by row with pivots 1 + A_i S_ii ≥ 1, where S stays symmetric:  S_jk −= S_ji A_i/(1 + A_i S_ii) S_ik.
// Nothing is lost however stiff an attachment is (then the pivot row is that of a rigid one), nor however soft, and A
// needs neither an inverse nor a square root. Rates G x come out as such, not as differences of velocities.
//
// Where rows draw to rates t, (M + Gᵀ A G) x = b + Gᵀ A t, the same gives by how much they are off, from c − t in place
// of c = G M⁻¹ b: impulses are then −A (G x − t), and A t, which may be 1e7 times what bodies of a gram have of
// momentum, is added to nothing.
#include "integrators/semi_implicit/workspace.h"

namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS {

/// The rows of G of one joint for one of its bodies.
template <class Real>
struct BodyRows {
  const JointGeometry<Real>& g;
  bool parent;  ///< of the two

  /// A force with its moment about the body's com.
  BACKDRIVE_INLINE Spatial<Real> wrench(int row) const {
    if (row < 3) return {g.turn[row], zero3<Real>()};
    const Vec3<Real>& W = column(g.P, row - 3);
    return {cross(parent ? g.parent_arm : g.child_arm, W), W};
  }
};

/// Rate of every row when the joint's bodies move with `child` and, unless null, `parent`: [ω; velocity of the com].
template <class Real>
BACKDRIVE_INLINE void row_rates(const JointGeometry<Real>& g, const Spatial<Real>& child, const Spatial<Real>* parent,
                                Real (&rate)[kRows]) {
  Vec3<Real> ang = child.ang, lin = plus_cross(child.lin, child.ang, g.child_arm);
  if (parent) {
    ang -= parent->ang;
    lin -= plus_cross(parent->lin, parent->ang, g.parent_arm);
  }
  for (int k = 0; k < 3; ++k) {
    rate[k] = dot(g.turn[k], ang);
    rate[3 + k] = dot(column(g.P, k), lin);
  }
}

/// x += Gᵀ f of one joint, as momenta: f by row, the child receives it and the parent (unless null) the opposite.
template <class Real>
BACKDRIVE_INLINE void add_row_forces(const JointGeometry<Real>& g, const Real (&f)[kRows], Spatial<Real>& child,
                                     Spatial<Real>* parent) {
  const Vec3<Real> moment = g.turn[0] * f[0] + g.turn[1] * f[1] + g.turn[2] * f[2];
  const Vec3<Real> force = g.P.cx * f[3] + g.P.cy * f[4] + g.P.cz * f[5];
  child += Spatial<Real>{plus_cross(moment, g.child_arm, force), force};
  if (parent) *parent -= Spatial<Real>{plus_cross(moment, g.parent_arm, force), force};
}

/// M⁻¹ of the bodies' own masses, b ↦ M⁻¹ b of one body.
template <class Real>
struct OwnMasses {
  static constexpr bool couples = false;  ///< turns with shifts
  const System<Real>& system;
  const Workspace<Real>& ws;

  BACKDRIVE_INLINE Spatial<Real> operator()(int body, const Spatial<Real>& b) const {
    return {ws.body[body].inverse_inertia * b.ang, b.lin * system.bodies[body].inverse_mass};
  }
};

/// S_ab += rows of joint a, rows of joint b at a body that they share.
template <class Real, class Masses>
BACKDRIVE_PART void add_shared_body(const BodyRows<Real>& a, const BodyRows<Real>& b, int body,
                                    const Masses& divide_by_mass, Block<Real>& block) {
  const Real sign = constant<Real>(a.parent != b.parent ? -1 : 1);
  for (int j = 0; j < kRows; ++j) {
    const Spatial<Real> right = divide_by_mass(body, b.wrench(j)) * sign;
    for (int i = 0; i < kRows; ++i) {
      const Spatial<Real> left = a.wrench(i);
      const bool turns = i < 3 || (!Masses::couples && j < 3);
      block.at[i][j] += turns ? dot(left.ang, right.ang) : dot(left, right);
    }
  }
}

/// S = G M⁻¹ Gᵀ, the blocks that the elimination fills set to zero.
template <class Real, class Masses>
BACKDRIVE_HD void assemble(const System<Real>& system, const Workspace<Real>& ws, const Masses& divide_by_mass,
                           const Factors<Real>& factors) {
  const EliminationView& e = system.elimination;
  const auto add = [&](int ja, int jb, Block<Real>& block) {
    for (int i = 0; i < kRows; ++i) {
      for (int j = 0; j < kRows; ++j) block.at[i][j] = constant<Real>(0);
    }
    const JointGeometry<Real>&a = ws.joint[ja].geometry, &b = ws.joint[jb].geometry;
    for (int side = 0; side < 4; ++side) {
      const bool a_parent = side & 1, b_parent = side & 2;
      const int body = a_parent ? system.joints[ja].parent : system.joints[ja].child;
      if (body < 0 || body != (b_parent ? system.joints[jb].parent : system.joints[jb].child)) continue;
      add_shared_body<Real>({a, a_parent}, {b, b_parent}, body, divide_by_mass, block);
    }
  };
  for (int k = 0; k < system.joint_count; ++k) {
    add(e.order[k], e.order[k], factors.block[k]);
    for (int entry = e.first_column[k]; entry < e.first_column[k + 1]; ++entry) {
      add(e.order[k], e.order[e.columns[entry]], factors.block[system.joint_count + entry]);
    }
  }
}

/// Eliminates the rows of position k within its own block row.
template <class Real>
BACKDRIVE_PART void eliminate_rows(const JointScratch<Real>& joint, Pivots<Real>& pivots, Block<Real>& own,
                                   Block<Real>* others, int other_count) {
  for (int i = 0; i < kRows; ++i) {
    pivots.inverse[i] = constant<Real>(1) / (constant<Real>(1) + joint.inertia[i] * own.at[i][i]);
    const Real weight = joint.inertia[i] * pivots.inverse[i];
    for (int row = i + 1; row < kRows; ++row) {
      const Real factor = own.at[i][row] * weight;
      for (int j = row; j < kRows; ++j) own.at[row][j] -= factor * own.at[i][j];
      for (int o = 0; o < other_count; ++o) {
        for (int j = 0; j < kRows; ++j) others[o].at[row][j] -= factor * others[o].at[i][j];
      }
    }
  }
}

/// Aᵢⱼ −= Σ_r left_ri weight_r right_rj
template <class Real>
BACKDRIVE_PART void less_product(const JointScratch<Real>& joint, const Pivots<Real>& pivots, const Block<Real>& left,
                                 const Block<Real>& right, Block<Real>& target) {
  for (int r = 0; r < kRows; ++r) {
    const Real weight = joint.inertia[r] * pivots.inverse[r];
    for (int i = 0; i < kRows; ++i) {
      const Real factor = left.at[r][i] * weight;
      for (int j = 0; j < kRows; ++j) target.at[i][j] -= factor * right.at[r][j];
    }
  }
}

/// Factors of 1 + A S, in place. O(joints) for trees of bounded branching.
template <class Real>
BACKDRIVE_HD void factor(const System<Real>& system, const Workspace<Real>& ws, const Factors<Real>& factors) {
  const EliminationView& e = system.elimination;
  for (int k = 0; k < system.joint_count; ++k) {
    const JointScratch<Real>& joint = ws.joint[e.order[k]];
    Pivots<Real>& pivots = factors.pivots[e.order[k]];
    const int first = e.first_column[k], count = e.first_column[k + 1] - first;
    Block<Real>* const others = factors.block + system.joint_count + first;
    eliminate_rows(joint, pivots, factors.block[k], others, count);
    const int* target = e.targets + e.first_target[k];
    for (int i = 0; i < count; ++i) {
      for (int j = i; j < count; ++j) less_product(joint, pivots, others[i], others[j], factors.block[*target++]);
    }
  }
}

/// (1 + A S) λ = A c with c in joint[].rate; leaves λ/A there, G x of c = G M⁻¹ b.
template <class Real>
BACKDRIVE_HD void solve_rows(const System<Real>& system, Workspace<Real>& ws, const Factors<Real>& factors) {
  const EliminationView& e = system.elimination;
  for (int k = 0; k < system.joint_count; ++k) {
    JointScratch<Real>& joint = ws.joint[e.order[k]];
    const Pivots<Real>& pivots = factors.pivots[e.order[k]];
    for (int i = 0; i < kRows; ++i) {
      const Real y = joint.inertia[i] * pivots.inverse[i] * joint.rate[i];
      for (int j = i + 1; j < kRows; ++j) joint.rate[j] -= factors.block[k].at[i][j] * y;
      for (int entry = e.first_column[k]; entry < e.first_column[k + 1]; ++entry) {
        Real* const later = ws.joint[e.order[e.columns[entry]]].rate;
        const Block<Real>& block = factors.block[system.joint_count + entry];
        for (int j = 0; j < kRows; ++j) later[j] -= block.at[i][j] * y;
      }
    }
  }
  for (int k = system.joint_count - 1; k >= 0; --k) {
    JointScratch<Real>& joint = ws.joint[e.order[k]];
    const Pivots<Real>& pivots = factors.pivots[e.order[k]];
    for (int i = kRows - 1; i >= 0; --i) {
      Real sum = joint.rate[i];
      for (int j = i + 1; j < kRows; ++j) sum -= factors.block[k].at[i][j] * (joint.inertia[j] * joint.rate[j]);
      for (int entry = e.first_column[k]; entry < e.first_column[k + 1]; ++entry) {
        const JointScratch<Real>& later = ws.joint[e.order[e.columns[entry]]];
        const Block<Real>& block = factors.block[system.joint_count + entry];
        for (int j = 0; j < kRows; ++j) sum -= block.at[i][j] * (later.inertia[j] * later.rate[j]);
      }
      joint.rate[i] = sum * pivots.inverse[i];
    }
  }
}

/// (M + Gᵀ A G) x = b with the factors at hand: b in body[].u, and then x; its rates in joint[].rate. `to_targets`:
/// with + Gᵀ A t on the right, t in joint[].target; then rates less t.
template <class Real, class Masses>
BACKDRIVE_HD void solve(const System<Real>& system, Workspace<Real>& ws, const Masses& divide_by_mass,
                        const Factors<Real>& factors, bool to_targets = false) {
  for (int j = 0; j < system.joint_count; ++j) {
    const Joint& joint = system.joints[j];
    const Spatial<Real> child = divide_by_mass(joint.child, ws.body[joint.child].u);
    Spatial<Real> parent;
    if (joint.parent >= 0) parent = divide_by_mass(joint.parent, ws.body[joint.parent].u);
    JointScratch<Real>& s = ws.joint[j];
    row_rates(s.geometry, child, joint.parent >= 0 ? &parent : nullptr, s.rate);
    for (int i = 0; to_targets && i < kRows; ++i) s.rate[i] -= s.target[i];
  }
  solve_rows(system, ws, factors);
  for (int j = 0; j < system.joint_count; ++j) {
    const Joint& joint = system.joints[j];
    const JointScratch<Real>& s = ws.joint[j];
    Real f[kRows];
    for (int i = 0; i < kRows; ++i) f[i] = -(s.inertia[i] * s.rate[i]);
    add_row_forces(s.geometry, f, ws.body[joint.child].u, joint.parent >= 0 ? &ws.body[joint.parent].u : nullptr);
  }
  for (int i = 0; i < system.body_count; ++i) ws.body[i].u = divide_by_mass(i, ws.body[i].u);
}

template <class Real>
BACKDRIVE_HD void solve(const System<Real>& system, Workspace<Real>& ws, bool to_targets = false) {
  solve(system, ws, OwnMasses<Real>{system, ws}, ws.factors, to_targets);
}

}  // namespace backdrive::semi_implicit::inline BACKDRIVE_KERNELS
