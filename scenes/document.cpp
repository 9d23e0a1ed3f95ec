#include "scenes/document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdint>
#include <span>
#include <sstream>
#include <utility>

#include "scenes/flow_check.h"
#include "scenes/utf8.h"

namespace backdrive::scene {

std::string Sources::name(Place place) const {
  if (place.source > 0) return overrides.at(place.source - 1);
  return (place.source < 0 ? robots.at(-place.source - 1) : file) + ":" + std::to_string(place.line) + ":" +
         std::to_string(place.column);
}

SceneMistake mistake_at(const Sources& sources, Place place, const std::string& path, const std::string& what,
                        const std::string& expected, const std::string& hint) {
  std::string message = sources.name(place) + ": ";
  if (!path.empty()) message += path + ": ";
  if (!what.empty()) message += what + ": ";
  message += "expected " + expected;
  if (!hint.empty()) message += "; did you mean '" + hint + "'?";
  SceneMistake mistake{message, sources.name(place), 0, 0, path, what, expected, hint};
  if (place.source <= 0) {
    mistake.file = place.source < 0 ? sources.robots.at(-place.source - 1) : sources.file;
    mistake.line = place.line, mistake.column = place.column;
  }
  return mistake;
}

void fail(const Sources& sources, Place place, const std::string& path, const std::string& what,
          const std::string& expected, const std::string& hint) {
  throw SceneError({mistake_at(sources, place, path, what, expected, hint)});
}

size_t Node::index_of(std::string_view key) const {
  const std::atomic_ref<size_t> behind_last(behind_last_);  // a document may be read by several threads
  size_t i = behind_last.load(std::memory_order_relaxed);
  if (i >= map.size() || map[i].key != key) {
    for (i = 0; i < map.size() && map[i].key != key;) ++i;
  }
  if (i < map.size()) behind_last.store(i + 1, std::memory_order_relaxed);
  return i;
}
NodePtr Node::find(std::string_view key) const {
  const size_t i = index_of(key);
  return i < map.size() ? map[i].value : nullptr;
}
Entry* Node::entry(std::string_view key) {
  const size_t i = index_of(key);
  return i < map.size() ? &map[i] : nullptr;
}

bool is_told(const Node& node) {
  return node.told || std::ranges::any_of(node.list, [](const NodePtr& item) { return is_told(*item); }) ||
         std::ranges::any_of(node.map, [](const Entry& entry) { return is_told(*entry.value); });
}

NodePtr deep_copy(const Node& node) {
  auto copy = std::make_shared<Node>(node);
  for (NodePtr& item : copy->list) item = deep_copy(*item);
  for (Entry& entry : copy->map) entry.value = deep_copy(*entry.value);
  return copy;
}

NodePtr make_scalar(std::string text, Place place, bool quoted) {
  auto node = std::make_shared<Node>();
  node->kind = NodeKind::scalar;
  node->place = place;
  node->text = std::move(text);
  node->quoted = quoted;
  return node;
}

NodePtr make_list(Place place) {
  auto node = std::make_shared<Node>();
  node->kind = NodeKind::list;
  node->place = place;
  return node;
}

NodePtr make_map(Place place) {
  auto node = std::make_shared<Node>();
  node->kind = NodeKind::map;
  node->place = place;
  return node;
}

namespace {

std::string hex_byte(unsigned char c) {
  const char* digits = "0123456789ABCDEF";
  return std::string("0x") + digits[c >> 4] + digits[c & 15];
}

std::string line_at(std::string_view text, int line, int column) {
  std::istringstream stream{std::string(text)};
  std::string content;
  for (int i = 0; i < line && std::getline(stream, content); ++i) {
  }
  if (column > 1 && static_cast<size_t>(column) <= content.size()) content.erase(0, column - 1);
  while (!content.empty() && (content.back() == '\r' || content.back() == ' ')) content.pop_back();
  return content;
}

/// In quotes, yaml-cpp makes the escapes \N and \_ single bytes, 0x85 and 0xA0, which are no text in UTF-8: as that
/// they are two.
std::string with_whole_escapes(const std::string& value) {
  std::string text;
  text.reserve(value.size());
  for (std::size_t i = 0; i < value.size();) {
    const std::size_t length = utf8_length(value, i);
    if (length == 0) text += '\xC2';
    text.append(value, i, std::max<std::size_t>(length, 1));
    i += std::max<std::size_t>(length, 1);
  }
  return text;
}

/// Which key of a map stands where in it: of hundreds of thousands a fraction of the time of a map of strings.
class KeyTable {
 public:
  /// The entry with that key, or null.
  const Entry* find(const std::vector<Entry>& map, std::string_view key) const {
    if (slots_.empty()) {
      const auto found = std::ranges::find(map, key, &Entry::key);
      return found == map.end() ? nullptr : &*found;
    }
    for (size_t slot = first(key);; slot = (slot + 1) % slots_.size()) {
      if (slots_[slot] == 0) return nullptr;
      if (map[slots_[slot] - 1].key == key) return &map[slots_[slot] - 1];
    }
  }
  /// The map's last entry is new.
  void added(const std::vector<Entry>& map) {
    if (map.size() <= kFew) return;
    if (2 * map.size() > slots_.size()) {
      slots_.assign(std::bit_ceil(4 * map.size()), 0);
      for (size_t i = 0; i + 1 < map.size(); ++i) put(map, i);
    }
    put(map, map.size() - 1);
  }

