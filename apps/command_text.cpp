#include "apps/command_text.h"

#include <algorithm>

#include "apps/options.h"

namespace backdrive::app {
namespace {

OptionText option_text(CLI::Option& option) {
  OptionText text;
  for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  if (option.get_positional()) text.names = {option.get_name(true)};
  const bool takes_value = option.get_items_expected_max() > 0;
  if (takes_value) text.value = option.get_type_name();
  text.meaning = option.get_description();
  text.initial = option.get_default_str();
  text.words = offered_words(option);
  text.repeatable = takes_value && option.get_items_expected_max() > 1;
  text.required = option.get_required();
  return text;
}

/// Without line ends and blanks at the end.
std::string without_end(std::string text) {
  text.erase(text.find_last_not_of(" \n") + 1);
  return text;
}

}  // namespace

CommandText command_text(CLI::App& command) {
  CommandText text;
  text.name = command.get_name();
  text.description = without_end(command.get_description());
  for (CLI::Option* const option : command.get_options()) {
    (option->get_positional() ? text.arguments : text.options).push_back(option_text(*option));
  }
  text.footer = command.get_footer();
  const size_t end = text.footer.find(exit_codes_text());
  if (end != std::string::npos) text.footer.erase(end);
  text.footer = without_end(text.footer);
  for (CLI::App* const one : command.get_subcommands([](CLI::App*) { return true; })) {
    text.commands.push_back(command_text(*one));
  }
  return text;
}

std::string beginning(const std::string& text, const std::string& ends) {
  std::string first = text.substr(0, text.find_first_of(ends));
  for (char& c : first) c = c == '\n' ? ' ' : c;
  return without_end(first);
}

std::string wrap(const std::string& text, size_t width) {
  std::string result;
  size_t column = 0;
  for (size_t begin = text.find_first_not_of(" \n"); begin != std::string::npos;) {
    const size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    const size_t length = end - begin;
    const bool fits = column + 1 + length <= width;
    if (!result.empty()) result += fits ? ' ' : '\n';
    column = !result.empty() && fits ? column + 1 + length : length;
    result += text.substr(begin, length);
    begin = text.find_first_not_of(" \n", end);
  }
  return result;
}

const std::vector<ExitText>& exit_codes() {
  static const std::vector<ExitText> codes = {{kDone, "done"},
                                              {kNotReached, "the asked-for result was not reached"},
                                              {kUsage, "wrong usage"},
                                              {kBadInput, "bad input"},
                                              {kNonFinite, "a value became non-finite"},
                                              {kNoDevice, "device missing"},
                                              {kInterrupted, "interrupted"}};
  return codes;
}

std::string exit_codes_text() {
  std::string text = "Exit codes: ";
  for (const ExitText& one : exit_codes()) {
    text += std::to_string(one.code) + " " + one.meaning + (one.code == kInterrupted ? "." : ", ");
  }
  return wrap(text, 76);
}

}  // namespace backdrive::app
