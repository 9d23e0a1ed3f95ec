#include "apps/column_units.h"

#include <string_view>

#include "engine/error.h"
#include "models/coordinates.h"
#include "models/parameter_list.h"

namespace backdrive::app {
namespace {

const char* unit_of_position(bool turns) {
  return turns ? "rad" : "m";
}
const char* unit_of_velocity(bool turns) {
  return turns ? "rad/s" : "m/s";
}
const char* unit_of_effort(bool turns) {
  return turns ? "N·m" : "N";
}

}  // namespace

ColumnUnits::ColumnUnits() : units_{{"time", "s"}, {"seconds", "s"}, {"world_steps_per_second", "1/s"}} {}

ColumnUnits::ColumnUnits(const Model& model) : ColumnUnits() {
  model_ = &model;
  add_joints(model);
  for (std::size_t c = 0; c < model.coupling_names.size(); ++c) {
    const JointType* const type = unit_of_coupling(model, static_cast<int>(c));
    if (!type) continue;
    units_[model.coupling_names[c] + "/position"] = unit_of_position(*type == JointType::revolute);
    units_[model.coupling_names[c] + "/velocity"] = unit_of_velocity(*type == JointType::revolute);
  }
  for (const ControlRow& row : control_rows(model)) {
    if (row.controlled >= static_cast<int>(model.joint_names.size())) continue;
    units_[row.name] = row.channel == ControlChannel::effort            ? unit_of_effort(row.turns)
                       : row.channel == ControlChannel::target_position ? unit_of_position(row.turns)
                                                                        : unit_of_velocity(row.turns);
  }
  const auto add_vector = [&](const std::string& name, const char* unit) {
    for (const char* const axis : {"/x", "/y", "/z"}) units_[name + axis] = unit;
  };
  for (const std::string& body : model.body_names) {
    add_vector("bodies/" + body + "/position", "m");
    add_vector("bodies/" + body + "/velocity", "m/s");
    add_vector("bodies/" + body + "/angular_velocity", "rad/s");
  }
  add_vector("center_of_mass/position", "m");
  add_vector("center_of_mass/velocity", "m/s");
  add_vector("momentum/linear", "kg·m/s");
  add_vector("momentum/angular", "kg·m²/s");
  for (const char* const kind : {"kinetic", "potential", "work"}) units_[std::string("energy/") + kind] = "J";
}

void ColumnUnits::add_joints(const Model& model) {
  for (std::size_t j = 0; j < model.joint_names.size(); ++j) {
    const std::string name = model.joint_names[j] + "/";
    const JointType type = model.joint_types[j];
    for (const JointComponent& c : position_components(type)) {
      const bool has_unit = std::string_view(c.quantity) != "orientation";
      units_[name + c.name()] = has_unit ? unit_of_position(c.turns) : "";
    }
    for (const JointComponent& c : velocity_components(type)) units_[name + c.name()] = unit_of_velocity(c.turns);
    for (const JointComponent& c : effort_components(type)) {
      units_[name + c.name()] = units_[name + command_name(c)] = unit_of_effort(c.turns);
      for (const char* const part : {"command", "drive", "spring", "damping", "friction", "limit", "total"}) {
        units_[name + c.name() + "/" + part] = unit_of_effort(c.turns);
      }
    }
    units_[name + "power"] = "W";
  }
}

std::string ColumnUnits::operator()(const std::string& column) const {
  if (const auto found = units_.find(column); found != units_.end()) return found->second;
  for (const std::string_view before : {"final/", "best/", "initial_state/"}) {
    if (column.starts_with(before)) return (*this)(column.substr(before.size()));
  }
  if (!model_) return "";
  try {
    const std::vector<FieldSelection> selected = select_fields(*model_, column);
    return selected.size() == 1 ? std::string(selected.front().field->unit) : "";
  } catch (const Error&) {
    return "";  // no parameter's path
  }
}

}  // namespace backdrive::app
