// Steps in which nothing acts: a rollout tells its adjoint of them, which does not seek there again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "autodiff/tape/recorded.h"
#include "integrators/kernels.h"
#include "models/builder.h"
#include "tests/support/random.h"

namespace backdrive {
namespace {

constexpr int kWorlds = 11, kStepCount = 120;

/// A box, and three links on balls, whose kicks whip them, on a floor.
Model thrown_things(Integrator integrator) {
  ModelBuilder builder;
  builder.set_integrator(integrator);
  builder.add_shape("floor", ModelBuilder::world, {.type = GeometryType::plane});
  const auto add = [&](const char* name, BodyIndex parent, JointType type, JointOptions options = {}) {
    const BodyIndex body = builder.add_body(name, {.mass = 0.2, .inertia = {2e-4, 3e-4, 4e-4, 0, 0, 0}});
    builder.add_shape(name, body, {.type = GeometryType::box, .scale = {0.06, 0.04, 0.03}});
    builder.add_joint(name, type, parent, body, options);
    return body;
  };
  add("box", ModelBuilder::world, JointType::free);
  BodyIndex last = add("first", ModelBuilder::world, JointType::free);
  for (const char* name : {"second", "third"}) {
    last = add(name, last, JointType::ball, {.frame = {.position = {0.2, 0, 0}}});
  }
  return builder.build();
}

/// All of one rollout and of its adjoint, by kernels.
template <class T>
struct Run {
  explicit Run(Integrator integrator)
      : model(thrown_things(integrator)), table(kernels<T>(integrator)), kernel_model(model, nullptr, kWorlds, memory) {
    const Topology& t = model.topology;
    RolloutOptions options;
    options.time_step = 1. / 240;
    options.steps = kStepCount;
    start = State<T>(model, kWorlds);
    test::Random random(9);
    for (int w = 0; w < kWorlds; ++w) throw_world(w, random);
    start = place_bodies<T>(nullptr, model, start, options);
    const Launch<T> launch = launch_of(kernel_model, options.time_step, kStepCount, start.q);
    scratch = memory.allocate(table.scratch_bytes(launch));
    q = rows((kStepCount + 1) * t.nq), qd = rows((kStepCount + 1) * t.nv), reported = rows((kStepCount + 1) * t.nv);
    touched = rows(kStepCount);
    Buffer<T> q_end = rows(t.nq), qd_end = rows(t.nv);
    RolloutArguments<T> a{launch,        start.q.row(0), start.qd.row(0),       nullptr, q.write(), qd.write(),
                          q_end.write(), qd_end.write(), status.write_address()};
    a.reported = reported.write();
    ways = rows((kStepCount + 1) * t.way_count);
    if (t.way_count > 0) a.ways = ways.write();
    a.touched = touched.write();
    table.rollout(a, 0, groups(), scratch.get());
  }

  Buffer<T> rows(int count) { return Buffer<T>(memory, count, kWorlds); }
  int groups() const { return (kWorlds + table.lanes - 1) / table.lanes; }

  /// Cotangents of the first state and of all parameters, of ones for the last state.
  std::vector<double> gradient(const Buffer<T>* known) {
    const Topology& t = model.topology;
    Buffer<T> q_end_bar = rows(t.nq), qd_end_bar = rows(t.nv), moved_bar = rows(t.nv);
    for (Buffer<T>* bar : {&q_end_bar, &qd_end_bar, &moved_bar}) std::fill_n(bar->write(), bar->rows() * kWorlds, T(1));
    Buffer<T> q_bar = rows(t.nq), qd_bar = rows(t.nv), constants_bar = rows(gradient_rows_of<T>(model, true));
    RolloutAdjointArguments<T> a{launch_of(kernel_model, 1. / 240, kStepCount, start.q),
                                 q.row(0),
                                 qd.row(0),
                                 nullptr,
                                 status.address(),
                                 nullptr,
                                 nullptr,
                                 q_end_bar.row(0),
                                 qd_end_bar.row(0),
                                 q_bar.write(),
                                 qd_bar.write(),
                                 nullptr,
                                 constants_bar.write()};
    a.reported = reported.row(0);
    if (t.way_count > 0) a.ways = ways.row(0);
    a.reported_end_bar = moved_bar.row(0);
    a.touched = known ? known->row(0) : nullptr;
    table.rollout_adjoint(a, 0, groups(), scratch.get());
    std::vector<double> all;
    for (const Buffer<T>* bar : {&q_bar, &qd_bar, &constants_bar}) {
      for (int r = 0; r < bar->rows(); ++r) {
        for (int w = 0; w < kWorlds; ++w) all.push_back((*bar)(r, w));
      }
    }
    return all;
  }

  Memory memory;
  Model model;
  const KernelTable<T>& table;
  KernelModel<T> kernel_model;
  State<T> start;
  std::shared_ptr<std::byte> scratch;
  WorldStatuses status{kWorlds};
  Buffer<T> q, qd, reported, ways, touched;

 private:
  void throw_world(int world, test::Random& random) {
    double x = 0;
    for (const Link& link : model.topology.links) {
      const bool flies = link.type == JointType::free;
      start.q.set(link.q + 3, world, T(1));
      for (int k = 0; k < (flies ? 6 : 3); ++k) start.qd.set(link.v + k, world, T(random.uniform(-3, 3)));
      if (!flies) continue;
      start.q.set(link.q + 4, world, T(x += 2));
      start.q.set(link.q + 6, world, T(0.3 + 0.1 * world));
    }
  }
};

template <class T>
void expect_the_same_bits(Integrator integrator) {
  Run<T> run(integrator);
  int acted = 0;
  for (int step = 0; step < kStepCount; ++step) acted += run.touched(step, 0) > 0;
  EXPECT_GT(acted, 10);
  EXPECT_LT(acted, kStepCount - 10);
  const std::vector<double> sought = run.gradient(nullptr), told = run.gradient(&run.touched);
  EXPECT_TRUE(std::ranges::all_of(sought, [](double x) { return std::isfinite(x); }));
  EXPECT_EQ(sought, told);
  // That it is read at all: with nothing ever in touch there is another gradient.
  EXPECT_NE(sought, run.gradient(&(run.touched = run.rows(kStepCount))));
}

TEST(StepsThatTouchNothing, AreWalkedBackToTheSameBits) {
  for (const Integrator integrator : {Integrator::featherstone, Integrator::semi_implicit}) {
    SCOPED_TRACE(integrator == Integrator::featherstone ? "featherstone" : "semi_implicit");
    expect_the_same_bits<float>(integrator);
    expect_the_same_bits<double>(integrator);
  }
}

}  // namespace
}  // namespace backdrive
