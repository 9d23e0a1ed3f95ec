// The keyframe that a scene begins with.
#include <cstddef>
#include <optional>
#include <span>

#include "models/parameter_list.h"
#include "scenes/robots/mjcf_model.h"

namespace backdrive::scene {
namespace {

/// Positions or velocities of a key, which joints take one after another; empty: the key has none.
struct KeyNumbers {
  std::vector<double> values;
  std::size_t at = 0;

  std::vector<double> take(std::size_t count) {
    if (values.empty()) return {};
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(at);
    at += count;
    return {begin, begin + static_cast<std::ptrdiff_t>(count)};
  }
};

class MjcfKeyReader : MjcfReading {
 public:
  MjcfKeyReader(const MjcfReading& reading, MjcfModel& model) : MjcfReading(reading), model_(model) {}

  void read() {
    if (request_.key.empty()) return;
    std::vector<std::string> known;
    for (const XmlElement* const one : document_.section("keyframe")) {
      if (const XmlAttribute* const name = one->attribute("name")) known.push_back(name->value);
    }
    const XmlElement* const key = key_of_request();
    if (!key && document_.lacks_files()) Mistakes::leave_off();
    if (!key) {
      fail(sources_, request_.key_place, "keyframe", "value '" + excerpt(request_.key) + "'",
           known.empty() ? "no key: this file has no named <key>" : "the name of a <key>",
           nearest_name(request_.key.substr(0, 200), known));
    }
    // How many numbers there should be is not known otherwise.
    if (model_.has_all_joints && !document_.lacks_files()) set_states(*key);
  }

 private:
  void set_states(const XmlElement& key) {
    std::size_t positions = 0, velocities = 0;
    for (const MjcfBody& body : model_.bodies) {
      for (const int j : body.joints) {
        const std::string& type = model_.joints[j].type;
        positions += type == "free" ? 7 : type == "ball" ? 4 : 1;
        velocities += type == "free" ? 6 : type == "ball" ? 3 : 1;
      }
    }
    const auto numbers = [&](const char* name, std::size_t count) {
      const XmlAttribute* const found = key.attribute(name);
      return KeyNumbers{found ? values_.list(key, *found, count, count) : std::vector<double>{}};
    };
    KeyNumbers q, v;
    const bool has_positions = mistakes_.attempt([&] { q = numbers("qpos", positions); });
    v = numbers("qvel", velocities);
    if (!has_positions) Mistakes::leave_off();
    static const Names known{"name", "qpos", "qvel", "time", "ctrl"};
    tell_rest(key, known);
    for (const MjcfBody& body : model_.bodies) {
      for (const int j : body.joints) set_state(model_.joints[j], key.place, q, v);
    }
  }

  void set_state(MjcfJoint& joint, Place place, KeyNumbers& q, KeyNumbers& v) {
    NodePtr state = make_map(place);
    const auto set = [&](const char* key, const std::vector<double>& values) {
      if (!values.empty()) set_key(state, key, list_of(values, place), place);
    };
    Turn turn{0, 0, 0, 1};
    const auto set_turn = [&](const std::vector<double>& wxyz) {
      if (wxyz.empty()) return;
      const std::optional<Turn> given = turn_of_wxyz(std::span<const double, 4>(wxyz.data(), 4));
      if (!given) fail(sources_, place, "key", "a quaternion of zero", "one that is not zero");
      turn = *given;
      set_key(state, "orientation", list_of(turn, place), place);
    };
    if (joint.type == "free") {
      set("position", q.take(3));
      set_turn(q.take(4));
      set("velocity", v.take(3));
      // MuJoCo's are about the body's own axes, those of scenes about the world's.
      if (const std::vector<double> w = v.take(3); !w.empty()) {
        const Numbers3 of_world = turned(turn, {w[0], w[1], w[2]});
        set("angular_velocity", {of_world[0], of_world[1], of_world[2]});
      }
    } else if (joint.type == "ball") {
      set_turn(q.take(4));
      set("angular_velocity", v.take(3));
    } else {
      const std::vector<double> position = q.take(1), speed = v.take(1);
      if (!position.empty() && position[0] != joint.reference) {
        set_key(state, "position", scalar_of(position[0] - joint.reference, place), place);
      }
      if (!speed.empty() && speed[0] != 0) set_key(state, "velocity", scalar_of(speed[0], place), place);
    }
    if (state->map.empty()) return;
    joint.key_state = state;
    joint.has_key_position = !q.values.empty();
    set_key(parts_.initial_state, joint.name, state, place);
  }

  MjcfModel& model_;
};

}  // namespace

void read_mjcf_key(const MjcfReading& reading, MjcfModel& model) {
  MjcfKeyReader(reading, model).read();
}

}  // namespace backdrive::scene
