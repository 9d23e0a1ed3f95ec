#pragma once
// What the effort of one degree of freedom is made of (joint_forces.h), for a joint whose every degree has the same.
#include "models/parameter_reader.h"

namespace backdrive {

#define BACKDRIVE_NUMBER_MEMBER(at, name, ...) C name;
#define BACKDRIVE_NEST(type, member, parameters, what, X) \
  template <class C>                                      \
  struct type##Numbers {                                  \
    parameters(BACKDRIVE_NUMBER_MEMBER, )                 \
  };
#define BACKDRIVE_NEST_MEMBER(type, member, parameters, what, X) type##Numbers<C> member;
BACKDRIVE_EFFORT_NESTS(BACKDRIVE_NEST, )

/// Named and nested as the parameters they are of (models/parameter_table.h). Also the cotangents of one, member by
/// member.
template <class C>
struct JointEfforts {
  BACKDRIVE_RESISTANCE_PARAMETERS(BACKDRIVE_NUMBER_MEMBER, )
  BACKDRIVE_EFFORT_NESTS(BACKDRIVE_NEST_MEMBER, )
};
#undef BACKDRIVE_NUMBER_MEMBER
#undef BACKDRIVE_NEST
#undef BACKDRIVE_NEST_MEMBER

/// Far beyond any travel and speed; stands for an absent limit, since infinity times a zero slope is NaN.
constexpr double kNoLimit = 1e9;

/// Walks them: visit(number of JointEfforts, which parameter).
template <class Visit>
BACKDRIVE_HD inline void each_effort_number(Visit&& visit) {
#define BACKDRIVE_VISIT(at, name, ...) \
  visit(                               \
      [](auto& c) -> auto& { return c.at name; }, BACKDRIVE_PICK(joints.at name));
  BACKDRIVE_EFFORT_PARAMETERS(BACKDRIVE_VISIT)
#undef BACKDRIVE_VISIT
}

template <class C>
BACKDRIVE_HD JointEfforts<C> joint_efforts(const ParameterReader<C>& read, int joint) {
  JointEfforts<C> efforts;
  each_effort_number([&](auto number, auto pick) { number(efforts) = read.number(pick, joint); });
  efforts.limit.lower = maximum(efforts.limit.lower, constant<C>(-kNoLimit));
  efforts.limit.upper = minimum(efforts.limit.upper, constant<C>(kNoLimit));
  efforts.limit.velocity = minimum(efforts.limit.velocity, constant<C>(kNoLimit));
  return efforts;
}

}  // namespace backdrive
