#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "models/model_validity.h"
#include "models/parameter_list.h"
#include "scenes/robots/mjcf_looks.h"
#include "scenes/robots/mjcf_mesh.h"
#include "scenes/robots/mjcf_model.h"

namespace backdrive::scene {
namespace {

class MjcfBodyReader : MjcfReading {
 public:
  explicit MjcfBodyReader(const MjcfReading& reading) : MjcfReading(reading) {}

  MjcfModel read() {
    each_of_section("asset", [&](const XmlElement& asset) { learn_asset(asset); });
    model_.bodies.push_back({});
    model_.bodies[0].name = "world";
    model_.bodies[0].element = &document_.root();
    for (const XmlElement& section : document_.root().children) {
      if (section.name == "worldbody") walk(section, {0, {}, "", ""});
    }
    mistakes_.attempt([&] {
      if (model_.bodies.size() > 1 || document_.lacks_files()) return;
      values_.missing(document_.root(), "at least one <body> in <worldbody>");
    });
    mistakes_.attempt([&] {
      if (request_.base_given) hold_or_free_base();
    });
    find_mjcf_masses(*this, model_);
    return std::move(model_);
  }

 private:
  struct Walk {
    int body;
    Pose frame;               ///< of what is read, in the axes of the body
    std::string child_class;  ///< of elements that name none
    std::string suffix;       ///< of names, in replicas
  };

  void learn_asset(const XmlElement& asset) {
    static const Names looks{"texture", "skin"};
    if (asset.name == "material") return looks_.learn_material(asset);
    if (looks.contains(asset.name)) return parts_.note(asset.place, "<" + asset.name + ">", false);
    if (asset.name != "mesh" && asset.name != "hfield") {
      return parts_.note(asset.place, "<" + excerpt(asset.name) + "> in <asset>");
    }
    std::string name;
    if (!asset.attribute("name") && !asset.attribute("file")) has_all_assets_ = false;
    if (const XmlAttribute* const given = asset.attribute("name")) {
      name = given->value;
    } else {
      name = std::filesystem::path(values_.attribute(asset, "file", "of the " + asset.name).value).stem();
    }
    (asset.name == "mesh" ? meshes_ : height_fields_).emplace(name, &asset);
  }

  /// The name that an element has itself, with the suffix of its replica; else another.
  std::string name_of(Names& taken, const XmlElement& element, const Walk& walk, const std::string& otherwise) {
    const XmlAttribute* const own = element.attribute("name");
    if (!own || own->value.empty()) return unique(taken, otherwise);
    const std::string name = scene_name(request_.prefix, own->value + walk.suffix);
    if (!taken.insert(name).second) values_.refuse(element, *own, "a name that no other " + element.name + " has");
    return name;
  }

  std::string class_of(const XmlElement& element, const std::string& around) const {
    const XmlAttribute* const own = element.attribute("childclass");
    return own ? own->value : around;
  }

  void walk(const XmlElement& parent, const Walk& around) {
    for (const XmlElement& element : parent.children) {
      if (++walked_ > kMaxNodes) {
        fail(sources_, element.place, "", "more than " + std::to_string(kMaxNodes) + " elements, replicas among them",
             "a smaller model");
      }
      if (element.name == "body") {
        add_child(element, around);
      } else if (element.name == "frame") {
        Walk inside = around;
        mistakes_.attempt([&] { inside.frame = around.frame * document_.pose(element); });
        inside.child_class = class_of(element, around.child_class);
        walk(element, inside);
      } else if (element.name == "replicate") {
        replicate(element, around);
      } else if (element.name == "geom") {
        if (!mistakes_.attempt([&] { add_geom(element, around); })) forget(element, around);
      } else if (element.name == "joint" || element.name == "freejoint") {
        if (mistakes_.attempt([&] { add_joint(element, around); })) continue;
        forget(element, around);
        model_.has_all_joints = false;
      } else if (element.name == "inertial") {
        mistakes_.attempt([&] {
          if (around.body == 0) values_.missing(element, "a body around it: the world has no mass");
          model_.bodies[around.body].inertial = &element;
        });
      } else if (element.name == "site" || element.name == "camera" || element.name == "light") {
        parts_.note(element.place, "<" + element.name + ">", false);
        if (element.name == "site") learn_site(element, around);
      } else if (element.name == "composite" || element.name == "flexcomp" || element.name == "attach" ||
                 element.name == "plugin") {
        mistakes_.attempt([&] {
          fail(sources_, element.place, "", "element '" + element.name + "'",
               "bodies that are written out: this builds parts that are not known here");
        });
      } else {
        parts_.note(element.place, "<" + excerpt(element.name) + "> of a body");
      }
    }
  }

