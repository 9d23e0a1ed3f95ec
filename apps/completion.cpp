// simctl completion: scripts with which shells complete simctl's command line. They are made of the command line's own
// definition, so they know what --help knows.
#include <algorithm>
#include <iostream>

#include "apps/command_text.h"
#include "apps/options.h"

namespace backdrive::app {
namespace {

std::string joined(const std::vector<std::string>& words, const std::string& between = " ") {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
  return text;
}

/// The endings of files that a command takes for a scene, each behind a prefix.
std::string scene_files(const std::string& prefix, const std::string& between) {
  return joined({prefix + "yaml", prefix + "urdf", prefix + "xml"}, between);
}

/// With a backslash before each of some characters.
std::string escaped(const std::string& text, const std::string& characters) {
  std::string result;
  for (const char c : text) {
    if (characters.find(c) != std::string::npos) result += '\\';
    result += c;
  }
  return result;
}

/// What shells show beside a word: one line without asides.
std::string hint(const OptionText& option) {
  const std::string& text = option.meaning;
  return beginning(text.substr(0, std::min(text.find(" ("), text.find(" ["))), ";:");
}

bool wants_file(const OptionText& option) {
  return option.value == kSceneFile || option.value == kAnyPath;
}

// ---- bash: no hints, so tables of words do.

/// The branches of "case $command/$option" for options that take a value.
std::string bash_values(const CommandText& command) {
  std::string branches;
  for (const OptionText& option : command.options) {
    if (option.value.empty()) continue;
    std::vector<std::string> patterns;
    for (const std::string& name : option.names) patterns.push_back(command.name + "/" + name);
    branches += "    " + joined(patterns, " | ") + ") ";
    if (!option.words.empty()) branches += "words='" + joined(option.words) + "' ";
    if (wants_file(option))
      branches += option.value == kSceneFile ? "files='" + scene_files(".", " ") + "' " : "files='any' ";
    branches += ";;\n";
  }
  return branches;
}

/// The branch of "case $command" for what may stand where no option wants a value.
std::string bash_rest(const CommandText& command, const std::string& pattern) {
  std::vector<std::string> options, words;
  std::string files;
  for (const OptionText& option : command.options) {
    options.insert(options.end(), option.names.begin(), option.names.end());
  }
  for (const OptionText& argument : command.arguments) {
    words.insert(words.end(), argument.words.begin(), argument.words.end());
    if (wants_file(argument)) files = argument.value == kSceneFile ? scene_files(".", " ") : "any";
  }
  for (const CommandText& one : command.commands) words.push_back(one.name);
  return "      " + pattern + ") options='" + joined(options) + "' words='" + joined(words) + "' files='" + files +
         "' ;;\n";
}

std::string bash_script(const CommandText& program) {
  std::string values, rest = bash_rest(program, "''");
  for (const CommandText& command : program.commands) {
    values += bash_values(command);
    rest += bash_rest(command, command.name);
  }
  return R"(# Completion of simctl in bash; made by: simctl completion bash
_simctl() {
  local i=$COMP_CWORD word=${COMP_WORDS[COMP_CWORD]} command='' options='' words='' files='' option j
  # bash breaks words at colons, cuda:0 into three, and at equals signs.
  while ((i > 1)) && [[ $word == :* || ${COMP_WORDS[i - 1]} == *: ]]; do
    i=$((i - 1)) word=${COMP_WORDS[i]}$word
  done
  if [[ $word == '=' ]]; then word='' i=$((i + 1)); fi
  option=${COMP_WORDS[i - 1]}
  if [[ $option == '=' ]]; then option=${COMP_WORDS[i - 2]}; fi
  for ((j = 1; j < i; ++j)); do
    if [[ ${COMP_WORDS[j]} != -* ]]; then
      command=${COMP_WORDS[j]}
      break
    fi
  done

  COMPREPLY=()
  case $command/$option in
)" + values +
         R"(    *)
      # What follows an equals sign of anything else is not for us to guess.
      if [[ ${COMP_WORDS[i - 1]} == '=' ]]; then return; fi
      case $command in
)" + rest +
         R"(      esac
      if [[ $word == -* || -z $words$files ]]; then words=$options files=''; fi
      ;;
  esac
  if [[ -n $words ]]; then mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word"); fi
  if [[ -n $files ]]; then
    compopt -o filenames
    mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(
      compgen -d -- "$word"
      for i in $files; do compgen -f -X "!*${i#any}" -- "$word"; done | while read -r j; do if [[ ! -d $j ]]; then printf '%s\n' "$j"; fi; done
    )
  fi
  # Only what comes after the last colon is replaced.
  if [[ $word == *:* && $COMP_WORDBREAKS == *:* ]]; then COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*:}"}"}"); fi
}
complete -F _simctl simctl
)";
}

// ---- zsh: its _arguments knows everything else.

/// In single quotes.
std::string zsh_quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? "'\\''" : std::string(1, c);
  return result + "'";
}

/// ":message:action" of a value.
std::string zsh_value(const OptionText& option, const std::string& message) {
  std::string action = " ";
  if (!option.words.empty()) action = "(" + escaped(joined(option.words), ":") + ")";
  if (option.value == kSceneFile) action = "_files -g \"*.(" + scene_files("", "|") + ")\"";
  if (option.value == kAnyPath) action = "_files";
  return ":" + escaped(message, ":\\") + ":" + action;
}

