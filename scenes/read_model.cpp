// The model section of a scene, handed to the ModelBuilder, whose complaints are brought back to
// lines and columns.
#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "models/builder.h"
#include "scenes/collision_groups.h"
#include "scenes/pose.h"
#include "scenes/reader.h"

namespace backdrive::scene {
namespace {

Numbers3 numbers3(const View& view, const JointType* joint = nullptr) {
  const std::vector<double> values = view.numbers(joint);
  return {values[0], values[1], values[2]};
}

Frame read_frame(const View& view) {
  return {numbers3(view["position"]), read_orientation(view["orientation"])};
}

/// Builds the model; maps of names keep look-ups of large scenes linear.
class ModelReader {
 public:
  ModelReader(const View& root, const std::filesystem::path& directory, Mistakes& mistakes, UnreadParts& unread)
      : root_(root), model_(root["model"]), directory_(directory), mistakes_(mistakes), unread_(unread) {}

  Model read() {
    const std::size_t before = mistakes_.failures();
    mistakes_.attempt([&] {
      const std::vector<double> gravity = model_["gravity"].numbers();
      builder_.set_gravity({gravity[0], gravity[1], gravity[2]});
    });
    mistakes_.attempt([&] {
      if (root_["simulation"]["integrator"].text() != to_string(Integrator::semi_implicit)) return;
      builder_.set_integrator(Integrator::semi_implicit);
    });
    read_part("bodies", [&] { read_bodies(); });
    read_part("joints", [&] { read_joints(); });
    read_part("shapes", [&] { read_shapes(); });
    read_part("couplings", [&] { read_couplings(); });
    mistakes_.attempt([&] { read_contacts(); });
    const bool has_tree = tree_is_known_ && !mistakes_.names_lost("bodies") && !mistakes_.names_lost("joints");
    const bool is_whole = has_tree && mistakes_.failures() == before && !is_told(*model_.node());
    ModelMistakes found;
    Model model = builder_.build(found, {!has_tree, !is_whole});
    report(found);
    unread_.contacts = !is_whole || found.size() > 0;
    return model;
  }

 private:
  /// What has names of a kind.
  template <class Read>
  void read_part(const char* kind, const Read& read) {
    if (!mistakes_.attempt(read)) mistakes_.lose_names(kind);
  }

  void read_bodies() {
    for (const auto& [name, body, place] : model_["bodies"].entries()) {
      BodyOptions options;
      const View& view = body;
      mistakes_.attempt([&] { options.mass = view["mass"].number(); });
      mistakes_.attempt([&] { options.com = numbers3(view["com"]); });
      mistakes_.attempt([&] { options.gravity_compensation = view["gravity_compensation"].number(); });
      mistakes_.attempt([&] {
        const std::vector<double> inertia = view["inertia"].numbers();
        for (size_t i = 0; i < inertia.size(); ++i) options.inertia[i] = inertia[i];
      });
      mistakes_.attempt([&] { options.unphysical_inertia = view["unphysical_inertia"].flag(); });
      bodies_[name] = builder_.add_body(name, options);
      body_names_.push_back(name);
    }
  }

  /// Body index by name; −1 for world.
  int body_named(const View& view) const {
    if (view.text() == "world") return ModelBuilder::world;
    const auto found = bodies_.find(view.text());
    if (found != bodies_.end()) return found->second;
    std::vector<std::string> known = body_names_;
    known.emplace_back("world");
    refuse_name(view, "the name of a body, or world", "bodies", known, mistakes_);
  }

  void read_joints() {
    for (const auto& [name, joint, place] : model_["joints"].entries()) {
      const View& view = joint;
      JointType type = JointType::fixed;
      const int any_body = bodies_.empty() ? int{ModelBuilder::world} : 0;
      int parent = ModelBuilder::world, child = any_body;
      JointOptions options;
      const bool has_type = mistakes_.attempt([&] { type = joint_type(view["type"].text()); });
      const bool has_parent = mistakes_.attempt([&] { parent = body_named(view["parent"]); });
      const bool has_child = mistakes_.attempt([&] {
        const View of = view["child"];
        child = body_named(of);
        if (child == ModelBuilder::world) of.refuse("a body that the joint carries, not the world");
      });
      const bool has_loop = mistakes_.attempt([&] { options.loop = view["loop"].flag(); });
      if (!has_child || child == ModelBuilder::world) child = any_body;
      if (has_type) mistakes_.attempt([&] { joint_options(view, type, options); });
      if (!has_type) unread_.joints.insert(name);
      if (!has_type || !has_loop) doubtful_.insert("joints/" + name);
      if (!has_parent || !has_child) misplaced_.insert("joints/" + name);
      if (!has_type || !has_parent || !has_child || !has_loop) tree_is_known_ = false;
      joints_[name] = builder_.add_joint(name, type, parent, child, options);
      joint_names_.push_back(name);
      types_.push_back(type);
    }
  }

