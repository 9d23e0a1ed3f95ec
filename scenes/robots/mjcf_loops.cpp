// Equalities that hold a point or all of a body on another one, as joints that close loops.
#include <algorithm>
#include <optional>

#include "models/parameter_list.h"
#include "scenes/robots/mjcf_model.h"

namespace backdrive::scene {
namespace {

Pose inverse_of(const Pose& pose) {
  const Turn& q = pose.orientation;
  const Turn back{cleaned(-q[0]), cleaned(-q[1]), cleaned(-q[2]), q[3]};
  const Numbers3 p = turned(back, pose.position);
  return {{-p[0], -p[1], -p[2]}, back};
}

class MjcfLoopWriter : MjcfReading {
 public:
  MjcfLoopWriter(const MjcfReading& reading, MjcfModel& model) : MjcfReading(reading), model_(model) {}

  void write() {
    each_of_section("equality", [&](const XmlElement& one) {
      if (one.name == "joint" || !values_.flag_or(one, "active", true)) return;
      const std::string what = "<equality> <" + excerpt(one.name) + ">: it holds nothing";
      if (one.name != "connect" && one.name != "weld") {
        parts_.note(one.place, what);
      } else if (!request_.closes_loops) {
        parts_.note(one.place, what +
                                   " with the integrator featherstone, which moves trees; choose `simulation: "
                                   "{integrator: semi_implicit}`");
      } else {
        write_loop(one);
      }
    });
  }

 private:
  /// A frame on a body, in the axes of the file's body.
  struct Side {
    int body = 0;
    Pose pose;
  };

  void write_loop(const XmlElement& given) {
    const XmlElement element = document_.with_defaults(given, "equality", "");
    static const Names known{"name",  "class", "active", "body1",   "body2",  "anchor",
                             "site1", "site2", "solref", "relpose", "solimp", "torquescale"};
    tell_rest(element, known);
    const bool by_sites = element.attribute("site1") || element.attribute("site2");
    Side first, second;
    if (by_sites) {
      const bool has_first = mistakes_.attempt([&] { first = site(element, "site1"); });
      second = site(element, "site2");
      if (!has_first) Mistakes::leave_off();
    } else {
      const bool has_first = mistakes_.attempt([&] { first.body = body(element, "body1"); });
      second.body = element.attribute("body2") ? body(element, "body2") : 0;
      if (!has_first) Mistakes::leave_off();
      (given.name == "connect" ? connect : weld)(*this, element, first, second);
    }
    if (first.body == second.body) {
      const char* const key = by_sites ? "site2" : "body2";
      if (const XmlAttribute* const other = element.attribute(key)) {
        values_.refuse(element, *other, "what is on another body");
      }
      values_.missing(element, "the attribute 'body2', as 'body1' is the world");
    }
    if (second.body == 0) std::swap(first, second);  // the world is nobody's child
    add_joint(given, given.name == "connect" ? "ball" : "fixed", first, second);
  }

  /// At `anchor` of the first body, where the file shows both.
  static void connect(const MjcfLoopWriter& self, const XmlElement& element, Side& first, Side& second) {
    const XmlAttribute& anchor = self.values_.attribute(element, "anchor", "on the first body (3 numbers, m)");
    first.pose = at(self.values_.numbers<3>(element, anchor));
    second.pose = at((inverse_of(self.drawn(second.body)) * (self.drawn(first.body) * first.pose)).position);
  }

  /// At `anchor` of the second body, which is on the first where `relpose` says or else where the file shows it.
  static void weld(const MjcfLoopWriter& self, const XmlElement& element, Side& first, Side& second) {
    const XmlAttribute* const anchor = element.attribute("anchor");
    second.pose = at(anchor ? self.values_.numbers<3>(element, *anchor) : Numbers3{0, 0, 0});
    first.pose = inverse_of(self.drawn(first.body)) * self.drawn(second.body);
    if (const XmlAttribute* const relative = element.attribute("relpose")) {
      const auto n = self.values_.numbers<7>(element, *relative);
      const std::optional<Turn> turn = turn_of_wxyz(std::span<const double, 4>(n.data() + 3, 4));
      if (turn) first.pose = {{n[0], n[1], n[2]}, *turn};
    }
    first.pose = first.pose * second.pose;
  }

  Pose drawn(int body) const { return model_.drawn(body, request_.frame); }

  int body(const XmlElement& element, const char* key) const {
    const XmlAttribute& name = values_.attribute(element, key, "the name of a body");
    if (name.value == "world") return 0;
    const auto found = std::ranges::find(model_.bodies, scene_name(request_.prefix, name.value), &MjcfBody::name);
    if (found != model_.bodies.end()) return static_cast<int>(found - model_.bodies.begin());
    std::vector<std::string> known;
    for (const MjcfBody& body : model_.bodies) known.push_back(body.name);
    refuse_name(element, name, "the name of a body", known, model_);
  }

  Side site(const XmlElement& element, const char* key) const {
    const XmlAttribute& name = values_.attribute(element, key, "the name of a site");
    const auto found = model_.site_of_name.find(name.value);
    if (found == model_.site_of_name.end()) {
      refuse_name(element, name, "the name of a site", names_of(model_.site_of_name), model_);
    }
    const MjcfSite& site = found->second;
    const XmlElement own = document_.with_defaults(*site.element, "site", site.child_class);
    if (const XmlAttribute* const ends = own.attribute("fromto")) {
      values_.refuse(own, *ends, "a site with a 'pos', where something is held by it");
    }
    return {site.body, site.frame * document_.pose(own)};
  }

  /// In the axes of the scene's body, which is at the anchor of its last joint.
  NodePtr frame_on(const Side& side, Place place) const {
    const Pose frame = at(negative(model_.bodies[side.body].anchor)) * side.pose;
    const Pose of_scene = side.body == 0 ? request_.frame * side.pose : frame;
    return is_identity(of_scene) ? nullptr : frame_node(of_scene, place);
  }

  void add_joint(const XmlElement& given, const char* type, const Side& parent, const Side& child) {
    const Place place = given.place;
    NodePtr node = make_map(place);
    const auto set = [&](const char* key, const NodePtr& value) {
      if (value) set_key(node, key, value, place);
    };
    set("type", make_scalar(type, place));
    set("loop", make_scalar("true", place));
    if (parent.body != 0) set("parent", make_scalar(model_.bodies[parent.body].name, place, true));
    set("child", make_scalar(model_.bodies[child.body].name, place, true));
    set("frame", frame_on(parent, place));
    set("child_frame", frame_on(child, place));
    const XmlAttribute* const name = given.attribute("name");
    const std::string own = name && !name->value.empty()
                                ? name->value
                                : model_.bodies[child.body].name.substr(request_.prefix.size()) + "_" + given.name;
    set_key(parts_.joints, unique(model_.joint_names, own), node, place);
  }

  MjcfModel& model_;
};

}  // namespace

void write_mjcf_loops(const MjcfReading& reading, MjcfModel& model) {
  MjcfLoopWriter(reading, model).write();
}

}  // namespace backdrive::scene
