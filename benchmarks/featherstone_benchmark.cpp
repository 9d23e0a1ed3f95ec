// World-steps per second of one core, forward and forward + gradient, and Pinocchio's in the same run.
//
//   featherstone_benchmark --benchmark_repetitions=20 --benchmark_report_aggregates_only=true
#include <benchmark/benchmark.h>

#include <cmath>

#include "autodiff/tape/rollout_node.h"
#include "autodiff/tape/step_jacobians.h"
#include "benchmarks/ratios.h"
#include "benchmarks/robots.h"
#include "integrators/kernels.h"
#include "models/mass_properties.h"
#include "scenes/scene.h"
#if defined(BACKDRIVE_PEERS)
#include "pinocchio_peer.h"
#endif

namespace backdrive::benchmarks {
namespace {

constexpr int kSteps = 100;
constexpr int kWorlds = 128;

template <class T>
void fill(Buffer<T>& buffer, double scale) {
  for (int r = 0; r < buffer.rows(); ++r) {
    T* row = buffer.write(r);
    for (int w = 0; w < buffer.worlds(); ++w) row[w] = T(scale * std::sin(0.7 * r + 1.3 * w));
  }
}

template <class T>
struct Batch {
  explicit Batch(Model m) : model(std::move(m)), state(model, kWorlds), control(model, kSteps, kWorlds) {
    fill(state.q, 0.5);
    for (const Link& link : model.topology.links) {
      if (link.type != JointType::free) continue;
      for (int k = 0; k < 4; ++k) {
        for (int w = 0; w < kWorlds; ++w) state.q.set(link.q + k, w, T(k == 3));
      }
    }
    fill(state.qd, 0.5);
    fill(control.u, 1);
    options.steps = kSteps;
    options.time_step = 1.0 / 480;
    options.keep_states = false;
  }
  Model model;
  State<T> state;
  Control<T> control;
  RolloutOptions options;
};

template <class T>
void forward(benchmark::State& run, const Model& model) {
  Batch<T> batch(model);
  for (auto _ : run) {
    benchmark::DoNotOptimize(rollout(batch.model, batch.state, batch.control, batch.options).final.q.row(0));
  }
  run.SetItemsProcessed(run.iterations() * kWorlds * kSteps);
}

/// A forward rollout of its bare parts, the model's constants and the kernel: what all that makes gradients possible
/// adds to it when none is asked for is the difference.
template <class T>
void bare_forward(benchmark::State& run, const Model& model) {
  Batch<T> batch(model);
  WorldStatuses status(kWorlds);
  RolloutPart<T> part({0, kSteps, false}, batch.state, batch.model, default_memory());
  for (auto _ : run) {
    const KernelModel<T> kernel_model(batch.model, nullptr, kWorlds, default_memory());
    run_part({kernel_model, batch.control, batch.options, status, default_memory()}, part);
    benchmark::DoNotOptimize(part.end.q.row(0));
  }
  run.SetItemsProcessed(run.iterations() * kWorlds * kSteps);
}

/// A whole gradient of the controls and the initial state: recorded rollout, seeds at the end, backward.
template <class T>
void gradient(benchmark::State& run, const Model& model) {
  Batch<T> batch(model);
  Buffer<T> ones(batch.state.q.rows(), kWorlds);
  ones.fill(T(1));
  std::uint64_t first = 0, last = 0;
  for (auto _ : run) {
    Tape<T> tape;
    const Trajectory<T> trajectory = rollout(tape, batch.model, batch.state, batch.control, batch.options);
    Seeds<T> seeds;
    seeds.add(trajectory.final.q, ones);
    benchmark::DoNotOptimize(std::move(tape).backward(seeds).of(batch.control.u).row(0));
    last = default_memory().counters().allocations;
    if (first == 0) first = last;
  }
  run.counters["allocations after the first"] = static_cast<double>(last - first);
  run.SetItemsProcessed(run.iterations() * kWorlds * kSteps);
}

/// A and B of the nodes of a trajectory; items are nodes.
template <class T>
void linearised_steps(benchmark::State& run, const Model& model) {
  Batch<T> batch(model);
  batch.options.steps = 1;
  Control<T> control(model, 1, kWorlds);
  fill(control.u, 1);
  for (auto _ : run) {
    benchmark::DoNotOptimize(step_jacobians(batch.model, batch.state, control, batch.options).A.row(0));
  }
  run.SetItemsProcessed(run.iterations() * kWorlds);
}

/// Of scenes/NAME.urdf, in the air.
Model robot_of_file(const std::string& name) {
  const std::vector<Override> set{{"model/base", "floating"}, {"model/collision", "false"}};
  return load_scene(std::string(BACKDRIVE_SCENES) + "/" + name + ".urdf", set).problem.model;
}

void add_ours(const std::string& name, const Model& model) {
  const auto add = [&](const std::string& what, auto function) {
    benchmark::RegisterBenchmark((name + what).c_str(), [=](benchmark::State& run) { function(run, model); });
  };
  add("/float32/forward", forward<float>);
  add("/float32/gradient", gradient<float>);
  add("/float64/forward", forward<double>);
  add("/float64/gradient", gradient<double>);
  add("/float64/step_jacobians", linearised_steps<double>);
  if (name == "arm7") add("/float32/bare_forward", bare_forward<float>);
}

#if defined(BACKDRIVE_PEERS)
std::vector<peers::PeerLink> peer_links(const Model& model) {
  std::vector<peers::PeerLink> links;
  for (const Link& link : model.topology.links) {
    const auto number = [&](const Parameter& p, int c) { return p(link.joint, c); };
    peers::PeerLink peer;
    peer.parent = link.parent;
    if (link.type == JointType::prismatic) peer.joint = peers::PeerLink::Joint::prismatic;
    if (link.type == JointType::fixed) peer.joint = peers::PeerLink::Joint::fixed;
    if (link.type == JointType::free) peer.joint = peers::PeerLink::Joint::free;
    const Parameter& o = model.joints.frame.orientation;
    const Mat3<double> r = rotation_matrix(number(o, 0), number(o, 1), number(o, 2), number(o, 3));
    peer.rotation = {r.cx.x, r.cy.x, r.cz.x, r.cx.y, r.cy.y, r.cz.y, r.cx.z, r.cy.z, r.cz.z};
    for (int c = 0; c < 3; ++c) {
      peer.position[c] = number(model.joints.frame.position, c);
      peer.axis[c] = number(model.joints.axis, c);
      peer.com[c] = model.bodies.com(link.body, c);
    }
    for (int c = 0; c < 6; ++c) peer.inertia[c] = model.bodies.inertia(link.body, c);
    peer.mass = model.bodies.mass(link.body);
    peer.armature = number(model.joints.armature, 0);
    links.push_back(peer);
  }
  return links;
}

void add_peer(const std::string& name, const Model& model) {
  for (const bool derivatives : {false, true}) {
    benchmark::RegisterBenchmark(("pinocchio/" + name + (derivatives ? "/derivatives" : "/aba")).c_str(),
                                 [=](benchmark::State& run) {
                                   peers::PinocchioPeer peer(peer_links(model));
                                   // Of a free base a unit quaternion, too: half of each number.
                                   std::vector<double> q(peer.positions(), peer.positions() > peer.dof() ? 0.5 : 0.3),
                                       v(peer.dof(), 0.2), tau(peer.dof(), 0.1), qdd(peer.dof());
                                   for (auto _ : run) {
                                     if (derivatives) {
                                       peer.aba_derivatives(q.data(), v.data(), tau.data());
                                     } else {
                                       peer.aba(q.data(), v.data(), tau.data(), qdd.data());
                                     }
                                     benchmark::ClobberMemory();
                                   }
                                   run.SetItemsProcessed(run.iterations());
                                 });
  }
}
#endif

}  // namespace
}  // namespace backdrive::benchmarks

int main(int argc, char** argv) {
  using namespace backdrive::benchmarks;
  add_ours("arm7", chain(7));
  add_ours("tree30", tree30());
  for (const int links : {8, 32, 128}) add_ours("chain" + std::to_string(links), chain(links));
#if defined(BACKDRIVE_PEERS)
  add_peer("arm7", chain(7));
  add_peer("tree30", tree30());
#endif
  // With drives and a floating base: ours take a whole step, Pinocchio's ABA the accelerations alone.
  for (const std::string name : {"quadruped", "humanoid"}) {
    const backdrive::Model robot = robot_of_file(name);
    add_ours(name, robot);
#if defined(BACKDRIVE_PEERS)
    add_peer(name, robot);
#endif
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  std::printf("kernels: %s, one thread, %d worlds of %d steps\n", to_string(backdrive::kernel_isa()), kWorlds, kSteps);
#if defined(BACKDRIVE_PEERS)
  std::printf("peer: %s\n", backdrive::peers::PinocchioPeer::description());
#endif
  RatioReporter reporter;
  benchmark::RunSpecifiedBenchmarks(&reporter);
  print_ratios(reporter);
}
