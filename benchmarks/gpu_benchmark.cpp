// How fast a GPU is: world-steps per second of rollouts and of their gradients, by robot, precision and batch, as a
// Markdown table; then the launch modes. Exits with 1 where a floor is missed. scripts/gpu-check runs it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "autodiff/tape/rollout.h"
#include "autodiff/tape/stepper.h"
#include "benchmarks/robots.h"
#include "engine/error.h"

namespace backdrive::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;

struct Setup {
  Device device{DeviceKind::cuda, 0};
  std::vector<int> worlds = {4096, 16384, 65536, 262144};
  int steps = 100;
};

/// Seconds of the fastest of several runs, after one to warm up; at least three, and until half a second is over: less
/// where the processor plays the GPU, whose speed nobody asks for.
double best_seconds(const Memory& memory, const std::function<void()>& work) {
  DeviceBackend& backend = *memory.backend();
  const double enough = memory.device().kind == DeviceKind::cuda ? 0.5 : 0.02;
  work();
  backend.synchronize();
  double best = std::numeric_limits<double>::infinity(), all = 0;
  for (int run = 0; run < 3 || all < enough; ++run) {
    const auto begin = Clock::now();
    work();
    backend.synchronize();
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    best = std::min(best, seconds);
    all += seconds;
  }
  return best;
}

/// What the worlds begin with and are told.
enum class Task { random, stand };

template <class T>
void fill(const Model& model, Task task, State<T>& state, Control<T>& control) {
  if (task == Task::stand) return stand(model, kQuadrupedHeight, state, control);
  std::mt19937 random(1);
  std::uniform_real_distribution<double> number(-0.3, 0.3);
  const auto fill_rows = [&](Buffer<T>& buffer, int rows) {
    for (int r = 0; r < rows; ++r) {
      T* const row = buffer.write(r);
      for (int w = 0; w < buffer.worlds(); ++w) row[w] = static_cast<T>(number(random));
    }
  };
  fill_rows(state.q, model.topology.joint_nq), fill_rows(state.qd, model.topology.joint_nv);
  fill_rows(control.u, control.u.rows());
}

template <class T>
struct Batch {
  Batch(const Model& model, Task task, int worlds, int steps, Memory& memory) {
    State<T> here(model, worlds);
    Control<T> control_here(model, steps, worlds);
    fill(model, task, here, control_here);
    state = place_bodies<T>(nullptr, model, detach(here, memory), {}, memory);
    control = detach(control_here, memory);
  }
  State<T> state;
  Control<T> control;
};

struct Robot {
  const char* name;
  Model model;
  Task task;
  double forward_floor, gradient_floor;  ///< float32 at 64k worlds on a GPU of Hopper's; 0: none
  int most_worlds = 1 << 30;
};

std::vector<Robot> robots() {
  return {{"7-joint arm", chain(7), Task::random, 1e9, 3e8},
          {"18-link tree", tree18(), Task::random, 3e8, 1e8},
          {"30-joint tree", tree30(), Task::random, 1e8, 3e7},
          {"quadruped on four feet", quadruped(Shapes::touching), Task::stand, 1e8, 2.5e7, 65536},
          {"7-joint arm, semi-implicit", chain(7, Integrator::semi_implicit), Task::random, 0, 0, 16384}};
}

/// World-steps per second.
struct Rates {
  double forward, gradient;
};

template <class T>
Rates measure(const Robot& robot, int worlds, int steps, Memory& memory) {
  const Model& model = robot.model;
  const Batch<T> batch(model, robot.task, worlds, steps, memory);
  RolloutOptions options;
  options.steps = steps;
  options.time_step = 1.0 / 240;
  options.keep_states = false;
  const double forward = best_seconds(memory, [&] { rollout(model, batch.state, batch.control, options, memory); });
  Buffer<T> ones(memory, model.topology.nq, worlds);
  ones.fill(T(1));
  const double gradient = best_seconds(memory, [&] {
    Tape<T> tape(memory);
    const Trajectory<T> trajectory = rollout(tape, model, batch.state, batch.control, options);
    Seeds<T> seeds;
    seeds.add(trajectory.final.q, ones);
    static_cast<void>(std::move(tape).backward(seeds));
  });
  const double work = static_cast<double>(worlds) * steps;
  return {work / forward, work / gradient};
}

/// " (floor 1e+09 met)", or " (floor 1e+09 MISSED)" and one more in `missed`.
std::string verdict(double rate, double floor, int& missed) {
  char text[64];
  if (rate < floor) ++missed;
  std::snprintf(text, sizeof(text), " (floor %.0e %s)", floor, rate >= floor ? "met" : "MISSED");
  return text;
}

