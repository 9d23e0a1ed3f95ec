// Paths into a document: overrides, values filled in, and where errors of the model were written.
#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "models/parameter_list.h"
#include "scenes/reader.h"

namespace backdrive::scene {

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> segments;
  while (true) {
    const size_t slash = path.find('/');
    segments.emplace_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return segments;
    path.remove_prefix(slash + 1);
  }
}

namespace {

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

/// Sets one value of `edits`, copying those nodes on its path that the document had before.
class Setter {
 public:
  Setter(Edits& edits, const std::vector<std::string>& path, NodePtr value, Place place)
      : edits_(edits), path_(path), value_(std::move(value)), place_(place) {}

  NodePtr set() { return set(edits_.root(), scene_schema(), 0); }

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
    fail(edits_.sources(), place_, prefix(i), what,
         "a path that ends here ('" + path_[i] + "' is below a single value)");
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

  NodePtr copy(const NodePtr& node, NodeKind kind, size_t i) {
    if (!node || node->kind == NodeKind::null) {
      return edits_.made(kind == NodeKind::map ? make_map(place_) : make_list(place_));
    }
    if (node->kind != kind) {
      fail(edits_.sources(), place_, prefix(i), "value '" + excerpt(*node) + "'",
           kind == NodeKind::map ? "a map there" : "a list there");
    }
    return edits_.own(node);
  }

  static void put(Node& map, const std::string& key, NodePtr value, Place place) {
    if (Entry* const entry = map.entry(key)) {
      entry->value = std::move(value);
      return;
    }
    map.map.push_back({key, place, std::move(value)});
  }

  NodePtr set_key(const NodePtr& node, const Schema& schema, size_t i) {
    const Key* key = schema.key(path_[i]);
    if (!key) unknown(i, known_keys(schema), "key");
    NodePtr result = copy(node, NodeKind::map, i);
    NodePtr child = result->find(key->name);
    if (!child && i + 1 < path_.size()) {
      child = default_node(*key);
      if (child) child = edits_.made(deep_copy(*child));
    }
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
      const NodePtr model = i == 1 && path_[0] != "model" ? edits_.root()->find("model") : nullptr;
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
      fail(edits_.sources(), place_, prefix(i), "index '" + path_[i] + "'",
           size == 0 ? "no index: the list is empty" : "an index from 0 to " + std::to_string(size - 1));
    }
    static const Schema scalar{};
    result->list[index] = set(result->list[index], is_vector ? scalar : *schema.entry, i + 1);
    return result;
  }

  /// Whether the path leads to the three numbers of a planar joint.
  bool of_planar_joint() const {
    if (path_[0] != "initial_state") return false;
    const NodePtr type = value_at(edits_.root(), {"model", "joints", path_[1], "type"});
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
    fail(edits_.sources(), place_, prefix(i), "unknown " + kind + " '" + excerpt(path_[i]) + "'",
         known.empty() ? "nothing below" : "one of " + list, nearest_name(path_[i], known));
  }

  std::string prefix(size_t count) const { return joined(path_, count); }

  Edits& edits_;
  const std::vector<std::string>& path_;
  NodePtr value_;
  Place place_;
};

}  // namespace

