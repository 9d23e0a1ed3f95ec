#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "models/fields.h"
#include "models/mass_properties.h"
#include "models/meshes/convex_mesh.h"
#include "models/meshes/triangle_mesh.h"
#include "models/model_validity.h"
#include "scenes/robots/mjcf_document.h"
#include "scenes/robots/robot.h"

namespace backdrive::scene {
namespace {

using Names = std::set<std::string, std::less<>>;

struct MjcfJoint {
  XmlElement element;  ///< with the values of its class
  std::string name;    ///< in the scene
  std::string type;    ///< of the scene: revolute, prismatic, ball, free
  Numbers3 axis, anchor;
  double reference = 0;  ///< of `ref`: its position in MuJoCo where ours is zero
  double stiffness = 0, damping = 0, effort_limit = 0;
  double target = 0;           ///< of its drive, where MuJoCo's controls are zero
  bool limits_differ = false;  ///< whether an actuator has no limit that a drive can have
  Place drive_place;           ///< of the first actuator with gains or limits
  bool has_drive = false;
  NodePtr key_state;  ///< of the keyframe that it begins with
  bool has_key_position = false;
};

struct MjcfGeom {
  XmlElement element;  ///< with the values of its class
  std::string name;    ///< its own, or empty
  std::string type;    ///< of the scene
  Pose pose;           ///< in the axes of its body
  NodePtr geometry;    ///< null: left away
  MassProperties<double> mass{};
  int contact_type = 1, contact_affinity = 1;
};

struct MjcfBody {
  const XmlElement* element = nullptr;
  std::string name;  ///< in the scene
  int parent = -1;
  Pose pose;  ///< in the parent's axes
  std::vector<int> joints;
  std::vector<MjcfGeom> geoms;
  const XmlElement* inertial = nullptr;
  MassProperties<double> mass{};
  Numbers3 anchor{0, 0, 0};  ///< of its last joint: where the scene's frame of the body is
  bool moves = false;        ///< against the world
};

MassProperties<double> placed(const MassProperties<double>& mass, const Pose& pose) {
  const Mat3<double> R = matrix_of(pose.orientation);
  const Vec3<double> p = R * mass.com;
  return {
      mass.mass, {p.x + pose.position[0], p.y + pose.position[1], p.z + pose.position[2]}, rotated(R, mass.inertia)};
}

struct ConeSums {
  double volume = 0;
  Vec3<double> first{};   ///< ∫(x − apex) dV
  Sym3<double> second{};  ///< ∫(x − apex)(x − apex)ᵀ dV
};

/// Of the cones from an apex to each triangle: with corners a, b, c from the apex, V = a·(b × c)/6, ∫x dV = V (a + b +
/// c)/4 and ∫x xᵀ dV = V/20 (a aᵀ + b bᵀ + c cᵀ + s sᵀ), s = a + b + c. Where not `signed_volumes`, each counts as
/// positive, whichever way its triangle looks.
ConeSums cones(const TriangleMesh& mesh, const Vec3<double>& apex, bool signed_volumes) {
  ConeSums sums;
  for (const auto& triangle : mesh.triangles) {
    std::array<Vec3<double>, 4> x;
    for (std::size_t k = 0; k < 3; ++k) x[k] = mesh.vertices[triangle[k]] - apex;
    x[3] = x[0] + x[1] + x[2];
    double volume = dot(x[0], cross(x[1], x[2])) / 6;
    if (!signed_volumes) volume = std::abs(volume);
    sums.volume += volume;
    sums.first += x[3] * (volume / 4);
    for (const Vec3<double>& v : x) {
      const double w = volume / 20;
      sums.second +=
          Sym3<double>{w * v.x * v.x, w * v.y * v.y, w * v.z * v.z, w * v.x * v.y, w * v.x * v.z, w * v.y * v.z};
    }
  }
  return sums;
}

/// As MuJoCo takes the moments of a mesh (`inertia`, by default "legacy": volumes count as positive), whether it is
/// closed or not: the centre of mass by cones from the mean of the surface, then the second moments by cones from
/// there, per volume of these, with the volume of the first.
SolidMoments<double> moments_of_cones(const TriangleMesh& mesh, bool exact) {
  double area = 0;
  Vec3<double> middle{};
  for (const auto& [a, b, c] : mesh.triangles) {
    const Vec3<double>&A = mesh.vertices[a], &B = mesh.vertices[b], &C = mesh.vertices[c];
    const Vec3<double> normal = cross(B - A, C - A);
    const double twice = std::sqrt(dot(normal, normal));
    area += twice;
    middle += (A + B + C) * (twice / 3);
  }
  if (!(area > 0)) return {};
  middle = middle * (1 / area);
  const ConeSums from_middle = cones(mesh, middle, exact);
  if (!(from_middle.volume > 0)) return {};
  const Vec3<double> com = middle + from_middle.first * (1 / from_middle.volume);
  const ConeSums from_com = cones(mesh, com, exact);
  return {from_com.volume, com, from_com.second};
}

Pose at(const Numbers3& position) {
  return {position, {0, 0, 0, 1}};
}
Numbers3 negative(const Numbers3& x) {
  return {-x[0], -x[1], -x[2]};
}

/// Numbers of a scene are never "-0".
double cleaned(double x) {
  return x == 0 ? 0.0 : x;
}

class MjcfReader {
 public:
  MjcfReader(const MjcfDocument& document, const RobotRequest& request, const RobotFiles& files, const Sources& sources)
      : document_(document), request_(request), files_(files), sources_(sources), values_(sources) {}

  RobotParts read() {
    if (const XmlAttribute* const name = document_.root().attribute("model")) parts_.name = name->value;
    check_sections();
    read_options();
    for (const XmlElement* const asset : document_.section("asset")) learn_asset(*asset);
    bodies_.push_back({});
    bodies_[0].name = "world";
    bodies_[0].element = &document_.root();
    for (const XmlElement& section : document_.root().children) {
      if (section.name == "worldbody") walk(section, {0, {}, "", ""});
    }
    if (bodies_.size() == 1) values_.missing(document_.root(), "at least one <body> in <worldbody>");
    hold_or_free_base();
    find_masses();
    for (const XmlElement* const actuator : document_.section("actuator")) add_actuator(*actuator);
    add_key();
    for (std::size_t b = 0; b < bodies_.size(); ++b) add_body(static_cast<int>(b));
    add_contacts();
    add_held_parts();
    return std::move(parts_);
  }

 private:
  struct Walk {
    int body;
    Pose frame;               ///< of what is read, in the axes of the body
    std::string child_class;  ///< of elements that name none
    std::string suffix;       ///< of names, in replicas
  };

  // ---- what is read, and what is told -------------------------------------------------------------------------------

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

  /// Tells of attributes that mean something which is not taken over.
  void tell_rest(const XmlElement& element, const Names& known) {
    for (const XmlAttribute& attribute : element.attributes) {
      if (known.contains(attribute.name)) continue;
      parts_.note(attribute.place, "<" + element.name + " " + excerpt(attribute.name) + "=...>");
    }
  }

  int whole(const XmlElement& element, const char* name, int otherwise) const {
    const XmlAttribute* const found = element.attribute(name);
    if (!found) return otherwise;
    const double value = values_.number(element, *found);
    if (!(std::abs(value) <= 2147483647.0) || value != std::floor(value)) {
      values_.refuse(element, *found, "a whole number of 32 bits");
    }
    return static_cast<int>(value);
  }
  bool flag(const XmlElement& element, const char* name, bool otherwise) const {
    const XmlAttribute* const found = element.attribute(name);
    if (!found) return otherwise;
    if (found->value != "true" && found->value != "false") values_.refuse(element, *found, "true or false");
    return found->value == "true";
  }