/// Returns how many floors were missed; `hopper`: whether they are for this device.
template <class T>
int print_rows(const Robot& robot, const Setup& setup, bool hopper, Memory& memory) {
  int missed = 0;
  for (const int worlds : setup.worlds) {
    if (worlds > robot.most_worlds) continue;
    const Rates rates = measure<T>(robot, worlds, setup.steps, memory);
    const bool judged = hopper && sizeof(T) == 4 && worlds == 65536;
    const std::string forward = judged ? verdict(rates.forward, robot.forward_floor, missed) : "";
    const std::string gradient = judged ? verdict(rates.gradient, robot.gradient_floor, missed) : "";
    std::printf("| %s | %s | %d | %.3g%s | %.3g%s | %.2f |\n", robot.name, sizeof(T) == 4 ? "float32" : "float64",
                worlds, rates.forward, forward.c_str(), rates.gradient, gradient.c_str(),
                rates.forward / rates.gradient);
    std::fflush(stdout);
    memory.trim();
  }
  return missed;
}

/// One launch per rollout against one per step, as calls and as a recorded graph.
void print_launch_modes(const Setup& setup, Memory& memory) {
  const Model model = chain(7);
  std::printf("\n| 7-joint arm, float32, worlds | one launch per rollout | a graph per step | a call per step |\n");
  std::printf("| --- | --- | --- | --- |\n");
  for (const int worlds : setup.worlds) {
    const Batch<float> batch(model, Task::random, worlds, setup.steps, memory);
    Control<float> one(model, 1, worlds, memory);
    RolloutOptions options;
    options.steps = setup.steps;
    options.keep_states = false;
    const double fused = best_seconds(memory, [&] { rollout(model, batch.state, {}, options, memory); });
    Stepper<float> stepper(model, detach(batch.state, memory), one, options.time_step, memory);
    const double graph = best_seconds(memory, [&] {
      for (int step = 0; step < setup.steps; ++step) stepper.step();
    });
    options.steps = 1;
    const double calls = best_seconds(memory, [&] {
      State<float> state = batch.state;
      for (int step = 0; step < setup.steps; ++step) state = rollout(model, state, one, options, memory).final;
    });
    const double work = static_cast<double>(worlds) * setup.steps;
    std::printf("| %d | %.3g | %.3g | %.3g |\n", worlds, work / fused, work / graph, work / calls);
  }
}

void print_kernels(const DeviceBackend& backend) {
  std::printf("\n| kernel | registers | local bytes | spills | blocks per multiprocessor | occupancy |\n");
  std::printf("| --- | --- | --- | --- | --- | --- |\n");
  for (const KernelResources& k : backend.kernels()) {
    std::printf("| `%s` | %d | %zu | %zu | %d | %.2f |\n", k.name.c_str(), k.registers, k.local_bytes, k.spill_bytes,
                k.blocks_per_multiprocessor, k.occupancy);
  }
}

/// Returns the exit code.
int run(const Setup& setup) {
  Memory memory(setup.device);
  const DeviceInfo info = memory.backend()->info();
  std::printf("%s (%s, %d multiprocessors), world-steps per second, %d steps\n\n", info.name.c_str(),
              info.architecture.c_str(), info.multiprocessors, setup.steps);
  std::printf("| robot | precision | worlds | forward | forward + gradient | ratio |\n");
  std::printf("| --- | --- | --- | --- | --- | --- |\n");
  const bool hopper = info.architecture == "9.0";
  int missed = 0;
  for (const Robot& robot : robots()) {
    missed += print_rows<float>(robot, setup, hopper, memory);
    missed += print_rows<double>(robot, setup, hopper, memory);
  }
  if (!hopper) std::printf("\nThe floors are those of Hopper (9.0): this device is not judged.\n");
  print_launch_modes(setup, memory);
  print_kernels(*memory.backend());
  if (missed > 0) std::printf("\n%d floors were missed\n", missed);
  return missed > 0 ? 1 : 0;
}

int main(int argc, char** argv) {
  Setup setup;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string option = argv[i], value = argv[i + 1];
    if (option == "--device") setup.device = parse_devices(value).front();
    if (option == "--worlds") setup.worlds = {std::atoi(value.c_str())};
    if (option == "--steps") setup.steps = std::atoi(value.c_str());
  }
  if (setup.device.is_cpu()) usage_error("gpu_benchmark --device cpu: expected cuda or emulated");
  return run(setup);
}

}  // namespace
}  // namespace backdrive::benchmarks

int main(int argc, char** argv) {
  try {
    return backdrive::benchmarks::main(argc, argv);
  } catch (const backdrive::Error& error) {
    std::fprintf(stderr, "gpu_benchmark: %s\n", error.what());
    return error.exit_code();
  }
}
