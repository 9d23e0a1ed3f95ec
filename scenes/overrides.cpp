// Paths into a document: overrides, values filled in, and where errors of the model were written.
#include <algorithm>
#include <charconv>

#include "models/fields.h"
#include "scenes/reader.h"

namespace backdrive::scene {
namespace {

std::vector<std::string> split(std::string_view path) {
  std::vector<std::string> segments;
  while (true) {
    const size_t slash = path.find('/');
    segments.emplace_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return segments;
    path.remove_prefix(slash + 1);
  }
}

/// Index named by a segment: a number, or the name of a vector's component; −1 when it is neither.
int index_of(const std::string& segment, size_t size, bool components) {
  if (components && size <= 4 && segment.size() == 1) {
    const size_t i = std::string_view("xyzw").find(segment[0]);
    if (i < size) return static_cast<int>(i);
  }
  if (components && size == 6) {
    const std::string_view moments[] = {"xx", "yy", "zz", "xy", "xz", "yz"};
    const auto* found = std::find(std::begin(moments), std::end(moments), segment);
    if (found != std::end(moments)) return static_cast<int>(found - std::begin(moments));
  }
  int index = -1;
  const char* end = segment.data() + segment.size();
  if (segment.empty() || std::from_chars(segment.data(), end, index).ptr != end) return -1;
  return index >= 0 && static_cast<size_t>(index) < size ? index : -1;
}

/// The first `count` segments as text.
std::string joined(const std::vector<std::string>& path, size_t count) {
  std::string out;
  for (size_t i = 0; i < count; ++i) out += (i > 0 ? "/" : "") + path[i];
  return out;
}

/// Sets one value, copying the nodes on its path.
class Setter {
 public:
  Setter(const NodePtr& root, const std::vector<std::string>& path, NodePtr value, const Sources& sources, Place place)
      : root_(root), path_(path), value_(std::move(value)), sources_(sources), place_(place) {}

  NodePtr set() { return set(root_, scene_schema(), 0); }

 private:
  NodePtr set(const NodePtr& node, const Schema& schema, size_t i) {
    if (i == path_.size()) return value_;
    const Schema* option = pick(node, schema, path_[i]);
    if (option) {
      switch (option->kind) {
        case SchemaKind::map:
          return set_key(node, *option, i);
        case SchemaKind::names:
          return set_entry(node, *option, i);
        case SchemaKind::list:
        case SchemaKind::vector:
          return set_item(node, *option, i);
        default:
          break;
      }
    }
    const std::string what = node ? "value '" + excerpt(*node) + "'" : "nothing there";
    fail(sources_, place_, prefix(i), what, "a path that ends here ('" + path_[i] + "' is below a single value)");
  }

  /// The option of a choice that a path goes through: that of the value there, else one that has
  /// the segment.
  static const Schema* pick(const NodePtr& node, const Schema& schema, const std::string& segment) {
    if (node && node->kind != NodeKind::null) return resolve(schema, *node);
    if (schema.options.empty()) return &schema;
    for (const SchemaPtr& option : schema.options) {
      const Schema* inner = pick(nullptr, *option, segment);
      if (inner && inner->key(segment)) return inner;
    }
    return nullptr;
  }

  NodePtr copy(const NodePtr& node, NodeKind kind, size_t i) const {
    if (!node || node->kind == NodeKind::null) return kind == NodeKind::map ? make_map(place_) : make_list(place_);
    if (node->kind != kind) {
      fail(sources_, place_, prefix(i), "value '" + excerpt(*node) + "'",
           kind == NodeKind::map ? "a map there" : "a list there");
    }
    return std::make_shared<Node>(*node);
  }

  static void put(Node& map, const std::string& key, NodePtr value, Place place) {
    for (Entry& entry : map.map) {
      if (entry.key == key) {
        entry.value = std::move(value);
        return;
      }
    }
    map.map.push_back({key, place, std::move(value)});
  }

  NodePtr set_key(const NodePtr& node, const Schema& schema, size_t i) {
    const Key* key = schema.key(path_[i]);
    if (!key) unknown(i, known_keys(schema), "key");
    NodePtr result = copy(node, NodeKind::map, i);
    NodePtr child = result->find(key->name);
    if (!child && i + 1 < path_.size()) child = default_node(*key);
    put(*result, key->name, set(child, *key->schema, i + 1), place_);
    for (const auto& group : schema.exclusive_keys) drop_others(*result, group, key->name);
    return result;
  }

