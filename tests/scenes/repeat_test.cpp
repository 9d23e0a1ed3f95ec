// Repeated parts: what is written out by hand and by `repeat` is one document, with errors where the entry stands.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <numbers>
#include <string>

#include "scenes/document.h"
#include "scenes/expression.h"
#include "scenes/repeat.h"
#include "scenes/scene.h"

namespace backdrive {
namespace {

using scene::NamedValue;

scene::NodePtr copies_of(const scene::NodePtr& root, const scene::Sources& sources) {
  scene::Mistakes mistakes;
  scene::NodePtr result = scene::expand_repeats(root, sources, mistakes);
  mistakes.throw_any();
  return result;
}

std::string expanded(const std::string& text) {
  const scene::Sources sources{"scene.yaml"};
  return scene::to_yaml(*copies_of(scene::parse_document(text, sources, 0), sources));
}

std::string error_of(const std::string& text, const std::vector<Override>& overrides = {}) {
  try {
    parse_scene(text, "scene.yaml", ".", overrides);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

double value_of(const char* expression) {
  const NamedValue names[] = {{"i", true, 7}, {"word", false, 0, "left"}};
  const scene::ExpressionResult result = scene::evaluate(expression, names);
  EXPECT_EQ(result.expected, "") << expression;
  return result.value.number;
}

TEST(Expression, IsArithmetic) {
  EXPECT_EQ(value_of("i"), 7);
  EXPECT_EQ(value_of(" 2*i-1 "), 13);
  EXPECT_EQ(value_of("10 - 2 - 3"), 5);
  EXPECT_EQ(value_of("2 + 3 * (i - 5)"), 8);
  EXPECT_EQ(value_of("24 / 2 / 3"), 4);
  EXPECT_EQ(value_of("-2^2"), -4);
  EXPECT_EQ(value_of("2^3^2"), 512);
  EXPECT_EQ(value_of("2^-1"), 0.5);
  EXPECT_EQ(value_of("--i"), 7);
  EXPECT_EQ(value_of("(i - 8) % 4"), 3);
  EXPECT_EQ(value_of("floor(i / 2)"), 3);
  EXPECT_EQ(value_of("1.5e1"), 15);
  EXPECT_EQ(value_of("abs(-i) + sqrt(16)"), 11);
  EXPECT_EQ(value_of("cos(2 * pi * i / 14)"), std::cos(std::numbers::pi));
  EXPECT_EQ(value_of("sin(pi / 6)"), std::sin(std::numbers::pi / 6));
}

TEST(Expression, AnswersForWhatIsNone) {
  const NamedValue names[] = {{"i", true, 7}, {"word", false, 0, "left"}};
  for (const auto& [text, expected] : {std::pair("", "a number or a name at its end"),
                                       {"i +", "a number or a name at its end"},
                                       {"(i", "')'"},
                                       {"i)", "an operator (+ - * / % ^) before ')'"},
                                       {"2 i", "an operator (+ - * / % ^) before 'i'"},
                                       {"sin i", "'(' behind sin"},
                                       {"1/0", "an expression whose value is finite"},
                                       {"1 % 0", "an expression whose value is finite"},
                                       {"sqrt(-1)", "an expression whose value is finite"},
                                       {"010", "a number or a name at '010'"},
                                       {"1.2.3", "a number or a name at '1.2.3'"},
                                       {"$", "a number or a name at '$'"},
                                       {"j", "one of the names that `repeat` gives (i, word) instead of 'j'"},
                                       {"word + 1", "'word' alone, as it is no number"},
                                       {"1 + word", "numbers beside operators ('word' is none)"}}) {
    EXPECT_EQ(scene::evaluate(text, names).expected, expected) << text;
  }
  EXPECT_EQ(scene::evaluate(std::string(100'000, '('), names).expected, "brackets at most 50 deep");
  EXPECT_EQ(scene::evaluate("1" + std::string(100'000, '^'), names).expected.substr(0, 20), "a number or a name a");
  std::string powers = "1";
  for (int k = 0; k < 100'000; ++k) powers += "^1";
  EXPECT_EQ(scene::evaluate(powers, names).expected, "brackets at most 50 deep");
}

TEST(Expression, WritesNumbersThatReadBack) {
  EXPECT_EQ(scene::number_text(100000), "100000");
  EXPECT_EQ(scene::number_text(-0.0), "0");
  EXPECT_EQ(scene::number_text(0.1), "0.1");
  EXPECT_EQ(scene::number_text(1.0 / 3), "0.3333333333333333");
  EXPECT_EQ(scene::number_text(1e300), "1e+300");
}

constexpr const char* kRepeated = R"(
model:
  bodies:
    first: {mass: 1}
    link_$(i):
      repeat: {i: 1..3}
      mass: $(2 * i) g
      shapes:
        - {name: s_$(i)_$(k), repeat: {k: 1..$(i)}, geometry: {type: sphere, scale: $(i + k / 10) cm}}
    last: {mass: 2}
  joints:
    $(side)_$(leg): {repeat: {side: [left, right], leg: 0..1}, parent: $(side), axis: [0, $(1 - leg), $(leg)]}
    $(name)_knee: {repeat: [{name: fore, y: 0.1}, {name: hind, y: -2 cm}], frame: {position: [0, $(y), 0]}}
optimize:
  loss: {running: [{joint: a}, {repeat: {i: 1..2}, control: link_$(i), weight: $(i ^ 2)}, {joint: b}]}
)";

constexpr const char* kWrittenOut = R"(
model:
  bodies:
    first: {mass: 1}
    link_1:
      mass: 2 g
      shapes:
        - {name: s_1_1, geometry: {type: sphere, scale: 1.1 cm}}
    link_2:
      mass: 4 g
      shapes:
        - {name: s_2_1, geometry: {type: sphere, scale: 2.1 cm}}
        - {name: s_2_2, geometry: {type: sphere, scale: 2.2 cm}}
    link_3:
      mass: 6 g
      shapes:
        - {name: s_3_1, geometry: {type: sphere, scale: 3.1 cm}}
        - {name: s_3_2, geometry: {type: sphere, scale: 3.2 cm}}
        - {name: s_3_3, geometry: {type: sphere, scale: 3.3 cm}}
    last: {mass: 2}
  joints:
    left_0: {parent: left, axis: [0, 1, 0]}
    left_1: {parent: left, axis: [0, 0, 1]}
    right_0: {parent: right, axis: [0, 1, 0]}
    right_1: {parent: right, axis: [0, 0, 1]}
    fore_knee: {frame: {position: [0, 0.1, 0]}}
    hind_knee: {frame: {position: [0, -2 cm, 0]}}
optimize:
  loss: {running: [{joint: a}, {control: link_1, weight: 1}, {control: link_2, weight: 4}, {joint: b}]}
)";

TEST(Repeat, IsWhatIsWrittenOut) {
  EXPECT_EQ(expanded(kRepeated), expanded(kWrittenOut));
}

TEST(Repeat, LeavesAloneWhatIsNoEntry) {
  // A body may be called `repeat`; what holds no repetition is shared.
  const std::string text = "model:\n  bodies:\n    repeat: {mass: 1}\ndescription: costs $(5)\n";
  const scene::Sources sources{"scene.yaml"};
  const scene::NodePtr root = scene::parse_document(text, sources, 0);
  EXPECT_EQ(scene::to_yaml(*copies_of(root, sources)), scene::to_yaml(*root));
  const scene::NodePtr plain = scene::parse_document("model: {bodies: {a: {mass: 1}}}", sources, 0);
  EXPECT_EQ(copies_of(plain, sources), plain);
}

constexpr const char* kPair = R"(
model:
  bodies:
    b$(i): {repeat: {i: 0..1}, mass: 1, inertia: [1, 1, 1]}
  joints:
    j$(i): {repeat: {i: 0..1}, type: revolute, child: b$(i), damping: $(i)}
)";

TEST(Repeat, CopiesAreSetByTheirNames) {
  const Scene one = parse_scene(kPair, "scene.yaml", ".", std::vector<Override>{{"joints/j1/damping", "3"}});
  EXPECT_EQ(one.problem.model.joints.damping(0), 0);
  EXPECT_EQ(one.problem.model.joints.damping(1), 3);
  // And before there are any: how many, and all at once.
  const std::vector<Override> more{{"bodies/b$(i)/repeat/i", "0..4"},
                                   {"model/joints/j$(i)/repeat", "{i: 0..4}"},
                                   {"joints/j$(i)/damping", "$(i / 2)"},
                                   {"optimize/variables", "[{repeat: {k: 0..4}, control: j$(k), knots: 2}]"},
                                   {"loss/terminal", "[{repeat: {k: 0..4}, joint: j$(k), position: 1}]"}};
  const Scene five = parse_scene(kPair, "scene.yaml", ".", more);
  ASSERT_EQ(five.problem.model.joint_names.size(), 5u);
  EXPECT_EQ(five.problem.model.joints.damping(4), 2);
  EXPECT_EQ(five.problem.variables.size(), 5u);
  EXPECT_EQ(five.problem.loss.size(), 5u);
  // What is written back stands by itself.
  const Scene again = parse_scene(scene_with_values(five, five.problem), "result.yaml", ".");
  EXPECT_EQ(again.problem.model.joints.damping(3), 1.5);
}

TEST(Repeat, AnswersWhereTheEntryStands) {
  const auto with = [](const char* path, const char* value) { return error_of(kPair, {{path, value}}); };
  EXPECT_EQ(with("joints/j1/dampng", "1").substr(0, 70),
            "--set joints/j1/dampng=1: model/joints/j1: unknown key 'dampng': expec");
  std::string text = kPair;
  text.replace(text.find("damping: $(i)"), 13, "damping: $(-i)");
  EXPECT_EQ(error_of(text).substr(0, 59), "scene.yaml:6:71: model/joints/j1/damping: value '-1': expec");
  for (const auto& [range, expected] :
       {std::pair("1..0", "expected a range of whole numbers like 0..31, from the least to the greatest"),
        {"5", "expected a range of whole numbers"},
        {"a..b", "expected a range of whole numbers"},
        {"0..99999999999", "expected a range of whole numbers"},
        {"[]", "expected a range of whole numbers"},
        {"[[1]]", "expected a number or a word"},
        {"{a: 1}", "expected a range of whole numbers"},
        {"~", "no value: expected a range of whole numbers"}}) {
    const std::string error = with("bodies/b$(i)/repeat/i", range);
    EXPECT_NE(error.find(expected), std::string::npos) << error;
    EXPECT_NE(error.find("model/bodies/b$(i)/repeat/i"), std::string::npos) << error;
  }
  for (const char* const repeat : {"{}", "[]", "[1]", "5", "~", "{2: 0..1}", "{pi: 0..1}", "{sin: 0..1}"}) {
    const std::string error = with("bodies/b$(i)/repeat", repeat);
    EXPECT_NE(error.find("model/bodies/b$(i)/repeat"), std::string::npos) << error;
    EXPECT_NE(error.find(": expected "), std::string::npos) << error;
  }
}

TEST(Repeat, OfTooMuchIsRefusedAtOnce) {
  const auto begin = std::chrono::steady_clock::now();
  const auto refused = [](const std::string& text, const char* words) {
    const std::string error = error_of(text);
    EXPECT_NE(error.find(words), std::string::npos) << error.substr(0, 300);
    EXPECT_LT(error.size(), 5000u);  // of 20 mistakes, with their places
  };
  const std::string many = "{repeat: {i: 0..999999999, j: 0..999999999, k: 0..999999999}, mass: 1}";
  refused("model: {bodies: {b$(i)_$(j)_$(k): " + many + "}}", "more than 500000 values");
  refused("model: {bodies: {b: {shapes: [{repeat: {i: 0..999999}, density: 1}]}}}", "more than 500000 values");
  const std::string long_word(1'000'000, 'x');
  refused("model: {bodies: {b$(i): {repeat: {i: 0..99999, w: [" + long_word + "]}, mass: $(w)}}}",
          "of more than 64 MiB");
  std::string squared;
  for (int k = 0; k < 100'000; ++k) squared += "$(w)";
  refused("model: {bodies: {b: {repeat: {w: [" + long_word + "]}, mass: " + squared + "}}}", "of more than 64 MiB");
  // A long text that no expression is in is neither copied nor read again.
  refused("model: {bodies: {b$(i): {repeat: {i: 0..99999}, mass: " + long_word + "}}}", "a number of at most 1000");
  // Each of these takes a fraction of a second; sanitizers are slower.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

}  // namespace
}  // namespace backdrive
