#include "apps/report_check.h"

#include <algorithm>
#include <string>

#include "apps/console.h"
#include "apps/gradcheck_text.h"
#include "apps/progress.h"
#include "apps/result_motion.h"
#include "engine/parallel.h"

namespace backdrive::app {

nlohmann::json report_check(const std::filesystem::path& folder, int threads, bool quiet) {
  constexpr int kControls = 16;
  const bool swept = std::filesystem::exists(folder / "sweep.csv");
  const std::filesystem::path file = swept ? folder / "scene.yaml" : scene_file_in(folder);
  const Scene scene = load_scene(file);
  GradientCheckOptions how;
  how.threads = threads > 0 ? threads : hardware_threads();
  how.controls = kControls;
  Ticker ticker(quiet, "checking gradients");
  how.progress = [&](long long done, long long all) {
    ticker.say("checking gradients: rollout " + std::to_string(done) + " of about " + std::to_string(all));
  };
  const std::vector<CheckedPlace> checked{{{"scene", "", scene.problem}, check_gradients(scene.problem, how)}};
  nlohmann::json table = gradcheck_json(scene, checked);
  for (nlohmann::json& row : table["rows"]) row.erase("gradient");
  const auto failed = std::ranges::count_if(checked[0].check.rows, [](const GradientCheckRow& r) { return !r.passed; });
  table["words"] = "The adjoint against dual numbers and central differences at " + file.filename().string() + ": " +
                   count(checked[0].check.numbers, "number") + ", " +
                   (failed == 0 ? "all agree" : count(failed, "row") + " failed") + ". simctl gradcheck " +
                   file.filename().string() + " --at scene --controls " + std::to_string(kControls) + " says the same.";
  return table;
}

}  // namespace backdrive::app
