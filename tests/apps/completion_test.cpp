// What simctl prints of its own command line: completion scripts, in the shells that are here, and the man page.
#include <cstdlib>
#include <iterator>
#include <regex>
#include <set>
#include <sstream>

#include "tests/apps/simctl_process.h"

namespace backdrive::test {
namespace {

class SimctlTextsTest : public SimctlTest {
 protected:
  /// Subcommands as the top-level help lists them.
  std::vector<std::string> commands() const {
    const std::string help = simctl({"--help"}).out;
    const size_t begin = help.find("Subcommands:");
    return matches(help.substr(begin, help.find("Try:") - begin), "\n  ([a-z]+) ");
  }
  /// Long options as the help of a subcommand, or with "" the program's own, lists them.
  std::vector<std::string> long_options(const std::string& command) const {
    const Outcome o = command.empty() ? simctl({"--help"}) : simctl({command, "--help"});
    return matches(o.out.substr(o.out.find("Options:")), "\n  (?:-h,)?(--[a-z-]+)");
  }
  static std::vector<std::string> matches(const std::string& text, const std::string& pattern) {
    const std::regex regex(pattern);
    std::vector<std::string> found;
    for (std::sregex_iterator m(text.begin(), text.end(), regex); m != std::sregex_iterator(); ++m) {
      found.push_back((*m)[1]);
    }
    return found;
  }
  static bool has_program(const std::string& name) {
    return std::system(("command -v " + name + " > /dev/null 2>&1").c_str()) == 0;
  }
  /// What a shell prints for a script of its own, words apart.
  std::set<std::string> words_of_shell(const std::string& shell, const std::string& script) const {
    const std::string file = write("ask", script), out = path("words").string();
    EXPECT_EQ(std::system(("cd " + path(".").string() + " && " + shell + " " + file + " > " + out).c_str()), 0);
    std::istringstream stream(read("words"));
    return {std::istream_iterator<std::string>(stream), {}};
  }
};

TEST_F(SimctlTextsTest, CompletionsKnowAllCommandsAndOptions) {
  ASSERT_GE(commands().size(), 10u);
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const Outcome o = simctl({"completion", shell});
    EXPECT_EQ(o.exit, 0);
    EXPECT_EQ(o.err, "");
    EXPECT_EQ(simctl({"completion", shell, "--json"}).json(), (nlohmann::json{{"shell", shell}, {"script", o.out}}));
    for (const std::string& command : commands()) {
      EXPECT_NE(o.out.find(command), std::string::npos) << shell << ' ' << command;
      ASSERT_GE(long_options(command).size(), 2u);
      for (const std::string& option : long_options(command)) {
        const std::string as_written = shell == "fish" ? "-l " + option.substr(2) + " " : option;
        EXPECT_NE(o.out.find(as_written), std::string::npos) << shell << ' ' << command << ' ' << option;
      }
    }
    EXPECT_NE(o.out.find("float32 float64"), std::string::npos) << shell;
  }
}

TEST_F(SimctlTextsTest, UnknownShellIsWrongUsage) {
  const Outcome o = simctl({"completion", "tcsh"});
  EXPECT_EQ(o.exit, 2);
  EXPECT_EQ(o.out, "");
  EXPECT_NE(o.err.find("tcsh"), std::string::npos) << o.err;
  EXPECT_NE(o.err.find("bash,zsh,fish"), std::string::npos) << o.err;
  EXPECT_EQ(simctl({"completion"}).exit, 2);
}

TEST_F(SimctlTextsTest, ScriptsAreWhatTheShellsRead) {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    if (!has_program(shell)) continue;
    const std::string file = write("script", simctl({"completion", shell}).out);
    EXPECT_EQ(std::system((shell + " -n " + file).c_str()), 0) << shell;
  }
}

