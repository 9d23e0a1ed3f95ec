// A document against the schema: everything that can be said without knowing the model.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <limits>
#include <sstream>

#include "models/parameter_list.h"
#include "scenes/schema.h"

namespace backdrive::scene {
namespace {

/// Where the checker stands: what is needed to say what is wrong.
struct Spot {
  Node& node;
  const Schema& schema;
  const std::string& path;
};

std::string value_words(const Node& node) {
  if (node.kind == NodeKind::null) return "no value";
  return "value '" + excerpt(node) + "'";
}

std::string short_number(double value) {
  std::ostringstream out;
  out << std::setprecision(10) << value;
  return out.str();
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += ", ";
    out += words[i];
  }
  return out;
}

std::vector<std::string> key_names(const Schema& map) {
  std::vector<std::string> names;
  for (const Key& key : map.keys) names.push_back(key.name);
  return names;
}

std::string range_words(const Schema& schema) {
  std::string out;
  if (schema.minimum) out += (schema.exclusive ? " > " : " ≥ ") + short_number(*schema.minimum);
  if (schema.maximum) out += std::string(schema.minimum ? " and" : "") + " ≤ " + short_number(*schema.maximum);
  return out;
}

std::string vector_words(const Schema& schema) {
  std::string count;
  for (size_t i = 0; i < schema.lengths.size(); ++i) {
    if (i > 0) count += i + 1 < schema.lengths.size() ? ", " : " or ";
    count += std::to_string(schema.lengths[i]);
  }
  std::string words = "a list of " + (count.empty() ? "" : count + " ") + "numbers";
  if (schema.dimension != Dimension::none && schema.dimension != Dimension::varied) {
    words += " in " + si_unit(schema.dimension);
  }
  return words;
}

std::string child_path(const std::string& path, const std::string& name) {
  return path.empty() ? name : path + "/" + name;
}

class Checker {
 public:
  Checker(const Sources& sources, Mistakes& mistakes) : sources_(sources), mistakes_(mistakes) {}

  /// Adds all that is wrong; a value that cannot be read at all is told then.
  void check_part(Node& node, const Schema& schema, const std::string& path) {
    if (!node.told && !mistakes_.attempt([&] { check(node, schema, path); })) node.told = true;
  }

 private:
  void check(Node& node, const Schema& schema, const std::string& path) {
    const Spot spot{node, schema, path};
    switch (schema.kind) {
      case SchemaKind::number:
      case SchemaKind::integer:
        check_number(spot);
        break;
      case SchemaKind::boolean:
        if (node.kind != NodeKind::scalar || node.quoted || (node.text != "true" && node.text != "false")) {
          wrong(spot);
        }
        break;
      case SchemaKind::word:
        check_word(spot);
        break;
      case SchemaKind::text:
      case SchemaKind::name:
        if (node.kind != NodeKind::scalar) wrong(spot);
        if (schema.kind == SchemaKind::name && node.text.empty()) wrong(spot);
        break;
      case SchemaKind::vector:
        check_vector(spot);
        break;
      case SchemaKind::list:
        check_list(spot);
        break;
      case SchemaKind::map:
        check_map(spot);
        break;
      case SchemaKind::names:
        check_names(spot);
        break;
      case SchemaKind::choice:
      case SchemaKind::variants:
        check_option(spot);
        break;
    }
  }

  [[noreturn]] void wrong(const Spot& spot, const std::string& hint = {}) const {
    fail(sources_, spot.node.place, spot.path, value_words(spot.node), expectation(spot.schema), hint);
  }

  void check_number(const Spot& spot) const {
    if (spot.node.kind != NodeKind::scalar) wrong(spot);
    read_quantity(spot.node, spot.schema, spot.schema.dimension, nullptr, sources_, spot.path);
  }

  void check_word(const Spot& spot) const {
    const auto& words = spot.schema.words;
    if (spot.node.kind != NodeKind::scalar) wrong(spot);
    if (std::find(words.begin(), words.end(), spot.node.text) == words.end()) {
      wrong(spot, nearest_name(spot.node.text.substr(0, 100), words));
    }
  }

  void check_vector(const Spot& spot) {
    const auto& lengths = spot.schema.lengths;
    if (spot.node.kind != NodeKind::list) wrong(spot);
    const int length = static_cast<int>(spot.node.list.size());
    if (length == 0 || (!lengths.empty() && std::find(lengths.begin(), lengths.end(), length) == lengths.end())) {
      fail(sources_, spot.node.place, spot.path,
           value_words(spot.node) + " with " + std::to_string(length) + " entries", expectation(spot.schema));
    }
    for (int i = 0; i < length; ++i) {
      Node& item = *spot.node.list[i];
      const std::string path = child_path(spot.path, std::to_string(i));
      const bool is_right = mistakes_.attempt([&] {
        if (item.kind != NodeKind::scalar) fail(sources_, item.place, path, value_words(item), "a number");
        read_quantity(item, spot.schema, spot.schema.dimension, nullptr, sources_, path);
      });
      if (!is_right) item.told = true;
    }
  }

