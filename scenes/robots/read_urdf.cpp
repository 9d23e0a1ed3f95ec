#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "models/meshes/triangle_mesh.h"
#include "models/model_validity.h"
#include "models/parameter_list.h"
#include "scenes/robots/robot.h"
#include "scenes/robots/urdf_values.h"
#include "scenes/robots/urdf_visual.h"

namespace backdrive::scene {
namespace {

class UrdfReader {
 public:
  UrdfReader(const XmlElement& robot, const RobotRequest& request, const RobotFiles& files, const Sources& sources)
      : robot_(robot),
        request_(request),
        files_(files),
        sources_(sources),
        values_(sources),
        visuals_(robot, files, sources, parts_) {}

  RobotParts read() {
    if (const XmlAttribute* const name = robot_.attribute("name")) parts_.name = name->value;
    for (const XmlElement& element : robot_.children) {
      if (element.name == "material") continue;  // visuals have it
      if (element.name == "link") {
        links_are_known_ = mistakes_.attempt([&] { learn(element, links_, "link"); }) && links_are_known_;
      } else if (element.name == "joint") {
        mistakes_.attempt([&] { learn(element, joints_, "joint"); });
      } else if (element.name.starts_with("xacro:")) {
        // All else may follow from it.
        fail(sources_, element.place, "", "element '" + excerpt(element.name) + "'",
             "plain URDF; expand the macros first: xacro robot.urdf.xacro > robot.urdf");
      } else {
        leave_out(element);
      }
    }
    mistakes_.attempt([&] {
      if (links_.empty() && links_are_known_) values_.missing(robot_, "at least one link");
    });
    mistakes_.attempt([&] { find_root(); });
    mistakes_.attempt([&] {
      if (root_) add_base();
    });
    for (const XmlElement* const link : links_in_order_) mistakes_.attempt([&] { add_link(*link); });
    for (const XmlElement* const joint : joints_in_order_) mistakes_.attempt([&] { add_joint(*joint); });
    mistakes_.throw_any();
    return std::move(parts_);
  }

 private:
  using Elements = std::map<std::string, const XmlElement*, std::less<>>;

  /// What changes nothing about motion: looks, and what other programs do with the robot.
  void leave_out(const XmlElement& element) {
    static const std::set<std::string, std::less<>> looks{"material", "transmission",         "sensor", "calibration",
                                                          "verbose",  "contact_coefficients", "version"};
    parts_.note(element.place, "<" + excerpt(element.name) + ">", !looks.contains(element.name));
  }

  void learn(const XmlElement& element, Elements& known, const std::string& kind) {
    const XmlAttribute& name = values_.attribute(element, "name", "of the " + kind);
    if (name.value.empty()) values_.refuse(element, name, "a name");
    const auto [at, is_new] = known.emplace(name.value, &element);
    if (!is_new) {
      values_.refuse(
          element, name,
          "another name: a " + kind + " at line " + std::to_string(at->second->place.line) + " has this one");
    }
    (kind == "link" ? links_in_order_ : joints_in_order_).push_back(&element);
  }

  const XmlAttribute& link_of(const XmlElement& joint, const char* end) const {
    const XmlElement* const element = joint.child(end);
    if (!element) values_.missing(joint, "an element <" + std::string(end) + " link=...>");
    const XmlAttribute& link = values_.attribute(*element, "link", "the name of a link");
    if (!links_.contains(link.value)) {
      if (!links_are_known_) Mistakes::leave_off();
      values_.refuse(joint, link, "the name of a link", nearest_name(link.value.substr(0, 200), names_of(links_)));
    }
    return link;
  }

  /// The one link that is nobody's child.
  void find_root() {
    std::map<std::string, const XmlElement*, std::less<>> joint_above;
    bool is_known = mistakes_.empty();  // the tree
    for (const XmlElement* const joint : joints_in_order_) {
      is_known = mistakes_.attempt([&] { link_of(*joint, "parent"); }) && is_known;
      const bool has_child = mistakes_.attempt([&] {
        const XmlAttribute& child = link_of(*joint, "child");
        const auto [at, is_new] = joint_above.emplace(child.value, joint);
        if (is_new) return;
        values_.refuse(*joint, child,
                       "a link that hangs on one joint only (it hangs on " + title(*at->second) + " at line " +
                           std::to_string(at->second->place.line) + " already)");
      });
      is_known = is_known && has_child;
    }
    if (!is_known) Mistakes::leave_off();
    for (const XmlElement* const link : links_in_order_) {
      if (joint_above.contains(link->attribute("name")->value)) continue;
      if (root_) {
        fail(sources_, link->place, title(*link), "a second link that is no joint's child",
             "one such link, the root (" + title(*root_) + " at line " + std::to_string(root_->place.line) + ")");
      }
      root_ = link;
    }
    if (!root_) fail(sources_, robot_.place, "", "a circle of joints", "a tree, with a link that is no joint's child");
    root_is_world_ = root_->attribute("name")->value == "world";
  }

