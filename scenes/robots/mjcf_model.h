#pragma once
// A model of MuJoCo as its file says it, with classes, frames and replicas resolved: what becomes the parts of a scene.
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "models/mass_properties.h"
#include "models/parameter_list.h"
#include "scenes/robots/mjcf_document.h"
#include "scenes/robots/robot.h"

namespace backdrive::scene {

using Names = std::set<std::string, std::less<>>;

/// What actuators make of a joint or a tendon.
struct MjcfDrive {
  double stiffness = 0, damping = 0, effort_limit = 0;
  double constant = 0;                ///< what they push with at position and velocity zero
  bool has_gains_by_control = false;  ///< whether one has gains that its control makes, which are zero without
  bool is_unlimited = false;          ///< whether an actuator of it has no limit
  Place drive_place;                  ///< of the first actuator with gains or limits
  bool has_drive = false;
};

struct MjcfJoint : MjcfDrive {
  XmlElement element;  ///< with the values of its class
  std::string name;    ///< in the scene
  std::string type;    ///< of the scene: revolute, prismatic, ball, free
  Numbers3 axis, anchor;
  double reference = 0;        ///< of `ref`: its position in MuJoCo where ours is zero
  double inverse_inertia = 0;  ///< M⁻¹ of its degrees of freedom, their mean, 1/(kg·m²) or 1/kg; 0: not known
  /// Hinges and slides.
  bool has_one_degree() const { return type == "revolute" || type == "prismatic"; }
  NodePtr key_state;  ///< of the keyframe that it begins with
  bool has_key_position = false;
};

/// A fixed tendon.
struct MjcfTendon : MjcfDrive {
  struct Term {
    std::string joint;  ///< in the scene
    double ratio;
    Place place;
  };
  XmlElement element;  ///< with the values of its class
  std::string name;    ///< in the scene
  std::vector<Term> terms;
  double offset = 0;         ///< its length in MuJoCo where our positions are zero
  double spring_length = 0;  ///< where the springs of its joints are at rest
};

struct MjcfGeom {
  XmlElement element;  ///< with the values of its class
  std::string name;    ///< its own, or empty
  std::string type;    ///< of the scene
  Pose pose;           ///< in the axes of its body
  NodePtr geometry;    ///< null: left away
  MassProperties<double> mass{};
  int contact_type = 1, contact_affinity = 1;
  std::optional<Visual> visual;  ///< where MuJoCo draws it: without body and pose
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
  double inverse_mass = 0;   ///< how its com gives way to a force, mean of all directions, 1/kg; 0: not known
};

struct MjcfSite {
  const XmlElement* element = nullptr;
  int body = 0;
  Pose frame;               ///< of what is written, in the axes of the body
  std::string child_class;  ///< of a site that names none
};

struct MjcfModel {
  std::vector<MjcfBody> bodies;  ///< the world first, parents before children
  std::vector<MjcfJoint> joints;
  std::map<std::string, int, std::less<>> joint_of_name;  ///< by its name in the file
  std::vector<MjcfTendon> tendons;
  std::map<std::string, int, std::less<>> tendon_of_name;  ///< by its name in the file
  Names body_names{"world"}, joint_names;                  ///< in the scene; couplings' names are among joints'
  Names geom_names;                                        ///< in the file
  bool has_all_joints = true;                              ///< none had mistakes
  Names unread;  ///< in the file: of elements with mistakes, which what refers to them does not repeat
  std::map<std::string, MjcfSite, std::less<>> site_of_name;  ///< by its name in the file

  /// Where the file shows a body, in the scene, where `world` is the file's world.
  Pose drawn(int body, const Pose& world) const {
    if (body == 0) return world;
    const MjcfBody& b = bodies[body];
    return b.parent == 0 ? b.pose : drawn(b.parent, world) * b.pose;  // the world's children are placed in the scene
  }
};

/// What every part of the reader looks at, and how it tells what is wrong or left out.
class MjcfReading {
 public:
  MjcfReading(const MjcfDocument& document, const RobotRequest& request, const RobotFiles& files,
              const Sources& sources, RobotParts& parts, Mistakes& mistakes)
      : document_(document),
        request_(request),
        files_(files),
        sources_(sources),
        parts_(parts),
        mistakes_(mistakes),
        values_(sources) {}

 protected:
  /// Calls read() of each element of a section, and goes on behind mistakes.
  template <class Read>
  void each_of_section(std::string_view name, const Read& read) {
    for (const XmlElement* const one : document_.section(name)) mistakes_.attempt([&] { read(*one); });
  }

