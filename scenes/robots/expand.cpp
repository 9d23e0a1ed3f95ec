#include "scenes/robots/expand.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <unordered_set>

#include "scenes/reader.h"
#include "scenes/robots/robot.h"

namespace backdrive::scene {
namespace {

namespace fs = std::filesystem;

/// Keys of the model that are about one robot, as those of an entry of `robots` are.
bool is_robot_key(std::string_view key) {
  return key == "file" || key == "base" || key == "frame" || key == "collision" || key == "self_collision" ||
         key == "keyframe";
}

/// One more of the scene's entries beneath those of a robot.
NodePtr merged(const NodePtr& below, const NodePtr& above, std::string_view key) {
  const bool adds = key == "exclude" || key == "exclude_shapes" || key == "include";
  if (adds && below->kind == NodeKind::list && above->kind == NodeKind::list) {
    auto both = std::make_shared<Node>(*above);
    both->list.insert(both->list.begin(), below->list.begin(), below->list.end());
    return both;
  }
  const bool whole = key == "orientation" || (key == "geometry" && above->find("type"));
  if (below->kind != NodeKind::map || above->kind != NodeKind::map || whole) return above;
  auto result = std::make_shared<Node>(*below);
  result->place = above->place;
  for (const Entry& entry : above->map) {
    const auto known = std::ranges::find(result->map, entry.key, &Entry::key);
    if (known == result->map.end()) {
      result->map.push_back(entry);
    } else {
      known->value = merged(known->value, entry.value, entry.key);
      known->place = entry.place;
    }
  }
  return result;
}

std::string text_of(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string text(kMaxBytes + 1, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(stream.gcount()));
  return text;
}

class Expander {
 public:
  Expander(const fs::path& directory, const LoadOptions& options, Sources& sources, Scene& scene, Mistakes& mistakes)
      : directory_(directory), sources_(sources), scene_(scene), mistakes_(mistakes), roots_(options.robot_path) {
    for (fs::path& root : robot_path_of_environment()) roots_.push_back(std::move(root));
  }

  NodePtr expand(const NodePtr& root, const NodePtr& model) {
    model_ = std::make_shared<Node>(*model);
    model_->map.clear();
    const NodePtr integrator = value_at(root, {"simulation", "integrator"});
    closes_loops_ = integrator && integrator->kind == NodeKind::scalar && integrator->text == "semi_implicit";
    const Schema& schema = *scene_schema().key("model")->schema;
    NodePtr own = make_map(model->place), of_robot = make_map(model->place);
    for (const Entry& entry : model->map) {
      if (entry.key == "robots") continue;
      (is_robot_key(entry.key) ? of_robot : own)->map.push_back(entry);
    }
    const Schema& schema_of_robots = *schema.key("robots")->schema;
    if (of_robot->find("file")) {
      const View view(sources_, of_robot, *schema_of_robots.entry, "model");
      const bool is_right = check_value(of_robot, *schema_of_robots.entry, sources_, "model", mistakes_);
      try_robot(is_right, view, "", {"default"});
    } else if (!of_robot->map.empty()) {
      const Entry& entry = of_robot->map.front();
      mistakes_.lose_names();
      mistakes_.attempt([&] {
        fail(sources_, entry.place, "model", "key '" + entry.key + "' without the key 'file'",
             "a robot that it is about");
      });
    }
    if (const NodePtr robots = model->find("robots")) {
      const bool are_right = check_value(robots, schema_of_robots, sources_, "model/robots", mistakes_);
      if (!are_right) mistakes_.lose_names();
      const View view(sources_, robots, schema_of_robots, "model/robots");
      for (const auto& [name, robot, place] : robots->told ? std::vector<View::Named>() : view.entries()) {
        std::vector<std::string> meets{"default"};
        for (const Entry& other : robots->map) {
          if (other.key != name) meets.push_back(other.key);
        }
        try_robot(!is_told(*robot.node()), robot, name, std::move(meets));
      }
      keep_known_groups();
    }
    merge_shapes(*own);
    NodePtr result = merged(model_, own, "model");
    auto document = std::make_shared<Node>(*root);
    for (Entry& entry : document->map) {
      if (entry.key == "model") entry.value = result;
    }
    beneath(*document, "initial_state", initial_state_);
    beneath(*document, "controls", controls_);
    if (time_step_) {
      NodePtr simulation = make_map(time_step_->place);
      set_key(simulation, "time_step", time_step_, time_step_->place);
      beneath(*document, "simulation", simulation);
    }
    return document;
  }