  /// All joints of a coupling turn or slide: the unit of its position; null: neither.
  const JointType* unit_of(const CouplingOptions& coupling) const {
    const auto are = [&](JointType type) {
      return std::ranges::all_of(coupling.ratios, [&](const CouplingRatio& r) { return types_[r.joint] == type; });
    };
    if (coupling.ratios.empty() || !(are(JointType::revolute) || are(JointType::prismatic))) return nullptr;
    return &types_[coupling.ratios[0].joint];
  }

  void read_couplings() {
    for (const auto& [name, coupling, place] : model_["couplings"].entries()) {
      read_coupling(name, coupling);
    }
  }

  void read_coupling(const std::string& name, const View& coupling) {
    CouplingOptions options;
    bool has_ratios = false;
    mistakes_.attempt([&] {
      const auto ratios = coupling["ratios"].entries();
      for (const auto& [joint, ratio, at] : ratios) {
        mistakes_.attempt([&, &joint = joint, &ratio = ratio, &at = at] { add_ratio(joint, ratio, at, options); });
      }
      has_ratios = options.ratios.size() == ratios.size();
    });
    if (!has_ratios) return void(unread_.couplings.insert(name));  // of which the unit is another
    const JointType* const unit = unit_of(options);
    mistakes_.attempt([&] { options.offset = coupling["offset"].number(unit); });
    const bool has_hold = mistakes_.attempt([&] { options.hold = coupling["hold"].flag(); });
    if (!has_hold) unread_.couplings.insert(name);
    read_resistances(coupling, unit, options);
    read_efforts(coupling, unit, options);
    builder_.add_coupling(name, options);
  }

  void add_ratio(const std::string& joint, const View& ratio, Place at, CouplingOptions& options) const {
    const auto found = joints_.find(joint);
    if (found == joints_.end()) {
      if (mistakes_.names_lost("joints")) Mistakes::leave_off();
      fail(root_.sources(), at, ratio.path(), "joint '" + excerpt(joint) + "'", "the name of a joint",
           nearest_name(joint.substr(0, 200), joint_names_));
    }
    if (unread_.joints.contains(joint)) Mistakes::leave_off();
    options.ratios.push_back({found->second, ratio.number()});
  }

  /// Whether a joint of the type has springs, limits and drives, or is told that it cannot (ModelBuilder).
  static bool takes_efforts(JointType type) { return joint_size(type).nv < 2 || may_be_driven(type); }

  /// Keys that joints with several degrees of freedom have no use for.
  void refuse_unused(const View& joint, JointType type) {
    if (joint_size(type).nv < 2) return;
    const std::string is = std::string("no such key for a ") + to_string(type) + " joint";
    const auto refuse = [&](const char* key, const char* why) {
      mistakes_.attempt([&] {
        if (joint.given(key)) joint[key].refuse(is + why);
      });
    };
    refuse("axis", ": its `frame` says how it is turned");
    if (takes_efforts(type)) return;
#define BACKDRIVE_KEY(type, member, parameters, what, X) #member,
    for (const char* const key : {BACKDRIVE_EFFORT_NESTS(BACKDRIVE_KEY, )}) refuse(key, ": all others have it");
#undef BACKDRIVE_KEY
  }

  static JointType joint_type(std::string_view word) {
    for (const JointType type : kJointTypes) {
      if (word == to_string(type)) return type;
    }
    return JointType::fixed;
  }

