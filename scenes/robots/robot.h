#pragma once
// Robots from files of other formats, as the bodies, joints and shapes of a scene's model.
#include <filesystem>
#include <string>
#include <vector>

#include "scenes/document.h"
#include "scenes/pose.h"
#include "scenes/robots/mjcf_document.h"
#include "scenes/robots/robot_files.h"
#include "scenes/robots/xml.h"
#include "scenes/visual.h"

namespace backdrive::scene {

/// What a scene says of a robot that it names.
struct RobotRequest {
  std::string prefix;           ///< of all names: "left_"
  bool floating = false;        ///< whether the root link moves freely, or stands on the world
  bool base_given = false;      ///< whether the scene says which
  Pose frame;                   ///< of the root link, at position zero, in the world
  bool collision = true;        ///< whether its collision shapes are read
  bool self_collision = false;  ///< whether its own shapes touch one another
  bool self_collision_given = false;
  bool closes_loops = false;  ///< MJCF: whether the scene's integrator knows joints that do
  std::string key;            ///< MJCF: the keyframe it begins with; empty: none
  Place key_place;
  std::string group;               ///< collision group of its shapes; empty: that of all
  std::vector<std::string> meets;  ///< groups that its shapes touch then
  Place place;                     ///< where the scene names it
};

/// What of a file was not taken over: of one kind, the first place, how often, and what that means.
struct RobotNote {
  Place place;
  std::string what;
  int times = 1;
  bool changes_motion = true;  ///< whether the robot would move differently if it had been
};

constexpr std::size_t kMostNotes = 200;  ///< of different kinds

/// Maps as the keys `bodies`, `joints`, `shapes` and `couplings` of a scene's model hold them, and what else of a scene
/// the file says, every value with its place in the robot's file.
struct RobotParts {
  std::string name;
  NodePtr bodies = make_map(), joints = make_map(), shapes = make_map(), couplings = make_map();
  NodePtr initial_state = make_map(), controls = make_map();
  NodePtr exclude = make_list(), exclude_shapes = make_list(), include = make_list();  ///< of `contacts`
  NodePtr gravity, time_step;                            ///< null: not said
  std::vector<Visual> visuals;
  std::vector<RobotNote> notes;

  void note(Place place, const std::string& what, bool changes_motion = true);
};

/// Red, green, blue and opacity from 0 to 1; others are brought there.
std::array<double, 4> shown_colour(std::array<double, 4> colour);

/// A robot of the Unified Robot Description Format (wiki.ros.org/urdf/XML). Angles rad, lengths m; the link's frame is
/// that of the joint it hangs on; inertias turned into link axes. Throws Error (input) about what is missing, unknown
/// or no tree.
RobotParts read_urdf(const XmlElement& robot, const RobotRequest& request, const RobotFiles& files,
                     const Sources& sources);

/// A model of MuJoCo (mujoco.readthedocs.io, "XML Reference"). Angles and lengths become rad and m; the frame of a body
/// is at the anchor of its last joint, with the body's axes; masses are those that MuJoCo's compiler finds. Adds what
/// is missing, unknown, or has no counterpart that moves alike to the mistakes; throws Error (input) of a model too
/// large.
RobotParts read_mjcf(const MjcfDocument& document, const RobotRequest& request, const RobotFiles& files,
                     const Sources& sources, Mistakes& mistakes);

}  // namespace backdrive::scene
