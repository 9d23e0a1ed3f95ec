#include "scenes/robots/mjcf_document.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "engine/quaternion.h"
#include "models/parameter_list.h"

namespace backdrive::scene {
namespace {

constexpr std::size_t kMostAttributes = 100;  ///< of an element; MuJoCo knows 40

double norm(const Numbers3& x) {
  return std::hypot(x[0], x[1], x[2]);
}

Numbers3 unit(const Numbers3& x) {
  const double length = norm(x);
  return {x[0] / length, x[1] / length, x[2] / length};
}

Numbers3 cross_product(const Numbers3& a, const Numbers3& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}

bool is_orientation(const XmlAttribute& attribute) {
  static const std::set<std::string, std::less<>> ways{"quat", "axisangle", "euler", "xyaxes", "zaxis"};
  return ways.contains(attribute.name);
}

/// Actuators share one set of defaults.
std::string kind_of(std::string_view element) {
  static const std::set<std::string, std::less<>> actuators{
      "general", "motor", "position", "velocity", "intvelocity", "damper", "cylinder", "muscle", "adhesion", "dcmotor"};
  return std::string(actuators.contains(element) ? "actuator" : element);
}

XmlElement without_children(const XmlElement& element) {
  return {element.name, element.place, element.attributes, {}, element.text};
}

void set_attribute(std::vector<XmlAttribute>& attributes, const XmlAttribute& one) {
  const auto known = std::ranges::find(attributes, one.name, &XmlAttribute::name);
  if (known == attributes.end()) {
    attributes.push_back(one);
  } else {
    *known = one;
  }
}

}  // namespace

Turn turn_from_z(const Numbers3& direction) {
  const Numbers3 z = unit(direction);
  const double across = std::hypot(z[0], z[1]);
  if (across > 0) return turn_about({-z[1] / across, z[0] / across, 0}, std::atan2(across, z[2]));
  return z[2] > 0 ? Turn{0, 0, 0, 1} : Turn{1, 0, 0, 0};
}

MjcfDocument::MjcfDocument(const XmlElement& root, const Sources& sources, const Include& include, Mistakes& mistakes)
    : values_(sources), sources_(sources), mistakes_(mistakes) {
  root_ = expanded(root, include, 1);
  for (const XmlElement& element : root_.children) {
    if (element.name == "compiler") read_compiler(element);
  }
  classes_.emplace("main", Class());
  for (const XmlElement& element : root_.children) {
    if (element.name != "default") continue;
    const XmlAttribute* const name = element.attribute("class");
    if (name && name->value != "main") classes_.emplace(name->value, classes_.at("main"));
    // The outermost class is that of elements without one, whatever it is called.
    read_class(element, "main", Class(classes_.at("main")));
    if (name) classes_[name->value] = classes_.at("main");
  }
}

XmlElement MjcfDocument::expanded(const XmlElement& element, const Include& include, int depth) {
  is_too_large_ = is_too_large_ || depth > kMaxDepth || elements_ >= kMaxNodes;
  if (depth > kMaxDepth) {
    fail(sources_, element.place, "",
         "element '" + excerpt(element.name) + "' nested more than " + std::to_string(kMaxDepth) +
             " deep, through included files",
         "at most " + std::to_string(kMaxDepth) + " levels");
  }
  if (++elements_ > kMaxNodes) {
    fail(sources_, element.place, "",
         "more than " + std::to_string(kMaxNodes) + " elements, with those of included files", "a smaller model");
  }
  if (element.attributes.size() > kMostAttributes) {
    fail(sources_, element.place, title(element), std::to_string(element.attributes.size()) + " attributes",
         "at most " + std::to_string(kMostAttributes));
  }
  XmlElement result = without_children(element);
  for (const XmlElement& child : element.children) {
    if (child.name != "include") {
      result.children.push_back(expanded(child, include, depth + 1));
      continue;
    }
    const std::size_t including = including_.size();
    if (mistakes_.attempt([&] { include_file(child, include, depth, result); })) continue;
    if (is_too_large_) Mistakes::leave_off();
    including_.resize(including);
    lacks_files_ = true;
  }
  return result;
}

void MjcfDocument::include_file(const XmlElement& child, const Include& include, int depth, XmlElement& into) {
  const XmlAttribute& file = values_.attribute(child, "file", "of what is included");
  if (std::ranges::find(including_, file.value) != including_.end()) {
    values_.refuse(child, file, "a file that does not include itself");
  }
  const XmlElement other = include(child, file);
  if (other.name != "mujocoinclude" && other.name != "mujoco") {
    fail(sources_, other.place, "", "element '" + excerpt(other.name) + "'", "<mujocoinclude>");
  }
  including_.push_back(file.value);
  XmlElement inside = expanded(other, include, depth + 1);
  including_.pop_back();
  for (XmlElement& one : inside.children) into.children.push_back(std::move(one));
}

void MjcfDocument::read_compiler(const XmlElement& element) {
  const auto read = [&](const char* name, const auto& take) {
    mistakes_.attempt([&] {
      if (const XmlAttribute* const found = element.attribute(name)) take(*found);
    });
  };
  read("angle", [&](const XmlAttribute& angle) {
    if (angle.value != "degree" && angle.value != "radian") values_.refuse(element, angle, "degree or radian");
    compiler_.degrees = angle.value == "degree";
  });
  read("eulerseq", [&](const XmlAttribute& sequence) {
    if (sequence.value.size() != 3 || sequence.value.find_first_not_of("xyzXYZ") != std::string::npos) {
      values_.refuse(element, sequence, "three letters of x, y, z, X, Y and Z");
    }
    compiler_.euler_sequence = sequence.value;
  });
  read("coordinate", [&](const XmlAttribute& coordinate) {
    if (coordinate.value == "local") return;
    values_.refuse(element, coordinate, "local: MuJoCo itself has global coordinates no more");
  });
  read("inertiafromgeom", [&](const XmlAttribute& inertia) {
    if (inertia.value == "auto") {
      compiler_.inertia = MjcfCompiler::Inertia::automatic;
    } else {
      compiler_.inertia = values_.flag_or(element, "inertiafromgeom", false) ? MjcfCompiler::Inertia::from_geoms
                                                                             : MjcfCompiler::Inertia::given;
    }
  });
  read("inertiagrouprange", [&](const XmlAttribute& groups) {
    const auto range = values_.numbers<2>(element, groups);
    if (!(std::abs(range[0]) <= 100) || !(std::abs(range[1]) <= 100)) {
      values_.refuse(element, groups, "two numbers of groups");
    }
    compiler_.first_group = static_cast<int>(range[0]);
    compiler_.last_group = static_cast<int>(range[1]);
  });
  const auto flag = [&](const char* name, bool& to) {
    mistakes_.attempt([&] { to = values_.flag_or(element, name, to); });
  };
  flag("autolimits", compiler_.automatic_limits);
  flag("strippath", compiler_.strip_paths);
  flag("balanceinertia", compiler_.balance_inertia);
  compiler_.mesh_folder = text_or(element, "meshdir", text_or(element, "assetdir", compiler_.mesh_folder.string()));
  const auto number = [&](const char* name, double& to) {
    mistakes_.attempt([&] { to = values_.number_or(element, name, to); });
  };
  number("boundmass", compiler_.least_mass);
  number("boundinertia", compiler_.least_inertia);
  number("settotalmass", compiler_.total_mass);
}

void MjcfDocument::read_class(const XmlElement& element, const std::string& name, const Class& above) {
  Class own = above;
  for (const XmlElement& child : element.children) {
    if (child.name == "default") continue;
    const std::string kind = kind_of(child.name);
    std::vector<XmlAttribute>& attributes = own[kind];
    for (const XmlAttribute& attribute : child.attributes) set_attribute(attributes, attribute);
    if (kind == "actuator" && child.name != "general") set_attribute(attributes, {"shortcut", child.name, child.place});
  }
  for (const auto& [kind, attributes] : own) inherited_ += attributes.size();
  if (inherited_ > kMaxNodes) {
    fail(sources_, element.place, title(element), "classes with more than " + std::to_string(kMaxNodes) + " values",
         "fewer, those that classes take from others counted");
  }
  classes_[name] = own;
  for (const XmlElement& child : element.children) {
    if (child.name != "default") continue;
    const XmlAttribute* inner = nullptr;
    const bool is_right = mistakes_.attempt([&] {
      inner = &values_.attribute(child, "class", "of defaults within others");
      if (classes_.contains(inner->value)) values_.refuse(child, *inner, "a class that is not there already");
    });
    if (is_right) read_class(child, inner->value, own);
  }
}

std::vector<const XmlElement*> MjcfDocument::section(std::string_view name) const {
  std::vector<const XmlElement*> result;
  for (const XmlElement& element : root_.children) {
    if (element.name != name) continue;
    for (const XmlElement& child : element.children) result.push_back(&child);
  }
  return result;
}

XmlElement MjcfDocument::with_defaults(const XmlElement& element, std::string_view kind,
                                       const std::string& child_class) const {
  const XmlAttribute* const own = element.attribute("class");
  const std::string& name = own ? own->value : child_class.empty() ? "main" : child_class;
  const auto found = classes_.find(name);
  if (found == classes_.end() && lacks_files_) Mistakes::leave_off();
  if (found == classes_.end()) {
    const std::vector<std::string> known = names_of(classes_);
    if (own) values_.refuse(element, *own, "the name of a default class", nearest_name(name.substr(0, 200), known));
    fail(sources_, element.place, title(element), "class '" + excerpt(name) + "' of the bodies around it",
         "the name of a default class", nearest_name(name.substr(0, 200), known));
  }
  XmlElement result = without_children(element);
  const auto defaults = found->second.find(kind_of(kind));
  if (defaults == found->second.end()) return result;
  result.attributes = defaults->second;
  // One orientation replaces another, in whatever way each is written.
  if (std::ranges::any_of(element.attributes, is_orientation)) std::erase_if(result.attributes, is_orientation);
  for (const XmlAttribute& attribute : element.attributes) set_attribute(result.attributes, attribute);
  return result;
}

Turn MjcfDocument::orientation(const XmlElement& element) const {
  const XmlAttribute* way = nullptr;
  for (const XmlAttribute& attribute : element.attributes) {
    if (!is_orientation(attribute)) continue;
    if (way) values_.refuse(element, attribute, "one orientation ('" + way->name + "' is there already)");
    way = &attribute;
  }
  if (!way) return {0, 0, 0, 1};
  const auto direction = [&](const Numbers3& x) {
    if (!(norm(x) > 1e-12)) values_.refuse(element, *way, "directions that are not zero");
    return unit(x);
  };
  if (way->name == "quat") {
    const std::optional<Turn> turn = turn_of_wxyz(values_.numbers<4>(element, *way));
    if (!turn) values_.refuse(element, *way, "a quaternion (w, x, y, z) that is not zero");
    return *turn;
  }
  if (way->name == "axisangle") {
    const auto x = values_.numbers<4>(element, *way);
    return turn_about(direction({x[0], x[1], x[2]}), angle(x[3]));
  }
  if (way->name == "zaxis") return turn_from_z(direction(values_.numbers<3>(element, *way)));
  if (way->name == "xyaxes") {
    const auto a = values_.numbers<6>(element, *way);
    const Numbers3 x = direction({a[0], a[1], a[2]});
    const double along = x[0] * a[3] + x[1] * a[4] + x[2] * a[5];
    const Numbers3 y = direction({a[3] - along * x[0], a[4] - along * x[1], a[5] - along * x[2]});
    const Numbers3 z = cross_product(x, y);
    return quaternion_of({x[0], x[1], x[2], y[0], y[1], y[2], z[0], z[1], z[2]});
  }
  const auto angles = values_.numbers<3>(element, *way);
  Turn turn{0, 0, 0, 1};
  for (std::size_t i = 0; i < 3; ++i) {
    const char letter = compiler_.euler_sequence[i];
    const bool along = letter >= 'a';
    const int axis = (along ? letter : letter - 'A' + 'a') - 'x';
    const Turn one =
        turn_about({axis == 0 ? 1.0 : 0.0, axis == 1 ? 1.0 : 0.0, axis == 2 ? 1.0 : 0.0}, angle(angles[i]));
    turn = along ? product(turn, one) : product(one, turn);
  }
  return turn;
}

Pose MjcfDocument::pose(const XmlElement& element) const {
  Pose pose;
  if (const XmlAttribute* const position = element.attribute("pos")) {
    pose.position = values_.numbers<3>(element, *position);
  }
  pose.orientation = orientation(element);
  return pose;
}

}  // namespace backdrive::scene