  void joint_options(const View& joint, JointType type, JointOptions& options) {
    refuse_unused(joint, type);
    // A coefficient of slides and turns at once takes either unit.
    const bool mixed = type == JointType::planar || type == JointType::free;
    const JointType* const unit = mixed ? nullptr : &type;
    mistakes_.attempt([&] { options.frame = read_frame(joint["frame"]); });
    mistakes_.attempt([&] {
      const View view = joint["child_frame"];
      const Frame frame = read_frame(view);
      if (options.loop) options.child_frame = frame;
      if (options.loop || !joint.given("child_frame")) return;
      view.refuse("no such key: only a joint that closes a loop (loop: true) has a frame on its child");
    });
    mistakes_.attempt([&] {
      if (const View release = joint["release"]) options.release = release["at"].number();
    });
    mistakes_.attempt([&] { options.axis = numbers3(joint["axis"]); });
    mistakes_.attempt([&] { options.spins = joint["spins"].flag(); });
    read_resistances(joint, unit, options);
    if (takes_efforts(type)) read_efforts(joint, unit, options);
    mistakes_.attempt([&] {
      const View nest = joint["attachment"];
#define BACKDRIVE_READ(at, name, ...) \
  if (const View value = nest[#name]) mistakes_.attempt([&] { options.attachment.name = value.number(&type); });
      BACKDRIVE_ATTACHMENT_PARAMETERS(BACKDRIVE_READ, )
#undef BACKDRIVE_READ
    });
  }

  /// A key without a number leaves what the option begins with.
  void read_number(double& number, const View& nest, const char* name, const JointType* unit) {
    mistakes_.attempt([&] {
      if (const View value = nest[name]) number = value.number(unit);
    });
  }

  // What acts on a joint or a coupling, in its unit.
#define BACKDRIVE_READ(at, name, ...) read_number(options.at name, view, #name, unit);
  template <class Options>
  void read_resistances(const View& view, const JointType* unit, Options& options) {
    BACKDRIVE_RESISTANCE_PARAMETERS(BACKDRIVE_READ, )
  }
#undef BACKDRIVE_READ
#define BACKDRIVE_READ(at, name, ...) read_number(options.at name, nest, #name, unit);
#define BACKDRIVE_READ_NEST(owner, member, parameters, what, X) \
  mistakes_.attempt([&] {                                       \
    const View nest = view[#member];                            \
    parameters(BACKDRIVE_READ, member.)                         \
  });
  template <class Options>
  void read_efforts(const View& view, const JointType* unit, Options& options) {
    mistakes_.attempt([&] { options.driven = view.given("drive"); });
    BACKDRIVE_EFFORT_NESTS(BACKDRIVE_READ_NEST, )
  }
#undef BACKDRIVE_READ
#undef BACKDRIVE_READ_NEST

  /// Calls visit(name, shape, body it is listed with or null) for each shape.
  template <class Visit>
  void each_shape(Visit&& visit) {
    for (const auto& [name, body, place] : model_["bodies"].entries()) {
      read_part("shapes", [&, &name = name, &body = body] {
        const View shapes = body["shapes"];
        const std::vector<View> items = shapes.items();
        for (size_t i = 0; i < items.size(); ++i) visit(listed_shape_name(name, *shapes.node(), i), items[i], &name);
      });
    }
    read_part("shapes", [&] {
      for (const auto& [name, shape, place] : model_["shapes"].entries()) visit(name, shape, nullptr);
    });
  }

  void read_shapes() {
    each_shape([&](const std::string&, const View& shape, const std::string*) {
      read_part("shapes", [&] { groups_.learn(shape["collision"]); });
    });
    each_shape([&](const std::string& name, const View& shape, const std::string* body) {
      mistakes_.attempt([&] { add_shape(name, body, shape); });
      shapes_.try_emplace(name, -1);  // what names it is not wrong
    });
  }

  /// Two names.
  static std::pair<View, View> read_pair(const View& pair, const std::string& what) {
    const std::vector<View> items = pair.items();
    if (items.size() != 2) pair.refuse("a list of two names of " + what);
    return {items[0], items[1]};
  }

  int shape_named(const View& view) const {
    const auto found = shapes_.find(view.text());
    if (found != shapes_.end() && found->second < 0) Mistakes::leave_off();
    if (found != shapes_.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [name, index] : shapes_) known.push_back(name);
    std::ranges::sort(known);
    refuse_name(view, "the name of a shape", "shapes", known, mistakes_);
  }

  void read_contacts() {
    const View contacts = model_["contacts"];
    const auto read = [&](const char* key, const char* what, const auto& add) {
      mistakes_.attempt([&] {
        for (const View& pair : contacts[key].items()) {
          mistakes_.attempt([&] {
            const auto [a, b] = read_pair(pair, what);
            add(a, b);
          });
        }
      });
    };
    const auto both = [&](const View& a, const View& b, const auto& index_of) {
      std::pair<int, int> pair;
      const bool first = mistakes_.attempt([&] { pair.first = index_of(a); });
      if (!mistakes_.attempt([&] { pair.second = index_of(b); }) || !first) Mistakes::leave_off();
      return pair;
    };
    read("exclude", "bodies (or world)", [&](const View& a, const View& b) {
      const auto [one, other] = both(a, b, [&](const View& view) { return body_named(view); });
      builder_.exclude_contacts(one, other);
    });
    read("exclude_shapes", "shapes", [&](const View& a, const View& b) {
      const auto [one, other] = both(a, b, [&](const View& view) { return shape_named(view); });
      builder_.exclude_shapes(one, other);
    });
    read("include", "shapes", [&](const View& a, const View& b) {
      const auto [one, other] = both(a, b, [&](const View& view) { return shape_named(view); });
      builder_.include_contact(one, other);
    });
  }

  void add_shape(const std::string& name, const std::string* listed_with, const View& view) {
    if (name.empty() || name.size() > 210 || name.find_first_of("/*\n") != std::string::npos) {
      view["name"].refuse("a name of 1 to 200 bytes without '/', '*' and line breaks");
    }
    if (shapes_.contains(name)) {
      view.refuse("another name than '" + name + "', which another shape has (key name)");
    }
    int body = ModelBuilder::world;
    ShapeOptions options;
    const bool has_body =
        mistakes_.attempt([&] { body = listed_with ? bodies_.at(*listed_with) : body_named(view["body"]); });
    const bool has_geometry = mistakes_.attempt([&] { read_geometry(view["geometry"], options); });
    mistakes_.attempt([&] { options.frame = read_frame(view["frame"]); });
    mistakes_.attempt([&] { options.density = view["density"].number(); });
#define BACKDRIVE_READ(at, name, ...) mistakes_.attempt([&] { options.name = view["material"][#name].number(); });
    BACKDRIVE_MATERIAL_PARAMETERS(BACKDRIVE_READ, )
#undef BACKDRIVE_READ
    mistakes_.attempt([&] { options.filter = groups_.filter(view["collision"], mistakes_); });
    if (!has_geometry) return;
    const int index = builder_.add_shape(name, body, options);
    if (has_body) {
      shapes_[name] = index;
    } else {
      misplaced_.insert("shapes/" + name);
    }
  }

  void read_geometry(const View& geometry, ShapeOptions& options) {
    options.type = geometry_type(geometry["type"].text());
    Parts parts(mistakes_);
    parts.read([&] { options.scale = read_scale(geometry, options.type, options.scale); });
    parts.read([&] { options.margin = geometry["margin"].number(); });
    parts.read([&] { read_asset(geometry, options); });
    parts.need_all();
  }

  static GeometryType geometry_type(const std::string& word) {
    for (const GeometryType type :
         {GeometryType::plane, GeometryType::sphere, GeometryType::ellipsoid, GeometryType::capsule, GeometryType::box,
          GeometryType::mesh, GeometryType::height_field}) {
      if (word == to_string(type)) return type;
    }
    return GeometryType::cylinder;
  }

  void read_asset(const View& geometry, ShapeOptions& options) const {
    const bool mesh = options.type == GeometryType::mesh, field = options.type == GeometryType::height_field;
    const View file = geometry["file"], vertices = geometry["vertices"], heights = geometry["heights"];
    const std::string type = to_string(options.type);
    if (file && !mesh && !field) file.refuse("no file for a " + type + ": meshes and height fields have one");
    if (vertices && !mesh) vertices.refuse("no vertices for a " + type + ": meshes have them");
    if (heights && !field) heights.refuse("no heights for a " + type + ": height fields have them");
    if (mesh && !file && !vertices) geometry.refuse("the key 'file', or 'vertices'");
    if (field && !file && !heights) geometry.refuse("the key 'file', or 'heights'");
    if (mesh) options.mesh = file ? load_mesh(directory_, file) : listed_mesh(vertices);
    if (field) options.height_field = file ? load_height_field(directory_, file) : listed_height_field(heights);
  }

  static Numbers3 read_scale(const View& geometry, GeometryType type, Numbers3 scale) {
    const size_t count = scale_components(type);
    const bool mesh = type == GeometryType::mesh;
    const View view = geometry["scale"];
    if (!view) {
      if (type == GeometryType::height_field) geometry.refuse("the key 'scale' (a list of 3 numbers in m)");
      return mesh ? Numbers3{1, 1, 1} : scale;
    }
    if (type == GeometryType::plane) view.refuse("no scale: a plane is infinite");
    const std::vector<double> values = view.numbers(mesh ? Dimension::none : Dimension::length, nullptr);
    if (values.size() != count) {
      const std::string what = std::string(mesh ? " factor" : " length") + (count == 1 ? "" : "s");
      view.refuse(std::to_string(count) + what + " for a " + to_string(type));
    }
    for (size_t i = 0; i < count; ++i) scale[i] = values[i];
    return scale;
  }

  /// Whether what is wrong there may be so because of what else is.
  bool is_doubtful(const std::string& path) const {
    const std::string item = item_of(path);
    if (doubtful_.contains(item)) return true;
    const std::string part = path.substr(item.size());
    const bool of_bodies = part.empty() || part == "/parent" || part == "/child" || part == "/body";
    return of_bodies && misplaced_.contains(item);
  }

  /// Tells what the builder says with the places of the entries it names, or of the nearest ones above them.
  void report(const ModelMistakes& found) {
    if (found.size() == 0) return;
    const ShapeLocations shapes(*root_.node());
    for (const ModelMistake& one : found.list()) {
      mistakes_.attempt([&] { tell(one, shapes.of_path(one.path)); });
    }
  }

  [[noreturn]] void tell(const ModelMistake& found, const std::vector<std::string>& location) const {
    if (is_doubtful(found.path)) Mistakes::leave_off();
    NodePtr node = root_.node();
    Place place = node->place;
    for (const std::string& segment : location) {
      NodePtr next;
      if (const Entry* const entry = node->entry(segment)) {
        next = entry->value;
        place = next->kind == NodeKind::scalar || next->kind == NodeKind::list ? next->place : entry->place;
      }
      if (!next && node->kind == NodeKind::list && !segment.empty() && segment.size() < 7 &&
          segment.find_first_not_of("0123456789") == std::string::npos && std::stoul(segment) < node->list.size()) {
        next = node->list[std::stoul(segment)];
        place = next->place;
      }
      if (!next) break;
      node = next;
    }
    if (is_told(*node)) Mistakes::leave_off();
    if (location.size() > 3) node->told = true;  // a part of an entry, not all of it
    const std::string path = "model/" + found.path, what = "value '" + excerpt(*node) + "'";
    const std::size_t expected = found.message.find(", expected ");
    // The builder's words as they are; in parts they are as those of fail().
    SceneMistake mistake =
        mistake_at(root_.sources(), place, path, what,
                   expected == std::string::npos ? found.message : found.message.substr(expected + 11));
    mistake.text = root_.sources().name(place) + ": " + path + ": " + what + ": " + found.message;
    throw SceneError({std::move(mistake)});
  }

  View root_;
  View model_;
  ModelBuilder builder_;
  std::unordered_map<std::string, int> bodies_;
  std::vector<std::string> body_names_;
  std::unordered_map<std::string, int> joints_;
  std::vector<std::string> joint_names_;
  std::vector<JointType> types_;
  const std::filesystem::path& directory_;
  CollisionGroups groups_;
  std::unordered_map<std::string, int> shapes_;  ///< −1: not read
  std::unordered_set<std::string> doubtful_;     ///< joints of whom it is not known what they are
  std::unordered_set<std::string>
      misplaced_;  ///< joints and shapes of whom a body is not known: on another, or the world
  bool tree_is_known_ = true;
  Mistakes& mistakes_;
  UnreadParts& unread_;
};

}  // namespace

Model read_model(const View& root, const std::filesystem::path& directory, Mistakes& mistakes, UnreadParts& unread) {
  Model model;
  const bool is_read = mistakes.attempt([&] { model = ModelReader(root, directory, mistakes, unread).read(); });
  if (is_read) return model;
  mistakes.lose_names();
  return ModelBuilder().build();
}

}  // namespace backdrive::scene
