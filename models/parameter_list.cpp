#include "models/parameter_list.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "engine/error.h"

namespace backdrive {
namespace {

using enum FieldGroup;

/// "limit.lower" as "limit/lower".
template <std::size_t N>
struct Leaf {
  char text[N];
  constexpr Leaf(const char (&path)[N]) {  // NOLINT: a template's argument is made of a text
    for (std::size_t i = 0; i < N; ++i) text[i] = path[i] == '.' ? '/' : path[i];
  }
};
template <Leaf leaf>
constexpr std::string_view kLeaf{leaf.text, sizeof(leaf.text) - 1};

// clang-format off
#define BACKDRIVE_ROW(group, path, pick, begins, values, unit, doc)                         \
  Field{group, kLeaf<path>, unit, doc, components_of(begins),                               \
        components_of(begins) == 4 ? 3 : components_of(begins), ValueRange::values,         \
        first_of(begins) == kInfinity || first_of(begins) == -kInfinity, first_of(begins),  \
        [](auto& p) -> auto& { return p.pick; }},
#define BACKDRIVE_BODY(at, name, ...) BACKDRIVE_ROW(bodies, #at #name, bodies.at name, __VA_ARGS__)
#define BACKDRIVE_JOINT(at, name, ...) BACKDRIVE_ROW(joints, #at #name, joints.at name, __VA_ARGS__)
#define BACKDRIVE_SHAPE(at, name, ...) BACKDRIVE_ROW(shapes, #at #name, shapes.at name, __VA_ARGS__)
#define BACKDRIVE_COUPLING(at, name, ...) BACKDRIVE_ROW(couplings, #at #name, couplings.at name, __VA_ARGS__)
#define BACKDRIVE_TERM(at, name, ...) BACKDRIVE_ROW(terms, #at #name, couplings.at name, __VA_ARGS__)
#define BACKDRIVE_WORLD(at, name, ...) BACKDRIVE_ROW(model, #at #name, at name, __VA_ARGS__)
constexpr Field kFields[] = {
    BACKDRIVE_BODY_PARAMETERS(BACKDRIVE_BODY, )
    BACKDRIVE_JOINT_PARAMETERS(BACKDRIVE_JOINT)
    BACKDRIVE_SHAPE_PARAMETERS(BACKDRIVE_SHAPE)
    BACKDRIVE_RATIO_PARAMETERS(BACKDRIVE_TERM, )
    BACKDRIVE_COUPLING_PARAMETERS(BACKDRIVE_COUPLING)
    BACKDRIVE_WORLD_PARAMETERS(BACKDRIVE_WORLD, )};
// clang-format on
#undef BACKDRIVE_ROW
#undef BACKDRIVE_BODY
#undef BACKDRIVE_JOINT
#undef BACKDRIVE_SHAPE
#undef BACKDRIVE_COUPLING
#undef BACKDRIVE_TERM
#undef BACKDRIVE_WORLD

constexpr int kNoMatch = -2;

struct Group {
  FieldGroup group;
  std::string_view name;  ///< first segment of a path
  std::string_view item;  ///< what one is called in messages
  const Names Model::*names;
};
constexpr std::array<Group, 4> kGroups{{{bodies, "bodies", "body", &Model::body_names},
                                        {joints, "joints", "joint", &Model::joint_names},
                                        {shapes, "shapes", "shape", &Model::shape_names},
                                        {couplings, "couplings", "coupling", &Model::coupling_names}}};

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> segments;
  for (size_t begin = 0;;) {
    const size_t end = path.find('/', begin);
    segments.push_back(path.substr(begin, end - begin));
    if (end == std::string_view::npos) return segments;
    begin = end + 1;
  }
}

/// Whether a pattern, in which each `*` stands for any characters, matches all of a text.
/// O(|pattern|·|text|).
bool glob(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p, ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

/// Names of a field's components, in order; the index always works too.
std::span<const std::string_view> component_names(const Field& field) {
  static constexpr std::string_view axes[] = {"x", "y", "z", "w"};
  static constexpr std::string_view moments[] = {"xx", "yy", "zz", "xy", "xz", "yz"};
  if (field.components == 6) return moments;
  if (field.components == 1) return {};
  return {axes, static_cast<size_t>(field.components)};
}

int parse_component(const Field& field, std::string_view word) {
  if (word == "*") return -1;
  const auto names = component_names(field);
  for (size_t c = 0; c < names.size(); ++c) {
    if (word == names[c]) return static_cast<int>(c);
  }
  if (word.size() == 1 && word[0] >= '0' && word[0] < '0' + field.components) return word[0] - '0';
  return kNoMatch;
}

/// The component that the segments below an item select of a field: -1 all of them, kNoMatch none.
int match_leaf(const Field& field, std::span<const std::string_view> below) {
  const std::vector<std::string_view> leaf = split(field.leaf);
  for (size_t i = 0; i < std::min(leaf.size(), below.size()); ++i) {
    if (!glob(below[i], leaf[i])) return kNoMatch;
  }
  if (below.size() <= leaf.size()) return -1;
  if (below.size() > leaf.size() + 1) return kNoMatch;
  return parse_component(field, below.back());
}

/// Terms of couplings: couplings/<name>/ratios/<joint>.
void match_terms(const Model& model, std::span<const std::string_view> path, std::vector<FieldSelection>& found) {
  for (std::size_t t = 0; t < model.coupling_terms.size(); ++t) {
    const auto [coupling, joint] = model.coupling_terms[t];
    for (const Field& field : kFields) {
      if (field.group != FieldGroup::terms) continue;
      const std::string_view full[] = {"couplings", model.coupling_names[coupling], field.leaf,
                                       model.joint_names[joint]};
      bool fits = path.size() <= std::size(full);
      for (std::size_t i = 0; fits && i < path.size(); ++i) fits = glob(path[i], full[i]);
      if (fits) found.push_back({&field, static_cast<int>(t), -1});
    }
  }
}

/// All that a split path selects, in the order group, item, field; empty when nothing matches.
std::vector<FieldSelection> match(const Model& model, std::span<const std::string_view> path) {
  std::vector<FieldSelection> found;
  const auto select = [&](FieldGroup group, int item, std::span<const std::string_view> below) {
    for (const Field& field : kFields) {
      if (field.group != group) continue;
      const int component = match_leaf(field, below);
      if (component != kNoMatch) found.push_back({&field, item, component});
    }
  };
  for (const Group& group : kGroups) {
    if (!glob(path[0], group.name)) continue;
    const std::vector<std::string>& names = model.*group.names;
    for (size_t i = 0; i < names.size(); ++i) {
      if (path.size() > 1 && !glob(path[1], names[i])) continue;
      select(group.group, static_cast<int>(i), path.subspan(std::min<size_t>(2, path.size())));
    }
  }
  match_terms(model, path, found);
  select(FieldGroup::model, 0, path);
  return found;
}

/// The words that could stand at a depth below what the path's first `depth` segments select.
std::vector<std::string> known_words(const Model& model, std::span<const std::string_view> path, size_t depth) {
  if (depth == 0) {
    std::vector<std::string> words{"bodies", "joints", "shapes", "gravity"};
    if (!model.coupling_names.empty()) words.insert(words.end() - 1, "couplings");
    return words;
  }
  if (depth == 1) {
    std::vector<std::string> names;
    for (const Group& group : kGroups) {
      if (!glob(path[0], group.name)) continue;
      const std::vector<std::string>& own = model.*group.names;
      names.insert(names.end(), own.begin(), own.end());
    }
    if (!names.empty()) return names;
  }
  std::vector<std::string> words;
  std::set<std::string> seen;
  const auto add = [&](std::string word) {
    if (seen.insert(word).second) words.push_back(std::move(word));
  };
  for (const FieldSelection& selection : match(model, path.first(depth))) {
    const std::string full = path_of(model, selection);
    const std::vector<std::string_view> segments = split(full);
    if (segments.size() > depth) {
      add(std::string(segments[depth]));
    } else if (selection.component == -1) {
      for (int c = 0; c < selection.field->components; ++c) add(std::to_string(c));
      for (std::string_view name : component_names(*selection.field)) add(std::string(name));
    }
  }
  return words;
}

/// Throws the error for a path that selects nothing, about the first segment that matches nothing.
[[noreturn]] void no_match(const Model& model, std::string_view path, std::span<const std::string_view> segments) {
  size_t depth = 0;
  while (depth + 1 < segments.size() && !match(model, segments.first(depth + 1)).empty()) ++depth;
  const std::string word(segments[depth]);
  std::string message = "'" + std::string(path) + "': ";
  const auto group =
      std::find_if(kGroups.begin(), kGroups.end(), [&](const Group& g) { return g.name == segments[0]; });
  const std::vector<std::string> known = known_words(model, segments, depth);
  if (depth == 0 && group != kGroups.end()) input_error(message + "the model has no " + word);
  if (word.empty()) {
    message += "empty segment";
  } else if (depth == 1 && group != kGroups.end()) {
    message += "no " + std::string(group->item) + " is named '" + word + "'";
  } else {
    message += "no parameter '" + word + "'";
  }
  if (depth > 0) {
    message += " (at " + std::string(path.substr(0, segments[depth].data() - path.data() - 1)) + ")";
  }
  const std::string near = nearest_name(word, known);
  if (!near.empty()) {
    message += "; did you mean '" + near + "'?";
  } else if (known.empty()) {
    message += "; expected the path to end before it";
  } else {
    message += "; expected ";
    const size_t listed = std::min<size_t>(known.size(), 12);
    for (size_t i = 0; i < listed; ++i) message += (i ? ", " : "") + known[i];
    if (listed < known.size()) message += ", ... (" + std::to_string(known.size()) + " in all)";
  }
  input_error(message);
}

std::string folded(std::string_view word) {
  std::string result(word);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

/// Damerau-Levenshtein distance (adjacent characters may swap once): the fewest insertions,
/// deletions, replacements and swaps that turn a into b. O(|a|·|b|).
int edit_distance(std::string_view a, std::string_view b) {
  std::vector<int> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::span<const Field> fields() {
  return kFields;
}

int used_components(const Model& model, const Field& field, int item) {
  return field.leaf == "geometry/scale" ? scale_components(model.shape_types[item]) : field.components;
}

std::vector<FieldSelection> select_fields(const Model& model, std::string_view path) {
  const std::vector<std::string_view> segments = split(path);
  std::vector<FieldSelection> found = match(model, segments);
  if (found.empty()) no_match(model, path, segments);
  return found;
}

std::string path_of(const Model& model, const FieldSelection& selection) {
  std::string path;
  for (const Group& group : kGroups) {
    if (group.group != selection.field->group) continue;
    path = std::string(group.name) + "/" + (model.*group.names)[selection.item] + "/";
  }
  if (selection.field->group == FieldGroup::terms) {
    const auto [coupling, joint] = model.coupling_terms[selection.item];
    path = "couplings/" + model.coupling_names[coupling] + "/" + std::string(selection.field->leaf) + "/" +
           model.joint_names[joint];
    return selection.component < 0 ? path : path + "/" + std::to_string(selection.component);
  }
  path += selection.field->leaf;
  if (selection.component < 0) return path;
  const auto names = component_names(*selection.field);
  // A scale's components are a radius or a length, not coordinates: by index.
  if (names.empty() || selection.field->leaf == "geometry/scale") {
    return path + "/" + std::to_string(selection.component);
  }
  return path + "/" + std::string(names[selection.component]);
}

bool any_requires_grad(const Model& model) {
  return std::ranges::any_of(fields(), [&](const Field& field) { return field.in(model).any_requires_grad(); });
}

void set_requires_grad(Model& model, std::string_view path, bool on) {
  for (const FieldSelection& selection : select_fields(model, path)) {
    selection.field->of(model).requires_grad(selection.item, on);
  }
  refresh_features(model);
}

void add_numbers(const Parameters& from, Parameters& to) {
  for (const Field& field : fields()) {
    const Parameter& source = field.in(from);
    Parameter& target = field.of(to);
    if (source.items() != target.items() || source.components() != target.components() ||
        source.worlds() != target.worlds()) {
      usage_error("numbers of " + std::string(field.leaf) + " for " + std::to_string(source.items()) + " items in " +
                  std::to_string(source.worlds()) + " worlds added to those for " + std::to_string(target.items()) +
                  " in " + std::to_string(target.worlds()));
    }
    for (int w = 0; w < source.worlds(); ++w) {
      for (int item = 0; item < source.items(); ++item) {
        for (int c = 0; c < source.components(); ++c) target.at(item, c, w) += source(item, c, w);
      }
    }
  }
}

std::string nearest_name(std::string_view word, std::span<const std::string> known) {
  const std::string own = folded(word);
  std::string best;
  int best_distance = 0;
  for (const std::string& candidate : known) {
    // One edit in every three characters is near; words of one or two characters only by case.
    const int limit = static_cast<int>(std::max(own.size(), candidate.size()) / 3);
    const auto difference = static_cast<std::ptrdiff_t>(own.size()) - static_cast<std::ptrdiff_t>(candidate.size());
    if (std::abs(difference) > limit) continue;
    const int distance = edit_distance(own, folded(candidate));
    if (distance <= limit && (best.empty() || distance < best_distance)) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace backdrive