 private:
  /// What robots say of a part of the document, beneath what the scene says.
  static void beneath(Node& document, const std::string& key, const NodePtr& of_robots) {
    if (of_robots->map.empty()) return;
    const auto known = std::ranges::find(document.map, key, &Entry::key);
    if (known == document.map.end()) {
      document.map.push_back({key, of_robots->place, of_robots});
    } else if (known->value->kind == NodeKind::map) {
      known->value = merged(of_robots, known->value, key);
    }
  }

  NodePtr& part(const std::string& key) {
    const auto known = std::ranges::find(model_->map, key, &Entry::key);
    if (known != model_->map.end()) return known->value;
    model_->map.push_back({key, model_->place, make_map(model_->place)});
    return model_->map.back().value;
  }

  /// A robot that is right, and whose entry is.
  void try_robot(bool is_right, const View& view, const std::string& name, std::vector<std::string> meets) {
    const bool is_added = is_right && mistakes_.attempt([&] { add_robot(view, name, std::move(meets)); });
    if (!is_added) mistakes_.lose_names();
  }

  void add_robot(const View& view, const std::string& name, std::vector<std::string> meets) {
    const View file = view["file"];
    const RobotFiles beside(directory_ / "scene", roots_);
    const fs::path path = beside.find(file.text(), sources_, file.node()->place, file.path());
    RobotRequest request;
    request.prefix = name.empty() ? "" : name + "_";
    request.floating = view["base"].text() == "floating";
    request.base_given = view.given("base");
    request.place = view.given("base") ? view["base"].node()->place : file.node()->place;
    const std::vector<double> position = view["frame"]["position"].numbers();
    request.frame = {{position[0], position[1], position[2]}, read_orientation(view["frame"]["orientation"])};
    request.collision = view["collision"].flag();
    request.self_collision = view["self_collision"].flag();
    request.self_collision_given = view.given("self_collision");
    if (const View key = view["keyframe"]) {
      request.key = key.text();
      request.key_place = key.node()->place;
    }
    request.meets = std::move(meets);
    request.closes_loops = closes_loops_;

    sources_.robots.push_back((path == fs::weakly_canonical(directory_ / file.text()) ? directory_ / file.text() : path)
                                  .lexically_normal()
                                  .string());
    const int source = -static_cast<int>(sources_.robots.size());
    const std::string text = text_of(path);
    if (!looks_like_xml(text)) {
      fail(sources_, {source, 1, 1}, "", "value '" + excerpt(text.substr(0, text.find('\n'))) + "'",
           "a robot file: URDF or MJCF, which begin with '<'");
    }
    const XmlElement robot = parse_xml(text, sources_, source);
    const bool is_mjcf = robot.name == "mujoco";
    if (robot.name != "robot" && !is_mjcf) {
      fail(sources_, robot.place, "", "element '" + excerpt(robot.name) + "'",
           robot.name == "sdf" ? "URDF or MJCF (SDF is not read)" : "a robot file: URDF, <robot>, or MJCF, <mujoco>");
    }
    const XmlAttribute* const title = robot.attribute(is_mjcf ? "model" : "name");
    request.group = !name.empty() ? name : title && !title->value.empty() ? title->value : "robot";
    if (request.group == "default") request.group = "robot";
    // MJCF files have groups of their own.
    if (request.self_collision && name.empty() && !is_mjcf) request.group.clear();
    if (!is_mjcf && !request.key.empty()) {
      fail(sources_, request.key_place, "keyframe", "value '" + excerpt(request.key) + "'",
           "no keyframe: URDF files have none");
    }
    const RobotParts parts =
        is_mjcf ? mjcf(robot, path, request) : read_urdf(robot, request, RobotFiles(path, roots_), sources_);
    const std::pair<const char*, const NodePtr&> all[] = {
        {"bodies", parts.bodies}, {"joints", parts.joints}, {"shapes", parts.shapes}, {"couplings", parts.couplings}};
    for (const auto& [key, map] : all) {
      if (map == parts.couplings && map->map.empty()) continue;
      NodePtr& known = part(key);
      std::unordered_set<std::string> names;
      for (const Entry& entry : known->map) names.insert(entry.key);
      for (const Entry& entry : map->map) {
        const bool is_new = mistakes_.attempt([&, key = key] {
          if (names.insert(entry.key).second) return;
          fail(sources_, entry.place, "model/" + std::string(key), "name '" + excerpt(entry.key) + "'",
               "a name that no other has");
        });
        if (is_new) known->map.push_back(entry);
      }
    }
    add_rest(parts, name.empty());
    has_shapes_.push_back({request.group, has_shape(*parts.bodies) || !parts.shapes->map.empty()});
    add_looks(parts);
    for (const RobotNote& note : parts.notes) {
      const std::string times = note.times > 1 ? " (" + std::to_string(note.times) + " times)" : "";
      const std::string text = sources_.name(note.place) + ": " + note.what + times;
      // Of several robots of one file, once.
      if (std::ranges::find(scene_.notes, text, &SceneNote::text) != scene_.notes.end()) continue;
      scene_.notes.push_back({text, note.changes_motion});
    }
  }

