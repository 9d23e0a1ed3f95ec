#pragma once
// How robots look: what their files draw beside the shapes that touch. Nothing moves otherwise because of it.
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/meshes/triangle_mesh.h"
#include "models/model.h"
#include "scenes/pose.h"

namespace backdrive {

/// A form as a file draws it.
struct Visual {
  std::string body;  ///< of the model; "world"
  GeometryType type = GeometryType::box;
  Numbers3 scale{1, 1, 1};                      ///< as of shapes; of meshes factors, which may be negative
  scene::Pose pose;                             ///< in the axes of the body
  std::optional<std::array<double, 4>> colour;  ///< red, green, blue, opacity, 0 to 1
  /// Of a mesh: its file, by a canonical path that RobotFiles found (scenes/robots/robot_files.h), or what the robot
  /// file lists; the hull of the points where that has no triangles.
  std::filesystem::path file;
  std::shared_ptr<const TriangleMesh> listed;
  scene::Pose reference;  ///< a frame of the mesh's file that becomes that of the form, before the scale
  std::string place;      ///< "robot.urdf:7:5", for messages
};

struct RobotLooks {
  std::vector<Visual> visuals;
  std::vector<std::string> shapes;  ///< of the robot files: what the visuals of their bodies stand for
};

/// A visual's mesh, scaled, in the axes of its form. The file is opened as those of collision meshes are
/// (scenes/inside_file.h). Throws Error (input).
TriangleMesh visual_mesh(const Visual& visual);

}  // namespace backdrive