NodePtr value_at(const NodePtr& root, const std::vector<std::string>& path) {
  NodePtr node = root;
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

Edits::Edits(NodePtr root, const Sources& sources) : sources_(sources), root_(std::move(root)) {}

void Edits::set(const std::vector<std::string>& path, const NodePtr& value, Place place) {
  root_ = Setter(*this, path, value, place).set();
}

NodePtr Edits::own(const NodePtr& node) {
  return own_.contains(node) ? node : made(std::make_shared<Node>(*node));
}

NodePtr Edits::made(NodePtr node) {
  own_.insert(node);
  return node;
}

std::string listed_shape_name(const std::string& body, const Node& list, size_t i) {
  const NodePtr name = list.list[i]->find("name");
  if (name && name->kind == NodeKind::scalar) return name->text;
  return list.list.size() == 1 ? body : body + "_" + std::to_string(i);
}

ShapeLocations::ShapeLocations(const Node& root) {
  const NodePtr model = root.find("model");
  if (!model) return;
  const NodePtr bodies = model->find("bodies"), apart = model->find("shapes");
  const std::vector<Entry> none;
  for (const Entry& body : bodies ? bodies->map : none) {
    const NodePtr shapes = body.value->find("shapes");
    for (size_t i = 0; shapes && i < shapes->list.size(); ++i) {
      std::string name = listed_shape_name(body.key, *shapes, i);
      listed_.try_emplace(name, body.key, i);
      names_.push_back(std::move(name));
    }
  }
  for (const Entry& shape : apart ? apart->map : none) {
    apart_.insert(shape.key);
    names_.push_back(shape.key);
  }
}

std::vector<std::string> ShapeLocations::of(const std::string& name) const {
  if (apart_.contains(name)) return {"model", "shapes", name};
  const auto found = listed_.find(name);
  if (found == listed_.end()) return {};
  const auto& [body, index] = found->second;
  return {"model", "bodies", body, "shapes", std::to_string(index)};
}

std::vector<std::string> ShapeLocations::of_path(std::string_view model_path) const {
  std::vector<std::string> path = split_path(model_path);
  if (path[0] == "shapes" && path.size() > 1) {
    std::vector<std::string> location = of(path[1]);
    if (!location.empty()) {
      location.insert(location.end(), path.begin() + 2, path.end());
      return location;
    }
  }
  path.insert(path.begin(), "model");
  return path;
}

namespace {

/// The document's paths that an override's stands for.
class OverridePaths {
 public:
  explicit OverridePaths(NodePtr root) : root_(std::move(root)) {}

  /// Each `*` is any member; members that have nothing below to stand for are left out.
  void add(std::vector<std::string> path) {
    const auto star = std::ranges::find(path, "*");
    if (star == path.end()) {
      found_.push_back(full(std::move(path)));
      return;
    }
    std::vector<std::string> members = members_of(full({path.begin(), star}));
    const auto at = static_cast<std::size_t>(star - path.begin());
    for (std::string& member : members) {
      path[at] = std::move(member);
      add(path);
    }
  }
  const std::vector<std::vector<std::string>>& found() const { return found_; }

 private:
  /// With its first words, which may be left out.
  std::vector<std::string> full(std::vector<std::string> path) {
    if (path.empty()) return path;  // what is above a `*` that stands first
    if (path[0] == "variables" || path[0] == "loss") path.insert(path.begin(), "optimize");
    static constexpr std::string_view of_model[] = {"bodies", "joints", "shapes", "couplings", "gravity"};
    if (std::ranges::find(of_model, path[0]) != std::end(of_model)) {
      path.insert(path.begin(), "model");
    }
    if (path[0] != "model" || path.size() < 3 || path[1] != "shapes") return path;
    std::vector<std::string> location = shapes().of(path[2]);
    if (location.empty()) return path;
    location.insert(location.end(), path.begin() + 3, path.end());
    return location;
  }

  std::vector<std::string> members_of(const std::vector<std::string>& above) {
    if (above.size() == 2 && above[0] == "model" && above[1] == "shapes") return shapes().names();
    const NodePtr node = value_at(root_, above);
    std::vector<std::string> members;
    if (!node) return members;
    for (const Entry& entry : node->map) members.push_back(entry.key);
    for (size_t i = 0; i < node->list.size(); ++i) members.push_back(std::to_string(i));
    return members;
  }

  const ShapeLocations& shapes() {
    if (!shapes_) shapes_.emplace(*root_);
    return *shapes_;
  }

  NodePtr root_;
  std::optional<ShapeLocations> shapes_;
  std::vector<std::vector<std::string>> found_;
};

/// How many values there are, counted through what several places share, as parse_document() counts them.
size_t values_of(const Node& node, std::unordered_map<const Node*, size_t>& known) {
  if (node.list.empty() && node.map.empty()) return 1;
  const auto [found, is_new] = known.try_emplace(&node, 1);
  if (!is_new) return found->second;
  size_t count = 1;
  for (const NodePtr& item : node.list) count += values_of(*item, known);
  for (const Entry& entry : node.map) count += values_of(*entry.value, known);
  return known[&node] = count;
}
size_t values_of(const Node& node) {
  std::unordered_map<const Node*, size_t> known;
  return values_of(node, known);
}

void apply_override(Edits& edits, const Override& one, Place place, Mistakes& mistakes) {
  const Sources& sources = edits.sources();
  const NodePtr value = parse_document(one.value, sources, place.source, mistakes);
  if (one.path.empty()) fail(sources, place, "", "path ''", "a path, like simulation/time_step");
  const std::vector<std::string> path = split_path(one.path);
  OverridePaths paths(edits.root());
  paths.add(path);
  for (const std::vector<std::string>& found : paths.found()) edits.set(found, value, place);
  if (paths.found().empty()) {
    const auto star = static_cast<std::size_t>(std::ranges::find(path, "*") - path.begin());
    fail(sources, place, joined(path, star), "'*'", "members that it can stand for: there are none");
  }
}

}  // namespace

NodePtr apply_overrides(const NodePtr& root, std::span<const Override> overrides, const Sources& sources,
                        Mistakes& mistakes, const std::function<bool(std::string_view)>& which) {
  Edits edits(root, sources);
  Place last;
  for (size_t k = 0; k < overrides.size(); ++k) {
    if (which && !which(overrides[k].path)) continue;
    const Place place = last = {static_cast<int>(k) + 1, 1, 1};
    mistakes.attempt([&] { apply_override(edits, overrides[k], place, mistakes); });
  }
  // The same value at many places is one here, and would be looked at in each.
  if (last.source > 0 && values_of(*edits.root()) > std::max(kMaxNodes, values_of(*root))) {
    fail(sources, last, "", "with overrides more than " + std::to_string(kMaxNodes) + " values",
         "fewer, or smaller ones");
  }
  return edits.root();
}

}  // namespace backdrive::scene
