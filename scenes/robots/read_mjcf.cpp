#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "models/model_validity.h"
#include "models/parameter_list.h"
#include "scenes/robots/mjcf_pairs.h"

namespace backdrive::scene {
namespace {

/// Of a body's mass and inertia for each body between its joints, where none may be without: little beside what a step
/// of loose bodies differs by, and enough for its attachments in float32.
constexpr double kShareOfLink = 1e-3;

/// Writes a model as the parts of a scene.
class MjcfWriter : MjcfReading {
 public:
  explicit MjcfWriter(const MjcfReading& reading) : MjcfReading(reading) {}

  void write() {
    check_sections();
    read_options();
    model_ = read_mjcf_bodies(*this);
    find_mjcf_mobility(model_);
    for (MjcfJoint& joint : model_.joints) mistakes_.attempt([&] { take_spring_damper(joint); });
    materials_.emplace(static_cast<const MjcfReading&>(*this), model_, time_step_);
    read_mjcf_tendons(*this, model_);
    add_mjcf_actuators(*this, model_);
    mistakes_.attempt([&] { read_mjcf_key(*this, model_); });
    for (std::size_t b = 0; b < model_.bodies.size(); ++b) add_body(static_cast<int>(b));
    add_contacts();
    write_mjcf_couplings(*this, model_);
    write_mjcf_loops(*this, model_);
  }

 private:
  /// Sections that have nothing to do with motion, and those that are not known.
  void check_sections() {
    static const Names read{"compiler", "option",   "size",   "default",  "asset",   "worldbody",
                            "contact",  "actuator", "tendon", "equality", "keyframe"};
    static const Names looks{"visual", "statistic", "sensor", "custom"};
    for (const XmlElement& section : document_.root().children) {
      if (read.contains(section.name)) continue;
      if (looks.contains(section.name)) {
        parts_.note(section.place, "<" + section.name + ">", false);
      } else {
        parts_.note(section.place, "<" + excerpt(section.name) + ">");
      }
    }
  }

  void read_options() {
    parts_.time_step = scalar_of(time_step_, document_.root().place);  // MuJoCo's own, where the file says none
    for (const XmlElement& element : document_.root().children) {
      if (element.name != "option") continue;
      const auto read = [&](const char* name, const auto& take) {
        mistakes_.attempt([&] {
          if (const XmlAttribute* const found = element.attribute(name)) take(*found);
        });
      };
      for (const char* const name : {"wind", "density", "viscosity"}) {
        read(name, [&](const XmlAttribute& found) {
          for (const double value : values_.list(element, found, 1, 3)) {
            if (value != 0) values_.refuse(element, found, "0: bodies move in a vacuum here");
          }
        });
      }
      read("gravity", [&](const XmlAttribute& gravity) {
        parts_.gravity = list_of(values_.numbers<3>(element, gravity), gravity.place);
      });
      read("timestep", [&](const XmlAttribute& step) {
        const double given = values_.number(element, step);
        if (!(given > 0)) values_.refuse(element, step, "a number above 0");
        time_step_ = given;
        parts_.time_step = scalar_of(given, step.place);
      });
      for (const XmlElement& flags : element.children) read_flags(flags);
    }
  }

  void read_flags(const XmlElement& flags) {
    static const Names motion{"constraint", "equality", "frictionloss", "limit",    "passive",
                              "spring",     "damper",   "clampctrl",    "actuation"};
    for (const XmlAttribute& one : flags.attributes) {
      const bool off = one.value == "disable";
      if (off && one.name == "gravity") parts_.gravity = list_of(Numbers3{0, 0, 0}, one.place);
      if (off && (one.name == "contact" || one.name == "constraint")) touches_ = false;
      if (off && motion.contains(one.name)) parts_.note(one.place, "<flag " + one.name + "=\"disable\">: it acts");
    }
  }

  // ---- what the scene gets ------------------------------------------------------------------------------------------