  void forget(const XmlElement& element, const Walk& around) {
    if (const XmlAttribute* const name = element.attribute("name")) model_.unread.insert(name->value + around.suffix);
  }

  void learn_site(const XmlElement& element, const Walk& around) {
    const XmlAttribute* const name = element.attribute("name");
    if (!name) return;
    model_.site_of_name.emplace(name->value + around.suffix,
                                MjcfSite{&element, around.body, around.frame, around.child_class});
  }

  void replicate(const XmlElement& element, const Walk& around) {
    double count = 1;
    mistakes_.attempt([&] {
      const double given = values_.number(element, values_.attribute(element, "count", "of copies"));
      if (!(given >= 1 && given <= 10'000) || given != std::floor(given)) {
        values_.refuse(element, *element.attribute("count"), "a whole number from 1 to 10,000");
      }
      count = given;
    });
    Pose step;
    mistakes_.attempt([&] { step = document_.pose(element); });
    mistakes_.attempt([&] {
      if (const XmlAttribute* const offset = element.attribute("offset")) {
        step.position = values_.numbers<3>(element, *offset);
      }
    });
    const XmlAttribute* const between = element.attribute("sep");
    const std::size_t digits = std::to_string(static_cast<int>(count) - 1).size();
    Walk inside = around;
    for (int i = 0; i < static_cast<int>(count); ++i) {
      std::string number = std::to_string(i);
      number.insert(0, digits - number.size(), '0');
      inside.suffix = around.suffix + (between ? between->value : "") + number;
      walk(element, inside);
      inside.frame = inside.frame * step;
    }
  }

  void add_child(const XmlElement& element, const Walk& around) {
    static const Names known{"name",  "childclass", "pos",   "quat",     "axisangle", "xyaxes",
                             "zaxis", "euler",      "mocap", "gravcomp", "user",      "sleep"};
    tell_rest(element, known);
    MjcfBody body;
    body.element = &element;
    body.parent = around.body;
    mistakes_.attempt([&] { body.pose = document_.pose(element); });
    body.pose = around.frame * body.pose;
    if (around.body == 0) body.pose = request_.frame * body.pose;
    const std::string otherwise = "body_" + std::to_string(model_.bodies.size());
    const bool has_name =
        mistakes_.attempt([&] { body.name = name_of(model_.body_names, element, around, otherwise); });
    if (!has_name) body.name = unique(model_.body_names, otherwise);
    body.moves = model_.bodies[around.body].moves;
    mistakes_.attempt([&] {
      if (!values_.flag_or(element, "mocap", false)) return;
      parts_.note(element.place, "<body mocap=\"true\">: it stands where it is");
    });
    const int index = static_cast<int>(model_.bodies.size());
    model_.bodies.push_back(std::move(body));
    walk(element, {index, {}, class_of(element, around.child_class), around.suffix});
  }

  void add_joint(const XmlElement& given, const Walk& around) {
    if (around.body == 0) values_.missing(given, "a body around it: the world does not move");
    MjcfJoint joint;
    // <freejoint> takes no values of a class.
    joint.element = given.name == "joint" ? document_.with_defaults(given, "joint", around.child_class) : given;
    const XmlElement& element = joint.element;
    MjcfBody& body = model_.bodies[around.body];
    const XmlAttribute* const type = element.attribute("type");
    const std::string word = given.name == "freejoint" ? "free" : type ? type->value : "hinge";
    static const std::map<std::string, std::string, std::less<>> types{
        {"hinge", "revolute"}, {"slide", "prismatic"}, {"ball", "ball"}, {"free", "free"}};
    const auto known = types.find(word);
    if (known == types.end()) values_.refuse(element, *type, "one of hinge, slide, ball and free");
    joint.type = known->second;
    const bool has_axis = mistakes_.attempt([&] { place_joint(joint, around); });
    if (joint.type == "free" && (body.parent != 0 || !body.joints.empty())) {
      fail(sources_, element.place, title(element), "a free joint of a body that hangs on another one",
           "one of a body of the world, and no other joint there");
    }
    if (!body.joints.empty() && model_.joints[body.joints.back()].type == "free") {
      fail(sources_, element.place, title(element), "a joint beside a free one", "no other joint there");
    }
    const bool turns = joint.type == "revolute";
    const double reference = values_.number_or(element, "ref", 0);
    if (!has_axis) Mistakes::leave_off();
    joint.reference = turns ? document_.angle(reference) : joint.type == "prismatic" ? reference : 0;
    if (joint.reference != 0) {
      parts_.note(element.place, "<joint ref=...>: positions are counted from it", false);
    }
    joint.name = name_of(model_.joint_names, given, around,
                         body.name.substr(request_.prefix.size()) + (joint.type == "free" ? "_free" : "_joint"));
    body.joints.push_back(static_cast<int>(model_.joints.size()));
    body.moves = true;
    if (const XmlAttribute* const own = given.attribute("name")) {
      model_.joint_of_name.emplace(own->value + around.suffix, static_cast<int>(model_.joints.size()));
    }
    model_.joints.push_back(std::move(joint));
  }

  /// Anchor and axis in the axes of its body.
  void place_joint(MjcfJoint& joint, const Walk& around) const {
    const XmlElement& element = joint.element;
    const XmlAttribute *const position = element.attribute("pos"), *const axis = element.attribute("axis");
    const bool has_anchor = mistakes_.attempt([&] {
      joint.anchor = position ? values_.numbers<3>(element, *position) : Numbers3{0, 0, 0};
    });
    joint.axis = axis ? values_.numbers<3>(element, *axis) : Numbers3{0, 0, 1};
    if (is_zero(joint.axis)) values_.refuse(element, *axis, "an axis that is not zero");
    if (!has_anchor) Mistakes::leave_off();
    joint.anchor = (around.frame * at(joint.anchor)).position;
    if (joint.type == "free") joint.anchor = {0, 0, 0};
    joint.axis = turned(around.frame.orientation, joint.axis);
  }

  /// What the scene says of the base, where it says anything.
  void hold_or_free_base() {
    std::vector<int> of_world;
    for (std::size_t b = 1; b < model_.bodies.size(); ++b) {
      if (model_.bodies[b].parent == 0) of_world.push_back(static_cast<int>(b));
    }
    for (const int b : of_world) {
      MjcfBody& body = model_.bodies[b];
      const bool is_free = !body.joints.empty() && model_.joints[body.joints[0]].type == "free";
      if (!request_.floating && is_free) body.joints.clear();
      if (request_.floating && !is_free) {
        if (!body.joints.empty() || of_world.size() != 1) {
          fail(sources_, request_.place, "base", "value 'floating'",
               "a model with one body on the world that has no joints: this one says itself how it moves");
        }
        MjcfJoint joint;
        joint.element.name = "freejoint";
        joint.element.place = request_.place;
        joint.type = "free";
        joint.axis = {0, 0, 1};
        joint.anchor = {0, 0, 0};
        joint.name = unique(model_.joint_names, "base");
        body.joints.push_back(static_cast<int>(model_.joints.size()));
        model_.joints.push_back(std::move(joint));
      }
    }
  }

  // ---- shapes and masses --------------------------------------------------------------------------------------------

  void add_geom(const XmlElement& given, const Walk& around) {
    MjcfGeom geom;
    geom.element = document_.with_defaults(given, "geom", around.child_class);
    const XmlElement& element = geom.element;
    static const Names known{"name",     "class",  "type",       "contype",   "conaffinity",  "condim",    "group",
                             "priority", "size",   "fromto",     "pos",       "quat",         "axisangle", "xyaxes",
                             "zaxis",    "euler",  "mass",       "density",   "shellinertia", "friction",  "margin",
                             "gap",      "hfield", "mesh",       "material",  "rgba",         "user",      "solref",
                             "solimp",   "solmix", "fluidshape", "fluidcoef", "fitscale"};
    tell_rest(element, known);
    const XmlAttribute* const type = element.attribute("type");
    geom.type = type ? type->value : "sphere";
    static const Names types{"plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", "mesh"};
    if (geom.type == "sdf") {
      fail(sources_, type->place, title(element), "value 'sdf'", "another shape: distance fields are not read");
    }
    if (!types.contains(geom.type)) {
      values_.refuse(element, *type, "one of plane, hfield, sphere, capsule, ellipsoid, cylinder, box and mesh");
    }
    if (values_.flag_or(element, "shellinertia", false)) {
      values_.refuse(element, *element.attribute("shellinertia"), "false: shapes are solid");
    }
    if (const XmlAttribute* const mesh = element.attribute("mesh"); mesh && geom.type != "mesh") {
      values_.refuse(element, *mesh, "a geom of type mesh: no other shape is fitted to one");
    }
    const XmlAttribute* const name = given.attribute("name");
    if (name && !name->value.empty()) {
      geom.name = name->value + around.suffix;
      model_.geom_names.insert(geom.name);
    }
    Parts parts(mistakes_);
    parts.read([&] { geom.contact_type = values_.whole_or(element, "contype", 1); });
    parts.read([&] { geom.contact_affinity = values_.whole_or(element, "conaffinity", 1); });
    parts.read([&] { geom.pose = document_.pose(element); });
    parts.read([&] { read_form(geom); });
    parts.read([&] { looks_.colour(geom); });
    parts.need_all();
    geom.pose = around.frame * geom.pose;
    geom.mass = placed(geom.mass, geom.pose);
    model_.bodies[around.body].geoms.push_back(std::move(geom));
  }

  /// Geometry, pose and mass of a geom about its own frame.
  void read_form(MjcfGeom& geom) {
    const XmlElement& element = geom.element;
    const std::string& type = geom.type;
    geom.geometry = make_map(element.place);
    set_key(geom.geometry, "type", make_scalar(type == "hfield" ? "height_field" : type, element.place), element.place);
    if (type == "plane") return;
    if (type == "hfield") return read_height_field(geom);
    if (type == "mesh") return read_mesh_geom(geom);
    std::vector<double> size;
    if (const XmlAttribute* const given = element.attribute("size")) size = values_.list(element, *given, 1, 3);
    const std::size_t wanted = type == "sphere" ? 1 : type == "capsule" || type == "cylinder" ? 2 : 3;
    const XmlAttribute* const ends = element.attribute("fromto");
    if (ends && type != "sphere") {
      const auto e = values_.numbers<6>(element, *ends);
      const Numbers3 along{e[0] - e[3], e[1] - e[4], e[2] - e[5]};
      const double length = std::hypot(along[0], along[1], along[2]);
      if (!(length > 1e-12)) values_.refuse(element, *ends, "two points that are apart");
      if (size.empty()) values_.missing(element, "the attribute 'size' (the radius in m)");
      geom.pose = {{(e[0] + e[3]) / 2, (e[1] + e[4]) / 2, (e[2] + e[5]) / 2}, turn_from_z(along)};
      size = wanted == 2 ? std::vector<double>{size[0], length / 2} : std::vector<double>{size[0], size[0], length / 2};
    }
    if (size.size() < wanted) {
      const XmlAttribute* const given = element.attribute("size");
      const std::string expected =
          std::to_string(wanted) + (wanted == 1 ? " length" : " lengths") + " in m for a " + type;
      if (!given) values_.missing(element, "the attribute 'size' (" + expected + ")");
      values_.refuse(element, *given, expected);
    }
    size.resize(wanted);
    if (std::ranges::any_of(size, [](double length) { return !(length > 0); })) {
      values_.refuse(element, *element.attribute("size"), "lengths above 0");
    }
    set_key(geom.geometry, "scale", list_of(size, element.place), element.place);
    size.resize(3);
    static const std::map<std::string, GeometryType, std::less<>> forms{{"sphere", GeometryType::sphere},
                                                                        {"capsule", GeometryType::capsule},
                                                                        {"ellipsoid", GeometryType::ellipsoid},
                                                                        {"cylinder", GeometryType::cylinder},
                                                                        {"box", GeometryType::box}};
    geom.visual.emplace();
    geom.visual->type = forms.find(type)->second;
    geom.visual->scale = {size[0], size[1], size[2]};
    const VolumeMoments<double> m = volume_moments<double>(geom.visual->type, {size[0], size[1], size[2]});
    set_mass(geom, m.volume, {0, 0, 0}, {m.second.x, m.second.y, m.second.z, 0, 0, 0});
  }

  /// By `mass`, or else by `density`, of a form with this volume, centre and ∫(x − centre)(x − centre)ᵀ dV.
  void set_mass(MjcfGeom& geom, double volume, const Vec3<double>& com, const Sym3<double>& second) {
    const XmlAttribute* const mass = geom.element.attribute("mass");
    const double density =
        mass ? values_.not_negative(geom.element, *mass) / volume : values_.number_or(geom.element, "density", 1000);
    if (!(density >= 0)) values_.missing(geom.element, "a density of at least 0");
    const double trace = second.xx + second.yy + second.zz;
    geom.mass = {density * volume,
                 com,
                 {density * (trace - second.xx), density * (trace - second.yy), density * (trace - second.zz),
                  -density * second.xy, -density * second.xz, -density * second.yz}};
  }

  const XmlElement& asset(const MjcfGeom& geom, const char* kind,
                          const std::map<std::string, const XmlElement*, std::less<>>& known) const {
    const XmlAttribute& name = values_.attribute(geom.element, kind, "the name of an asset");
    const auto found = known.find(name.value);
    if (found == known.end()) {
      if (!has_all_assets_) Mistakes::leave_off();
      refuse_name(geom.element, name, "the name of a <" + std::string(kind) + "> in <asset>", names_of(known), model_);
    }
    return *found->second;
  }

  void read_height_field(MjcfGeom& geom) {
    const XmlElement& field = asset(geom, "hfield", height_fields_);
    const XmlAttribute* const elevation = field.attribute("elevation");
    if (!elevation) {
      parts_.note(geom.element.place, "<geom type=\"hfield\"> whose heights are not in the text: it is left away");
      geom.geometry = nullptr;
      return;
    }
    const auto size = values_.numbers<4>(field, values_.attribute(field, "size", "four lengths in m"));
    const double rows = values_.number(field, values_.attribute(field, "nrow", "rows")),
                 columns = values_.number(field, values_.attribute(field, "ncol", "columns"));
    if (!(rows >= 2 && columns >= 2 && rows * columns <= 200'000)) {
      values_.missing(field, "at least two rows and columns, and at most 200,000 heights");
    }
    const auto count = static_cast<std::size_t>(rows * columns), width = static_cast<std::size_t>(columns);
    std::vector<double> heights = values_.list(field, *elevation, count, count);
    const auto [low, high] = std::ranges::minmax(heights);
    NodePtr list = make_list(elevation->place);
    for (std::size_t row = 0; row < count / width; ++row) {
      // In the text the highest y comes first, in scenes the lowest.
      const auto begin = heights.begin() + static_cast<std::ptrdiff_t>((count / width - 1 - row) * width);
      std::vector<double> values(begin, begin + static_cast<std::ptrdiff_t>(width));
      for (double& height : values) height = high > low ? (height - low) / (high - low) : 0;
      list->list.push_back(list_of(values, elevation->place));
    }
    set_key(geom.geometry, "heights", list, elevation->place);
    set_key(geom.geometry, "scale", list_of(Numbers3{size[0], size[1], size[2]}, field.place), field.place);
  }

  void read_mesh_geom(MjcfGeom& geom) {
    static const Names kMeshAttributes{
        "name",   "class",    "file", "vertex",       "scale",       "refpos",   "refquat",      "inertia",
        "normal", "texcoord", "face", "smoothnormal", "maxhullvert", "material", "content_type", "octree_maxdepth"};
    const XmlElement& given = asset(geom, "mesh", meshes_);
    if (!request_.collision && !needs_masses()) {
      geom.geometry = nullptr;
      looks_.find_mesh(geom, given);
      return;
    }
    auto known = read_meshes_.find(&given);
    if (known == read_meshes_.end()) {
      const XmlElement element = document_.with_defaults(given, "mesh", "");
      tell_rest(element, kMeshAttributes);
      known = read_meshes_.emplace(&given, read_mjcf_mesh(element, needs_masses(), document_, files_, sources_)).first;
    }
    const MjcfMesh& mesh = known->second;
    for (const Entry& entry : mesh.geometry) geom.geometry->map.push_back(entry);
    if (needs_masses()) set_mass(geom, mesh.moments.volume, mesh.moments.com, mesh.moments.second);
    geom.visual = mesh.visual;
  }

  /// Whether any body's mass may come from its geoms.
  bool needs_masses() const { return document_.compiler().inertia != MjcfCompiler::Inertia::given; }

  MjcfModel model_;
  std::map<std::string, const XmlElement*, std::less<>> meshes_, height_fields_;
  std::map<const XmlElement*, MjcfMesh> read_meshes_;
  MjcfLooks looks_{*this};
  std::size_t walked_ = 0;  ///< elements
  bool has_all_assets_ = true;
};

}  // namespace

MjcfModel read_mjcf_bodies(const MjcfReading& reading) {
  return MjcfBodyReader(reading).read();
}

}  // namespace backdrive::scene
