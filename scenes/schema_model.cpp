// What the `model` section of a scene may say. Meanings of parameters come from the model's field
// table.
#include <cctype>
#include <cstdio>
#include <utility>

#include "engine/error.h"
#include "models/parameter_list.h"
#include "scenes/schema_make.h"

namespace backdrive::scene {
namespace {

/// What a parameter of this unit measures.
Dimension dimension_of(std::string_view unit) {
  using enum Dimension;
  static constexpr std::pair<std::string_view, Dimension> units[] = {
      {"1", none},
      {"m", length},
      {"kg", mass},
      {"kg·m²", inertia},
      {"m/s", velocity},
      {"m/s²", acceleration},
      {"kg/m³", density},
      {"s/m", dissipation},
      {"N/m", contact_stiffness},
      {"N·s/m", damping},
      {"N·m/rad", angular_stiffness},
      {"N·m·s/rad", angular_damping},
      {"rad or m", joint_position},
      {"rad/s or m/s", joint_velocity},
      {"N·m or N", joint_effort},
      {"N·m/rad or N/m", joint_stiffness},
      {"N·m·s/rad or N·s/m", joint_damping},
      {"kg·m² or kg", joint_inertia},
  };
  for (const auto& [name, dimension] : units) {
    if (name == unit) return dimension;
  }
  usage_error("no dimension has the unit " + std::string(unit));
}

/// The one-line description of a model parameter as a sentence.
std::string sentence(std::string_view words) {
  std::string doc(words);
  // "-inf: none" is how the model says it; a scene leaves the key out, or says `auto` where that is "+inf: auto".
  if (const size_t infinite = doc.find("inf: none"); infinite != std::string::npos) {
    doc.erase(doc.rfind(';', infinite));
  }
  if (const size_t automatic = doc.find("+inf: "); automatic != std::string::npos) doc.erase(automatic, 6);
  doc[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(doc[0])));
  return doc + ".";
}

/// The key of a parameter: a number, or a vector whose default is given.
Key key_of(const Field& field, const std::string& vector_default = "") {
  const std::string name(field.leaf.substr(field.leaf.rfind('/') + 1));
  const Dimension dimension = dimension_of(field.unit);
  if (field.tangents != field.components) {
    return optional(name, orientation_schema(), vector_default, sentence(field.doc));
  }
  if (field.components > 1) {
    return optional(name, vector(dimension, {field.components}), vector_default, sentence(field.doc));
  }
  const SchemaPtr schema = field.values == ValueRange::positive      ? positive(dimension)
                           : field.values == ValueRange::nonnegative ? at_least(0, dimension)
                                                                     : number(dimension);
  if (field.doc.find("inf: auto") != std::string::npos) {
    const auto automatic = std::make_shared<Schema>(*schema);
    automatic->allow_auto = true;
    return optional(name, automatic, "auto", sentence(field.doc));
  }
  if (field.may_be_infinite) return absent(name, schema, "none", sentence(field.doc));
  char text[32];
  std::snprintf(text, sizeof text, "%.15g", field.begins);
  return optional(name, schema, text, sentence(field.doc));
}

Key key_of(FieldGroup group, std::string_view leaf, const std::string& vector_default = "") {
  for (const Field& field : fields()) {
    if (field.group == group && field.leaf == leaf) return key_of(field, vector_default);
  }
  usage_error("no parameter " + std::string(leaf));
}

/// The keys of all parameters of a nest.
SchemaPtr nest(FieldGroup group, std::string_view name) {
  std::vector<Key> keys;
  for (const Field& field : fields()) {
    if (field.group == group && field.leaf.starts_with(std::string(name) + "/")) keys.push_back(key_of(field));
  }
  return map(std::move(keys));
}

SchemaPtr frame(FieldGroup group, const std::string& name) {
  return map({key_of(group, name + "/position", "[0, 0, 0]"), key_of(group, name + "/orientation", "[0, 0, 0, 1]")});
}

SchemaPtr geometry() {
  auto schema = map({
      required_or_of_robot(
          "type", word({"plane", "sphere", "ellipsoid", "capsule", "box", "cylinder", "mesh", "height_field"}),
          "What it is. Volumes are centred on the frame, the long axis along its z. Planes and height fields are "
          "of the world, and do not touch each other."),
      absent("scale", choice({at_least(0, Dimension::length), vector(Dimension::length, {1, 2, 3})}),
             "0.1 each; mesh: [1, 1, 1]",
             "Sphere: radius; ellipsoid: three radii; capsule and cylinder: radius, half length; box: three half "
             "extents; plane: none; mesh: three factors, without unit, that turn the file's unit into m; height field "
             "(required): half extents in x and y, and height of white."),
      absent("file", text(), "",
             "Of a mesh or a height field, inside the scene's folder. Mesh: OBJ, STL or COLLADA; the shape is the "
             "convex hull "
             "of its vertices, by at most 64 of them. Height field: portable graymap (PGM), black at height 0, its "
             "first row at the highest y."),
      absent("vertices", list(vector(Dimension::none, {3}), "vertex"), "", "Of a mesh, instead of `file`."),
      absent("heights", list(vector(Dimension::none, {}), "row"), "",
             "Of a height field, instead of `file`: rows from the lowest y up, each from the lowest x on; white is 1."),
      key_of(FieldGroup::shapes, "geometry/margin"),
  });
  schema->exclusive_keys = {{"file", "vertices", "heights"}};
  return schema;
}

SchemaPtr collision() {
  return choice({word({"none"}), map({
                                     optional("groups", list(name(), "group"), "[default]",
                                              "Groups that it is in. Any names, at most 32 in a scene with `default`."),
                                     absent("meets", list(name(), "group"), "all", "Groups whose shapes it may touch."),
                                 })});
}

SchemaPtr contacts() {
  return titled(map({
                    optional("exclude", list(list(name(), "body"), "pair of bodies"), "[]",
                             "Pairs of bodies (or `world`), as `[shank, trunk]`, whose shapes do not touch."),
                    optional("exclude_shapes", list(list(name(), "shape"), "pair of shapes"), "[]",
                             "Pairs of shapes that do not touch."),
                    optional("include", list(list(name(), "shape"), "pair of shapes"), "[]",
                             "Pairs of shapes that may touch whatever else says they do not."),
                }),
                "model/contacts",
                "Which shapes may touch, beside what each one's `collision` says. All do, but for those on one body or "
                "on bodies that fixed joints make one, and those on two bodies that a joint connects (the world is "
                "touched by what hangs on it).");
}

SchemaPtr shape(bool in_body) {
  constexpr FieldGroup group = FieldGroup::shapes;
  std::vector<Key> keys;
  if (in_body) {
    keys.push_back(absent("name", name(), "the body's name, with `_0`, `_1`, … when it has several shapes",
                          "Name of the shape, unique among all shapes."));
  } else {
    keys.push_back(required_or_of_robot("body", name(), "The body it belongs to, or `world`."));
  }
  keys.push_back(required_or_of_robot("geometry", geometry(), "Form and size."));
  keys.push_back(optional("frame", frame(group, "frame"), "", "Where it is in the body's frame."));
  keys.push_back(key_of(group, "density"));
  keys.push_back(optional("material", nest(group, "material"), "",
                          "How it feels to the touch. Two shapes in touch: springs in series, each with its own "
                          "dissipation; of `friction` the harmonic mean; of widths, creeps and frictions of turns the "
                          "mean, so that one of the two alone counts half."));
  keys.push_back(optional("collision", collision(), "",
                          "What it may touch: two shapes do when each is in a group that the other meets. `none`: "
                          "nothing. See also `model/contacts`."));
  keys.push_back(repeated());
  auto schema = map(std::move(keys));
  if (in_body) return titled(schema, "model/bodies/<name>/shapes/<index>", "A shape of the body.");
  return titled(schema, "model/shapes/<name>",
                "A shape, listed apart from its body; the same as an entry of the body's `shapes`.");
}

SchemaPtr body() {
  constexpr FieldGroup group = FieldGroup::bodies;
  return titled(
      map({
          key_of(group, "mass"),
          key_of(group, "com", "[0, 0, 0]"),
          optional("inertia", vector(Dimension::inertia, {3, 6}), "[0, 0, 0, 0, 0, 0]",
                   "About the com, link axes: xx, yy, zz, xy, xz, yz, or just xx, yy, zz."),
          key_of(group, "gravity_compensation"),
          optional("unphysical_inertia", boolean(), "false",
                   "Whether `inertia` may be one that no rigid body has: a principal moment below zero, or above "
                   "the sum of the other two. Robot files hold such ones."),
          optional("shapes", list(shape(true), "shape"), "[]", "Shapes fixed to the body."),
          repeated(),
      }),
      "model/bodies/<name>",
      "A rigid body. It needs a joint that names it as child. Mass properties are what is given "
      "here plus what "
      "its shapes with a `density` add.");
}

SchemaPtr robot_base() {
  return word({"fixed", "floating"});
}

/// Of a pose that is no parameter.
SchemaPtr plain_frame() {
  return map({optional("position", vector(Dimension::length, {3}), "[0, 0, 0]", "m, world axes."),
              optional("orientation", orientation_schema(), "[0, 0, 0, 1]", "Quaternion (x, y, z, w), or words.")});
}

SchemaPtr robot() {
  return titled(
      map({
          required("file", text(),
                   "A robot file (URDF or MJCF) inside the scene's folder, or a folder of `--robot-path`, "
                   "`BACKDRIVE_ROBOT_PATH` or "
                   "`ROS_PACKAGE_PATH`; or `package://NAME/FILE` in these."),
          optional(
              "base", robot_base(), "fixed",
              "Whether the root link is held by the joint `base` of type `fixed`, or moves by one of type `free`. MJCF "
              "files say it themselves; where this is given, `fixed` holds what moves freely there."),
          optional("frame", plain_frame(), "", "Where the root link is in the world, or where it begins."),
          optional("collision", boolean(), "true",
                   "Whether collision shapes are read. Without them no meshes are needed."),
          optional("self_collision", boolean(), "false",
                   "Whether shapes of the robot may touch each other. Without it they are in a collision group of the "
                   "robot's name and meet `default` and other robots. MJCF files say it themselves; there only `false` "
                   "counts."),
          absent("keyframe", text(), "",
                 "Of an MJCF file: the name of the `<key>` in whose state it begins, and whose controls stay."),
          repeated(),
      }),
      "model/robots/<name>", "A robot from a file.");
}

SchemaPtr joint() {
  constexpr FieldGroup group = FieldGroup::joints;
  return titled(
      map({
          required_or_of_robot(
              "type", word({"revolute", "prismatic", "fixed", "universal", "planar", "ball", "free"}),
              "How the child moves against the parent: `revolute` turns about `axis`, `prismatic` slides along it; "
              "`universal` turns about x, then about the turned y; `planar` slides along x and y, then turns about z; "
              "`ball` turns any way; `free` moves any way against the world (a floating base)."),
          optional("parent", name(), "world", "The body it hangs on, or `world`."),
          required_or_of_robot("child", name(), "The body it carries."),
          optional("frame", frame(group, "frame"), "",
                   "The joint in the parent's frame, and the child's frame at position zero."),
          optional(
              "loop", boolean(), "false",
              "Whether it closes a loop: its child hangs on another joint already. Such joints need the integrator "
              "`semi_implicit`, and have no initial state of their own: other joints say where their bodies begin."),
          optional("child_frame", frame(group, "child_frame"), "",
                   "Of a joint that closes a loop: the joint in the child's frame."),
          key_of(group, "axis", "[0, 0, 1]"),
          optional(
              "spins", boolean(), "false",
              "Whether the child turns by a good part of a radian in a step, as a rotor: its gyroscopic couple is then "
              "taken over the whole step, which keeps its energy bounded. Bodies of free and ball joints are treated "
              "so anyhow, and all with semi_implicit."),
          key_of(group, "armature"),
          key_of(group, "damping"),
          key_of(group, "friction"),
#define BACKDRIVE_NEST(type, member, parameters, what, X) optional(#member, nest(group, #member), "", what),
          BACKDRIVE_EFFORT_NESTS(BACKDRIVE_NEST, )
#undef BACKDRIVE_NEST
              optional(
                  "attachment", nest(group, "attachment"), "",
                  "Springs and dampers with which the integrator `semi_implicit` holds what the joint does not let go. "
                  "They act implicitly: stiff ones need no smaller steps."),
          absent(
              "release",
              map({required("at", positive(Dimension::time), "The time, from the start, rounded to whole steps.")}),
              "never",
              "Of a joint of type `fixed` that closes a loop, a grip: when it lets go. From there on its child moves "
              "by its other joint, say of type `free`. The time is not varied. The two bodies do not touch each "
              "other, before and after, but for pairs that `model/contacts/include` names."),
          repeated(),
      }),
      "model/joints/<name>",
      "A joint; together, but for those that close loops, they form a tree that begins at `world`.");
}

SchemaPtr coupling() {
  constexpr FieldGroup group = FieldGroup::couplings;
  return titled(
      map({
          required_or_of_robot(
              "ratios", names(number(Dimension::none), "joint"),
              "Revolute and prismatic joints, by name, and what the position of each is multiplied with: `{left: 1, "
              "right: -1}`."),
          key_of(group, "offset"),
          optional("hold", boolean(), "false",
                   "Whether the coupling's position is held at zero, exactly: `{left: 1, right: -1}` makes one joint "
                   "follow the other. Nothing else acts on it then."),
          key_of(group, "armature"),
          key_of(group, "damping"),
          key_of(group, "friction"),
          optional(
              "spring", nest(group, "spring"), "",
              "Spring. It acts implicitly, as all does that acts on a coupling: stiff ones need no smaller steps, and "
              "lose energy as steps of that length lose it."),
          optional("limit", nest(group, "limit"), "", "Soft limits of its position, as those of a joint."),
          optional("drive", nest(group, "drive"), "",
                   "Position and velocity servo of its position. A coupling with one has the control channels "
                   "`target_position` and `target_velocity`."),
          repeated(),
      }),
      "model/couplings/<name>",
      "A coupling: the position s = Σ ratio·position + offset of several joints, which a spring, a damper, a drive, "
      "limits "
      "or an effort act on as on that of a joint, or which is held. Gears, mimic joints and fixed tendons are such. "
      "Its "
      "unit is rad where all joints turn and m where all slide; where they do both, numbers have none. A name that no "
      "joint has.");
}

}  // namespace

