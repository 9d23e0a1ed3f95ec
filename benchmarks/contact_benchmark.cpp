// World-steps per second of one core for a quadruped that stands on the ground, hangs above it, or has no shapes;
// forward and forward + gradient. mujoco_contact.py runs this beside MuJoCo.
//
//   contact_benchmark --benchmark_repetitions=10 --benchmark_report_aggregates_only=true
#include <benchmark/benchmark.h>

#include "autodiff/tape/rollout.h"
#include "benchmarks/robots.h"
#include "integrators/kernels.h"
#include "models/coordinates.h"

namespace backdrive::benchmarks {
namespace {

constexpr int kSteps = 240;
constexpr int kWorlds = 64;
constexpr double kRate = 240;

/// The quadruped in the posture that its drives hold, a little apart from world to world.
template <class T>
struct Batch {
  Batch(Model m, double height) : model(std::move(m)), state(model, kWorlds), control(model, kSteps, kWorlds) {
    stand(model, height, state, control);
    options.steps = kSteps;
    options.time_step = 1 / kRate;
    options.keep_states = false;
  }
  Model model;
  State<T> state;
  Control<T> control;
  RolloutOptions options;
};

template <class T>
void forward(benchmark::State& run, const Model& model, double height) {
  Batch<T> batch(model, height);
  for (auto _ : run) {
    benchmark::DoNotOptimize(rollout(batch.model, batch.state, batch.control, batch.options).final.q.row(0));
  }
  run.SetItemsProcessed(run.iterations() * kWorlds * kSteps);
}

template <class T>
void gradient(benchmark::State& run, const Model& model, double height) {
  Batch<T> batch(model, height);
  Buffer<T> ones(batch.state.qd.rows(), kWorlds);
  ones.fill(T(1));
  std::uint64_t first = 0, last = 0;
  for (auto _ : run) {
    Tape<T> tape;
    const Trajectory<T> trajectory = rollout(tape, batch.model, batch.state, batch.control, batch.options);
    Seeds<T> seeds;
    seeds.add(trajectory.final_velocity(), ones);
    benchmark::DoNotOptimize(std::move(tape).backward(seeds).of(batch.control.u).row(0));
    last = default_memory().counters().allocations;
    if (first == 0) first = last;
  }
  run.counters["allocations after the first"] = static_cast<double>(last - first);
  run.SetItemsProcessed(run.iterations() * kWorlds * kSteps);
}

void add(const std::string& name, Shapes shapes, double height) {
  const Model model = quadruped(shapes);
  const auto add_one = [&](const std::string& what, auto function) {
    benchmark::RegisterBenchmark((name + what).c_str(), [=](benchmark::State& run) { function(run, model, height); });
  };
  add_one("/float32/forward", forward<float>);
  add_one("/float32/gradient", gradient<float>);
  add_one("/float64/forward", forward<double>);
  add_one("/float64/gradient", gradient<double>);
}

}  // namespace
}  // namespace backdrive::benchmarks

int main(int argc, char** argv) {
  using namespace backdrive::benchmarks;
  add("standing", Shapes::touching, kQuadrupedHeight);
  add("in_the_air", Shapes::touching, 100);
  add("without_shapes", Shapes::none, 100);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  std::printf("kernels: %s, one thread, %d worlds of %d steps\n", to_string(backdrive::kernel_isa()), kWorlds, kSteps);
  benchmark::RunSpecifiedBenchmarks();
}
