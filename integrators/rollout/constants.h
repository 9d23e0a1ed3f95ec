#pragma once
// Parameters into the constants that kernels read and back, a world at a time: the same source on the host and, a
// thread per world, on devices. Item by item, so that a thread holds one item's numbers and no scratch grows with the
// model. Which items there are each integrator says.
#include "engine/dual.h"
#include "integrators/rollout/coupling_constants.h"
#include "integrators/rollout/numbers.h"
#include "models/parameter_reader.h"

namespace backdrive {

/// The number type in which parameters are turned into rows of T.
template <class T>
using Exact = std::conditional_t<std::is_same_v<T, Dual<double>>, Dual<double>, double>;

/// The smallest rotation A with A e_z = a; for a in the lower half, the same after half a turn about x.
template <class C>
BACKDRIVE_HD inline Mat3<C> axis_alignment(Vec3<C> a) {
  const bool lower = value_of(a.z) < 0;
  if (lower) a = {a.x, -a.y, -a.z};
  const C one = constant<C>(1), h = one / (one + a.z);
  const Mat3<C> m{{one - h * a.x * a.x, -h * a.x * a.y, -a.x}, {-h * a.x * a.y, one - h * a.y * a.y, -a.y}, a};
  if (!lower) return m;
  const auto turned = [](const Vec3<C>& v) { return Vec3<C>{v.x, -v.y, -v.z}; };
  return {turned(m.cx), turned(m.cy), turned(m.cz)};
}

/// Of a world, as Launch::constants wants them. Worlds past the last are copies of it, so that padding stays as tame as
/// what it pads. T is float, double or Dual<double>; devices know no directions.
template <class T>
struct WorldConstants {
  using C = Exact<T>;

  ModelStructure structure;
  ParametersView parameters;
  T* constants;  ///< [row][world]
  int stride;    ///< from row to row
  int worlds;
  const ParametersView* direction = nullptr;  ///< gives the dots of dual numbers; null: zeros

  BACKDRIVE_HD ParameterReader<C> reader(int world) const {
    return {parameters, direction, world < worlds ? world : worlds - 1};
  }
  /// Numbers of one world into the rows from first_row on.
  template <class Numbers>
  BACKDRIVE_HD void write(int world, int first_row, const Numbers& from) const {
    const C* const numbers = numbers_of<const C>(&from);
    T* to = constants + static_cast<std::size_t>(first_row) * stride + world;
    for (std::size_t k = 0; k < kNumbers<C, Numbers>; ++k) to[k * stride] = T(numbers[k]);
  }
};

/// Couplings and, behind them, a ratio per term, into the rows from first_row on.
template <class T, class C>
BACKDRIVE_HD void write_couplings(const WorldConstants<T>& to, const ParameterReader<C>& read, int world,
                                  int first_row) {
  const int count = to.structure.coupling_count;
  for (int k = 0; k < count; ++k) {
    to.write(world, first_row + k * kNumbers<C, CouplingConstants<C>>, coupling_constants(read, k));
  }
  for (int k = 0; k < to.structure.coupling_term_count; ++k) {
    to.write(world, first_row + count * kNumbers<C, CouplingConstants<C>> + k,
             read.number(BACKDRIVE_PICK(couplings.ratios), k));
  }
}

/// The cotangents of those constants, and the slots of one world's parameters that their gradients are added to; of
/// dual numbers the derivatives along the direction go to `dots`.
template <class T>
struct WorldGradient {
  using C = Exact<T>;

  ModelStructure structure;
  ParametersView parameters;
  const T* constants_bar;  ///< [row][world], gradient rows
  int stride;              ///< from row to row
  GradientSlots slots;
  bool shapes = false;     ///< with those of contact shapes
  bool couplings = false;  ///< and of couplings
  const ParametersView* direction = nullptr;
  const GradientSlots* dots = nullptr;