 private:
  static constexpr size_t kFew = 16;  ///< which are looked through
  size_t first(std::string_view key) const { return std::hash<std::string_view>{}(key) % slots_.size(); }
  void put(const std::vector<Entry>& map, size_t i) {
    size_t slot = first(map[i].key);
    while (slots_[slot] != 0) slot = (slot + 1) % slots_.size();
    slots_[slot] = static_cast<std::uint32_t>(i + 1);
  }
  std::vector<std::uint32_t> slots_;  ///< an entry's number from 1; 0: none
};

/// Builds the tree from yaml-cpp's events and refuses what yaml-cpp would let pass.
class TreeHandler : public YAML::EventHandler {
 public:
  TreeHandler(const Sources& sources, int source, Mistakes& mistakes, std::span<const NumberList> numbers)
      : sources_(sources), source_(source), mistakes_(mistakes), numbers_(numbers) {}

  NodePtr root() const { return root_; }

  /// Lists of numbers that were read apart are all in their places.
  void check_all_taken() const {
    if (numbers_.empty()) return;
    fail(sources_, {source_, numbers_[0].line, numbers_[0].column}, "", "list of numbers in the middle of a text",
         "quotes around such a text");
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) {
      fail(sources_, place(mark), "", "value '---'", "one document in a file, found a second one");
    }
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (expects_key()) {
      fail(sources_, place(mark), path(), "empty key", "a name before ':'");
    }
    auto node = std::make_shared<Node>();
    // yaml-cpp marks a missing value at the next token, which may stand lines below: use the key's
    // place.
    node->place = open_.empty() || open_.back().node->kind != NodeKind::map ? place(mark) : open_.back().key_place;
    remember(anchor, node);
    count(1, mark);
    attach(node);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (expects_key()) fail(sources_, place(mark), path(), "alias as a key", "a plain name");
    const NodePtr found = anchor < anchors_.size() ? anchors_[anchor] : nullptr;
    if (!found) fail(sources_, place(mark), path(), "alias", "an alias to something written above");
    for (const Frame& frame : open_) {
      if (frame.node != found) continue;
      mistakes_.attempt([&] {
        fail(sources_, place(mark), path(), "alias to what it stands in",
             "no cycle (what is aliased begins at line " + std::to_string(found->place.line) + ")");
      });
      auto nothing = std::make_shared<Node>();
      nothing->told = true;
      return attach(nothing);
    }
    count(found->size, mark);
    check_depth(found->depth, mark);
    attach(found);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_tag(tag, mark);
    const std::string text = tag == "!" ? with_whole_escapes(value) : value;
    if (expects_key()) {
      set_key(text, tag != "!", mark);
      return;
    }
    NodePtr node = make_scalar(text, place(mark), tag == "!");
    remember(anchor, node);
    count(1, mark);
    attach(node);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(make_list(place(mark)), tag, anchor, mark);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(make_map(place(mark)), tag, anchor, mark);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Frame {
    NodePtr node;
    bool has_key = false;
    bool is_dropped = false;  // the value of the key
    std::string key;
    Place key_place;
    KeyTable keys;  // of its map so far
  };