  std::string scene_name(const std::string& name) const { return scene::scene_name(request_.prefix, name); }
  std::string body_name(const std::string& link) const {
    return root_is_world_ && link == "world" ? "world" : scene_name(link);
  }

  NodePtr orientation_node(const Numbers3& rpy, Place place) const {
    NodePtr node = make_map(place);
    set_key(node, "rpy", list_of(rpy, place), place);
    return node;
  }
  NodePtr origin_node(const UrdfValues::Origin& origin) const {
    NodePtr node = make_map(origin.place);
    if (!is_zero(origin.position)) set_key(node, "position", list_of(origin.position, origin.place), origin.place);
    if (!is_zero(origin.rpy)) set_key(node, "orientation", orientation_node(origin.rpy, origin.place), origin.place);
    return node;
  }
  /// The joint that holds the root, or lets it move.
  void add_base() {
    if (root_is_world_) {
      if (request_.floating) {
        fail(sources_, request_.place, "base", "value 'floating'",
             "'fixed': the root link of this robot is called world, and stands for it");
      }
      return;
    }
    std::string name = "base";
    while (joints_.contains(name)) name += "_";
    const Place place = root_->place;
    NodePtr joint = make_map(place);
    set_key(joint, "type", make_scalar(request_.floating ? "free" : "fixed", place), place);
    set_key(joint, "child", make_scalar(body_name(root_->attribute("name")->value), place, true), place);
    if (!is_identity(request_.frame)) set_key(joint, "frame", frame_node(request_.frame, place), place);
    set_key(parts_.joints, scene_name(name), joint, place);
  }

  void add_link(const XmlElement& link) {
    const std::string name = link.attribute("name")->value;
    const bool is_world = &link == root_ && root_is_world_;
    NodePtr body = make_map(link.place), shapes = make_list(link.place);
    for (const XmlElement& element : link.children) {
      if (element.name == "inertial") {
        if (is_world) {
          parts_.note(element.place, "<inertial> of the link world, which does not move", false);
        } else {
          mistakes_.attempt([&] { add_inertial(body, link, element); });
        }
      } else if (element.name == "collision") {
        mistakes_.attempt([&] {
          if (request_.collision) add_shape(shapes, link, element);
        });
      } else if (element.name == "visual") {
        visuals_.add(link, element, is_world ? "world" : body_name(name), is_world ? request_.frame : Pose{});
      } else {
        leave_out(element);
      }
    }
    if (is_world) {
      for (std::size_t i = 0; i < shapes->list.size(); ++i) {
        const NodePtr& shape = shapes->list[i];
        shape->map.insert(shape->map.begin(), {"body", link.place, make_scalar("world", link.place)});
        set_key(parts_.shapes, scene_name("world_" + std::to_string(i)), shape, link.place);
      }
      return;
    }
    if (!shapes->list.empty()) set_key(body, "shapes", shapes, link.place);
    set_key(parts_.bodies, body_name(name), body, link.place);
  }