  void add_body(int index) {
    MjcfBody& body = model_.bodies[index];
    if (index > 0) add_joints(index);
    const Place place = body.element->place;
    const Pose back = at(negative(body.anchor));
    NodePtr node = make_map(place), shapes = make_list(place);
    mistakes_.attempt([&] {
      const double share = values_.number_or(*body.element, "gravcomp", 0);
      if (share == 0) return;
      const Place where = body.element->attribute("gravcomp")->place;
      set_key(node, "gravity_compensation", scalar_of(share, where), where);
    });
    add_mass(body, 1 - links_of(body) * kShareOfLink, back, node);
    for (MjcfGeom& geom : body.geoms) {
      if (geom.visual) add_visual(index, geom, back);
      if (!geom.geometry || !request_.collision) continue;
      if (mistakes_.attempt([&] { add_shape(index, geom, back, shapes); })) continue;
      if (!geom.name.empty()) model_.unread.insert(geom.name);
    }
    if (index == 0) return;
    if (!shapes->list.empty()) set_key(node, "shapes", shapes, place);
    set_key(parts_.bodies, body.name, node, place);
  }

  /// How many bodies between its joints have a share of its mass: with loose bodies, none of which may be without.
  int links_of(const MjcfBody& body) const {
    return request_.closes_loops && has_mass(body) && body.joints.size() > 1 ? static_cast<int>(body.joints.size()) - 1
                                                                             : 0;
  }
  static bool has_mass(const MjcfBody& body) {
    return body.mass.mass > 0 || principal_moments(body.mass.inertia).most > 0;
  }

  /// A share of a body's mass, about the axes of `back`.
  void add_mass(const MjcfBody& body, double share, const Pose& back, const NodePtr& node) {
    if (!has_mass(body)) return;
    const Place at_mass = body.inertial ? body.inertial->place : body.element->place;
    const MassProperties<double> mass = placed(body.mass, back);
    set_key(node, "mass", scalar_of(share * mass.mass, at_mass), at_mass);
    const Numbers3 com{cleaned(mass.com.x), cleaned(mass.com.y), cleaned(mass.com.z)};
    if (!is_zero(com)) set_key(node, "com", list_of(com, at_mass), at_mass);
    const Sym3<double>& J = mass.inertia;
    std::array<double, 6> all{J.xx, J.yy, J.zz, cleaned(J.xy), cleaned(J.xz), cleaned(J.yz)};
    for (double& number : all) number *= share;
    set_key(node, "inertia", list_of(all, at_mass), at_mass);
    if (fault_of(principal_moments(J)) != InertiaFault::none) {
      parts_.note(at_mass, "<inertial> that no rigid body has: taken as it is", false);
      set_key(node, "unphysical_inertia", make_scalar("true", at_mass), at_mass);
    }
  }

  void add_visual(int index, MjcfGeom& geom, const Pose& back) {
    geom.visual->body = model_.bodies[index].name;
    geom.visual->pose = (index == 0 ? request_.frame : back) * geom.pose;
    parts_.visuals.push_back(*geom.visual);
  }

  /// Joints one after the other, with bodies without mass between them; where there are none, a fixed one.
  void add_joints(int index) {
    MjcfBody& body = model_.bodies[index];
    const MjcfBody& parent = model_.bodies[body.parent];
    const Place place = body.element->place;
    Pose frame = at(negative(parent.anchor)) * body.pose;
    std::string hangs_on = parent.name;
    if (body.joints.empty()) {
      NodePtr node = make_map(place);
      set_key(node, "type", make_scalar("fixed", place), place);
      if (body.parent != 0) set_key(node, "parent", make_scalar(hangs_on, place, true), place);
      set_key(node, "child", make_scalar(body.name, place, true), place);
      if (!is_identity(frame)) set_key(node, "frame", frame_node(frame, place), place);
      set_key(parts_.joints, unique(model_.joint_names, body.name.substr(request_.prefix.size()) + "_fixed"), node,
              place);
      return;
    }
    for (std::size_t i = 0; i < body.joints.size(); ++i) {
      MjcfJoint& joint = model_.joints[body.joints[i]];
      const Place here = joint.element.place;
      const bool last = i + 1 == body.joints.size();
      const std::string child =
          last ? body.name : unique(model_.body_names, joint.name.substr(request_.prefix.size()) + "_link");
      NodePtr node = make_map(here);
      set_key(node, "type", make_scalar(joint.type, here), here);
      if (hangs_on != "world") set_key(node, "parent", make_scalar(hangs_on, here, true), here);
      set_key(node, "child", make_scalar(child, here, true), here);
      frame = frame * at(joint.anchor);
      if (joint.type == "free") {
        begin_free(joint, frame);
      } else if (!is_identity(frame)) {
        set_key(node, "frame", frame_node(frame, here), here);
      }
      if (joint.has_one_degree()) {
        const XmlAttribute* const axis = joint.element.attribute("axis");
        set_key(node, "axis", list_of(joint.axis, axis ? axis->place : here), axis ? axis->place : here);
      }
      add_resistances(joint, node);
      set_key(parts_.joints, joint.name, node, here);
      if (!last) add_link(body, joint, child);
      // Bodies between would part pairs that a joint keeps from touching.
      if (!last && i == 0 && hangs_on != "world") excluded_.push_back({hangs_on, body.name, here});
      hangs_on = child;
      frame = at(negative(joint.anchor));
      body.anchor = joint.anchor;
    }
  }

