// docs/scenes.md and the JSON schema say what the reader checks. BACKDRIVE_UPDATE_DOCS=1 writes the
// page anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>

#include "models/builder.h"
#include "scenes/scene.h"
#include "scenes/schema.h"
#include "tests/support/places.h"

namespace backdrive {
namespace {

using scene::Key;
using scene::Schema;

TEST(SceneDocs, PageIsTheGeneratedOne) {
  const std::filesystem::path path = std::filesystem::path(test::kRepository) / "docs" / "scenes.md";
  if (std::getenv("BACKDRIVE_UPDATE_DOCS")) std::ofstream(path) << scene_markdown();
  std::ifstream file(path);
  const std::string page(std::istreambuf_iterator<char>(file), {});
  EXPECT_EQ(page, scene_markdown()) << "BACKDRIVE_UPDATE_DOCS=1 makes this test write " << path;
}

TEST(SceneDocs, ExamplesOfThePageAreScenes) {
  const std::string page = scene_markdown(), start = "```yaml\n";
  int examples = 0;
  for (size_t begin = page.find(start); begin != std::string::npos; begin = page.find(start, begin), ++examples) {
    begin += start.size();
    const std::string example = page.substr(begin, page.find("```\n", begin) - begin);
    EXPECT_NO_THROW(parse_scene(example, "example.yaml", test::kRepository + "/scenes")) << example;
  }
  EXPECT_EQ(examples, 3);
}

TEST(SceneDocs, EveryKeyHasItsMeaning) {
  const std::function<void(const Schema&, const std::string&)> walk = [&](const Schema& schema,
                                                                          const std::string& path) {
    for (const Key& key : schema.keys) {
      EXPECT_GT(key.doc.size(), 5u) << path << "/" << key.name;
      walk(*key.schema, path + "/" + key.name);
    }
    if (schema.entry) walk(*schema.entry, path + "/*");
    for (const auto& option : schema.options) walk(*option, path);
  };
  walk(scene::scene_schema(), "");
}

TEST(SceneDocs, JsonSchemaIsJson) {
  const auto json = nlohmann::json::parse(scene_json_schema());
  EXPECT_EQ(json["$schema"], "https://json-schema.org/draft/2020-12/schema");
  EXPECT_EQ(json["required"], nlohmann::json::array({"model"}));
  const auto& joint = json["properties"]["model"]["properties"]["joints"]["additionalProperties"];
  const nlohmann::json& types = joint["properties"]["type"]["anyOf"][0]["enum"];
  EXPECT_EQ(types, (nlohmann::json{"revolute", "prismatic", "fixed", "universal", "planar", "ball", "free"}));
  EXPECT_EQ(joint["additionalProperties"], false);
}

/// Every parameter of the model has its key, at the same path below the item.
TEST(SceneSchema, HasEveryFieldOfTheModel) {
  const Schema& model = *scene::scene_schema().key("model")->schema;
  for (const Field& field : fields()) {
    const Schema* at = &model;
    if (field.group == FieldGroup::bodies) at = model.key("bodies")->schema->entry.get();
    if (field.group == FieldGroup::joints) at = model.key("joints")->schema->entry.get();
    if (field.group == FieldGroup::shapes) at = model.key("shapes")->schema->entry.get();
    const bool of_couplings = field.group == FieldGroup::couplings || field.group == FieldGroup::terms;
    if (of_couplings) at = model.key("couplings")->schema->entry.get();
    const std::string leaf(field.leaf);
    for (size_t begin = 0; begin <= leaf.size();) {
      const size_t end = std::min(leaf.find('/', begin), leaf.size());
      const Key* key = at->key(leaf.substr(begin, end - begin));
      ASSERT_NE(key, nullptr) << leaf;
      at = key->schema.get();
      begin = end + 1;
    }
    if (field.values != ValueRange::any && at->kind == scene::SchemaKind::number) {
      EXPECT_TRUE(at->minimum.has_value()) << leaf;
    }
  }
}

/// Defaults stand in the schema and in the builder's options: they must agree.
TEST(SceneSchema, DefaultsAreThoseOfTheBuilder) {
  ModelBuilder builder;
  BodyOptions body;
  body.mass = 1;
  body.inertia = {1, 1, 1, 0, 0, 0};
  JointOptions joint;
  joint.driven = true;
  builder.add_joint("j", JointType::revolute, ModelBuilder::world, builder.add_body("b", body), joint);
  builder.add_shape("s", 0, {});
  builder.add_coupling("c", {.ratios = {{0, 1}}, .driven = true});
  const Model expected = builder.build();
  const Scene scene = parse_scene(
      "model:\n"
      "  bodies: {b: {mass: 1, inertia: [1, 1, 1], shapes: [{name: s, geometry: {type: "
      "sphere}}]}}\n"
      "  joints: {j: {type: revolute, child: b, drive: {}}}\n"
      "  couplings: {c: {ratios: {j: 1}, drive: {}}}\n",
      "a.yaml", ".");
  for (const Field& field : fields()) {
    const Parameter& a = field.in(expected);
    const Parameter& b = field.in(scene.problem.model);
    ASSERT_EQ(a.items(), b.items());
    for (int i = 0; i < a.items(); ++i) {
      for (int c = 0; c < a.components(); ++c) EXPECT_EQ(a(i, c), b(i, c)) << field.leaf;
    }
  }
  const Simulation simulation;
  EXPECT_EQ(scene.problem.simulation.time_step, simulation.time_step);
  EXPECT_EQ(scene.problem.simulation.steps, simulation.steps);
  const OptimizeOptions options;
  EXPECT_EQ(scene.problem.optimize.method, options.method);
  EXPECT_EQ(scene.problem.optimize.iterations, options.iterations);
  EXPECT_EQ(scene.problem.optimize.tolerance, options.tolerance);
  EXPECT_EQ(scene.problem.optimize.learning_rate, options.learning_rate);
  EXPECT_EQ(scene.problem.optimize.starts, options.starts);
  EXPECT_EQ(scene.problem.optimize.goal, options.goal);
}

}  // namespace
}  // namespace backdrive
