#pragma once
// Reading a checked document: views that know schema, path and place, and the readers of its parts.
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "autodiff/problem/problem.h"
#include "scenes/scene.h"
#include "scenes/schema.h"

namespace backdrive::scene {

/// A value of the document with the schema that describes it. Absent keys read as their default; a
/// view of an absent key without a default is false. Reading what was told to be wrong leaves off (Mistakes).
class View {
 public:
  View(const Sources& sources, NodePtr node, const Schema& schema, std::string path)
      : sources_(&sources), node_(std::move(node)), schema_(&schema), path_(std::move(path)) {}

  explicit operator bool() const { return node_ != nullptr; }
  /// The value of a key of a map, or of the map among a choice or variants; its default when
  /// absent.
  View operator[](std::string_view key) const;
  /// Whether the document itself has the key.
  bool given(std::string_view key) const { return node_ && read().find(key); }
  std::vector<View> items() const;            ///< of a list
  std::vector<View> items_or_itself() const;  ///< of a list, or a scalar in place of a list of one
  struct Named;
  std::vector<Named> entries() const;  ///< of names

  NodeKind kind() const { return node_ ? read().kind : NodeKind::null; }
  /// A number in SI units; the dimension is the schema's unless given.
  double number(const JointType* joint = nullptr) const { return number(dimension(), joint); }
  double number(Dimension dimension, const JointType* joint) const;
  /// A list of numbers, or a single one as a list of one.
  std::vector<double> numbers(const JointType* joint = nullptr) const { return numbers(dimension(), joint); }
  std::vector<double> numbers(Dimension dimension, const JointType* joint) const;
  /// The i-th number of a list, or a single one.
  double number_at(std::size_t i, Dimension dimension, JointType joint) const;
  /// Whether it is a list of lists.
  bool is_rows() const { return node_ && !read().list.empty() && node_->list[0]->kind == NodeKind::list; }
  int integer() const { return static_cast<int>(number()); }
  bool flag() const { return read().text == "true"; }
  const std::string& text() const { return read().text; }

  const std::string& path() const { return path_; }
  const Sources& sources() const { return *sources_; }
  const NodePtr& node() const { return node_; }
  /// Throws Error (input) about this value.
  [[noreturn]] void refuse(const std::string& expected, const std::string& hint = {}) const;

 private:
  const Schema& option() const;
  const Node& read() const;
  Dimension dimension() const { return option().dimension; }

  const Sources* sources_;
  NodePtr node_;
  const Schema* schema_;
  std::string path_;
};

struct View::Named {
  std::string name;
  View value;
  Place place;  ///< of the name
};

/// The document with the overrides in place whose paths are of the kind asked for and that are right; the given tree is
/// not changed. Throws Error (input) where it becomes too large.
NodePtr apply_overrides(const NodePtr& root, std::span<const Override> overrides, const Sources& sources,
                        Mistakes& mistakes, const std::function<bool(std::string_view)>& which = nullptr);

/// The name of a body's i-th listed shape.
std::string listed_shape_name(const std::string& body, const Node& list, size_t i);

/// Where a document holds its shapes, as it was when asked. O(values).
class ShapeLocations {
 public:
  explicit ShapeLocations(const Node& root);
  /// {"model", "shapes", name} or {"model", "bodies", body, "shapes", index}; empty when there is none of that name.
  std::vector<std::string> of(const std::string& name) const;
  /// The document's path of a model path ("bodies/pole/mass", "shapes/foot/density", "gravity"), as segments.
  std::vector<std::string> of_path(std::string_view model_path) const;
  /// Wherever they are listed.
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::pair<std::string, size_t>> listed_;  ///< body and index
  std::unordered_set<std::string> apart_;
};

/// The keys and indices of "a/b/0", from the outermost on.
std::vector<std::string> split_path(std::string_view path);
/// What a document has at a path of keys and indices; null: nothing.
NodePtr value_at(const NodePtr& root, const std::vector<std::string>& path);

/// Changes of a document: the tree that was given stays as it is, and of it only changed paths are copied, once.
class Edits {
 public:
  Edits(NodePtr root, const Sources& sources);
  /// Throws Error (input) for a path that the schema does not have; `place` is named in it.
  void set(const std::vector<std::string>& path, const NodePtr& value, Place place);
  const NodePtr& root() const { return root_; }
  const Sources& sources() const { return sources_; }

  /// A node of the document that may be changed: a copy, or the one that was made before.
  NodePtr own(const NodePtr& node);
  NodePtr made(NodePtr node);

