// The schema as docs/scenes.md.
#include <algorithm>
#include <string>

#include "scenes/schema.h"

namespace backdrive::scene {
namespace {

constexpr const char* kIntroduction = R"(# Scene files

<!-- Generated from scenes/schema_table.cpp and scenes/schema_model.cpp; tests/scenes/docs_test.cpp says how. Do not edit. -->

A scene is one YAML file that says what is simulated, for how long, from which state and under which controls, and what
`simctl optimize` may vary and shall make small. `simctl validate scene.yaml` checks one; `simctl schema` prints a JSON
Schema for editors. This swings a pendulum up:

```yaml
simulation: {time_step: 5 ms, duration: 2 s}
model:
  bodies:
    rod: {mass: 1, com: [0, 0, -0.5], inertia: [0.083, 0.083, 0.001]}
  joints:
    hinge: {type: revolute, parent: world, child: rod, axis: [0, 1, 0], damping: 0.05}
optimize:
  variables: [{control: hinge, knots: 40, bounds: [-5, 5], initial: {random: 1}}]
  loss:
    terminal: [{joint: hinge, position: 180 deg, velocity: 0, weight: 10}]
    running: [{control: hinge, weight: 1e-3}]
  goal: 0.1
```

## Conventions

- SI units, z up. Quaternions are (x, y, z, w). Inertias are about the centre of mass, in the body's axes.
- Names of bodies, joints, shapes and couplings are keys. Everything with a good default may be left out.
- A number may carry a unit, also within a list: `180 deg`, `5 ms`, `[10 cm, 0, 5 mm]`, `2.5 N*m/rad`. Units are products of
  UNITS,
  with powers `^2` and `^3`, and at most one quotient. Each key accepts the units of what it measures; what
  a joint's numbers measure depends on its type: angles and torques of revolute joints, lengths and forces of
  prismatic ones.
- Numbers are decimal and finite. `.inf`, `.nan`, `010` and `0x10` are refused; to say "no limit", leave the key out.
- Keys are unique. Aliases (`*name`) work, merge keys (`<<`) and tags do not. At most 64 levels, 320,000 keys and
  500,000 values, counted through aliases; 16 MiB, of which 6 MiB are no long lists of numbers.
- A file that a scene names lies inside the scene's folder.
- `--set path=value` replaces anything before it is checked: `--set simulation/duration=2`,
  `--set joints/hinge/damping=0.1`, `--set optimize/variables/0/knots=20`, `--set shapes/rod/geometry/scale/0=2cm`.
  `bodies`, `joints`, `shapes`, `couplings` and `gravity` are short for `model/…`, `variables` and `loss` for `optimize/…`. A `*` stands for
  every member that the scene has there: `--set 'joints/*/damping=0.1'`.

## Repeated parts

An entry with the key `repeat` - a body, joint, shape, robot, initial state, control, variable or loss term - stands for
several, in which `$(…)` is replaced by the value of the expression within. This is a chain of 32 links:

```yaml
model:
  bodies:
    link$(i): {repeat: {i: 0..31}, mass: $(50 - i) g, com: [0, 0, -0.05], inertia: [5e-5, 5e-5, 1e-5]}
  joints:
    joint0: {type: revolute, child: link0, axis: [0, 1, 0]}
    joint$(i):
      repeat: {i: 1..31}
      type: revolute
      parent: link$(i - 1)
      child: link$(i)
      frame: {position: [0, 0, -0.1]}
      axis: [$(i % 2), $(1 - i % 2), 0]
optimize:
  variables: [{repeat: {i: 0..31}, control: joint$(i), knots: 6}]
  loss:
    terminal: [{body: link31, position: [1, 0, -2.5]}]
    running: [{repeat: {i: 0..31}, control: joint$(i), weight: 1e-3}]
```

- `{i: 0..31}`: whole numbers, both ends included. `{side: [left, right]}`: numbers or words, one after the other. Of several
  names every combination, the last one fastest: `{i: 0..3, j: 0..3}`. For values that belong together a list, one copy
  an item: `[{leg: left, y: 0.1}, {leg: right, y: -0.1}]`.
- Expressions are of numbers, these names, `pi`, `+ - * / %`, powers (`^`), brackets and `abs`, `cos`, `floor`, `sin`, `sqrt`;
  `%` leaves what is not negative where the divisor is not. They stand anywhere in values, units behind them, and in names
  of bodies, joints, shapes, couplings and robots, where they are whole numbers. A word goes in as it is.
- A body's shapes may be repeated within a body that is repeated, and use its names too.
- The copies take the place of the entry in order. Everything else knows them alone: `--set joints/joint7/damping=0.1`,
  results, `simctl convert`. Before there are copies, `--set` may change the entry and their number:
  `--set 'bodies/link$(i)/repeat/i=0..7'`.

## Robots from files

A scene goes on from URDF and MJCF files ([robots.md](robots.md)); [gallery.md](gallery.md) has larger ones. Two arms of one file:

```yaml
model:
  robots:
    left: {file: arm.urdf, frame: {position: [0, 0.5, 0]}}
    right: {file: arm.urdf, frame: {position: [0, -0.5, 0], orientation: {axis: [0, 0, 1], angle: 180 deg}}}
  joints:
    $(arm)_elbow: {repeat: {arm: [left, right]}, drive: {stiffness: 200, damping: 20}}
controls:
  left_elbow: {target_position: 0.5}
```

## Mistakes

Every mistake is reported with file, line, column, the value and what was expected, and `simctl` exits with 3. All are told
at once (up to 100), in the order of lines: those of the scene, of robot files, of what they include, of tables and meshes,
and of `--set`. Not told is what may follow from another mistake: what is said of a joint whose type is misspelt, names
that may be in a file that could not be read. With `--json` they are objects: `error/mistakes`, each with `file`, `line`, `column`, `path`, `value`,
`expected` and, where a known name is near, `did_you_mean`.
)";

/// The map among the options of a choice, for the documentation of its keys.
const Schema* map_within(const Schema& schema) {
  if (schema.kind == SchemaKind::map) return &schema;
  if (schema.kind != SchemaKind::choice) return nullptr;
  for (const SchemaPtr& option : schema.options) {
    if (option->kind == SchemaKind::map) return option.get();
  }
  return nullptr;
}

std::string code(const std::string& text) {
  return "`" + text + "`";
}

std::string counts(const std::vector<int>& lengths) {
  std::string out;
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (i > 0) out += i + 1 < lengths.size() ? ", " : " or ";
    out += std::to_string(lengths[i]);
  }
  return out;
}

