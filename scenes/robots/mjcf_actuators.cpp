#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "models/parameter_list.h"
#include "scenes/robots/mjcf_model.h"

namespace backdrive::scene {
namespace {

class MjcfActuatorReader : MjcfReading {
 public:
  MjcfActuatorReader(const MjcfReading& reading, MjcfModel& model) : MjcfReading(reading), model_(model) {}

  void read() {
    mistakes_.attempt([&] { read_controls(); });
    std::size_t index = 0;
    each_of_section("actuator", [&](const XmlElement& one) {
      const double control = index < controls_.size() ? controls_[index] : 0;
      ++index;
      add_actuator(one, control);
    });
  }

 private:
  /// force = gain·ctrl + bias − stiffness·length − damping·velocity, length and velocity those of the joint times gear.
  struct Law {
    double gain = 1, bias = 0, stiffness = 0, damping = 0;
    /// What its control times stiffness and damping add: force −= (gain_stiffness·length + gain_damping·velocity)·ctrl.
    double gain_stiffness = 0, gain_damping = 0;
    bool is_affine() const { return gain_stiffness != 0 || gain_damping != 0; }
  };

  /// The controls of the keyframe that the scene begins with, one an actuator: they stay.
  void read_controls() {
    const XmlElement* const key = key_of_request();
    const XmlAttribute* const given = key ? key->attribute("ctrl") : nullptr;
    if (!given || document_.lacks_files()) return;
    const std::size_t count = document_.section("actuator").size();
    controls_ = values_.list(*key, *given, count, count);
  }

  /// What an actuator moves, and its position in MuJoCo where ours is zero; null: nothing here, which is told.
  struct Moved {
    MjcfDrive* drive;
    double reference;
    bool of_several = false;  ///< degrees of freedom
  };
  Moved moved_by(const XmlElement& given, const XmlElement& element, const std::string& what) {
    const XmlAttribute* name = element.attribute("joint");
    if (!name) name = element.attribute("jointinparent");
    if (const XmlAttribute* const tendon = element.attribute("tendon"); tendon && !name) {
      const auto found = model_.tendon_of_name.find(tendon->value);
      if (found != model_.tendon_of_name.end()) return {&model_.tendons[found->second], 0, false};
      if (model_.unread.contains(tendon->value)) Mistakes::leave_off();
      parts_.note(given.place, what + " tendon=...> on no fixed tendon");
      return {};
    }
    if (!name) {
      static const Names ways{"site", "body", "slidersite", "cranksite", "refsite"};
      for (const XmlAttribute& one : element.attributes) {
        if (!ways.contains(one.name)) continue;
        parts_.note(given.place, what + " " + one.name + "=...>");
        return {};
      }
      parts_.note(given.place, what + "> on no joint");
      return {};
    }
    const auto found = model_.joint_of_name.find(name->value);
    if (found == model_.joint_of_name.end()) {
      refuse_name(element, *name, "the name of a joint", names_of(model_.joint_of_name), model_);
    }
    MjcfJoint& joint = model_.joints[found->second];
    return {&joint, joint.reference, !joint.has_one_degree()};
  }

  void add_actuator(const XmlElement& given, double control) {
    XmlElement element = document_.with_defaults(given, "actuator", "");
    const XmlAttribute* const shortcut = element.attribute("shortcut");
    std::string kind = given.name;
    if (kind == "general" && shortcut && !element.attribute("gainprm") && !element.attribute("biasprm")) {
      kind = shortcut->value;
    }
    static const Names known{"name",        "class",        "group",       "joint",      "jointinparent", "tendon",
                             "ctrllimited", "forcelimited", "ctrlrange",   "forcerange", "gear",          "kp",
                             "kv",          "gaintype",     "biastype",    "dyntype",    "gainprm",       "biasprm",
                             "dynprm",      "user",         "shortcut",    "actlimited", "actrange",      "actdim",
                             "actearly",    "lengthrange",  "cranklength", "delay",      "nsample",       "interp"};
    const std::string what = "<actuator> <" + given.name;
    const Moved moved = moved_by(given, element, what);
    if (!moved.drive) return;
    MjcfDrive& joint = *moved.drive;
    static const Names kinds{"general", "motor", "position", "velocity", "damper"};
    if (kinds.contains(kind)) tell_rest(element, known);
    std::optional<Law> law = law_of(element, kind);
    if (!law) return parts_.note(given.place, what + ">: of this kind, or with a state of its own, or not affine");
    if (is_limited(element, "ctrlrange", "ctrllimited")) control = clamped_control(element, control);
    if (moved.of_several) {
      // What a motor does, the joint's own controls do.
      const bool limited =
          is_limited(element, "ctrlrange", "ctrllimited") || is_limited(element, "forcerange", "forcelimited");
      if (control != 0)
        parts_.note(given.place, what + "> with a key's control on a joint of several degrees of freedom");
      if (law->stiffness == 0 && law->damping == 0 && law->bias == 0 && !law->is_affine() && !limited) return;
      return parts_.note(given.place, what + "> with gains or limits on a joint of several degrees of freedom");
    }
    if (law->is_affine()) {
      parts_.note(given.place,
                  what +
                      ">: its control stays as the keyframe has it, 0 without one; gains of the drive are what it "
                      "comes to",
                  false);
      joint.has_gains_by_control = true;
    }
    law->stiffness = cleaned(law->stiffness + law->gain_stiffness * control);
    law->damping = cleaned(law->damping + law->gain_damping * control);
    if (law->stiffness < 0 || law->damping < 0) {
      return parts_.note(given.place, what + "> that pushes away from a position, or along a velocity");
    }
    const XmlAttribute* const gears = element.attribute("gear");
    const double gear = gears ? values_.list(element, *gears, 1, 6)[0] : 1;
    joint.stiffness += law->stiffness * gear * gear;
    joint.damping += law->damping * gear * gear;
    // torque = gear·(bias + gain·control) − stiffness·gear²·(position + reference)
    joint.constant += (law->bias + law->gain * control) * gear - law->stiffness * gear * gear * moved.reference;
    if (!joint.has_drive) joint.drive_place = given.place;
    joint.has_drive = true;
    bound_effort(joint, element, *law, std::abs(gear), what);
  }

