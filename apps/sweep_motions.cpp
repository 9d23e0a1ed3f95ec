#include "apps/sweep_motions.h"

#include <algorithm>
#include <cmath>

#include "apps/interrupt.h"
#include "apps/shown_motion.h"
#include "engine/parallel.h"

namespace backdrive::app {
namespace {

using Json = nlohmann::json;

constexpr double kSweepFramesPerSecond = 30;
constexpr std::size_t kMostSweepFrames = 600;
/// Bytes of all motions together, in a page and in the folder.
constexpr double kSweepBytes = 3e6;
constexpr long long kFewest = 4, kMost = 400;  ///< motions

/// Bytes that a motion takes as text.
double bytes_of(const Problem& problem) {
  const Topology& t = problem.model.topology;
  const double steps = problem.simulation.steps + 1.0,
               wanted = steps * problem.simulation.time_step * kSweepFramesPerSecond + 2,
               frames = std::min({steps, static_cast<double>(kMostSweepFrames), std::max(wanted, 2 * kFewestFrames)});
  const double bodies = static_cast<double>(problem.model.body_names.size()), numbers = t.joint_nq + t.joint_nv;
  return 4.0 / 3 * frames * (14 * bodies + 4 * (numbers + 2));
}

}  // namespace

std::vector<std::vector<long long>> coarser(const std::vector<long long>& counts, long long most) {
  std::vector<long long> kept = counts;
  const auto product = [&] {
    double n = 1;
    for (const long long k : kept) n *= static_cast<double>(k);
    return n;
  };
  while (product() > static_cast<double>(most)) {
    long long& largest = *std::ranges::max_element(kept);
    if (largest == 1) break;
    largest = std::max<long long>(1, largest - std::max<long long>(1, largest / 16));
  }
  std::vector<std::vector<long long>> values(counts.size());
  for (std::size_t a = 0; a < counts.size(); ++a) {
    for (long long k = 0; k < kept[a]; ++k) {
      values[a].push_back(kept[a] == 1 ? 0 : k * (counts[a] - 1) / (kept[a] - 1));
    }
  }
  return values;
}

void SweepMotions::choose(const Problem& first) {
  const auto fit = static_cast<long long>(kSweepBytes / bytes_of(first));
  std::vector<long long> counts;
  for (const Axis& axis : grid_.axes) counts.push_back(static_cast<long long>(axis.values.size()));
  const std::vector<std::vector<long long>> values = coarser(counts, std::clamp(fit, kFewest, kMost));
  for (std::size_t a = 0; a < counts.size(); ++a) {
    chosen_.emplace_back(static_cast<std::size_t>(counts[a]), false);
    for (const long long value : values[a]) chosen_[a][static_cast<std::size_t>(value)] = true;
  }
}

bool SweepMotions::is_chosen(long long index) const {
  for (std::size_t a = chosen_.size(); a-- > 0;) {
    const auto n = static_cast<long long>(chosen_[a].size());
    if (!chosen_[a][static_cast<std::size_t>(index % n)]) return false;
    index /= n;
  }
  return true;
}

void SweepMotions::note(long long index, const SweepPoint& point) {
  if (chosen_.empty()) choose(point.problem);
  if (is_chosen(index)) points_.emplace(index, point.problem);
  const bool scored = !point.problem.loss.empty() && point.finite();
  if (!scored || (best_ && point.result.loss >= best_loss_)) return;
  best_ = index;
  best_loss_ = point.result.loss;
  best_problem_ = point.problem;
}

Json SweepMotions::motions(const ExecutionOptions& how) const {
  std::vector<std::pair<long long, const Problem*>> chosen;
  for (const auto& [index, problem] : points_) chosen.emplace_back(index, &problem);
  if (best_ && !points_.contains(*best_)) chosen.emplace_back(*best_, &*best_problem_);
  Json all{{"of", grid_.size()}, {"motions", Json::array()}};
  if (chosen.empty()) return all;
  const Model& first = chosen[0].second->model;
  const Json shapes = shapes_json(first), bodies = bodies_json(first);
  std::vector<Json> motions(chosen.size());
  ExecutionOptions alone = how;
  alone.threads = 1;
  parallel_for(how.devices.front().is_cpu() ? how.threads : 1, static_cast<int>(chosen.size()), [&](int k) {
    const auto& [index, problem] = chosen[static_cast<std::size_t>(k)];
    ShownMotion motion = shown_motion(*problem, simulate(*problem, alone), kSweepFramesPerSecond, kMostSweepFrames);
    motion.name = grid_.label(index);
    Json& json = motions[static_cast<std::size_t>(k)] = to_json(motion, problem->model);
    json["point"] = index;
    json["values"] = grid_.values(index);
    add_differences(shapes, bodies, problem->model, json);
  });
  for (Json& motion : motions) all["motions"].push_back(std::move(motion));
  all["shapes"] = shapes;
  all["bodies"] = bodies;
  if (best_) all["best"] = *best_;
  return all;
}

}  // namespace backdrive::app
