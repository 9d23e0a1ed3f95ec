#pragma once
// Robots that a scene names, written out: what comes behind knows scenes only.
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "scenes/document.h"
#include "scenes/scene.h"

namespace backdrive::scene {

/// The document with the bodies, joints and shapes of the robot files that `model/file` and `model/robots` name in
/// place of these keys, beneath what the scene itself says of them: its maps add to and replace theirs, key by key; of
/// a list, an orientation, or a geometry with a type, the whole. A document that names none is returned as it is.
/// Adds the files to the sources, to the scene's notes what was not taken over, to its looks what they draw, and what
/// is wrong to the mistakes: of a robot with any nothing comes into the document.
NodePtr expand_robots(const NodePtr& root, const std::filesystem::path& directory, const LoadOptions& options,
                      Sources& sources, Scene& scene, Mistakes& mistakes);

/// Whether the first character that is no space of a file's text is '<': a robot, where a scene might be.
bool looks_like_xml(std::string_view text);

/// The scene that consists of a robot file alone.
std::string scene_of_robot(const std::filesystem::path& file);

/// Whether a path of an override says which robots there are, how they stand and what steps them, which is needed to
/// read them.
bool is_about_robots(std::string_view path);

}  // namespace backdrive::scene
