#pragma once
// Meshes of MuJoCo models: their geometry in a scene, and the moments that MuJoCo's compiler finds for them.
#include <vector>

#include "models/meshes/solid_moments.h"
#include "scenes/robots/mjcf_document.h"
#include "scenes/robots/robot_files.h"
#include "scenes/visual.h"

namespace backdrive::scene {

struct MjcfMesh {
  std::vector<Entry> geometry;  ///< keys of a shape's `geometry`
  SolidMoments<double> moments{};
  Visual visual;  ///< without body, pose and colour
};

/// A <mesh> of <asset> with the values of its class, from its file or its text; moments where they are needed. Throws
/// Error (input).
MjcfMesh read_mjcf_mesh(const XmlElement& mesh, bool needs_mass, const MjcfDocument& document, const RobotFiles& files,
                        const Sources& sources);

/// The same where only its looks are of interest: its file is found and not opened. Throws Error (input).
Visual mjcf_mesh_visual(const XmlElement& mesh, const MjcfDocument& document, const RobotFiles& files,
                        const Sources& sources);

}  // namespace backdrive::scene