 private:
  const Sources& sources_;
  NodePtr root_;
  std::unordered_set<NodePtr> own_;
};

/// What the scene names, but says so wrongly that what refers to it cannot be judged.
struct UnreadParts {
  std::unordered_set<std::string> joints, couplings;
  bool contacts = false;  ///< which shapes may touch
};

/// As much of the model as there is behind mistakes, with all names that are known. `directory`: of the scene file.
Model read_model(const View& root, const std::filesystem::path& directory, Mistakes& mistakes, UnreadParts& unread);

/// Refuses a name that is not among `known`; leaves off where not all names of the kind ("bodies") are.
[[noreturn]] void refuse_name(const View& name, const std::string& expected, std::string_view kind,
                              const std::vector<std::string>& known, const Mistakes& mistakes);

/// Hull of the vertices of a mesh file, and the heights of a graymap from 0 (black) to 1 (white). The same file gives
/// the same object, in this and other models, for as long as one has it and the file stays as it is. Throws Error
/// (input) about what names the file, or about a line of the file.
std::shared_ptr<const ConvexMesh> load_mesh(const std::filesystem::path& directory, const View& file);
std::shared_ptr<const HeightField> load_height_field(const std::filesystem::path& directory, const View& file);
/// The same of numbers in the scene. A hull's own vertices give the same hull, bit for bit.
std::shared_ptr<const ConvexMesh> listed_mesh(const View& vertices);
std::shared_ptr<const HeightField> listed_height_field(const View& heights);

/// A quantity of a joint or body whose record a loss follows.
struct RecordedQuantity {
  std::vector<std::string> owners;  ///< whose columns they may be in a file, the best first
  std::string quantity;             ///< "position", "velocity", "orientation"
  std::size_t components;           ///< how many make one value
  Dimension dimension;
  const JointType* joint;  ///< as in unit_fits; null: none
  bool turns;              ///< unit quaternions
  std::string axis = {};   ///< of a joint's one component among several: its name, behind the quantity's in columns
  std::size_t part = 0, parts = 1;  ///< and which of how many numbers it is in rows of a scene
};

class Table;  ///< read_table.cpp

/// What a word for a channel stands for: torque and force are efforts.
ControlChannel channel_of(std::string_view word);

/// What a field of the model measures, from the schema.
Dimension dimension_of(const Field& field);
/// And a control channel of a joint.
Dimension dimension_of(ControlChannel channel);

/// Makes numbers near the unit sphere a unit quaternion; false, and leaves them, where they are not. One that is unit
/// to rounding stays as it is, so that written values read back to the same bits.
bool make_unit(std::array<double, 4>& q);

/// A frame's orientation: unit quaternion (x, y, z, w).
std::array<double, 4> read_orientation(const View& view);

/// What is expected in place of a joint that closes a loop, where initial states are given or varied.
constexpr const char* kJointOfTheTree =
    "a joint of the tree (this one closes a loop and begins where the others put its bodies)";

/// Everything that refers to the model by name.
class ProblemReader {
 public:
  /// All go on behind mistakes.
  ProblemReader(const View& root, std::filesystem::path directory, Problem& problem, Mistakes& mistakes,
                const UnreadParts& unread);
  void read_simulation();
  void read_initial_state();
  void read_controls();
  void read_requires_grad();
  /// Refuses variables and paths of requires_grad that the loss cannot depend on; of a problem without mistakes.
  void check_dependence();
  void read_variables();
  void read_loss();
  void read_options();
  RecordedColumns read_recorded_columns();

 private:
  /// Calls read() of the value of one of the scene's keys, as far as it can be read.
  template <class Read>
  void with_part(const char* key, const Read& read);
  /// Leaves off where steps and their length are not known.
  const Simulation& simulation() const;
  /// Leaves off where the joint's limits were told to be wrong.
  void need_limits(int joint) const;
  [[noreturn]] void refuse_path(const View& path, const Error& error) const;
  int moving_joint(const std::string& name, Place place, const std::string& path) const;
  int moving_joint(const View& name) const { return moving_joint(name.text(), name.node()->place, name.path()); }
  /// The numbers of one quantity of a joint among all its components.
  void read_components(const View& view, int joint, std::string_view quantity,
                       std::span<const JointComponent> components, double* values) const;
  int body(const View& view) const;
  /// What has controls: a joint that moves, or a coupling that is not held.
  int controlled(const std::string& name, Place place, const View& at) const;
  int controlled(const View& name) const { return controlled(name.text(), name.node()->place, name); }
  /// Where the joints that couplings hold begin, if the scene does not say so.
  void follow_couplings(std::vector<bool> positions, std::vector<bool> velocities);
  void check_channel(int controlled, ControlChannel channel, const View& view) const;
  /// Of one joint; `positions` and `velocities` learn whether it was said.
  void read_start(const std::string& name, const View& view, Place place, std::vector<bool>& positions,
                  std::vector<bool>& velocities);
  void read_control(const std::string& name, const View& view, Place place);
  /// A joint's or coupling's number, or one of several: where it stands among them, and how columns and paths name it.
  struct NamedComponent {
    int index;
    JointComponent component;

    bool has_unit = true;  ///< false: of a coupling of what turns and what slides