  void add_inertial(const NodePtr& body, const XmlElement& link, const XmlElement& inertial) {
    if (body->find("mass")) fail(sources_, inertial.place, title(link), "a second <inertial>", "one");
    mistakes_.attempt([&] {
      const XmlElement* const mass = inertial.child("mass");
      if (!mass) values_.missing(inertial, "an element <mass value=...>");
      const XmlAttribute& value = values_.attribute(*mass, "value", "kg");
      set_key(body, "mass", scalar_of(values_.not_negative(link, value), value.place), value.place);
    });
    const UrdfValues::Origin origin = values_.origin(inertial);
    if (!is_zero(origin.position)) set_key(body, "com", list_of(origin.position, origin.place), origin.place);
    const XmlElement* const inertia = inertial.child("inertia");
    if (!inertia) values_.missing(inertial, "an element <inertia ixx=... iyy=... izz=...>");
    const auto moment = [&](const char* name) {
      const XmlAttribute* const found = inertia->attribute(name);
      return found ? values_.number(link, *found) : 0.0;
    };
    Sym3<double> about_com{moment("ixx"), moment("iyy"), moment("izz"), moment("ixy"), moment("ixz"), moment("iyz")};
    if (!is_zero(origin.rpy)) about_com = rotated(matrix_of(turn_of_rpy(origin.rpy)), about_com);
    const auto& [xx, yy, zz, xy, xz, yz] = about_com;
    set_key(body, "inertia", list_of(std::array{xx, yy, zz, xy, xz, yz}, inertia->place), inertia->place);
    if (fault_of(principal_moments(about_com)) != InertiaFault::none) {
      parts_.note(inertia->place, "<inertia> that no rigid body has: taken as it is", false);
      set_key(body, "unphysical_inertia", make_scalar("true", inertia->place), inertia->place);
    }
  }

  void add_shape(const NodePtr& shapes, const XmlElement& link, const XmlElement& collision) {
    const XmlElement* const geometry = collision.child("geometry");
    if (!geometry) values_.missing(collision, "an element <geometry>");
    NodePtr shape = make_map(collision.place);
    mistakes_.attempt([&] { set_key(shape, "geometry", geometry_node(link, *geometry), geometry->place); });
    const UrdfValues::Origin origin = values_.origin(collision);
    if (&link == root_ && root_is_world_ && !is_identity(request_.frame)) {
      set_key(shape, "frame", frame_node(request_.frame * origin.pose(), origin.place), origin.place);
    } else if (!origin.is_identity()) {
      set_key(shape, "frame", origin_node(origin), origin.place);
    }
    if (!request_.group.empty()) set_key(shape, "collision", filter_node(collision.place), collision.place);
    for (const XmlElement& element : collision.children) {
      if (element.name != "geometry" && element.name != "origin") leave_out(element);
    }
    shapes->list.push_back(shape);
  }

  /// The robot's own group, and whom it meets: everybody where the robot may touch itself.
  NodePtr filter_node(Place place) const {
    NodePtr filter = make_map(place);
    set_key(filter, "groups", list_of_names({request_.group}, place), place);
    if (!request_.self_collision) set_key(filter, "meets", list_of_names(request_.meets, place), place);
    return filter;
  }

  NodePtr geometry_node(const XmlElement& link, const XmlElement& geometry) const {
    if (geometry.children.size() != 1) {
      fail(sources_, geometry.place, title(link) + ": geometry", std::to_string(geometry.children.size()) + " elements",
           "one of <box>, <sphere>, <cylinder>, <capsule> and <mesh>");
    }
    const XmlElement& form = geometry.children[0];
    const auto node = [&](const char* type, const auto& scale) {
      NodePtr result = make_map(form.place);
      set_key(result, "type", make_scalar(type, form.place), form.place);
      set_key(result, "scale", list_of(scale, form.place), form.place);
      return result;
    };
    if (form.name == "box") {
      const XmlAttribute& size = values_.attribute(form, "size", "three lengths in m");
      Numbers3 half = values_.numbers<3>(link, size);
      for (double& side : half) {
        if (side < 0) values_.refuse(link, size, "three numbers of at least 0");
        side /= 2;
      }
      return node("box", half);
    }
    if (form.name == "sphere") return node("sphere", std::array<double, 1>{values_.length(form, "radius")});
    if (form.name == "cylinder" || form.name == "capsule") {
      return node(form.name.c_str(),
                  std::array<double, 2>{values_.length(form, "radius"), values_.length(form, "length") / 2});
    }
    if (form.name == "mesh") return mesh_node(link, form);
    fail(sources_, form.place, title(link) + ": geometry", "element '" + excerpt(form.name) + "'",
         "one of <box>, <sphere>, <cylinder>, <capsule> and <mesh>");
  }