  /// A body between two joints of one.
  void add_link(const MjcfBody& body, const MjcfJoint& joint, const std::string& name) {
    const Place here = joint.element.place;
    NodePtr node = make_map(here);
    if (links_of(body) > 0) {
      add_mass(body, kShareOfLink, at(negative(joint.anchor)), node);
      parts_.note(here,
                  "several joints of a body: with semi_implicit what is between them has a thousandth of its mass");
    }
    set_key(parts_.bodies, name, node, here);
  }

  void begin_free(const MjcfJoint& joint, const Pose& pose) {
    if (is_identity(pose) || joint.has_key_position) return;
    const Place here = joint.element.place;
    NodePtr state = joint.key_state ? joint.key_state : make_map(here);
    if (!is_zero(pose.position)) set_key(state, "position", list_of(pose.position, here), here);
    if (pose.orientation != Turn{0, 0, 0, 1}) set_key(state, "orientation", list_of(pose.orientation, here), here);
    if (!joint.key_state) set_key(parts_.initial_state, joint.name, state, here);
  }

  void add_resistances(const MjcfJoint& joint, const NodePtr& node) {
    const XmlElement& element = joint.element;
    static const Names known{"name",
                             "class",
                             "type",
                             "group",
                             "pos",
                             "axis",
                             "limited",
                             "range",
                             "ref",
                             "springref",
                             "stiffness",
                             "armature",
                             "damping",
                             "frictionloss",
                             "user",
                             "margin",
                             "actuatorfrcrange",
                             "actuatorfrclimited",
                             "solreflimit",
                             "solimplimit",
                             "solreffriction",
                             "solimpfriction",
                             "springdamper",
                             "actuatorgravcomp",
                             "align"};
    tell_rest(element, known);
    for (const char* const name : {"solreffriction", "solimpfriction"}) {
      if (const XmlAttribute* const found = element.attribute(name)) {
        parts_.note(found->place, "<joint " + std::string(name) + "=...>: friction has a law of its own");
      }
    }
    if (const XmlAttribute* const found = element.attribute("actuatorgravcomp"); found && found->value != "false") {
      parts_.note(found->place, "<joint actuatorgravcomp=...>");
    }
    add_losses(element, node);
    mistakes_.attempt([&] { add_joint_spring(joint, node); });
    mistakes_.attempt([&] { add_joint_limit(joint, node); });
    mistakes_.attempt([&] {
      if (joint.has_one_degree()) add_drive(drive_of(joint), joint.name, node);
    });
  }

  /// A time constant and a damping ratio, where both are above zero, say what spring and damper the joint has, by the
  /// inertia that it moves where the file shows it.
  void take_spring_damper(MjcfJoint& joint) const {
    const XmlAttribute* const given = joint.element.attribute("springdamper");
    if (!given) return;
    const auto [time, ratio] = values_.numbers<2>(joint.element, *given);
    if (!(time > 0 && ratio > 0)) return;
    constexpr double kTiny = 1e-15;  // MuJoCo's mjMINVAL
    const double inertia = 1 / std::max(kTiny, joint.inverse_inertia), square = time * time * ratio * ratio;
    const Place place = given->place;
    std::erase_if(joint.element.attributes,
                  [](const XmlAttribute& one) { return one.name == "stiffness" || one.name == "damping"; });
    joint.element.attributes.push_back({"stiffness", shortest(inertia / std::max(kTiny, square)), place});
    joint.element.attributes.push_back({"damping", shortest(2 * inertia / std::max(kTiny, time)), place});
  }