  void check_list(const Spot& spot) {
    if (spot.node.kind != NodeKind::list) wrong(spot);
    for (size_t i = 0; i < spot.node.list.size(); ++i) {
      check_part(*spot.node.list[i], *spot.schema.entry, child_path(spot.path, std::to_string(i)));
    }
  }

  void check_map(const Spot& spot) {
    if (spot.node.kind != NodeKind::map) wrong(spot);
    std::vector<std::string> mistyped;  // what unknown keys seem to be
    bool any = false;                   // whether one may be any
    for (const Entry& entry : spot.node.map) {
      if (const Key* const key = spot.schema.key(entry.key)) {
        check_part(*entry.value, *key->schema, child_path(spot.path, entry.key));
        continue;
      }
      any = any || mistakes_.is_full();
      if (mistakes_.is_full()) break;
      const std::vector<std::string> known = key_names(spot.schema);
      std::string nearest = nearest_name(entry.key.substr(0, 100), known);
      mistakes_.attempt([&] {
        fail(sources_, entry.place, spot.path, "unknown key '" + excerpt(entry.key) + "'", "one of " + joined(known),
             nearest);
      });
      any = any || nearest.empty();
      // What may have been a robot has names.
      if (nearest == "file" || nearest == "robots") mistakes_.lose_names();
      mistyped.push_back(std::move(nearest));
    }
    for (const Key& key : spot.schema.keys) {
      if (spot.node.find(key.name)) continue;
      // A key that is missing may be the one that was mistyped, or be in a robot file with mistakes.
      const bool is_told = any || std::ranges::find(mistyped, key.name) != mistyped.end() ||
                           (key.robot_may_give && mistakes_.names_lost("robots"));
      if (!is_told && !key.required) continue;
      if (!is_told) tell_missing(spot, key);
      auto nothing = std::make_shared<Node>();
      nothing->place = spot.node.place;
      nothing->told = true;
      spot.node.map.push_back({key.name, nothing->place, nothing});
    }
    for (const auto& group : spot.schema.exclusive_keys) check_exclusive(spot, group);
  }

  void tell_missing(const Spot& spot, const Key& key) {
    mistakes_.attempt([&] {
      fail(sources_, spot.node.place, spot.path, value_words(spot.node),
           "the key '" + key.name + "' (" + expectation(*key.schema) + ")");
    });
  }

  void check_exclusive(const Spot& spot, const std::vector<std::string>& group) {
    const Entry* first = nullptr;
    for (const Entry& entry : spot.node.map) {
      if (entry.value->told || std::find(group.begin(), group.end(), entry.key) == group.end()) continue;
      if (!first) {
        first = &entry;
        continue;
      }
      mistakes_.attempt([&] {
        fail(sources_, entry.place, spot.path,
             "key '" + entry.key + "' beside '" + first->key + "' (line " + std::to_string(first->place.line) + ")",
             "only one of " + joined(group));
      });
      entry.value->told = true;
    }
  }

  void check_names(const Spot& spot) {
    if (spot.node.kind != NodeKind::map) wrong(spot);
    for (const Entry& entry : spot.node.map) {
      const bool is_name = mistakes_.attempt([&] {
        if (entry.key.empty() || entry.key.size() > 200 || entry.key.find_first_of("/*\n") != std::string::npos ||
            entry.key == "world") {
          fail(sources_, entry.place, spot.path, "name '" + excerpt(entry.key) + "'",
               "a name of 1 to 200 bytes without '/', '*' and line breaks, other than 'world'");
        }
      });
      check_part(*entry.value, *spot.schema.entry, child_path(spot.path, entry.key));
      if (!is_name) entry.value->told = true;
    }
  }

  void check_option(const Spot& spot) {
    const Schema* option = resolve(spot.schema, spot.node);
    if (!option) wrong(spot);
    check(spot.node, *option, spot.path);
  }

  const Sources& sources_;
  Mistakes& mistakes_;
};

std::string number_words(const Schema& schema, Dimension dimension, const JointType* joint) {
  std::string words =
      dimension == Dimension::none || dimension == Dimension::varied ? "a number" : dimension_words(dimension, joint);
  if (schema.kind == SchemaKind::integer) words = "a whole number";
  words += range_words(schema);
  if (schema.allow_none) words += ", or none";
  if (schema.allow_auto) words += ", or auto";
  return words;
}

/// Whether a choice is between numbers and rows of numbers.
bool numbers_or_rows(const Schema& choice) {
  const auto has = [&](SchemaKind kind) {
    return std::ranges::any_of(choice.options, [=](const SchemaPtr& option) { return option->kind == kind; });
  };
  return has(SchemaKind::vector) && has(SchemaKind::list);
}

}  // namespace

