#pragma once
// What is told of a GPU and of how the kernels use it.
#include <nlohmann/json.hpp>
#include <string>

#include "engine/device.h"

namespace backdrive::app {

/// One line: name, compute capability, sizes.
std::string device_description(const Device& device);
/// Registers, local memory and occupancy of every kernel of this build there; empty where there are none.
std::string kernel_table(const Device& device);
/// Both.
nlohmann::json device_json(const Device& device);

}  // namespace backdrive::app