std::string bound_text(double value) {
  const std::string text = std::to_string(static_cast<long long>(value));
  return text;
}

std::string range(const Schema& schema) {
  std::string out;
  if (schema.minimum) out += (schema.exclusive ? " > " : " ≥ ") + bound_text(*schema.minimum);
  if (schema.maximum) out += std::string(schema.minimum ? "," : "") + " ≤ " + bound_text(*schema.maximum);
  return out;
}

std::string value_words(const Schema& schema) {
  switch (schema.kind) {
    case SchemaKind::number:
      return "number" + range(schema) + (schema.allow_auto ? ", or `auto`" : "");
    case SchemaKind::integer:
      return "whole number" + range(schema);
    case SchemaKind::boolean:
      return "`true`, `false`";
    case SchemaKind::word: {
      std::string out;
      for (const std::string& word : schema.words) out += (out.empty() ? "" : ", ") + code(word);
      return out;
    }
    case SchemaKind::text:
      return "text";
    case SchemaKind::name:
      return "name";
    case SchemaKind::vector:
      return schema.lengths.empty() ? "list of numbers" : counts(schema.lengths) + " numbers" + range(schema);
    case SchemaKind::list:
      return "list, one " + schema.entry_words + " an item";
    case SchemaKind::map:
      return "map";
    case SchemaKind::names:
      return "map from " + schema.entry_words + " names";
    case SchemaKind::choice:
    case SchemaKind::variants:
      break;
  }
  std::string out;
  for (size_t i = 0; i < schema.options.size(); ++i) {
    if (i > 0) out += ", or ";
    if (schema.kind == SchemaKind::variants) {
      std::string keys;
      for (const Key& key : schema.options[i]->keys) keys += (keys.empty() ? "" : ", ") + key.name;
      out += "map of " + code(keys);
    } else {
      out += value_words(*schema.options[i]);
    }
  }
  return out;
}

