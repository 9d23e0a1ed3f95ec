#pragma once
// Words to write the schema's tables with (schema_table.cpp, schema_model.cpp).
#include <string>
#include <utility>
#include <vector>

#include "scenes/schema.h"

namespace backdrive::scene {

inline std::shared_ptr<Schema> make(SchemaKind kind) {
  auto schema = std::make_shared<Schema>();
  schema->kind = kind;
  return schema;
}

inline SchemaPtr number(Dimension dimension) {
  auto schema = make(SchemaKind::number);
  schema->dimension = dimension;
  return schema;
}

inline SchemaPtr at_least(double minimum, Dimension dimension) {
  auto schema = make(SchemaKind::number);
  schema->dimension = dimension;
  schema->minimum = minimum;
  return schema;
}

inline SchemaPtr positive(Dimension dimension) {
  auto schema = make(SchemaKind::number);
  schema->dimension = dimension;
  schema->minimum = 0;
  schema->exclusive = true;
  return schema;
}

inline SchemaPtr integer(double minimum, double maximum) {
  auto schema = make(SchemaKind::integer);
  schema->minimum = minimum;
  schema->maximum = maximum;
  return schema;
}

inline SchemaPtr boolean() {
  return make(SchemaKind::boolean);
}
inline SchemaPtr text() {
  return make(SchemaKind::text);
}
inline SchemaPtr name() {
  return make(SchemaKind::name);
}

inline SchemaPtr word(std::vector<std::string> words) {
  auto schema = make(SchemaKind::word);
  schema->words = std::move(words);
  return schema;
}

inline SchemaPtr vector(Dimension dimension, std::vector<int> lengths) {
  auto schema = make(SchemaKind::vector);
  schema->dimension = dimension;
  schema->lengths = std::move(lengths);
  return schema;
}

/// Numbers of which each may be the word `none`.
inline SchemaPtr vector_or_none(Dimension dimension, std::vector<int> lengths) {
  auto schema = make(SchemaKind::vector);
  schema->dimension = dimension;
  schema->lengths = std::move(lengths);
  schema->allow_none = true;
  return schema;
}

inline SchemaPtr choice(std::vector<SchemaPtr> options) {
  auto schema = make(SchemaKind::choice);
  schema->options = std::move(options);
  return schema;
}

inline std::shared_ptr<Schema> map(std::vector<Key> keys) {
  auto schema = make(SchemaKind::map);
  schema->keys = std::move(keys);
  return schema;
}

inline std::shared_ptr<Schema> titled(std::shared_ptr<Schema> schema, std::string title, std::string doc) {
  schema->title = std::move(title);
  schema->doc = std::move(doc);
  return schema;
}

inline SchemaPtr variants(std::vector<SchemaPtr> options) {
  auto schema = make(SchemaKind::variants);
  schema->options = std::move(options);
  return schema;
}

inline SchemaPtr list(SchemaPtr entry, std::string words) {
  auto schema = make(SchemaKind::list);
  schema->entry = std::move(entry);
  schema->entry_words = std::move(words);
  return schema;
}

inline SchemaPtr names(SchemaPtr entry, std::string words) {
  auto schema = make(SchemaKind::names);
  schema->entry = std::move(entry);
  schema->entry_words = std::move(words);
  return schema;
}

inline Key required(std::string name, SchemaPtr schema, std::string doc) {
  return {std::move(name), std::move(schema), "", std::move(doc), true, ""};
}
/// A required key that an entry of the scene may leave to a robot file.
inline Key required_or_of_robot(std::string name, SchemaPtr schema, std::string doc) {
  Key key = required(std::move(name), std::move(schema), std::move(doc));
  key.robot_may_give = true;
  return key;
}
inline Key optional(std::string name, SchemaPtr schema, std::string default_text, std::string doc) {
  return {std::move(name), std::move(schema), std::move(default_text), std::move(doc), false, ""};
}
/// An optional key whose absence is more than a default value.
inline Key absent(std::string name, SchemaPtr schema, std::string default_words, std::string doc) {
  return {std::move(name), std::move(schema), "", std::move(doc), false, std::move(default_words)};
}

/// Of entries that may be repeated (repeat.h).
inline Key repeated() {
  return absent(
      "repeat",
      choice({names(choice({text(), list(text(), "value")}), "variable"), list(names(text(), "variable"), "copy")}), "",
      "Copies of this, as in [repeated parts](#repeated-parts).");
}

/// The `model` section, and how an orientation is written there and in losses (schema_model.cpp).
SchemaPtr model_schema();
SchemaPtr orientation_schema();

/// Names of the components of a joint's quantities, as columns of tables have them.
constexpr const char* kComponents[] = {"x", "y", "z", "angle"};
/// What stands under a joint's name in `initial_state` and `controls`, a word for a channel, and the key that picks one
/// of the numbers of a joint (schema_inputs.cpp).
SchemaPtr initial_state_schema();
SchemaPtr control_schema();
SchemaPtr channel_schema();
Key component_key(const char* all);

}  // namespace backdrive::scene
