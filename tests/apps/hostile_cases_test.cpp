// Files and command lines of somebody who means harm, or types while asleep: each is refused with the exit code that it
// should have, in words that harm no terminal, as one JSON object where that is asked for, and leaves nothing behind.
#include <algorithm>
#include <functional>

#include "tests/apps/simctl_process.h"

namespace backdrive::test {
namespace {

using Words = std::vector<std::string>;

struct HostileCase {
  const char* name;
  Words arguments;  ///< "scene.yaml" is a pendulum, "case.yaml" holds `text`
  std::string text;
  int exit;
  const char* says;  ///< on stderr
};

/// A scene of one hinge, with what stands in place of its sections.
std::string scene_of(const std::string& joint, const std::string& more = "") {
  return "simulation: {time_step: 10 ms, duration: 0.1 s}\nmodel:\n"
         "  bodies: {rod: {mass: 1, com: [0, 0, -1], inertia: [1, 1, 1]}}\n  joints: {hinge: {" +
         joint + "}}\n" + more;
}
const std::string kHinge = "type: revolute, child: rod, axis: [0, 1, 0]";
const Words kValidate = {"validate", "case.yaml"};

Words set(const std::string& what) {
  return {"validate", "scene.yaml", "--set", what};
}
Words controls(const std::string& file) {
  return {"validate", "scene.yaml", "--set", "controls={hinge: {effort: {file: " + file + "}}}"};
}

std::string many(const std::string& piece, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += piece;
  return text;
}

/// Names and values with what terminals obey, in every place that a message may quote.
std::vector<HostileCase> control_characters() {
  return {
      {"key that clears the screen", kValidate, "\"\\e[2J\": 1\n", 3, "\\u001b[2J"},
      {"key that rings", kValidate, "\"a\\a\": 1\n", 3, "\\u0007"},
      {"key with a backspace", kValidate, "\"a\\b\": 1\n", 3, "\\u0008"},
      {"key with a carriage return", kValidate, "\"safe\\rbad\": 1\n", 3, "unknown key 'safe"},
      {"key with a delete", kValidate, "\"a\\x7f\": 1\n", 3, "\\u007f"},
      {"key of eight-bit controls", kValidate, "\"a\\x9b2J\": 1\n", 3, "\\u009b"},
      {"key that turns the writing", kValidate, "\"a\\u202Eb\": 1\n", 3, "\\u202e"},
      {"key that isolates the writing", kValidate, "\"a\\u2066b\": 1\n", 3, "\\u2066"},
      {"key with a NUL", kValidate, "\"a\\0b\": 1\n", 3, "\\u0000"},
      {"value that clears the screen", kValidate, scene_of("type: \"\\e[2J\", child: rod"), 3, "\\u001b[2J"},
      {"number that rings", kValidate, scene_of(kHinge + ", damping: \"1\\a\""), 3, "\\u0007"},
      {"child that turns the writing", kValidate, scene_of("type: revolute, child: \"\\u202Erod\""), 3, "\\u202e"},
      {"override's path", set("\033[2J/x=1"), "", 3, "\\u001b[2J"},
      {"override's value", set("joints/hinge/damping=\033]0;T\007"), "", 3, "\\u001b]0;T\\u0007"},
      {"option", {"validate", "scene.yaml", "--\033[2J"}, "", 2, "\\u001b[2J"},
      {"subcommand", {"\033[2J"}, "", 2, "\\u001b[2J"},
      {"name of a file", {"validate", "\033[2J.yaml"}, "", 3, "\\u001b[2J"},
      {"name of a folder", {"run", "scene.yaml", "--output", "no\033[2J\001/"}, "", 0, ""},
      {"device", {"run", "scene.yaml", "--output", "-", "--device", "\033[2J"}, "", 2, "\\u001b[2J"},
      {"file of controls", controls("\"\\e[2J.csv\""), "", 3, "\\u001b[2J"},
      {"place of gradcheck", {"gradcheck", "scene.yaml", "--at", "\033[2J"}, "", 2, "\\u001b[2J"},
      {"baseline of gradcheck", {"gradcheck", "scene.yaml", "--against", "\033[2J"}, "", 3, "\\u001b[2J"},
      {"bytes that are no UTF-8", kValidate, "\"\xff\xfe\": 1\n", 3, "UTF-8"},
      {"half of a character", kValidate, "\"\xe2\x82\": 1\n", 3, "UTF-8"},
      {"a surrogate", kValidate, "\"\xed\xa0\x80\": 1\n", 3, "UTF-8"},
      {"an overlong slash", kValidate, "\"\xc0\xaf\": 1\n", 3, "UTF-8"},
  };
}

std::vector<HostileCase> numbers() {
  const auto damping = [](const std::string& value) { return scene_of(kHinge + ", damping: " + value); };
  return {
      {"more digits than there are", kValidate, damping("1" + many("0", 1100)), 3, "at most 1000 characters"},
      {"a long fraction", kValidate, damping("0." + many("0", 1100) + "1"), 3, "at most 1000 characters"},
      {"an exponent beyond all", kValidate, damping("1e999999999"), 3, "damping"},
      {"an exponent of many digits", kValidate, damping("1e" + many("9", 500)), 3, "damping"},
      {"hexadecimal", kValidate, damping("0x10"), 3, "0x10"},
      {"binary", kValidate, damping("0b11"), 3, "0b11"},
      {"sixties", kValidate, damping("1:30"), 3, "1:30"},
      {"underscores", kValidate, damping("1_000"), 3, "1_000"},
      {"two points", kValidate, damping("1.2.3"), 3, "1.2.3"},
      {"two signs", kValidate, damping("--1"), 3, "--1"},
      {"a comma for a point", kValidate, damping("\"1,5\""), 3, "1,5"},
      {"not a number", kValidate, damping(".nan"), 3, "nan"},
      {"infinite", kValidate, damping(".inf"), 3, "inf"},
      {"other digits", kValidate, damping("\xd9\xa1"), 3, "damping"},
      {"a minus that is none", kValidate,
       damping("\xe2\x88\x92"
               "1"),
       3, "damping"},
      {"a space that is none", kValidate, damping("1\xc2\xa0N"), 3, "damping"},
      {"a unit of nothing", kValidate, damping("1 parsec"), 3, "parsec"},
      {"an empty text", kValidate, damping("\"\""), 3, "damping"},
      {"a yes", kValidate, damping("yes"), 3, "yes"},
      {"a date", kValidate, damping("2026-11-24"), 3, "2026-11-24"},
      {"steps without end", set("simulation/duration=1e300"), "", 3, "duration"},
      {"steps of no time", set("simulation/time_step=1e-320"), "", 3, "time_step"},
      {"more steps than ints", set("simulation={time_step: 1 s, steps: 99999999999}"), "", 3, "steps"},
      {"half a step", set("simulation={time_step: 1 s, steps: 0.5}"), "", 3, "steps"},
      {"steps below zero", set("simulation={time_step: 1 s, steps: -3}"), "", 3, "steps"},
      {"starts beyond all", set("optimize/starts=1e18"), "", 3, "starts"},
      {"knots beyond all", set("variables/0/knots=4294967297"), "", 3, "knots"},
      {"seed below zero", {"run", "scene.yaml", "--output", "-", "--seed=-1"}, "", 2, "--seed"},
      {"seed that is none", {"run", "scene.yaml", "--output", "-", "--seed="}, "", 2, "--seed"},
      {"seed beyond 64 bits", {"run", "scene.yaml", "--output", "-", "--seed=18446744073709551616"}, "", 2, "--seed"},
      {"budget below zero", {"optimize", "scene.yaml", "--memory-budget=-1"}, "", 2, "--memory-budget"},
      {"budget beyond 64 bits",
       {"optimize", "scene.yaml", "--memory-budget=99999999999999999999"},
       "",
       2,
       "--memory-budget"},
      {"no threads", {"run", "scene.yaml", "--output", "-", "--threads=0"}, "", 2, "--threads"},
      {"threads beyond all", {"run", "scene.yaml", "--output", "-", "--threads=2147483648"}, "", 2, "--threads"},
      {"worlds beyond all", {"optimize", "scene.yaml", "--worlds=4294967296"}, "", 2, "--worlds"},
      {"states below zero", {"gradcheck", "scene.yaml", "--states=-1"}, "", 2, "--states"},
      {"a distance that is none", {"gradcheck", "scene.yaml", "--distance=nan"}, "", 2, "--distance"},
      {"a distance beyond", {"gradcheck", "scene.yaml", "--distance=1e9"}, "", 2, "--distance"},
      {"an instruction set that is none", {"run", "scene.yaml", "--output", "-", "--isa", "v5"}, "", 2, "--isa"},
  };
}

std::vector<HostileCase> structures() {
  return {
      {"a star that stands first", set("*=1"), "", 3, "*"},
      {"a star and more", set("*/a=1"), "", 3, "*"},
      {"stars all the way", set("*/*/*/*=1"), "", 3, "*"},
      {"an empty path", set("=1"), "", 2, "--set"},
      {"no value", set("joints/hinge/damping"), "", 2, "--set"},
      {"slashes alone", set("///=1"), "", 3, "--set"},
      {"a path that climbs", set("../../x=1"), "", 3, ".."},
      {"a value that opens", set("joints/hinge/damping=[[[["), "", 3, "--set"},
      {"a value that includes itself", set("joints/hinge/damping=&a [*a]"), "", 3, "--set"},
      {"lists in lists", kValidate, "model: " + many("[", 200) + many("]", 200) + "\n", 3, "case.yaml"},
      {"maps in maps", kValidate, "model: " + many("{a: ", 200) + "1" + many("}", 200) + "\n", 3, "case.yaml"},
      {"an anchor of itself", kValidate, "model: &a [*a]\n", 3, "case.yaml"},
      {"laughs", kValidate,
       "a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\n"
       "c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c]\n"
       "e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d]\nf: &f [*e, *e, *e, *e, *e, *e, *e, *e, *e]\n",
       3, "case.yaml"},
      {"a tag that makes objects", kValidate, "model: !!python/object/apply:os.system [ls]\n", 3, "case.yaml"},
      {"a second document", kValidate, scene_of(kHinge) + "---\na: 1\n", 3, "case.yaml"},
      {"a directive", kValidate, "%YAML 9.9\n---\nmodel: 1\n", 3, "case.yaml"},
      {"a list for a key", kValidate, "? [a, b]\n: 1\n", 3, "case.yaml"},
      {"a key twice", kValidate, scene_of(kHinge + ", damping: 1, damping: 2"), 3, "damping"},
      {"nothing at all", kValidate, "", 3, "case.yaml"},
      {"spaces alone", kValidate, "   \n\n", 3, "case.yaml"},
      {"a tab for a space", kValidate, "model:\n\tbodies: {}\n", 3, "case.yaml:2"},
      {"a body in itself", kValidate, scene_of("type: revolute, parent: rod, child: rod"), 3, "rod"},
      {"a joint of nobody", kValidate, scene_of("type: revolute, child: nobody"), 3, "nobody"},
      {"a loss of nobody", kValidate,
       scene_of(kHinge, "optimize: {loss: {terminal: [{body: nobody, position: [0, 0, 0]}]}}\n"), 3, "nobody"},
      {"a variable of nothing", kValidate, scene_of(kHinge, "optimize: {variables: [{}]}\n"), 3, "variables"},
      {"record of nobody", kValidate, scene_of(kHinge, "record: {efforts: [nobody]}\n"), 3, "nobody"},
      {"record of everything twice", kValidate, scene_of(kHinge, "record: {efforts: {}}\n"), 3, "record/efforts"},
      {"a gradient of nothing", kValidate, scene_of(kHinge, "requires_grad: [joints/elbow/damping]\n"), 3, "elbow"},
  };
}

std::vector<HostileCase> files() {
  return {
      {"a table that climbs", controls("../../../etc/passwd"), "", 3, "inside"},
      {"a table of the system", controls("/etc/passwd"), "", 3, "etc"},
      {"a table that is a folder", controls("."), "", 3, "regular file"},
      {"a table without end", controls("/dev/zero"), "", 3, "dev"},
      {"a table that is not there", controls("none.csv"), "", 3, "none.csv"},
      {"a table of quotes", controls("case.yaml"), "time,hinge/effort\n0,\"\n", 3, "case.yaml"},
      {"a table of controls", controls("case.yaml"), "time,hinge/effort\n0,\033[2J\n", 3, "case.yaml"},
      {"a table of formulas", controls("case.yaml"), "time,hinge/effort\n0,=1+1\n", 3, "=1+1"},
      {"a table with a NUL", controls("case.yaml"), std::string("time,hinge/effort\n0,1\0\n", 23), 3, "case.yaml"},
      {"a table of one word", controls("case.yaml"), many("a", 100000), 3, "case.yaml"},
      {"a table of commas", controls("case.yaml"), many(",", 100000), 3, "case.yaml"},
      {"a table of lines", controls("case.yaml"), "time,hinge/effort\n" + many("\n", 100000), 3, "case.yaml"},
      {"a scene that is a folder", {"validate", "."}, "", 3, "."},
      {"a scene without end", {"validate", "/dev/zero"}, "", 3, "/dev/zero"},
      {"a scene of noise", {"validate", "/dev/urandom"}, "", 3, "/dev/urandom"},
      {"a scene of nothing", {"validate", "/dev/null"}, "", 3, "/dev/null"},
      {"a scene that is the program", {"validate", "/proc/self/exe"}, "", 3, "/proc/self/exe"},
      {"no scene", {"validate", ""}, "", 3, "expected"},
      {"a result that is a device", {"run", "scene.yaml", "--output", "/dev/null"}, "", 2, "/dev/null"},
      {"a result below a file", {"run", "scene.yaml", "--output", "scene.yaml/out"}, "", 2, "scene.yaml"},
      {"a result over the scene", {"run", "scene.yaml", "--output", "scene.yaml", "--force"}, "", 2, "scene.yaml"},
      {"a table over a folder",
       {"sweep", "scene.yaml", "--set", "bodies/rod/mass=1", "--output", "."},
       "",
       2,
       "folder"},
      {"a report of nothing", {"report", "nothing"}, "", 3, "nothing"},
      {"a baseline that is none", {"gradcheck", "scene.yaml", "--against", "scene.yaml"}, "", 3, "gradcheck --record"},
      {"a baseline of other things",
       {"gradcheck", "scene.yaml", "--against", "case.yaml"},
       "{\"rows\": {\"a\": \"b\"}}",
       3,
       "gradcheck --record"},
      {"a baseline that opens",
       {"gradcheck", "scene.yaml", "--against", "case.yaml"},
       many("[", 100000),
       3,
       "gradcheck --record"},
  };
}

class SimctlHostileCases : public SimctlTest,
                           public testing::WithParamInterface<std::function<std::vector<HostileCase>()>> {};

std::string shown_raw(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7F || text.compare(i, 3, "\u202E") == 0) return text;
  }
  return "";
}