  NodePtr mesh_node(const XmlElement& link, const XmlElement& mesh) const {
    const XmlAttribute& name = values_.attribute(mesh, "filename", "of an OBJ, STL or COLLADA file");
    const std::string what = title(link) + ": mesh";
    const std::filesystem::path path = files_.find(name.value, sources_, name.place, what);
    Numbers3 scale{1, 1, 1};
    if (const XmlAttribute* const given = mesh.attribute("scale")) scale = values_.numbers<3>(link, *given);
    NodePtr node = make_map(mesh.place);
    set_key(node, "type", make_scalar("mesh", mesh.place), mesh.place);
    if (std::ranges::any_of(scale, [](double factor) { return factor < 0; })) {
      // A mirrored mesh: factors of a shape are not negative, so that its vertices are.
      NodePtr vertices = make_list(mesh.place);
      for (const Vec3<double>& v : read_mesh(path).vertices) {
        vertices->list.push_back(list_of(Numbers3{v.x * scale[0], v.y * scale[1], v.z * scale[2]}, mesh.place));
      }
      set_key(node, "vertices", vertices, mesh.place);
      return node;
    }
    set_key(node, "file", make_scalar(path.string(), name.place, true), name.place);
    if (scale != Numbers3{1, 1, 1}) set_key(node, "scale", list_of(scale, mesh.place), mesh.place);
    return node;
  }

  void add_joint(const XmlElement& element) {
    const std::string name = element.attribute("name")->value;
    const XmlAttribute& type = values_.attribute(element, "type", "of the joint");
    const XmlAttribute no_link;  // where it is not known, which is told
    const XmlAttribute *above = &no_link, *below = &no_link;
    mistakes_.attempt([&] { above = &link_of(element, "parent"); });
    mistakes_.attempt([&] { below = &link_of(element, "child"); });
    const std::string parent = body_name(above->value);
    const XmlAttribute& child = *below;
    UrdfValues::Origin origin;
    mistakes_.attempt([&] { origin = values_.origin(element); });
    NodePtr joint = make_map(element.place);
    const auto begin = [&](const char* word) {
      set_key(joint, "type", make_scalar(word, type.place), type.place);
      if (parent != "world") set_key(joint, "parent", make_scalar(parent, element.place, true), element.place);
      set_key(joint, "child", make_scalar(body_name(child.value), child.place, true), child.place);
      if (parent == "world" && !is_identity(request_.frame)) {
        set_key(joint, "frame", frame_node(request_.frame * origin.pose(), origin.place), origin.place);
      } else if (!origin.is_identity()) {
        set_key(joint, "frame", origin_node(origin), origin.place);
      }
    };
    if (type.value == "fixed") {
      begin("fixed");
    } else if (type.value == "revolute" || type.value == "continuous" || type.value == "prismatic") {
      begin(type.value == "prismatic" ? "prismatic" : "revolute");
      mistakes_.attempt([&] { add_axis(joint, element); });
      mistakes_.attempt([&] { add_limit(joint, element, type.value != "continuous"); });
    } else if (type.value == "floating") {
      if (root_ && parent != "world" && !hangs_on_fixed_root(element)) {
        values_.refuse(element, type, "a joint of another type: a floating one must hang on the fixed root link");
      }
      free_from_root(joint, element, origin, type, child);
    } else if (type.value == "planar") {
      add_planar(joint, element, origin, parent, body_name(child.value), type);
    } else {
      static const std::vector<std::string> types{"revolute", "continuous", "prismatic", "fixed", "floating", "planar"};
      values_.refuse(element, type, "one of revolute, continuous, prismatic, fixed, floating and planar",
                     nearest_name(type.value.substr(0, 100), types));
    }
    mistakes_.attempt([&] {
      if (type.value != "fixed") add_dynamics(joint, element);
    });
    set_key(parts_.joints, scene_name(name), joint, element.place);
    for (const XmlElement& part : element.children) {
      static const std::set<std::string, std::less<>> known{"origin", "parent", "child", "axis", "limit", "dynamics"};
      if (known.contains(part.name)) continue;
      if (part.name == "mimic") {
        mistakes_.attempt([&] { add_mimic(element, part, type.value); });
      } else if (part.name == "safety_controller") {
        parts_.note(part.place, "<safety_controller>: its soft limits do not act");
      } else {
        leave_out(part);
      }
    }
  }

