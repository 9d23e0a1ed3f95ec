#pragma once
// Scene files: what `simctl` simulates and optimises, read from YAML into a Problem. docs/scenes.md
// describes the format.
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autodiff/problem/problem.h"
#include "scenes/scene_error.h"
#include "scenes/visual.h"

namespace backdrive {

namespace scene {
struct Node;
}

/// One `--set path=value`. The path addresses anything in a scene document ("simulation/time_step",
/// "optimize/variables/0/knots", "model/joints/hinge/damping"); `bodies/…`, `joints/…`, `shapes/…`
/// and `gravity` are short for `model/…`, `variables/…` and `loss/…` for `optimize/…`; `*` stands for
/// every member that the document has there. The value is YAML text, with units as in a scene.
struct Override {
  std::string path;
  std::string value;
};

/// What loading a scene needs to know beside the scene.
struct LoadOptions {
  /// Folders with robots, packages and meshes, before those of BACKDRIVE_ROBOT_PATH and ROS_PACKAGE_PATH.
  std::vector<std::filesystem::path> robot_path = {};
  /// Whether what is not taken over from a robot file, and changes how it moves, is an error.
  bool strict = false;
};

/// What a robot file says and the model does not have: "robot.urdf:7:5: <mimic>: …".
struct SceneNote {
  std::string text;
  bool changes_motion = true;
};

/// What a table of a motion has beside states and controls.
struct RecordedColumns {
  std::vector<int> efforts;  ///< joints of one degree of freedom
  std::vector<int> bodies;
  bool energy = false, momentum = false, center_of_mass = false;
};

struct Scene {
  Problem problem;  ///< SI units
  RecordedColumns record;
  std::string name;
  std::string description;
  std::filesystem::path directory;  ///< of the scene file; what it refers to lies inside
  /// The document after overrides, with robots written out; shared and never changed.
  std::shared_ptr<const scene::Node> document;
  std::vector<SceneNote> notes;  ///< of its robot files
  RobotLooks looks;              ///< of its robots
};

/// Reads a scene file, or a robot file (URDF, MJCF) as a scene that has only this. Throws Error (input) naming file,
/// line, column, the offending value and what was expected; for overrides "--set path=value" stands in place of file,
/// line and column.
Scene load_scene(const std::filesystem::path& path, std::span<const Override> overrides = {},
                 const LoadOptions& options = {});

/// The same from text; `file` is what messages call it, `directory` where files it refers to are
/// looked for.
Scene parse_scene(std::string_view text, const std::string& file, const std::filesystem::path& directory,
                  std::span<const Override> overrides = {}, const LoadOptions& options = {});

/// The scene's document with the numbers of `filled` in place of its own: controls, initial state,
/// and every model parameter that differs from the scene's. `filled` must have the model of the
/// scene (same names and topology). Loss and variables stay, so that `simctl run` on the result
/// prints the loss and `simctl optimize` can go on from it. Numbers read back to the same bits;
/// what files hold is written out, so the text may be stored anywhere (but for terrain of more than
/// 200,000 heights, whose file stays named). Per-world parameters are
/// written as those of world 0. Throws Error (usage) for a model of another shape, Error
/// (non_finite) for a number that is not finite.
std::string scene_with_values(const Scene& scene, const Problem& filled);

/// JSON Schema (draft 2020-12) of scene files, for editors.
std::string scene_json_schema();

/// docs/scenes.md: every key with unit, default and meaning, derived from the same table as the
/// reader's checks.
std::string scene_markdown();

}  // namespace backdrive
