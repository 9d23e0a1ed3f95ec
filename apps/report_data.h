#pragma once
// What a report shows, as the JSON that its page reads (apps/report/stage.js, page.js).
#include <filesystem>
#include <nlohmann/json.hpp>

namespace backdrive::app {

/// Of a result folder: its scene (result.yaml or scene.yaml), trajectory.csv, and what there is of contacts.csv,
/// history.csv, details.json and log.txt. At most 60 frames a second and 3,600 in all, and 3,000 rows for plots;
/// motions as to_json(ShownMotion) has them, numbers as base64 of little-endian float32. Of a sweep: add_sweep().
/// Throws Error (input) where the folder is none of simctl's.
nlohmann::json report_data(const std::filesystem::path& folder);

}  // namespace backdrive::app