  Place place(const YAML::Mark& mark) const {
    return {source_, std::max(mark.line, 0) + 1, std::max(mark.column, 0) + 1};
  }
  bool expects_key() const {
    return !open_.empty() && open_.back().node->kind == NodeKind::map && !open_.back().has_key;
  }

  std::string path() const {
    std::string path;
    for (const Frame& frame : open_) {
      const bool is_map = frame.node->kind == NodeKind::map;
      if (is_map && !frame.has_key) continue;
      if (!path.empty()) path += '/';
      path += is_map ? frame.key : std::to_string(frame.node->list.size());
    }
    return path.size() <= 200 ? path : path.substr(0, path.find('/', 100)) + "/…";
  }

  void check_tag(const std::string& tag, const YAML::Mark& mark) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    if (mistakes_.is_full()) Mistakes::leave_off();
    mistakes_.attempt(
        [&] { fail(sources_, place(mark), path(), "value '" + excerpt(tag) + "'", "a value without a tag"); });
  }

  void count(size_t nodes, const YAML::Mark& mark) {
    nodes_ += nodes;
    if (nodes_ > kMaxNodes) {
      fail(sources_, place(mark), path(), too_many_values(),
           "a smaller document (aliases count as often as they are used)");
    }
  }

  void check_depth(int below, const YAML::Mark& mark) const {
    if (static_cast<int>(open_.size()) + below > kMaxDepth) {
      fail(sources_, place(mark), path(), "value nested more than " + std::to_string(kMaxDepth) + " deep",
           "at most " + std::to_string(kMaxDepth) + " levels");
    }
  }

  void remember(YAML::anchor_t anchor, const NodePtr& node) {
    if (anchor == YAML::NullAnchor) return;
    if (anchor >= anchors_.size()) anchors_.resize(anchor + 1);
    anchors_[anchor] = node;
  }

  void set_key(const std::string& key, bool plain, const YAML::Mark& mark) {
    Frame& frame = open_.back();
    const bool merges = key == "<<" && plain;
    if (++keys_ > kMaxKeys) {
      fail(sources_, place(mark), path(), "more than " + std::to_string(kMaxKeys) + " keys", "a smaller document");
    }
    const Entry* const first = frame.keys.find(frame.node->map, key);
    if (mistakes_.is_full()) Mistakes::leave_off();
    mistakes_.attempt([&] {
      if (merges) {
        fail(sources_, place(mark), path(), "key '<<'",
             "the keys themselves (merge keys are not supported; aliases are)");
      }
      if (!first) return;
      fail(sources_, place(mark), path(), "duplicate key '" + excerpt(key) + "'",
           "each key once (first at line " + std::to_string(first->place.line) + ")");
    });
    // Which keys there are is not known then: what is missing is not told, and neither is what stands there.
    if (merges) frame.node->told = true;
    frame.is_dropped = merges || first != nullptr;
    frame.has_key = true;
    frame.key = key;
    frame.key_place = place(mark);
  }

