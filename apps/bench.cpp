// simctl bench: how fast this scene runs here, forward and with its gradient.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <iostream>
#include <limits>
#include <utility>

#include "apps/console.h"
#include "apps/devices.h"
#include "apps/interrupt.h"
#include "apps/log.h"
#include "apps/options.h"
#include "apps/progress.h"
#include "apps/table.h"
#include "autodiff/problem/loss.h"
#include "engine/isa.h"
#include "engine/parallel.h"
#include "integrators/kernels.h"

namespace backdrive::app {
namespace {

struct BenchArguments : Options {
  int worlds = 0;
  int steps = 0;
  int repeat = 20;
  bool all_parameters = false;
};

struct Measurement {
  std::string precision;
  Device device;
  int threads = 1;
  double forward = std::numeric_limits<double>::infinity();   ///< seconds, best of the rounds
  double gradient = std::numeric_limits<double>::infinity();  ///< forward and backward together
  std::uint64_t allocations = 0;                              ///< asked of the system after the first round
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

/// One precision on one number of threads, or on one GPU: what is timed, and its best times so far.
class Subject {
 public:
  template <class T>
  static Subject of(const Problem& problem, int worlds, int threads, const Device& device) {
    Subject subject(device);
    subject.result_.device = device;
    subject.result_.precision = sizeof(T) == 4 ? "float32" : "float64";
    subject.result_.threads = threads;
    Memory& memory = subject.memory_;
    RolloutOptions options;
    options.time_step = problem.simulation.time_step;
    options.steps = problem.simulation.steps;
    options.threads = threads;
    const State<T> state = initial_state<T>(problem, worlds, memory);
    const Control<T> control = initial_control<T>(problem, worlds, memory);
    auto check = [&problem, backend = memory.backend(), looked = false](const Trajectory<T>& trajectory) mutable {
      if (backend) backend->synchronize();
      if (std::exchange(looked, true)) return;
      for (std::size_t w = 0; w < trajectory.status->size(); ++w) {
        const WorldStatus& status = (*trajectory.status)[w];
        if (status.stopped()) throw Error(ErrorKind::non_finite, describe_stop(problem, static_cast<int>(w), status));
      }
    };
    subject.forward_ = [=, &problem]() mutable {
      options.keep_states = false;
      const State<T> start = place_bodies<T>(nullptr, problem.model, state, options, memory);
      check(rollout<T>(problem.model, start, control, options, memory));
    };
    subject.gradient_ = [=, &problem]() mutable {
      Tape<T> tape(memory);
      const State<T> start = place_bodies(&tape, problem.model, state, options);
      const Trajectory<T> trajectory = rollout<T>(tape, problem.model, start, control, options);
      const Seeds<T> seeds = seeds_of(problem, trajectory, control, options, tape);
      const Gradients<T> gradients = std::move(tape).backward(seeds, Disconnected::zero);
      check(trajectory);
    };
    return subject;
  }

  /// The first round warms up and counts for nothing but the allocations that it may make.
  void run_round() {
    const double forward = seconds_of(forward_), gradient = seconds_of(gradient_);
    const std::uint64_t allocations = memory_.counters().allocations;
    if (rounds_++ == 0) {
      first_allocations_ = allocations;
      return;
    }
    result_.forward = std::min(result_.forward, forward);
    result_.gradient = std::min(result_.gradient, gradient);
    result_.allocations = allocations - first_allocations_;
  }
  const Measurement& result() const { return result_; }

 private:
  explicit Subject(const Device& device) : memory_(device) {}

  /// Seconds of the fastest of some calls in a row: a processor that has just slept is slow to begin with.
  static double seconds_of(const std::function<void()>& function) {
    using Clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds enough{30};
    Clock::duration best = Clock::duration::max();
    const auto begin = Clock::now();
    for (auto start = begin; start - begin < enough && !interrupted();) {
      function();
      const auto end = Clock::now();
      best = std::min(best, end - start);
      start = end;
    }
    return std::chrono::duration<double>(best).count();
  }

