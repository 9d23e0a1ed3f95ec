#include "scenes/document.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>
#include <unordered_map>
#include <utility>

namespace backdrive::scene {

std::string Sources::name(Place place) const {
  if (place.source > 0) return overrides.at(place.source - 1);
  return (place.source < 0 ? robots.at(-place.source - 1) : file) + ":" + std::to_string(place.line) + ":" +
         std::to_string(place.column);
}

void fail(const Sources& sources, Place place, const std::string& path, const std::string& what,
          const std::string& expected, const std::string& hint) {
  std::string message = sources.name(place) + ": ";
  if (!path.empty()) message += path + ": ";
  if (!what.empty()) message += what + ": ";
  message += "expected " + expected;
  if (!hint.empty()) message += "; did you mean '" + hint + "'?";
  input_error(message);
}

NodePtr Node::find(std::string_view key) const {
  for (const Entry& entry : map) {
    if (entry.key == key) return entry.value;
  }
  return nullptr;
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

/// Length of the UTF-8 sequence at `i`, or 0 when it is none (overlong forms, surrogates and >
/// U+10FFFF included).
size_t utf8_length(std::string_view s, size_t i) {
  const auto byte = [&](size_t k) { return k < s.size() ? static_cast<unsigned char>(s[k]) : 0u; };
  const auto tail = [&](size_t k) { return (byte(k) & 0xC0u) == 0x80u; };
  const unsigned c = byte(i);
  if (c < 0x80) return 1;
  if (c >= 0xC2 && c <= 0xDF) return tail(i + 1) ? 2 : 0;
  if (c >= 0xE0 && c <= 0xEF) {
    if (c == 0xE0 && byte(i + 1) < 0xA0) return 0;
    if (c == 0xED && byte(i + 1) > 0x9F) return 0;
    return tail(i + 1) && tail(i + 2) ? 3 : 0;
  }
  if (c >= 0xF0 && c <= 0xF4) {
    if (c == 0xF0 && byte(i + 1) < 0x90) return 0;
    if (c == 0xF4 && byte(i + 1) > 0x8F) return 0;
    return tail(i + 1) && tail(i + 2) && tail(i + 3) ? 4 : 0;
  }
  return 0;
}

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

/// Builds the tree from yaml-cpp's events and refuses what yaml-cpp would let pass.
class TreeHandler : public YAML::EventHandler {
 public:
  TreeHandler(const Sources& sources, int source) : sources_(sources), source_(source) {}

  NodePtr root() const { return root_; }

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
    attach(node);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (expects_key()) fail(sources_, place(mark), path(), "alias as a key", "a plain name");
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      fail(sources_, place(mark), path(), "alias", "an alias to something written above");
    }
    for (const Frame& frame : open_) {
      if (frame.node == found->second) {
        fail(sources_, place(mark), path(), "alias to what it stands in",
             "no cycle (what is aliased begins at line " + std::to_string(found->second->place.line) + ")");
      }
    }
    count(found->second->size, mark);
    check_depth(found->second->depth, mark);
    attach(found->second);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_tag(tag, mark);
    if (expects_key()) {
      set_key(value, tag != "!", mark);
      return;
    }
    NodePtr node = make_scalar(value, place(mark), tag == "!");
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
    std::string key;
    Place key_place;
    std::unordered_map<std::string, int> lines;  // of the keys so far
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

  void check_tag(const std::string& tag, const YAML::Mark& mark) const {
    if (!tag.empty() && tag != "?" && tag != "!") {
      fail(sources_, place(mark), path(), "value '" + excerpt(tag) + "'", "a value without a tag");
    }
  }

  void count(size_t nodes, const YAML::Mark& mark) {
    nodes_ += nodes;
    if (nodes_ > kMaxNodes) {
      fail(sources_, place(mark), path(), "more than " + std::to_string(kMaxNodes) + " values",
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
    if (anchor != YAML::NullAnchor) anchors_[anchor] = node;
  }

  void set_key(const std::string& key, bool plain, const YAML::Mark& mark) {
    Frame& frame = open_.back();
    if (key == "<<" && plain) {
      fail(sources_, place(mark), path(), "key '<<'",
           "the keys themselves (merge keys are not supported; aliases are)");
    }
    const auto [first, is_new] = frame.lines.emplace(key, mark.line + 1);
    if (!is_new) {
      fail(sources_, place(mark), path(), "duplicate key '" + excerpt(key) + "'",
           "each key once (first at line " + std::to_string(first->second) + ")");
    }
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
    open_.push_back({std::move(node), false, {}, {}, {}});
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
      frame.node->map.push_back({std::move(frame.key), frame.key_place, node});
      frame.has_key = false;
    }
  }

  const Sources& sources_;
  int source_;
  int documents_ = 0;
  size_t nodes_ = 0;
  NodePtr root_;
  std::vector<Frame> open_;
  std::unordered_map<YAML::anchor_t, NodePtr> anchors_;
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
  check_text(text, sources, source, true);
  TreeHandler handler(sources, source);
  try {
    // Without a line break at the end yaml-cpp takes an unclosed bracket for a key.
    const bool ended = !text.empty() && text.back() == '\n';
    std::istringstream stream(std::string(text) + (ended ? "" : "\n"));
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(handler)) {
    }
  } catch (const YAML::Exception& e) {
    const Place place{source, std::max(e.mark.line, 0) + 1, std::max(e.mark.column, 0) + 1};
    fail(sources, place, "", "value '" + excerpt(line_at(text, place.line, place.column)) + "'",
         "valid YAML (" + e.msg + ")");
  }
  if (!handler.root()) {
    fail(sources, {source, 1, 1}, "", "value ''", "a scene, found nothing (empty text)");
  }
  return handler.root();
}

}  // namespace backdrive::scene