  /// The keyframe that the scene names; null: none, or the file has no such key.
  const XmlElement* key_of_request() const {
    if (request_.key.empty()) return nullptr;
    for (const XmlElement* const one : document_.section("keyframe")) {
      const XmlAttribute* const name = one->attribute("name");
      if (name && name->value == request_.key) return one;
    }
    return nullptr;
  }

  /// Refuses a name that is not among `known`, unless it is that of an element with mistakes or may be in a file that
  /// could not be included.
  [[noreturn]] void refuse_name(const XmlElement& element, const XmlAttribute& name, const std::string& expected,
                                const std::vector<std::string>& known, const MjcfModel& model) const {
    if (model.unread.contains(name.value) || document_.lacks_files()) Mistakes::leave_off();
    values_.refuse(element, name, expected, nearest_name(name.value.substr(0, 200), known));
  }

  /// Tells of attributes that mean something which is not taken over.
  void tell_rest(const XmlElement& element, const Names& known) {
    for (const XmlAttribute& attribute : element.attributes) {
      if (known.contains(attribute.name)) continue;
      parts_.note(attribute.place, "<" + element.name + " " + excerpt(attribute.name) + "=...>");
    }
  }

  /// Whether a range acts: as its switch says, or, where this leaves it open, as the compiler does.
  bool is_limited(const XmlElement& element, const char* range, const char* name_of_switch) const {
    const std::string limited = text_or(element, name_of_switch, "auto");
    if (limited != "auto") return limited == "true";
    return element.attribute(range) && document_.compiler().automatic_limits;
  }

  // What joints and tendons have alike, put into the node of the joint or the coupling.
  /// The first number of what may be a polynomial; 0 where there is none.
  double linear_part(const XmlElement& element, const char* name);
  /// Armature, damping, friction.
  void add_losses(const XmlElement& element, const NodePtr& node);
  static void add_spring(double stiffness, double rest, Place place, const NodePtr& node);
  static void add_limit(const std::array<double, 2>& ends, Place place, const NodePtr& node);
  /// With the target of the joint or coupling of that name, where it has one.
  void add_drive(const MjcfDrive& drive, const std::string& name, const NodePtr& node);

  /// A name of the scene that is not taken yet.
  std::string unique(Names& taken, std::string name) {
    name = scene_name(request_.prefix, name);
    std::string result = name;
    // Numbers go on from the last, so that a hundred thousand parts without names take no time.
    for (int& number = numbers_[name]; !taken.insert(result).second;) result = name + "_" + std::to_string(++number);
    return result;
  }

  const MjcfDocument& document_;
  const RobotRequest& request_;
  const RobotFiles& files_;
  const Sources& sources_;
  RobotParts& parts_;
  Mistakes& mistakes_;
  XmlValues values_;

 private:
  std::map<std::string, int, std::less<>> numbers_;  ///< that names got so far, by name
};

/// Bodies with their joints, geoms and masses. Notes what is left out.
MjcfModel read_mjcf_bodies(const MjcfReading& reading);

/// What the bodies weigh, from what they say of it or from their geoms.
void find_mjcf_masses(const MjcfReading& reading, MjcfModel& model);

/// Fixed tendons.
void read_mjcf_tendons(const MjcfReading& reading, MjcfModel& model);

/// They and equalities of joints as couplings. Notes what is left out.
void write_mjcf_couplings(const MjcfReading& reading, MjcfModel& model);

/// Connected and welded bodies as joints that close loops, where the scene's integrator knows such. Notes what is left
/// out.
void write_mjcf_loops(const MjcfReading& reading, MjcfModel& model);

/// Initial states of the joints, from the key that the scene asks for by name.
void read_mjcf_key(const MjcfReading& reading, MjcfModel& model);

/// Gains, limits and targets of the drives of joints and tendons.
void add_mjcf_actuators(const MjcfReading& reading, MjcfModel& model);

inline Pose at(const Numbers3& position) {
  return {position, {0, 0, 0, 1}};
}
inline Numbers3 negative(const Numbers3& x) {
  return {-x[0], -x[1], -x[2]};
}

/// Numbers of a scene are never "-0".
inline double cleaned(double x) {
  return x == 0 ? 0.0 : x;
}

inline MassProperties<double> placed(const MassProperties<double>& mass, const Pose& pose) {
  const Mat3<double> R = matrix_of(pose.orientation);
  const Vec3<double> p = R * mass.com;
  return {
      mass.mass, {p.x + pose.position[0], p.y + pose.position[1], p.z + pose.position[2]}, rotated(R, mass.inertia)};
}

}  // namespace backdrive::scene
