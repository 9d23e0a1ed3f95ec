// simctl bench: how fast this scene runs here, forward and with its gradient.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <limits>

#include "apps/console.h"
#include "apps/interrupt.h"
#include "apps/log.h"
#include "apps/options.h"
#include "apps/progress.h"
#include "apps/table.h"
#include "autodiff/loss.h"
#include "engine/isa.h"
#include "engine/parallel.h"

namespace backdrive::app {
namespace {

struct BenchArguments : Options {
  int worlds = 0;
  int steps = 0;
  int repeat = 5;
  bool all_parameters = false;
};

struct Measurement {
  std::string precision;
  int threads = 1;
  double forward = 0;   ///< seconds, best of the repeats
  double gradient = 0;  ///< forward and backward together
  std::uint64_t allocations = 0;  ///< asked of the system after the first repeat
};

/// Seeds of the scene's loss; without one, those of the sum of the last state.
template <class T>
Seeds<T> seeds_of(const Problem& problem, const Trajectory<T>& trajectory, const Control<T>& control,
                  const RolloutOptions& options, Tape<T>& tape) {
  if (!problem.loss.empty()) return evaluate_loss<T>(problem, trajectory, control, options, &tape).seeds;
  Seeds<T> seeds;
  for (const Buffer<T>& target : {trajectory.final.q, trajectory.final.qd}) {
    Buffer<T> ones(tape.memory(), target.rows(), target.worlds());
    ones.fill(T(1));
    seeds.add(target, ones);
  }
  return seeds;
}

/// Seconds that the function takes, at best; the first call warms up and does not count.
template <class Function>
double best_of(int repeat, const Function& function) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i <= repeat && !interrupted(); ++i) {
    const auto start = std::chrono::steady_clock::now();
    function();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (i > 0) best = std::min(best, seconds);
  }
  return best;
}

template <class T>
Measurement measure(const Problem& problem, int worlds, int threads, int repeat) {
  Measurement result;
  result.precision = sizeof(T) == 4 ? "float32" : "float64";
  result.threads = threads;
  Memory memory;
  const State<T> state = initial_state<T>(problem, worlds, memory);
  const Control<T> control = initial_control<T>(problem, worlds, memory);
  RolloutOptions options;
  options.time_step = problem.simulation.time_step;
  options.steps = problem.simulation.steps;
  options.threads = threads;
  RolloutOptions forward_only = options;
  forward_only.keep_states = false;

  std::uint64_t after_first = 0;
  int calls = 0;
  const auto counted = [&](const auto& function) {
    return best_of(repeat, [&] {
      function();
      if (++calls == 1) after_first = memory.counters().allocations;
    });
  };
  const auto check = [&](const Trajectory<T>& trajectory) {
    for (int w = 0; w < worlds; ++w) {
      const WorldStatus& status = (*trajectory.status)[w];
      if (status.stopped()) throw Error(ErrorKind::non_finite, describe_stop(problem, w, status));
    }
  };
  result.forward = counted([&] { check(rollout<T>(problem.model, state, control, forward_only, memory)); });
  result.allocations = memory.counters().allocations - after_first;
  calls = 0;
  result.gradient = counted([&] {
    Tape<T> tape(memory);
    const Trajectory<T> trajectory = rollout<T>(tape, problem.model, state, control, options);
    const Seeds<T> seeds = seeds_of(problem, trajectory, control, options, tape);
    const Gradients<T> gradients = std::move(tape).backward(seeds);
    check(trajectory);
  });
  result.allocations += memory.counters().allocations - after_first;
  return result;
}

std::vector<Measurement> measure_all(const Problem& problem, const BenchArguments& options, int worlds,
                                     const std::vector<std::string>& precisions,
                                     const std::vector<int>& thread_counts) {
  ProgressLine line(options.quiet);
  std::vector<Measurement> results;
  for (const std::string& precision : precisions) {
    for (const int threads : thread_counts) {
      line.update([&] { return "measuring " + precision + " on " + count(threads, "thread"); });
      results.push_back(precision == "float32" ? measure<float>(problem, worlds, threads, options.repeat)
                                               : measure<double>(problem, worlds, threads, options.repeat));
      if (interrupted()) {
        if (!std::isfinite(results.back().gradient)) results.pop_back();
        return results;
      }
    }
  }
  return results;
}

