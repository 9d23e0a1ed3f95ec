#pragma once
// What kernels read of a coupling: its offset, and what acts on it, as on a joint. Its ratios stand behind all of them,
// a number for each term.
#include "integrators/rollout/joint_efforts.h"

namespace backdrive {

/// Also the cotangents of one, member by member.
template <class C>
struct CouplingConstants {
  C offset;
  JointEfforts<C> efforts;
};

/// Walks the numbers of `efforts`: visit(number of JointEfforts, which parameter).
template <class Visit>
BACKDRIVE_HD inline void each_coupling_number(Visit&& visit) {
#define BACKDRIVE_VISIT(at, name, ...) \
  visit(                               \
      [](auto& c) -> auto& { return c.at name; }, BACKDRIVE_PICK(couplings.at name));
  BACKDRIVE_EFFORT_PARAMETERS(BACKDRIVE_VISIT)
#undef BACKDRIVE_VISIT
}

template <class C>
BACKDRIVE_HD CouplingConstants<C> coupling_constants(const ParameterReader<C>& read, int coupling) {
  CouplingConstants<C> c;
  c.offset = read.number(BACKDRIVE_PICK(couplings.offset), coupling);
  each_coupling_number([&](auto number, auto pick) { number(c.efforts) = read.number(pick, coupling); });
  c.efforts.limit.lower = maximum(c.efforts.limit.lower, constant<C>(-kNoLimit));
  c.efforts.limit.upper = minimum(c.efforts.limit.upper, constant<C>(kNoLimit));
  return c;
}

}  // namespace backdrive