const Schema* resolve(const Schema& schema, const Node& node) {
  if (schema.kind == SchemaKind::variants) {
    if (node.kind != NodeKind::map) return nullptr;
    for (const SchemaPtr& option : schema.options) {
      if (node.find(option->keys.front().name)) return option.get();
    }
    return nullptr;
  }
  if (schema.kind != SchemaKind::choice) return &schema;
  const bool of_two = numbers_or_rows(schema);
  const bool has_rows = !node.list.empty() && node.list[0]->kind == NodeKind::list;
  for (const SchemaPtr& option : schema.options) {
    NodeKind kind = NodeKind::scalar;
    if (option->kind == SchemaKind::vector || option->kind == SchemaKind::list) kind = NodeKind::list;
    if (option->kind == SchemaKind::map || option->kind == SchemaKind::names) kind = NodeKind::map;
    if (option->kind == SchemaKind::variants) {
      if (node.kind == NodeKind::map) return resolve(*option, node);
      continue;
    }
    // Of numbers and rows of numbers, rows are the one whose items are lists.
    if (of_two && kind == NodeKind::list && (option->kind == SchemaKind::list) != has_rows) continue;
    if (node.kind == kind) return option.get();
  }
  return nullptr;
}

std::string expectation(const Schema& schema) {
  switch (schema.kind) {
    case SchemaKind::number:
    case SchemaKind::integer:
      return number_words(schema, schema.dimension, nullptr);
    case SchemaKind::boolean:
      return "true or false";
    case SchemaKind::word:
      return schema.words.size() == 1 ? schema.words[0] : "one of " + joined(schema.words);
    case SchemaKind::text:
      return "text";
    case SchemaKind::name:
      return "a name";
    case SchemaKind::vector:
      return vector_words(schema);
    case SchemaKind::list:
      return "a list, one " + schema.entry_words + " an item";
    case SchemaKind::map:
      return "a map with keys of " + joined(key_names(schema));
    case SchemaKind::names:
      return "a map with " + schema.entry_words + " names as keys";
    case SchemaKind::choice:
    case SchemaKind::variants:
      break;
  }
  if (schema.kind == SchemaKind::variants) {
    std::vector<std::string> firsts;
    for (const SchemaPtr& option : schema.options) firsts.push_back(option->keys.front().name);
    return "a map with one of the keys " + joined(firsts);
  }
  std::string out;
  for (size_t i = 0; i < schema.options.size(); ++i) {
    if (i > 0) out += i + 1 < schema.options.size() ? ", " : ", or ";
    out += expectation(*schema.options[i]);
  }
  return out;
}

double read_quantity(const Node& node, const Schema& schema, Dimension dimension, const JointType* joint,
                     const Sources& sources, const std::string& path) {
  if (node.told) Mistakes::leave_off();
  const auto refuse = [&](const std::string& expected, const std::string& hint = {}) {
    fail(sources, node.place, path, value_words(node), expected, hint);
  };
  if (schema.allow_none && node.text == "none") return std::numeric_limits<double>::quiet_NaN();
  if (schema.allow_auto && node.text == "auto") return std::numeric_limits<double>::infinity();
  Quantity quantity;
  if (node.text.size() > 1000) refuse("a number of at most 1000 characters");
  if (const QuantityError error = parse_quantity(node.text, quantity); !error.expected.empty()) {
    const bool plain = error.expected == "a number";
    refuse(plain ? number_words(schema, dimension, joint) : error.expected, error.hint);
  }
  if (node.quoted && !quantity.has_unit) refuse("a number without quotes");
  if (schema.kind == SchemaKind::integer && (quantity.has_unit || quantity.value != std::floor(quantity.value))) {
    refuse(number_words(schema, dimension, joint));
  }
  if (!unit_fits(quantity, dimension, joint)) {
    refuse(number_words(schema, dimension, joint));
  }
  const bool low =
      schema.minimum && (quantity.value < *schema.minimum || (schema.exclusive && quantity.value == *schema.minimum));
  if (low || (schema.maximum && quantity.value > *schema.maximum)) {
    refuse(number_words(schema, dimension, joint));
  }
  return quantity.value;
}

void check_document(const NodePtr& root, const Sources& sources, Mistakes& mistakes) {
  check_value(root, scene_schema(), sources, "", mistakes);
}

bool check_value(const NodePtr& node, const Schema& schema, const Sources& sources, const std::string& path,
                 Mistakes& mistakes) {
  const std::size_t before = mistakes.failures();
  Checker(sources, mistakes).check_part(*node, schema, path);
  return mistakes.failures() == before && !node->told;
}

}  // namespace backdrive::scene
