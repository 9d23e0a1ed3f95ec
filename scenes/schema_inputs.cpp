// What a scene may say of the numbers of joints: where they begin, and what they are told to do.
#include "scenes/schema_make.h"

namespace backdrive::scene {
namespace {

/// A quantity of a joint by its components.
SchemaPtr components(Dimension dimension) {
  std::vector<Key> keys;
  for (const char* const axis : kComponents) keys.push_back(absent(axis, number(dimension), "0", "That component."));
  return titled(map(std::move(keys)), "initial_state/<joint>/<quantity>, by components",
                "Of a quantity of several numbers, those that are not zero: universal joints have `x` and `y`, planar "
                "ones `x`, `y` and `angle`, ball and free ones `x`, `y` and `z`.");
}

/// A number, numbers, or a map saying more; `dimension` is that of the channel. `whole`: may have components.
SchemaPtr signal(Dimension dimension, bool whole = true) {
  std::vector<Key> keys{
      absent("values", vector(dimension, {}), "", "Knots, spread evenly from the first to the last step."),
      absent("file", text(), "",
             "CSV file inside the scene's folder: a header, an optional first column `time` "
             "(evenly spaced), and the "
             "column `<joint>/<channel>` (of `effort` also `<joint>/command`, which goes before; of a component with "
             "its name behind), one knot a row."),
      optional("hold", boolean(), "false", "Between knots: `true`: the last knot's value; `false`: linear."),
  };
  for (const char* const axis : kComponents) {
    if (!whole) break;
    keys.push_back(absent(axis, signal(dimension, false), "0",
                          "Of a joint of several degrees of freedom, in place of the keys above: this component."));
  }
  auto details = titled(map(std::move(keys)), "controls/<joint>/<channel>", "A channel, or one of its components.");
  details->exclusive_keys = {{"values", "file"}};
  return choice({number(dimension), vector(dimension, {}), details});
}

}  // namespace

SchemaPtr control_schema() {
  const Dimension effort = Dimension::joint_effort;
  return choice(
      {number(effort), vector(effort, {}),
       titled(map({
                  absent("effort", signal(effort), "0",
                         "Force or torque at the joint; universal and planar: of each "
                         "degree of freedom."),
                  absent("torque", signal(effort), "0",
                         "Of a ball joint, in the child's axes; of a free joint about "
                         "the child's origin, in the joint's axes."),
                  absent("force", signal(effort), "0", "Of a free joint, in the joint's axes."),
                  absent("target_position", signal(Dimension::joint_position), "0",
                         "Target of the joint's drive; of a ball joint the components of a rotation vector "
                         "([orientations.md](orientations.md))."),
                  absent("target_velocity", signal(Dimension::joint_velocity), "0",
                         "Target of the joint's drive; of a ball joint in the child's axes."),
                  repeated(),
              }),
              "controls/<joint>",
              "What a joint is told to do over time. A channel is a number (the whole "
              "time), a list of knots, or a map "
              "of `values` or `file`, and `hold`. A number or a list in place of this "
              "map is its `effort`. Joints of several degrees of freedom have a channel for each: `{effort: {x: 2 N*m, "
              "y: [0, 1]}}`, with the components that their columns are named by: universal `x` and `y`, planar `x`, "
              "`y` and `angle`, ball and free `x`, `y` and `z`.")});
}

SchemaPtr initial_state_schema() {
  const Dimension position = Dimension::joint_position, velocity = Dimension::joint_velocity;
  return titled(
      map({
          absent("position", choice({number(position), vector(Dimension::varied, {2, 3}), components(position)}),
                 "zeros",
                 "Position of the joint: an angle or a distance; universal: two angles; planar: x, y and an "
                 "angle; free: x, y, z of the child's origin, in the joint's axes. Of several numbers a list, or a map "
                 "of `x`, `y`, `z`, `angle`."),
          absent("orientation", orientation_schema(), "[0, 0, 0, 1]",
                 "Ball and free: quaternion (x, y, z, w) of the child against the joint."),
          absent("velocity", choice({number(velocity), vector(Dimension::varied, {2, 3}), components(velocity)}),
                 "zeros",
                 "Rates of the positions; free: x, y, z of the velocity of the child's origin, in the joint's axes."),
          absent("angular_velocity",
                 choice({vector(Dimension::angular_velocity, {3}), components(Dimension::angular_velocity)}),
                 "[0, 0, 0]", "Ball: in the child's axes; free: in the joint's axes."),
          repeated(),
      }),
      "initial_state/<joint>", "Where a joint begins; joints that are not named begin at zero.");
}

SchemaPtr channel_schema() {
  return word({"effort", "torque", "force", "target_position", "target_velocity"});
}

Key component_key(const char* all) {
  return absent("component", word({std::begin(kComponents), std::end(kComponents)}), all,
                "Which of the numbers that it has, of a joint of several degrees of freedom.");
}

}  // namespace backdrive::scene
