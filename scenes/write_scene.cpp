// A scene with numbers filled in, as text that reads back to the same numbers.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <span>

#include "models/meshes/convex_mesh.h"
#include "models/meshes/height_field.h"
#include "models/parameter_list.h"
#include "scenes/reader.h"

namespace backdrive {
namespace {

using namespace scene;

NodePtr number_node(double value, const std::string& path) {
  if (!std::isfinite(value)) {
    throw Error(ErrorKind::non_finite,
                path + ": value " + std::to_string(value) + " cannot be written to a scene: expected a finite number");
  }
  char text[40];  // as few digits as read back to the same bits
  return make_scalar({text, std::to_chars(text, text + sizeof text, value).ptr});
}

NodePtr list_node(const std::vector<double>& values, const std::string& path) {
  NodePtr list = make_list();
  for (const double value : values) list->list.push_back(number_node(value, path));
  return list;
}

void put(const NodePtr& map, const std::string& key, const NodePtr& value) {
  map->map.push_back({key, {}, value});
}

NodePtr controls_node(const Problem& filled) {
  NodePtr controls = make_map();
  for (const ControlSignal& signal : filled.controls) {
    if (signal.values.empty()) continue;
    const std::string& joint = name_of_controlled(filled.model, signal.joint);
    NodePtr of_joint = controls->find(joint);
    if (!of_joint) put(controls, joint, of_joint = make_map());
    const std::string path = "controls/" + joint;
    NodePtr node = make_map();
    put(node, "values", list_node(signal.values, path));
    if (signal.hold) put(node, "hold", make_scalar("true"));
    const JointComponent& component =
        controlled_components(filled.model, signal.joint, signal.channel)[signal.component];
    if (*component.axis == 0) {
      put(of_joint, component.quantity, node);
      continue;
    }
    NodePtr of_channel = of_joint->find(component.quantity);
    if (!of_channel) put(of_joint, component.quantity, of_channel = make_map());
    put(of_channel, component.axis, node);
  }
  return controls;
}

/// A joint's numbers by quantity: one, or a list.
void put_components(const NodePtr& state, const std::string& path, std::span<const JointComponent> components,
                    const double* values) {
  for (std::size_t k = 0; k < components.size();) {
    const std::string quantity = components[k].quantity;
    std::vector<double> numbers;
    const bool one = *components[k].axis == 0;
    for (; k < components.size() && quantity == components[k].quantity; ++k) numbers.push_back(values[k]);
    const std::string at = path + "/" + quantity;
    put(state, quantity, one ? number_node(numbers[0], at) : list_node(numbers, at));
  }
}

NodePtr initial_state_node(const Problem& filled) {
  const Model& model = filled.model;
  NodePtr states = make_map();
  const std::vector<double> neutral = neutral_positions(model.topology);
  for (std::size_t joint = 0; joint < model.joint_names.size(); ++joint) {
    const JointType type = model.joint_types[joint];
    const JointSize size = joint_size(type);
    if (size.nq == 0) continue;
    const Link& link = model.topology.links[model.link_of_joint(static_cast<int>(joint))];
    const double* const q = &filled.initial_position.at(link.q);
    const double* const qd = &filled.initial_velocity.at(link.v);
    const auto is_zero = [](double x) { return x == 0; };
    if (std::equal(q, q + size.nq, &neutral[link.q]) && std::all_of(qd, qd + size.nv, is_zero)) continue;
    NodePtr state = make_map();
    const std::string path = "initial_state/" + model.joint_names[joint];
    put_components(state, path, position_components(type), q);
    put_components(state, path, velocity_components(type), qd);
    put(states, model.joint_names[joint], state);
  }
  return states;
}

/// Puts the parameters that differ into the document.
NodePtr with_parameters(NodePtr root, const Model& original, const Model& filled) {
  const Sources sources{"result", {}};
  const ShapeLocations shapes(*root);
  Edits edits(std::move(root), sources);
  for (const Field& field : fields()) {
    const Parameter& before = field.in(original);
    const Parameter& after = field.in(filled);
    for (int item = 0; item < after.items(); ++item) {
      const int count = used_components(filled, field, item);
      bool changed = false;
      std::vector<double> values;
      for (int c = 0; c < count; ++c) {
        values.push_back(after(item, c));
        changed = changed || values.back() != before(item, c);
      }
      if (!changed) continue;
      const std::string path = path_of(filled, {&field, item, -1});
      const NodePtr value = count == 1 ? number_node(values[0], path) : list_node(values, path);
      edits.set(shapes.of_path(path), value, {});
    }
  }
  return edits.root();
}

/// Terrain with more heights stays in its file: a scene has its limits.
constexpr std::size_t kMostWrittenHeights = 200'000;

NodePtr vertices_node(const ConvexMesh& mesh, const std::string& path) {
  NodePtr list = make_list();
  for (const Vec3<double>& v : mesh.vertices) list->list.push_back(list_node({v.x, v.y, v.z}, path));
  return list;
}

NodePtr heights_node(const HeightField& field, const std::string& path) {
  NodePtr list = make_list();
  for (auto row = field.heights.begin(); row != field.heights.end(); row += field.columns) {
    list->list.push_back(list_node({row, row + field.columns}, path));
  }
  return list;
}

/// Puts what was read from files into the document. What several shapes share is written for each.
NodePtr with_meshes(NodePtr root, const Model& model) {
  const Sources sources{"result", {}};
  const ShapeLocations shapes(*root);
  Edits edits(std::move(root), sources);
  for (std::size_t s = 0; s < model.shape_names.size(); ++s) {
    const int index = model.shape_meshes[s];
    const bool mesh = model.shape_types[s] == GeometryType::mesh;
    if (index < 0 || (!mesh && model.height_fields[index]->heights.size() > kMostWrittenHeights)) continue;
    const std::string path = "shapes/" + model.shape_names[s] + "/geometry";
    const std::vector<std::string> location = shapes.of_path(path);
    auto geometry = std::make_shared<Node>(*value_at(edits.root(), location));
    for (Entry& entry : geometry->map) {
      if (entry.key != "file") continue;
      entry.key = mesh ? "vertices" : "heights";
      entry.value = mesh ? vertices_node(*model.meshes[index], path) : heights_node(*model.height_fields[index], path);
    }
    edits.set(location, geometry, {});
  }
  return edits.root();
}

/// A record of the scene, of which each of `terms` follows a part, in order.
NodePtr record_node(const std::vector<const LossTerm*>& terms) {
  const LossTerm& first = *terms.front();
  NodePtr values = make_list(), node = make_map();
  for (std::size_t row = 0; row < first.record.times.size(); ++row) {
    std::vector<double> numbers;
    for (const LossTerm* term : terms) {
      const std::array<double, 4>& own = term->record.values[row];
      numbers.insert(numbers.end(), own.begin(), own.begin() + term->target_numbers());
    }
    values->list.push_back(numbers.size() == 1 ? number_node(numbers[0], first.name) : list_node(numbers, first.name));
  }
  put(node, "times", list_node(first.record.times, first.name));
  put(node, "values", values);
  return node;
}

/// Puts records that were read from files into the document: those of the loss.
NodePtr with_records(NodePtr root, const std::vector<LossTerm>& loss) {
  std::map<std::string, std::vector<const LossTerm*>> records;
  for (const LossTerm& term : loss) {
    if (!term.record.empty()) records[term.record_path].push_back(&term);
  }
  const Sources sources{"result", {}};
  Edits edits(std::move(root), sources);
  for (auto& [path, terms] : records) {
    std::ranges::sort(terms, {}, &LossTerm::record_part);
    edits.set(split_path(path), record_node(terms), {});
  }
  return edits.root();
}

void replace(Node& root, const std::string& key, const NodePtr& value) {
  for (Entry& entry : root.map) {
    if (entry.key == key) {
      entry.value = value;
      return;
    }
  }
  // Before what is asked for, behind what is simulated.
  auto where = root.map.begin();
  while (where != root.map.end() && where->key != "optimize" && where->key != "requires_grad") ++where;
  root.map.insert(where, {key, {}, value});
}

bool same_shape(const Model& a, const Model& b) {
  return a.body_names == b.body_names && a.joint_names == b.joint_names && a.shape_names == b.shape_names &&
         a.coupling_names == b.coupling_names && a.topology.nq == b.topology.nq && a.topology.nv == b.topology.nv;
}

/// The section `optimize` without initial values of variables: whoever goes on begins with what the scene then says. A
/// spread of several starts stays, of which the first has none; that of a single one would move it away.
NodePtr beginning_there(const Node& optimize) {
  auto result = std::make_shared<Node>(optimize);
  const NodePtr variables = optimize.find("variables"), starts = optimize.find("starts");
  if (!variables) return result;
  const bool several = starts && starts->text != "1";
  auto list = std::make_shared<Node>(*variables);
  for (NodePtr& item : list->list) {
    const NodePtr initial = item->find("initial");
    if (!initial) continue;
    auto variable = std::make_shared<Node>(*item);
    const NodePtr random = several && initial->kind == NodeKind::map ? initial->find("random") : nullptr;
    std::erase_if(variable->map, [](const Entry& entry) { return entry.key == "initial"; });
    if (random) {
      NodePtr spread = make_map();
      put(spread, "random", random);
      variable->map.push_back({"initial", {}, spread});
    }
    item = variable;
  }
  replace(*result, "variables", list);
  return result;
}

}  // namespace

std::string scene_with_values(const Scene& scene, const Problem& filled) {
  if (!same_shape(scene.problem.model, filled.model)) {
    usage_error("scene_with_values: the values are of another model; expected that of the scene");
  }
  NodePtr root = std::make_shared<Node>(*scene.document);
  root = with_parameters(root, scene.problem.model, filled.model);
  root = with_meshes(root, scene.problem.model);
  root = with_records(root, scene.problem.loss);
  root = std::make_shared<Node>(*root);
  replace(*root, "initial_state", initial_state_node(filled));
  replace(*root, "controls", controls_node(filled));
  if (const NodePtr optimize = root->find("optimize")) replace(*root, "optimize", beginning_there(*optimize));
  if (!scene.name.empty() && !root->find("name")) {
    root->map.insert(root->map.begin(), {"name", {}, make_scalar(scene.name, {}, true)});
  }
  return to_yaml(*root);
}

}  // namespace backdrive
