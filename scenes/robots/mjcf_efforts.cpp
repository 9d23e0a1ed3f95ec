// What joints and tendons have alike: losses, springs, limits and drives.
#include <algorithm>

#include "scenes/robots/mjcf_model.h"

namespace backdrive::scene {

double MjcfReading::linear_part(const XmlElement& element, const char* name) {
  const XmlAttribute* const found = element.attribute(name);
  if (!found) return 0;
  const std::vector<double> values = values_.list(element, *found, 1, 3);
  if (values[0] < 0) values_.refuse(element, *found, "a number of at least 0");
  if (std::ranges::any_of(values.begin() + 1, values.end(), [](double x) { return x != 0; })) {
    parts_.note(found->place, "<" + element.name + " " + name + "=...> that is not linear: its first number is taken");
  }
  return values[0];
}

void MjcfReading::add_losses(const XmlElement& element, const NodePtr& node) {
  const std::pair<const char*, const char*> losses[] = {
      {"armature", "armature"}, {"damping", "damping"}, {"frictionloss", "friction"}};
  for (const auto& [theirs, ours] : losses) {
    mistakes_.attempt([&, theirs = theirs, ours = ours] {
      const double value = linear_part(element, theirs);
      if (value == 0) return;
      const Place where = element.attribute(theirs)->place;
      set_key(node, ours, scalar_of(value, where), where);
    });
  }
}

void MjcfReading::add_spring(double stiffness, double rest, Place place, const NodePtr& node) {
  NodePtr spring = make_map(place);
  set_key(spring, "stiffness", scalar_of(stiffness, place), place);
  if (cleaned(rest) != 0) set_key(spring, "rest", scalar_of(rest, place), place);
  set_key(node, "spring", spring, place);
}

void MjcfReading::add_limit(const std::array<double, 2>& ends, Place place, const NodePtr& node) {
  NodePtr limit = make_map(place);
  set_key(limit, "lower", scalar_of(ends[0], place), place);
  set_key(limit, "upper", scalar_of(ends[1], place), place);
  set_key(node, "limit", limit, place);
}

void MjcfReading::add_drive(const MjcfDrive& drive, const std::string& name, const NodePtr& node) {
  const double most = drive.is_unlimited ? 0 : drive.effort_limit;
  const Place place = drive.drive_place;
  const bool has_gains = drive.stiffness > 0 || drive.damping > 0 || drive.has_gains_by_control;
  if (has_gains || most > 0) {
    NodePtr own = make_map(place);
    if (drive.stiffness > 0) set_key(own, "stiffness", scalar_of(drive.stiffness, place), place);
    // A path for who wants other gains than those of the key.
    if (drive.damping > 0 || drive.has_gains_by_control) {
      set_key(own, "damping", scalar_of(drive.damping, place), place);
    }
    if (most > 0) set_key(own, "effort_limit", scalar_of(most, place), place);
    set_key(node, "drive", own, place);
  }
  if (cleaned(drive.constant) == 0) return;
  // What is constant moves a target, where there is one that pulls.
  const char* channel = "effort";
  double value = drive.constant;
  if (drive.stiffness > 0) {
    channel = "target_position", value /= drive.stiffness;
  } else if (drive.damping > 0) {
    channel = "target_velocity", value /= drive.damping;
  }
  NodePtr control = make_map(place);
  set_key(control, channel, scalar_of(value, place), place);
  set_key(parts_.controls, name, control, place);
}

}  // namespace backdrive::scene
