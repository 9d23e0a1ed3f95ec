#include "scenes/repeat.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "scenes/expression.h"
#include "scenes/schema.h"

namespace backdrive::scene {
namespace {

constexpr const char* kRepeatKey = "repeat";
constexpr std::string_view kOpen = "$(";
/// Of names and values that expressions stand in, read and written.
constexpr std::size_t kMostBytes = 4 * kMaxBytes;
constexpr const char* kValuesExpected =
    "a range of whole numbers like 0..31, from the least to the greatest, or a list of values";

class Repeater {
 public:
  Repeater(const Sources& sources, Mistakes& mistakes) : sources_(sources), mistakes_(mistakes) {}

  NodePtr expand(const NodePtr& root) {
    if (!holds_any(*root)) return root;
    NodePtr result = told_node(root->place);
    mistakes_.attempt([&] { result = walk(root, &scene_schema(), ""); });
    return result;
  }

 private:
  using Names = std::vector<NamedValue>;

  static NodePtr told_node(Place place) {
    auto node = std::make_shared<Node>();
    node->place = place;
    node->told = true;
    return node;
  }

  /// Goes on behind what is wrong, unless the copies are too many.
  template <class Part>
  bool attempt(Part&& part) {
    const std::size_t names = names_.size();
    const Place place = place_;
    const std::string path = path_;
    if (mistakes_.attempt(part)) return true;
    if (too_many_) Mistakes::leave_off();
    names_.resize(names);
    place_ = place, path_ = path;
    return false;
  }

  /// Whether a value holds an expression or a repeated entry; asked of each node once.
  bool holds_any(const Node& node) {
    if (node.list.empty() && node.map.empty()) return node.text.find(kOpen) != std::string::npos;
    const auto [known, is_new] = holds_.emplace(&node, false);
    if (!is_new) return known->second;
    bool holds = false;
    for (const NodePtr& item : node.list) holds = holds_any(*item) || holds;
    for (const Entry& entry : node.map) {
      const bool here = entry.key == kRepeatKey || entry.key.find(kOpen) != std::string::npos;
      holds = holds_any(*entry.value) || here || holds;
    }
    return holds_[&node] = holds;
  }

  NodePtr walk(const NodePtr& node, const Schema* schema, const std::string& path) {
    if (!holds_any(*node)) {
      count(node->size);
      return node;
    }
    const Schema* const option = schema ? resolve(*schema, *node) : nullptr;
    count(1);
    if (node->kind == NodeKind::list) return walk_list(*node, option, path);
    if (node->kind == NodeKind::map) {
      return option && option->kind == SchemaKind::names ? walk_names(*node, *option, path)
                                                         : walk_map(*node, option, path);
    }
    if (names_.empty()) return node;
    NodePtr result = told_node(node->place);
    attempt([&] { result = make_scalar(filled(node->text, node->place, path, false), node->place); });
    return result;
  }

  NodePtr walk_list(const Node& node, const Schema* option, const std::string& path) {
    const Schema* const entry = option && option->kind == SchemaKind::list ? option->entry.get() : nullptr;
    NodePtr result = make_list(node.place);
    for (const NodePtr& item : node.list) {
      const std::string below = path + "/" + std::to_string(result->list.size());
      if (const NodePtr repeat = repeat_of(*item, entry)) {
        const bool is_right = attempt([&] {
          each_copy(*repeat, below, [&] { result->list.push_back(walk(without_repeat(*item), entry, below)); });
        });
        if (!is_right) mistakes_.lose_names();
      } else {
        result->list.push_back(walk(item, entry, below));
      }
    }
    return measured(result);
  }

  NodePtr walk_map(const Node& node, const Schema* option, const std::string& path) {
    NodePtr result = make_map(node.place);
    for (const Entry& entry : node.map) {
      const Key* const key = option && option->kind == SchemaKind::map ? option->key(entry.key) : nullptr;
      const std::string below = path.empty() ? entry.key : path + "/" + entry.key;
      result->map.push_back({entry.key, entry.place, walk(entry.value, key ? key->schema.get() : nullptr, below)});
    }
    return measured(result);
  }