nlohmann::json to_json(const Scene& scene, const std::vector<Measurement>& results, int worlds, int exit_code) {
  const double work = static_cast<double>(worlds) * scene.problem.simulation.steps;
  nlohmann::json rows = nlohmann::json::array();
  for (const Measurement& m : results) {
    const auto rate = [&](double seconds) {
      return nlohmann::json{{"seconds", seconds},
                            {"world_steps_per_second", work / seconds},
                            {"world_steps_per_second_per_thread", work / seconds / m.threads},
                            {"nanoseconds_per_world_step", 1e9 * seconds / work}};
    };
    rows.push_back({{"precision", m.precision},
                    {"threads", m.threads},
                    {"forward", rate(m.forward)},
                    {"forward_and_gradient", rate(m.gradient)},
                    {"ratio", m.gradient / m.forward},
                    {"allocations_after_first_iteration", m.allocations}});
  }
  return {{"scene", scene.name},
          {"worlds", worlds},
          {"steps", scene.problem.simulation.steps},
          {"instruction_set", std::string("x86-64-") + to_string(best_isa())},
          {"measurements", rows},
          {"exit_code", exit_code}};
}

void print(const Scene& scene, const std::vector<Measurement>& results, int worlds) {
  const double work = static_cast<double>(worlds) * scene.problem.simulation.steps;
  std::cout << scene.name << ": " << count(worlds, "world") << " of "
            << count(scene.problem.simulation.steps, "step") << ", "
            << scene.problem.model.topology.nv << " degrees of freedom, x86-64-" << to_string(best_isa()) << "\n\n";
  Table table({{"precision", Table::Align::left}, {"threads"}, {"what", Table::Align::left}, {"world-steps/s"},
               {"per thread"}, {"ns per world-step"}, {"ratio"}, {"allocations"}});
  for (const Measurement& m : results) {
    const auto add = [&](const char* what, double seconds, const std::string& ratio, const std::string& allocations) {
      table.add({m.precision, std::to_string(m.threads), what, with_prefix(work / seconds),
                 with_prefix(work / seconds / m.threads), number(1e9 * seconds / work), ratio, allocations});
    };
    add("forward", m.forward, "", "");
    add("forward + gradient", m.gradient, number(m.gradient / m.forward), std::to_string(m.allocations));
  }
  std::cout << table.text()
            << dim("ratio: forward + gradient over forward; allocations: after the first iteration, both together")
            << '\n';
}

int run_bench(const BenchArguments& options, bool one_precision) {
  const ExecutionOptions how = execution(options);
  Scene scene = load(options);
  if (options.steps > 0) scene.problem.simulation.steps = options.steps;
  if (options.all_parameters) {
    for (const char* path : {"bodies", "joints", "gravity"}) set_requires_grad(scene.problem.model, path, true);
  }
  // Whole packs for every thread, and enough of them that their shares are even.
  const int worlds = options.worlds > 0 ? options.worlds : 256 * how.threads;
  std::vector<std::string> precisions = {"float32", "float64"};
  if (one_precision) precisions = {options.precision};
  std::vector<int> thread_counts = {how.threads};
  if (options.threads == 0 && how.threads > 1) thread_counts = {1, how.threads};
  log_info("measuring '" + scene.name + "', best of " + count(options.repeat, "repeat"));
  const auto results = measure_all(scene.problem, options, worlds, precisions, thread_counts);
  const int exit_code = interrupted() ? kInterrupted : kDone;
  if (options.json) {
    print_json(to_json(scene, results, worlds, exit_code));
  } else {
    print(scene, results, worlds);
  }
  return exit_code;
}

}  // namespace

void add_bench(CLI::App& app, Invocation& invocation) {
  CLI::App* const command = app.add_subcommand(
      "bench",
      "Measure world-steps per second of a scene: forward (final state only) and forward + gradient (of\n"
      "the scene's loss; without one, of the last state), on one thread and on all, in both precisions\n"
      "unless told otherwise. The best of the repeats counts.");
  static BenchArguments options;
  add_scene(*command, options);
  command->add_option("--worlds", options.worlds, "worlds in the batch [256 per thread]")
      ->check(in_range(1, 1 << 24))
      ->type_name("N");
  command->add_option("--steps", options.steps, "steps of each world [those of the scene]")
      ->check(in_range(1, 10'000'000))
      ->type_name("N");
  command->add_option("--repeat", options.repeat, "repeats after one to warm up")
      ->check(in_range(1, 1'000'000))
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--all-parameters", options.all_parameters,
                    "gradients of all body and joint parameters and of gravity, too");
  CLI::Option* const precision = command
      ->add_option("--precision", options.precision, "float32 or float64 [both]")
      ->check(one_of({"float32", "float64"}))
      ->type_name("NAME");
  add_execution(*command, options);
  add_json_and_quiet(*command, options);
  finish_command(*command, invocation, options,
                 "  simctl bench scenes/arm_reach.yaml\n"
                 "  simctl bench scenes/chain32.yaml --worlds 1024 --steps 100 --threads 1 --precision float32 --json",
                 [precision] { return run_bench(options, precision->count() > 0); });
}

}  // namespace backdrive::app
