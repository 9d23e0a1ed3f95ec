// Text that somebody made to do harm: control characters, formulas, numbers that are cut, files that are too much.
#include <algorithm>
#include <filesystem>

#include "tests/apps/simctl_process.h"
#include "tests/support/sanitized.h"

namespace backdrive::test {
namespace {

/// A title for the terminal's window, a byte that rings, an 8-bit control, a delete, a mark that turns the writing.
constexpr const char* kNames = R"(
name: "\e]0;T\a"
simulation: {time_step: 10 ms, duration: 0.1 s}
model:
  bodies: {"ro\ed": {mass: 1, inertia: [1, 1, 1]}, "b\x9B31m": {mass: 1, inertia: [1, 1, 1]}}
  joints:
    "h\x7F\u202Einge": {type: revolute, child: "ro\ed", axis: [0, 1, 0]}
    "e\rlbow": {type: revolute, parent: "ro\ed", child: "b\x9B31m", axis: [0, 1, 0]}
optimize:
  variables: [{initial_state: "e\rlbow", quantity: velocity}]
  loss: {terminal: [{joint: "e\rlbow", position: 1}]}
)";

/// What a terminal obeys, and what is no UTF-8; "" where there is none.
std::string harmful(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const std::string_view rest = std::string_view(text).substr(i);
    const bool control = (c < 0x20 && c != '\n' && c != '\t') || c == 0x7F;
    const bool wide = c == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (control || wide || rest.starts_with("\u202E")) return text.substr(i > 20 ? i - 20 : 0, 40);
  }
  return "";
}

class SimctlHostileTextTest : public SimctlTest {};

TEST_F(SimctlHostileTextTest, NoNameReachesTheTerminalRaw) {
  const std::string scene = write("names.yaml", kNames);
  const std::vector<std::vector<std::string>> calls = {{"validate", scene},
                                                       {"info", scene},
                                                       {"run", scene, "--output", "out"},
                                                       {"run", scene, "--output", "-"},
                                                       {"run", scene, "--json", "--output", "out2"},
                                                       {"optimize", scene, "--output", "out3"},
                                                       {"gradient", scene},
                                                       {"gradcheck", scene, "--all"},
                                                       {"sweep", scene, "--set", "name=\033[31ma,b"},
                                                       {"convert", scene, "-o", "-"},
                                                       {"validate", scene, "--set", "\033[2Jx=1"},
                                                       {"validate", "no\033such\x9b.yaml"},
                                                       {"valid\033ate"},
                                                       {"run", scene, "--no\033"}};
  for (const std::vector<std::string>& arguments : calls) {
    const Outcome o = simctl(arguments);
    EXPECT_FALSE((o.out + o.err).empty()) << arguments[0];
    EXPECT_EQ(harmful(o.out), "") << arguments[0];
    EXPECT_EQ(harmful(o.err), "") << arguments[0];
  }
  EXPECT_EQ(harmful(read("out3/log.txt")), "");
  // It is told apart all the same, and JSON holds the very name.
  EXPECT_NE(simctl({"validate", scene}).out.find("h\\u007f\\u202einge"), std::string::npos);
  const nlohmann::json object = simctl({"run", scene, "--json", "--output", "out4"}).json();
  EXPECT_TRUE(object.at("final_state").contains("e\rlbow")) << object;
}

TEST_F(SimctlHostileTextTest, NulsCutNoMessage) {
  const std::string scene = write("nul.yaml", "simulation: {duration: 0.1 s}\n\"a\\0b\": 1\n");
  const Outcome o = simctl({"validate", scene, "--json"});
  EXPECT_EQ(o.exit, 3);
  EXPECT_NE(o.err.find("unknown key 'a\\u0000b': expected one of name"), std::string::npos) << o.err;
}