  double clamped_control(const XmlElement& element, double control) const {
    const XmlAttribute* const range = element.attribute("ctrlrange");
    if (!range) return control;
    const auto ends = values_.numbers<2>(element, *range);
    return std::max(ends[0], std::min(control, ends[1]));
  }

  /// MuJoCo's damper has a range of controls, none of them below zero.
  Law damper_law(const XmlElement& element, double rate) const {
    const XmlAttribute& range = values_.attribute(element, "ctrlrange", "of a damper's control");
    const auto ends = values_.numbers<2>(element, range);
    if (!(ends[0] >= 0 && ends[0] < ends[1]))
      values_.refuse(element, range, "two numbers of at least 0, the lower first");
    Law law;
    law.gain = 0, law.gain_damping = rate;
    return law;
  }

  std::optional<Law> law_of(const XmlElement& element, const std::string& kind) const {
    const auto list = [&](const char* name) {
      const XmlAttribute* const found = element.attribute(name);
      std::vector<double> values = found ? values_.list(element, *found, 1, 10) : std::vector<double>{};
      values.resize(std::max<std::size_t>(values.size(), 3));
      if (!found && std::string_view(name) == "gainprm") values[0] = 1;
      return values;
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
    if (kind == "damper") {
      const double rate = values_.number_or(element, "kv", 1);
      if (rate < 0) values_.refuse(element, *element.attribute("kv"), "a number of at least 0");
      return damper_law(element, rate);
    }
    const std::string gain = text_or(element, "gaintype", "fixed");
    if (kind != "general" || text_or(element, "dyntype", "none") != "none" || (gain != "fixed" && gain != "affine"))
      return {};
    Law law;
    const std::vector<double> gains = list("gainprm");
    law.gain = gains[0];
    if (gain == "affine") law.gain_stiffness = cleaned(-gains[1]), law.gain_damping = cleaned(-gains[2]);
    const std::string bias = text_or(element, "biastype", "none");
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
  void bound_effort(MjcfDrive& joint, const XmlElement& element, const Law& law, double gear, const std::string& what) {
    const auto range = [&](const char* name, const char* switch_name) -> std::optional<std::array<double, 2>> {
      const XmlAttribute* const given = element.attribute(name);
      if (!given || !is_limited(element, name, switch_name)) return {};
      return values_.numbers<2>(element, *given);
    };
    std::optional<std::array<double, 2>> force = range("forcerange", "forcelimited");
    const auto control = range("ctrlrange", "ctrllimited");
    if (control && law.stiffness == 0 && law.damping == 0 && !law.is_affine()) {
      std::array<double, 2> by_control{law.gain * (*control)[0], law.gain * (*control)[1]};
      if (by_control[0] > by_control[1]) std::swap(by_control[0], by_control[1]);
      force = force ? std::array<double, 2>{std::max((*force)[0], by_control[0]), std::min((*force)[1], by_control[1])}
                    : by_control;
    }
    if (!force) {
      joint.is_unlimited = true;
      return;
    }
    const double most = std::max(std::abs((*force)[0]), std::abs((*force)[1]));
    if ((*force)[0] != -(*force)[1]) {
      parts_.note(element.place, what + "> with unequal limits: the larger one holds both ways");
    }
    joint.effort_limit += most * gear;
  }

  MjcfModel& model_;
  std::vector<double> controls_;  ///< empty: all 0
};

}  // namespace

void add_mjcf_actuators(const MjcfReading& reading, MjcfModel& model) {
  MjcfActuatorReader(reading, model).read();
}

}  // namespace backdrive::scene
