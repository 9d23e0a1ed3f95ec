#include "autodiff/tape/loop_gaps.h"

#include <cmath>

#include "integrators/semi_implicit/joint_rows.h"
#include "integrators/semi_implicit/parameter_rows.h"

namespace backdrive {
namespace {

/// About the link's origin in place of its com, which the caller takes to be there.
semi_implicit::BodyPose<double> pose_of(const Model& model, const State<double>& state, int body, int world) {
  const int row = model.topology.joint_nq + body * kBodyPositions;
  const auto q = [&](int k) { return state.q(row + k, world); };
  return {rotation_matrix(Quaternion<double>{{q(0), q(1), q(2)}, q(3)}), {q(4), q(5), q(6)}};
}

}  // namespace

std::vector<LoopGap> loop_gaps(const Model& model, const State<double>& state, int world) {
  std::vector<LoopGap> gaps;
  const ParameterReader<double> read{view_of(model), nullptr, std::min(world, model.parameter_worlds() - 1)};
  const Vec3<double> none = zero3<double>();
  for (const Link& link : model.topology.links) {
    if (!link.first || link.loop_child < 0) continue;
    const int joint = link.joint, parent = model.joint_parents[joint];
    const JointType type = model.joint_types[joint];
    const auto constants = semi_implicit::joint_constants(type, semi_implicit::joint_properties(read, joint));
    const auto child = pose_of(model, state, model.joint_children[joint], world);
    semi_implicit::BodyPose<double> carrier{};
    if (parent >= 0) carrier = pose_of(model, state, parent, world);
    const auto geometry =
        semi_implicit::joint_geometry<double>(type, constants, parent >= 0, {carrier, none}, {child, none});
    double error[semi_implicit::kRows], square[2] = {0, 0};
    semi_implicit::joint_errors(type, geometry, error);
    for (int row = 0; row < semi_implicit::kRows; ++row) {
      if (semi_implicit::dof_of_row(type, row) < 0) square[row < 3] += error[row] * error[row];
    }
    gaps.push_back({joint, std::sqrt(square[0]), std::sqrt(square[1])});
  }
  return gaps;
}

}  // namespace backdrive