TEST_F(SimctlHostileTextTest, LongNumbersAreNotCut) {
  std::string text = kPendulum;
  const std::string step = "time_step: 10 ms";
  ASSERT_NE(text.find(step), std::string::npos);
  text.replace(text.find(step), step.size(), "time_step: 1." + std::string(1200, '0') + "e-2");
  const Outcome o = simctl({"validate", write("long.yaml", text)});
  EXPECT_EQ(o.exit, 3) << o.out;
  EXPECT_NE(o.err.find("simulation/time_step"), std::string::npos) << o.err;
  EXPECT_NE(o.err.find("expected a number of at most 1000 characters"), std::string::npos) << o.err;
}

TEST_F(SimctlHostileTextTest, ControlCharactersOfADescriptionLoseNoResult) {
  const std::string description = "description: \"a\\a\\e\\0\\x7f\\_\\N\\L z\"\n";
  const std::string scene = write("bell.yaml", description + kPendulum);
  const Outcome o = simctl({"optimize", scene, "--output", "out", "--quiet"});
  EXPECT_LE(o.exit, 1) << o.err;
  const Outcome again = simctl({"run", "out/result.yaml", "--output", "again", "--quiet"});
  EXPECT_EQ(again.exit, 0) << again.err;
  const auto line = [](const std::string& text) {
    const std::size_t at = text.find("description: ");
    return text.substr(at, text.find('\n', at) - at);
  };
  EXPECT_EQ(line(read("out/result.yaml")), line(read("again/scene.yaml")));
  EXPECT_NE(read("out/result.yaml").find("a\\x07\\x1b\\x00\\x7f"), std::string::npos) << read("out/result.yaml");
}

TEST_F(SimctlHostileTextTest, NoNameBecomesAFormula) {
  std::string text = kPendulum;
  for (std::size_t at = 0; (at = text.find("hinge", at)) != std::string::npos; at += 8)
    text.replace(at, 5, "\"@SUM(1)\"");
  const std::string scene = write("formula.yaml", text);
  ASSERT_EQ(simctl({"run", scene, "--output", "out"}).exit, 0);
  const std::string table = read("out/trajectory.csv");
  EXPECT_NE(table.find(",'@SUM(1)/position,"), std::string::npos) << table.substr(0, 200);
  const Outcome swept = simctl({"sweep", scene, "--set", "description==1+1,-5 deg,-1"});
  EXPECT_NE(swept.out.find("\n'=1+1,"), std::string::npos) << swept.out;
  EXPECT_NE(swept.out.find("\n-5 deg,"), std::string::npos) << swept.out;
  EXPECT_NE(swept.out.find("\n-1,"), std::string::npos) << swept.out;
}

/// Refusing takes no more memory than reading what is allowed. How long it takes is not held here: times are noise.
TEST_F(SimctlHostileTextTest, RefusingTakesLittleMemory) {
  const auto repeated = [](const std::string& piece, std::size_t bytes) {
    std::string text;
    text.reserve(bytes + piece.size());
    while (text.size() < bytes) text += piece;
    return text;
  };
  constexpr std::size_t kAlmostAll = (std::size_t{6} << 20) - 100;
  std::string keys, blocks;
  for (int i = 0; keys.size() < kAlmostAll - 20; ++i) keys += "k" + std::to_string(i) + ": 1\n";
  const std::pair<const char*, std::string> texts[] = {
      {"nulls", "a: [" + repeated("~,", kAlmostAll) + "~]\n"},
      {"numbers", "a: [" + repeated("1,", kAlmostAll) + "1]\n"},
      {"lines of numbers", "a:\n" + repeated(" - 1\n", kAlmostAll)},
      {"lines of nulls", "a:\n" + repeated(" -\n", kAlmostAll)},
      {"open lists", "a: " + repeated("[", kAlmostAll) + "\n"},
      {"open lists on lines", "a:\n" + repeated(" [\n", kAlmostAll)},
      {"lists with items", "a: " + repeated("[b, ", kAlmostAll) + "\n"},
      {"open maps", "a: " + repeated("{b: ", kAlmostAll) + "\n"},
      {"empty lists", "a: [" + repeated("[],", kAlmostAll) + "]\n"},
      {"keys", keys},
      {"dashes", repeated("- ", kAlmostAll) + "\n"},
      {"questions", repeated("? ", kAlmostAll) + "\n"},
      {"one word", "name: " + repeated("a", kAlmostAll) + "\n"},
      {"quotes", "name: [" + repeated("'',", kAlmostAll) + "]\n"},
      {"anchors", "a: [" + repeated("&b c,", kAlmostAll) + "]\n"},
      {"commas in quotes", "a: [\"" + repeated(",", kAlmostAll) + "\"]\n"},
      {"comment", "# " + repeated("[", kAlmostAll) + "\n"}};
  for (const auto& [what, text] : texts) {
    const Outcome o = simctl({"validate", write("large.yaml", text)});
    EXPECT_EQ(o.exit, 3) << what << o.err.substr(0, 300);
    EXPECT_NE(o.err.find("expected"), std::string::npos) << what << o.err.substr(0, 300);
    EXPECT_LT(o.err.size(), 4000u) << what << ": twenty faults at most";
    EXPECT_LT(o.peak_kib, 512 * 1024) << what;
  }
}

