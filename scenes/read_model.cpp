// The model section of a scene, handed to the ModelBuilder, whose complaints are brought back to
// lines and columns.
#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "models/builder.h"
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

/// Names of collision groups as bits of a CollisionFilter, in the order in which shapes name them.
class CollisionGroups {
 public:
  /// Learns the groups that a shape is in.
  void learn(const View& collision) {
    if (collision.kind() == NodeKind::scalar) return;
    for (const View& group : collision["groups"].items()) {
      if (std::ranges::find(names_, group.text()) != names_.end()) continue;
      if (names_.size() == 32) group.refuse("one of the 32 groups of the scene so far; there may not be more");
      names_.push_back(group.text());
    }
  }

  /// Of a shape, when all groups are known.
  CollisionFilter filter(const View& collision) const {
    if (collision.kind() == NodeKind::scalar) return {0, 0};
    const View meets = collision["meets"];
    return {bits(collision["groups"]), meets ? bits(meets) : ~0u};
  }

 private:
  std::uint32_t bits(const View& groups) const {
    std::uint32_t result = 0;
    for (const View& group : groups.items()) {
      const auto found = std::ranges::find(names_, group.text());
      if (found == names_.end()) {
        group.refuse("a group that a shape is in", nearest_name(group.text().substr(0, 200), names_));
      }
      result |= 1u << (found - names_.begin());
    }
    return result;
  }

  std::vector<std::string> names_{"default"};
};

/// Builds the model; `Names` keep look-ups of large scenes linear.
class ModelReader {
 public:
  ModelReader(const View& root, const std::filesystem::path& directory)
      : root_(root), model_(root["model"]), directory_(directory) {}

  Model read() {
    const std::vector<double> gravity = model_["gravity"].numbers();
    builder_.set_gravity({gravity[0], gravity[1], gravity[2]});
    if (root_["simulation"]["integrator"].text() == to_string(Integrator::semi_implicit)) {
      builder_.set_integrator(Integrator::semi_implicit);
    }
    try {
      read_bodies();
      read_joints();
      read_shapes();
      read_couplings();
      read_contacts();
      mistakes_.throw_any();
      return builder_.build();
    } catch (const ModelError& error) {
      report(error);
    }
  }

