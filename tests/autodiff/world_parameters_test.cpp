// Parameters with values for every world that stay where the worlds are computed: against the same values in a model.
#include "autodiff/tape/world_parameters.h"

#include <gtest/gtest.h>

#include "autodiff/problem/loss.h"
#include "tests/support/batch.h"
#include "tests/support/errors.h"
#include "tests/support/models.h"

namespace backdrive {
namespace {

constexpr int kWorlds = 5, kSteps = 9;

const Field& field_of(std::string_view leaf) {
  for (const Field& field : fields()) {
    if (field.leaf == leaf && field.group != FieldGroup::shapes) return field;
  }
  return fields()[0];
}

/// A tree with joint frames and masses that differ from world to world, in the model and beside it.
struct Case {
  Model uniform = test::random_tree(4, {.links = 6, .forces = true, .shapes = true}), spread;
  std::shared_ptr<WorldParameters> parameters;
  test::Batch<double> batch;
  RolloutOptions options;

  explicit Case(int worlds = kWorlds) {
    const std::vector<const Field*> own{&field_of("mass"), &field_of("frame/position"), &field_of("axis")};
    for (const Field* field : own) {
      Parameter& p = field->of(uniform);
      for (int item = 0; item < p.items(); ++item) {
        p.requires_grad(item, field->leaf != "axis" || joint_size(uniform.joint_types[item]).nv > 0);
      }
    }
    spread = uniform;
    parameters = std::make_shared<WorldParameters>(uniform, own, worlds, default_memory());
    for (const Field* field : own) {
      Parameter& p = field->of(spread);
      p.spread(worlds);
      for (int w = 0; w < worlds && field->leaf != "axis"; ++w) {
        for (int item = 0; item < p.items(); ++item) {
          for (int c = 0; c < p.components(); ++c) {
            p.at(item, c, w) += 0.01 * (w + 1);
            parameters->numbers().set(parameters->value_row(*field, item) + c, w, p.at(item, c, w));
          }
        }
      }
    }
    batch = test::random_batch<double>(uniform, kSteps, test::first_worlds(worlds), 2);
    options.steps = kSteps;
  }

  /// Of the last positions and of the poses on the way.
  Gradients<double> gradients(const Model& model, const RolloutOptions& with,
                              Tape<double> tape = Tape<double>()) const {
    const Trajectory<double> t = rollout(tape, model, batch.state, batch.control, with);
    const int bodies[] = {0, 3};
    const Buffer<double> poses = body_poses(&tape, model, t.q, bodies, with);
    Seeds<double> seeds;
    seeds.add(t.final.q, t.final.q);
    seeds.add(poses, poses);
    return std::move(tape).backward(seeds, Disconnected::zero);
  }
  RolloutOptions beside() const {
    RolloutOptions with = options;
    with.parameters = parameters;
    return with;
  }
};

TEST(WorldParameters, StandInPlaceOfTheModels) {
  const Case c;
  const RolloutOptions with = c.beside();
  const Trajectory<double> a = rollout(c.spread, c.batch.state, c.batch.control, c.options);
  const Trajectory<double> b = rollout(c.uniform, c.batch.state, c.batch.control, with);
  EXPECT_TRUE(test::same_bits(a.final.q, b.final.q));
  EXPECT_FALSE(test::same_bits(a.final.q, rollout(c.uniform, c.batch.state, c.batch.control, c.options).final.q));
  const int bodies[] = {1};
  EXPECT_TRUE(test::same_bits(body_poses<double>(nullptr, c.spread, a.q, bodies, c.options),
                              body_poses<double>(nullptr, c.uniform, a.q, bodies, with)));
}

TEST(WorldParameters, HaveTheGradientsOfTheModels) {
  const Case c;
  const Gradients<double> a = c.gradients(c.spread, c.options), b = c.gradients(c.uniform, c.beside());
  EXPECT_TRUE(test::same_bits(a.of(c.batch.state.q), b.of(c.batch.state.q)));
  EXPECT_TRUE(a.of_worlds().empty());
  for (const char* leaf : {"mass", "frame/position", "axis"}) {
    const Field& field = field_of(leaf);
    const Parameter& want = field.in(a.parameters());
    for (int item = 0; item < want.items(); ++item) {
      for (int k = 0; k < field.tangents && want.requires_grad(item); ++k) {
        for (int w = 0; w < kWorlds; ++w) {
          EXPECT_EQ(b.of_worlds()(c.parameters->gradient_row(field, item) + k, w), want(item, k, w)) << leaf << item;
        }
      }
    }
  }
  EXPECT_NE(b.of_worlds()(c.parameters->gradient_row(field_of("mass"), 5), 1), 0);
  test::expect_usage_error([&] { static_cast<void>(b.parameters()); }, {"of_worlds()"});
}

TEST(WorldParameters, RefuseWhatDoesNotFit) {
  Case c;
  const Case other(3);
  const auto run = [&](const Model& model, const RolloutOptions& with) { c.gradients(model, with); };
  test::expect_usage_error([&] { run(c.uniform, other.beside()); }, {"for 3 worlds", "expected 5 worlds"});
  const int bodies[] = {0};
  const Model chain = test::chain(c.uniform.topology.nq);
  test::expect_usage_error([&] { body_poses<double>(nullptr, chain, c.batch.state.q, bodies, c.beside()); },
                           {"of 6 links", "of 5 links"});
  test::expect_usage_error([&] { WorldParameters(c.spread, {&field_of("damping")}, kWorlds, default_memory()); },
                           {"expected uniform"});
  test::expect_usage_error([&] { c.parameters->value_row(field_of("damping"), 0); }, {"damping"});
  Model asks = c.uniform;
  asks.joints.damping.requires_grad(0, true);
  test::expect_usage_error([&] { run(asks, c.beside()); }, {"damping", "not among"});
  // Two sets on one tape.
  Tape<double> tape;
  RolloutOptions with = c.beside();
  rollout(tape, c.uniform, c.batch.state, c.batch.control, with);
  const Case same;
  test::expect_usage_error([&] { same.gradients(same.uniform, same.beside(), std::move(tape)); }, {"two sets"});
}

// The gradient is that of the values that were recorded.
TEST(WorldParameters, AreLeftAloneUntilTheBackward) {
  Case c;
  Tape<double> tape;
  const Trajectory<double> t = rollout(tape, c.uniform, c.batch.state, c.batch.control, c.beside());
  Seeds<double> seeds;
  seeds.add(t.final.q, t.final.q);
  c.parameters->numbers().set(0, 0, 1.0);
  test::expect_usage_error([&] { static_cast<void>(std::move(tape).backward(seeds, Disconnected::zero)); },
                           {"between record and backward"});
}

}  // namespace
}  // namespace backdrive
