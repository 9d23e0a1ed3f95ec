#pragma once
// What the report of a sweep shows beside what every report does.
#include <filesystem>
#include <nlohmann/json.hpp>

namespace backdrive::app {

/// Of sweep.csv and motions.json in a folder of `sweep --report`: "sweep" with {"axes": [{"path", "values",
/// "numbers"}], "columns", "table" (base64 float32 [point][column], NaN where there is none), "status" by point, "of",
/// "best"}, and "motions", each with its "point". At most 400,000 numbers: of more points those of a coarser grid.
/// Throws Error (input) where the files are none of simctl's.
void add_sweep(const std::filesystem::path& folder, nlohmann::json& data);

}  // namespace backdrive::app
