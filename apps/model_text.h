#pragma once
// What is in a model, for people and for programs.
#include <nlohmann/json.hpp>
#include <string>

#include "scenes/scene.h"

namespace backdrive::app {

/// The tree of joints and bodies, a joint a line: type, limits, effort, the body it carries, its mass and shapes.
std::string model_text(const Scene& scene);
nlohmann::json model_json(const Scene& scene);

}  // namespace backdrive::app