  /// position = multiplier · that of another joint + offset, as a coupling that holds.
  void add_mimic(const XmlElement& joint, const XmlElement& mimic, const std::string& type) {
    const std::string name = joint.attribute("name")->value;
    const XmlAttribute& other = values_.attribute(mimic, "joint", "the name of a joint");
    const auto found = joints_.find(other.value);
    if (found == joints_.end()) {
      values_.refuse(joint, other, "the name of a joint", nearest_name(other.value.substr(0, 200), names_of(joints_)));
    }
    if (other.value == name) values_.refuse(joint, other, "another joint");
    const double multiplier = values_.number_or(mimic, "multiplier", 1), offset = values_.number_or(mimic, "offset", 0);
    const XmlAttribute* const other_type = found->second->attribute("type");
    static const std::set<std::string, std::less<>> moved{"revolute", "continuous", "prismatic"};
    if (!moved.contains(type) || !other_type || !moved.contains(other_type->value)) {
      return parts_.note(mimic.place, "<mimic> of or by a joint that neither turns nor slides: it follows nothing",
                         type != "fixed");
    }
    NodePtr node = make_map(mimic.place), ratios = make_map(mimic.place);
    set_key(ratios, scene_name(name), scalar_of(1, mimic.place), mimic.place);
    set_key(ratios, scene_name(other.value), scalar_of(multiplier == 0 ? 0.0 : -multiplier, mimic.place), mimic.place);
    set_key(node, "ratios", ratios, mimic.place);
    if (offset != 0) set_key(node, "offset", scalar_of(-offset, mimic.place), mimic.place);
    set_key(node, "hold", make_scalar("true", mimic.place), mimic.place);
    std::string own = name + "_mimic";
    while (joints_.contains(own)) own += "_";
    set_key(parts_.couplings, scene_name(own), node, mimic.place);
  }

  bool hangs_on_fixed_root(const XmlElement& joint) const {
    return !request_.floating && link_of(joint, "parent").value == root_->attribute("name")->value;
  }

  /// A joint that moves freely against the world, in which the root stands.
  void free_from_root(const NodePtr& joint, const XmlElement& element, const UrdfValues::Origin& origin,
                      const XmlAttribute& type, const XmlAttribute& child) {
    set_key(joint, "type", make_scalar("free", type.place), type.place);
    set_key(joint, "child", make_scalar(body_name(child.value), child.place, true), child.place);
    const Pose frame = request_.frame * origin.pose();
    if (!origin.is_identity() || !is_identity(request_.frame)) {
      set_key(joint, "frame", frame_node(frame, element.place), element.place);
    }
  }

  /// Axis in the joint's frame, (1, 0, 0) where none is given.
  Numbers3 axis_of(const XmlElement& joint) const {
    const XmlElement* const axis = joint.child("axis");
    if (!axis) return {1, 0, 0};
    const XmlAttribute& xyz = values_.attribute(*axis, "xyz", "three numbers");
    const Numbers3 direction = values_.numbers<3>(joint, xyz);
    if (!(std::hypot(direction[0], direction[1], direction[2]) > 0)) {
      values_.refuse(joint, xyz, "an axis that is not zero");
    }
    return direction;
  }
  void add_axis(const NodePtr& joint, const XmlElement& element) const {
    const XmlElement* const axis = element.child("axis");
    const Place place = axis ? axis->place : element.place;
    set_key(joint, "axis", list_of(axis_of(element), place), place);
  }

  void add_limit(const NodePtr& joint, const XmlElement& element, bool bounded) {
    const XmlElement* const limit = element.child("limit");
    if (!limit) {
      if (bounded) parts_.note(element.place, "revolute and prismatic joints without <limit>: nothing stops them");
      return;
    }
    const XmlAttribute *const lower = limit->attribute("lower"), *const upper = limit->attribute("upper");
    if (bounded && (lower || upper)) {
      const double low = values_.number_or(*limit, "lower", 0), high = values_.number_or(*limit, "upper", 0);
      if (low > high) {
        values_.refuse(element, lower ? *lower : *upper,
                       "a lower limit that is not above the upper one (" + shortest(high) + ")");
      }
      if (low == high) {
        parts_.note(limit->place, "<limit> with lower equal to upper: read as no limits");
        add_effort_limit(joint, element, *limit);
        return;
      }
      NodePtr node = make_map(limit->place);
      set_key(node, "lower", scalar_of(low, lower ? lower->place : limit->place), limit->place);
      set_key(node, "upper", scalar_of(high, upper ? upper->place : limit->place), limit->place);
      set_key(joint, "limit", node, limit->place);
    } else if (bounded) {
      parts_.note(limit->place, "<limit> without lower and upper: nothing stops the joint");
    }
    add_effort_limit(joint, element, *limit);
  }

