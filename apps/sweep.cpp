// simctl sweep: a scene for every point of a grid of values, one CSV row each.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <iostream>
#include <numeric>
#include <optional>
#include <sstream>

#include "apps/atomic_output.h"
#include "apps/console.h"
#include "apps/crossings.h"
#include "apps/interrupt.h"
#include "apps/log.h"
#include "apps/looks.h"
#include "apps/machine_memory.h"
#include "apps/options.h"
#include "apps/progress.h"
#include "apps/report.h"
#include "apps/sweep_batch.h"
#include "apps/sweep_grid.h"
#include "apps/sweep_motions.h"
#include "apps/sweep_sheet.h"
#include "engine/parallel.h"

namespace backdrive::app {
namespace {

/// Points read and run together; bounds the memory of a large sweep. No result depends on it.
constexpr int kPiece = 1024;
/// The first piece; the next are twice as many points for as long as one takes less than kQuick: a signal is seen
/// between two.
constexpr int kFirstPiece = 16;
constexpr std::chrono::milliseconds kQuick{250};

struct SweepArguments : Options {
  std::string action = "run";
};

/// Runs the points group by group; those of a group are worlds of one batch, as many as fit into memory.
void run_points(std::vector<SweepPoint>& points, const ExecutionOptions& how) {
  std::vector<bool> taken(points.size());
  for (size_t first = 0; first < points.size() && !interrupted(); ++first) {
    if (taken[first]) continue;
    std::vector<size_t> members;
    std::vector<Problem> group;
    const auto most = static_cast<size_t>(worlds_that_fit(points[first].problem, how, kPiece));
    for (size_t i = first; i < points.size() && group.size() < most; ++i) {
      if (taken[i] || !same_batch(points[first].problem, points[i].problem)) continue;
      taken[i] = true;
      members.push_back(i);
      group.push_back(points[i].problem);
    }
    const std::vector<PointResult> results = run_batch(group, how);
    if (results.size() < members.size()) return;  // interrupted
    for (size_t k = 0; k < members.size(); ++k) {
      points[members[k]].result = results[k];
      points[members[k]].done = true;
    }
  }
}

/// The starts of the point are worlds of one batch; its best start counts.
void optimize_point(SweepPoint& point, const ExecutionOptions& how) {
  const OptimizeResult best = optimize(point.problem, how, [](const OptimizeProgress&) { return !interrupted(); });
  if (interrupted()) return;
  const StartResult& start = best.starts[best.best];
  point.iterations = start.iterations;
  point.stopped_by = start.stopped_by;
  point.reached_goal = best.reached_goal;
  point.done = true;
  point.result.status = start.status;
  if (!std::isfinite(start.loss)) {
    point.result.loss = NAN;
    return;
  }
  const VariableLayout layout = variable_layout(point.problem);
  for (size_t v = 0; v < point.problem.variables.size(); ++v) {
    if (layout.size[v] == 1 && !point.problem.variables[v].is_tied()) {
      point.variables.push_back(start.x[layout.offset[v]] * point.problem.variables[v].scale);
    }
  }
  const std::vector<PointResult> results = run_batch(std::span(&best.problem, 1), how);
  point.done = !results.empty();
  if (!point.done) return;
  point.result = results[0];
  point.problem = best.problem;
}

void optimize_points(std::vector<SweepPoint>& points, const ExecutionOptions& how) {
  // A device takes one point after the other.
  if (static_cast<int>(points.size()) < how.threads || !how.devices.front().is_cpu()) {
    for (SweepPoint& point : points) optimize_point(point, how);
    return;
  }
  // Enough points to give every thread its own; inside, all runs on that thread.
  ExecutionOptions alone = how;
  alone.threads = 1;
  parallel_for(how.threads, static_cast<int>(points.size()), [&](int i) {
    if (!interrupted()) optimize_point(points[i], alone);
  });
}

struct Tally {
  long long done = 0, stopped = 0, missed = 0, crossed = 0;
};

std::vector<SweepPoint> read_points(const Options& options, const Grid& grid, long long first, int n) {
  std::vector<SweepPoint> points(n);
  std::vector<Override> set(grid.axes.size());
  for (int i = 0; i < n; ++i) {
    const std::vector<std::string> values = grid.values(first + i);
    for (size_t a = 0; a < values.size(); ++a) set[a] = {grid.axes[a].path, values[a]};
    Scene scene = load_scene(options.scene, set, load_options(options));
    if (first + i == 0) warn_of_notes(scene);
    points[i].problem = std::move(scene.problem);
  }
  return points;
}

/// `motions`: what of the points is kept for a report; null: nothing.
Tally sweep(const SweepArguments& options, const Grid& grid, const ExecutionOptions& how, const SweepSheet::Sink& sink,
            SweepMotions* motions) {
  ProgressLine line(options.quiet);
  const bool optimised = options.action == "optimize";
  SweepSheet sheet(grid, optimised, sink);
  Tally tally;
  const long long total = grid.size();
  // Small pieces where a point takes long, so that progress is seen and an interrupt loses little.
  int piece = optimised ? how.threads * 4 : kFirstPiece, done = 0;
  const auto start = std::chrono::steady_clock::now();
  for (long long first = 0; first < total && !interrupted(); first += done) {
    const auto piece_start = std::chrono::steady_clock::now();
    line.update([&] {
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      return "point " + std::to_string(first) + " of " + std::to_string(total) + "  " +
             (first > 0 ? duration(seconds / static_cast<double>(first) * static_cast<double>(total - first)) : "?") +
             " left";
    });
    const int n = done = static_cast<int>(std::min<long long>(piece, total - first));
    std::vector<SweepPoint> points = read_points(options, grid, first, n);
    if (optimised) {
      optimize_points(points, how);
    } else {
      run_points(points, how);
    }
    for (int i = 0; i < n; ++i) {
      const SweepPoint& point = points[i];
      if (!point.done) continue;
      sheet.add(first + i, point);
      if (motions) motions->note(first + i, point);
      ++tally.done;
      if (const std::string line = crossing_words(point.problem, point.result.crossings);
          !line.empty() && ++tally.crossed <= 3) {
        log_warning("point " + grid.label(first + i) + ": " + line);
      }
      if (!point.finite()) {
        // The first few; the column 'status' has them all.
        if (++tally.stopped <= 3) {
          log_warning("point " + grid.label(first + i) + ": " + point.status());
        }
      } else if (!point.reached_goal) {
        ++tally.missed;
      }
    }
    const bool quick = std::chrono::steady_clock::now() - piece_start < kQuick;
    if (!optimised && quick) piece = std::min(2 * piece, kPiece);
  }
  return tally;
}

/// Says how it went, and with which exit code.
int conclude(const Grid& grid, const Tally& tally) {
  if (tally.crossed > 3) {
    log_warning("at " + std::to_string(tally.crossed) + " points of " + std::to_string(tally.done) +
                " shapes go through each other or are lost in the ground");
  }
  if (interrupted()) {
    if (tally.done == 0) {
      log_warning("interrupted before a point was done; nothing is written");
      return kInterrupted;
    }
    log_warning("interrupted after " + std::to_string(tally.done) + " of " + count(grid.size(), "point") +
                "; their rows are kept");
    return kInterrupted;
  }
  if (tally.stopped > 0) {
    log_error(count(tally.stopped, "point") + " of " + std::to_string(tally.done) +
              " became non-finite; the column 'status' names step and joint");
    return kNonFinite;
  }
  if (tally.missed > 0) {
    log_warning(count(tally.missed, "point") + " of " + std::to_string(tally.done) + " did not reach the goal");
    return kNotReached;
  }
  return kDone;
}

/// The row with cells that are numbers or truths as such, not as the text that they were given as.
nlohmann::json with_numbers(nlohmann::json row) {
  for (nlohmann::json& cell : row) {
    if (!cell.is_string()) continue;
    const std::string text = cell;
    double value = 0;
    const char* const end = text.data() + text.size();
    if (text == "true" || text == "false") {
      cell = text == "true";
    } else if (const auto read = std::from_chars(text.data(), end, value);
               !text.empty() && read.ec == std::errc() && read.ptr == end && std::isfinite(value)) {
      cell = value;
    }
  }
  return row;
}

/// Where the table goes: a file, a folder that a report is made of, or what is printed at the end.
class SweepOutput {
 public:
  SweepOutput(const SweepArguments& options, const Grid& grid, const ExecutionOptions& how) : options_(options) {
    if (options.output == "-" && (options.json || options.report)) {
      usage_error(std::string("--output - and --") + (options.json ? "json both want stdout" : "report") +
                  "; expected one of them");
    }
    if (options.report) {
      begin_folder(grid, how);
    } else if (!options.output.empty() && options.output != "-") {
      file_.emplace(options.output, options.force);
    }
  }

