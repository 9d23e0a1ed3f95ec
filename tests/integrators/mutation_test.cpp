// Proof that the gradient tests can fail: each trap of the adjoint (tests/faults) is planted in a copy of the
// kernels, and the very check that gradient_test.cpp makes must notice it.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

#include "tests/integrators/mutant_kernels.h"
#include "tests/support/borne_case.h"
#include "tests/support/gradient_case.h"
#include "tests/support/models.h"
#include "tests/support/rigid_case.h"
#include "tests/support/turning_case.h"

namespace backdrive {
namespace {

using test::BlockError;
using test::GradientCase;
using test::Planted;

/// A fault and the least error it must make in some block of inputs, relative to Σ |g v|, where the gradient tests
/// allow 1e-12: a third of what it was measured to make here.
struct Trap {
  Fault fault;
  const char* name;
  double at_least;
};
void PrintTo(const Trap& trap, std::ostream* out) {
  *out << trap.name;
}

#define BACKDRIVE_TRAP(name, margin) \
  Trap {                             \
    Fault::name, #name, margin       \
  }
constexpr Trap kTraps[] = {
    BACKDRIVE_TRAP(force_turn, 1e-2),
    BACKDRIVE_TRAP(acceleration_turn, 1.5e-2),
    BACKDRIVE_TRAP(velocity_turn, 1e-3),
    BACKDRIVE_TRAP(velocity_turn_of_A, 1e-3),
    BACKDRIVE_TRAP(own_motion, 6.4e-3),
    BACKDRIVE_TRAP(root_gravity, 3e-3),
    BACKDRIVE_TRAP(velocity_carry, 2.5e-3),
    BACKDRIVE_TRAP(velocity_half, 1.4e-3),
    BACKDRIVE_TRAP(gyroscopic_term, 2e-3),
    BACKDRIVE_TRAP(com_lever, 1.5e-3),
    BACKDRIVE_TRAP(sign_of_velocity, 5e-3),
    BACKDRIVE_TRAP(bias_acceleration, 8.7e-4),
    BACKDRIVE_TRAP(inertia_in_world_axes, 3e-2),
    BACKDRIVE_TRAP(com_in_world_axes, 4e-2),
    BACKDRIVE_TRAP(inertia_off_diagonal, 2e-3),
    BACKDRIVE_TRAP(placement_without_shift, 5e-3),
    BACKDRIVE_TRAP(root_translation, 2.5e-3),
    BACKDRIVE_TRAP(pose_lever, 4e-3),
    BACKDRIVE_TRAP(pose_turn, 1.5e-2),
    BACKDRIVE_TRAP(damping_of_old_velocity, 1.1e-3),
    BACKDRIVE_TRAP(drive_of_old_position, 2e-6),
    BACKDRIVE_TRAP(limit_curvature, 4e-3),
    BACKDRIVE_TRAP(friction_slope, 1e-2),
    BACKDRIVE_TRAP(drive_velocity, 2e-4),
    BACKDRIVE_TRAP(saturation, 5e-2),
    BACKDRIVE_TRAP(effort_limit_sign, 7e-2),
    BACKDRIVE_TRAP(spring_position, 1e-3),
    BACKDRIVE_TRAP(spring_rest, 1e-3),
    BACKDRIVE_TRAP(armature_sign, 5e-3),
    BACKDRIVE_TRAP(speed_slope, 2.7e-2),
    BACKDRIVE_TRAP(speed_curvature, 5.4e-3),
    BACKDRIVE_TRAP(ball_drive_jacobian, 1.9e-3),
    BACKDRIVE_TRAP(ball_target_jacobian, 3.5e-3),
    BACKDRIVE_TRAP(ball_saturation, 6.5e-3),
    BACKDRIVE_TRAP(ball_spring_turn, 7e-3),
    BACKDRIVE_TRAP(ball_limit_curvature, 3.9e-2),
    BACKDRIVE_TRAP(ball_limit_direction, 2.5e-4),
    BACKDRIVE_TRAP(ball_speed_direction, 2.9e-3),
    BACKDRIVE_TRAP(lift_turn, 6.1e-3),
    BACKDRIVE_TRAP(lift_gravity, 4.2e-3),
    BACKDRIVE_TRAP(drift_transport, 1.5e-2),
    BACKDRIVE_TRAP(gravity_sign, 1e-2),
    BACKDRIVE_TRAP(free_bias, 1e-4),
    BACKDRIVE_TRAP(free_turn, 1e-4),
    BACKDRIVE_TRAP(free_turn_velocity, 1e-7),
    BACKDRIVE_TRAP(free_turn_inertia, 1e-6),
    BACKDRIVE_TRAP(free_turn_mass, 1e-8),
    BACKDRIVE_TRAP(free_turn_lever, 1e-8),
    BACKDRIVE_TRAP(free_turn_carrier, 1e-8),
    BACKDRIVE_TRAP(free_turn_hinge, 1e-8),
    BACKDRIVE_TRAP(rigid_turn, 1e-6),
    BACKDRIVE_TRAP(rigid_angle, 1e-6),
    BACKDRIVE_TRAP(rigid_late, 1e-6),
    BACKDRIVE_TRAP(rigid_lever, 1e-6),
    BACKDRIVE_TRAP(rigid_placement, 1e-6),
    BACKDRIVE_TRAP(rigid_moments, 1e-6),
    BACKDRIVE_TRAP(rigid_mass, 1e-6),
    BACKDRIVE_TRAP(turn_jacobian, 1e-5),
    BACKDRIVE_TRAP(turn_transport, 1e-4),
    BACKDRIVE_TRAP(motion_carried, 3e-3),
    BACKDRIVE_TRAP(motion_origin, 4e-3),
    BACKDRIVE_TRAP(motion_lever, 6e-3),
    BACKDRIVE_TRAP(motion_free_root, 1e-4),
    BACKDRIVE_TRAP(held_bound, 1e-6),
    BACKDRIVE_TRAP(frozen_change, 1e-3),
    BACKDRIVE_TRAP(held_wrench, 1e-3),
    BACKDRIVE_TRAP(smooth_of_contacts, 1.1e-1),
    BACKDRIVE_TRAP(support_start, 1e-6),
    BACKDRIVE_TRAP(support_gravity, 1e-6),
    BACKDRIVE_TRAP(support_depth, 1e-6),
    BACKDRIVE_TRAP(support_normal, 1e-6),
    BACKDRIVE_TRAP(support_of_normal, 1e-6),
    BACKDRIVE_TRAP(support_weight, 1e-6),
    BACKDRIVE_TRAP(support_mass, 1e-6),
    BACKDRIVE_TRAP(support_rise, 1e-6),
    BACKDRIVE_TRAP(support_axes, 1e-6),
    BACKDRIVE_TRAP(contact_start, 5e-3),
    BACKDRIVE_TRAP(contact_normal, 6e-4),
    BACKDRIVE_TRAP(turn_loss, 1e-6),
    BACKDRIVE_TRAP(turn_loss_size, 1e-6),
    BACKDRIVE_TRAP(half_turn_path, 1e-6),
    BACKDRIVE_TRAP(half_turn_pose, 1e-6),
    BACKDRIVE_TRAP(kick_inertia, 1e-2),
    BACKDRIVE_TRAP(kick_increment, 3.1e-2),
    BACKDRIVE_TRAP(kicked_inertia, 3e-5),
    BACKDRIVE_TRAP(kicked_inertia_attitude, 2.6e-6),
    BACKDRIVE_TRAP(half_kick, 4.9e-3),
    BACKDRIVE_TRAP(turn_force, 6e-3),
    BACKDRIVE_TRAP(turn_axis, 1e-6),
    BACKDRIVE_TRAP(turn_slip, 1e-6),
    BACKDRIVE_TRAP(turn_start, 1e-6),
    BACKDRIVE_TRAP(coupling_drift, 1e-6),
    BACKDRIVE_TRAP(coupling_rate, 1e-6),
    BACKDRIVE_TRAP(coupling_spring_next, 1e-6),
    BACKDRIVE_TRAP(coupling_spring_increment, 1e-6),
    BACKDRIVE_TRAP(coupling_spring_rest, 1e-6),
    BACKDRIVE_TRAP(coupling_held_sign, 1e-6),
    BACKDRIVE_TRAP(coupling_load, 1e-6),
    BACKDRIVE_TRAP(coupling_adjoint_load, 1e-6),
    BACKDRIVE_TRAP(coupling_kick, 1e-6),
    BACKDRIVE_TRAP(coupling_position_of_ratio, 1e-6),
    BACKDRIVE_TRAP(coupling_rate_of_joint, 1e-6),
    BACKDRIVE_TRAP(coupling_offset, 1e-6),
    BACKDRIVE_TRAP(coupling_solve, 1e-6),
    BACKDRIVE_TRAP(whip_share, 1e-6),
    BACKDRIVE_TRAP(whip_bias, 1e-6),
    BACKDRIVE_TRAP(whip_carry, 1e-6),
    BACKDRIVE_TRAP(whip_way_back, 1e-6),
    BACKDRIVE_TRAP(whip_way_on, 1e-6),
    BACKDRIVE_TRAP(whip_time_back, 1e-6),
    BACKDRIVE_TRAP(whip_time_now, 1e-6),
    BACKDRIVE_TRAP(whip_time_before, 1e-6),
    BACKDRIVE_TRAP(whip_handed_over, 1e-6),
    BACKDRIVE_TRAP(whip_slip, 1e-6),
    BACKDRIVE_TRAP(whip_slip_share, 1e-6),
    BACKDRIVE_TRAP(whip_before, 1e-6),
    BACKDRIVE_TRAP(whip_attitude, 1e-6),
    BACKDRIVE_TRAP(whip_second_moment, 1e-6),
    BACKDRIVE_TRAP(whip_lever, 1e-6),
    BACKDRIVE_TRAP(whip_spin, 1e-6),
    BACKDRIVE_TRAP(whip_carrier, 1e-6),
    BACKDRIVE_TRAP(whip_placement, 1e-6),
    BACKDRIVE_TRAP(whip_turned_back, 1e-6),
    BACKDRIVE_TRAP(whip_kicked, 1e-6),
    BACKDRIVE_TRAP(whip_kicked_twice, 1e-6),
    BACKDRIVE_TRAP(flight_share, 1e-6),
    BACKDRIVE_TRAP(flight_turn, 1e-6),
    BACKDRIVE_TRAP(flight_end, 1e-6),
    BACKDRIVE_TRAP(flight_start, 1e-6),
    BACKDRIVE_TRAP(flight_velocity, 1e-6),
    BACKDRIVE_TRAP(flight_mass, 1e-6),
    BACKDRIVE_TRAP(flight_com, 1e-6),
    BACKDRIVE_TRAP(flight_placement, 1e-6),
    BACKDRIVE_TRAP(middle_first_solve, 1e-6),
    BACKDRIVE_TRAP(middle_rates, 1e-6),
    BACKDRIVE_TRAP(middle_change, 1e-6),
    BACKDRIVE_TRAP(middle_back, 1e-6),
    BACKDRIVE_TRAP(middle_late, 1e-6),
    BACKDRIVE_TRAP(middle_velocity, 1e-6),
    BACKDRIVE_TRAP(middle_share, 1e-6),
    BACKDRIVE_TRAP(middle_share_of_spins, 1e-8),
    BACKDRIVE_TRAP(middle_whip_share, 1e-6),
    BACKDRIVE_TRAP(middle_resisted, 1e-6),
    BACKDRIVE_TRAP(middle_both, 1e-6),
    BACKDRIVE_TRAP(middle_spin, 1e-6),
    BACKDRIVE_TRAP(middle_coupling, 1e-6),
    BACKDRIVE_TRAP(middle_held, 1e-6),
    BACKDRIVE_TRAP(middle_ratio, 1e-6),
    BACKDRIVE_TRAP(half_way_rate, 1e-6),
    BACKDRIVE_TRAP(half_way_turn, 1e-6),
    BACKDRIVE_TRAP(half_way_share, 1e-6),
    BACKDRIVE_TRAP(half_way_smooth, 1e-6),
    BACKDRIVE_TRAP(half_way_back, 1e-6),
    BACKDRIVE_TRAP(half_way_gap, 1e-6),
    BACKDRIVE_TRAP(half_way_gap_share, 1e-6),
    BACKDRIVE_TRAP(half_way_gap_place, 1e-6),
};
#undef BACKDRIVE_TRAP

/// Where faults show: with hinges, slides and fixed joints, with all other types, with those and contact, where bodies
/// in touch turn fast or contacts bear what begins, with couplings and contact, with couplings and trees whose turns
/// begin to count or do, where trees whip, where contact kicks such trees, or where several bodies fly as one.
enum class Stage { plain, rotations, contact, turning, borne, couplings, beginning, fast, whips, kicks, rigid };

/// Speed limits, and of balls those of the angle, are moved to where their ramps begin in the first world: by chance
/// few motions are on them.
void begin_on_ramps(GradientCase& c) {
  for (const Link& link : c.model.topology.links) {
    LimitParameters& limit = c.model.joints.limit;
    const auto square = [&](const Buffer<double>& of, int first, int count) {
      double sum = 0;
      for (int k = 0; k < count; ++k) sum += std::pow(of(first + k, 0), 2);
      return sum;
    };
    const int dofs = joint_size(link.type).nv;
    if (link.acts.speed && link.first) {
      limit.velocity.set(link.joint, 0, std::sqrt(square(c.batch.state.qd, link.v, dofs)) - 0.5 * kLimitRamp);
    }
    if (link.type != JointType::ball || !link.acts.limit) continue;
    const double sine = std::sqrt(square(c.batch.state.q, link.q, 3));
    const double angle = 2 * std::atan2(sine, std::abs(c.batch.state.q(link.q + 3, 0)));
    limit.upper.set(link.joint, 0, angle - 0.5 * kLimitRamp);
  }
  validate(c.model);
}

/// Forces and shapes; two worlds; states and poses as outputs.
GradientCase mutation_case(Stage stage) {
  if (stage == Stage::turning) return test::turning_case();
  if (stage == Stage::rigid) return test::rigid_case();
  if (stage == Stage::borne) return test::borne_case();
  test::TreeOptions options;
  options.links = 9;
  options.forces = options.shapes = true;
  options.rotations = stage != Stage::plain;
  options.contact = stage == Stage::contact || stage == Stage::couplings || stage == Stage::kicks;
  const bool turns = stage == Stage::beginning || stage == Stage::fast;
  options.couplings = stage == Stage::couplings || turns ? 3 : 0;
  Model model = test::random_tree(5, options);
  test::require_all(model);
  test::BatchScale scale;
  if (stage == Stage::whips || stage == Stage::kicks) scale.qd = stage == Stage::whips ? 12 : 8;
  if (turns) scale.qd = stage == Stage::fast ? 3 : 0.03;
  const int steps = stage == Stage::beginning ? 1 : stage == Stage::whips || turns ? 4 : 12;
  GradientCase c = test::make_case(std::move(model), steps, 0.01, 2, 3, scale);
  if (stage != Stage::beginning) begin_on_ramps(c);
  return c;
}

std::vector<BlockError> errors_with(Fault fault, Stage stage) {
  static std::map<Stage, GradientCase> cases;  // those that were asked for: making one takes as long as a check
  if (!cases.contains(stage)) cases.emplace(stage, mutation_case(stage));
  const GradientCase& c = cases.at(stage);
  const auto gradient = [&] {
    const Planted planted(fault);
    return test::gradient_by_kernels(c, test::mutant_kernels());
  };
  return test::compare_blocks(c, gradient(), 11);
}

/// The bounds of friction against turns count only where they are reached, moments only of bodies that fly alone.
Stage stage_of(Fault fault) {
  if (fault == Fault::turn_force || fault == Fault::kicked_inertia || fault == Fault::kicked_inertia_attitude) {
    return Stage::turning;
  }
  const std::string_view table = test::kFaults[static_cast<int>(fault) - 1].table;
  if (table == "couplings") return Stage::couplings;
  if (table == "rigid") return Stage::rigid;
  if (table == "support" || fault == Fault::support_rise || fault == Fault::support_axes) return Stage::borne;
  for (const Fault kicked :
       {Fault::whip_kicked, Fault::whip_kicked_twice, Fault::whip_way_on, Fault::whip_time_back, Fault::whip_time_now,
        Fault::whip_time_before, Fault::whip_handed_over, Fault::whip_slip, Fault::whip_slip_share, Fault::flight_share,
        Fault::flight_turn, Fault::flight_end, Fault::flight_start, Fault::flight_velocity, Fault::flight_mass,
        Fault::flight_com, Fault::flight_placement, Fault::half_way_share, Fault::half_way_gap_share}) {
    if (fault == kicked) return Stage::kicks;
  }
  for (const std::string_view with_contact : {"contact", "contact_on_trees", "turn_friction", "half_way"}) {
    if (table == with_contact) return Stage::contact;
  }
  if (table == "whip" || fault == Fault::middle_whip_share || fault == Fault::middle_share_of_spins) {
    return Stage::whips;
  }
  if (fault == Fault::middle_share) return Stage::beginning;
  if (table == "middle") return Stage::fast;
  return table == "rotations" || table == "balls" ? Stage::rotations : Stage::plain;
}

TEST(MutantKernels, SoundKernelsPass) {
  for (const Stage stage :
       {Stage::plain, Stage::rotations, Stage::contact, Stage::turning, Stage::borne, Stage::couplings,
        Stage::beginning, Stage::fast, Stage::whips, Stage::kicks, Stage::rigid}) {
    // Stiffer than random trees that are slow.
    const double tolerance = stage == Stage::turning || stage == Stage::kicks ? 1e-11 : 1e-12;
    for (const BlockError& e : errors_with(Fault::none, stage)) EXPECT_LT(e.error, tolerance) << e.block;
  }
}

TEST(MutantKernels, EveryFaultIsPlanted) {
  for (const char* table : {"joint_forces", "trees", "rotations", "balls", "contact", "contact_on_trees", "support",
                            "turn_friction", "couplings", "middle", "whip", "half_way", "rigid"}) {
    const std::vector<test::FaultEntry> faults = test::faults_of(table);
    EXPECT_FALSE(faults.empty()) << table;
    for (const test::FaultEntry& entry : faults) {
      bool listed = false;
      for (const Trap& trap : kTraps) listed = listed || trap.fault == entry.fault;
      EXPECT_TRUE(listed) << entry.name << " is in tests/faults and not in this test";
    }
  }
}

class Mutants : public testing::TestWithParam<Trap> {};

TEST_P(Mutants, AreCaught) {
  const BlockError e = worst(errors_with(GetParam().fault, stage_of(GetParam().fault)));
  EXPECT_GT(e.error, GetParam().at_least) << "largest in block " << e.block;
  RecordProperty("block", e.block);
  RecordProperty("error", std::to_string(e.error));
}

INSTANTIATE_TEST_SUITE_P(Traps, Mutants, testing::ValuesIn(kTraps),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace backdrive