TEST_F(SimctlHostileTextTest, LargeTablesTakeLittleMemory) {
  std::string table = "time,u,unused\n";
  for (int i = 0; table.size() < (std::size_t{16} << 20) - 40; ++i) {
    table += std::to_string(i) + "," + std::to_string(i % 7) + ",x\n";
  }
  write("u.csv", table);
  const Outcome o =
      simctl({"validate", write("pendulum.yaml", kPendulum), "--set", "controls={hinge: {effort: {file: u.csv}}}",
              "--set", "simulation={time_step: 1 s, steps: 10}"});
  EXPECT_EQ(o.exit, 3);
  EXPECT_NE(o.err.find("expected"), std::string::npos) << o.err;
  EXPECT_LT(o.peak_kib, 300 * 1024) << o.err;
}

// Sixteen million columns without a name, and a baseline of sixteen million lists, each in the one before.
TEST_F(SimctlHostileTextTest, OtherFilesTakeLittleMemory) {
  constexpr std::size_t kAlmostAll = (std::size_t{16} << 20) - 100;
  write("u.csv", std::string(kAlmostAll, ','));
  write("lists.json", std::string(kAlmostAll, '['));
  const std::string pendulum = write("pendulum.yaml", kPendulum);
  const std::vector<std::string> asked[] = {
      {"validate", pendulum, "--set", "controls={hinge: {effort: {file: u.csv}}}"},
      {"gradcheck", pendulum, "--against", "lists.json"}};
  for (const std::vector<std::string>& words : asked) {
    const Outcome o = simctl(words);
    EXPECT_EQ(o.exit, 3) << o.err.substr(0, 300);
    EXPECT_NE(o.err.find("expected"), std::string::npos) << o.err.substr(0, 300);
    EXPECT_LT(o.peak_kib, 200 * 1024) << words[0];
  }
}

TEST_F(SimctlHostileTextTest, ShapesOfTheWorldAreNoPairs) {
  std::string text =
      "simulation: {duration: 0.1 s}\nmodel:\n  bodies: {rod: {mass: 1, inertia: [1, 1, 1]}}\n"
      "  joints: {hinge: {type: revolute, child: rod, axis: [0, 1, 0]}}\n  shapes:\n";
  for (int i = 0; i < (kSanitized ? 3000 : 60000); ++i) {
    text += "    s" + std::to_string(i) + ": {body: world, geometry: {type: sphere, scale: 0.1}}\n";
  }
  const Outcome o = simctl({"validate", write("shapes.yaml", text)});
  EXPECT_EQ(o.exit, 0) << o.err;
  EXPECT_NE(o.out.find("pairs that may touch  0"), std::string::npos) << o.out;
}

}  // namespace
}  // namespace backdrive::test
