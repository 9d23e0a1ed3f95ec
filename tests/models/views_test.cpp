// The story of Warp #720, in the other direction: who still looks at a parameter that has gone is told, with its path.
#include "models/views.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "models/fields.h"
#include "tests/models/model_cases.h"
#include "tests/support/errors.h"

namespace backdrive {
namespace {

using test::expect_usage_error;

constexpr const char* kScale = "shapes/ball/geometry/scale";

Model ball_model() {
  ModelBuilder builder = test::cart_pole();
  ShapeOptions ball;
  ball.type = GeometryType::ellipsoid;
  ball.scale = {0.1, 0.2, 0.3};
  builder.add_shape("ball", 1, ball);
  return builder.build();
}

/// Tries every access of a view.
void expect_stale(const ParameterView& view, const std::string& path = kScale) {
  const std::string quoted = "'" + path + "'";
  const auto words = {"stale view of", quoted.c_str(), "freed, moved, or resized", "make a new view"};
  EXPECT_FALSE(view.valid());
  expect_usage_error([&] { view(0, 0); }, words);
  expect_usage_error([&] { view.set(0, 1); }, words);
  expect_usage_error([&] { view.set(0, 0, 1); }, words);
  expect_usage_error([&] { view.requires_grad(); }, words);
  expect_usage_error([&] { view.components(); }, words);
  expect_usage_error([&] { view.worlds(); }, words);
}

void expect_good(const ParameterView& view) {
  EXPECT_TRUE(view.valid());
  EXPECT_EQ(view(0), 0.1);
  EXPECT_EQ(view(1), 0.2);
  EXPECT_EQ(view(2), 0.3);
}

// ---- planted stale views

class SeedsStaleParameterView : public testing::Test {
 protected:
  void SetUp() override {
    if (!kGuards) GTEST_SKIP() << "built with BACKDRIVE_GUARDS=0: nothing looks for stale views";
  }

