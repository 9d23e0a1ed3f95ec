// simctl dynamics: quantities of the equations of motion at given states, for comparisons with other engines.
#include <array>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <set>

#include "apps/body_states.h"
#include "apps/log.h"
#include "apps/options.h"
#include "autodiff/problem/inputs.h"
#include "autodiff/tape/step_jacobians.h"
#include "integrators/reference/dynamics_derivatives.h"
#include "integrators/reference/inverse_dynamics.h"
#include "integrators/reference/mass_matrix.h"
#include "models/coordinates.h"

namespace backdrive::app {
namespace {

using Json = nlohmann::json;
using Numbers = std::vector<double>;

const std::vector<std::string>& quantity_names() {
  static const std::vector<std::string> names{"forward_dynamics",     "inverse_dynamics", "mass_matrix",   "bias_force",
                                              "dynamics_derivatives", "energy",           "poses",         "jacobian",
                                              "center_of_mass",       "momentum",         "step_jacobians"};
  return names;
}

struct DynamicsArguments : Options {
  std::vector<std::string> quantities;
  std::string states;
};

struct JointState {
  Numbers q, qd, qdd, tau;
};

/// Reads states by joint; errors name file, state, joint and key.
class StateReader {
 public:
  StateReader(const std::string& file, const Scene& scene) : file_(file), scene_(scene) {}

  std::vector<JointState> read() const {
    const Json document = parse();
    const Json* states = document.is_object() && document.contains("states") ? &document["states"] : &document;
    if (!states->is_array()) refuse("", "a list of states, or an object with one as `states`");
    std::vector<JointState> result;
    for (std::size_t i = 0; i < states->size(); ++i) result.push_back(state((*states)[i], std::to_string(i)));
    return result;
  }

  /// What the scene begins with.
  JointState initial() const {
    const Problem& p = scene_.problem;
    const Topology& t = p.model.topology;
    return {{p.initial_position.begin(), p.initial_position.begin() + t.joint_nq},
            {p.initial_velocity.begin(), p.initial_velocity.begin() + t.joint_nv},
            Numbers(t.joint_nv, 0.0),
            Numbers(t.joint_nv, 0.0)};
  }

 private:
  [[noreturn]] void refuse(const std::string& path, const std::string& expected) const {
    input_error(file_ + ": " + (path.empty() ? "" : path + ": ") + "expected " + expected);
  }

  Json parse() const {
    std::ifstream stream(file_);
    if (!stream) refuse("", "an existing JSON file that can be read");
    try {
      return Json::parse(stream);
    } catch (const Json::exception& error) {
      refuse("", std::string("valid JSON (") + error.what() + ")");
    }
  }

  JointState state(const Json& json, const std::string& path) const {
    if (!json.is_object()) refuse(path, "an object whose keys are joints");
    JointState result = initial();
    const Model& model = scene_.problem.model;
    for (const auto& [name, values] : json.items()) {
      const JointIndex joint = model.find_joint(name);
      const std::string at = path + "/" + name;
      if (joint < 0 || model.joint_loops[joint]) refuse(at, "the name of a joint");
      if (!values.is_object()) refuse(at, "an object with position, velocity, acceleration, effort and the like");
      const JointType type = model.joint_types[joint];
      const Link& link = model.topology.links[model.link_of_joint(joint)];
      std::set<std::string> known;
      put(values, at, position_components(type), "", &result.q[link.q], known);
      put(values, at, velocity_components(type), "", &result.qd[link.v], known);
      put(values, at, velocity_components(type), "acceleration", &result.qdd[link.v], known);
      put(values, at, effort_components(type), "", &result.tau[link.v], known);
      for (const auto& [key, value] : values.items()) {
        if (!known.contains(key)) refuse(at + "/" + key, "one of the keys " + listing(known));
      }
    }
    return result;
  }

  static std::string listing(const std::set<std::string>& words) {
    std::string list;
    for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
    return list;
  }

  /// The components of every quantity that is given. `renamed`: the word that stands for velocity in the key.
  void put(const Json& values, const std::string& path, std::span<const JointComponent> components,
           const std::string& renamed, double* to, std::set<std::string>& known) const {
    for (std::size_t k = 0; k < components.size();) {
      std::size_t end = k;
      while (end < components.size() && std::string(components[end].quantity) == components[k].quantity) ++end;
      std::string key = components[k].quantity;
      if (!renamed.empty()) key.replace(key.find("velocity"), 8, renamed);
      known.insert(key);
      if (values.contains(key)) {
        const Json& given = values[key];
        const std::size_t count = end - k;
        const Json list = given.is_array() ? given : Json::array({given});
        if (list.size() != count) refuse(path + "/" + key, std::to_string(count) + " numbers");
        for (std::size_t i = 0; i < count; ++i) {
          if (!list[i].is_number()) refuse(path + "/" + key, "numbers");
          to[k + i] = list[i].get<double>();
        }
      }
      k = end;
    }
  }