  /// A drive without gains bounds the efforts that a scene commands. And the limit of the velocity.
  void add_effort_limit(const NodePtr& joint, const XmlElement& element, const XmlElement& limit) {
    if (const XmlAttribute* const effort = limit.attribute("effort")) {
      const double most = values_.not_negative(element, *effort);
      if (most > 0) {
        NodePtr drive = make_map(limit.place);
        set_key(drive, "effort_limit", scalar_of(most, effort->place), effort->place);
        set_key(joint, "drive", drive, limit.place);
      } else {
        parts_.note(effort->place, "<limit effort=\"0\">: taken as not given, efforts are not bounded");
      }
    }
    if (const XmlAttribute* const velocity = limit.attribute("velocity")) {
      const double most = values_.number(element, *velocity);
      if (most > 0) {  // 0 is what files say that know of none
        NodePtr node = joint->find("limit");
        if (!node) set_key(joint, "limit", node = make_map(limit.place), limit.place);
        set_key(node, "velocity", scalar_of(most, velocity->place), velocity->place);
      }
    }
  }

  void add_dynamics(const NodePtr& joint, const XmlElement& element) const {
    const XmlElement* const dynamics = element.child("dynamics");
    if (!dynamics) return;
    for (const char* const key : {"damping", "friction"}) {
      const XmlAttribute* const value = dynamics->attribute(key);
      if (!value) continue;
      const double level = values_.not_negative(element, *value);
      if (level > 0) set_key(joint, key, scalar_of(level, value->place), value->place);
    }
  }

  /// Slides in the plane across the axis and turns about it. A scene's planar joint has z for its axis: for another one
  /// the joint's frame is turned, and a body without mass turns back what hangs on it.
  void add_planar(const NodePtr& joint, const XmlElement& element, const UrdfValues::Origin& origin,
                  const std::string& parent, const std::string& child, const XmlAttribute& type) {
    const Numbers3 axis = axis_of(element);
    const double norm = std::hypot(axis[0], axis[1], axis[2]), across = std::hypot(axis[0], axis[1]);
    const Turn to_axis = across > 0 ? turn_about({-axis[1] / across, axis[0] / across, 0}, std::atan2(across, axis[2]))
                         : axis[2] > 0 ? Turn{0, 0, 0, 1}
                                       : Turn{1, 0, 0, 0};
    const bool is_z = axis[2] == norm;
    const Pose base = parent == "world" ? request_.frame * origin.pose() : origin.pose();
    const std::string plane = scene_name(element.attribute("name")->value + "_plane");
    set_key(joint, "type", make_scalar("planar", type.place), type.place);
    if (parent != "world") set_key(joint, "parent", make_scalar(parent, element.place, true), element.place);
    set_key(joint, "child", make_scalar(is_z ? child : plane, element.place, true), element.place);
    set_key(joint, "frame", frame_node(base * Pose{{0, 0, 0}, to_axis}, origin.place), origin.place);
    if (is_z) return;
    set_key(parts_.bodies, plane, make_map(element.place), element.place);
    NodePtr back = make_map(element.place);
    set_key(back, "type", make_scalar("fixed", element.place), element.place);
    set_key(back, "parent", make_scalar(plane, element.place, true), element.place);
    set_key(back, "child", make_scalar(child, element.place, true), element.place);
    const Pose turned_back{{0, 0, 0}, {-to_axis[0], -to_axis[1], -to_axis[2], to_axis[3]}};
    set_key(back, "frame", frame_node(turned_back, element.place), element.place);
    set_key(parts_.joints, plane, back, element.place);
  }

  const XmlElement& robot_;
  const RobotRequest& request_;
  const RobotFiles& files_;
  const Sources& sources_;
  UrdfValues values_;
  Mistakes mistakes_;
  RobotParts parts_;
  UrdfVisuals visuals_;
  Elements links_, joints_;
  std::vector<const XmlElement*> links_in_order_, joints_in_order_;
  const XmlElement* root_ = nullptr;
  bool root_is_world_ = false;
  bool links_are_known_ = true;
};

}  // namespace

RobotParts read_urdf(const XmlElement& robot, const RobotRequest& request, const RobotFiles& files,
                     const Sources& sources) {
  return UrdfReader(robot, request, files, sources).read();
}

}  // namespace backdrive::scene
