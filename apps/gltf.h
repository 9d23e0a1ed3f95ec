#pragma once
#include <filesystem>
#include <string>

namespace backdrive::app {

/// The motion of a result folder as binary glTF 2.0 (.glb): a node a body, its shapes as meshes, one animation. Metres;
/// glTF's y up is made by the root node. Frames as in report_data. Throws Error (input) as that does.
std::string motion_as_gltf(const std::filesystem::path& folder);

}  // namespace backdrive::app