  BACKDRIVE_HD ParameterReader<C> reader(int world) const { return {parameters, direction, world}; }
  /// Numbers of one world from the rows from first_row on.
  template <class Numbers>
  BACKDRIVE_HD Numbers read(int world, int first_row) const {
    Numbers result;
    C* const numbers = numbers_of<C>(&result);
    const T* from = constants_bar + static_cast<std::size_t>(first_row) * stride + world;
    for (int k = 0; k < kNumbers<C, Numbers>; ++k) {
      numbers[k] = C(from[static_cast<std::size_t>(k) * stride]);
    }
    return result;
  }
  template <class Pick>
  BACKDRIVE_HD void add(Pick pick, int item, int component, int world, const C& x) const {
    if (!pick(slots)) return;
    pick(slots)(item, component, world) += value_of(x);
    if constexpr (!std::is_same_v<C, double>) {
      if (dots) pick (*dots)(item, component, world) += x.dot;
    }
  }
  template <class Pick>
  BACKDRIVE_HD void add(Pick pick, int item, int world, const Vec3<C>& x) const {
    add(pick, item, 0, world, x.x);
    add(pick, item, 1, world, x.y);
    add(pick, item, 2, world, x.z);
  }

  /// Spreads the cotangent `bar` of a body's mass properties, `whole`, over the body and its shapes.
  BACKDRIVE_HD void add_body(const ParameterReader<C>& reader, int body, const MassProperties<C>& whole,
                             const MassProperties<C>& bar) const {
    const int world = reader.world;
    const MassProperties<C> own = part_bar(explicit_mass(reader, body), whole, bar);
    add(BACKDRIVE_PICK(bodies.mass), body, 0, world, own.mass);
    add(BACKDRIVE_PICK(bodies.com), body, world, own.com);
    const C inertia[6] = {own.inertia.xx, own.inertia.yy, own.inertia.zz,
                          own.inertia.xy, own.inertia.xz, own.inertia.yz};
    for (int k = 0; k < 6; ++k) add(BACKDRIVE_PICK(bodies.inertia), body, k, world, inertia[k]);
    each_shape_of(structure, body, [&](int s) {
      const SolidShape<C> solid = solid_shape(structure, reader, s);
      SolidShapeBar<C> solid_bar;
      adj_shape_mass(solid, part_bar(shape_mass(solid), whole, bar), solid_bar);
      add(BACKDRIVE_PICK(shapes.geometry.scale), s, world, solid_bar.scale);
      add(BACKDRIVE_PICK(shapes.density), s, 0, world, solid_bar.density);
      add(BACKDRIVE_PICK(shapes.frame.position), s, world, solid_bar.position);
      add(BACKDRIVE_PICK(shapes.frame.orientation), s, world, solid_bar.theta);
    });
  }
  /// Of a joint's efforts; an absent limit was replaced by a constant, which has no gradient.
  BACKDRIVE_HD void add_efforts(const ParameterReader<C>& reader, int joint, const JointEfforts<C>& bar) const {
    each_effort_number([&](auto number, auto pick) {
      if (std::abs(value_of(reader.number(pick, joint))) < kNoLimit) add(pick, joint, 0, reader.world, number(bar));
    });
  }
  /// The same of a coupling.
  BACKDRIVE_HD void add_coupling(const ParameterReader<C>& reader, int coupling,
                                 const CouplingConstants<C>& bar) const {
    add(BACKDRIVE_PICK(couplings.offset), coupling, 0, reader.world, bar.offset);
    each_coupling_number([&](auto number, auto pick) {
      if (!(std::abs(value_of(reader.number(pick, coupling))) < kNoLimit)) return;
      add(pick, coupling, 0, reader.world, number(bar.efforts));
    });
  }
};

/// Of couplings and their ratios, as write_couplings() has them.
template <class T, class C>
BACKDRIVE_HD void add_couplings(const WorldGradient<T>& to, const ParameterReader<C>& read, int first_row) {
  const int count = to.structure.coupling_count;
  for (int k = 0; k < count; ++k) {
    const int row = first_row + k * kNumbers<C, CouplingConstants<C>>;
    to.add_coupling(read, k, to.template read<CouplingConstants<C>>(read.world, row));
  }
  for (int k = 0; k < to.structure.coupling_term_count; ++k) {
    const int row = first_row + count * kNumbers<C, CouplingConstants<C>> + k;
    to.add(BACKDRIVE_PICK(couplings.ratios), k, 0, read.world, to.template read<C>(read.world, row));
  }
}

}  // namespace backdrive
