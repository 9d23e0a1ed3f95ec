#pragma once
// What the effort of one degree of freedom is made of (joint_forces.h), for a joint whose every degree has the same.
#include "models/parameter_reader.h"

namespace backdrive {

/// Also the cotangents of one, member by member. `friction` is a level, N·m or N.
template <class C>
struct JointEfforts {
  C armature, damping, friction;
  C limit_lower, limit_upper, limit_stiffness, limit_damping;
  C drive_stiffness, drive_damping, effort_limit;
};

/// Far beyond any travel; stands for an absent limit, since infinity times a zero slope is NaN.
constexpr double kNoLimit = 1e9;

/// Walks them: visit(number of JointEfforts, which parameter).
template <class Visit>
BACKDRIVE_HD inline void each_effort_number(Visit&& visit) {
#define BACKDRIVE_NUMBER(name, member) \
  visit(                               \
      [](auto& c) -> auto& { return c.name; }, BACKDRIVE_PICK(joints.member))
  BACKDRIVE_NUMBER(armature, armature);
  BACKDRIVE_NUMBER(damping, damping);
  BACKDRIVE_NUMBER(friction, friction);
  BACKDRIVE_NUMBER(limit_lower, limit.lower);
  BACKDRIVE_NUMBER(limit_upper, limit.upper);
  BACKDRIVE_NUMBER(limit_stiffness, limit.stiffness);
  BACKDRIVE_NUMBER(limit_damping, limit.damping);
  BACKDRIVE_NUMBER(drive_stiffness, drive.stiffness);
  BACKDRIVE_NUMBER(drive_damping, drive.damping);
  BACKDRIVE_NUMBER(effort_limit, drive.effort_limit);
#undef BACKDRIVE_NUMBER
}

template <class C>
BACKDRIVE_HD JointEfforts<C> joint_efforts(const ParameterReader<C>& read, int joint) {
  JointEfforts<C> efforts;
  each_effort_number([&](auto number, auto pick) { number(efforts) = read.number(pick, joint); });
  efforts.limit_lower = maximum(efforts.limit_lower, constant<C>(-kNoLimit));
  efforts.limit_upper = minimum(efforts.limit_upper, constant<C>(kNoLimit));
  return efforts;
}

}  // namespace backdrive
