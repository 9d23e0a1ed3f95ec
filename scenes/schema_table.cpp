// The tree of everything a scene may say. Units, defaults and meanings stand here and in
// schema_model.cpp, and nowhere else.
#include <map>
#include <mutex>

#include "scenes/schema_make.h"

namespace backdrive::scene {
namespace {

SchemaPtr simulation() {
  auto schema = titled(
      map({
          optional("integrator", word({"featherstone", "semi_implicit"}), "featherstone",
                   "How a step is taken: `featherstone` moves trees in the coordinates of their joints; "
                   "`semi_implicit` moves bodies by themselves, held together by their joints in any graph, "
                   "loops included."),
          optional("time_step", positive(Dimension::time), "0.004166666666666667",
                   "Length of a step; the default is 1/240 s."),
          absent("duration", positive(Dimension::time), "1 s", "Length of the run, rounded to whole steps."),
          absent("steps", integer(1, 10'000'000), "from `duration`",
                 "Length of the run in steps, instead of `duration`."),
          optional("substeps", integer(1, 10'000), "1",
                   "The motion is computed in so many shorter steps within each, for stiff contact of light parts "
                   "and for what turns fast: controls are held over `time_step`, tables have a row for each. "
                   "Forces and efforts in tables are means over it; losses see every substep, gradients all."),
      }),
      "simulation", "How time goes on.");
  schema->exclusive_keys = {{"duration", "steps"}};
  return schema;
}

SchemaPtr bounds() {
  return vector_or_none(Dimension::varied, {2});
}

// The numbers of a variable carry the unit of what it varies, which only the reader knows
// (Dimension::varied).
std::vector<Key> variable_keys() {
  const SchemaPtr value = number(Dimension::varied);
  return {
      optional("bounds", bounds(), "[none, none]", "Lower and upper bound of each number, or `none`."),
      absent("initial",
             choice({value, vector(Dimension::varied, {}),
                     map({
                         absent("value", choice({value, vector(Dimension::varied, {})}),
                                "what the scene says otherwise", "Value to start from: one, or one per number."),
                         optional("random", at_least(0, Dimension::varied), "0",
                                  "Each start, but the first of several, adds normal numbers of this "
                                  "standard deviation."),
                     })}),
             "what the scene says otherwise", "Value to start from: one, or one per number, or a map."),
      optional("scale", positive(Dimension::varied), "1", "The optimiser works on value / scale."),
      absent(
          "same_as", text(), "",
          "Ties it to another variable, in place of numbers of its own: the other one's name, as results have it, with "
          "or without a factor and a constant: `control/left`, `-1 * control/left`, "
          "`2 * shapes/rod/geometry/scale/1 + 1 cm`; or a sum of products of several variables and numbers (SI), "
          "number "
          "by number: `0.5 * control/left + control/right`, `bodies/rod/mass * joints/hinge/armature`."),
      repeated(),
  };
}

SchemaPtr with_keys(std::vector<Key> first, std::string title, std::string doc) {
  for (Key& key : variable_keys()) first.push_back(std::move(key));
  return titled(map(std::move(first)), std::move(title), std::move(doc));
}

SchemaPtr variable() {
  return variants({
      with_keys(
          {
              required("control", name(), "A joint."),
              optional("channel", channel_schema(), "effort",
                       "What of it; the targets need a `drive`, `torque` is of ball and free joints, `force` of free "
                       "ones."),
              component_key("each is a variable"),
              absent("knots", integer(1, 10'000'000), "one per step", "How many numbers, spread evenly over the run."),
              optional("interpolation", word({"linear", "hold"}), "linear", "Between knots."),
          },
          "optimize/variables/<index>, a control", "A control signal of a joint."),
      with_keys(
          {
              required("initial_state", name(), "A joint."),
              required("quantity", word({"position", "velocity", "angular_velocity"}), "What of it."),
              component_key("each is a variable"),
          },
          "optimize/variables/<index>, an initial state", "Where a joint begins, or how fast."),
      with_keys(
          {
              required("parameter", name(),
                       "Path of model parameters: `joints/hinge/damping`, `bodies/*/mass`, "
                       "`gravity`; `*` stands for every name, "
                       "and each parameter found is a variable."),
          },
          "optimize/variables/<index>, a parameter", "Parameters of the model."),
  });
}

SchemaPtr weights(const std::vector<std::string>& quantities) {
  std::vector<Key> keys;
  for (const std::string& quantity : quantities) {
    keys.push_back(optional(quantity, at_least(0, Dimension::none), "1", "Weight of `" + quantity + "`."));
  }
  return choice({at_least(0, Dimension::none), map(std::move(keys))});
}

/// The lists of a loss: what is scored at the end, over a part of the run, or at a time.
enum class LossList { terminal, running, waypoints };

/// Keys of a term that say how its errors count, and when.
std::vector<Key> when_keys(LossList of) {
  if (of == LossList::running) {
    return {
        optional("over", word({"integral", "least", "greatest"}), "integral",
                 "`running`: what of the time between `from` and `until` counts: its integral, or the step where "
                 "the error is least (a closest approach) or greatest (a peak), alone."),
        optional("from", at_least(0, Dimension::time), "0", "`running`: scored from here on, rounded to whole steps."),
        absent("until", positive(Dimension::time), "the end of the run",
               "`running`: and until here, rounded to whole steps.")};
  }
  if (of == LossList::waypoints) {
    return {required("at", positive(Dimension::time),
                     "`waypoints`: the time, after the start and no later than the end of the run, rounded to whole "
                     "steps: the state then, or the control or force during the step that ends then.")};
  }
  return {};
}

/// What a term may be compared with over time in place of one target; `values`: rows of a record.
SchemaPtr recorded(SchemaPtr values) {
  const auto of = [](std::vector<Key> keys) {
    return titled(
        map(std::move(keys)), "optimize/loss/running/<index>/<quantity>, a record",
        "A motion to follow, in place of one target: values at times (from the start of the run), linear in "
        "between, orientations on the shorter way. Scored are the steps whose ends lie within the record, and "
        "between `from` and `until`. The columns of a file are those of `trajectory.csv`: `time`, and "
        "`<joint>/position`, `<joint>/velocity`; of a body `<body>/position/x`, `…/y`, `…/z`, and "
        "`<body>/orientation/x`, … `…/w`, where the name of a free joint whose frame is the world's "
        "does as well as that of the body it carries. Columns that are not asked for may hold anything.");
  };
  return variants(
      {of({required(
           "file", text(),
           "Instead of `times` and `values`: CSV file inside the scene's folder, its header in the first line.")}),
       of({required("times", vector(Dimension::time, {}), "Instead of `file`: times of the rows, increasing."),
           required("values", std::move(values), "The rows: a number each, or a list of 3 or 4.")})});
}

/// A target, or where the list is `running` a record.
SchemaPtr target(LossList of, SchemaPtr constant, SchemaPtr values) {
  if (of != LossList::running) return constant;
  std::vector<SchemaPtr> options{constant};
  if (constant->kind == SchemaKind::choice) options = constant->options;
  const SchemaPtr record = recorded(std::move(values));
  for (SchemaPtr& option : options) {
    if (option->kind != SchemaKind::variants) continue;
    std::vector<SchemaPtr> maps = option->options;
    maps.insert(maps.end(), record->options.begin(), record->options.end());
    option = variants(std::move(maps));
    return choice(std::move(options));
  }
  options.push_back(record);
  return choice(std::move(options));
}

/// A target, or a range in which nothing is scored: of a number, or of each of three.
SchemaPtr target_or_range(const SchemaPtr& constant) {
  const auto of = [](std::vector<Key> keys) {
    return titled(map(std::move(keys)), "optimize/loss/<list>/<index>/<quantity>, a range",
                  "What is scored is how far the quantity is beyond the range, in place of how far it is from a "
                  "target; of a vector for each of its numbers, where `none` is no end.");
  };
  std::vector<SchemaPtr> options{constant};
  if (constant->kind == SchemaKind::choice) options = constant->options;
  options.push_back(variants({of({required("at_least", constant, "Lower end of the range."),
                                  absent("at_most", constant, "none", "Upper end of the range.")}),
                              of({required("at_most", constant, "Upper end of the range.")})}));
  return choice(std::move(options));
}

SchemaPtr loss_term(LossList of, std::vector<Key> keys, std::string what, std::string doc) {
  keys.push_back(optional("measure", word({"squared", "absolute"}), "squared",
                          "What an error costs, times the weight: its square or its size (of vectors the length)."));
  for (Key& key : when_keys(of)) keys.push_back(std::move(key));
  keys.push_back(repeated());
  return titled(map(std::move(keys)), "optimize/loss/<list>/<index>, a " + std::move(what), std::move(doc));
}

/// Rows of so many numbers.
SchemaPtr rows(Dimension dimension, int numbers) {
  return list(vector(dimension, {numbers}), "row");
}

/// A number, or of a joint that has several as many, of which some may be `none`.
SchemaPtr number_or_each(Dimension dimension) {
  return choice({number(dimension), vector_or_none(dimension, {})});
}

SchemaPtr joint_term(LossList of) {
  const Dimension position = Dimension::joint_position, velocity = Dimension::joint_velocity,
                  effort = Dimension::joint_effort, turning = Dimension::angular_velocity;
  std::vector<std::string> quantities{"position", "velocity", "limit_margin", "orientation", "angular_velocity"};
  const auto each = [&](Dimension dimension) { return target_or_range(number_or_each(dimension)); };
  const SchemaPtr values = choice({vector(Dimension::varied, {}), list(vector(Dimension::varied, {}), "row")});
  std::vector<Key> keys{
      required("joint", name(), "A joint."),
      absent("position", target(of, each(position), values), "not scored",
             "Where it should be: a target or a range; `running`: or a record. Of a joint with several numbers a list "
             "of as many, each a term of its own, `none` for what is not scored."),
      absent("velocity", target(of, each(velocity), values), "not scored",
             "How fast it should move: a target or a range; `running`: or a record. Several numbers as `position`."),
      absent("limit_margin", at_least(0, position), "not scored",
             "How far inside its limits it should stay: scored is what is missing of that."),
      absent("orientation", target(of, orientation_schema(), rows(Dimension::none, 4)), "not scored",
             "Ball and free: how the child should be turned against the joint; `running`: or a record. The square of "
             "the error is that of a body's `orientation`."),
      absent("angular_velocity", target(of, target_or_range(vector_or_none(turning, {3})), rows(turning, 3)),
             "not scored", "Ball and free, as `velocity`; axes are those of `initial_state`."),
  };
  // In no state does an effort act.
  if (of != LossList::terminal) {
    quantities.insert(quantities.end(), {"effort", "torque", "force", "power"});
    keys.push_back(absent("effort", each(effort), "not scored",
                          "What should act at it, a target or a range, of what `part` says. Several numbers as "
                          "`position`."));
    keys.push_back(absent("torque", target_or_range(vector_or_none(effort, {3})), "not scored",
                          "The same of a ball or free joint."));
    keys.push_back(
        absent("force", target_or_range(vector_or_none(effort, {3})), "not scored", "The same of a free joint."));
    keys.push_back(
        absent("power", target_or_range(number(Dimension::power)), "not scored",
               "The power of that: effort times velocity; its integral is the work. Of a joint of one degree "
               "of freedom."));
    keys.push_back(optional(
        "part", word({"actuator", "command", "drive", "spring", "damping", "friction", "limit", "total"}), "actuator",
        "Of efforts and `power`: the command and the drive together, within the drive's limit; one part; or all."));
  }
  keys.push_back(optional("weight", weights(quantities), "1", "Weight of all, or a map with one for each."));
  keys.push_back(absent("on_circle", boolean(), "true for an angle without limits and range",
                        "Score 2 − 2 cos(q − target), so that whole turns do not count, instead of "
                        "(q − target)²."));
  return loss_term(of, std::move(keys), "joint", "Weight times the squared error of a joint.");
}

SchemaPtr body_term(LossList of) {
  return loss_term(
      of,
      {
          required("body", name(), "A body."),
          absent("position",
                 target(of, target_or_range(vector_or_none(Dimension::length, {3})), rows(Dimension::length, 3)),
                 "not scored",
                 "Where its point should be, world axes, `none` for what is not scored, or a range; `running`: or a "
                 "record."),
          absent("velocity",
                 target(of, target_or_range(vector_or_none(Dimension::velocity, {3})), rows(Dimension::velocity, 3)),
                 "not scored", "How fast its point should move, likewise."),
          absent("orientation", target(of, orientation_schema(), rows(Dimension::none, 4)), "not scored",
                 "How it should be turned; `running`: or a record."),
          absent("angular_velocity",
                 target(of, target_or_range(vector_or_none(Dimension::angular_velocity, {3})),
                        rows(Dimension::angular_velocity, 3)),
                 "not scored", "How fast it should turn, world axes, as `position`."),
          optional("point", vector(Dimension::length, {3}), "[0, 0, 0]", "Which point of it, in its own axes."),
          optional("weight", weights({"position", "velocity", "orientation", "angular_velocity"}), "1",
                   "Weight of all, or a map with one for each."),
      },
      "body",
      "Weight times the squared distance of a point (m²), the squared angle of an orientation (rad²), or those of "
      "velocities.");
}

SchemaPtr distance_term(LossList of) {
  return loss_term(of,
                   {
                       required("distance", list(name(), "body"), "Two bodies, or a body and `world`."),
                       optional("points", list(vector(Dimension::length, {3}), "point"), "[[0, 0, 0], [0, 0, 0]]",
                                "Which points of them, each in its body's axes."),
                       optional("target", target_or_range(at_least(0, Dimension::length)), "0",
                                "How far they should be from one another: a distance or a range."),
                       optional("weight", at_least(0, Dimension::none), "1", "Weight."),
                   },
                   "distance", "Weight times the squared error of the distance between two points (m²).");
}

SchemaPtr control_term(LossList of) {
  return loss_term(of,
                   {
                       required("control", name(), "A joint."),
                       optional("channel", channel_schema(), "effort", "What of it."),
                       component_key("each is a term"),
                       optional("target", target_or_range(number(Dimension::varied)), "0",
                                "What it should be, or a range; unit of the channel."),
                       optional("weight", at_least(0, Dimension::none), "1", "Weight."),
                   },
                   "control", "Weight times the squared control.");
}

SchemaPtr contact_term(LossList of) {
  return loss_term(of,
                   {
                       required("contact", list(name(), "shape"), "Two shapes that may touch."),
                       optional("force", target_or_range(vector_or_none(Dimension::joint_effort, {3})), "[0, 0, 0]",
                                "The force on the first one that is sought, world axes, `none` for what is not "
                                "scored; or a range."),
                       optional("weight", at_least(0, Dimension::none), "1", "Weight."),
                   },
                   "contact", "Weight times the squared difference of a contact's force (N²) from what is sought.");
}

Key loss_list(LossList of, std::string key, std::string doc) {
  std::vector<SchemaPtr> terms{joint_term(of), body_term(of), distance_term(of)};
  // No step is taken, and no force acts, at the end.
  if (of != LossList::terminal) terms.insert(terms.end(), {control_term(of), contact_term(of)});
  return optional(std::move(key), list(variants(std::move(terms)), "loss term"), "[]", std::move(doc));
}

SchemaPtr gradient() {
  return titled(
      map({
          absent("window", integer(1, 10'000'000), "the whole run", "Steps of a window, counted from the first."),
          optional("cut", boolean(), "false",
                   "No gradient passes from a window to the one before it (truncated backpropagation through time)."),
          absent("clip", positive(Dimension::none), "none",
                 "Largest norm of what a window contributes, in each world: the gradients of its controls and of the "
                 "state "
                 "that it begins with. A larger one is scaled down; `history.csv` counts how many were."),
      }),
      "optimize/gradient", "Where gradients of long runs are cut or clipped.");
}

SchemaPtr optimize() {
  return titled(
      map({
          optional("variables", list(variable(), "variable"), "[]", "What may be changed."),
          optional(
              "loss",
              map({
                  loss_list(LossList::running, "running",
                            "Scored over the whole run or a part of it: the integral over time, Σ Δt·weight·error² "
                            "of the states after its steps, and of the controls and forces during them."),
                  loss_list(LossList::terminal, "terminal", "Scored at the end of the run."),
                  loss_list(LossList::waypoints, "waypoints", "Scored at one time each, as if the run ended there."),
              }),
              "", "What is to be made small: the sum of all terms."),
          optional("method", word({"auto", "lbfgs", "adam"}), "auto",
                   "Optimiser; auto: lbfgs, or adam for more than 256 starts at once on a GPU."),
          optional("iterations", integer(0, 1'000'000), "200", "At most so many."),
          optional("tolerance", at_least(0, Dimension::none), "1e-6",
                   "Stop when the norm of the scaled gradient is below."),
          optional("learning_rate", positive(Dimension::none), "0.05", "Step of `adam`, in units of `scale`."),
          optional("starts", integer(1, 1'000'000), "1",
                   "Starts from different random values, as worlds of one batch."),
          optional("gradient", gradient(), "{}", "Where gradients of long runs are cut or clipped."),
          absent("goal", number(Dimension::none), "none",
                 "The loss that is asked for: `simctl optimize` exits with 1 when it is not reached. Where all starts "
                 "of `lbfgs` stop "
                 "above it with iterations left, neighbours of the best point are searched from."),
      }),
      "optimize", "What `simctl optimize` varies and scores. `simctl run` prints the loss, too.");
}

/// A list of names, or a single one.
SchemaPtr names_or_one(const char* of) {
  return choice({list(name(), of), name()});
}

SchemaPtr record() {
  return titled(
      map({
          optional("efforts", names_or_one("joint"), "[]",
                   "Joints, or `*` for every one: of each `<joint>/effort/command`, `…/drive`, `…/spring`, "
                   "`…/damping`, `…/friction`, "
                   "`…/limit` and `…/total`, as they acted in the step that begins there, and `<joint>/power`, that of "
                   "its actuator (command and drive)."),
          optional("bodies", names_or_one("body"), "[]",
                   "Bodies, or `*` for every one: of each `bodies/<body>/position/x` and so on, `…/orientation`, "
                   "`…/velocity` (of its "
                   "origin) and `…/angular_velocity`, world axes."),
          optional("energy", boolean(), "false",
                   "`energy/kinetic`, armatures included, `energy/potential`, of gravity and joint springs, and "
                   "`energy/work`, what actuators have done so far."),
          optional("momentum", boolean(), "false",
                   "`momentum/linear/x` and so on, and `momentum/angular`, about the centre of mass."),
          optional("center_of_mass", boolean(), "false", "`center_of_mass/position` and `center_of_mass/velocity`."),
      }),
      "record",
      "What `trajectory.csv` has beside `time`, `<joint>/position`, `<joint>/velocity` and, in the row of the state "
      "that a "
      "step begins with, `<joint>/effort`, that of command and drive together within the drive's limit, and of a joint "
      "with a drive `<joint>/command`, `<joint>/target_position` and `<joint>/target_velocity`. Of several numbers "
      "each, with the component's name behind: `<joint>/position/x`; of a ball joint with a drive `<joint>/torque/x` "
      "and "
      "`<joint>/command/torque/x`.");
}

SchemaPtr switched_off() {
  return titled(map({required("off", name(), "Path of model parameters whose gradients are not computed.")}),
                "requires_grad/<index>", "A path that is switched off again.");
}

SchemaPtr root() {
  return titled(
      map({
          absent("name", text(), "the file's name", "Name of the scene."),
          optional("description", text(), "\"\"", "What it shows."),
          optional("simulation", simulation(), "", "How time goes on."),
          required("model", model_schema(), "What is simulated."),
          optional("initial_state", names(initial_state_schema(), "joint"), "{}", "Where joints begin, by joint."),
          optional("controls", names(control_schema(), "joint"), "{}", "What joints are told to do, by joint."),
          optional("requires_grad", list(choice({name(), switched_off()}), "path"), "[]",
                   "Paths of model parameters whose gradients are computed, and, as `{off: path}`, of some that "
                   "are not after all; `*` stands for every name. Later entries win."),
          optional("record", record(), "", "What `trajectory.csv` has beside states and controls."),
          optional("optimize", optimize(), "", "What is optimised."),
      }),
      "The whole scene", "");
}

}  // namespace

const Key* Schema::key(std::string_view name) const {
  for (const Key& key : keys) {
    if (key.name == name) return &key;
  }
  return nullptr;
}

const Schema& scene_schema() {
  static const SchemaPtr schema = root();
  return *schema;
}

NodePtr default_node(const Key& key) {
  static std::map<std::string, NodePtr> nodes;
  static std::mutex mutex;
  if (key.default_text.empty()) return nullptr;
  const std::lock_guard lock(mutex);
  NodePtr& node = nodes[key.default_text];
  if (!node) node = parse_document(key.default_text, {"default of " + key.name, {}}, 0);
  return node;
}

}  // namespace backdrive::scene