  const std::string& file_;
  const Scene& scene_;
};

Json matrix(const Numbers& numbers, int columns) {
  Json rows = Json::array();
  for (std::size_t r = 0; r < numbers.size(); r += columns) {
    rows.push_back(Numbers(numbers.begin() + static_cast<std::ptrdiff_t>(r),
                           numbers.begin() + static_cast<std::ptrdiff_t>(r) + columns));
  }
  return rows;
}

using Vec = Vec3<double>;

Json list_of(const Vec& v) {
  return {v.x, v.y, v.z};
}

/// Bodies at the state, and behind it at the same positions with a unit of each velocity alone.
BodyStates bodies_at(const Model& model, const JointState& s) {
  const int nv = model.topology.nv;
  Numbers q = s.q, qd = s.qd;
  for (int v = 0; v < nv; ++v) {
    q.insert(q.end(), s.q.begin(), s.q.end());
    qd.insert(qd.end(), static_cast<std::size_t>(nv), 0.0);
    qd[qd.size() - static_cast<std::size_t>(nv - v)] = 1;
  }
  return BodyStates(model, 1 + nv, q, qd);
}

/// Of every body's origin, then of its turning: 6 rows of nv numbers.
Json jacobians(const Model& model, const BodyStates& bodies) {
  Json result = Json::object();
  for (int b = 0; b < bodies.bodies(); ++b) {
    std::array<Numbers, 6> rows;
    for (int v = 1; v <= model.topology.nv; ++v) {
      const Vec of_origin = bodies.velocity(v, b), turning = bodies.angular_velocity(v, b);
      const double numbers[] = {of_origin.x, of_origin.y, of_origin.z, turning.x, turning.y, turning.z};
      for (int k = 0; k < 6; ++k) rows[k].push_back(numbers[k]);
    }
    result[model.body_names[b]] = rows;
  }
  return result;
}

/// Of one step of the scene, substeps and all: efforts are the state's, targets those that the scene begins with.
Json step_jacobians_of(const Problem& problem, const JointState& s) {
  const Topology& t = problem.model.topology;
  State<double> state(problem.model, 1);
  for (int r = 0; r < t.nq; ++r) state.q.set(r, 0, s.q[r]);
  for (int v = 0; v < t.nv; ++v) state.qd.set(v, 0, s.qd[v]);
  const Control<double> all = initial_control<double>(problem, 1);
  RolloutOptions options;
  options.time_step = problem.simulation.time_step;
  options.steps = problem.simulation.substeps;
  Control<double> control(problem.model, options.steps, 1);
  for (int k = 0; k < options.steps * t.nu; ++k) {
    const int channel = k % t.nu;
    control.u.set(k, 0, channel < t.joint_nv ? s.tau[channel] : all.u.empty() ? 0 : all.u(channel, 0));
  }
  const StepJacobians<double> of = step_jacobians(problem.model, state, control, options);
  Json A = Json::array(), B = Json::array();
  for (int row = 0; row < of.rows; ++row) {
    Numbers by_state, by_control(t.nu, 0.0);
    for (int k = 0; k < of.rows; ++k) by_state.push_back(of.by_state(row, k, 0));
    for (int k = 0; k < of.control_rows; ++k) by_control[k % t.nu] += of.by_control(row, k, 0);
    A.push_back(by_state), B.push_back(by_control);
  }
  return {{"A", A}, {"B", B}};
}

/// `bodies`: gives bodies_at() of the state to those that ask for it.
template <class Bodies>
Json quantity_of(const std::string& name, const Problem& problem, const JointState& s, const Bodies& bodies) {
  const Model& model = problem.model;
  const int nv = model.topology.nv;
  if (name == "jacobian") return jacobians(model, bodies());
  if (name == "center_of_mass") {
    return {{"position", list_of(bodies().center_of_mass(0))}, {"velocity", list_of(bodies().velocity_of_center(0))}};
  }
  if (name == "momentum") {
    return {{"linear", list_of(bodies().momentum(0))}, {"angular", list_of(bodies().angular_momentum(0))}};
  }
  if (name == "step_jacobians") return step_jacobians_of(problem, s);
  if (name == "forward_dynamics") return reference::forward_dynamics_dense(model, s.q, s.qd, s.tau);
  if (name == "inverse_dynamics") return reference::inverse_dynamics(model, s.q, s.qd, s.qdd);
  if (name == "bias_force") return reference::inverse_dynamics(model, s.q, s.qd, Numbers(nv, 0.0));
  if (name == "mass_matrix") return matrix(reference::mass_matrix(model, s.q), nv);
  if (name == "energy") {
    return {{"kinetic", reference::kinetic_energy(model, s.q, s.qd)},
            {"potential", reference::potential_energy(model, s.q)}};
  }
  if (name == "poses") {
    const std::vector<reference::LinkPose> poses = reference::body_poses(model, s.q);
    Json result = Json::object();
    for (std::size_t b = 0; b < poses.size(); ++b) {
      const auto& R = poses[b].rotation;  // column by column
      result[model.body_names[b]] = {{"position", poses[b].position},
                                     {"rotation", {{R[0], R[3], R[6]}, {R[1], R[4], R[7]}, {R[2], R[5], R[8]}}}};
    }
    return result;
  }
  const reference::DynamicsDerivatives d = reference::dynamics_derivatives(model, s.q, s.qd, s.tau);
  return {{"position", matrix(d.q, nv)}, {"velocity", matrix(d.qd, nv)}, {"effort", matrix(d.tau, nv)}};
}

int run_dynamics(const DynamicsArguments& options) {
  const Scene scene = load(options);
  const Model& model = scene.problem.model;
  if (model.topology.has_bodies()) {
    usage_error(
        "the integrator semi_implicit works without these quantities; expected simulation/integrator to be "
        "featherstone");
  }
  const StateReader reader(options.states, scene);
  const std::vector<JointState> states =
      options.states.empty() ? std::vector<JointState>{reader.initial()} : reader.read();
  Json results = Json::array();
  for (const JointState& state : states) {
    Json result = Json::object();
    std::optional<BodyStates> known;
    const auto bodies = [&]() -> const BodyStates& {
      if (!known) known.emplace(bodies_at(model, state));
      return *known;
    };
    for (const std::string& name : options.quantities.empty() ? quantity_names() : options.quantities) {
      result[name] = quantity_of(name, scene.problem, state, bodies);
    }
    results.push_back(std::move(result));
  }
  Json controls = Json::array();
  for (const ControlRow& row : control_rows(model)) controls.push_back(row.name);
  print_json({{"scene", scene.name},
              {"position_rows", position_names(model)},
              {"velocity_rows", velocity_names(model)},
              {"control_rows", controls},
              {"states", results}});
  return kDone;
}

}  // namespace

void add_dynamics(CLI::App& app, Invocation& invocation) {
  CLI::App* const command = app.add_subcommand(
      "dynamics",
      "Print quantities of M(q) a + h(q, v) = e at given states as JSON, in float64, by textbook algorithms beside\n"
      "those that simulate: to hold a robot against another engine, or pin it in CI.\n"
      "  forward_dynamics      accelerations a of efforts e      inverse_dynamics  efforts of accelerations\n"
      "  mass_matrix           M, armature included              bias_force        h: gravity, Coriolis, centrifugal\n"
      "  dynamics_derivatives  of a by position (tangent space), velocity and effort\n"
      "  energy                kinetic and potential, J          poses             of all bodies in the world\n"
      "  jacobian              of each body's origin (3 rows) and turning (3), world axes\n"
      "  center_of_mass        position and velocity             momentum          linear, angular about that centre\n"
      "  step_jacobians        A and B of one step of the scene: changes of positions (tangent space), then of\n"
      "                        velocities, by the same and by the controls (control_rows)\n"
      "Damping, friction, springs, limits, drives and contact are part of step_jacobians alone. Units are SI; rows of\n"
      "vectors and matrices are named in velocity_rows. "
      "Of a free joint: angular velocity, then velocity of the origin,\n"
      "both in the joint's axes; quaternions (x, y, z, w). --states: a list of objects, by joint: position,\n"
      "velocity, acceleration, effort as scenes have them in initial_state; what is not named is as the scene\n"
      "begins, or zero.");
  static DynamicsArguments options;
  add_scene(*command, options);
  command->add_option("--quantity", options.quantities, "what to print, comma-separated [all]")
      ->delimiter(',')
      ->check(one_of(quantity_names()))
      ->type_name("NAME")
      ->allow_extra_args(false);
  command->add_option("--states", options.states, "JSON file of states [the scene's initial one]")->type_name(kAnyPath);
  command->add_flag("--quiet", options.quiet, "no log lines on stderr, only warnings and errors");
  finish_command(*command, invocation, options,
                 "  simctl dynamics robot.urdf --quantity mass_matrix,bias_force\n"
                 "  simctl dynamics robot.urdf --states states.json > expected.json",
                 [] { return run_dynamics(options); });
}

}  // namespace backdrive::app
