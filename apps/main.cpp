// simctl: simulates and optimises scenes. This file: command line to exit code.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <new>
#include <string_view>

#include "apps/atomic_output.h"
#include "apps/command_text.h"
#include "apps/harmless.h"
#include "apps/interrupt.h"
#include "apps/log.h"
#include "apps/options.h"
#include "models/parameter_list.h"
#include "scenes/scene_error.h"

namespace backdrive::app {
namespace {

const char* kind_name(int exit_code) {
  switch (exit_code) {
    case kNotReached:
      return "not_reached";
    case kUsage:
      return "usage";
    case kBadInput:
      return "input";
    case kNonFinite:
      return "non_finite";
    case kNoDevice:
      return "device";
    default:
      return "internal";
  }
}

nlohmann::json to_json(const std::vector<SceneMistake>& mistakes) {
  nlohmann::json list = nlohmann::json::array();
  for (const SceneMistake& m : mistakes) {
    nlohmann::json one = {
        {"file", m.file}, {"path", m.path}, {"what", m.what}, {"value", m.value()}, {"expected", m.expected}};
    if (m.line > 0) one["line"] = m.line, one["column"] = m.column;
    if (!m.hint.empty()) one["did_you_mean"] = m.hint;
    list.push_back(std::move(one));
  }
  return list;
}

int report(int exit_code, const std::string& message, bool json, const std::vector<SceneMistake>& mistakes = {}) {
  if (mistakes.size() < 2) log_error(message);
  for (std::size_t k = 0; mistakes.size() > 1 && k < mistakes.size(); ++k) log_error(mistakes[k].text);
  if (json) {
    try {
      nlohmann::json error = {{"kind", kind_name(exit_code)}, {"message", message}};
      if (!mistakes.empty()) error["mistakes"] = to_json(mistakes);
      print_json({{"error", error}, {"exit_code", exit_code}});
    } catch (const Error&) {
      // stdout is gone; stderr has the message.
    }
  }
  return exit_code;
}

/// "did you mean" for a mistyped subcommand or option; empty when nothing is near.
std::string suggestion(const CLI::App& app, int argc, char** argv) {
  const auto& commands = command_names();
  const CLI::App* command = nullptr;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (!command && (word.empty() || word[0] != '-')) {
      if (std::find(commands.begin(), commands.end(), word) == commands.end()) {
        const std::string near = nearest_name(word, commands);
        return "'" + word + "' is no subcommand" + (near.empty() ? "" : "; did you mean '" + near + "'?");
      }
      command = app.get_subcommand(word);
    } else if (command && word.size() > 2 && word.compare(0, 2, "--") == 0) {
      const std::string name = word.substr(0, word.find('='));
      std::vector<std::string> known;
      for (const CLI::Option* option : command->get_options()) {
        for (const std::string& long_name : option->get_lnames()) known.push_back("--" + long_name);
      }
      if (std::find(known.begin(), known.end(), name) == known.end()) {
        const std::string near = nearest_name(name, known);
        return "'" + name + "' is no option of 'simctl " + command->get_name() + "'" +
               (near.empty() ? "" : "; did you mean '" + near + "'?");
      }
    }
  }
  return "";
}

/// In the list of subcommands one sentence each.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_subcommand(const CLI::App* command) const override {
    std::string line = "  " + command->get_name();
    line.resize(std::max<size_t>(line.size() + 2, 14), ' ');
    return line + beginning(command->get_description()) + "\n";
  }
};

/// Before the command line is understood: errors in it are told as it asks, too.
bool asks_for_json(int argc, char** argv) {
  return std::any_of(argv + std::min(argc, 1), argv + argc, [](const std::string_view word) {
    return word == "--json" || (word.starts_with("--json=") && word != "--json=false" && word != "--json=0");
  });
}

int run_command_line(int argc, char** argv) {
  CLI::App app(
      "simctl: simulates articulated bodies and optimises them with exact gradients.\n"
      "Data goes to stdout, progress and log lines to stderr.",
      "simctl");
  app.set_version_flag("--version", "simctl " BACKDRIVE_VERSION);
  app.require_subcommand(1);
  app.formatter(std::make_shared<HelpFormatter>());
  app.footer(
      "Try:\n"
      "  simctl optimize scenes/cartpole_swingup.yaml\n"
      "  simctl run results/cartpole_swingup-optimize-1/result.yaml\n"
      "  simctl COMMAND --help\n\n" +
      exit_codes_text());
  Invocation invocation;
  add_optimize(app, invocation);
  add_run(app, invocation);
  add_gradient(app, invocation);
  add_gradcheck(app, invocation);
  add_bench(app, invocation);
  add_sweep(app, invocation);
  add_validate(app, invocation);
  add_info(app, invocation);
  add_report(app, invocation);
  add_plot(app, invocation);
  add_view(app, invocation);
  add_dynamics(app, invocation);
  add_convert(app, invocation);
  add_schema(app, invocation);
  add_completion(app, invocation);
  add_manual(app, invocation);

  const bool json = asks_for_json(argc, argv);
  start_log(false);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) {
      app.exit(e);  // --help, --version
      finish_stdout();
      return kDone;
    }
    const std::string better = suggestion(app, argc, argv);
    const auto chosen = app.get_subcommands();
    const std::string help = chosen.empty() ? "simctl --help" : "simctl " + chosen[0]->get_name() + " --help";
    return report(kUsage, (better.empty() ? e.what() : better) + std::string("\nSee '") + help + "'.", json);
  }
  try {
    start_log(invocation.quiet);
    invocation.keeps_results ? catch_interrupts() : end_at_interrupts();
    const int code = invocation.body();
    finish_stdout();
    return code;
  } catch (const SceneError& e) {
    return report(e.exit_code(), e.what(), json, e.mistakes());
  } catch (const Error& e) {
    return report(e.exit_code(), e.what(), json);
  } catch (const std::bad_alloc&) {
    return report(kBadInput, "out of memory: expected a scene or batch that fits", json);
  }
}

/// Whoever starts simctl with stdin, stdout or stderr closed would have files take their numbers, and log lines go into
/// them.
void open_standard_streams() {
  int descriptor = 0;
  while (descriptor >= 0 && descriptor <= STDERR_FILENO) descriptor = ::open("/dev/null", O_RDWR);
  if (descriptor > STDERR_FILENO) ::close(descriptor);
}

}  // namespace
}  // namespace backdrive::app

int main(int argc, char** argv) {
  using namespace backdrive::app;
  open_standard_streams();
  const HarmlessOutput output;
  remember_command_line(argc, argv);
  try {
    return run_command_line(argc, argv);
  } catch (const backdrive::Error& e) {
    return report(e.exit_code(), e.what(), asks_for_json(argc, argv));
  } catch (const std::exception& e) {
    // A fault of simctl's own, or of the system under it (a disk that is full, a folder that went away).
    return report(kUsage, std::string("unexpected: ") + e.what(), asks_for_json(argc, argv));
  }
}
