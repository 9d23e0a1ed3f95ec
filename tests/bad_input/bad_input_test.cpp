// Malformed scenes: each is refused with file, line, column, the offending value and what was
// expected.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include "scenes/scene.h"
#include "tests/support/places.h"

namespace backdrive {
namespace {

/// Where the mistake is, and words that the message must have.
struct Case {
  const char* name;  ///< of the file, without .yaml
  const char* where;
  const char* value;
  const char* expected;
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << one.name;
}

// clang-format off
const Case kCases[] = {
    {"alias_bomb", "alias_bomb.yaml:6:20", "more than 500000 values", "expected a smaller document (aliases count as often as they are used)"},
    {"attachment_in_other_unit", "attachment_in_other_unit.yaml:6:70", "value '1 N/m'", "expected a stiffness (N*m/rad) ≥ 0"},
    {"attachment_without_semi_implicit", "attachment_without_semi_implicit.yaml:8:7", "value", "(joints/base/attachment/stiffness: only the integrator semi_implicit attaches bodies by springs)"},
    {"body_named_world", "body_named_world.yaml:3:5", "name 'world'", "expected a name of 1 to 200 bytes without '/', '*' and line breaks, ot"},
    {"bounds_swapped", "bounds_swapped.yaml:7:40", "value '[1, -1]'", "expected a lower bound that is not above the upper one"},
    {"child_frame_in_the_tree", "child_frame_in_the_tree.yaml:6:51", "value '{position: [1, 0, 0]}'", "expected no such key: only a joint that closes a loop (loop: true) has a frame on its child"},
    {"collision_word", "collision_word.yaml:3:113", "value 'nothing'", "expected none"},
    {"contact_at_end", "contact_at_end.yaml:8:16", "value '{contact: [rod, floor]}'", "expected a map with one of the keys joint, body"},
    {"control_of_fixed_joint", "control_of_fixed_joint.yaml:9:3", "value 'weld'", "expected a joint that moves (this one is fixed)"},
    {"control_of_held_coupling", "control_of_held_coupling.yaml:11:9", "value '1'", "expected a coupling that is not held (the motion of this one is given), or a joint"},
    {"coupling_held_twice", "coupling_held_twice.yaml:10:13", "value '{left: -2, right: 2}'", "no more than what the couplings before it hold already, expected a sum of its own to hold"},
    {"coupling_held_with_drive", "coupling_held_with_drive.yaml:9:54", "value '{stiffness: 5}'", "a drive of a coupling that is held, expected `hold: false`"},
    {"coupling_held_with_spring", "coupling_held_with_spring.yaml:9:74", "value '5'", "of a coupling that is held, on which nothing else acts; expected none, or `hold: false`"},
    {"coupling_limits_swapped", "coupling_limits_swapped.yaml:9:42", "value '{lower: 1, upper: -1}'", "expected lower < upper"},
    {"coupling_named_as_joint", "coupling_named_as_joint.yaml:9:5", "name 'left' of a joint", "expected another: controls of both are named by it"},
    {"coupling_of_ball", "coupling_of_ball.yaml:9:37", "value '-1'", "a ball joint, expected a revolute or prismatic one"},
    {"coupling_of_nothing", "coupling_of_nothing.yaml:9:12", "value '{}'", "no joint, expected at least one"},
    {"coupling_of_unknown_joint", "coupling_of_unknown_joint.yaml:9:30", "joint 'rigt'", "expected the name of a joint; did you mean 'right'?"},
    {"coupling_offset_in_metres", "coupling_offset_in_metres.yaml:9:50", "value '1 cm'", "expected an angle (rad, mrad, deg, turn)"},
    {"coupling_without_ratios", "coupling_without_ratios.yaml:9:11", "value '{hold: true}'", "expected the key 'ratios' (a map with joint names as keys)"},
    {"creep_as_length", "creep_as_length.yaml:3:120", "value '1 mm'", "expected a velocity (m/s, cm/s, mm/s) > 0"},
    {"cut_without_window", "cut_without_window.yaml:9:19", "value 'true'", "expected false where there is no `window`"},
    {"cycle", "cycle.yaml:6:28", "alias to what it stands in", "expected no cycle (what is aliased begins at line 6)"},
    {"deep_alias", "deep_alias.yaml:2:44", "value nested more than 64 deep", "expected at most 64 levels"},
    {"depth_bomb", "depth_bomb.yaml:1:72", "value nested more than 64 deep", "expected at most 64 levels"},
    {"depth_bomb_block", "depth_bomb_block.yaml:65:65", "value nested more than 64 deep", "expected at most 64 levels"},
    {"digit_separator", "digit_separator.yaml:3:17", "value '1_000'", "expected a mass (kg, g, t) ≥ 0"},
    {"disconnected_gradient", "disconnected_gradient.yaml:8:38", "value 'joints/port/limit/stiffness'", "expected a parameter that the loss depends on (the joint has no limits)"},
    {"disconnected_variable", "disconnected_variable.yaml:9:15", "value", "expected a variable that the loss depends on (control/starboard: the loss only reads what hangs from the world by other joints)"},
    {"distance_below_zero", "distance_below_zero.yaml:8:48", "value '-1'", "expected a length (m, cm, mm, km) ≥ 0"},
    {"distance_from_itself", "distance_from_itself.yaml:8:26", "value '[rod, rod]'", "expected two different bodies, or one and world"},
    {"distance_of_one_point", "distance_of_one_point.yaml:8:48", "value '[[0, 0, 0]]'", "expected two points, one of each body"},
    {"distance_of_three", "distance_of_three.yaml:8:26", "value '[rod, world, rod]'", "expected two names of bodies, or one and world"},
    {"distance_unknown", "distance_unknown.yaml:8:32", "value 'wrld'", "expected the name of a body"},
    {"duplicate_body", "duplicate_body.yaml:4:5", "duplicate key 'rod'", "expected each key once (first at line 3)"},
    {"duplicate_key", "duplicate_key.yaml:3:20", "duplicate key 'mass'", "expected each key once (first at line 3)"},
    {"duplicate_section", "duplicate_section.yaml:7:1", "duplicate key 'simulation'", "expected each key once (first at line 1)"},
    {"duration_and_steps", "duration_and_steps.yaml:1:27", "key 'steps' beside 'duration' (line 1)", "expected only one of duration, steps"},
    {"effort_at_the_end", "effort_at_the_end.yaml:8:31", "unknown key 'effort'", "expected one of joint, position, velocity, limit_margin"},
    {"empty", "empty.yaml:1:1", "value ''", "expected a scene, found nothing (empty text)"},
    {"endless_run", "endless_run.yaml:1:41", "value '100000'", "expected a run of 1 to 10000000 steps of 1 us (duration / time_step)"},
    {"exclude_itself", "exclude_itself.yaml:6:24", "value '[rod, rod]'", "expected two bodies (shapes of one never touch)"},
    {"exclude_three", "exclude_three.yaml:6:24", "value '[rod, world, rod]'", "expected a list of two names of bodies (or world)"},
    {"exclude_unknown", "exclude_unknown.yaml:6:30", "value 'wrld'", "; did you mean 'world'?"},
    {"file_is_directory", "file_is_directory.yaml:7:26", "value 'folder'", "expected a regular file"},
    {"fraction_of_knots", "fraction_of_knots.yaml:7:39", "value '2.5'", "expected a whole number ≥ 1 and ≤ 10000000"},
    {"gradient_of_no_ratio", "gradient_of_no_ratio.yaml:10:17", "value 'couplings/grip/ratios/rigt'", "did you mean 'right'?"},
    {"height_field_cut", "field_cut.pgm:6:1", "the file ends", "expected a grey value"},
    {"height_field_on_body", "height_field_on_body.yaml:3:93", "value 'height_field'", "expected a height field on the world or another type"},
    {"height_field_without_scale", "height_field_without_scale.yaml:7:35", "", "expected the key 'scale' (a list of 3 numbers in m)"},
    {"hexadecimal", "hexadecimal.yaml:3:17", "value '0x10'", "expected a decimal number"},
    {"impossible_inertia", "impossible_inertia.yaml:3:48", "value '[0.1, 0.1, 0.5]'", "expected none larger than the sum of the other two"},
    {"include_no_points", "include_no_points.yaml:9:9", "value '[floor, wall]'", "expected types that can touch"},
    {"include_unknown", "include_unknown.yaml:6:30", "value 'flor'", "; did you mean 'floor'?"},
    {"infinite", "infinite.yaml:5:73", "value '.inf'", "expected a finite number"},
    {"initial_out_of_bounds", "initial_out_of_bounds.yaml:7:58", "value '2'", "expected values within the bounds"},
    {"initial_state_of_loop", "initial_state_of_loop.yaml:9:10", "value", "expected a joint of the tree (this one closes a loop and begins where the others put its bodies)"},
    {"limit_margin_without_limits", "limit_margin_without_limits.yaml:8:44", "value '0.1'", "expected no such key for a joint without limits"},
    {"limits_swapped", "limits_swapped.yaml:5:58", "value '{lower: 1, upper: -1}'", "expected lower < upper"},
    {"list_as_key", "list_as_key.yaml:6:3", "list or map as a key", "expected a plain name"},
    {"list_for_number", "list_for_number.yaml:3:17", "value '[1]'", "expected a mass (kg, g, t) ≥ 0"},
    {"loop", "loop.yaml:7:34", "value 'b'", "expected a tree that hangs on the world"},
    {"loop_of_free_joint", "loop_of_free_joint.yaml:7:19", "value 'free'", "expected another type"},
    {"loop_to_itself", "loop_to_itself.yaml:7:45", "value 'a'", "expected another body"},
    {"loop_with_featherstone", "loop_with_featherstone.yaml:8:31", "value 'true'", "expected integrator semi_implicit"},
    {"loose_body", "loose_body.yaml:4:5", "value '{mass: 1}'", "expected exactly one (type fixed welds it to its parent)"},
    {"loss_without_target", "loss_without_target.yaml:8:15", "value '{joint: hinge, weight: 1}'", "expected one of the keys position, velocity, limit_margin, orientation, angular_velocity, effort, torque, force, power"},
    {"map_for_list", "map_for_list.yaml:6:16", "value '{a: 1}'", "expected a list, one path an item"},
    {"massless", "massless.yaml:5:5", "value '{type: revolute, child: rod, axis: [0, 1, 0]}'", "expected body 'rod' or those it carries to have inertia about the join"},
    {"measure_word", "measure_word.yaml:8:57", "value 'linear'", "expected one of squared, absolute"},
    {"merge_key", "merge_key.yaml:3:11", "key '<<'", "expected the keys themselves (merge keys are not supported; aliases ar"},
    {"mesh_flat", "mesh_flat.obj", "", "expected"},
    {"mesh_missing", "mesh_missing.yaml:3:105", "value 'no_such_mesh.obj'", "expected an existing file in "},
    {"mesh_of_box", "mesh_of_box.yaml:3:104", "value 'flat.obj'", "expected no file for a box: meshes and height fields have one"},
    {"mesh_of_other_format", "table.csv", "value '.csv' as the extension", "expected a mesh file, .obj, .stl or .dae"},
    {"mesh_scale_of_one", "mesh_scale_of_one.yaml:3:134", "value '0.001'", "expected 3 factors for a mesh"},
    {"mesh_scale_with_unit", "mesh_scale_with_unit.yaml:3:131", "value '2 mm'", "expected a number"},
    {"mesh_scale_zero", "mesh_scale_zero.yaml:3:138", "0, expected a finite factor > 0", "expected a finite factor > 0 (a mesh has 3)"},
    {"mesh_upwards", "mesh_upwards.yaml:3:105", "value '../fuzz/meshes/cube.obj'", "expected a file inside the scene's folder: a relative path without '.."},
    {"mesh_with_text", "mesh_with_text.obj:2:5", "value 'zero'", "expected"},
    {"mesh_without_file", "mesh_without_file.yaml:3:86", "value '{type: mesh}'", "expected the key 'file'"},
    {"missing_file", "missing_file.yaml:7:26", "value 'no_such_file.csv'", "expected an existing file in "},
    {"missing_key", "missing_key.yaml:5:12", "value '{type: revolute, axis: [0, 1, 0]}'", "expected the key 'child' (a name)"},
    {"missing_model", "missing_model.yaml:1:1", "value '{simulation: {duration: 1}}'", "expected the key 'model' (a map with keys of gravity, bodies, joints, "},
    {"more_knots_than_steps", "more_knots_than_steps.yaml:8:39", "value '11'", "expected at most as many knots as steps, which are 10"},
    {"name_with_slash", "name_with_slash.yaml:3:5", "name 'arm/rod'", "expected a name of 1 to 200 bytes without '/', '*' and line breaks, ot"},
    {"negative_creep", "negative_creep.yaml:3:120", "value '-1e-6'", "expected a velocity (m/s, cm/s, mm/s) > 0"},
    {"negative_inertia", "negative_inertia.yaml:3:48", "value '[-0.1, 0.1, 0.1]'", "expected none below zero"},
    {"negative_mass", "negative_mass.yaml:3:17", "value '-1'", "expected a mass (kg, g, t) ≥ 0"},
    {"negative_rolling_friction", "negative_rolling_friction.yaml:3:131", "value '-1 mm'", "expected a length (m, cm, mm, km) ≥ 0"},
    {"no_value", "no_value.yaml:3:11", "no value", "expected a mass (kg, g, t) ≥ 0"},
    {"not_a_map", "not_a_map.yaml:1:1", "value '[a, b]'", "expected a map with keys of name, description, simulation, model, init"},
    {"not_a_number", "not_a_number.yaml:3:17", "value '.nan'", "expected a finite number"},
    {"not_utf8", "not_utf8.yaml:1:10", "value '0xE9'", "expected text in UTF-8"},
    {"nothing_scored", "nothing_scored.yaml:8:38", "value '[none, none, none]'", "expected a number that is not none"},
    {"nul_byte", "nul_byte.yaml:1:8", "value '0x00'", "expected text without control characters"},
    {"number_for_map", "number_for_map.yaml:5:12", "value '3'", "expected a map with keys of type, parent, child, frame, loop, child_frame, axis, spins, armature"},
    {"octal", "octal.yaml:3:17", "value '010'", "expected a decimal number without leading zeros (YAML reads them as oc"},
    {"only_comment", "only_comment.yaml:1:1", "value ''", "expected a scene, found nothing (empty text)"},
    {"over_at_the_end", "over_at_the_end.yaml:8:49", "unknown key 'over'", "expected one of"},
    {"over_what", "over_what.yaml:8:54", "value 'lest'", "did you mean 'least'?"},
    {"path_absolute", "path_absolute.yaml:7:26", "value '/etc/passwd'", "expected a file inside the scene's folder: a relative path without '.."},
    {"path_through_link", "path_through_link.yaml:7:26", "value 'link_out.csv'", "expected a file inside the scene's folder (the path leaves it through "},
    {"path_upwards", "path_upwards.yaml:7:26", "value '../../LICENSE'", "expected a file inside the scene's folder: a relative path without '.."},
    {"plane_on_body", "plane_on_body.yaml:3:47", "value 'plane'", "expected a plane on the world or another type"},
    {"point_mass_with_semi_implicit", "point_mass_with_semi_implicit.yaml:4:5", "value", "expected both (mass, inertia, a shape with a density)"},
    {"power_in_newtons", "power_in_newtons.yaml:8:37", "value '3 N'", "expected a power (W, mW, kW)"},
    {"quoted_number", "quoted_number.yaml:3:17", "value '1'", "expected a number without quotes"},
    {"range_on_a_circle", "range_on_a_circle.yaml:8:67", "value 'true'", "expected false beside a range"},
    {"range_upside_down", "range_upside_down.yaml:8:63", "value '0.5'", "expected numbers that are not below those of at_least"},
    {"range_without_end", "range_without_end.yaml:8:38", "value '{at_least: [none, none, none]}'", "expected a number that is not none"},
    {"record_at_end", "record_at_end.yaml:8:41", "value '{file: record.csv}'", "expected an angle (rad, mrad, deg, turn) or a length"},
    {"record_backwards", "record_backwards.csv:4:1", "value '0.1'", "expected a time after that of the row before"},
    {"record_cut", "record_cut.csv:3:1", "value '0.1'", "expected 2 cells, as in the header"},
    {"record_elsewhere", "record_elsewhere.yaml:8:40", "value '{file: record.csv}'", "expected a record with times within what is scored, from step 121 to 240"},
    {"record_empty", "record_empty.csv:2:1", "value ''", "expected at least one row"},
    {"record_flag", "record_flag.yaml:6:20", "value 'yes'", "expected true or false"},
    {"record_key", "record_key.yaml:6:10", "unknown key 'energi'", "did you mean 'energy'?"},
    {"record_missing", "record_missing.yaml:8:47", "value 'no_such_record.csv'", "expected an existing file in "},
    {"record_of_no_turn", "record.csv:3:3", "value '3'", "expected a unit quaternion (x, y, z, w)"},
    {"record_through_link", "record_through_link.yaml:8:47", "value 'link_out.csv'", "expected a file inside the scene's folder (the path leaves it through "},
    {"record_times_equal", "record_times_equal.yaml:8:48", "value '[0.1, 0.1]'", "expected times that increase"},
    {"record_uneven", "record_uneven.yaml:8:66", "value '[1]'", "expected a row for each of the 2 times"},
    {"record_unknown_body", "record_unknown_body.yaml:6:19", "value 'rood'", "did you mean 'rod'?"},
    {"record_unknown_joint", "record_unknown_joint.yaml:6:20", "value 'hnge'", "did you mean 'hinge'?"},
    {"record_upwards", "record_upwards.yaml:8:47", "value '../../LICENSE'", "expected a file inside the scene's folder: a relative path without '.."},
    {"record_with_gap", "record_with_gap.csv:3:2", "value ''", "expected an angle (rad, mrad, deg, turn)"},
    {"record_with_text", "record_with_text.csv:3:2", "value 'up'", "expected an angle (rad, mrad, deg, turn)"},
    {"record_without_column", "record.csv:1:1", "value 'time,hinge/position,", "expected a column 'hinge/velocity'"},
    {"record_without_time", "record_without_time.csv:1:1", "value 'hinge/position'", "expected a column 'time'"},
    {"release_as_a_number", "release_as_a_number.yaml:7:73", "value '0.4 s'", "expected a map with keys of at"},
    {"release_at_a_place", "release_at_a_place.yaml:7:78", "value '0.4 m'", "expected a time (s, ms, us, min) > 0"},
    {"release_at_the_start", "release_at_the_start.yaml:7:78", "value '0'", "expected a time (s, ms, us, min) > 0"},
    {"release_of_a_hinge", "release_of_a_hinge.yaml:7:67", "value '{at: 0.4 s}'", "expected a fixed joint that closes a loop (loop: true), beside the joint, of type free for one, by "},
    {"release_of_the_tree", "release_of_the_tree.yaml:5:40", "value '{at: 1}'", "expected a fixed joint that closes a loop (loop: true), beside the joint, of type free for one, by "},
    {"release_with_featherstone", "release_with_featherstone.yaml:6:31", "value 'true'", "expected integrator semi_implicit"},
    {"repeat_backwards", "repeat_backwards.yaml:3:27", "value '1..0'", "expected a range of whole numbers like 0..31, from the least to the greatest, or a list of values"},
    {"repeat_bomb", "repeat_bomb.yaml:3:23", "with its copies more than 500000 values", "expected fewer copies, or smaller ones"},
    {"repeat_half_a_name", "repeat_half_a_name.yaml:3:5", "name 'rod$(i / 2)'", "expected whole numbers in a name"},
    {"repeat_missing", "repeat_missing.yaml:3:5", "name 'rod$(i)'", "expected the key `repeat` in what has such a name"},
    {"repeat_named_pi", "repeat_named_pi.yaml:3:24", "name 'pi'", "expected letters, digits and '_', as in i, other than pi, functions and names that it stands within"},
    {"repeat_no_number", "repeat_no_number.yaml:3:40", "value '$(1 / i)'", "expected an expression whose value is finite"},
    {"repeat_of_nothing", "repeat_of_nothing.yaml:3:23", "value '{}'", "expected a map like {i: 0..31}, or a list of such maps with one value each"},
    {"repeat_of_simulation", "repeat_of_simulation.yaml:1:14", "unknown key 'repeat'", "expected one of integrator, time_step, duration, steps"},
    {"repeat_same_name", "repeat_same_name.yaml:3:5", "duplicate key 'rod'", "expected each key once (first of line 3); a name like 'rod_$(i)' tells copies apart"},
    {"repeat_unknown_name", "repeat_unknown_name.yaml:3:40", "value '$(k + 1)'", "expected one of the names that `repeat` gives (i) instead of 'k'"},
    {"repeat_without_bracket", "repeat_without_bracket.yaml:3:40", "value '$(i + 1'", "expected ')' behind '$('"},
    {"repeat_wrong_copy", "repeat_wrong_copy.yaml:3:40", "value '-1'", "expected a mass (kg, g, t) ≥ 0"},
    {"scale_of_other_shape", "scale_of_other_shape.yaml:3:59", "value '[1, 1]'", "expected 3 lengths for a box"},
    {"shape_twice", "shape_twice.yaml:3:66", "value '{name: a, geometry: {type: box}}'", "expected another name than 'a', which another shape has (key name)"},
    {"short_vector", "short_vector.yaml:3:25", "value '[0, -0.5]' with 2 entries", "expected a list of 3 numbers in m"},
    {"tab", "tab.yaml:2:1", "value '\\t'", "expected indentation by spaces, not by tabs"},
    {"table_uneven", "table_uneven.csv:3:1", "value '1'", "expected times that are evenly spaced"},
    {"table_with_text", "table_with_text.csv:3:2", "value 'strong'", "expected a torque (N*m, Nm, mNm)"},
    {"table_without_column", "table.csv:1:1", "value 'time,slider/effort'", "expected a column 'hinge/effort'"},
    {"tag", "tag.yaml:3:17", "value 'tag:yaml.org,2002:python/object'", "expected a value without a tag"},
    {"target_of_coupling_without_drive", "target_of_coupling_without_drive.yaml:11:27", "value '1'", "expected channel effort: the coupling 'grip' has no drive to give targets to"},
    {"target_without_drive", "target_without_drive.yaml:7:28", "value '1'", "expected channel effort: the joint 'hinge' has no drive to give target"},
    {"text_for_number", "text_for_number.yaml:3:17", "value 'heavy'", "expected a mass (kg, g, t) ≥ 0"},
    {"tie_in_other_unit", "tie_in_other_unit.yaml:11:46", "value 'bodies/hand/mass * bodies/hand/mass + 1 m'", "expected a mass (kg, g, t) as the constant"},
    {"tie_to_itself", "tie_to_itself.yaml:11:46", "value 'bodies/hand/mass * bodies/ball/mass'", "expected a variable that is not tied itself"},
    {"tie_to_nothing", "tie_to_nothing.yaml:11:46", "value '2 * bodies/hand/mas + 1 kg'", "expected the name of another variable; did you mean 'bodies/hand/mass'?"},
    {"tie_unfinished", "tie_unfinished.yaml:11:46", "value 'bodies/hand/mass * '", "expected the name of another variable; did you mean 'bodies/hand/mass'?"},
    {"tie_without_a_name", "tie_without_a_name.yaml:11:46", "value '2 kg'", "expected a variable's name, with or without a factor and a constant (2 * NAME + 1 cm), or a sum of "},
    {"time_at_end", "time_at_end.yaml:8:44", "unknown key 'at'", "expected one of joint, position, velocity"},
    {"too_large_number", "too_large_number.yaml:3:17", "value '1e999'", "expected a finite number (magnitude from 1e-307 to 1e308)"},
    {"torsional_friction_as_torque", "torsional_friction_as_torque.yaml:3:133", "value '1 N*m'", "expected a length (m, cm, mm, km) ≥ 0"},
    {"two_documents", "two_documents.yaml:6:1", "value '---'", "expected one document in a file, found a second one"},
    {"two_parents", "two_parents.yaml:6:32", "value 'rod'", "expected one joint per body, or `loop: true` of a joint that closes a loop"},
    {"unclosed", "unclosed.yaml:7:1", "value ''", "expected valid YAML (end of map flow not found)"},
    {"unit_in_list", "unit_in_list.yaml:3:32", "value '-50 deg'", "expected a length (m, cm, mm, km)"},
    {"unit_of_other_joint", "unit_of_other_joint.yaml:7:21", "value '20 cm'", "expected an angle (rad, mrad, deg, turn)"},
    {"unknown_alias", "unknown_alias.yaml:6:16", "value '*paths'", "expected valid YAML (the referenced anchor is not defined)"},
    {"unknown_body", "unknown_body.yaml:5:36", "value 'rods'", "; did you mean 'rod'?"},
    {"unknown_group", "unknown_group.yaml:3:138", "value 'leg'", "; did you mean 'legs'?"},
    {"unknown_joint", "unknown_joint.yaml:7:3", "value 'hing'", "; did you mean 'hinge'?"},
    {"unknown_joint_in_loss", "unknown_joint_in_loss.yaml:8:24", "value 'hinges'", "; did you mean 'hinge'?"},
    {"unknown_joint_type", "unknown_joint_type.yaml:5:19", "value 'revolut'", "; did you mean 'revolute'?"},
    {"unknown_key", "unknown_key.yaml:5:58", "unknown key 'dampng'", "; did you mean 'damping'?"},
    {"unknown_key_at_top", "unknown_key_at_top.yaml:1:1", "unknown key 'simulaton'", "; did you mean 'simulation'?"},
    {"unknown_key_in_control", "unknown_key_in_control.yaml:7:11", "unknown key 'moment'", "expected one of effort, torque, force, target_position, target_velocity"},
    {"unknown_key_in_variable", "unknown_key_in_variable.yaml:8:24", "unknown key 'knot'", "; did you mean 'knots'?"},
    {"unknown_method", "unknown_method.yaml:6:20", "value 'bfgs'", "; did you mean 'lbfgs'?"},
    {"unknown_parameter", "unknown_parameter.yaml:6:17", "value 'joints/hinge/dampin'", "; did you mean 'damping'?)"},
    {"unknown_parent", "unknown_parent.yaml:5:37", "value 'wold'", "; did you mean 'world'?"},
    {"unknown_part", "unknown_part.yaml:8:47", "value 'drives'", "did you mean 'drive'?"},
    {"unknown_unit", "unknown_unit.yaml:3:17", "value '1 kgs'", "; did you mean 'kg'?"},
    {"utf16", "utf16.yaml:1:1", "value '0xFF'", "expected text in UTF-8"},
    {"variable_twice", "variable_twice.yaml:9:7", "value '{parameter: bodies/rod/mass}'", "expected a variable that is not one already (bodies/rod/mass is)"},
    {"variable_without_kind", "variable_without_kind.yaml:7:15", "value '{knots: 3}'", "expected a map with one of the keys control, initial_state, parameter"},
    {"velocity_in_metres", "velocity_in_metres.yaml:8:39", "value '1 m'", "expected a velocity (m/s, cm/s, mm/s)"},
    {"waypoint_at_start", "waypoint_at_start.yaml:8:49", "value '0 s'", "expected a time (s, ms, us, min) > 0"},
    {"waypoint_before_a_step", "waypoint_before_a_step.yaml:8:49", "value '1 ms'", "expected a time that a step leads to: half a time step or more"},
    {"waypoint_beyond", "waypoint_beyond.yaml:8:49", "value '1.1 s'", "expected a time within the run, which is of 240 steps of 0.0041666"},
    {"waypoint_without_time", "waypoint_without_time.yaml:8:17", "value '{joint: hinge, position: 1}'", "expected the key 'at'"},
    {"window_beyond", "window_beyond.yaml:8:50", "value '2 s'", "expected a time within the run"},
    {"window_of_length", "window_of_length.yaml:8:49", "value '1 m'", "expected a time (s, ms, us, min) ≥ 0"},
    {"window_of_no_step", "window_of_no_step.yaml:8:49", "value '1 s'", "expected a time to end at that is a step or more after"},
    {"window_swapped", "window_swapped.yaml:8:63", "value '0.2 s'", "expected a time to end at that is a step or more after the one to begin at"},
    {"wrong_boolean", "wrong_boolean.yaml:7:42", "value 'yes'", "expected true or false"},
    {"wrong_unit", "wrong_unit.yaml:1:25", "value '5 mm'", "expected a time (s, ms, us, min) > 0"},
    {"zero_axis", "zero_axis.yaml:5:47", "value '[0, 0, 0]'", "expected a vector of any length but zero"},
    {"zero_quaternion", "zero_quaternion.yaml:5:62", "value '[0, 0, 0, 0]'", "expected a unit quaternion (x, y, z, w)"},
    {"zero_stiffness", "zero_stiffness.yaml:3:124", "value '0'", "expected a stiffness (N/m, N/mm) > 0"},
    {"zero_time_step", "zero_time_step.yaml:1:25", "value '0'", "expected a time (s, ms, us, min) > 0"},
    {"zero_width", "zero_width.yaml:3:120", "value '0 mm'", "expected a length (m, cm, mm, km) > 0"},
};
// clang-format on

std::filesystem::path folder() {
  return test::kRepository + "/tests/bad_input";
}

class BadInput : public testing::TestWithParam<Case> {};

TEST_P(BadInput, NamesPlaceValueAndExpectation) {
  const Case& one = GetParam();
  const std::string file = std::string(one.name) + ".yaml";
  try {
    load_scene(folder() / file);
    FAIL() << file << " was accepted";
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.kind(), ErrorKind::input) << message;
    EXPECT_EQ(error.exit_code(), 3);
    EXPECT_TRUE(message.starts_with((folder() / one.where).string() + ": ")) << message;
    EXPECT_NE(message.find(one.value), std::string::npos) << message;
    EXPECT_NE(message.find("expected "), std::string::npos) << message;
    EXPECT_NE(message.find(one.expected), std::string::npos) << message;
  }
}

INSTANTIATE_TEST_SUITE_P(Scenes, BadInput, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(BadInputFolder, HasNoFileThatNoCaseReads) {
  std::set<std::string> files, cases;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    if (entry.path().extension() == ".yaml") files.insert(entry.path().stem().string());
  }
  for (const Case& one : kCases) cases.insert(one.name);
  EXPECT_EQ(files, cases);
  EXPECT_GE(cases.size(), 40u);
}

TEST(BadInputFile, MissingFolderOrTooLarge) {
  const auto message = [](const std::filesystem::path& path) -> std::string {
    try {
      load_scene(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(message(folder() / "no_such_scene.yaml").find("expected an existing scene file"), std::string::npos);
  EXPECT_NE(message(folder()).find("found a directory"), std::string::npos);
  const std::string large((size_t{16} << 20) + 1, ' ');
  EXPECT_THROW(parse_scene(large, "large.yaml", "."), Error);
  // A device that never ends is cut off at the same size.
  EXPECT_NE(message("/dev/zero").find("16 MiB"), std::string::npos);
}

}  // namespace
}  // namespace backdrive