  void add_joint_spring(const MjcfJoint& joint, const NodePtr& node) {
    const XmlElement& element = joint.element;
    if (const double stiffness = linear_part(element, "stiffness"); stiffness > 0) {
      const Place where = element.attribute("stiffness")->place;
      if (joint.type != "free") {
        // Of a ball MuJoCo's spring pulls to where the file shows it, whatever springref says.
        const bool turns = joint.has_one_degree();
        add_spring(stiffness, turns ? coordinate(joint, values_.number_or(element, "springref", 0)) : 0, where, node);
      } else {
        parts_.note(where, "<joint stiffness=...> of a free joint");
      }
    }
  }

  /// A position of the file as one of the scene.
  double coordinate(const MjcfJoint& joint, double value) const {
    return cleaned((joint.type == "revolute" ? document_.angle(value) : value) - joint.reference);
  }

  void add_joint_limit(const MjcfJoint& joint, const NodePtr& node) {
    const XmlElement& element = joint.element;
    if (joint.type == "free" || !is_limited(element, "range", "limited")) return;
    const XmlAttribute* const range = element.attribute("range");
    if (!range) values_.missing(element, "the attribute 'range', as it is limited");
    const auto ends = values_.numbers<2>(element, *range);
    if (!joint.has_one_degree()) return add_cone(joint, *range, ends, node);
    if (!(ends[0] < ends[1])) values_.refuse(element, *range, "a lower end below the upper one");
    // A margin, in rad or m, brings the ends where limits act nearer to each other; never past each other.
    const double margin = values_.number_or(element, "margin", 0);
    const double lower = coordinate(joint, ends[0]), upper = coordinate(joint, ends[1]);
    const double inwards = std::clamp(margin, 0.0, 0.49 * (upper - lower));
    add_limit({lower + inwards, upper - inwards}, range->place, node);
    materials_->add_limit_law(joint, node->find("limit"));
  }

  /// The greatest angle of a ball.
  void add_cone(const MjcfJoint& joint, const XmlAttribute& range, const std::array<double, 2>& ends,
                const NodePtr& node) {
    if (!(ends[0] == 0 && ends[1] > 0)) {
      return parts_.note(range.place, "<joint range=...> of a ball joint that is not from 0 to an angle");
    }
    NodePtr limit = make_map(range.place);
    const double angle = document_.angle(ends[1]);
    const double inwards = std::clamp(values_.number_or(joint.element, "margin", 0), 0.0, 0.98 * angle);
    set_key(limit, "upper", scalar_of(angle - inwards, range.place), range.place);
    materials_->add_limit_law(joint, limit);
    set_key(node, "limit", limit, range.place);
  }

  /// The drive of a hinge or a slide, whose effort the joint itself may bound too.
  MjcfDrive drive_of(const MjcfJoint& joint) {
    MjcfDrive drive = joint;
    const XmlAttribute* const range = joint.element.attribute("actuatorfrcrange");
    if (!range || !is_limited(joint.element, "actuatorfrcrange", "actuatorfrclimited")) return drive;
    const auto ends = values_.numbers<2>(joint.element, *range);
    const double bound = std::max(std::abs(ends[0]), std::abs(ends[1]));
    if (ends[0] != -ends[1]) parts_.note(range->place, "<joint actuatorfrcrange=...> with unequal limits");
    const bool is_bound = !drive.is_unlimited && drive.effort_limit > 0;
    drive.effort_limit = is_bound ? std::min(drive.effort_limit, bound) : bound;
    drive.is_unlimited = false;
    if (!joint.has_drive) drive.drive_place = range->place;
    return drive;
  }

  // ---- contact ------------------------------------------------------------------------------------------------------

  /// As a collision group of the scene.
  using Filter = MjcfMaterials::Filter;
  std::string group_of(const Filter& filter) const {
    return request_.group + "_" + std::to_string(filter.first) + "_" + std::to_string(filter.second);
  }

