#pragma once
// What a scene document may hold, said once: the reader's checks, the JSON Schema for editors and
// docs/scenes.md are all derived from the tree that scene_schema() returns (schema_table.cpp).
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scenes/document.h"
#include "scenes/units.h"

namespace backdrive::scene {

struct Schema;
using SchemaPtr = std::shared_ptr<const Schema>;

struct Key {
  std::string name;
  SchemaPtr schema;
  std::string default_text;  ///< YAML; what an absent key reads as; empty: nothing
  std::string doc;           ///< one line
  bool required = false;
  std::string default_words;    ///< documentation, where default_text is empty
  bool robot_may_give = false;  ///< required, but where a robot file gives it
};

enum class SchemaKind {
  number,    ///< quantity
  integer,   ///< whole number
  boolean,   ///< true or false
  word,      ///< one of `words`
  text,      ///< any string
  name,      ///< name of a body, joint or shape, or a path of them
  vector,    ///< list of quantities, as many as one of `lengths` says; any number when that is empty
  list,      ///< any number of `entry`
  map,       ///< `keys`
  names,     ///< map from names the user chooses to `entry`
  choice,    ///< the one of `options` whose node kind fits (scalar, list or map)
  variants,  ///< the map of `options` whose first key is present
};

struct Schema {
  SchemaKind kind = SchemaKind::text;
  std::string title;  ///< heading in the documentation; maps without one are described where they stand
  std::string doc;
  // number, integer, vector
  Dimension dimension = Dimension::none;
  std::optional<double> minimum;
  bool exclusive = false;  ///< the minimum itself is refused
  std::optional<double> maximum;
  std::vector<int> lengths;
  bool allow_none = false;  ///< the word `none` stands for "no bound"
  bool allow_auto = false;  ///< the word `auto` leaves it to the model, and reads as +inf
  std::vector<std::string> words;
  std::vector<Key> keys;
  std::vector<std::vector<std::string>> exclusive_keys;  ///< at most one key of each group
  SchemaPtr entry;
  std::string entry_words;  ///< names, list: what an entry is called: "joint"
  std::vector<SchemaPtr> options;

  const Key* key(std::string_view name) const;
};

/// The schema of a scene document. Built on first use.
const Schema& scene_schema();

/// Adds what breaks the schema: unknown keys (with the nearest known one), missing keys, wrong types, units, lengths
/// and ranges. Dimensions that depend on a joint's type are checked when they are read. What is wrong is marked as told
/// in the tree, and so are keys that are missing or that an unknown one may stand for, which come into it.
void check_document(const NodePtr& root, const Sources& sources, Mistakes& mistakes);

/// The same of a part of it; whether all is right.
bool check_value(const NodePtr& node, const Schema& schema, const Sources& sources, const std::string& path,
                 Mistakes& mistakes);

/// The option of a choice or of variants that a node of this shape falls under; the schema itself
/// when it is neither, null when none fits.
const Schema* resolve(const Schema& schema, const Node& node);

/// "a number ≥ 0", "one of revolute, prismatic, fixed", "a list of 3 lengths": for messages.
std::string expectation(const Schema& schema);

/// The default of a key as a node; null when it has none.
NodePtr default_node(const Key& key);

/// Value in SI units of a scalar against a number, integer or vector schema, whose dimension may be
/// replaced by a known one; `joint` as in unit_fits. Throws Error (input). The word `none`, where
/// it is allowed, gives NaN.
double read_quantity(const Node& node, const Schema& schema, Dimension dimension, const JointType* joint,
                     const Sources& sources, const std::string& path);

/// JSON Schema, draft 2020-12, indented text.
std::string json_schema();

/// docs/scenes.md.
std::string scenes_markdown();

}  // namespace backdrive::scene