  void read_options() {
    for (const XmlElement& element : document_.root().children) {
      if (element.name != "option") continue;
      for (const char* const name : {"wind", "density", "viscosity"}) {
        const XmlAttribute* const found = element.attribute(name);
        if (!found) continue;
        for (const double value : values_.list(element, *found, 1, 3)) {
          if (value != 0) values_.refuse(element, *found, "0: bodies move in a vacuum here");
        }
      }
      if (const XmlAttribute* const gravity = element.attribute("gravity")) {
        parts_.gravity = list_of(values_.numbers<3>(element, *gravity), gravity->place);
      }
      if (const XmlAttribute* const step = element.attribute("timestep")) {
        if (!(values_.number(element, *step) > 0)) values_.refuse(element, *step, "a number above 0");
        parts_.time_step = scalar_of(values_.number(element, *step), step->place);
      }
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

  void learn_asset(const XmlElement& asset) {
    static const Names looks{"texture", "material", "skin"};
    if (looks.contains(asset.name)) return parts_.note(asset.place, "<" + asset.name + ">", false);
    if (asset.name != "mesh" && asset.name != "hfield") {
      return parts_.note(asset.place, "<" + excerpt(asset.name) + "> in <asset>");
    }
    std::string name;
    if (const XmlAttribute* const given = asset.attribute("name")) {
      name = given->value;
    } else {
      name = std::filesystem::path(values_.attribute(asset, "file", "of the " + asset.name).value).stem();
    }
    (asset.name == "mesh" ? meshes_ : height_fields_).emplace(name, &asset);
  }

  // ---- bodies -------------------------------------------------------------------------------------------------------

  std::string unique(Names& taken, std::string name) const {
    name = scene_name(request_.prefix, name);
    std::string result = name;
    for (int i = 1; !taken.insert(result).second; ++i) result = name + "_" + std::to_string(i);
    return result;
  }
  /// The name that an element has itself, with the suffix of its replica; else another.
  std::string name_of(Names& taken, const XmlElement& element, const Walk& walk, const std::string& otherwise) {
    const XmlAttribute* const own = element.attribute("name");
    if (!own || own->value.empty()) return unique(taken, otherwise);
    const std::string name = scene_name(request_.prefix, own->value + walk.suffix);
    if (!taken.insert(name).second) values_.refuse(element, *own, "a name that no other " + element.name + " has");
    return name;
  }

  std::string class_of(const XmlElement& element, const std::string& around) const {
    const XmlAttribute* const own = element.attribute("childclass");
    return own ? own->value : around;
  }

  void walk(const XmlElement& parent, const Walk& around) {
    for (const XmlElement& element : parent.children) {
      if (++walked_ > kMaxNodes) {
        fail(sources_, element.place, "", "more than " + std::to_string(kMaxNodes) + " elements, replicas among them",
             "a smaller model");
      }
      if (element.name == "body") {
        add_child(element, around);
      } else if (element.name == "frame") {
        Walk inside = around;
        inside.frame = around.frame * document_.pose(element);
        inside.child_class = class_of(element, around.child_class);
        walk(element, inside);
      } else if (element.name == "replicate") {
        replicate(element, around);
      } else if (element.name == "geom") {
        add_geom(element, around);
      } else if (element.name == "joint" || element.name == "freejoint") {
        add_joint(element, around);
      } else if (element.name == "inertial") {
        if (around.body == 0) values_.missing(element, "a body around it: the world has no mass");
        bodies_[around.body].inertial = &element;
      } else if (element.name == "site" || element.name == "camera" || element.name == "light") {
        parts_.note(element.place, "<" + element.name + ">", false);
      } else if (element.name == "composite" || element.name == "flexcomp" || element.name == "attach" ||
                 element.name == "plugin") {
        fail(sources_, element.place, "", "element '" + element.name + "'",
             "bodies that are written out: this builds parts that are not known here");
      } else {
        parts_.note(element.place, "<" + excerpt(element.name) + "> of a body");
      }
    }
  }

  void replicate(const XmlElement& element, const Walk& around) {
    const double count = values_.number(element, values_.attribute(element, "count", "of copies"));
    if (!(count >= 1 && count <= 10'000) || count != std::floor(count)) {
      values_.refuse(element, *element.attribute("count"), "a whole number from 1 to 10,000");
    }
    Pose step = document_.pose(element);
    if (const XmlAttribute* const offset = element.attribute("offset")) {
      step.position = values_.numbers<3>(element, *offset);
    }
    const XmlAttribute* const between = element.attribute("sep");
    const std::size_t digits = std::to_string(static_cast<int>(count) - 1).size();
    Walk inside = around;
    for (int i = 0; i < static_cast<int>(count); ++i) {
      std::string number = std::to_string(i);
      number.insert(0, digits - number.size(), '0');
      inside.suffix = around.suffix + (between ? between->value : "") + number;
      walk(element, inside);
      inside.frame = inside.frame * step;
    }
  }

  void add_child(const XmlElement& element, const Walk& around) {
    static const Names known{"name",  "childclass", "pos",   "quat",     "axisangle", "xyaxes",
                             "zaxis", "euler",      "mocap", "gravcomp", "user",      "sleep"};
    tell_rest(element, known);
    MjcfBody body;
    body.element = &element;
    body.parent = around.body;
    body.pose = around.frame * document_.pose(element);
    if (around.body == 0) body.pose = request_.frame * body.pose;
    body.name = name_of(body_names_, element, around, "body_" + std::to_string(bodies_.size()));
    body.moves = bodies_[around.body].moves;
    if (flag(element, "mocap", false)) {
      parts_.note(element.place, "<body mocap=\"true\">: it stands where it is");
    }
    if (values_.number_or(element, "gravcomp", 0) != 0) {
      parts_.note(element.place, "<body gravcomp=...>: gravity acts on it in full");
    }
    const int index = static_cast<int>(bodies_.size());
    bodies_.push_back(std::move(body));
    walk(element, {index, {}, class_of(element, around.child_class), around.suffix});
  }

  void add_joint(const XmlElement& given, const Walk& around) {
    if (around.body == 0) values_.missing(given, "a body around it: the world does not move");
    MjcfJoint joint;
    // <freejoint> takes no values of a class.
    joint.element = given.name == "joint" ? document_.with_defaults(given, "joint", around.child_class) : given;
    const XmlElement& element = joint.element;
    MjcfBody& body = bodies_[around.body];
    const XmlAttribute* const type = element.attribute("type");
    const std::string word = given.name == "freejoint" ? "free" : type ? type->value : "hinge";
    static const std::map<std::string, std::string, std::less<>> types{
        {"hinge", "revolute"}, {"slide", "prismatic"}, {"ball", "ball"}, {"free", "free"}};
    const auto known = types.find(word);
    if (known == types.end()) values_.refuse(element, *type, "one of hinge, slide, ball and free");
    joint.type = known->second;
    const XmlAttribute* const position = element.attribute("pos");
    joint.anchor = position ? values_.numbers<3>(element, *position) : Numbers3{0, 0, 0};
    joint.anchor = (around.frame * at(joint.anchor)).position;
    if (joint.type == "free") joint.anchor = {0, 0, 0};
    const XmlAttribute* const axis = element.attribute("axis");
    joint.axis = axis ? values_.numbers<3>(element, *axis) : Numbers3{0, 0, 1};
    if (is_zero(joint.axis)) values_.refuse(element, *axis, "an axis that is not zero");
    joint.axis = (Pose{{0, 0, 0}, around.frame.orientation} * at(joint.axis)).position;
    if (joint.type == "free" && (body.parent != 0 || !body.joints.empty())) {
      fail(sources_, element.place, title(element), "a free joint of a body that hangs on another one",
           "one of a body of the world, and no other joint there");
    }
    if (!body.joints.empty() && joints_[body.joints.back()].type == "free") {
      fail(sources_, element.place, title(element), "a joint beside a free one", "no other joint there");
    }
    const bool turns = joint.type == "revolute";
    const double reference = values_.number_or(element, "ref", 0);
    joint.reference = turns ? document_.angle(reference) : joint.type == "prismatic" ? reference : 0;
    if (joint.reference != 0) {
      parts_.note(element.place, "<joint ref=...>: positions are counted from it", false);
    }
    joint.name = name_of(joint_names_, given, around,
                         body.name.substr(request_.prefix.size()) + (joint.type == "free" ? "_free" : "_joint"));
    body.joints.push_back(static_cast<int>(joints_.size()));
    body.moves = true;
    if (const XmlAttribute* const own = given.attribute("name")) {
      joint_of_name_.emplace(own->value + around.suffix, static_cast<int>(joints_.size()));
    }
    joints_.push_back(std::move(joint));
  }

  /// What the scene says of the base, where it says anything.
  void hold_or_free_base() {
    if (!request_.base_given) return;
    std::vector<int> of_world;
    for (std::size_t b = 1; b < bodies_.size(); ++b) {
      if (bodies_[b].parent == 0) of_world.push_back(static_cast<int>(b));
    }
    for (const int b : of_world) {
      MjcfBody& body = bodies_[b];
      const bool is_free = !body.joints.empty() && joints_[body.joints[0]].type == "free";
      if (!request_.floating && is_free) body.joints.clear();
      if (request_.floating && !is_free) {
        if (!body.joints.empty() || of_world.size() != 1) {
          fail(sources_, request_.place, "base", "value 'floating'",
               "a model with one body on the world that has no joints: this one says itself how it moves");
        }
        MjcfJoint joint;
        joint.element.name = "freejoint";
        joint.element.place = request_.place;
        joint.type = "free";
        joint.axis = {0, 0, 1};
        joint.anchor = {0, 0, 0};
        joint.name = unique(joint_names_, "base");
        body.joints.push_back(static_cast<int>(joints_.size()));
        joints_.push_back(std::move(joint));
      }
    }
  }

  // ---- shapes and masses --------------------------------------------------------------------------------------------

  void add_geom(const XmlElement& given, const Walk& around) {
    MjcfGeom geom;
    geom.element = document_.with_defaults(given, "geom", around.child_class);
    const XmlElement& element = geom.element;
    static const Names known{"name",     "class",  "type",       "contype",   "conaffinity",  "condim",    "group",
                             "priority", "size",   "fromto",     "pos",       "quat",         "axisangle", "xyaxes",
                             "zaxis",    "euler",  "mass",       "density",   "shellinertia", "friction",  "margin",
                             "gap",      "hfield", "mesh",       "material",  "rgba",         "user",      "solref",
                             "solimp",   "solmix", "fluidshape", "fluidcoef", "fitscale"};
    tell_rest(element, known);
    const XmlAttribute* const type = element.attribute("type");
    geom.type = type ? type->value : "sphere";
    static const Names types{"plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh"};
    if (geom.type == "sdf") {
      fail(sources_, type->place, title(element), "value 'sdf'", "another shape: distance fields are not read");
    }
    if (!types.contains(geom.type)) {
      values_.refuse(element, *type, "one of plane, hfield, sphere, capsule, ellipsoid, cylinder, box and mesh");
    }
    if (flag(element, "shellinertia", false)) {
      values_.refuse(element, *element.attribute("shellinertia"), "false: shapes are solid");
    }
    if (const XmlAttribute* const mesh = element.attribute("mesh"); mesh && geom.type != "mesh") {
      values_.refuse(element, *mesh, "a geom of type mesh: no other shape is fitted to one");
    }
    const XmlAttribute* const name = given.attribute("name");
    if (name && !name->value.empty()) {
      geom.name = name->value + around.suffix;
      geom_names_.insert(geom.name);
    }
    geom.contact_type = whole(element, "contype", 1);
    geom.contact_affinity = whole(element, "conaffinity", 1);
    geom.pose = document_.pose(element);
    read_form(geom);
    geom.pose = around.frame * geom.pose;
    geom.mass = placed(geom.mass, geom.pose);
    bodies_[around.body].geoms.push_back(std::move(geom));
  }

  /// Geometry, pose and mass of a geom about its own frame.
  void read_form(MjcfGeom& geom) {
    const XmlElement& element = geom.element;
    const std::string& type = geom.type;
    geom.geometry = make_map(element.place);
    set_key(geom.geometry, "type", make_scalar(type == "hfield" ? "height_field" : type, element.place), element.place);
    if (type == "plane") return;
    if (type == "hfield") return read_height_field(geom);
    if (type == "mesh") return read_mesh_geom(geom);
    std::vector<double> size;
    if (const XmlAttribute* const given = element.attribute("size")) size = values_.list(element, *given, 1, 3);
    const std::size_t wanted = type == "sphere" ? 1 : type == "capsule" || type == "cylinder" ? 2 : 3;
    const XmlAttribute* const ends = element.attribute("fromto");
    if (ends && type != "sphere") {
      const auto e = values_.numbers<6>(element, *ends);
      const Numbers3 along{e[0] - e[3], e[1] - e[4], e[2] - e[5]};
      const double length = std::hypot(along[0], along[1], along[2]);
      if (!(length > 1e-12)) values_.refuse(element, *ends, "two points that are apart");
      if (size.empty()) values_.missing(element, "the attribute 'size' (the radius in m)");
      geom.pose = {{(e[0] + e[3]) / 2, (e[1] + e[4]) / 2, (e[2] + e[5]) / 2}, turn_from_z(along)};
      size = wanted == 2 ? std::vector<double>{size[0], length / 2} : std::vector<double>{size[0], size[0], length / 2};
    }
    if (size.size() < wanted) {
      const XmlAttribute* const given = element.attribute("size");
      const std::string expected =
          std::to_string(wanted) + (wanted == 1 ? " length" : " lengths") + " in m for a " + type;
      if (!given) values_.missing(element, "the attribute 'size' (" + expected + ")");
      values_.refuse(element, *given, expected);
    }
    size.resize(wanted);
    if (std::ranges::any_of(size, [](double length) { return !(length > 0); })) {
      values_.refuse(element, *element.attribute("size"), "lengths above 0");
    }
    set_key(geom.geometry, "scale", list_of(size, element.place), element.place);
    size.resize(3);
    static const std::map<std::string, GeometryType, std::less<>> forms{{"sphere", GeometryType::sphere},
                                                                        {"capsule", GeometryType::capsule},
                                                                        {"ellipsoid", GeometryType::ellipsoid},
                                                                        {"cylinder", GeometryType::cylinder},
                                                                        {"box", GeometryType::box}};
    const VolumeMoments<double> m = volume_moments<double>(forms.find(type)->second, {size[0], size[1], size[2]});
    set_mass(geom, m.volume, {0, 0, 0}, {m.second.x, m.second.y, m.second.z, 0, 0, 0});
  }

  /// By `mass`, or else by `density`, of a form with this volume, centre and ∫(x − centre)(x − centre)ᵀ dV.
  void set_mass(MjcfGeom& geom, double volume, const Vec3<double>& com, const Sym3<double>& second) {
    const XmlAttribute* const mass = geom.element.attribute("mass");
    const double density =
        mass ? values_.not_negative(geom.element, *mass) / volume : values_.number_or(geom.element, "density", 1000);
    if (!(density >= 0)) values_.missing(geom.element, "a density of at least 0");
    const double trace = second.xx + second.yy + second.zz;
    geom.mass = {density * volume,
                 com,
                 {density * (trace - second.xx), density * (trace - second.yy), density * (trace - second.zz),
                  -density * second.xy, -density * second.xz, -density * second.yz}};
  }

  const XmlElement& asset(const MjcfGeom& geom, const char* kind,
                          const std::map<std::string, const XmlElement*, std::less<>>& known) const {
    const XmlAttribute& name = values_.attribute(geom.element, kind, "the name of an asset");
    const auto found = known.find(name.value);
    if (found == known.end()) {
      std::vector<std::string> names;
      for (const auto& [one, unused] : known) names.push_back(one);
      values_.refuse(geom.element, name, "the name of a <" + std::string(kind) + "> in <asset>",
                     nearest_name(name.value.substr(0, 200), names));
    }
    return *found->second;
  }

  void read_height_field(MjcfGeom& geom) {
    const XmlElement& field = asset(geom, "hfield", height_fields_);
    const XmlAttribute* const elevation = field.attribute("elevation");
    if (!elevation) {
      parts_.note(geom.element.place, "<geom type=\"hfield\"> whose heights are not in the text: it is left away");
      geom.geometry = nullptr;
      return;
    }
    const auto size = values_.numbers<4>(field, values_.attribute(field, "size", "four lengths in m"));
    const double rows = values_.number(field, values_.attribute(field, "nrow", "rows")),
                 columns = values_.number(field, values_.attribute(field, "ncol", "columns"));
    if (!(rows >= 2 && columns >= 2 && rows * columns <= 200'000)) {
      values_.missing(field, "at least two rows and columns, and at most 200,000 heights");
    }
    const auto count = static_cast<std::size_t>(rows * columns), width = static_cast<std::size_t>(columns);
    std::vector<double> heights = values_.list(field, *elevation, count, count);
    const auto [low, high] = std::ranges::minmax(heights);
    NodePtr list = make_list(elevation->place);
    for (std::size_t row = 0; row < count / width; ++row) {
      // In the text the highest y comes first, in scenes the lowest.
      const auto begin = heights.begin() + static_cast<std::ptrdiff_t>((count / width - 1 - row) * width);
      std::vector<double> values(begin, begin + static_cast<std::ptrdiff_t>(width));
      for (double& height : values) height = high > low ? (height - low) / (high - low) : 0;
      list->list.push_back(list_of(values, elevation->place));
    }
    set_key(geom.geometry, "heights", list, elevation->place);
    set_key(geom.geometry, "scale", list_of(Numbers3{size[0], size[1], size[2]}, field.place), field.place);
  }

  /// What geoms of one mesh share.
  struct ReadMesh {
    std::vector<Entry> geometry;  ///< keys of the scene
    SolidMoments<double> moments{};
  };

  void read_mesh_geom(MjcfGeom& geom) {
    const XmlElement& given = asset(geom, "mesh", meshes_);
    if (!request_.collision && !needs_masses()) {
      geom.geometry = nullptr;
      return;
    }
    auto known = read_meshes_.find(&given);
    if (known == read_meshes_.end()) known = read_meshes_.emplace(&given, mesh_of(given)).first;
    const ReadMesh& mesh = known->second;
    for (const Entry& entry : mesh.geometry) geom.geometry->map.push_back(entry);
    if (needs_masses()) set_mass(geom, mesh.moments.volume, mesh.moments.com, mesh.moments.second);
  }

  ReadMesh mesh_of(const XmlElement& given) {
    const XmlElement mesh = document_.with_defaults(given, "mesh", "");
    static const Names known{"name",        "class",    "file",         "vertex",         "scale", "refpos",
                             "refquat",     "inertia",  "normal",       "texcoord",       "face",  "smoothnormal",
                             "maxhullvert", "material", "content_type", "octree_maxdepth"};
    tell_rest(mesh, known);
    const XmlAttribute* const name = mesh.attribute("file");
    if (!name) {
      TriangleMesh form = listed(mesh);
      return placed_mesh(mesh, form, "");
    }
    std::filesystem::path path = name->value;
    if (document_.compiler().strip_paths) path = path.filename();
    if (path.is_relative()) path = document_.compiler().mesh_folder / path;
    if (path.extension() == ".msh") {
      fail(sources_, name->place, title(mesh) + ": file", "value '" + excerpt(name->value) + "'",
           "an OBJ, STL or COLLADA file");
    }
    const std::filesystem::path found = files_.find(path.string(), sources_, name->place, title(mesh) + ": file");
    TriangleMesh form = read_mesh(found);
    return placed_mesh(mesh, form, found.string());
  }

  /// A mesh whose vertices, and maybe triangles, are in the text.
  TriangleMesh listed(const XmlElement& mesh) const {
    const XmlAttribute& vertex = values_.attribute(mesh, "vertex", "or 'file', of the mesh");
    const std::vector<double> numbers = values_.list(mesh, vertex, 12, 600'000);
    if (numbers.size() % 3 != 0) values_.refuse(mesh, vertex, "three numbers a vertex");
    TriangleMesh form;
    for (std::size_t i = 0; i < numbers.size(); i += 3) {
      form.vertices.push_back({numbers[i], numbers[i + 1], numbers[i + 2]});
    }
    const XmlAttribute* const face = mesh.attribute("face");
    if (!face) return form;
    const std::vector<double> corners = values_.list(mesh, *face, 3, 1'200'000);
    if (corners.size() % 3 != 0) values_.refuse(mesh, *face, "three vertices a triangle");
    for (std::size_t i = 0; i < corners.size(); i += 3) {
      std::array<int, 3> triangle{};
      for (std::size_t k = 0; k < 3; ++k) {
        const double corner = corners[i + k];
        if (!(corner >= 0 && corner < static_cast<double>(form.vertices.size())) || corner != std::floor(corner)) {
          values_.refuse(mesh, *face, "numbers of vertices, from 0");
        }
        triangle[k] = static_cast<int>(corner);
      }
      form.triangles.push_back(triangle);
    }
    return form;
  }

  /// Scaled, about its reference; by its file where a scene can say the same of that.
  ReadMesh placed_mesh(const XmlElement& mesh, TriangleMesh& form, const std::string& file) const {
    ReadMesh result;
    const XmlAttribute* const factors = mesh.attribute("scale");
    const Numbers3 scale = factors ? values_.numbers<3>(mesh, *factors) : Numbers3{1, 1, 1};
    const XmlAttribute *const position = mesh.attribute("refpos"), *const turn = mesh.attribute("refquat");
    Pose reference;
    if (position) reference.position = values_.numbers<3>(mesh, *position);
    if (turn) {
      XmlElement as_quaternion = mesh;
      as_quaternion.attributes = {{"quat", turn->value, turn->place}};
      reference.orientation = document_.orientation(as_quaternion);
    }
    const Mat3<double> back = transposed(matrix_of(reference.orientation));
    for (Vec3<double>& v : form.vertices) {
      v = back * Vec3<double>{v.x - reference.position[0], v.y - reference.position[1], v.z - reference.position[2]};
      v = {v.x * scale[0], v.y * scale[1], v.z * scale[2]};
    }
    if (scale[0] * scale[1] * scale[2] < 0) {
      for (auto& corners : form.triangles) std::swap(corners[1], corners[2]);
    }
    const bool as_file =
        !file.empty() && !position && !turn && std::ranges::all_of(scale, [](double f) { return f > 0; });
    const auto add = [&](const char* key, NodePtr value, Place place) {
      result.geometry.push_back({key, place, std::move(value)});
    };
    if (as_file) {
      add("file", make_scalar(file, mesh.place, true), mesh.place);
      if (scale != Numbers3{1, 1, 1}) add("scale", list_of(scale, mesh.place), mesh.place);
    } else {
      NodePtr vertices = make_list(mesh.place);
      for (const Vec3<double>& v : form.vertices)
        vertices->list.push_back(list_of(Numbers3{v.x, v.y, v.z}, mesh.place));
      add("vertices", vertices, mesh.place);
    }
    if (!needs_masses()) return result;
    const XmlAttribute* const way = mesh.attribute("inertia");
    if (way && way->value == "shell") values_.refuse(mesh, *way, "another one: shapes are solid");
    const bool hull = form.triangles.empty() || (way && way->value == "convex");
    const SolidMoments<double> m = hull ? solid_moments(convex_hull(form, title(mesh), kMostHullVertices))
                                        : moments_of_cones(form, way && way->value == "exact");
    if (!(m.volume > 0)) values_.missing(mesh, "a surface that bounds a volume, as mass and inertia come from it");
    result.moments = m;
    return result;
  }

  /// Whether any body's mass may come from its geoms.
  bool needs_masses() const { return document_.compiler().inertia != MjcfCompiler::Inertia::given; }

  void find_masses() {
    const MjcfCompiler& compiler = document_.compiler();
    double total = 0;
    for (std::size_t b = 1; b < bodies_.size(); ++b) {
      MjcfBody& body = bodies_[b];
      const bool from_geoms = compiler.inertia == MjcfCompiler::Inertia::from_geoms ||
                              (compiler.inertia == MjcfCompiler::Inertia::automatic && !body.inertial);
      if (from_geoms) {
        for (const MjcfGeom& geom : body.geoms) {
          const int group = whole(geom.element, "group", 0);
          if (group >= compiler.first_group && group <= compiler.last_group) body.mass = combined(body.mass, geom.mass);
        }
      } else if (body.inertial) {
        body.mass = mass_of(*body.inertial);
      }
      bound(body);
      total += body.mass.mass;
    }
    if (compiler.total_mass > 0 && total > 0) {
      const double factor = compiler.total_mass / total;
      for (MjcfBody& body : bodies_) {
        body.mass.mass *= factor;
        Sym3<double>& J = body.mass.inertia;
        J = {J.xx * factor, J.yy * factor, J.zz * factor, J.xy * factor, J.xz * factor, J.yz * factor};
      }
    }
  }

  MassProperties<double> mass_of(const XmlElement& inertial) const {
    MassProperties<double> own{};
    own.mass = values_.not_negative(inertial, values_.attribute(inertial, "mass", "kg"));
    const XmlAttribute *const full = inertial.attribute("fullinertia"), *const axes = inertial.attribute("diaginertia");
    if (full) {
      const auto J = values_.numbers<6>(inertial, *full);
      own.inertia = {J[0], J[1], J[2], J[3], J[4], J[5]};
    } else if (axes) {
      const auto J = values_.numbers<3>(inertial, *axes);
      own.inertia = {J[0], J[1], J[2], 0, 0, 0};
    } else {
      values_.missing(inertial, "the attribute 'diaginertia' or 'fullinertia'");
    }
    values_.attribute(inertial, "pos", "of the centre of mass");
    return placed(own, document_.pose(inertial));
  }

  /// Lower bounds of <compiler>, and its balance: an inertia that no body has becomes that of a ball.
  void bound(MjcfBody& body) const {
    const MjcfCompiler& compiler = document_.compiler();
    body.mass.mass = std::max(body.mass.mass, compiler.least_mass);
    Sym3<double>& J = body.mass.inertia;
    const PrincipalMoments moments = principal_moments(J);
    if (compiler.balance_inertia && fault_of(moments) != InertiaFault::none) {
      const double mean = (J.xx + J.yy + J.zz) / 3;
      J = {mean, mean, mean, 0, 0, 0};
    }
    if (compiler.least_inertia > 0 && principal_moments(J).least < compiler.least_inertia) J = raised(J);
  }

  /// Principal moments below the bound raised to it, about the same axes.
  Sym3<double> raised(const Sym3<double>& J) const {
    Eigen::Matrix3d matrix;
    matrix << J.xx, J.xy, J.xz, J.xy, J.yy, J.yz, J.xz, J.yz, J.zz;
    const Eigen::SelfAdjointEigenSolver<Eigen::Matrix3d> axes(matrix);
    const Eigen::Vector3d moments = axes.eigenvalues().cwiseMax(document_.compiler().least_inertia);
    matrix = axes.eigenvectors() * moments.asDiagonal() * axes.eigenvectors().transpose();
    return {matrix(0, 0), matrix(1, 1), matrix(2, 2), matrix(0, 1), matrix(0, 2), matrix(1, 2)};
  }

  // ---- actuators ----------------------------------------------------------------------------------------------------

  /// force = gain·ctrl + bias − stiffness·length − damping·velocity, length and velocity those of the joint times gear.
  struct Law {
    double gain = 1, bias = 0, stiffness = 0, damping = 0;
  };

  void add_actuator(const XmlElement& given) {
    XmlElement element = document_.with_defaults(given, "actuator", "");
    const XmlAttribute* const shortcut = element.attribute("shortcut");
    std::string kind = given.name;
    if (kind == "general" && shortcut && !element.attribute("gainprm") && !element.attribute("biasprm")) {
      kind = shortcut->value;
    }
    static const Names known{
        "name",        "class",       "group", "joint",    "jointinparent", "ctrllimited", "forcelimited", "ctrlrange",
        "forcerange",  "gear",        "kp",    "kv",       "gaintype",      "biastype",    "dyntype",      "gainprm",
        "biasprm",     "dynprm",      "user",  "shortcut", "actlimited",    "actrange",    "actdim",       "actearly",
        "lengthrange", "cranklength", "delay", "nsample",  "interp"};
    const std::string what = "<actuator> <" + given.name;
    const XmlAttribute* name = element.attribute("joint");
    if (!name) name = element.attribute("jointinparent");
    if (!name) {
      static const Names ways{"tendon", "site", "body", "slidersite", "cranksite", "refsite"};
      for (const XmlAttribute& one : element.attributes) {
        if (ways.contains(one.name)) return parts_.note(given.place, what + " " + one.name + "=...>");
      }
      return parts_.note(given.place, what + "> on no joint");
    }
    const auto found = joint_of_name_.find(name->value);
    if (found == joint_of_name_.end()) {
      std::vector<std::string> names;
      for (const auto& [one, unused] : joint_of_name_) names.push_back(one);
      values_.refuse(element, *name, "the name of a joint", nearest_name(name->value.substr(0, 200), names));
    }
    MjcfJoint& joint = joints_[found->second];
    if (joint.type != "revolute" && joint.type != "prismatic") {
      return parts_.note(given.place, what + "> on a joint of several degrees of freedom");
    }
    if (kind == "general" || kind == "motor" || kind == "position" || kind == "velocity") tell_rest(element, known);
    const std::optional<Law> law = law_of(element, kind);
    if (!law) return parts_.note(given.place, what + ">: of this kind, or with a state of its own, or not affine");
    const XmlAttribute* const gears = element.attribute("gear");
    const double gear = gears ? values_.list(element, *gears, 1, 6)[0] : 1;
    const double before = joint.stiffness;
    joint.stiffness += law->stiffness * gear * gear;
    joint.damping += law->damping * gear * gear;
    if (joint.stiffness > 0) {
      // Where controls are zero: torque = gear·bias − stiffness·gear²·(position + reference).
      joint.target =
          (joint.target * before + law->bias * gear - law->stiffness * gear * gear * joint.reference) / joint.stiffness;
    } else if (law->bias != 0) {
      parts_.note(given.place, what + "> with a constant force");
    }
    if (!joint.has_drive) joint.drive_place = given.place;
    joint.has_drive = true;
    bound_effort(joint, element, *law, std::abs(gear), what);
  }

  std::optional<Law> law_of(const XmlElement& element, const std::string& kind) const {
    const auto list = [&](const char* name) {
      const XmlAttribute* const found = element.attribute(name);
      std::vector<double> values = found ? values_.list(element, *found, 1, 10) : std::vector<double>{};
      values.resize(std::max<std::size_t>(values.size(), 3));
      if (!found && std::string_view(name) == "gainprm") values[0] = 1;
      return values;
    };
    const auto word = [&](const char* name, const char* otherwise) {
      const XmlAttribute* const found = element.attribute(name);
      return found ? found->value : std::string(otherwise);
    };
    if (kind == "motor") return Law{};
    if (kind == "position") {
      const double kp = values_.number_or(element, "kp", list("gainprm")[0]);
      return Law{kp, 0, kp, values_.number_or(element, "kv", 0)};
    }
    if (kind == "velocity") {
      const double kv = values_.number_or(element, "kv", list("gainprm")[0]);
      return Law{kv, 0, 0, kv};
    }
    if (kind != "general" || word("dyntype", "none") != "none" || word("gaintype", "fixed") != "fixed") return {};
    Law law;
    law.gain = list("gainprm")[0];
    const std::string bias = word("biastype", "none");
    if (bias == "affine") {
      const std::vector<double> b = list("biasprm");
      law.bias = b[0], law.stiffness = cleaned(-b[1]), law.damping = cleaned(-b[2]);
    } else if (bias != "none") {
      return {};
    }
    if (law.stiffness < 0 || law.damping < 0) return {};
    return law;
  }

  /// The force that an actuator has at most, by its own limit and, without gains, by that of its control.
  void bound_effort(MjcfJoint& joint, const XmlElement& element, const Law& law, double gear, const std::string& what) {
    const auto range = [&](const char* name, const char* switch_name) -> std::optional<std::array<double, 2>> {
      const XmlAttribute *const given = element.attribute(name), *const on = element.attribute(switch_name);
      const bool acts = on && on->value != "auto" ? on->value == "true" : document_.compiler().automatic_limits;
      if (!given || !acts) return {};
      return values_.numbers<2>(element, *given);
    };
    std::optional<std::array<double, 2>> force = range("forcerange", "forcelimited");
    const auto control = range("ctrlrange", "ctrllimited");
    if (control && law.stiffness == 0 && law.damping == 0) {
      std::array<double, 2> by_control{law.gain * (*control)[0], law.gain * (*control)[1]};
      if (by_control[0] > by_control[1]) std::swap(by_control[0], by_control[1]);
      force = force ? std::array<double, 2>{std::max((*force)[0], by_control[0]), std::min((*force)[1], by_control[1])}
                    : by_control;
    }
    if (!force) {
      joint.limits_differ = true;
      return;
    }
    const double most = std::max(std::abs((*force)[0]), std::abs((*force)[1]));
    if ((*force)[0] != -(*force)[1]) {
      parts_.note(element.place, what + "> with unequal limits: the larger one holds both ways");
    }
    joint.effort_limit += most * gear;
  }

  // ---- what the scene gets ------------------------------------------------------------------------------------------

  void add_body(int index) {
    MjcfBody& body = bodies_[index];
    if (index > 0) add_joints(index);
    const Place place = body.element->place;
    const Pose back = at(negative(body.anchor));
    NodePtr node = make_map(place), shapes = make_list(place);
    if (body.mass.mass > 0 || principal_moments(body.mass.inertia).most > 0) {
      const Place at_mass = body.inertial ? body.inertial->place : place;
      const MassProperties<double> mass = placed(body.mass, back);
      set_key(node, "mass", scalar_of(mass.mass, at_mass), at_mass);
      const Numbers3 com{cleaned(mass.com.x), cleaned(mass.com.y), cleaned(mass.com.z)};
      if (!is_zero(com)) set_key(node, "com", list_of(com, at_mass), at_mass);
      const Sym3<double>& J = mass.inertia;
      const std::array<double, 6> all{J.xx, J.yy, J.zz, cleaned(J.xy), cleaned(J.xz), cleaned(J.yz)};
      set_key(node, "inertia", list_of(all, at_mass), at_mass);
      if (fault_of(principal_moments(J)) != InertiaFault::none) {
        parts_.note(at_mass, "<inertial> that no rigid body has: taken as it is", false);
        set_key(node, "unphysical_inertia", make_scalar("true", at_mass), at_mass);
      }
    }
    for (MjcfGeom& geom : body.geoms) {
      if (!geom.geometry || !request_.collision) continue;
      add_shape(index, geom, back, shapes);
    }
    if (index == 0) return;
    if (!shapes->list.empty()) set_key(node, "shapes", shapes, place);
    set_key(parts_.bodies, body.name, node, place);
  }

  /// Joints one after the other, with bodies without mass between them; where there are none, a fixed one.
  void add_joints(int index) {
    MjcfBody& body = bodies_[index];
    const MjcfBody& parent = bodies_[body.parent];
    const Place place = body.element->place;
    Pose frame = at(negative(parent.anchor)) * body.pose;
    std::string hangs_on = parent.name;
    if (body.joints.empty()) {
      NodePtr node = make_map(place);
      set_key(node, "type", make_scalar("fixed", place), place);
      if (body.parent != 0) set_key(node, "parent", make_scalar(hangs_on, place, true), place);
      set_key(node, "child", make_scalar(body.name, place, true), place);
      if (!is_identity(frame)) set_key(node, "frame", frame_node(frame, place), place);
      set_key(parts_.joints, unique(joint_names_, body.name.substr(request_.prefix.size()) + "_fixed"), node, place);
      return;
    }
    for (std::size_t i = 0; i < body.joints.size(); ++i) {
      MjcfJoint& joint = joints_[body.joints[i]];
      const Place here = joint.element.place;
      const bool last = i + 1 == body.joints.size();
      const std::string child =
          last ? body.name : unique(body_names_, joint.name.substr(request_.prefix.size()) + "_link");
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
      if (joint.type == "revolute" || joint.type == "prismatic") {
        const XmlAttribute* const axis = joint.element.attribute("axis");
        set_key(node, "axis", list_of(joint.axis, axis ? axis->place : here), axis ? axis->place : here);
      }
      add_resistances(joint, node);
      set_key(parts_.joints, joint.name, node, here);
      if (!last) set_key(parts_.bodies, child, make_map(here), here);
      // Bodies between would part pairs that a joint keeps from touching.
      if (!last && i == 0 && hangs_on != "world") excluded_.push_back({hangs_on, body.name, here});
      hangs_on = child;
      frame = at(negative(joint.anchor));
      body.anchor = joint.anchor;
    }
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
    for (const char* const name : {"solreflimit", "solimplimit", "solreffriction", "solimpfriction"}) {
      if (const XmlAttribute* const found = element.attribute(name)) {
        parts_.note(found->place, "<joint " + std::string(name) + "=...>: limits and friction have laws of their own");
      }
    }
    for (const char* const name : {"springdamper", "actuatorgravcomp"}) {
      const XmlAttribute* const found = element.attribute(name);
      if (found && found->value != "false") {
        parts_.note(found->place, "<joint " + std::string(name) + "=...>");
      }
    }
    const auto first = [&](const char* name) {
      const XmlAttribute* const found = element.attribute(name);
      if (!found) return 0.0;
      const std::vector<double> values = values_.list(element, *found, 1, 3);
      if (values[0] < 0) values_.refuse(element, *found, "a number of at least 0");
      if (std::ranges::any_of(values.begin() + 1, values.end(), [](double x) { return x != 0; })) {
        parts_.note(found->place,
                    "<joint " + std::string(name) + "=...> that is not linear: its first number is taken");
      }
      return values[0];
    };
    const std::pair<const char*, const char*> plain[] = {
        {"armature", "armature"}, {"damping", "damping"}, {"frictionloss", "friction"}};
    for (const auto& [theirs, ours] : plain) {
      const double value = first(theirs);
      const Place where = element.attribute(theirs) ? element.attribute(theirs)->place : element.place;
      if (value > 0) set_key(node, ours, scalar_of(value, where), where);
    }
    const bool one_degree = joint.type == "revolute" || joint.type == "prismatic";
    const auto length = [&](double value) { return joint.type == "revolute" ? document_.angle(value) : value; };
    if (const double stiffness = first("stiffness"); stiffness > 0) {
      const Place where = element.attribute("stiffness")->place;
      if (one_degree) {
        NodePtr spring = make_map(where);
        set_key(spring, "stiffness", scalar_of(stiffness, where), where);
        const double rest = length(values_.number_or(element, "springref", 0)) - joint.reference;
        if (rest != 0) set_key(spring, "rest", scalar_of(rest, where), where);
        set_key(node, "spring", spring, where);
      } else {
        parts_.note(where, "<joint stiffness=...> of a " + joint.type + " joint");
      }
    }
    add_limit(joint, node, one_degree);
    add_drive(joint, node);
  }

  void add_limit(const MjcfJoint& joint, const NodePtr& node, bool one_degree) {
    const XmlElement& element = joint.element;
    const XmlAttribute *const range = element.attribute("range"), *const on = element.attribute("limited");
    const bool acts = on && on->value != "auto" ? on->value == "true" : range && document_.compiler().automatic_limits;
    if (!acts || joint.type == "free") return;
    if (!range) values_.missing(element, "the attribute 'range', as it is limited");
    if (!one_degree) return parts_.note(range->place, "<joint range=...> of a ball joint");
    const auto ends = values_.numbers<2>(element, *range);
    if (!(ends[0] < ends[1])) values_.refuse(element, *range, "a lower end below the upper one");
    const auto length = [&](double value) {
      return cleaned((joint.type == "revolute" ? document_.angle(value) : value) - joint.reference);
    };
    NodePtr limit = make_map(range->place);
    set_key(limit, "lower", scalar_of(length(ends[0]), range->place), range->place);
    set_key(limit, "upper", scalar_of(length(ends[1]), range->place), range->place);
    set_key(node, "limit", limit, range->place);
  }

  void add_drive(const MjcfJoint& joint, const NodePtr& node) {
    double most = joint.limits_differ ? 0 : joint.effort_limit;
    Place place = joint.drive_place;
    if (const XmlAttribute* const range = joint.element.attribute("actuatorfrcrange")) {
      const auto ends = values_.numbers<2>(joint.element, *range);
      const double bound = std::max(std::abs(ends[0]), std::abs(ends[1]));
      if (ends[0] != -ends[1]) parts_.note(range->place, "<joint actuatorfrcrange=...> with unequal limits");
      most = most > 0 ? std::min(most, bound) : bound;
      if (!joint.has_drive) place = range->place;
    }
    if (joint.stiffness == 0 && joint.damping == 0 && most == 0) return;
    if (joint.type != "revolute" && joint.type != "prismatic") return;
    NodePtr drive = make_map(place);
    if (joint.stiffness > 0) set_key(drive, "stiffness", scalar_of(joint.stiffness, place), place);
    if (joint.damping > 0) set_key(drive, "damping", scalar_of(joint.damping, place), place);
    if (most > 0) set_key(drive, "effort_limit", scalar_of(most, place), place);
    set_key(node, "drive", drive, place);
    if (joint.stiffness > 0 && joint.target != 0) {
      NodePtr control = make_map(place);
      set_key(control, "target_position", scalar_of(joint.target, place), place);
      set_key(parts_.controls, joint.name, control, place);
    }
  }

  // ---- contact ------------------------------------------------------------------------------------------------------

  /// Bits of contype and conaffinity, as a collision group of the scene.
  using Filter = std::pair<int, int>;
  static bool meet(const Filter& a, const Filter& b) { return (a.first & b.second) != 0 || (b.first & a.second) != 0; }
  std::string group_of(const Filter& filter) const {
    return request_.group + "_" + std::to_string(filter.first) + "_" + std::to_string(filter.second);
  }

  void add_shape(int index, MjcfGeom& geom, const Pose& back, const NodePtr& listed) {
    const MjcfBody& body = bodies_[index];
    const XmlElement& element = geom.element;
    const Place place = element.place;
    const bool flat = geom.type == "plane" || geom.type == "hfield";
    const bool touches = touches_ && (geom.contact_type != 0 || geom.contact_affinity != 0);
    if (flat && body.moves) {
      return parts_.note(place, "<geom type=\"" + geom.type + "\"> of a body that moves: it is left away");
    }
    if (touches && (geom.type == "cylinder" || geom.type == "ellipsoid")) {
      parts_.note(place, "<geom type=\"" + geom.type + "\"> touches planes and height fields only");
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
    const double margin = values_.number_or(element, "margin", 0) - values_.number_or(element, "gap", 0);
    if (margin > 0) set_key(geom.geometry, "margin", scalar_of(margin, place), place);
    set_key(shape, "geometry", geom.geometry, place);
    const Pose pose = of_world ? world_pose(index) * geom.pose : back * geom.pose;
    if (!is_identity(pose)) set_key(shape, "frame", frame_node(pose, place), place);
    add_material(shape, geom);
    if (!touches) {
      set_key(shape, "collision", make_scalar("none", place), place);
    } else {
      filters_.insert({geom.contact_type, geom.contact_affinity});
      filtered_.push_back({shape, {geom.contact_type, geom.contact_affinity}});
    }
    if (of_world) {
      if (name.empty()) name = unique(shape_names_, (index == 0 ? "world" : body.name) + "_" + geom.type);
      shape_of_name_.emplace(geom.name, name);
      set_key(parts_.shapes, name, shape, place);
    } else {
      if (!geom.name.empty()) shape_of_name_.emplace(geom.name, name);
      listed->list.push_back(shape);
    }
  }

  Pose world_pose(int index) const {
    if (index == 0) return request_.frame;
    return bodies_[index].parent == 0 ? bodies_[index].pose : world_pose(bodies_[index].parent) * bodies_[index].pose;
  }

  void add_material(const NodePtr& shape, const MjcfGeom& geom) {
    const XmlElement& element = geom.element;
    for (const char* const name : {"solref", "solimp"}) {
      if (const XmlAttribute* const found = element.attribute(name)) {
        parts_.note(found->place,
                    "<geom " + std::string(name) +
                        "=...>: a contact is as stiff as the mass that it stops asks for (docs/contact.md)");
      }
    }
    std::array<double, 3> friction{1, 0.005, 0.0001};
    const XmlAttribute* const given = element.attribute("friction");
    if (given) {
      const std::vector<double> values = values_.list(element, *given, 1, 3);
      for (std::size_t i = 0; i < values.size(); ++i) friction[i] = values[i];
    }
    const int directions = whole(element, "condim", 3);
    const Place place = given ? given->place : element.place;
    NodePtr material = make_map(place);
    set_key(material, "friction", scalar_of(directions >= 3 ? friction[0] : 0, place), place);
    if (directions >= 4) set_key(material, "torsional_friction", scalar_of(friction[1], place), place);
    if (directions >= 6) set_key(material, "rolling_friction", scalar_of(friction[2], place), place);
    set_key(shape, "material", material, place);
  }

  void add_contacts() {
    // Where everything meets everything, and no other robot is there, shapes are as all shapes are.
    const bool plain = filters_.size() <= 1 && request_.prefix.empty() &&
                       (filters_.empty() || meet(*filters_.begin(), *filters_.begin())) && !only_others();
    for (const auto& [shape, filter] : filtered_) {
      if (plain) break;
      NodePtr node = make_map(shape->place);
      std::vector<std::string> meets = request_.meets;
      if (!only_others()) {
        for (const Filter& other : filters_) {
          if (meet(filter, other)) meets.push_back(group_of(other));
        }
      }
      set_key(node, "groups", list_of_names({request_.group, group_of(filter)}, shape->place), shape->place);
      set_key(node, "meets", list_of_names(meets, shape->place), shape->place);
      set_key(shape, "collision", node, shape->place);
    }
    for (const auto& [a, b, place] : excluded_) parts_.exclude->list.push_back(list_of_names({a, b}, place));
    for (const XmlElement* const contact : document_.section("contact")) {
      if (contact->name == "exclude") {
        const std::string a = body_named(*contact, "body1"), b = body_named(*contact, "body2");
        parts_.exclude->list.push_back(list_of_names({a, b}, contact->place));
      } else if (contact->name == "pair") {
        add_pair(*contact);
      }
    }
  }
  bool only_others() const { return request_.self_collision_given && !request_.self_collision; }

  std::string body_named(const XmlElement& element, const char* key) const {
    const XmlAttribute& name = values_.attribute(element, key, "the name of a body");
    if (name.value == "world") return "world";
    const std::string ours = scene_name(request_.prefix, name.value);
    if (body_names_.contains(ours)) return ours;
    const std::vector<std::string> known(body_names_.begin(), body_names_.end());
    values_.refuse(element, name, "the name of a body", nearest_name(name.value.substr(0, 200), known));
  }

  void add_pair(const XmlElement& pair) {
    const auto named = [&](const char* key) -> const std::string* {
      const XmlAttribute& name = values_.attribute(pair, key, "the name of a geom");
      const auto found = shape_of_name_.find(name.value);
      if (found != shape_of_name_.end()) return &found->second;
      if (!geom_names_.contains(name.value)) values_.refuse(pair, name, "the name of a geom");
      return nullptr;  // left away
    };
    const std::string *const a = named("geom1"), *const b = named("geom2");
    if (!a || !b) return;
    parts_.include->list.push_back(list_of_names({*a, *b}, pair.place));
    static const Names known{"name", "class", "geom1", "geom2", "condim"};
    tell_rest(pair, known);
  }

  // ---- tendons, equalities, keyframes -------------------------------------------------------------------------------

  void add_held_parts() {
    for (const XmlElement* const one : document_.section("equality")) {
      if (flag(*one, "active", true)) {
        parts_.note(one->place,
                    "<equality> <" + excerpt(one->name) + ">: it holds nothing, couplings are not there yet");
      }
    }
    for (const XmlElement* const given : document_.section("tendon")) {
      const XmlElement tendon = document_.with_defaults(*given, "tendon", "");
      for (const char* const name : {"stiffness", "damping", "range", "frictionloss", "armature"}) {
        if (const XmlAttribute* const found = tendon.attribute(name)) {
          parts_.note(given->place,
                      "<tendon> <" + given->name + " " + found->name + "=...>: couplings are not there yet");
        }
      }
    }
  }

  /// The state that the scene asks for by name.
  void add_key() {
    if (request_.key.empty()) return;
    std::vector<std::string> known;
    const XmlElement* key = nullptr;
    for (const XmlElement* const one : document_.section("keyframe")) {
      const XmlAttribute* const name = one->attribute("name");
      if (!name) continue;
      known.push_back(name->value);
      if (name->value == request_.key) key = one;
    }
    if (!key) {
      fail(sources_, request_.key_place, "keyframe", "value '" + excerpt(request_.key) + "'",
           known.empty() ? "no key: this file has no named <key>" : "the name of a <key>",
           nearest_name(request_.key.substr(0, 200), known));
    }
    set_key_state(*key);
  }

  void set_key_state(const XmlElement& key) {
    std::size_t positions = 0, velocities = 0;
    for (const MjcfBody& body : bodies_) {
      for (const int j : body.joints) {
        const std::string& type = joints_[j].type;
        positions += type == "free" ? 7 : type == "ball" ? 4 : 1;
        velocities += type == "free" ? 6 : type == "ball" ? 3 : 1;
      }
    }
    const auto numbers = [&](const char* name, std::size_t count) {
      const XmlAttribute* const found = key.attribute(name);
      return found ? values_.list(key, *found, count, count) : std::vector<double>{};
    };
    const std::vector<double> q = numbers("qpos", positions), v = numbers("qvel", velocities);
    static const Names known{"name", "qpos", "qvel", "time"};
    tell_rest(key, known);
    std::size_t at_q = 0, at_v = 0;
    for (const MjcfBody& body : bodies_) {
      for (const int j : body.joints) add_key_of_joint(joints_[j], key.place, q, at_q, v, at_v);
    }
  }

  void add_key_of_joint(MjcfJoint& joint, Place place, const std::vector<double>& q, std::size_t& at_q,
                        const std::vector<double>& v, std::size_t& at_v) {
    const auto take = [](const std::vector<double>& from, std::size_t& at, std::size_t count) {
      if (from.empty()) return std::vector<double>{};
      const auto begin = from.begin() + static_cast<std::ptrdiff_t>(at);
      at += count;
      return std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(count));
    };
    NodePtr state = make_map(place);
    const auto set = [&](const char* key, const std::vector<double>& values) {
      if (!values.empty()) set_key(state, key, list_of(values, place), place);
    };
    Turn turn{0, 0, 0, 1};
    const auto set_turn = [&](const std::vector<double>& wxyz) {
      if (wxyz.empty()) return;
      const double length = std::hypot(std::hypot(wxyz[0], wxyz[1]), std::hypot(wxyz[2], wxyz[3]));
      if (!(length > 1e-12)) fail(sources_, place, "key", "a quaternion of zero", "one that is not zero");
      turn = {wxyz[1] / length, wxyz[2] / length, wxyz[3] / length, wxyz[0] / length};
      set_key(state, "orientation", list_of(turn, place), place);
    };
    if (joint.type == "free") {
      set("position", take(q, at_q, 3));
      set_turn(take(q, at_q, 4));
      set("velocity", take(v, at_v, 3));
      // MuJoCo's are about the body's own axes, those of scenes about the world's.
      if (const std::vector<double> w = take(v, at_v, 3); !w.empty()) {
        const Numbers3 turned = (Pose{{0, 0, 0}, turn} * at({w[0], w[1], w[2]})).position;
        set("angular_velocity", {turned[0], turned[1], turned[2]});
      }
    } else if (joint.type == "ball") {
      set_turn(take(q, at_q, 4));
      set("angular_velocity", take(v, at_v, 3));
    } else {
      const std::vector<double> position = take(q, at_q, 1), speed = take(v, at_v, 1);
      if (!position.empty() && position[0] != joint.reference) {
        set_key(state, "position", scalar_of(position[0] - joint.reference, place), place);
      }
      if (!speed.empty() && speed[0] != 0) set_key(state, "velocity", scalar_of(speed[0], place), place);
    }
    if (state->map.empty()) return;
    joint.key_state = state;
    joint.has_key_position = !q.empty();
    set_key(parts_.initial_state, joint.name, state, place);
  }

  struct Excluded {
    std::string a, b;
    Place place;
  };

  const MjcfDocument& document_;
  const RobotRequest& request_;
  const RobotFiles& files_;
  const Sources& sources_;
  XmlValues values_;
  RobotParts parts_;
  std::map<std::string, const XmlElement*, std::less<>> meshes_, height_fields_;
  std::vector<MjcfBody> bodies_;  ///< the world first, parents before children
  std::vector<MjcfJoint> joints_;
  std::map<std::string, int, std::less<>> joint_of_name_;  ///< by its name in the file
  std::map<std::string, std::string, std::less<>> shape_of_name_;
  Names body_names_{"world"}, joint_names_, geom_names_, shape_names_;
  std::vector<Excluded> excluded_;
  std::set<Filter> filters_;
  std::vector<std::pair<NodePtr, Filter>> filtered_;
  std::map<const XmlElement*, ReadMesh> read_meshes_;
  std::size_t walked_ = 0;  ///< elements
  bool touches_ = true;
};

}  // namespace

RobotParts read_mjcf(const MjcfDocument& document, const RobotRequest& request, const RobotFiles& files,
                     const Sources& sources) {
  return MjcfReader(document, request, files, sources).read();
}

}  // namespace backdrive::scene