  /// Of keys that exclude one another the one just set stays, beside others that were set the same
  /// way (an error then).
  static void drop_others(Node& map, const std::vector<std::string>& group, const std::string& kept) {
    const auto in_group = [&](const std::string& key) {
      return std::find(group.begin(), group.end(), key) != group.end();
    };
    if (!in_group(kept)) return;
    std::erase_if(map.map, [&](const Entry& entry) {
      return entry.key != kept && in_group(entry.key) && entry.place.source <= 0;
    });
  }

  NodePtr set_entry(const NodePtr& node, const Schema& schema, size_t i) {
    NodePtr result = copy(node, NodeKind::map, i);
    NodePtr child = result->find(path_[i]);
    if (!child) {
      std::vector<std::string> known;
      // Joints at rest and without control need no entry; the model's own names do.
      const NodePtr model = i == 1 && path_[0] != "model" ? root_->find("model") : nullptr;
      const NodePtr joints = model ? model->find("joints") : nullptr;
      for (const Entry& entry : joints ? joints->map : result->map) known.push_back(entry.key);
      const bool is_joint = joints && std::find(known.begin(), known.end(), path_[i]) != known.end();
      if (!is_joint) unknown(i, known, schema.entry_words);
    }
    put(*result, path_[i], set(child, *schema.entry, i + 1), place_);
    return result;
  }

  NodePtr set_item(const NodePtr& node, const Schema& schema, size_t i) {
    NodePtr result = copy(node, NodeKind::list, i);
    const size_t size = result->list.size();
    const bool is_vector = schema.kind == SchemaKind::vector;
    int index = index_of(path_[i], size, is_vector);
    if (path_[i] == "angle" && of_planar_joint()) index = 2;
    if (index < 0) {
      fail(sources_, place_, prefix(i), "index '" + path_[i] + "'",
           size == 0 ? "no index: the list is empty" : "an index from 0 to " + std::to_string(size - 1));
    }
    static const Schema scalar{};
    result->list[index] = set(result->list[index], is_vector ? scalar : *schema.entry, i + 1);
    return result;
  }

  /// Whether the path leads to the three numbers of a planar joint.
  bool of_planar_joint() const {
    if (path_[0] != "initial_state") return false;
    const NodePtr type = value_at(root_, {"model", "joints", path_[1], "type"});
    return type && type->text == "planar";
  }

  static std::vector<std::string> known_keys(const Schema& schema) {
    std::vector<std::string> known;
    for (const Key& key : schema.keys) known.push_back(key.name);
    return known;
  }

  [[noreturn]] void unknown(size_t i, std::vector<std::string> known, const std::string& kind) const {
    if (i == 0) known.insert(known.end(), {"bodies", "joints", "shapes", "couplings", "gravity", "variables", "loss"});
    std::string list;
    for (size_t k = 0; k < known.size() && k < 12; ++k) list += (k > 0 ? ", " : "") + known[k];
    if (known.size() > 12) list += ", …";
    fail(sources_, place_, prefix(i), "unknown " + kind + " '" + excerpt(path_[i]) + "'",
         known.empty() ? "nothing below" : "one of " + list, nearest_name(path_[i], known));
  }

  std::string prefix(size_t count) const { return joined(path_, count); }