  Memory memory_;
  std::function<void()> forward_, gradient_;
  Measurement result_;
  int rounds_ = 0;
  std::uint64_t first_allocations_ = 0;
};

/// All in turn, round after round, so that whatever else slows the machine down slows all of them down.
std::vector<Measurement> measure_all(const Problem& problem, const BenchArguments& options, int worlds,
                                     const std::vector<std::string>& precisions, const std::vector<int>& thread_counts,
                                     const Device& device) {
  std::vector<Subject> subjects;
  for (const std::string& precision : precisions) {
    for (const int threads : thread_counts) {
      subjects.push_back(precision == "float32" ? Subject::of<float>(problem, worlds, threads, device)
                                                : Subject::of<double>(problem, worlds, threads, device));
    }
  }
  ProgressLine line(options.quiet);
  for (int round = 0; round <= options.repeat && !interrupted(); ++round) {
    line.update([&] { return "round " + std::to_string(round) + " of " + std::to_string(options.repeat); });
    for (Subject& subject : subjects) subject.run_round();
  }
  std::vector<Measurement> results;
  for (const Subject& subject : subjects) {
    if (std::isfinite(subject.result().gradient)) results.push_back(subject.result());
  }
  return results;
}

/// What a GPU must move per world-step at least, in bytes: controls are read; for a gradient states are written and
/// read, controls read again and their gradients written. A kernel's own arrays and spills come on top.
struct Traffic {
  double forward, gradient;
};
Traffic traffic_of(const Problem& problem, const std::string& precision) {
  const Topology& t = problem.model.topology;
  const double number = precision == "float32" ? 4 : 8;
  return {number * t.nu, number * (2 * (t.nq + t.nv) + 3 * t.nu)};
}

/// How many times as fast as on one thread; NaN when that was not measured.
double speedup(const std::vector<Measurement>& results, const Measurement& m, double Measurement::*seconds) {
  for (const Measurement& one : results) {
    if (one.device.is_cpu() && one.threads == 1 && one.precision == m.precision) return one.*seconds / m.*seconds;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

nlohmann::json to_json(const Scene& scene, const std::vector<Measurement>& results, int worlds, int exit_code) {
  const double work = static_cast<double>(worlds) * scene.problem.simulation.steps;
  nlohmann::json rows = nlohmann::json::array();
  for (const Measurement& m : results) {
    const auto rate = [&](double Measurement::*measured) {
      const double seconds = m.*measured;
      nlohmann::json figures{{"seconds", seconds},
                             {"world_steps_per_second", work / seconds},
                             {"world_steps_per_second_per_thread", work / seconds / m.threads},
                             {"nanoseconds_per_world_step", 1e9 * seconds / work}};
      if (m.threads > 1 && std::isfinite(speedup(results, m, measured))) {
        figures["speedup_over_one_thread"] = speedup(results, m, measured);
      }
      return figures;
    };
    const Traffic traffic = traffic_of(scene.problem, m.precision);
    rows.push_back(
        {{"precision", m.precision},
         {"device", to_string(m.device)},
         {"threads", m.threads},
         {"bytes_per_world_step", {{"forward", traffic.forward}, {"forward_and_gradient", traffic.gradient}}},
         {"forward", rate(&Measurement::forward)},
         {"forward_and_gradient", rate(&Measurement::gradient)},
         {"ratio", m.gradient / m.forward},
         {"allocations_after_first_iteration", m.allocations}});
  }
  nlohmann::json object = {{"scene", scene.name},
                           {"worlds", worlds},
                           {"steps", scene.problem.simulation.steps},
                           {"instruction_set", with_architecture(kernel_isa())},
                           {"measurements", rows},
                           {"exit_code", exit_code}};
  if (!results.empty() && !results[0].device.is_cpu()) object["device"] = device_json(results[0].device);
  return object;
}

void print(const Scene& scene, const std::vector<Measurement>& results, int worlds) {
  const bool on_host = results.empty() || results[0].device.is_cpu();
  const std::string place =
      on_host ? with_architecture(kernel_isa())
              : to_string(results[0].device) + " (" + backend_of(results[0].device)->info().name + ")";
  const double work = static_cast<double>(worlds) * scene.problem.simulation.steps;
  std::cout << scene.name << ": " << count(worlds, "world") << " of " << count(scene.problem.simulation.steps, "step")
            << ", " << scene.problem.model.topology.joint_nv << " degrees of freedom, " << place << "\n\n";
  Table table({{"precision", Table::Align::left},
               {on_host ? "threads" : "device"},
               {"what", Table::Align::left},
               {"world-steps/s"},
               {on_host ? "per thread" : "bytes per world-step"},
               {"speedup"},
               {"ns per world-step"},
               {"ratio"},
               {"allocations"}});
  for (const Measurement& m : results) {
    const Traffic traffic = traffic_of(scene.problem, m.precision);
    const auto add = [&](const char* what, double Measurement::*measured, double bytes, const std::string& ratio,
                         const std::string& allocations) {
      const double seconds = m.*measured, faster = speedup(results, m, measured);
      table.add({m.precision, on_host ? std::to_string(m.threads) : to_string(m.device), what,
                 with_prefix(work / seconds), on_host ? with_prefix(work / seconds / m.threads) : number(bytes),
                 m.threads > 1 && std::isfinite(faster) ? number(faster) : "", number(1e9 * seconds / work), ratio,
                 allocations});
    };
    add("forward", &Measurement::forward, traffic.forward, "", "");
    add("forward + gradient", &Measurement::gradient, traffic.gradient, number(m.gradient / m.forward),
        std::to_string(m.allocations));
  }
  std::cout
      << table.text()
      << dim("speedup: over one thread; ratio: forward + gradient over forward; allocations: after the first round")
      << '\n';
  if (!on_host) std::cout << '\n' << kernel_table(results[0].device);
}

int run_bench(const BenchArguments& options, bool one_precision) {
  const ExecutionOptions how = execution(options);
  Scene scene = load(options);
  if (options.steps > 0) scene.problem.simulation.steps = options.steps;
  if (options.all_parameters) {
    for (const char* path : {"bodies", "joints", "gravity"}) set_requires_grad(scene.problem.model, path, true);
  }
  // Whole packs for every thread, and enough of them that their shares are even.
  const Device device = how.devices.front();
  const int worlds = options.worlds > 0 ? options.worlds : device.is_cpu() ? 256 * how.threads : 65536;
  std::vector<std::string> precisions = {"float32", "float64"};
  if (one_precision) precisions = {options.precision};
  std::vector<int> thread_counts = {how.threads};
  if (!device.is_cpu()) thread_counts = {1};
  if (device.is_cpu() && options.threads == 0 && how.threads > 1) thread_counts = {1, how.threads};
  log_info("measuring '" + scene.name + "', best of " + count(options.repeat, "round"));
  const auto results = measure_all(scene.problem, options, worlds, precisions, thread_counts, device);
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
      "unless told otherwise. All of these take turns, round after round; the best of the rounds counts.\n"
      "On a GPU also what each kernel needs: registers, local memory, occupancy.");
  static BenchArguments options;
  add_scene(*command, options);
  command->add_option("--worlds", options.worlds, "worlds in the batch [256 per thread; 65536 on a GPU]")
      ->check(in_range(1, 1 << 24))
      ->type_name("N");
  command->add_option("--steps", options.steps, "steps of each world [those of the scene]")
      ->check(in_range(1, 10'000'000))
      ->type_name("N");
  command->add_option("--repeat", options.repeat, "rounds after one to warm up")
      ->check(in_range(1, 1'000'000))
      ->type_name("N")
      ->capture_default_str();
  command->add_flag("--all-parameters", options.all_parameters,
                    "gradients of all body and joint parameters and of gravity, too");
  CLI::Option* const precision = command->add_option("--precision", options.precision, "float32 or float64 [both]")
                                     ->check(one_of({"float32", "float64"}))
                                     ->type_name("NAME");
  add_execution(*command, options);
  add_json_and_quiet(*command, options);
  finish_command(
      *command, invocation, options,
      "  simctl bench scenes/arm_reach.yaml\n"
      "  simctl bench scenes/chain32.yaml --worlds 1024 --steps 100 --threads 1 --precision float32 --json\n"
      "  simctl bench scenes/arm_reach.yaml --device cuda --worlds 65536",
      [precision] { return run_bench(options, precision->count() > 0); }, WhenInterrupted::keeps_results);
}

}  // namespace backdrive::app