  /// On stdout, too, the table comes whole: an error in its last point leaves nothing that looks like a result.
  std::ostream& stream() { return folder_ ? folder_->file("sweep.csv") : file_ ? file_->stream() : text_; }
  bool is_stored() const { return folder_ || file_; }
  std::string text() const { return text_.str(); }
  SweepMotions* motions() { return motions_ ? &*motions_ : nullptr; }

  /// The path of what is written.
  std::string commit(const ExecutionOptions& how) {
    if (file_) file_->commit();
    if (!folder_) return options_.output;
    folder_->file("motions.json") << motions_->motions(how).dump() << '\n';
    log_file_.reset();
    std::string path = folder_->commit().string();
    write_report(path);
    return path;
  }

 private:
  void begin_folder(const Grid& grid, const ExecutionOptions& how) {
    std::vector<Override> set;
    const std::vector<std::string> values = grid.values(0);
    for (size_t a = 0; a < values.size(); ++a) set.push_back({grid.axes[a].path, values[a]});
    const Scene scene = load_scene(options_.scene, set, load_options(options_));
    check_motion_fits(scene.problem);
    folder_.emplace(options_.output, scene.name + "-sweep", options_.force);
    log_file_.emplace(folder_->file("log.txt"));
    log_made_by(options_, how);
    folder_->file("scene.yaml") << scene_with_values(scene, scene.problem);
    write_looks(scene, *folder_);
    folder_->file("details.json") << nlohmann::json{{"made_by", made_by(options_, how)}}.dump(1) << '\n';
    motions_.emplace(grid);
  }