  const NodePtr& root_;
  const std::vector<std::string>& path_;
  NodePtr value_;
  const Sources& sources_;
  Place place_;
};

}  // namespace

NodePtr value_at(NodePtr node, const std::vector<std::string>& path) {
  for (const std::string& segment : path) {
    if (!node) return nullptr;
    if (node->kind == NodeKind::list) {
      const int index = index_of(segment, node->list.size(), false);
      node = index < 0 ? nullptr : node->list[index];
    } else {
      node = node->find(segment);
    }
  }
  return node;
}

NodePtr set_value(const NodePtr& root, const std::vector<std::string>& path, const NodePtr& value,
                  const Sources& sources, Place place) {
  return Setter(root, path, value, sources, place).set();
}

std::string listed_shape_name(const std::string& body, const Node& list, size_t i) {
  const NodePtr name = list.list[i]->find("name");
  if (name && name->kind == NodeKind::scalar) return name->text;
  return list.list.size() == 1 ? body : body + "_" + std::to_string(i);
}

std::vector<std::string> shape_location(const Node& root, std::string_view name) {
  const NodePtr model = root.find("model");
  if (!model) return {};
  if (const NodePtr shapes = model->find("shapes"); shapes && shapes->find(name)) {
    return {"model", "shapes", std::string(name)};
  }
  const NodePtr bodies = model->find("bodies");
  if (!bodies) return {};
  for (const Entry& body : bodies->map) {
    const NodePtr shapes = body.value->find("shapes");
    if (!shapes) continue;
    for (size_t i = 0; i < shapes->list.size(); ++i) {
      if (listed_shape_name(body.key, *shapes, i) == name) {
        return {"model", "bodies", body.key, "shapes", std::to_string(i)};
      }
    }
  }
  return {};
}

std::vector<std::string> document_location(const Node& root, std::string_view model_path) {
  std::vector<std::string> path = split(model_path);
  if (path[0] == "shapes" && path.size() > 1) {
    std::vector<std::string> location = shape_location(root, path[1]);
    if (!location.empty()) {
      location.insert(location.end(), path.begin() + 2, path.end());
      return location;
    }
  }
  path.insert(path.begin(), "model");
  return path;
}

namespace {

/// Wherever they are listed.
std::vector<std::string> shape_names(const Node& root) {
  std::vector<std::string> names;
  const NodePtr model = root.find("model");
  if (!model) return names;
  const NodePtr bodies = model->find("bodies"), apart = model->find("shapes");
  for (const Entry& body : bodies ? bodies->map : std::vector<Entry>{}) {
    const NodePtr shapes = body.value->find("shapes");
    for (size_t i = 0; shapes && i < shapes->list.size(); ++i) {
      names.push_back(listed_shape_name(body.key, *shapes, i));
    }
  }
  for (const Entry& shape : apart ? apart->map : std::vector<Entry>{}) names.push_back(shape.key);
  return names;
}

/// The document's path of an override's, whose first words may be left out.
std::vector<std::string> full_path(const Node& root, std::vector<std::string> path) {
  if (path.empty()) return path;  // what is above a `*` that stands first
  if (path[0] == "variables" || path[0] == "loss") path.insert(path.begin(), "optimize");
  static constexpr std::string_view of_model[] = {"bodies", "joints", "shapes", "couplings", "gravity"};
  if (std::ranges::find(of_model, path[0]) != std::end(of_model)) {
    path.insert(path.begin(), "model");
  }
  if (path[0] != "model" || path.size() < 3 || path[1] != "shapes") return path;
  std::vector<std::string> location = shape_location(root, path[2]);
  if (location.empty()) return path;
  location.insert(location.end(), path.begin() + 3, path.end());
  return location;
}

/// Calls visit(path) for every path that one with `*` in place of components stands for. Members that have nothing
/// below to stand for are left out; returns how many paths there were.
template <class Visit>
int each_path(const NodePtr& root, std::vector<std::string> path, const Visit& visit) {
  const auto star = std::ranges::find(path, "*");
  if (star == path.end()) {
    visit(full_path(*root, std::move(path)));
    return 1;
  }
  const std::vector<std::string> before = full_path(*root, {path.begin(), star});
  std::vector<std::string> members;
  const NodePtr above = value_at(root, before);
  if (before.size() == 2 && before[0] == "model" && before[1] == "shapes") {
    members = shape_names(*root);
  } else if (above) {
    for (const Entry& entry : above->map) members.push_back(entry.key);
    for (size_t i = 0; i < above->list.size(); ++i) members.push_back(std::to_string(i));
  }
  const auto at = static_cast<std::size_t>(star - path.begin());
  int paths = 0;
  for (std::string& member : members) {
    path[at] = std::move(member);
    paths += each_path(root, path, visit);
  }
  return paths;
}

}  // namespace

NodePtr apply_overrides(const NodePtr& root, std::span<const Override> overrides, const Sources& sources,
                        const std::function<bool(std::string_view)>& which) {
  NodePtr result = root;
  for (size_t k = 0; k < overrides.size(); ++k) {
    if (which && !which(overrides[k].path)) continue;
    const Place place{static_cast<int>(k) + 1, 1, 1};
    const NodePtr value = parse_document(overrides[k].value, sources, place.source);
    if (overrides[k].path.empty()) fail(sources, place, "", "path ''", "a path, like simulation/time_step");
    const NodePtr before = result;
    const std::vector<std::string> path = split(overrides[k].path);
    const int paths = each_path(before, path, [&](const std::vector<std::string>& one) {
      result = set_value(result, one, value, sources, place);
    });
    if (paths == 0) {
      const auto star = static_cast<std::size_t>(std::ranges::find(path, "*") - path.begin());
      fail(sources, place, joined(path, star), "'*'", "members that it can stand for: there are none");
    }
  }
  return result;
}

}  // namespace backdrive::scene
