// The schema as JSON Schema, for editors.
#include <nlohmann/json.hpp>

#include "scenes/schema.h"

namespace backdrive::scene {
namespace {

using Json = nlohmann::ordered_json;

void add_range(Json& json, const Schema& schema) {
  const auto bound = [&](double value) -> Json {
    if (schema.kind == SchemaKind::integer) return static_cast<long long>(value);
    return value;
  };
  if (schema.minimum) json[schema.exclusive ? "exclusiveMinimum" : "minimum"] = bound(*schema.minimum);
  if (schema.maximum) json["maximum"] = bound(*schema.maximum);
}

/// What may stand in place of values within repeated parts.
Json expression_json() {
  return {{"type", "string"}, {"pattern", "\\$\\(.*\\)"}};
}

/// `repeats`: whether it stands in a part that may be repeated.
Json number_json(const Schema& schema, bool repeats) {
  Json number = {{"type", schema.kind == SchemaKind::integer ? "integer" : "number"}};
  add_range(number, schema);
  if (schema.kind == SchemaKind::integer ||
      (schema.dimension == Dimension::none && !schema.allow_none && !schema.allow_auto)) {
    return repeats ? Json{{"anyOf", Json::array({number, expression_json()})}} : number;
  }
  Json options = Json::array({number});
  if (schema.dimension != Dimension::none) {
    options.push_back({{"type", "string"}, {"pattern", quantity_pattern()}});
  }
  if (repeats) options.push_back(expression_json());
  if (schema.allow_none) options.push_back({{"const", "none"}});
  if (schema.allow_auto) options.push_back({{"const", "auto"}});
  return {{"anyOf", options}};
}

Json to_json(const Schema& schema, bool repeats);

Json vector_json(const Schema& schema, bool repeats) {
  const Json item = number_json(schema, repeats);
  Json json = {{"type", "array"}, {"items", item}};
  if (schema.lengths.empty()) {
    json["minItems"] = 1;
    return json;
  }
  if (schema.lengths.size() == 1) {
    json["minItems"] = json["maxItems"] = schema.lengths[0];
    return json;
  }
  Json options = Json::array();
  for (const int length : schema.lengths) {
    options.push_back({{"minItems", length}, {"maxItems", length}});
  }
  json["anyOf"] = options;
  return json;
}

Json map_json(const Schema& schema, bool repeats) {
  Json json = {{"type", "object"}};
  if (!schema.doc.empty()) json["description"] = schema.doc;
  json["additionalProperties"] = false;
  Json required = Json::array();
  repeats = repeats || schema.key("repeat");
  for (const Key& key : schema.keys) {
    Json value = to_json(*key.schema, repeats);
    std::string words = key.doc;
    if (key.schema->dimension != Dimension::none) words += " Unit: " + si_unit(key.schema->dimension) + ".";
    if (!key.default_words.empty()) words += " Default: " + key.default_words + ".";
    if (!words.empty()) value["description"] = words;
    const NodePtr fallback = default_node(key);
    if (fallback && fallback->kind == NodeKind::scalar) {
      const SchemaKind kind = key.schema->kind;
      const bool is_word = key.schema->allow_auto && fallback->text == "auto";
      const bool is_json = kind == SchemaKind::number || kind == SchemaKind::integer || kind == SchemaKind::boolean;
      value["default"] = is_json && !is_word ? Json::parse(fallback->text) : Json(fallback->text);
    }
    json["properties"][key.name] = value;
    if (key.required && !key.robot_may_give) required.push_back(key.name);
  }
  if (!required.empty()) json["required"] = required;
  for (const auto& group : schema.exclusive_keys) {
    json["not"] = {{"required", group}};
  }
  return json;
}

Json to_json(const Schema& schema, bool repeats) {
  switch (schema.kind) {
    case SchemaKind::number:
    case SchemaKind::integer:
      return number_json(schema, repeats);
    case SchemaKind::boolean:
      if (repeats) return {{"anyOf", Json::array({Json{{"type", "boolean"}}, expression_json()})}};
      return {{"type", "boolean"}};
    case SchemaKind::word:
      if (repeats) return {{"anyOf", Json::array({Json{{"enum", schema.words}}, expression_json()})}};
      return {{"enum", schema.words}};
    case SchemaKind::text:
      return {{"type", "string"}};
    case SchemaKind::name:
      return {{"type", "string"}, {"minLength", 1}};
    case SchemaKind::vector:
      return vector_json(schema, repeats);
    case SchemaKind::list:
      return {{"type", "array"}, {"items", to_json(*schema.entry, repeats)}};
    case SchemaKind::map:
      return map_json(schema, repeats);
    case SchemaKind::names:
      return {{"type", "object"},
              {"propertyNames", {{"pattern", "^[^/*\\n]+$"}, {"maxLength", 200}, {"not", {{"const", "world"}}}}},
              {"additionalProperties", to_json(*schema.entry, repeats)}};
    case SchemaKind::choice:
    case SchemaKind::variants:
      break;
  }
  Json options = Json::array();
  for (const SchemaPtr& option : schema.options) options.push_back(to_json(*option, repeats));
  return {{"anyOf", options}};
}

}  // namespace

std::string json_schema() {
  Json json = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
               {"title", "Backdrive scene"},
               {"description", "What simctl simulates and optimises. See docs/scenes.md."}};
  json.update(to_json(scene_schema(), false));
  return json.dump(2) + "\n";
}

}  // namespace backdrive::scene
