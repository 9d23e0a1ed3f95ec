#pragma once
// What is told of contacts: the rows of Trajectory::contact.
#include "integrators/contact/space.h"
#include "integrators/rollout/rows.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

/// What is told of a pair in a step: kContactRows numbers.
template <class Real>
struct PairReport {
  Vec3<Real> force;  ///< on the first body, world axes
  Vec3<Real> point;  ///< where, in the world: the points' mean by their normal forces; zero where there is no force
  Real depth;        ///< of the deepest point; zero apart
};

template <class Space>
BACKDRIVE_HD PairReport<typename Space::Real> report_of(const Space& ws,
                                                        const TouchingPair<typename Space::Real>& touching) {
  using Real = typename Space::Real;
  const auto& space = ws.contact;
  const Real zero = constant<Real>(0);
  PairReport<Real> r{zero3<Real>(), zero3<Real>(), zero};
  Vec3<Real> moment = zero3<Real>();
  Real normal = zero;
  for (int k = touching.first; k < touching.first + touching.count; ++k) {
    const Contact<Real>& c = space.contacts[k];
    const Real own = dot(c.state.normal, c.wrench.lin);
    r.force += c.wrench.lin;
    r.depth = maximum(r.depth, c.state.depth);
    moment += c.position * own;
    normal += own;
  }
  const auto pressed = value_of(normal) > value_of(zero);
  const Vec3<Real> origin = shift_on_way(ws, carrier_of(ws, touching.a).root, -1);  // in the world
  const Vec3<Real> mean = origin + moment * (constant<Real>(1) / select(pressed, normal, constant<Real>(1)));
  r.point = {select(pressed, mean.x, zero), select(pressed, mean.y, zero), select(pressed, mean.z, zero)};
  return r;
}

/// Writes the rows of one step, before the state moves on: [pair][kContactRows].
template <class Space>
BACKDRIVE_CALLED void store_contacts(const Space& ws, StorageOf<typename Space::Real>* rows, int stride,
                                     int first_world) {
  using Real = typename Space::Real;
  const auto& space = ws.contact;
  static_assert(sizeof(PairReport<Real>) == kContactRows * sizeof(Real));
  int next = 0;
  for (int pair = 0; pair < space.pair_count; ++pair) {
    const Real zero = constant<Real>(0);
    PairReport<Real> r{zero3<Real>(), zero3<Real>(), zero};
    if (next < space.touching_count && space.touching[next].number == pair) r = report_of(ws, space.touching[next++]);
    const Real* const numbers = &r.force.x;
    StorageOf<Real>* at = rows + static_cast<std::size_t>(pair) * kContactRows * stride + first_world;
    for (int k = 0; k < kContactRows; ++k, at += stride) store<Real>(at, numbers[k]);
  }
}

/// Notes the first step whose contact was not solved, in the worlds where it was not.
template <class Space>
BACKDRIVE_HD void note_unsolved(const Space& ws, int step, int first_world, int worlds, WorldStatus* status) {
  using Real = typename Space::Real;
  if (!ws.contact.any_unsolved) return;
  for (int l = 0; l < RealTraits<Real>::lanes && first_world + l < worlds; ++l) {
    WorldStatus& own = status[first_world + l];
    if (number_in(ws.contact.unsolved, l) != 0 && own.unsolved_step < 0 && !own.stopped()) own.unsolved_step = step;
  }
}

/// Rows of the pairs' forces of a step, where they are asked for, before the state moves on.
template <class T, class Space>
BACKDRIVE_HD void report_contacts(const RolloutArguments<T>& a, const Space& ws, int step, int first_world) {
  if (!a.contact) return;
  const std::size_t row = std::size_t(step) * a.launch.topology.contact_pair_count * kContactRows;
  store_contacts(ws, a.contact + row * a.launch.stride, a.launch.stride, first_world);
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