SchemaPtr orientation_schema() {
  return choice(
      {vector(Dimension::none, {4}),
       variants({map({required("axis", vector(Dimension::none, {3}), "Axis of the turn; any length but zero."),
                      required("angle", number(Dimension::angle), "Angle of the turn, right-handed.")}),
                 map({required("rpy", vector(Dimension::angle, {3}),
                               "Roll about x, pitch about y, yaw about z, in this order, about fixed axes "
                               "(as in URDF).")})})});
}

SchemaPtr model_schema() {
  return titled(
      map({
          key_of(FieldGroup::model, "gravity", "[0, 0, -9.81]"),
          required_or_of_robot("bodies", names(body(), "body"), "The bodies, by name."),
          required_or_of_robot("joints", names(joint(), "joint"), "The joints, by name."),
          optional("shapes", names(shape(false), "shape"), "{}", "Shapes that are not listed with a body, by name."),
          optional("couplings", names(coupling(), "coupling"), "{}", "Joints that move together, by name."),
          optional("contacts", contacts(), "", "Pairs that may touch or may not."),
          absent("robots", names(robot(), "robot"), "",
                 "Robots from files, by name. The names of their links and joints begin with `<robot>_`."),
          absent("file", text(), "",
                 "One robot, whose names stay as they are; `base`, `frame`, `collision`, `self_collision` and "
                 "`keyframe` beside it are those of `model/robots/<name>`."),
          absent("base", robot_base(), "", "Of the robot in `file`."),
          absent("frame", plain_frame(), "", "Of the robot in `file`."),
          absent("collision", boolean(), "", "Of the robot in `file`."),
          absent("self_collision", boolean(), "", "Of the robot in `file`."),
          absent("keyframe", text(), "", "Of the robot in `file`."),
      }),
      "model",
      "What is simulated: bodies, joints, shapes and couplings that are listed here, and robots from files "
      "([robots.md](robots.md)). What is listed under a name that a robot has adds to it and replaces it, key by key.");
}

}  // namespace backdrive::scene
