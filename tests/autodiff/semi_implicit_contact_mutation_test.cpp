// Proof that the gradient test of contact in maximal coordinates can fail: each fault is planted in a copy of the
// adjoint, and the check that semi_implicit_contact_test.cpp makes must notice it.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "autodiff/tape/recorded.h"
#include "integrators/semi_implicit/contact_rollout_kernel.h"
#include "integrators/semi_implicit/pose_kernel.h"
#include "tests/autodiff/semi_implicit_touching.h"
#include "tests/faults/planted.h"
#include "tests/support/borne_case.h"

namespace backdrive {
namespace {

using test::InputDirection;
using test::kSteps;
using test::OutputWeights;

/// As test::along_adjoint, by the kernels with the planted fault; poses have no weights here.
std::vector<std::pair<std::string, double>> along_mutant(const Model& model, const InputDirection& d,
                                                         const OutputWeights& w, std::uint64_t seed) {
  const Topology& t = model.topology;
  Memory memory;
  const test::Batch<double> batch = test::random_batch<double>(model, kSteps, {0}, seed);
  const RolloutOptions options = test::options_of(kSteps);
  const State<double> start = place_bodies<double>(nullptr, model, batch.state, options);
  const Trajectory<double> run = rollout(model, start, batch.control, options);
  const KernelModel<double> kernel_model(model, nullptr, 1, memory);
  Launch<double> launch = launch_of(kernel_model, options.time_step, kSteps, start.q);
  launch.fresh = true;
  const auto rows = [&](int count) { return Buffer<double>(memory, count, 1); };
  Buffer<double> q = rows(t.nq), qd = rows(t.nv), q0 = rows(t.nq), qd0 = rows(t.nv), control = rows(kSteps * t.nu);
  Buffer<double> of_rollout = rows(gradient_rows_of<double>(model, true));
  Buffer<double> of_place = rows(gradient_rows_of<double>(model, false));
  RolloutAdjointArguments<double> adjoint{launch,
                                          run.q.row(0),
                                          run.qd.row(0),
                                          batch.control.u.row(0),
                                          run.status->address(),
                                          w.q.row(0),
                                          w.qd.row(0),
                                          nullptr,
                                          nullptr,
                                          q.write(),
                                          qd.write(),
                                          control.write(),
                                          of_rollout.write()};
  adjoint.reported_bar = w.reported.row(0);
  adjoint.contact_bar = w.contact.row(0);
  semi_implicit::ContactAdjointScratch<double> counted;
  Arena counter(nullptr);
  lay_out(adjoint, 0, counter, counted);
  const std::shared_ptr<std::byte> scratch = memory.allocate(counter.used());
  rollout_adjoint_group<semi_implicit::ContactAdjointScratch<double>>(adjoint, 0, scratch.get());
  PlaceArguments<double> placing{launch, batch.state.q.row(0), batch.state.qd.row(0)};
  placing.q_placed_bar = q.row(0);
  placing.qd_placed_bar = qd.row(0);
  placing.q_bar = q0.write();
  placing.qd_bar = qd0.write();
  placing.constants_bar = of_place.write();
  semi_implicit::place_adjoint_group<double>(placing, 0, scratch.get());
  Parameters parameters = zero_parameters(model), unused = parameters;
  for (const Buffer<double>* bar : {&of_rollout, &of_place}) {
    add_constants_gradient(model, nullptr, *bar, run.status.get(), parameters, unused);
  }
  return test::products(model, d, {q0, qd0, control, parameters});
}

/// A model, weights and a direction, and what duals say of each block: no fault changes that.
struct Case {
  Case(std::uint64_t number, const Model& m) : seed(number), model(m) {
    test::Random random(seed + 100);
    weights = test::random_weights(model, random);
    direction = test::random_direction(model, random);
    for (int r = 0; r < weights.poses.rows(); ++r) weights.poses.set(r, 0, 0);
    duals = test::blocks_along_duals(model, direction, weights, seed, backward());
  }
  std::vector<std::pair<std::string, double>> backward() const { return along_mutant(model, direction, weights, seed); }

  std::uint64_t seed;
  Model model;
  OutputWeights weights;
  InputDirection direction;
  test::BlockSums duals;
};

/// Largest error of a block, of trees with loops, couplings and both, of one that slides, of loose bodies, and of such
/// as a floor bears when they begin.
double worst_error() {
  static const Case cases[] = {{1, test::touching_model(1)}, {2, test::touching_model(2)},
                               {3, test::touching_model(3)}, {2, test::touching_model(2, true)},
                               {3, test::loose_model()},     {1, test::borne_model(Integrator::semi_implicit)}};
  double worst = 0;
  for (const Case& c : cases) {
    for (const auto& [block, error] : test::block_errors(c.duals, c.backward())) {
      worst = std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(worst, error);
    }
  }
  return worst;
}

TEST(SemiImplicitContactMutants, SoundAdjointPasses) {
  EXPECT_LT(worst_error(), 1e-11);
}

// What contact adds to the adjoint of a step here, what it shares with trees, and couplings.
TEST(SemiImplicitContactMutants, EveryFaultIsCaught) {
  std::vector<test::FaultEntry> faults = test::faults_of("contact_on_bodies");
  for (const char* const more : {"contact", "support", "couplings_of_bodies"}) {
    for (const test::FaultEntry& entry : test::faults_of(more)) faults.push_back(entry);
  }
  for (const test::FaultEntry& entry : faults) {
    const test::Planted planted(entry.fault);
    EXPECT_GT(worst_error(), 1e-6) << entry.name;
  }
}

}  // namespace
}  // namespace backdrive
