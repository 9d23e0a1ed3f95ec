#include "scenes/scene.h"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <sstream>

#include "scenes/reader.h"
#include "scenes/repeat.h"
#include "scenes/robots/expand.h"

namespace backdrive {
namespace {

using scene::Mistakes;
using scene::NodePtr;
using scene::Sources;

std::string read_text(const std::filesystem::path& path) {
  const std::string name = path.string();
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  if (!std::filesystem::exists(status))
    input_error(name + ":1:1: value '" + name + "': expected an existing scene file");
  if (std::filesystem::is_directory(status)) {
    input_error(name + ":1:1: value '" + name + "': expected a scene file, found a directory");
  }
  std::ifstream stream(path, std::ios::binary);
  // One byte past the cap is enough for the check of the size, also for pipes, which have none.
  std::string text(scene::kMaxBytes + 1, '\0');
  if (stream) stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!stream && !stream.eof()) {
    input_error(name + ":1:1: value '" + name + "': expected a scene file that can be read");
  }
  text.resize(static_cast<size_t>(stream.gcount()));
  return text;
}

void refuse_what_was_left_out(const std::vector<SceneNote>& notes) {
  std::string lines;
  for (const SceneNote& note : notes) {
    if (note.changes_motion) lines += (lines.empty() ? "" : "\n") + note.text;
  }
  if (!lines.empty()) input_error(lines + ": expected nothing that is not supported (--strict)");
}

/// What the document is read with.
struct DocumentInputs {
  std::span<const Override> overrides;
  const std::filesystem::path& directory;
  const LoadOptions& options;
};

/// The document with overrides, copies and robots in their places.
NodePtr read_document(std::string_view text, const DocumentInputs& inputs, Sources& sources, Scene& scene,
                      Mistakes& mistakes) {
  const std::span<const Override> overrides = inputs.overrides;
  NodePtr root;
  if (!mistakes.attempt([&] { root = scene::parse_document(text, sources, 0, mistakes); })) {
    mistakes.throw_any(sources.file);
  }
  // Which parts and robots there are comes first: other overrides may name what is in them.
  const auto comes_first = [](std::string_view path) {
    return scene::is_about_robots(path) || scene::is_about_repeats(path);
  };
  root = scene::apply_overrides(root, overrides, sources, mistakes, comes_first);
  root = scene::expand_repeats(root, sources, mistakes);
  root = scene::expand_robots(root, inputs.directory, inputs.options, sources, scene, mistakes);
  root = scene::apply_overrides(root, overrides, sources, mistakes, std::not_fn(comes_first));
  if (!overrides.empty()) root = scene::expand_repeats(root, sources, mistakes);  // what they brought
  return root;
}

}  // namespace

Scene load_scene(const std::filesystem::path& path, std::span<const Override> overrides, const LoadOptions& options) {
  std::string text = read_text(path);
  if (scene::looks_like_xml(text)) text = scene::scene_of_robot(path);
  std::filesystem::path directory = path.parent_path();
  if (directory.empty()) directory = ".";
  Scene result = parse_scene(text, path.string(), directory, overrides, options);
  if (result.name.empty()) result.name = path.stem().string();
  return result;
}

Scene parse_scene(std::string_view text, const std::string& file, const std::filesystem::path& directory,
                  std::span<const Override> overrides, const LoadOptions& options) {
  Sources sources{file};
  for (const Override& one : overrides) {
    sources.overrides.push_back("--set " + scene::excerpt(one.path, 200) + "=" + scene::excerpt(one.value, 100));
  }
  Mistakes mistakes;
  Scene result;
  NodePtr root = read_document(text, {overrides, directory, options}, sources, result, mistakes);
  scene::check_document(root, sources, mistakes);
  if (mistakes.empty() && options.strict) refuse_what_was_left_out(result.notes);

  const scene::View view(sources, root, scene::scene_schema(), "");
  result.document = root;
  result.directory = directory;
  mistakes.attempt([&] {
    if (const scene::View name = view["name"]) result.name = name.text();
    result.description = view["description"].text();
  });
  Problem& problem = result.problem;
  scene::UnreadParts unread;
  problem.model = scene::read_model(view, directory, mistakes, unread);
  scene::ProblemReader reader(view, directory, problem, mistakes, unread);
  reader.read_simulation();
  reader.read_initial_state();
  reader.read_controls();
  reader.read_requires_grad();
  reader.read_variables();
  reader.read_loss();
  reader.read_options();
  result.record = reader.read_recorded_columns();
  if (mistakes.empty()) reader.check_dependence();
  mistakes.throw_any(file);
  return result;
}

std::string scene_json_schema() {
  return scene::json_schema();
}
std::string scene_markdown() {
  return scene::scenes_markdown();
}

}  // namespace backdrive