/// One specification a line, as continued arguments of _arguments.
std::string zsh_arguments(const CommandText& command, const std::string& indent) {
  std::string text;
  for (const OptionText& option : command.options) {
    const std::string exclusive = option.repeatable ? "*" : "(" + joined(option.names) + ")";
    for (const std::string& name : option.names) {
      const bool joins = !option.value.empty() && name.compare(0, 2, "--") == 0;
      text += " \\\n" + indent +
              zsh_quoted(exclusive + name + (joins ? "=" : "") + "[" + escaped(hint(option), "[]:\\") + "]" +
                         (option.value.empty() ? "" : zsh_value(option, option.value)));
    }
  }
  for (const OptionText& argument : command.arguments) {
    text += " \\\n" + indent +
            zsh_quoted((argument.required ? ":" : "::") + zsh_value(argument, argument.names[0]).substr(1));
  }
  return text;
}

std::string zsh_script(const CommandText& program) {
  std::string commands, branches;
  for (const CommandText& command : program.commands) {
    commands += "    " + zsh_quoted(command.name + ":" + escaped(beginning(command.description), ":\\")) + "\n";
    branches += "        " + command.name + ")\n          _arguments" + zsh_arguments(command, "            ") +
                "\n          ;;\n";
  }
  return R"(#compdef simctl
# Completion of simctl in zsh; made by: simctl completion zsh
_simctl() {
  local curcontext=$curcontext state line
  typeset -A opt_args
  local -a commands=(
)" + commands +
         R"(  )
  _arguments -C)" +
         zsh_arguments(program, "    ") + R"( \
    '1: :->command' \
    '*:: :->rest' && return
  case $state in
    command) _describe -t commands command commands ;;
    rest)
      curcontext=${curcontext%:*}-$words[1]:
      case $words[1] in
)" + branches +
         R"(      esac
      ;;
  esac
}
# Found in fpath, the file is the function's first call; sourced, it only defines it.
if [[ $funcstack[1] == _simctl ]]; then _simctl "$@"; else compdef _simctl simctl; fi
)";
}

// ---- fish

std::string fish_quoted(const std::string& text) {
  return "'" + escaped(text, "\\'") + "'";
}

/// What a value is completed with, as arguments of complete. -f: no files, -F: files after all, -r: a value must
/// follow.
std::string fish_value(const OptionText& option) {
  if (!option.words.empty()) return " -f -a " + fish_quoted(joined(option.words));
  if (option.value == kSceneFile) return " -k -f -a '(" + scene_files("__fish_complete_suffix .", "; ") + ")'";
  return option.value == kAnyPath ? " -F" : " -f";
}

/// Lines for one command, where its name is given; for the program itself, where no command is.
std::string fish_lines(const CommandText& command, const std::string& name) {
  const std::string start =
      "complete -c simctl -n " + fish_quoted(name.empty() ? "__simctl_command" : "__simctl_command " + name);
  std::string lines;
  for (const OptionText& option : command.options) {
    lines += start;
    for (const std::string& one : option.names) {
      lines += one.compare(0, 2, "--") == 0 ? " -l " + one.substr(2) : " -s " + one.substr(1);
    }
    if (!option.value.empty()) lines += " -r" + fish_value(option);
    lines += " -d " + fish_quoted(hint(option)) + "\n";
  }
  for (const OptionText& argument : command.arguments) lines += start + fish_value(argument) + "\n";
  for (const CommandText& one : command.commands) {
    lines += start + " -a " + one.name + " -d " + fish_quoted(beginning(one.description)) + "\n";
  }
  return lines;
}

std::string fish_script(const CommandText& program) {
  std::string lines = fish_lines(program, "");
  for (const CommandText& command : program.commands) lines += fish_lines(command, command.name);
  return R"(# Completion of simctl in fish; made by: simctl completion fish
# Whether the first word that is no option is this one; without an argument: whether there is none yet.
function __simctl_command
    for word in (commandline -opc)[2..-1]
        if not string match -q -- '-*' $word
            test "$word" = "$argv"
            return
        end
    end
    test -z "$argv"
end
complete -c simctl -f
)" + lines;
}

std::string script(const CommandText& program, const std::string& shell) {
  if (shell == "bash") return bash_script(program);
  return shell == "zsh" ? zsh_script(program) : fish_script(program);
}

}  // namespace

void add_completion(CLI::App& app, Invocation& invocation) {
  CLI::App* const command =
      app.add_subcommand("completion",
                         "Print a script with which a shell completes simctl's command line. Installed packages bring\n"
                         "it along.");
  static Options options;
  static std::string shell;
  command->add_option("shell", shell, "bash, zsh or fish")
      ->check(one_of({"bash", "zsh", "fish"}))
      ->type_name("NAME")
      ->required();
  command->add_flag("--json", options.json, "print it as a field of one JSON object");
  finish_command(*command, invocation, options,
                 "  source <(simctl completion bash)   # in ~/.bashrc; for zsh likewise, after compinit\n"
                 "  simctl completion fish > ~/.config/fish/completions/simctl.fish",
                 [&app] {
                   const std::string text = script(command_text(app), shell);
                   if (options.json) {
                     print_json({{"shell", shell}, {"script", text}});
                   } else {
                     std::cout << text;
                   }
                   return static_cast<int>(kDone);
                 });
}

}  // namespace backdrive::app