  NodePtr walk_names(const Node& node, const Schema& option, const std::string& path) {
    NodePtr result = make_map(node.place);
    std::unordered_map<std::string, int> lines;
    const auto add_copy = [&](const Entry& entry, const NodePtr& value) {
      const std::string key = filled(entry.key, entry.place, path, true);
      const auto [first, is_new] = lines.emplace(key, entry.place.line);
      if (!is_new) {
        fail(sources_, entry.place, path, "duplicate key '" + excerpt(key) + "'",
             "each key once (first of line " + std::to_string(first->second) + "); a name like '" +
                 excerpt(entry.key, 30) + "_$(i)' tells copies apart");
      }
      result->map.push_back({key, entry.place, walk(value, option.entry.get(), path + "/" + key)});
    };
    const auto add = [&](const Entry& entry, const NodePtr& value) {
      if (!attempt([&] { add_copy(entry, value); })) mistakes_.lose_names();
    };
    for (const Entry& entry : node.map) {
      const NodePtr repeat = repeat_of(*entry.value, option.entry.get());
      if (!repeat) {
        add(entry, entry.value);
        continue;
      }
      const NodePtr copied = without_repeat(*entry.value);
      const bool is_right = attempt([&] { each_copy(*repeat, path + "/" + entry.key, [&] { add(entry, copied); }); });
      if (!is_right) mistakes_.lose_names();
    }
    return measured(result);
  }

  /// The value of `repeat` of an entry that the schema allows to have one.
  static NodePtr repeat_of(const Node& entry, const Schema* schema) {
    if (!schema || entry.kind != NodeKind::map) return nullptr;
    const Schema* const option = resolve(*schema, entry);
    return option && option->kind == SchemaKind::map && option->key(kRepeatKey) ? entry.find(kRepeatKey) : nullptr;
  }

  /// One tree for all copies of an entry, so that what it holds is looked at once.
  NodePtr without_repeat(const Node& entry) {
    NodePtr& known = without_[&entry];
    if (known) return known;
    known = std::make_shared<Node>(entry);
    std::erase_if(known->map, [](const Entry& one) { return one.key == kRepeatKey; });
    known->size = 1;
    for (const Entry& one : known->map) known->size += one.value->size;
    return known;
  }

  /// Calls `copy` with the names of each copy in place.
  template <class Copy>
  void each_copy(const Node& repeat, const std::string& path, const Copy& copy) {
    const std::string here = path + "/" + kRepeatKey;
    const std::size_t outer = names_.size();
    const Place place = place_;
    place_ = repeat.place;
    path_ = path;
    if (repeat.kind == NodeKind::list && !repeat.list.empty()) {
      for (std::size_t i = 0; i < repeat.list.size(); ++i) {
        const std::string row = here + "/" + std::to_string(i);
        if (repeat.list[i]->kind != NodeKind::map) refuse(*repeat.list[i], row, "a map from names to values");
        for (const Entry& entry : repeat.list[i]->map) {
          Names one = values_of_list({entry.value}, row + "/" + entry.key);
          check_name(entry, row);
          one[0].name = entry.key;
          names_.push_back(std::move(one[0]));
        }
        copy();
        names_.resize(outer);
      }
    } else if (repeat.kind == NodeKind::map && !repeat.map.empty()) {
      each_of_grid(repeat, 0, here, copy);
    } else {
      refuse(repeat, here, "a map like {i: 0..31}, or a list of such maps with one value each");
    }
    place_ = place;
  }

  /// Every combination of the values of the names from the k-th on, the last of them fastest.
  template <class Copy>
  void each_of_grid(const Node& repeat, std::size_t k, const std::string& path, const Copy& copy) {
    if (mistakes_.is_full()) Mistakes::leave_off();
    if (k == repeat.map.size()) return copy();
    const Entry& entry = repeat.map[k];
    check_name(entry, path);
    const std::string below = path + "/" + entry.key;
    const auto with = [&](NamedValue value) {
      value.name = entry.key;
      names_.push_back(std::move(value));
      each_of_grid(repeat, k + 1, path, copy);
      names_.pop_back();
    };
    if (entry.value->kind == NodeKind::list && !entry.value->list.empty()) {
      for (NamedValue& value : values_of_list(entry.value->list, below)) with(std::move(value));
      return;
    }
    if (entry.value->kind != NodeKind::scalar) refuse(*entry.value, below, kValuesExpected);
    const auto [first, last] = range(*entry.value, below);
    for (int i = first; i <= last; ++i) with({"", true, static_cast<double>(i)});
  }

  void check_name(const Entry& entry, const std::string& path) const {
    const auto is_same = [&](const NamedValue& other) { return other.name == entry.key; };
    if (!can_be_named(entry.key) || std::ranges::any_of(names_, is_same)) {
      fail(sources_, entry.place, path, "name '" + excerpt(entry.key) + "'",
           "letters, digits and '_', as in i, other than pi, functions and names that it stands within");
    }
  }

  Names values_of_list(const std::vector<NodePtr>& list, const std::string& path) {
    Names values;
    for (const NodePtr& item : list) {
      if (item->kind != NodeKind::scalar) refuse(*item, path, "a number or a word");
      NamedValue value{"", false, 0, filled(item->text, item->place, path, false)};
      const char* const end = value.text.data() + value.text.size();
      double number = 0;
      const auto [at, error] = std::from_chars(value.text.data(), end, number);
      if (error == std::errc() && at == end && std::isfinite(number)) value.is_number = true, value.number = number;
      values.push_back(std::move(value));
    }
    return values;
  }