    /// Of what turns or what slides, or null.
    const JointType* unit() const {
      static constexpr JointType turns = JointType::revolute, slides = JointType::prismatic;
      if (!has_unit) return nullptr;
      return component.turns ? &turns : &slides;
    }
  };
  /// The numbers of a channel by the word for it; throws where there are none. The word is that of `view`.
  std::vector<NamedComponent> channel_parts(int controlled, const std::string& word, const View& view) const;
  /// "joint 'hip', which is ball", for messages.
  std::string described(int controlled) const;
  /// Those that `key` of `view` (`component`) asks for: one, or all.
  static std::vector<NamedComponent> asked_parts(std::vector<NamedComponent> parts, const View& view);
  void read_channel(int controlled, const std::string& word, const View& view);
  ControlSignal read_signal(int controlled, ControlChannel channel, const NamedComponent& part, const View& view) const;
  /// A CSV file inside the scene's folder; what is wrong in its rows is added to the mistakes. Good until the next: the
  /// last is kept, since what names a file often does so again and again, and no more of them, since they may be large.
  const Table& table_of(const View& file) const;
  /// A record from such a file, or from numbers in the scene. Leaves off where rows are wrong.
  MotionRecord read_record(const View& view, const RecordedQuantity& what) const;
  /// The first of `columns` that the file has.
  std::vector<double> read_column(const View& file, std::span<const std::string> columns, Dimension dimension,
                                  const JointType* joint) const;
  void check_knots(size_t knots, const View& view) const;
  void read_variable(const View& view);
  void read_control_variable(const View& view);
  void read_initial_state_variable(const View& view);
  /// How many numbers a variable is; which part of an entry that is several variables, each with its initial value.
  struct Extent {
    size_t numbers = 1, part = 0, parts = 1;
  };
  void add_variable(Variable variable, Dimension dimension, const JointType* joint, const Extent& extent,
                    const View& view);
  /// A tie to variables that stand before or behind it, by their names.
  struct ReadTie {
    struct Term {
      double factor = 1;
      std::vector<std::string> of = {};
    };
    std::size_t variable;
    std::vector<Term> terms;
    View view;
  };
  void read_tie(Variable& variable, Dimension dimension, const JointType* joint, const View& view);
  /// A part of a tie between its + and −: adds to the tie's constant, or to the terms.
  void read_tie_term(std::string_view text, double sign, Dimension dimension, const JointType* joint, Tie& tie,
                     ReadTie& to) const;
  void resolve_ties();
  void resolve_tie(const ReadTie& tie, std::span<const std::string> names);
  /// How many numbers a variable is, but a control.
  int tie_numbers(const Variable& of) const;
  void read_initial(Variable& variable, Dimension dimension, const JointType* joint, const Extent& extent,
                    const View& view) const;
  /// Whole steps until a time of the run.
  int steps_until(const View& time) const;
  // When a term is scored.
  void time_running_term(const View& view, LossTerm& term) const;
  void time_waypoint(const View& view, LossTerm& term) const;
  /// The pair of two shapes that may touch; whether the model has them the other way round.
  int contact_pair(const View& view, bool& swapped) const;
  /// Of the position that is a component of a joint.
  bool on_circle(const View& view, int joint, const NamedComponent& part) const;
  /// What a body's columns are called in a file: by its name, or that of the free joint that is where the body is.
  std::vector<std::string> record_owners(int body) const;
  /// Makes a running term follow a record: scored are steps within the record and the term's own.
  void follow(const View& target, const RecordedQuantity& what, LossTerm& term) const;
  void read_term(const View& view, LossTerm term);
  void read_control_term(const View& view, LossTerm term);
  void read_contact_term(const View& view, LossTerm term);
  void read_distance_term(const View& view, LossTerm term);
  /// A quantity of a joint: a term for each of its numbers.
  void read_joint_quantity(const View& view, LossQuantity of, const RecordedQuantity& what, const LossTerm& term,
                           const std::vector<NamedComponent>& parts);
  void read_limit_margin(const View& view, LossTerm term);
  /// One quantity of a joint or body: its target or range, or a record, and its weight.
  void read_quantity_term(const View& view, const RecordedQuantity& what, LossTerm term, const std::string& owner);
  void read_joint_term(const View& view, LossTerm term);
  void read_body_term(const View& view, LossTerm term);
  /// `name`: behind that of the list.
  void add_term(LossTerm term, const std::string& name);

  View root_;
  std::filesystem::path directory_;
  Problem& problem_;
  std::vector<int> link_of_joint_;
  std::vector<std::pair<std::string, int>> varied_;  // names and components so far
  std::vector<View> variable_views_;                 // of problem_.variables
  std::vector<ReadTie> ties_;
  std::unordered_set<std::string> term_names_;         // of problem_.loss
  std::unordered_map<std::string, int> next_of_name_;  // what tells the next term of a name apart
  mutable std::shared_ptr<const Table> table_;         // of the file that was asked for last
  mutable std::string table_file_;
  Mistakes& mistakes_;
  const UnreadParts& unread_;
  bool has_steps_ = false;
  bool has_variables_ = true;  // all that the scene asks for
};

}  // namespace backdrive::scene
