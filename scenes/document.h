#pragma once
// A scene document as a tree in which every value knows where it was written.
//
// Built from yaml-cpp's events, not its nodes: yaml-cpp 0.7 keeps the first of two equal keys,
// walks alias bombs and cycles, and reports nesting past 500 only as "bad file". All of these are
// refused here while reading, before anything is expanded.
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "scenes/scene_error.h"

namespace backdrive::scene {

constexpr size_t kMaxBytes = size_t{16} << 20;  ///< of a scene file or of a table it refers to
/// What yaml-cpp reads, which takes ten times as long for a byte as anything else: all but long lists of numbers.
constexpr size_t kMaxYamlBytes = size_t{6} << 20;
constexpr int kMaxDepth = 64;          ///< of nesting, counted through aliases
constexpr size_t kMaxNodes = 500'000;  ///< values in a document, counted through aliases
constexpr size_t kMaxKeys = 320'000;   ///< keys in the text of a document

/// Where a value was written. Source 0 is the scene file, source k the k-th override, source −k the k-th robot file.
struct Place {
  int source = 0;
  int line = 1;    ///< from 1
  int column = 1;  ///< from 1
};

/// What the sources are called in messages.
struct Sources {
  std::string file;
  std::vector<std::string> overrides = {};  ///< "--set path=value"
  std::vector<std::string> robots = {};     ///< robot files that the scene names
  /// "scene.yaml:3:7" or "--set path=value".
  std::string name(Place place) const;
};

enum class NodeKind { null, scalar, list, map };

struct Node;
using NodePtr = std::shared_ptr<Node>;

struct Entry {
  std::string key;
  Place place;
  NodePtr value;
};

struct Node {
  NodeKind kind = NodeKind::null;
  Place place;
  std::string text;     ///< scalar
  bool quoted = false;  ///< scalar: written in quotes or as a block
  std::vector<NodePtr> list;
  std::vector<Entry> map;
  size_t size = 1;  ///< nodes of the subtree, counted through aliases
  int depth = 1;
  /// What is wrong with it has been told: whoever would read it leaves off without a word (Mistakes::leave_off()).
  bool told = false;

  /// The value of a key, or null when a map does not have it. O(keys), and O(1) for the key behind the last one that
  /// was found, so that whoever asks for all of them in their order does not look at all of them for each.
  NodePtr find(std::string_view key) const;
  Entry* entry(std::string_view key);

 private:
  size_t index_of(std::string_view key) const;
  mutable size_t behind_last_ = 0;  ///< a guess, which is looked at first
};

/// Throws Error (input) with place and expectation: not UTF-8, control characters, more than kMaxBytes, and, where
/// `tabs_refused`, a line that begins with a tab.
void check_text(std::string_view text, const Sources& sources, int source, bool tabs_refused);

/// Reads one YAML document. Throws Error (input) with place, value and expectation: not UTF-8,
/// control characters, tabs in indentation, too large, too deep, too many nodes, several documents,
/// duplicate keys, merge keys, tags, cycles.
NodePtr parse_document(std::string_view text, const Sources& sources, int source);
/// The same, which adds duplicate keys, merge keys, tags and cycles to the mistakes and goes on behind them.
NodePtr parse_document(std::string_view text, const Sources& sources, int source, Mistakes& mistakes);

/// The tree as YAML text that reads back to the same tree; aliases are written out.
std::string to_yaml(const Node& node);

/// Whether anything in it has been told to be wrong. O(values), each that has several places once a place.
bool is_told(const Node& node);

/// A copy of all of it.
NodePtr deep_copy(const Node& node);

/// One line for messages, cut to about `limit` bytes.
std::string excerpt(const Node& node, size_t limit = 60);
std::string excerpt(std::string_view text, size_t limit = 60);

/// "<place>: <path>: <what>: expected <expected>[; did you mean '<hint>'?]", and its parts.
SceneMistake mistake_at(const Sources& sources, Place place, const std::string& path, const std::string& what,
                        const std::string& expected, const std::string& hint = {});
/// Throws it as SceneError.
[[noreturn]] void fail(const Sources& sources, Place place, const std::string& path, const std::string& what,
                       const std::string& expected, const std::string& hint = {});

NodePtr make_scalar(std::string text, Place place = {}, bool quoted = false);
NodePtr make_list(Place place = {});
NodePtr make_map(Place place = {});

}  // namespace backdrive::scene
