#include "apps/simulate.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <numbers>

#include "apps/console.h"
#include "apps/csv.h"
#include "apps/table.h"
#include "autodiff/problem/loss.h"
#include "autodiff/tape/loop_gaps.h"

namespace backdrive::app {
namespace {

/// What of a loop's gap goes without saying: half of the last digit that people write.
constexpr double kOpenDistance = 5e-4, kOpenAngle = 5e-4;

/// Steps between two looks at the clock and at interrupts; fewer where many pairs of shapes are told of.
int piece_of(const Topology& topology) {
  const int pairs = static_cast<int>(topology.contact_pairs.size());
  return pairs > 0 ? std::clamp(32768 / pairs, 16, 4096) : 4096;
}

/// Rows [first, first + rows) of a one-world buffer as a buffer of its own.
template <class T>
Buffer<T> rows_of(const Buffer<T>& all, int first, int rows) {
  Buffer<T> part(memory_beside(all), rows, 1);
  part.copy_rows(0, all, first, rows);
  return part;
}

/// Puts rows [first, rows) of a one-world buffer at `at` + their number; what was behind them goes.
template <class T>
void append(const Buffer<T>& buffer, int first, int rows, std::vector<double>& to, std::size_t at) {
  const Buffer<T> from = on_host(buffer);
  to.resize(at + rows);
  for (int r = first; r < rows; ++r) to[at + r] = static_cast<double>(from(r, 0));
}

/// The pairs that touched in the first `steps` steps of a piece.
template <class T>
void append_contacts(const Trajectory<T>& piece, int steps, int first_step, std::vector<ContactRecord>& to) {
  if (piece.contact.empty()) return;
  const Buffer<T> rows = on_host(piece.contact);
  const int pairs = rows.rows() / piece.steps / kContactRows;
  const auto number = [&](int row) { return static_cast<double>(rows(row, 0)); };
  for (int step = 0; step < steps; ++step) {
    for (int pair = 0; pair < pairs; ++pair) {
      const int row = (step * pairs + pair) * kContactRows;
      const ContactRecord record{first_step + step,
                                 pair,
                                 {number(row), number(row + 1), number(row + 2)},
                                 {number(row + 3), number(row + 4), number(row + 5)},
                                 number(row + 6)};
      if (record.force != std::array<double, 3>{}) to.push_back(record);
    }
  }
}

template <class T>
void score(const Problem& problem, const Trajectory<T>& last_piece, const Control<T>& control,
           const RolloutOptions& options, const LossObserver<T>* observer, SimulationResult& result) {
  Trajectory<T> trajectory;
  trajectory.steps = problem.simulation.steps;
  trajectory.final = last_piece.final;
  trajectory.final_reported = last_piece.final_reported;
  trajectory.status = std::make_shared<WorldStatuses>(1, memory_beside(trajectory.final.q));
  const LossResult<T> loss = evaluate_loss<T>(problem, trajectory, control, options, nullptr, observer);
  const Buffer<T> terms = on_host(loss.terms);
  for (size_t i = 0; i < problem.loss.size(); ++i) {
    result.term_names.push_back(problem.loss[i].name);
    result.terms.push_back(static_cast<double>(terms(static_cast<int>(i), 0)));
  }
  result.loss = static_cast<double>(on_host(loss.total)(0, 0));
}

template <class T>
SimulationResult simulate_as(const Problem& problem, const ExecutionOptions& how, std::span<const EffortTerm> efforts,
                             const std::function<bool(int)>& progress) {
  Memory& memory = default_memory(how.devices.front());
  const auto start = std::chrono::steady_clock::now();
  SimulationResult result;
  const int steps = problem.simulation.steps, nu = problem.model.topology.nu;
  Trajectory<T> piece;
  const Control<T> control = initial_control<T>(problem, 1, memory);
  RolloutOptions options;
  options.time_step = problem.simulation.time_step;
  options.threads = how.threads;
  options.keep_contact = true;
  State<T> state = place_bodies<T>(nullptr, problem.model, initial_state<T>(problem, 1, memory), options, memory);
  const int longest = piece_of(problem.model.topology);
  const int nq = problem.model.topology.nq, nv = problem.model.topology.nv;
  const auto observer = observe_loss<T>(problem, control, options, 1, memory);
  while (result.steps < steps) {
    options.steps = std::min(longest, steps - result.steps);
    Control<T> part;
    if (!control.u.empty()) part.u = rows_of(control.u, result.steps * nu, options.steps * nu);
    piece = rollout<T>(problem.model, state, part, options, memory);
    const WorldStatus& status = (*piece.status)[0];
    const int done = status.stopped() ? status.stopped_step : options.steps;
    append(piece.q, 0, (done + 1) * nq, result.q, static_cast<std::size_t>(result.steps) * nq);
    // The velocity that led to a piece's first state is the last of the piece before.
    append(piece.velocity(), result.steps > 0 ? nv : 0, (done + 1) * nv, result.qd,
           static_cast<std::size_t>(result.steps) * nv);
    append_contacts(piece, done, result.steps, result.contacts);
    if (!efforts.empty() && done > 0) {
      const int count = static_cast<int>(efforts.size());
      append(acting_efforts<T>(nullptr, problem.model, {piece, part}, efforts, options, memory), 0, done * count,
             result.efforts, static_cast<std::size_t>(result.steps) * efforts.size());
    }
    if (observer) observer->forward(piece, result.steps);
    if (status.stopped()) {
      result.status.stopped_step = status.stopped_step + result.steps;
      result.status.joint = status.joint;
    }
    if (status.unsolved_step >= 0 && result.status.unsolved_step < 0) {
      result.status.unsolved_step = status.unsolved_step + result.steps;
    }
    result.steps += done;
    state = piece.final;
    if (status.stopped()) break;
    if (progress && !progress(result.steps)) {
      result.interrupted = result.steps < steps;
      break;
    }
  }
  options.steps = steps;
  if (result.steps == steps && !problem.loss.empty()) score(problem, piece, control, options, observer.get(), result);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace

std::vector<std::string> open_loops(const Problem& problem) {
  std::vector<std::string> lines;
  if (!problem.model.topology.has_bodies()) return lines;
  const State<double> start = place_bodies<double>(nullptr, problem.model, initial_state<double>(problem, 1), {});
  for (const LoopGap& gap : loop_gaps(problem.model, start)) {
    if (gap.distance <= kOpenDistance && gap.angle <= kOpenAngle) continue;
    lines.push_back("the loop that joint '" + problem.model.joint_names[gap.joint] +
                    "' closes is open at the start, by " + number(gap.distance * 1000) + " mm and " +
                    number(gap.angle * 180 / std::numbers::pi) +
                    " degrees: its attachment will pull it together in the first steps");
  }
  return lines;
}

SimulationResult simulate(const Problem& problem, const ExecutionOptions& how, std::span<const EffortTerm> efforts,
                          const std::function<bool(int)>& progress) {
  return how.precision == Precision::float32 ? simulate_as<float>(problem, how, efforts, progress)
                                             : simulate_as<double>(problem, how, efforts, progress);
}

std::vector<ContactRecord> contacts_of_steps(std::vector<ContactRecord> contacts, int substeps) {
  if (substeps == 1) return contacts;
  std::vector<ContactRecord> means;
  std::map<int, std::size_t> of_pair;  // where in `means`, of the step at hand
  std::vector<double> weights;         // Σ |force| of each
  for (const ContactRecord& c : contacts) {
    const int step = c.step / substeps;
    if (!means.empty() && means.back().step != step) of_pair.clear();
    const double size = std::hypot(c.force[0], c.force[1], c.force[2]);
    const auto [at, first] = of_pair.try_emplace(c.pair, means.size());
    if (first) {
      means.push_back({step, c.pair, {}, {}, 0});
      weights.push_back(0);
    }
    ContactRecord& mean = means[at->second];
    for (int k = 0; k < 3; ++k) {
      mean.force[k] += c.force[k] / substeps;
      mean.point[k] += c.point[k] * size;
    }
    mean.depth = std::max(mean.depth, c.depth);
    weights[at->second] += size;
  }
  for (std::size_t k = 0; k < means.size(); ++k) {
    for (double& x : means[k].point) x /= weights[k];
  }
  return means;
}

ContactChanges contact_changes(const SimulationResult& result) {
  ContactChanges changes;
  std::map<int, int> last;  // step in which a pair touched last
  for (const ContactRecord& c : result.contacts) {
    const auto [at, first] = last.try_emplace(c.pair, c.step);
    if (first) {
      changes.made += c.step > 0;
    } else if (at->second + 1 < c.step) {
      ++changes.made;
      ++changes.broken;
    }
    at->second = c.step;
  }
  for (const auto& [pair, step] : last) changes.broken += step + 1 < result.steps;
  return changes;
}

bool may_touch(const Problem& problem) {
  return !problem.model.topology.contact_pairs.empty();
}

void write_contacts(std::ostream& stream, const Problem& problem, const SimulationResult& result) {
  const Model& model = problem.model;
  const auto name = [&](int contact_shape) {
    return model.shape_names[model.topology.contact_shapes[contact_shape].shape];
  };
  CsvWriter csv(stream);
  for (const char* column :
       {"time", "step", "first", "second", "force/x", "force/y", "force/z", "point/x", "point/y", "point/z", "depth"}) {
    csv.cell(column);
  }
  csv.end_row();
  const double time_step = problem.simulation.control_time_step();
  for (const ContactRecord& c : contacts_of_steps(result.contacts, problem.simulation.substeps)) {
    const ContactPair& pair = model.topology.contact_pairs[c.pair];
    csv.cell(c.step * time_step).cell(c.step).cell(name(pair.a)).cell(name(pair.b));
    for (const double x : c.force) csv.cell(x);
    for (const double x : c.point) csv.cell(x);
    csv.cell(c.depth);
    csv.end_row();
  }
}

std::string loss_table(const SimulationResult& result) {
  Table table({{"loss term", Table::Align::left}, {"value"}});
  for (size_t i = 0; i < result.term_names.size(); ++i) table.add({result.term_names[i], number(result.terms[i])});
  table.add({bold("total"), bold(number(result.loss))});
  return table.text();
}

std::string state_table(const Problem& problem, const SimulationResult& result) {
  const Model& model = problem.model;
  Table table({{"joint", Table::Align::left},
               {"", Table::Align::left},
               {"position"},
               {"", Table::Align::left},
               {"", Table::Align::left},
               {"velocity"},
               {"", Table::Align::left}});
  const double* const q = result.q.data() + static_cast<std::size_t>(result.steps) * model.topology.nq;
  const double* const qd = result.qd.data() + static_cast<std::size_t>(result.steps) * model.topology.nv;
  for (std::size_t joint = 0; joint < model.joint_names.size(); ++joint) {
    const auto positions = position_components(model.joint_types[joint]);
    const auto velocities = velocity_components(model.joint_types[joint]);
    if (positions.empty()) continue;
    const bool one = positions.size() == 1;
    const Link& link = model.topology.links[model.link_of_joint(static_cast<int>(joint))];
    for (std::size_t k = 0; k < positions.size(); ++k) {
      const JointComponent& p = positions[k];
      const bool orientation = std::string_view(p.quantity) == "orientation";
      const bool has_velocity = k < velocities.size();
      const JointComponent& v = velocities[has_velocity ? k : 0];
      table.add({k == 0 ? model.joint_names[joint] : "", one ? "" : p.name(), number(q[link.q + k]),
                 orientation ? ""
                 : p.turns   ? "rad"
                             : "m",
                 one || !has_velocity ? "" : v.name(), has_velocity ? number(qd[link.v + k]) : "",
                 !has_velocity ? ""
                 : v.turns     ? "rad/s"
                               : "m/s"});
    }
  }
  return table.text();
}

}  // namespace backdrive::app
