#include "apps/model_text.h"

#include <cmath>

#include "apps/console.h"
#include "apps/json_text.h"
#include "apps/table.h"
#include "models/parameter_reader.h"

namespace backdrive::app {
namespace {

using Json = nlohmann::json;

/// "mesh, 2 box" of a body, −1: of the world.
std::string shapes_of(const Model& model, int body) {
  std::vector<std::pair<GeometryType, int>> counts;
  for (std::size_t s = 0; s < model.shape_names.size(); ++s) {
    if (model.shape_bodies[s] != body) continue;
    const GeometryType type = model.shape_types[s];
    const auto known = std::ranges::find(counts, type, &std::pair<GeometryType, int>::first);
    if (known == counts.end()) {
      counts.emplace_back(type, 1);
    } else {
      ++known->second;
    }
  }
  std::string text;
  for (const auto& [type, n] : counts) {
    text += (text.empty() ? "" : ", ") + (n > 1 ? std::to_string(n) + " " : std::string()) + to_string(type);
  }
  return text;
}

std::string range_of(const Model& model, int joint) {
  const JointType type = model.joint_types[joint];
  if (!may_be_driven(type)) return "";
  const double low = model.joints.limit.lower(joint), high = model.joints.limit.upper(joint);
  if (!std::isfinite(low) && !std::isfinite(high)) return "";
  const auto side = [](double x) { return std::isfinite(x) ? number(x) : std::string("none"); };
  const char* const unit = type == JointType::prismatic ? " m" : type == JointType::planar ? " m, rad" : " rad";
  return "[" + side(low) + ", " + side(high) + "]" + unit;
}

double total_mass(const Model& model) {
  double mass = 0;
  for (std::size_t b = 0; b < model.body_names.size(); ++b) mass += body_mass(model, static_cast<int>(b), 0).mass;
  return mass;
}

/// "left - 0.5 right + 0.1", as whoever reads a formula writes it.
std::string sum_of(const Model& model, int coupling) {
  std::string text;
  const auto add = [&](double factor, const std::string& of) {
    if (factor == 0 && !of.empty() && text.empty()) return;
    const double size = std::abs(factor);
    const std::string sign = factor < 0 ? (text.empty() ? "-" : " - ") : (text.empty() ? "" : " + ");
    text += sign + (size == 1 && !of.empty() ? "" : number(size) + (of.empty() ? "" : " ")) + of;
  };
  for (std::size_t k = 0; k < model.coupling_terms.size(); ++k) {
    const auto [of, joint] = model.coupling_terms[k];
    if (of == coupling) add(model.couplings.ratios(static_cast<int>(k)), model.joint_names[joint]);
  }
  if (const double offset = model.couplings.offset(coupling); offset != 0) add(offset, "");
  return text.empty() ? "0" : text;
}

/// What acts on a coupling.
std::string parts_of(const Model& model, int c) {
  if (model.coupling_holds[c]) return "held at 0";
  const CouplingParameters& own = model.couplings;
  std::string text;
  const auto add = [&](bool acts, const char* part) {
    if (acts) text += (text.empty() ? "" : ", ") + std::string(part);
  };
  add(own.spring.stiffness(c) > 0, "spring");
  add(own.damping(c) > 0, "damping");
  add(own.friction(c) > 0, "friction");
  add(std::isfinite(own.limit.lower(c)) || std::isfinite(own.limit.upper(c)), "limits");
  add(model.topology.couplings[c].target >= 0, "drive");
  return text;
}

std::string couplings_text(const Model& model) {
  if (model.coupling_names.empty()) return "";
  Table table({{"coupling", Table::Align::left}, {"position", Table::Align::left}, {"", Table::Align::left}});
  for (std::size_t c = 0; c < model.coupling_names.size(); ++c) {
    const int coupling = static_cast<int>(c);
    table.add({model.coupling_names[c], sum_of(model, coupling), parts_of(model, coupling)});
  }
  return "\n" + table.text();
}

Json couplings_json(const Model& model) {
  Json couplings = Json::array();
  for (std::size_t c = 0; c < model.coupling_names.size(); ++c) {
    Json ratios = Json::object();
    for (std::size_t k = 0; k < model.coupling_terms.size(); ++k) {
      const auto [of, joint] = model.coupling_terms[k];
      if (of == static_cast<int>(c)) ratios[model.joint_names[joint]] = model.couplings.ratios(static_cast<int>(k));
    }
    const int item = static_cast<int>(c);
    couplings.push_back({{"name", model.coupling_names[c]},
                         {"ratios", ratios},
                         {"offset", model.couplings.offset(item)},
                         {"hold", static_cast<bool>(model.coupling_holds[c])},
                         {"lower", finite_or_null(model.couplings.limit.lower(item))},
                         {"upper", finite_or_null(model.couplings.limit.upper(item))}});
  }
  return couplings;
}

}  // namespace

std::string model_text(const Scene& scene) {
  const Model& model = scene.problem.model;
  const Topology& t = model.topology;
  std::string text = scene.name + ": " + std::to_string(model.body_names.size()) + " bodies" + ", " +
                     std::to_string(t.joint_nv) + " degrees of freedom, " + number(total_mass(model)) + " kg\n\n";
  Table table({{"joint", Table::Align::left},
               {"type", Table::Align::left},
               {"limits", Table::Align::left},
               {"effort"},
               {"body", Table::Align::left},
               {"mass, kg"},
               {"shapes", Table::Align::left}});
  if (const std::string shapes = shapes_of(model, -1); !shapes.empty())
    table.add({"", "", "", "", "world", "", shapes});
  std::vector<int> depth(t.links.size(), 0);
  for (std::size_t i = 0; i < t.links.size(); ++i) {
    const Link& link = t.links[i];
    // A joint of several links is one level.
    if (link.parent >= 0) depth[i] = depth[link.parent] + (link.first ? 1 : 0);
    if (link.body < 0 && link.loop_child < 0) continue;
    const double effort = model.joints.drive.effort_limit(link.joint);
    table.add({std::string(2 * static_cast<std::size_t>(depth[i]), ' ') + model.joint_names[link.joint],
               to_string(model.joint_types[link.joint]), range_of(model, link.joint),
               link.target >= 0 && std::isfinite(effort) ? number(effort) : "",
               link.body < 0 ? "closes a loop" : model.body_names[link.body],
               link.body < 0 ? "" : number(body_mass(model, link.body, 0).mass),
               link.body < 0 ? "" : shapes_of(model, link.body)});
  }
  return text + table.text() + couplings_text(model);
}

Json model_json(const Scene& scene) {
  const Model& model = scene.problem.model;
  Json joints = Json::array(), bodies = Json::array(), shapes = Json::array(), notes = Json::array();
  const auto body_name = [&](int body) { return body < 0 ? std::string("world") : model.body_names[body]; };
  for (std::size_t j = 0; j < model.joint_names.size(); ++j) {
    const int joint = static_cast<int>(j);
    Json own{{"name", model.joint_names[j]},
             {"type", to_string(model.joint_types[j])},
             {"parent", body_name(model.joint_parents[j])},
             {"child", body_name(model.joint_children[j])}};
    if (may_be_driven(model.joint_types[j])) {
      own["lower"] = finite_or_null(model.joints.limit.lower(joint));
      own["upper"] = finite_or_null(model.joints.limit.upper(joint));
      own["effort_limit"] = finite_or_null(model.joints.drive.effort_limit(joint));
    }
    joints.push_back(own);
  }
  for (std::size_t b = 0; b < model.body_names.size(); ++b) {
    bodies.push_back({{"name", model.body_names[b]}, {"mass", body_mass(model, static_cast<int>(b), 0).mass}});
  }
  for (std::size_t s = 0; s < model.shape_names.size(); ++s) {
    shapes.push_back({{"name", model.shape_names[s]},
                      {"type", to_string(model.shape_types[s])},
                      {"body", body_name(model.shape_bodies[s])}});
  }
  for (const SceneNote& note : scene.notes) notes.push_back(note.text);
  return {{"scene", scene.name},
          {"degrees_of_freedom", model.topology.joint_nv},
          {"mass", total_mass(model)},
          {"joints", joints},
          {"bodies", bodies},
          {"shapes", shapes},
          {"couplings", couplings_json(model)},
          {"not_taken_over", notes}};
}

}  // namespace backdrive::app
