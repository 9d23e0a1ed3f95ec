#pragma once
// What a report shows, as the JSON that its page reads (apps/report/stage.js, page.js).
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace backdrive::app {

/// Of a result folder: its scene (result.yaml or scene.yaml), trajectory.csv, and what there is of contacts.csv,
/// history.csv, details.json and log.txt. At most 60 frames a second and 3,600 in all, and 3,000 rows for plots;
/// motions as to_json(ShownMotion) has them, numbers as base64 of little-endian float32. Of a sweep: add_sweep().
/// Throws Error (input) where the folder is none of simctl's.
nlohmann::json report_data(const std::filesystem::path& folder);
/// Of the first of several, with the motions and histories of the others, whose bodies have to have the same names.
nlohmann::json report_data(const std::vector<std::string>& folders);

struct ResultMotion;
/// {"motion", "bodies", "shapes"} of a folder of run or optimize that was read, as the viewer's page takes them.
nlohmann::json shown_result(const std::filesystem::path& folder, const ResultMotion& read);

}  // namespace backdrive::app