  void add_looks(const RobotParts& parts) {
    RobotLooks& looks = scene_.looks;
    looks.visuals.insert(looks.visuals.end(), parts.visuals.begin(), parts.visuals.end());
    for (const Entry& body : parts.bodies->map) {
      const NodePtr shapes = body.value->find("shapes");
      for (std::size_t i = 0; shapes && i < shapes->list.size(); ++i) {
        looks.shapes.push_back(listed_shape_name(body.key, *shapes, i));
      }
    }
    for (const Entry& shape : parts.shapes->map) looks.shapes.push_back(shape.key);
  }

  RobotParts mjcf(const XmlElement& robot, const fs::path& path, const RobotRequest& request) {
    const RobotFiles files(path, roots_);
    const auto include = [&](const XmlElement& element, const XmlAttribute& file) {
      const fs::path found = files.find(file.value, sources_, file.place, title(element) + ": file");
      sources_.robots.push_back(found.string());
      return parse_xml(text_of(found), sources_, -static_cast<int>(sources_.robots.size()));
    };
    const std::size_t before = mistakes_.failures();
    const MjcfDocument document(robot, sources_, include, mistakes_);
    RobotParts parts = read_mjcf(document, request, files, sources_, mistakes_);
    if (mistakes_.failures() > before) Mistakes::leave_off();
    return parts;
  }

  /// What a robot file says beside bodies, joints and shapes; of gravity and time, that of a scene's one robot.
  void add_rest(const RobotParts& parts, bool alone) {
    for (const Entry& entry : parts.initial_state->map) initial_state_->map.push_back(entry);
    for (const Entry& entry : parts.controls->map) controls_->map.push_back(entry);
    const std::pair<const char*, const NodePtr&> lists[] = {
        {"exclude", parts.exclude}, {"exclude_shapes", parts.exclude_shapes}, {"include", parts.include}};
    for (const auto& [key, list] : lists) {
      if (list->list.empty()) continue;
      NodePtr& contacts = part("contacts");
      const auto known = std::ranges::find(contacts->map, key, &Entry::key);
      if (known == contacts->map.end()) {
        contacts->map.push_back({key, list->place, list});
      } else {
        known->value = merged(known->value, list, key);
      }
    }
    if (!alone) return;
    if (parts.gravity) part("gravity") = parts.gravity;
    time_step_ = parts.time_step;
  }

