// simctl schema: what a scene file may hold.
#include <iostream>

#include "apps/options.h"

namespace backdrive::app {

void add_schema(CLI::App& app, Invocation& invocation) {
  CLI::App* const command =
      app.add_subcommand("schema",
                         "Print what a scene file may hold: as JSON Schema (draft 2020-12), which editors use to\n"
                         "complete and check while one types, or as the text of docs/scenes.md.");
  static Options options;
  static bool markdown = false;
  command->add_flag("--markdown", markdown, "print docs/scenes.md instead");
  command->add_flag("--json", options.json, "JSON Schema, as without it");
  finish_command(*command, invocation, options,
                 "  simctl schema > scene.schema.json\n"
                 "  simctl schema --markdown > docs/scenes.md",
                 [] {
                   if (markdown && options.json) usage_error("--markdown and --json exclude each other");
                   std::string text = markdown ? scene_markdown() : scene_json_schema();
                   if (text.empty() || text.back() != '\n') text += '\n';
                   std::cout << text;
                   return static_cast<int>(kDone);
                 });
}

}  // namespace backdrive::app