  /// A view of the ball's scale is good before `action` and stale after it; one made later is good again.
  void expect_stale_after(const std::function<void(Model&)>& action) {
    Model model = ball_model();
    const ParameterView planted = view(model, kScale);
    expect_good(planted);
    action(model);
    expect_stale(planted);
    expect_good(view(model, kScale));
  }
};

TEST_F(SeedsStaleParameterView, ParameterReassigned) {
  const Model other = ball_model();
  expect_stale_after([&](Model& m) { m.shapes.geometry.scale = other.shapes.geometry.scale; });
  expect_stale_after([&](Model& m) { m.shapes.geometry.scale = Parameter(other.shapes.geometry.scale); });
}

TEST_F(SeedsStaleParameterView, SubStructReplacedAtEveryLevel) {
  const Model other = ball_model();
  expect_stale_after([&](Model& m) { m.shapes.geometry = other.shapes.geometry; });
  expect_stale_after([&](Model& m) { m.shapes.geometry = GeometryParameters(other.shapes.geometry); });
  expect_stale_after([&](Model& m) { m.shapes = other.shapes; });
  expect_stale_after([&](Model& m) { static_cast<Parameters&>(m) = other; });
  expect_stale_after([&](Model& m) { m = other; });
  expect_stale_after([&](Model& m) { m = ball_model(); });
}

TEST_F(SeedsStaleParameterView, SwappedWithAnother) {
  Model other = ball_model();
  const ParameterView of_other = view(other, kScale);
  expect_stale_after([&](Model& m) { std::swap(m.shapes.geometry, other.shapes.geometry); });
  expect_stale(of_other);
}

TEST_F(SeedsStaleParameterView, Resized) {
  expect_stale_after([](Model& m) { m.shapes.geometry.scale.resize(17); });
}

TEST_F(SeedsStaleParameterView, Spread) {
  expect_stale_after([](Model& m) { m.shapes.geometry.scale.spread(4); });
}

TEST_F(SeedsStaleParameterView, ModelDestroyed) {
  auto model = std::make_unique<Model>(ball_model());
  const ParameterView planted = view(*model, kScale);
  model.reset();
  expect_stale(planted);
}

TEST_F(SeedsStaleParameterView, ModelDestroyedAndAnotherInItsPlace) {
  std::optional<Model> model(ball_model());
  const ParameterView planted = view(*model, kScale);
  model.emplace(ball_model());
  expect_stale(planted);
  expect_good(view(*model, kScale));
}

TEST_F(SeedsStaleParameterView, MovedFrom) {
  Model model = ball_model();
  const ParameterView planted = view(model, kScale);
  Model moved = std::move(model);
  expect_stale(planted);
  expect_good(view(moved, kScale));
}

TEST_F(SeedsStaleParameterView, OnlyASubStructMovedFrom) {
  Model model = ball_model();
  const ParameterView planted = view(model, kScale);
  const ParameterView density = view(model, "shapes/ball/density");
  const GeometryParameters taken = std::move(model.shapes.geometry);
  expect_stale(planted);
  EXPECT_TRUE(density.valid());
  EXPECT_EQ(taken.scale(2, 1), 0.2);
}

TEST_F(SeedsStaleParameterView, ModelsMovedByAGrowingVector) {
  std::vector<Model> models;
  models.push_back(ball_model());
  const ParameterView planted = view(models[0], kScale);
  models.reserve(models.capacity() + 1);
  expect_stale(planted);
}

TEST_F(SeedsStaleParameterView, EveryFieldIsGuarded) {
  std::vector<std::pair<ParameterView, std::string>> planted;
  {
    Model model = ball_model();
    for (const FieldSelection& selection : select_fields(model, "*")) {
      const std::string path = path_of(model, selection);
      planted.emplace_back(view(model, path), path);
      EXPECT_TRUE(planted.back().first.valid());
    }
  }
  EXPECT_EQ(planted.size(), 2u * 4 + 2u * 23 + 3u * 12 + 1);
  for (const auto& [stale, path] : planted) expect_stale(stale, path);
}

TEST_F(SeedsStaleParameterView, OutOfRangeIsNamedToo) {
  Model model = ball_model();
  model.bodies.mass.spread(2);
  const ParameterView scale = view(model, kScale), mass = view(model, "bodies/pole/mass");
  expect_usage_error([&] { scale(3); }, {kScale, "component 3", "expected one of 3"});
  expect_usage_error([&] { scale.set(0, 1, 2.0); }, {kScale, "world 1", "expected one of 1"});
  expect_usage_error([&] { mass(0, 2); }, {"bodies/pole/mass", "world 2", "expected one of 2"});
  expect_usage_error([&] { mass(0, -1); }, {"bodies/pole/mass", "world -1"});
  EXPECT_EQ(scale(0, 41), 0.1) << "a uniform parameter has one value for every world";
}

// ---- views that are not stale

TEST(SeedsParameterView, SurvivesWhatLeavesTheNumbersWhereTheyAre) {
  Model model = ball_model();
  const ParameterView scale = view(model, kScale);
  set_requires_grad(model, kScale, true);
  expect_good(scale);
  set_requires_grad(model, "*", false);
  expect_good(scale);
  Model copy = model;
  expect_good(scale);
  set_requires_grad(copy, "*", true);
  copy.shapes.geometry.scale.resize(1);
  copy = Model();
  expect_good(scale);
  const Parameters zeros = zero_parameters(model, 3);
  model.shapes.geometry.margin.spread(3);
  model.bodies.mass = Parameter(1);
  model.joints = JointParameters();
  expect_good(scale);
  const Model& same = model;
  model = same;
  expect_good(scale);
  model.shapes.geometry.scale.set(2, 1, 0.7);
  EXPECT_EQ(scale(1), 0.7);
}

TEST(SeedsParameterView, ReadsAndWritesInPlace) {
  Model model = ball_model();
  const ParameterView whole = view(model, kScale), second = view(model, "shapes/ball/geometry/scale/1");
  EXPECT_EQ(whole.components(), 3);
  EXPECT_EQ(second.components(), 1);
  EXPECT_EQ(second(0), 0.2);
  second.set(0, 0.5);
  EXPECT_EQ(whole(1), 0.5);
  EXPECT_EQ(model.shapes.geometry.scale(2, 1), 0.5);
  EXPECT_EQ(model.shapes.geometry.scale(0, 1), 0) << "the item next to it";
  model.bodies.com.spread(2);
  const ParameterView z = view(model, "bodies/pole/com/z");
  EXPECT_EQ(z.worlds(), 2);
  z.set(0, 1, 4);
  EXPECT_EQ(z(0, 0), 0);
  EXPECT_EQ(model.bodies.com(1, 2, 1), 4);
  z.set(0, 3);
  EXPECT_EQ(z(0, 0), 3);
  EXPECT_EQ(z(0, 1), 3);
  EXPECT_EQ(z.path(), kGuards ? "bodies/pole/com/z" : "");
}

/// Through every level of nesting, and for views made before the switch as well: the flag is read when it is asked for.
TEST(SeedsParameterView, SeesRequiresGradAsItIs) {
  Model model = ball_model();
  for (const char* path : {"*", "shapes", "shapes/ball", "shapes/ball/geometry", kScale, "shapes/*/geometry/scale"}) {
    const ParameterView before = view(model, kScale);
    EXPECT_FALSE(before.requires_grad());
    set_requires_grad(model, path, true);
    EXPECT_TRUE(view(model, kScale).requires_grad()) << path;
    EXPECT_TRUE(before.requires_grad()) << path;
    EXPECT_TRUE(view(model, "shapes/ball/geometry/scale/2").requires_grad()) << path;
    set_requires_grad(model, path, false);
    EXPECT_FALSE(view(model, kScale).requires_grad()) << path;
    EXPECT_FALSE(before.requires_grad()) << path;
  }
  set_requires_grad(model, "shapes/tip", true);
  EXPECT_FALSE(view(model, kScale).requires_grad());
}

TEST(SeedsParameterView, SubStructBringsItsRequiresGrad) {
  Model model = ball_model(), other = ball_model();
  set_requires_grad(other, "shapes/ball/geometry", true);
  model.shapes.geometry = other.shapes.geometry;
  EXPECT_TRUE(view(model, kScale).requires_grad());
  model.shapes.geometry.scale = ball_model().shapes.geometry.scale;
  EXPECT_FALSE(view(model, kScale).requires_grad());
  EXPECT_TRUE(view(model, "shapes/ball/geometry/margin").requires_grad());
  EXPECT_TRUE(view(other, kScale).requires_grad());
}

/// Neither values nor the asking for gradients are shared by what was copied, assigned or moved.
TEST(SeedsParameterView, CopiesAndMovesShareNothing) {
  Model model = ball_model();
  set_requires_grad(model, kScale, true);
  Model copy = model;
  Model assigned;
  assigned = model;
  Model part = ball_model();
  part.shapes = model.shapes;
  set_requires_grad(model, kScale, false);
  view(model, kScale).set(0, 9);
  for (Model* other : {&copy, &assigned, &part}) {
    EXPECT_TRUE(view(*other, kScale).requires_grad());
    expect_good(view(*other, kScale));
  }
  Model moved = std::move(copy);
  copy = ball_model();
  set_requires_grad(copy, "*", true);
  set_requires_grad(moved, kScale, false);
  view(copy, kScale).set(0, 8);
  EXPECT_TRUE(view(copy, kScale).requires_grad());
  EXPECT_FALSE(view(moved, kScale).requires_grad());
  expect_good(view(moved, kScale));
  expect_good(view(assigned, kScale));
}

TEST(SeedsParameterView, PathsThatAreNotOneParameter) {
  Model model = ball_model();
  expect_usage_error([&] { view(model, "shapes/*/geometry/scale"); },
                     {"'shapes/*/geometry/scale' selects 3 parameters", "shapes/tip/geometry/scale", "expected one"});
  expect_usage_error([&] { view(model, "shapes/ball"); }, {"'shapes/ball' selects 12 parameters", ", ..."});
  try {
    view(model, "shapes/ball/geometry/scael");
    FAIL() << "a path to nothing was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_NE(std::string(error.what()).find("did you mean 'scale'"), std::string::npos) << error.what();
  }
  model.shapes.density.resize(1);
  expect_usage_error([&] { view(model, "shapes/ball/density"); }, {"shapes/ball/density", "holds 1 items"});
  EXPECT_NO_THROW(view(model, "shapes/*all/geometry/scale")) << "a pattern that stands for one will do";
}

TEST(SeedsParameterView, FreeWithoutGuards) {
  EXPECT_TRUE(std::is_nothrow_move_constructible_v<Parameter>);
  EXPECT_TRUE(std::is_nothrow_move_assignable_v<Parameter>);
  if (kGuards) GTEST_SKIP() << "built with BACKDRIVE_GUARDS=1: sizes are those of a checking build";
  struct Bare {
    int components, worlds;
    double fill;
    PoolVector<double> values;
    PoolVector<bool> requires_grad;
  };
  EXPECT_EQ(sizeof(Parameter), sizeof(Bare));
  EXPECT_EQ(sizeof(ParameterView), sizeof(Parameter*) + 2 * sizeof(int));
}

}  // namespace
}  // namespace backdrive