Dimension dimension_within(const Schema& schema) {
  if (schema.kind == SchemaKind::choice) return dimension_within(*schema.options[0]);
  return schema.dimension;
}

bool has_unit(const Schema& schema) {
  return schema.kind == SchemaKind::number || schema.kind == SchemaKind::vector ||
         (schema.kind == SchemaKind::choice && dimension_within(schema) != Dimension::none);
}

std::string unit_words(const Schema& schema) {
  if (!has_unit(schema)) return "";
  const Dimension dimension = dimension_within(schema);
  return dimension == Dimension::varied ? "its own" : si_unit(dimension);
}

/// Adds the rows of keys that have none yet.
void append_rows(const Schema& map, const std::string& prefix, std::vector<std::string>& rows) {
  for (const Key& key : map.keys) {
    const Schema& schema = *key.schema;
    std::string fallback = key.required ? "required" : key.default_words;
    if (!key.default_text.empty()) fallback = code(key.default_text);
    const std::string start = "| `" + prefix + key.name + "` | ";
    const std::string row =
        start + value_words(schema) + " | " + unit_words(schema) + " | " + fallback + " | " + key.doc + " |\n";
    if (std::ranges::none_of(rows, [&](const std::string& other) { return other.starts_with(start); })) {
      rows.push_back(row);
    }
    const Schema* below = map_within(schema);
    if (below && below->title.empty()) append_rows(*below, prefix + key.name + "/", rows);
  }
}

/// What is said of all maps of one title.
struct Section {
  std::string title, doc;
  std::vector<std::string> rows;
};

std::string text_of(const Section& section) {
  const size_t comma = section.title.find(',');
  const bool is_path = section.title.find(' ') == std::string::npos || comma != std::string::npos;
  std::string out = "\n## " + (is_path ? code(section.title.substr(0, comma)) : section.title) +
                    (comma == std::string::npos ? "" : section.title.substr(comma)) + "\n\n";
  if (!section.doc.empty()) out += section.doc + "\n\n";
  out += "| key | value | unit | default | meaning |\n| --- | --- | --- | --- | --- |\n";
  for (const std::string& row : section.rows) out += row;
  return out;
}

/// Maps of one title, as the terms of a loss's lists, share a section. The first that has a key says what it may be.
void append_sections(const Schema& schema, std::vector<Section>& sections) {
  if (schema.kind == SchemaKind::map && !schema.title.empty()) {
    auto section = std::ranges::find(sections, schema.title, &Section::title);
    if (section == sections.end()) section = sections.insert(section, {schema.title, schema.doc, {}});
    append_rows(schema, "", section->rows);
  }
  for (const Key& key : schema.keys) append_sections(*key.schema, sections);
  if (schema.entry) append_sections(*schema.entry, sections);
  for (const SchemaPtr& option : schema.options) append_sections(*option, sections);
}

}  // namespace

std::string scenes_markdown() {
  std::string out = kIntroduction;
  const std::string units = "UNITS";
  out.replace(out.find(units), units.size(), units_markdown());
  std::vector<Section> sections;
  append_sections(scene_schema(), sections);
  for (const Section& section : sections) out += text_of(section);
  return out;
}

}  // namespace backdrive::scene