TEST_F(SimctlTextsTest, BashCompletes) {
  if (!has_program("bash")) GTEST_SKIP() << "no bash here";
  write("swing.yaml", kPendulum);
  write("notes.txt", "");
  std::filesystem::create_directory(path("scenes"));
  const auto completed = [&](const std::string& words) {
    // As bash calls it for a line of these words, the cursor after the last; "" is one that is still empty.
    return words_of_shell(
        "bash", simctl({"completion", "bash"}).out + "compopt() { :; }\nCOMP_WORDS=(simctl " + words +
                    ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_simctl\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n");
  };
  using Words = std::set<std::string>;
  const std::vector<std::string> all = commands();
  EXPECT_EQ(completed("''"), Words(all.begin(), all.end()));
  EXPECT_EQ(completed("opt"), Words{"optimize"});
  EXPECT_EQ(completed("optimize --prec"), Words{"--precision"});
  const std::vector<std::string> options = long_options("optimize");
  EXPECT_EQ(completed("optimize --"), Words(options.begin(), options.end()));
  EXPECT_EQ(completed("optimize --precision ''"), (Words{"float32", "float64"}));
  EXPECT_EQ(completed("optimize --precision = float6"), Words{"float64"});
  EXPECT_EQ(completed("optimize --precision ="), (Words{"float32", "float64"}));
  EXPECT_EQ(completed("optimize --device cuda : a"), Words{"all"});
  EXPECT_EQ(completed("optimize ''"), (Words{"swing.yaml", "scenes"}));
  EXPECT_EQ(completed("optimize --set joints/hinge = ''"), Words{});
  EXPECT_EQ(completed("optimize --worlds ''"), Words{});
  EXPECT_EQ(completed("run swing.yaml --output n"), Words{"notes.txt"});
  EXPECT_EQ(completed("completion ''"), (Words{"bash", "zsh", "fish"}));
}

TEST_F(SimctlTextsTest, FishCompletes) {
  if (!has_program("fish")) GTEST_SKIP() << "no fish here";
  write("swing.yaml", kPendulum);
  const auto completed = [&](const std::string& line) {
    return words_of_shell("fish --no-config",
                          simctl({"completion", "fish"}).out + "complete -C '" + line + "' | cut -f1\n");
  };
  using Words = std::set<std::string>;
  EXPECT_EQ(completed("simctl opt"), Words{"optimize"});
  EXPECT_EQ(completed("simctl optimize --prec"), Words{"--precision"});
  EXPECT_EQ(completed("simctl optimize --precision "), (Words{"float32", "float64"}));
  EXPECT_EQ(completed("simctl sweep x --do run --at"), Words{}) << "'run' is a value there, and --at gradcheck's";
  EXPECT_EQ(completed("simctl run sw"), Words{"swing.yaml"});
}

TEST_F(SimctlTextsTest, ManualHasAllCommandsOptionsAndExitCodes) {
  const Outcome o = simctl({"manual"});
  EXPECT_EQ(o.exit, 0);
  EXPECT_EQ(o.err, "");
  EXPECT_EQ(simctl({"manual", "--json"}).json().at("manual"), o.out);
  for (const std::string& command : commands()) {
    const size_t begin = o.out.find("\n.SS \\fBsimctl " + command + "\\fR\n");
    ASSERT_NE(begin, std::string::npos) << command;
    const std::string section = o.out.substr(begin, o.out.find("\n.S", begin + 1) - begin);
    for (const std::string& option : long_options(command)) {
      const std::string as_written = "\\fB" + std::regex_replace(option, std::regex("-"), "\\-") + "\\fR";
      EXPECT_NE(section.find(as_written), std::string::npos) << command << ' ' << option << section;
    }
  }
  for (const char* code : {"0", "1", "2", "3", "4", "5", "130"}) {
    EXPECT_NE(o.out.find(std::string("\n.TP\n\\fB") + code + "\\fR\n"), std::string::npos) << code;
  }
  for (const char c : o.out) ASSERT_TRUE(c == '\n' || (c >= ' ' && c <= '~')) << "not ASCII";
}

TEST_F(SimctlTextsTest, ManualIsWhatRoffReads) {
  if (!has_program("groff")) GTEST_SKIP() << "no groff here";
  const std::string page = write("simctl.1", simctl({"manual"}).out), said = path("said").string();
  ASSERT_EQ(std::system(("groff -ww -man -Tascii " + page + " > /dev/null 2> " + said).c_str()), 0);
  EXPECT_EQ(read("said"), "");
}

}  // namespace
}  // namespace backdrive::test
