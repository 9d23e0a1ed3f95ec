// simctl manual: the man page, made of the command line's own definition.
#include <iostream>
#include <sstream>

#include "apps/command_text.h"
#include "apps/options.h"

namespace backdrive::app {
namespace {

/// Text as roff prints it: its own characters, and those that it would set as typographic ones.
std::string roff(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '\\':
        result += "\\e";
        break;
      case '-':
        result += "\\-";
        break;
      case '\'':
        result += "\\(aq";
        break;
      case '`':
        result += "\\(ga";
        break;
      case '^':
        result += "\\(ha";
        break;
      case '~':
        result += "\\(ti";
        break;
      default:
        result += c;
    }
  }
  return result;
}

/// Lines of text; a dot at the beginning of one would make it a request.
std::string lines(const std::string& text) {
  std::istringstream stream(text);
  std::string result;
  for (std::string line; std::getline(stream, line);) {
    result += (line.rfind('.', 0) == 0 ? "\\&" : "") + roff(line) + "\n";
  }
  return result;
}

std::string paragraph(const std::string& text) {
  return lines(wrap(text, 72));
}

std::string bold_face(const std::string& text) {
  return "\\fB" + roff(text) + "\\fR";
}

std::string italic(const std::string& text) {
  return "\\fI" + roff(text) + "\\fR";
}

/// Lines that are typed as they stand. A title "Examples:" before them becomes a paragraph.
std::string examples(const std::string& footer) {
  std::string title, body;
  std::istringstream stream(footer);
  for (std::string line; std::getline(stream, line);) {
    if (line.rfind("  ", 0) == 0) {
      body += line.substr(2) + "\n";
    } else {
      title += line + "\n";
    }
  }
  return lines(title) + ".PP\n.RS 4\n.nf\n" + lines(body) + ".fi\n.RE\n";
}

std::string option(const OptionText& one) {
  std::string names;
  for (const std::string& name : one.names) {
    names += (names.empty() ? "" : ", ") + (one.is_argument() ? italic(name) : bold_face(name));
  }
  if (!one.value.empty() && !one.is_argument()) names += " " + italic(one.value);
  return ".TP\n" + names + "\n" + paragraph(one.meaning + (one.initial.empty() ? "" : " [" + one.initial + "]"));
}

std::string options(const CommandText& command) {
  std::string text;
  for (const OptionText& one : command.arguments) text += option(one);
  for (const OptionText& one : command.options) text += option(one);
  return text;
}

std::string usage(const CommandText& command) {
  std::string text = bold_face(command.name) + " [" + italic("option") + " ...]";
  for (const OptionText& one : command.arguments) text += " " + italic(one.names.front());
  return text;
}

std::string manual(const CommandText& program) {
  // "simctl: what it is.\nMore."
  const size_t colon = program.description.find(": "), dot = program.description.find(".\n");
  std::string synopsis, commands, exits;
  for (const CommandText& command : program.commands) {
    synopsis += (synopsis.empty() ? "" : ".br\n") + bold_face(program.name) + " " + usage(command) + "\n";
    commands += ".SS " + bold_face(program.name + " " + command.name) + "\n" + paragraph(command.description) +
                options(command) + ".PP\n" + examples(command.footer);
  }
  for (const ExitText& one : exit_codes())
    exits += ".TP\n" + bold_face(std::to_string(one.code)) + "\n" + paragraph(one.meaning);
  return ".\\\" Made by: simctl manual\n"
         ".TH SIMCTL 1 \"\" \"Backdrive " BACKDRIVE_VERSION
         "\" \"User Commands\"\n"
         // Neither hyphens in names nor blanks to fill lines.
         ".nh\n.ad l\n"
         ".SH NAME\n" +
         roff(program.name) + " \\- " + roff(program.description.substr(colon + 2, dot - colon - 2)) +
         "\n.SH SYNOPSIS\n" + synopsis + ".SH DESCRIPTION\n" + paragraph(program.description.substr(dot + 1)) +
         options({.name = "",
                  .description = "",
                  .options = program.options,
                  .arguments = {},
                  .footer = "",
                  .commands = {}}) +
         ".SH COMMANDS\n" + commands + ".SH EXIT STATUS\n" + exits + ".SH EXAMPLES\n" + examples(program.footer);
}

}  // namespace

void add_manual(CLI::App& app, Invocation& invocation) {
  CLI::App* const command =
      app.add_subcommand("manual", "Print the man page, for roff. Installed packages bring it along: man simctl.");
  static Options options;
  command->add_flag("--json", options.json, "print it as a field of one JSON object");
  finish_command(*command, invocation, options, "  simctl manual | man -l -\n  simctl manual > simctl.1", [&app] {
    const std::string text = manual(command_text(app));
    if (options.json) {
      print_json({{"manual", text}});
    } else {
      std::cout << text;
    }
    return static_cast<int>(kDone);
  });
}

}  // namespace backdrive::app