  void open(NodePtr node, const std::string& tag, YAML::anchor_t anchor, const YAML::Mark& mark) {
    check_tag(tag, mark);
    if (expects_key())
      fail(sources_, place(mark), path(), "list or map as a key", "a plain name (is a bracket left open?)");
    check_depth(1, mark);
    count(1, mark);
    remember(anchor, node);
    const bool apart = node->kind == NodeKind::list && !numbers_.empty() && numbers_[0].line == mark.line + 1 &&
                       numbers_[0].column == mark.column + 1;
    open_.push_back({std::move(node), false, false, {}, {}, {}});
    if (!apart) return;
    each_number(numbers_[0], [&](std::string_view text, int line, int column) {
      count(1, mark);
      attach(make_scalar(std::string(text), {source_, line, column}));
    });
    numbers_ = numbers_.subspan(1);
  }

  void close() {
    const NodePtr node = open_.back().node;
    open_.pop_back();
    attach(node);
  }

  void attach(const NodePtr& node) {
    if (open_.empty()) {
      root_ = node;
      return;
    }
    Frame& frame = open_.back();
    frame.node->size += node->size;
    frame.node->depth = std::max(frame.node->depth, node->depth + 1);
    if (frame.node->kind == NodeKind::list) {
      frame.node->list.push_back(node);
    } else {
      if (!frame.is_dropped) {
        frame.node->map.push_back({std::move(frame.key), frame.key_place, node});
        frame.keys.added(frame.node->map);
      }
      frame.has_key = false;
    }
  }

  const Sources& sources_;
  int source_;
  Mistakes& mistakes_;
  std::span<const NumberList> numbers_;  ///< that were read apart, those to come
  int documents_ = 0;
  size_t nodes_ = 0, keys_ = 0;
  NodePtr root_;
  std::vector<Frame> open_;
  std::vector<NodePtr> anchors_;  ///< by yaml-cpp's numbers, which count from 1
};

}  // namespace

void check_text(std::string_view text, const Sources& sources, int source, bool tabs_refused) {
  if (text.size() > kMaxBytes) {
    fail(sources, {source, 1, 1}, "", "value of " + std::to_string(text.size()) + " bytes",
         "at most " + std::to_string(kMaxBytes) + " bytes (16 MiB)");
  }
  Place place{source, 1, 1};
  bool indentation = true;
  for (size_t i = 0; i < text.size();) {
    const auto c = static_cast<unsigned char>(text[i]);
    const size_t length = utf8_length(text, i);
    if (length == 0) fail(sources, place, "", "value '" + hex_byte(c) + "'", "text in UTF-8");
    if ((c < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7F) {
      fail(sources, place, "", "value '" + hex_byte(c) + "'", "text without control characters");
    }
    if (tabs_refused && indentation && c == '\t') {
      fail(sources, place, "", "value '\\t'", "indentation by spaces, not by tabs");
    }
    if (c != ' ') indentation = false;
    ++place.column;
    if (c == '\n') {
      ++place.line;
      place.column = 1;
      indentation = true;
    }
    i += length;
  }
}

NodePtr parse_document(std::string_view text, const Sources& sources, int source) {
  Mistakes mistakes;
  NodePtr root = parse_document(text, sources, source, mistakes);
  mistakes.throw_any();
  return root;
}

NodePtr parse_document(std::string_view text, const Sources& sources, int source, Mistakes& mistakes) {
  check_text(text, sources, source, true);
  const std::vector<NumberList> numbers = check_flow(text, sources, source);
  TreeHandler handler(sources, source, mistakes, numbers);
  try {
    // Without a line break at the end yaml-cpp takes an unclosed bracket for a key.
    const bool ended = !text.empty() && text.back() == '\n';
    std::istringstream stream(without_numbers(text, numbers) + (ended ? "" : "\n"));
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(handler)) {
    }
  } catch (const YAML::Exception& e) {
    const Place place{source, std::max(e.mark.line, 0) + 1, std::max(e.mark.column, 0) + 1};
    fail(sources, place, "", "value '" + excerpt(line_at(text, place.line, place.column)) + "'",
         "valid YAML (" + e.msg + ")");
  }
  handler.check_all_taken();
  if (!handler.root()) {
    fail(sources, {source, 1, 1}, "", "value ''", "a scene, found nothing (empty text)");
  }
  return handler.root();
}

}  // namespace backdrive::scene
