// The field table and the paths that walk it.
#include "models/fields.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/models/model_cases.h"

namespace backdrive {
namespace {

using test::cart_pole;

std::vector<std::string> paths(const Model& model, std::string_view path) {
  std::vector<std::string> result;
  for (const FieldSelection& selection : select_fields(model, path)) result.push_back(path_of(model, selection));
  return result;
}

void expect_path_error(const Model& model, std::string_view path, std::initializer_list<const char*> words) {
  try {
    select_fields(model, path);
    ADD_FAILURE() << path << " was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    for (const char* word : words) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos)
          << "no \"" << word << "\" in: " << error.what();
    }
  }
}

TEST(Fields, TableHoldsEveryParameterOnce) {
  Parameters p;
  std::set<const Parameter*> seen;
  for (const Field& field : fields()) {
    EXPECT_TRUE(seen.insert(&field.of(p)).second) << field.leaf << " stands twice";
    EXPECT_EQ(field.of(p).components(), field.components) << field.leaf;
    EXPECT_EQ(field.tangents, field.components == 4 ? 3 : field.components) << field.leaf;
    EXPECT_FALSE(field.unit.empty());
    EXPECT_FALSE(field.doc.empty());
  }
  // Parameters is made of nothing but Parameter: its size says how many there are.
  EXPECT_EQ(fields().size(), sizeof(Parameters) / sizeof(Parameter));
}

TEST(Fields, PathsOfAllFieldsAndComponentsComeBack) {
  const Model model = cart_pole().build();
  for (const Field& field : fields()) {
    for (int item = 0; item < field.in(model).items(); ++item) {
      for (int c = -1; c < field.components; ++c) {
        const std::string path = path_of(model, {&field, item, c});
        const auto found = select_fields(model, path);
        ASSERT_EQ(found.size(), 1u) << path;
        EXPECT_EQ(found[0].field, &field);
        EXPECT_EQ(found[0].item, item);
        EXPECT_EQ(found[0].component, c) << path;
      }
    }
  }
}

TEST(Fields, PathsReadAsWritten) {
  const Model model = cart_pole().build();
  EXPECT_EQ(paths(model, "joints/hinge/damping"), (std::vector<std::string>{"joints/hinge/damping"}));
  EXPECT_EQ(paths(model, "bodies/pole/com/2"), (std::vector<std::string>{"bodies/pole/com/z"}));
  EXPECT_EQ(paths(model, "bodies/pole/inertia/xz"), (std::vector<std::string>{"bodies/pole/inertia/xz"}));
  EXPECT_EQ(paths(model, "bodies/pole/inertia/4"), (std::vector<std::string>{"bodies/pole/inertia/xz"}));
  EXPECT_EQ(paths(model, "shapes/tip/frame/orientation/w"),
            (std::vector<std::string>{"shapes/tip/frame/orientation/w"}));
  EXPECT_EQ(paths(model, "shapes/tip/geometry/scale/x"), (std::vector<std::string>{"shapes/tip/geometry/scale/0"}));
  EXPECT_EQ(paths(model, "gravity/z"), (std::vector<std::string>{"gravity/z"}));
  EXPECT_EQ(paths(model, "joints/hinge/damping/0"), (std::vector<std::string>{"joints/hinge/damping/0"}));
}

TEST(Fields, SubtreesAndGlobs) {
  const Model model = cart_pole().build();
  EXPECT_EQ(paths(model, "joints/hinge/limit"),
            (std::vector<std::string>{"joints/hinge/limit/lower", "joints/hinge/limit/upper",
                                      "joints/hinge/limit/stiffness", "joints/hinge/limit/damping",
                                      "joints/hinge/limit/velocity", "joints/hinge/limit/velocity_damping"}));
  EXPECT_EQ(paths(model, "joints/*/damping"),
            (std::vector<std::string>{"joints/slider/damping", "joints/hinge/damping"}));
  EXPECT_EQ(paths(model, "joints/*i*e/armature"), (std::vector<std::string>{"joints/hinge/armature"}));
  EXPECT_EQ(paths(model, "joints/h*/*/damping"),
            (std::vector<std::string>{"joints/hinge/limit/damping", "joints/hinge/drive/damping",
                                      "joints/hinge/attachment/damping"}));
  EXPECT_EQ(paths(model, "bodies/*/com/y"), (std::vector<std::string>{"bodies/cart/com/y", "bodies/pole/com/y"}));
  EXPECT_EQ(paths(model, "*/pole/mass"), (std::vector<std::string>{"bodies/pole/mass"}));
  EXPECT_EQ(paths(model, "bodies/pole").size(), 4u);
  EXPECT_EQ(paths(model, "bodies").size(), 8u);
  EXPECT_EQ(paths(model, "*").size(), 2u * 4 + 2u * 23 + 2u * 12 + 1);
}

TEST(Fields, ErrorsNameTheNearest) {
  const Model model = cart_pole().build();
  expect_path_error(model, "joint/hinge/damping", {"'joint/hinge/damping'", "did you mean 'joints'"});
  expect_path_error(model, "joints/hinges/damping", {"no joint is named 'hinges'", "did you mean 'hinge'"});
  expect_path_error(model, "joints/hinge/dampign",
                    {"no parameter 'dampign'", "at joints/hinge", "did you mean 'damping'"});
  expect_path_error(model, "joints/hinge/limit/uper", {"did you mean 'upper'"});
  expect_path_error(model, "joints/hinge/limit/colour", {"expected lower, upper, stiffness, damping"});
  expect_path_error(model, "bodies/pole/com/3", {"expected 0, 1, 2, x, y, z"});
  expect_path_error(model, "bodies/pole/com/x/y", {"no parameter 'y'", "end before"});
  expect_path_error(model, "bodies/elephant/mass", {"no body is named 'elephant'", "expected cart, pole"});
  expect_path_error(model, "Gravity", {"did you mean 'gravity'"});
  expect_path_error(model, "", {"empty segment", "expected bodies"});
  expect_path_error(model, "joints//damping", {"empty segment"});
  expect_path_error(model, "joints/hinge/damping/", {"empty segment"});
  expect_path_error(model, "joints/x*/damping", {"no joint is named 'x*'"});
  expect_path_error(ModelBuilder().build(), "joints/*/damping", {"no joints"});
}

TEST(Fields, RequiresGradOfASubtree) {
  Model model = cart_pole().build();
  set_requires_grad(model, "joints/hinge/drive", true);
  set_requires_grad(model, "bodies/pole/com/z", true);
  EXPECT_TRUE(model.joints.drive.stiffness.requires_grad(1));
  EXPECT_TRUE(model.joints.drive.effort_limit.requires_grad(1));
  EXPECT_FALSE(model.joints.drive.stiffness.requires_grad(0));
  EXPECT_FALSE(model.joints.damping.any_requires_grad());
  EXPECT_TRUE(model.bodies.com.requires_grad(1));
  set_requires_grad(model, "*", false);
  for (const Field& field : fields()) EXPECT_FALSE(field.in(model).any_requires_grad());
}

TEST(NearestName, OnlyWhenNear) {
  const std::vector<std::string> known{"stiffness", "damping", "friction", "x", "foot_FL", "foot_FR"};
  EXPECT_EQ(nearest_name("stifness", known), "stiffness");
  EXPECT_EQ(nearest_name("dmaping", known), "damping");  // a swap is one edit
  EXPECT_EQ(nearest_name("FRICTION", known), "friction");
  EXPECT_EQ(nearest_name("foot_FR_", known), "foot_FR");
  EXPECT_EQ(nearest_name("X", known), "x");
  EXPECT_EQ(nearest_name("y", known), "");
  EXPECT_EQ(nearest_name("", known), "");
  EXPECT_EQ(nearest_name("temperature", known), "");
  EXPECT_EQ(nearest_name(std::string(100000, 'a'), known), "");
  EXPECT_EQ(nearest_name("anything", {}), "");
}

}  // namespace
}  // namespace backdrive