 private:
  void read_bodies() {
    for (const auto& [name, body, place] : model_["bodies"].entries()) {
      BodyOptions options;
      mistakes_.attempt([&, &body = body] {
        options.mass = body["mass"].number();
        options.com = numbers3(body["com"]);
        options.gravity_compensation = body["gravity_compensation"].number();
        const std::vector<double> inertia = body["inertia"].numbers();
        for (size_t i = 0; i < inertia.size(); ++i) options.inertia[i] = inertia[i];
        options.unphysical_inertia = body["unphysical_inertia"].flag();
      });
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
    view.refuse("the name of a body, or world", nearest_name(view.text().substr(0, 200), known));
  }

  void read_joints() {
    for (const auto& [name, joint, place] : model_["joints"].entries()) {
      const std::string& word = joint["type"].text();
      const JointType type = joint_type(word);
      int parent = ModelBuilder::world, child = 0;
      JointOptions options;
      mistakes_.attempt([&, &joint = joint] { parent = body_named(joint["parent"]); });
      mistakes_.attempt([&, &joint = joint] {
        const View view = joint["child"];
        child = body_named(view);
        if (child == ModelBuilder::world) view.refuse("a body that the joint carries, not the world");
      });
      mistakes_.attempt([&, &joint = joint] { options = joint_options(joint, type); });
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
    const auto ratios = coupling["ratios"].entries();
    for (const auto& [joint, ratio, at] : ratios) {
      mistakes_.attempt([&, &joint = joint, &ratio = ratio, &at = at] {
        const auto found = joints_.find(joint);
        if (found == joints_.end()) {
          fail(root_.sources(), at, ratio.path(), "joint '" + excerpt(joint) + "'", "the name of a joint",
               nearest_name(joint.substr(0, 200), joint_names_));
        }
        options.ratios.push_back({found->second, ratio.number()});
      });
    }
    if (options.ratios.size() < ratios.size()) return;  // of which the unit is another
    const JointType* const unit = unit_of(options);
    mistakes_.attempt([&] { options.offset = coupling["offset"].number(unit); });
    options.hold = coupling["hold"].flag();
    options.driven = coupling.given("drive");
    read_efforts(coupling, unit, options);
    builder_.add_coupling(name, options);
  }

  /// Keys that joints with several degrees of freedom have no use for.
  static void refuse_unused(const View& joint, JointType type) {
    if (joint_size(type).nv < 2) return;
    const std::string is = std::string("no such key for a ") + to_string(type) + " joint";
    if (joint.given("axis")) joint["axis"].refuse(is + ": its `frame` says how it is turned");
    if (may_be_driven(type)) return;
#define BACKDRIVE_KEY(type, member, parameters, what, X) #member,
    for (const char* const key : {BACKDRIVE_EFFORT_NESTS(BACKDRIVE_KEY, )}) {
#undef BACKDRIVE_KEY
      if (joint.given(key)) joint[key].refuse(is + ": all others have it");
    }
  }

  static JointType joint_type(std::string_view word) {
    for (const JointType type : kJointTypes) {
      if (word == to_string(type)) return type;
    }
    return JointType::fixed;
  }

  JointOptions joint_options(const View& joint, JointType type) {
    JointOptions options;
    refuse_unused(joint, type);
    // A coefficient of slides and turns at once takes either unit.
    const bool mixed = type == JointType::planar || type == JointType::free;
    const JointType* const unit = mixed ? nullptr : &type;
    mistakes_.attempt([&] { options.frame = read_frame(joint["frame"]); });
    options.loop = joint["loop"].flag();
    mistakes_.attempt([&] {
      options.child_frame = read_frame(joint["child_frame"]);
      if (options.loop || !joint.given("child_frame")) return;
      joint["child_frame"].refuse("no such key: only a joint that closes a loop (loop: true) has a frame on its child");
    });
    if (const View release = joint["release"]) options.release = release["at"].number();
    mistakes_.attempt([&] { options.axis = numbers3(joint["axis"]); });
    options.spins = joint["spins"].flag();
    options.driven = joint.given("drive");
    read_efforts(joint, unit, options);
    const View nest = joint["attachment"];
#define BACKDRIVE_READ(at, name, ...) \
  if (const View value = nest[#name]) mistakes_.attempt([&] { options.attachment.name = value.number(&type); });
    BACKDRIVE_ATTACHMENT_PARAMETERS(BACKDRIVE_READ, )
#undef BACKDRIVE_READ
    return options;
  }

  /// What acts on a joint or a coupling, in its unit.
  template <class Options>
  void read_efforts(const View& view, const JointType* unit, Options& options) {
    const auto read = [&](double& number, const View& value) {
      mistakes_.attempt([&] { number = value.number(unit); });
    };
#define BACKDRIVE_READ(at, name, ...) read(options.at name, view[#name]);
    BACKDRIVE_RESISTANCE_PARAMETERS(BACKDRIVE_READ, )
#undef BACKDRIVE_READ
    // A key without a number leaves what the option begins with.
#define BACKDRIVE_READ(at, name, ...) \
  if (const View value = nest[#name]) read(options.at name, value);
#define BACKDRIVE_READ_NEST(owner, member, parameters, what, X) \
  {                                                             \
    const View nest = view[#member];                            \
    parameters(BACKDRIVE_READ, member.)                         \
  }
    BACKDRIVE_EFFORT_NESTS(BACKDRIVE_READ_NEST, )
#undef BACKDRIVE_READ
#undef BACKDRIVE_READ_NEST
  }

  /// Calls visit(name, shape, body it is listed with or null) for each shape.
  template <class Visit>
  void each_shape(Visit&& visit) const {
    for (const auto& [name, body, place] : model_["bodies"].entries()) {
      const View shapes = body["shapes"];
      const std::vector<View> items = shapes.items();
      for (size_t i = 0; i < items.size(); ++i) visit(listed_shape_name(name, *shapes.node(), i), items[i], &name);
    }
    for (const auto& [name, shape, place] : model_["shapes"].entries()) visit(name, shape, nullptr);
  }

  void read_shapes() {
    each_shape([&](const std::string&, const View& shape, const std::string*) { groups_.learn(shape["collision"]); });
    each_shape([&](const std::string& name, const View& shape, const std::string* body) {
      mistakes_.attempt([&] { add_shape(name, body ? bodies_.at(*body) : body_named(shape["body"]), shape); });
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
    if (found != shapes_.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [name, index] : shapes_) known.push_back(name);
    std::ranges::sort(known);
    view.refuse("the name of a shape", nearest_name(view.text().substr(0, 200), known));
  }

  void read_contacts() {
    const View contacts = model_["contacts"];
    for (const View& pair : contacts["exclude"].items()) {
      mistakes_.attempt([&] {
        const auto [a, b] = read_pair(pair, "bodies (or world)");
        builder_.exclude_contacts(body_named(a), body_named(b));
      });
    }
    for (const View& pair : contacts["include"].items()) {
      mistakes_.attempt([&] {
        const auto [a, b] = read_pair(pair, "shapes");
        builder_.include_contact(shape_named(a), shape_named(b));
      });
    }
  }

  void add_shape(const std::string& name, int body, const View& view) {
    if (name.empty() || name.size() > 210 || name.find_first_of("/*\n") != std::string::npos) {
      view["name"].refuse("a name of 1 to 200 bytes without '/', '*' and line breaks");
    }
    if (shapes_.contains(name)) {
      view.refuse("another name than '" + name + "', which another shape has (key name)");
    }
    const View geometry = view["geometry"];
    ShapeOptions options;
    options.type = geometry_type(geometry["type"].text());
    options.scale = read_scale(geometry, options.type, options.scale);
    options.margin = geometry["margin"].number();
    read_asset(geometry, options);
    options.frame = read_frame(view["frame"]);
    options.density = view["density"].number();
    const View material = view["material"];
#define BACKDRIVE_READ(at, name, ...) options.name = material[#name].number();
    BACKDRIVE_MATERIAL_PARAMETERS(BACKDRIVE_READ, )
#undef BACKDRIVE_READ
    options.filter = groups_.filter(view["collision"]);
    shapes_[name] = builder_.add_shape(name, body, options);
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

  /// Rethrows what the builder says with the places of the entries it names, or of the nearest ones above them.
  [[noreturn]] void report(const ModelError& error) const {
    const ShapeLocations shapes(*root_.node());
    std::vector<SceneMistake> mistakes;
    for (const ModelMistake& one : error.mistakes()) mistakes.push_back(placed(one, shapes.of_path(one.path)));
    throw SceneError(std::move(mistakes));
  }

  SceneMistake placed(const ModelMistake& found, const std::vector<std::string>& location) const {
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
    const std::string path = "model/" + found.path, what = "value '" + excerpt(*node) + "'";
    const std::size_t expected = found.message.find(", expected ");
    // The builder's words as they are; in parts they are as those of fail().
    SceneMistake mistake =
        mistake_at(root_.sources(), place, path, what,
                   expected == std::string::npos ? found.message : found.message.substr(expected + 11));
    mistake.text = root_.sources().name(place) + ": " + path + ": " + what + ": " + found.message;
    return mistake;
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
  std::unordered_map<std::string, int> shapes_;
  Mistakes mistakes_;  ///< of what refers to other parts
};

}  // namespace

bool make_unit(std::array<double, 4>& q) {
  const double norm = std::hypot(std::hypot(q[0], q[1]), std::hypot(q[2], q[3]));
  if (!(std::abs(norm - 1) < 1e-2)) return false;
  const double scale = std::abs(norm - 1) < 1e-14 ? 1 : 1 / norm;
  for (double& x : q) x *= scale;
  return true;
}

std::array<double, 4> read_orientation(const View& view) {
  if (view.kind() == NodeKind::list) {
    const std::vector<double> q = view.numbers();
    std::array<double, 4> unit{q[0], q[1], q[2], q[3]};
    if (!make_unit(unit)) view.refuse("a unit quaternion (x, y, z, w)");
    return unit;
  }
  if (view.given("axis")) {
    Numbers3 axis = numbers3(view["axis"]);
    const double norm = std::hypot(axis[0], axis[1], axis[2]);
    if (!(norm > 0) || !std::isfinite(norm)) view["axis"].refuse("an axis that is not zero");
    for (double& x : axis) x /= norm;
    return turn_about(axis, view["angle"].number());
  }
  return turn_of_rpy(numbers3(view["rpy"]));
}

Dimension dimension_of(const Field& field) {
  const Schema* schema = scene_schema().key("model")->schema.get();
  std::string path(field.leaf);
  if (field.group == FieldGroup::bodies) schema = schema->key("bodies")->schema->entry.get();
  if (field.group == FieldGroup::joints) schema = schema->key("joints")->schema->entry.get();
  if (field.group == FieldGroup::shapes) schema = schema->key("shapes")->schema->entry.get();
  if (field.group == FieldGroup::couplings || field.group == FieldGroup::terms) {
    schema = schema->key("couplings")->schema->entry.get();
  }
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const Key* key = schema->key(path.substr(begin, end - begin));
    if (!key) return Dimension::none;
    schema = key->schema.get();
    begin = end + 1;
  }
  return schema->kind == SchemaKind::choice ? schema->options[0]->dimension : schema->dimension;
}

Model read_model(const View& root, const std::filesystem::path& directory) {
  return ModelReader(root, directory).read();
}

}  // namespace backdrive::scene
