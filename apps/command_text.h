#pragma once
// The command line as data, for what is made of it: completion scripts and the manual.
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace backdrive::app {

struct OptionText {
  std::vector<std::string> names;  ///< "--set"; for an argument without a dash its name alone
  std::string value;               ///< what stands for the value in the help, as PATH=VALUE; empty: takes none
  std::string meaning;
  std::string initial;             ///< the value where none is given; empty: none, or the meaning says
  std::vector<std::string> words;  ///< values to offer: see one_of() and suggest()
  bool repeatable = false;
  bool required = false;

  bool is_argument() const { return names.front().front() != '-'; }
};

struct CommandText {
  std::string name;
  std::string description;  ///< paragraphs as the help has them, lines broken
  std::vector<OptionText> options;
  std::vector<OptionText> arguments;
  std::string footer;  ///< without the exit codes, which are the same everywhere
  std::vector<CommandText> commands;
};

/// All that a command, its subcommands included, says of itself in --help.
CommandText command_text(CLI::App& command);

/// What comes before the first of some characters: the gist of a description, for lists.
std::string beginning(const std::string& text, const std::string& ends = ".:;(");

/// Blanks and line ends become line ends where lines of at most `width` characters want them.
std::string wrap(const std::string& text, size_t width);

/// "Exit codes: 0 done, 1 ...", as it ends every help text, and the same as pairs.
std::string exit_codes_text();
struct ExitText {
  int code;
  const char* meaning;
};
const std::vector<ExitText>& exit_codes();

}  // namespace backdrive::app