  std::pair<int, int> range(const Node& node, const std::string& path) {
    const std::string text = filled(node.text, node.place, path, false);
    const std::size_t dots = text.find("..");
    if (dots == std::string::npos) refuse(node, path, kValuesExpected);
    const auto whole = [&](std::string_view part) {
      while (part.starts_with(' ')) part.remove_prefix(1);
      while (part.ends_with(' ')) part.remove_suffix(1);
      int value = 0;
      const auto [at, error] = std::from_chars(part.data(), part.data() + part.size(), value);
      if (error != std::errc() || at != part.data() + part.size() || std::abs(value) > 1'000'000'000) {
        refuse(node, path, kValuesExpected);
      }
      return value;
    };
    const int first = whole(std::string_view(text).substr(0, dots)),
              last = whole(std::string_view(text).substr(dots + 2));
    if (last < first) refuse(node, path, kValuesExpected);
    return {first, last};
  }

  /// A text with the values of its expressions.
  std::string filled(const std::string& text, Place place, const std::string& path, bool is_name) {
    std::string out;
    std::size_t at = 0;
    for (std::size_t open = text.find(kOpen); open != std::string::npos; open = text.find(kOpen, at)) {
      const auto refuse_it = [&](const std::string& expected, const std::string& hint = {}) {
        fail(sources_, place, path, (is_name ? "name '" : "value '") + excerpt(text) + "'", expected, hint);
      };
      if (names_.empty()) {
        if (!is_name) return text;
        refuse_it("the key `repeat` in what has such a name");
      }
      std::size_t end = open + kOpen.size();
      for (int depth = 1; end < text.size() && depth > 0; ++end)
        depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
      if (text[end - 1] != ')') refuse_it("')' behind '$('");
      const ExpressionResult result =
          evaluate(std::string_view(text).substr(open + kOpen.size(), end - 1 - open - kOpen.size()), names_);
      if (!result.expected.empty()) refuse_it(result.expected, result.hint);
      const NamedValue& value = result.value;
      if (is_name && value.is_number && value.number != std::floor(value.number)) refuse_it("whole numbers in a name");
      out += text.substr(at, open - at) + (value.is_number ? number_text(value.number) : value.text);
      count_bytes(out.size());
      at = end;
    }
    if (at == 0) return text;
    out += text.substr(at);
    bytes_ += text.size() + out.size();
    count_bytes(0);
    return out;
  }

  void count(std::size_t values) {
    values_ += values;
    if (values_ > kMaxNodes) {
      too_many_ = true;
      fail(sources_, place_, path_, "with its copies more than " + std::to_string(kMaxNodes) + " values",
           "fewer copies, or smaller ones");
    }
  }
  /// `more`: than have been counted.
  void count_bytes(std::size_t more) {
    if (bytes_ + more > kMostBytes) {
      too_many_ = true;
      fail(sources_, place_, path_, "copies with expressions of more than " + std::to_string(kMostBytes >> 20) + " MiB",
           "fewer copies, or shorter names");
    }
  }

  static NodePtr measured(const NodePtr& node) {
    for (const NodePtr& item : node->list) add_measure(*node, *item);
    for (const Entry& entry : node->map) add_measure(*node, *entry.value);
    return node;
  }
  static void add_measure(Node& node, const Node& below) {
    node.size += below.size;
    node.depth = std::max(node.depth, below.depth + 1);
  }

  [[noreturn]] void refuse(const Node& node, const std::string& path, const std::string& expected) const {
    fail(sources_, node.place, path, node.kind == NodeKind::null ? "no value" : "value '" + excerpt(node) + "'",
         expected);
  }

  const Sources& sources_;
  Mistakes& mistakes_;
  Names names_;  // of the copy that is being made
  std::unordered_map<const Node*, bool> holds_;
  std::unordered_map<const Node*, NodePtr> without_;
  std::size_t values_ = 0, bytes_ = 0;
  bool too_many_ = false;  ///< of either
  Place place_;            // of the outermost repeat that is being expanded, and its entry
  std::string path_;
};

}  // namespace

NodePtr expand_repeats(const NodePtr& root, const Sources& sources, Mistakes& mistakes) {
  return Repeater(sources, mistakes).expand(root);
}

bool is_about_repeats(std::string_view path) {
  return path.find(kOpen) != std::string_view::npos || path.find("/repeat/") != std::string_view::npos ||
         path.ends_with("/repeat");
}

}  // namespace backdrive::scene