TEST_P(SimctlHostileCases, AreRefusedInWords) {
  write("scene.yaml", kPendulum);
  for (const HostileCase& one : GetParam()()) {
    write("case.yaml", one.text);
    Words before = entries();
    const Outcome o = simctl(one.arguments);
    EXPECT_EQ(o.exit, one.exit) << one.name << ": " << o.err.substr(0, 500);
    EXPECT_NE(o.err.find(one.says), std::string::npos) << one.name << ": " << o.err.substr(0, 500);
    EXPECT_EQ(shown_raw(o.out), "") << one.name;
    EXPECT_EQ(shown_raw(o.err), "") << one.name;
    EXPECT_LT(o.err.size(), 4000u) << one.name;
    if (one.exit == 0) continue;
    EXPECT_EQ(entries(), before) << one.name << " leaves something";
    const bool has_json = std::ranges::find(one.arguments, "-") == one.arguments.end();
    if (!has_json) continue;
    Words asking = one.arguments;
    asking.push_back("--json");
    const nlohmann::json object = simctl(asking).json();
    ASSERT_TRUE(object.is_object()) << one.name;
    EXPECT_EQ(object.value("exit_code", -1), one.exit) << one.name << object;
    EXPECT_TRUE(object.contains("error") || object.contains("errors")) << one.name << object;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, SimctlHostileCases, testing::Values(control_characters, numbers, structures, files));

}  // namespace
}  // namespace backdrive::test