  void add_shape(int index, MjcfGeom& geom, const Pose& back, const NodePtr& listed) {
    const MjcfBody& body = model_.bodies[index];
    const XmlElement& element = geom.element;
    const Place place = element.place;
    const bool flat = geom.type == "plane" || geom.type == "hfield";
    const bool touches = touches_ && (geom.contact_type != 0 || geom.contact_affinity != 0);
    if (flat && body.moves) {
      return parts_.note(place, "<geom type=\"" + geom.type + "\"> of a body that moves: it is left away");
    }
    const bool of_world = index == 0 || flat;
    NodePtr shape = make_map(place);
    std::string name;
    if (!geom.name.empty()) {
      name = scene_name(request_.prefix, geom.name);
      if (!shape_names_.insert(name).second) name = unique(shape_names_, geom.name);
    }
    if (of_world) set_key(shape, "body", make_scalar("world", place), place);
    if (!of_world && !name.empty()) set_key(shape, "name", make_scalar(name, place, true), place);
    const double margin = values_.number_or(element, "margin", 0);
    if (margin > 0) set_key(geom.geometry, "margin", scalar_of(margin, place), place);
    set_key(shape, "geometry", geom.geometry, place);
    const Pose pose = of_world ? model_.drawn(index, request_.frame) * geom.pose : back * geom.pose;
    if (!is_identity(pose)) set_key(shape, "frame", frame_node(pose, place), place);
    set_key(shape, "material", materials_->material(index, geom), place);
    if (!touches) {
      set_key(shape, "collision", make_scalar("none", place), place);
    } else {
      filters_.insert(MjcfMaterials::filter_of(geom));
      filtered_.push_back({shape, MjcfMaterials::filter_of(geom)});
    }
    if (of_world) {
      if (name.empty()) name = unique(shape_names_, (index == 0 ? "world" : body.name) + "_" + geom.type);
      set_key(parts_.shapes, name, shape, place);
    } else {
      listed->list.push_back(shape);
    }
    if (geom.name.empty()) return;
    shapes_.emplace(geom.name, MjcfShape{index, &geom, name, shape, of_world ? nullptr : listed, touches, {}});
  }

  void add_contacts() {
    // Where everything meets everything, and no other robot is there, shapes are as all shapes are.
    const bool plain = filters_.size() <= 1 && request_.prefix.empty() &&
                       (filters_.empty() || MjcfMaterials::meet(*filters_.begin(), *filters_.begin())) &&
                       !only_others();
    for (const auto& [shape, filter] : filtered_) {
      if (plain) break;
      NodePtr node = make_map(shape->place);
      std::vector<std::string> meets = request_.meets;
      if (!only_others()) {
        for (const Filter& other : filters_) {
          if (MjcfMaterials::meet(filter, other)) meets.push_back(group_of(other));
        }
      }
      set_key(node, "groups", list_of_names({request_.group, group_of(filter)}, shape->place), shape->place);
      set_key(node, "meets", list_of_names(meets, shape->place), shape->place);
      set_key(shape, "collision", node, shape->place);
    }
    for (const auto& [a, b, place] : excluded_) parts_.exclude->list.push_back(list_of_names({a, b}, place));
    MjcfPairs pairs(*this, model_, *materials_, shapes_, shape_names_);
    each_of_section("contact", [&](const XmlElement& contact) {
      if (contact.name == "exclude") {
        std::string a;
        const bool has_first = mistakes_.attempt([&] { a = body_named(contact, "body1"); });
        const std::string b = body_named(contact, "body2");
        if (has_first) parts_.exclude->list.push_back(list_of_names({a, b}, contact.place));
      } else if (contact.name == "pair" && touches_) {
        pairs.add(contact);
      }
    });
  }
  bool only_others() const { return request_.self_collision_given && !request_.self_collision; }

  std::string body_named(const XmlElement& element, const char* key) const {
    const XmlAttribute& name = values_.attribute(element, key, "the name of a body");
    if (name.value == "world") return "world";
    const std::string ours = scene_name(request_.prefix, name.value);
    if (model_.body_names.contains(ours)) return ours;
    const std::vector<std::string> known(model_.body_names.begin(), model_.body_names.end());
    refuse_name(element, name, "the name of a body", known, model_);
  }

  struct Excluded {
    std::string a, b;
    Place place;
  };

  MjcfModel model_;
  double time_step_ = 0.002;                ///< of the file, s
  std::optional<MjcfMaterials> materials_;  ///< of the model
  MjcfShapes shapes_;
  Names shape_names_;
  std::vector<Excluded> excluded_;
  std::set<Filter> filters_;
  std::vector<std::pair<NodePtr, Filter>> filtered_;
  bool touches_ = true;
};

}  // namespace

RobotParts read_mjcf(const MjcfDocument& document, const RobotRequest& request, const RobotFiles& files,
                     const Sources& sources, Mistakes& mistakes) {
  RobotParts parts;
  if (const XmlAttribute* const name = document.root().attribute("model")) parts.name = name->value;
  MjcfWriter(MjcfReading(document, request, files, sources, parts, mistakes)).write();
  return parts;
}

}  // namespace backdrive::scene
