#include "apps/machine_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>

#include "apps/console.h"
#include "apps/log.h"
#include "autodiff/tape/checkpoints.h"
#include "engine/error.h"

namespace backdrive::app {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

/// The number that a file of one holds; no limit where there is none ("max").
std::uint64_t number_in(const fs::path& path) {
  std::uint64_t number = kNoLimit;
  std::ifstream stream(path);
  return stream >> number ? number : kNoLimit;
}

std::uint64_t difference(std::uint64_t limit, std::uint64_t used) {
  return limit == kNoLimit ? kNoLimit : limit - std::min(limit, used);
}

std::uint64_t of_machine() {
  std::ifstream stream("/proc/meminfo");
  std::string word;
  std::uint64_t kib = 0;
  while (stream >> word) {
    if (word == "MemAvailable:" && stream >> kib) return kib * 1024;
  }
  return kNoLimit;
}

/// Of version 2 in each group from this process's up; of version 1 in its own, as containers see it.
std::uint64_t of_control_groups() {
  const fs::path root = "/sys/fs/cgroup";
  std::uint64_t least =
      difference(number_in(root / "memory/memory.limit_in_bytes"), number_in(root / "memory/memory.usage_in_bytes"));
  std::ifstream stream("/proc/self/cgroup");
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with("0::/")) continue;
    for (fs::path group = line.substr(4);; group = group.parent_path()) {
      // Caches count as used, and are given back when memory is short.
      std::ifstream statistics(root / group / "memory.stat");
      std::uint64_t cached = 0, bytes = 0;
      for (std::string word; statistics >> word >> bytes;) {
        if (word == "inactive_file" || word == "active_file") cached += bytes;
      }
      const std::uint64_t current = number_in(root / group / "memory.current");
      const std::uint64_t used = current == kNoLimit ? 0 : current - std::min(current, cached);
      least = std::min(least, difference(number_in(root / group / "memory.max"), used));
      if (group.empty()) break;
    }
  }
  return least;
}

std::uint64_t of_address_space() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kNoLimit;
  const std::uint64_t pages = number_in("/proc/self/statm");
  return difference(limit.rlim_cur,
                    pages == kNoLimit ? 0 : pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
}

std::string free_text(std::uint64_t available) {
  return bytes_text(available) + " of memory are free here";
}

}  // namespace

std::uint64_t available_memory() {
  return std::min({of_machine(), of_control_groups(), of_address_space()});
}

std::string motion_too_large(const Problem& problem, std::size_t efforts) {
  const Topology& t = problem.model.topology;
  // States and velocities as the table has them, and a copy while vectors grow; the controls as lanes of a pack have
  // them.
  constexpr double kCopies = 2, kPackBytes = 64;
  const double rows = static_cast<double>(t.nq + t.nv) + static_cast<double>(efforts);
  const double needed = (kCopies * rows * sizeof(double) + kPackBytes * t.nu) * (problem.simulation.steps + 1.0);
  const std::uint64_t available = available_memory();
  if (needed <= static_cast<double>(available)) return "";
  return "simulation: a motion of " + count(problem.simulation.steps, "step") + " with " + number(rows) +
         " numbers each takes " + bytes_text(static_cast<std::size_t>(needed)) + ", " + free_text(available) +
         ": expected fewer steps or bodies";
}

void check_motion_fits(const Problem& problem, std::size_t efforts) {
  if (const std::string why = motion_too_large(problem, efforts); !why.empty()) input_error(why);
}

void keep_within_memory(const Problem& problem, ExecutionOptions& how) {
  check_motion_fits(problem);
  if (!how.devices.front().is_cpu()) return;
  const std::uint64_t available = available_memory();
  const std::uint64_t budget =
      how.memory_budget > 0 ? std::min<std::uint64_t>(how.memory_budget, available) : available;
  ExecutionOptions unbounded = how;
  unbounded.memory_budget = 0;
  const RolloutSize size = plan_objective(problem, unbounded).size;
  if (budget == how.memory_budget || cost_of(size, {}).total_bytes <= budget) return;
  how.memory_budget = static_cast<std::size_t>(budget);
  try {
    plan_memory(size, how.memory_budget);
  } catch (const Error& error) {
    input_error(free_text(available) + "; " + error.what() + ", or fewer steps or starts");
  }
  log_info(free_text(available) + ": fewer states are kept, the others computed again");
}

int worlds_that_fit(const Problem& problem, ExecutionOptions how, int worlds) {
  how.memory_budget = 0;
  how.worlds = 1;
  const std::size_t each = cost_of(plan_objective(problem, how).size, {}).total_bytes;
  const std::uint64_t most = available_memory() / 2 / std::max<std::size_t>(each, 1);
  return static_cast<int>(std::clamp<std::uint64_t>(most, 1, static_cast<std::uint64_t>(worlds)));
}

}  // namespace backdrive::app