  const SweepArguments& options_;
  std::optional<OutputFile> file_;
  std::optional<OutputFolder> folder_;
  std::optional<LogFile> log_file_;
  std::optional<SweepMotions> motions_;
  std::ostringstream text_;
};

int run_sweep(const SweepArguments& options) {
  const ExecutionOptions how = execution(options);
  const Grid grid = make_grid(options.set);
  SweepOutput target(options, grid, how);
  log_info("sweeping " + count(grid.size(), "point") + " of " +
           count(static_cast<long long>(grid.axes.size()), "path") +
           (options.action == "run" ? "" : ", optimising each"));
  const auto start = std::chrono::steady_clock::now();
  nlohmann::json rows = nlohmann::json::array();
  CsvWriter csv(target.stream());
  const auto take = [&](const nlohmann::json& row) {
    if (options.json && !target.is_stored()) {
      rows.push_back(rows.empty() ? row : with_numbers(row));
    } else {
      write_row(csv, row);
    }
  };
  const Tally tally = sweep(options, grid, how, take, target.motions());
  const int exit_code = conclude(grid, tally);
  const bool written = target.is_stored() && tally.done > 0;
  const std::string path = written ? target.commit(how) : "";
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!options.json) {
    std::cout << target.text();
    log_info(count(tally.done, "row") + " in " + number(seconds) + " s" + (written ? ": " + path : ""));
    if (written && options.report) tell_report(path);
    return exit_code;
  }
  nlohmann::json object = {{"points", grid.size()},       {"done", tally.done}, {"non_finite", tally.stopped},
                           {"goal_missed", tally.missed}, {"seconds", seconds}, {"exit_code", exit_code}};
  object["made_by"] = made_by(options, how);
  if (written) {
    object["output"] = path;
  } else if (!rows.empty()) {
    object["columns"] = rows[0];
    rows.erase(0);
    object["rows"] = rows;
  }
  print_json(object);
  return exit_code;
}

}  // namespace

void add_sweep(CLI::App& app, Invocation& invocation) {
  CLI::App* const command = app.add_subcommand(
      "sweep",
      "Run or optimise a scene at every point of a grid of values. The values come with --set PATH=A,B,C;\n"
      "repeated, all combinations (the last one varies fastest). One CSV row a point: its values, status,\n"
      "loss terms, last state. Points that differ in numbers only run as worlds of one batch. A point that\n"
      "becomes non-finite says so in its row and the others go on (exit 4 at the end). With --report: a\n"
      "folder with sweep.csv, the motions of some points and report.html, which maps them and replays them.");
  static SweepArguments options;
  add_scene(*command, options);
  command->get_option("--set")->required();
  command->add_option("--do", options.action, "what to do at each point: run or optimize")
      ->check(one_of({"run", "optimize"}))
      ->type_name("NAME")
      ->capture_default_str();
  add_report_flag(*command, options);
  add_output(*command, options,
             "CSV file [stdout; with --json: rows in the object]; with --report a folder [results/SCENE-sweep-N]");
  add_precision(*command, options);
  add_execution(*command, options);
  add_json_and_quiet(*command, options);
  finish_command(
      *command, invocation, options,
      "  simctl sweep scenes/double_pendulum.yaml --set joints/elbow/damping=0,0.01,0.1 \\\n"
      "      --set 'initial_state/shoulder/position=10 deg,90 deg' --output sweep.csv\n"
      "  simctl sweep scenes/pendulum_swingup.yaml --do optimize --set bodies/rod/mass=0.5,1,2\n"
      "  simctl sweep scenes/toss.yaml --report --set 'gravity=[0,0,-9.81],[0,0,-1.62]' \\\n"
      "      --set simulation/duration=1,2\n"
      "  A value may be a list: --set 'gravity=[0, 0, -9.81],[0, 0, -1.62]'",
      [] { return run_sweep(options); }, WhenInterrupted::keeps_results);
}

}  // namespace backdrive::app
