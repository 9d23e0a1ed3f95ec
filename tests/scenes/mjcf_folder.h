#pragma once
// Models of MuJoCo written for a test, and what is told of them.
#include <string>
#include <vector>

#include "tests/scenes/robot_values.h"

namespace backdrive {

class MjcfFolder : public RobotFolder {
 protected:
  std::filesystem::path write_model(const std::string& elements) const {
    return write("m.xml", "<mujoco>" + elements + "</mujoco>");
  }
  Scene model(const std::string& elements, const std::vector<Override>& set = {}) const {
    return load_scene(write_model(elements), set);
  }
  /// A body on the world with these elements, and a sphere of 1 kg.
  Scene body(const std::string& inner, const std::string& rest = "") const {
    return model("<worldbody><body name=\"b\">" + inner + "<geom size=\"0.1\" mass=\"1\"/></body></worldbody>" + rest);
  }
  /// The error of a model that does not load.
  std::string refused(const std::string& elements, const std::vector<Override>& set = {},
                      const LoadOptions& options = {}) const {
    return refusal(write_model(elements), set, options);
  }
  static std::string notes(const Scene& scene) {
    std::string text;
    for (const SceneNote& note : scene.notes) text += (note.changes_motion ? "! " : "- ") + note.text + "\n";
    return text;
  }
};

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace backdrive