  static bool has_shape(const Node& bodies) {
    return std::ranges::any_of(bodies.map, [](const Entry& body) { return body.value->find("shapes") != nullptr; });
  }

  /// Robots without shapes are in no group, which none may meet then.
  void keep_known_groups() {
    const auto unknown = [&](const NodePtr& group) {
      return std::ranges::any_of(has_shapes_,
                                 [&](const auto& robot) { return robot.first == group->text && !robot.second; });
    };
    for (const Entry& body : part("bodies")->map) {
      const NodePtr shapes = body.value->find("shapes");
      for (const NodePtr& shape : shapes ? shapes->list : std::vector<NodePtr>{}) {
        const NodePtr collision = shape->find("collision");
        const NodePtr meets = collision ? collision->find("meets") : nullptr;
        if (meets) std::erase_if(meets->list, unknown);
      }
    }
  }

  /// What the scene says in its `shapes` of shapes that a robot lists with its bodies goes there.
  void merge_shapes(Node& own) {
    const auto shapes = std::ranges::find(own.map, "shapes", &Entry::key);
    if (shapes == own.map.end() || shapes->value->kind != NodeKind::map) return;
    auto rest = std::make_shared<Node>(*shapes->value);
    rest->map.clear();
    Node holder;
    holder.kind = NodeKind::map;
    holder.map.push_back({"model", {}, model_});
    const ShapeLocations locations(holder);
    for (const Entry& entry : shapes->value->map) {
      const std::vector<std::string> location = locations.of(entry.key);
      if (location.size() == 5) {
        NodePtr& listed = model_->find("bodies")->find(location[2])->find("shapes")->list[std::stoul(location[4])];
        listed = merged(listed, entry.value, "shape");
      } else {
        rest->map.push_back(entry);
      }
    }
    shapes->value = rest;
  }

  const fs::path& directory_;
  Sources& sources_;
  Scene& scene_;  ///< gets notes and looks
  Mistakes& mistakes_;
  std::vector<fs::path> roots_;
  NodePtr model_;
  bool closes_loops_ = false;
  NodePtr initial_state_ = make_map(), controls_ = make_map(), time_step_;
  std::vector<std::pair<std::string, bool>> has_shapes_;  ///< by collision group
};

}  // namespace

bool looks_like_xml(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // byte order mark
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '<';
}

std::string scene_of_robot(const fs::path& file) {
  NodePtr root = make_map(), model = make_map();
  model->map.push_back({"file", {}, make_scalar(file.filename().string(), {}, true)});
  root->map.push_back({"model", {}, model});
  return to_yaml(*root);
}

bool is_about_robots(std::string_view path) {
  if (path == "simulation/integrator") return true;
  if (!path.starts_with("model/")) return false;
  path.remove_prefix(6);
  const std::string_view key = path.substr(0, path.find('/'));
  return key == "robots" || is_robot_key(key);
}

NodePtr expand_robots(const NodePtr& root, const fs::path& directory, const LoadOptions& options, Sources& sources,
                      Scene& scene, Mistakes& mistakes) {
  const NodePtr model = root->kind == NodeKind::map ? root->find("model") : nullptr;
  if (!model || model->kind != NodeKind::map) return root;
  const bool names_robots = std::ranges::any_of(
      model->map, [](const Entry& entry) { return entry.key == "robots" || is_robot_key(entry.key); });
  return names_robots ? Expander(directory, options, sources, scene, mistakes).expand(root, model) : root;
}

}  // namespace backdrive::scene
