#include "apps/sweep_batch.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <optional>
#include <tuple>

#include "apps/interrupt.h"
#include "autodiff/problem/loss.h"
#include "engine/parallel.h"
#include "models/parameter_list.h"

namespace backdrive::app {
namespace {

// The structured bindings fail to compile when a member is added, so that none is forgotten here.
auto members(const Simulation& s) {
  const auto& [time_step, steps, substeps] = s;
  return std::tie(time_step, steps, substeps);
}

auto members(const LossTerm& t) {
  const auto& [name, quantity, terminal, first_step, last_step, integral, over, measure, index, component, other,
               channel, part, target, upper, record, record_path, record_part, point, other_point, on_circle, weight] =
      t;
  return std::tie(name, quantity, terminal, first_step, last_step, integral, over, measure, index, component, other,
                  channel, part, target, upper, record, record_path, record_part, point, other_point, on_circle,
                  weight);
}

/// What of a link is fixed by the document and not by parameter values (refresh_features finds those anew).
auto members(const Link& l) {
  const auto& [type, axis, joint, first, body, parent, q, v, loop_child, target, leaf, last_child, acts, touches,
               lifted, turns_with, carrier, fixed_end, spins, rigid, unphysical_inertia, way] = l;
  return std::tie(type, axis, joint, first, body, parent, q, v, loop_child, target, leaf, last_child, touches,
                  turns_with, carrier, fixed_end, spins, rigid, unphysical_inertia, way);
}

bool same_contacts(const Topology& a, const Topology& b) {
  const auto same_shape = [](const ContactShape& x, const ContactShape& y) { return x.shape == y.shape; };
  const auto same_pair = [](const ContactPair& x, const ContactPair& y) { return x.a == y.a && x.b == y.b; };
  return std::ranges::equal(a.contact_shapes, b.contact_shapes, same_shape) &&
         std::ranges::equal(a.contact_pairs, b.contact_pairs, same_pair);
}

bool same_topology(const Topology& a, const Topology& b) {
  return a.integrator == b.integrator && a.nq == b.nq && a.nv == b.nv && a.nu == b.nu && same_contacts(a, b) &&
         std::equal(a.links.begin(), a.links.end(), b.links.begin(), b.links.end(),
                    [](const Link& x, const Link& y) { return members(x) == members(y); });
}

bool same_structure(const Model& a, const Model& b) {
  return a.body_names == b.body_names && a.joint_names == b.joint_names && a.shape_names == b.shape_names &&
         a.joint_types == b.joint_types && a.joint_parents == b.joint_parents && a.joint_children == b.joint_children &&
         a.coupling_names == b.coupling_names && a.coupling_terms == b.coupling_terms &&
         a.coupling_holds == b.coupling_holds && a.shape_types == b.shape_types && a.shape_bodies == b.shape_bodies &&
         a.shape_meshes == b.shape_meshes && a.meshes == b.meshes && a.height_fields == b.height_fields &&
         same_topology(a.topology, b.topology);
}

/// Spreads the parameter over worlds when any world's values differ from the first one's.
void merge_parameter(const Field& field, std::span<const Problem> points, Parameter& merged) {
  const int worlds = static_cast<int>(points.size());
  const auto is_merged = [&](const Problem& point) {
    const Parameter& own = field.in(point.model);
    for (int item = 0; item < own.items(); ++item) {
      for (int c = 0; c < own.components(); ++c) {
        if (own(item, c) != merged(item, c)) return false;
      }
    }
    return true;
  };
  if (std::ranges::all_of(points, is_merged)) return;
  merged.spread(worlds);
  for (int w = 0; w < worlds; ++w) {
    const Parameter& own = field.in(points[w].model);
    for (int item = 0; item < own.items(); ++item) {
      for (int c = 0; c < own.components(); ++c) merged.at(item, c, w) = own(item, c);
    }
  }
}

template <class T>
void put_column(const Buffer<T>& from, Buffer<T>& to, int world) {
  T* const data = to.write();
  for (int r = 0; r < from.rows(); ++r) data[static_cast<size_t>(r) * to.stride() + world] = from(r, 0);
}

template <class T>
std::vector<double> column(const Buffer<T>& buffer, int world) {
  std::vector<double> values;
  for (int r = 0; r < buffer.rows(); ++r) values.push_back(static_cast<double>(buffer(r, world)));
  return values;
}

bool wants_states(const Problem& problem) {
  return std::any_of(problem.loss.begin(), problem.loss.end(), [](const LossTerm& t) { return !t.terminal; });
}

bool wants_crossings(const Problem& problem) {
  return may_touch(problem) && problem.model.topology.nq > 0;
}

/// Steps that take some tenths of a second, in steps of a link of 100 ns; a pair of shapes takes as long as four.
int first_piece(const Problem& problem, int worlds) {
  constexpr double kLinkSteps = 2e6;
  const Topology& t = problem.model.topology;
  const double links = static_cast<double>(t.links.size()) + 4.0 * static_cast<double>(t.contact_pairs.size());
  return static_cast<int>(std::clamp(kLinkSteps / (links * worlds), 16.0, 1e7));
}

template <class T>
std::vector<PointResult> results_of(const Problem& problem, const Trajectory<T>& trajectory, const Control<T>& control,
                                    const RolloutOptions& options, const LossObserver<T>* observer) {
  LossResult<T> loss;
  if (!problem.loss.empty()) loss = evaluate_loss<T>(problem, trajectory, control, options, nullptr, observer);
  const Buffer<T> q = on_host(trajectory.final.q), qd = on_host(trajectory.final_velocity());
  const Buffer<T> terms = on_host(loss.terms), total = on_host(loss.total);
  std::vector<PointResult> results(q.worlds());
  for (int w = 0; w < q.worlds(); ++w) {
    PointResult& r = results[w];
    r.q = column(q, w);
    r.qd = column(qd, w);
    r.status = (*trajectory.status)[w];
    if (problem.loss.empty()) continue;
    r.terms = column(terms, w);
    r.loss = static_cast<double>(total(0, w));
  }
  return results;
}

/// Bodies of every world where its shapes may touch, from piece to piece. (Kept states take 16 MB at most.)
class CrossingFinders {
 public:
  static constexpr int kMostNumbers = 2'000'000;

  CrossingFinders(const Model& model, double time_step, int worlds) : model_(model), bodies_(model.body_names.size()) {
    std::iota(bodies_.begin(), bodies_.end(), 0);
    for (int w = 0; w < worlds; ++w) {
      finders_.push_back(std::make_unique<contact::CrossingFinder>(model, time_step, w));
    }
  }
  int longest_piece() const {
    return std::max(1, kMostNumbers / (model_.topology.nq * static_cast<int>(finders_.size())));
  }
  template <class T>
  void see(const Trajectory<T>& piece, bool first, int threads) {
    RolloutOptions options;
    options.threads = threads;
    const Buffer<T> poses = body_poses<T>(nullptr, model_, piece.q, bodies_, options);
    const std::size_t rows = bodies_.size() * 12;
    parallel_for(threads, static_cast<int>(finders_.size()), [&](int w) {
      std::vector<double> own(rows);
      const WorldStatus& status = (*piece.status)[w];
      const int states = status.stopped() ? status.stopped_step : piece.steps;
      for (int state = first ? 0 : 1; state <= states; ++state) {
        for (std::size_t k = 0; k < rows; ++k)
          own[k] = static_cast<double>(poses(static_cast<int>(state * rows + k), w));
        finders_[w]->see(own);
      }
    });
  }
  const contact::Crossings& found(int world) const { return finders_[world]->found(); }

 private:
  const Model& model_;
  std::vector<int> bodies_;
  std::vector<std::unique_ptr<contact::CrossingFinder>> finders_;
};

/// The same numbers by pieces of steps, between which interrupts are looked for: nothing when there is one. A world
/// that stops keeps the state that it stopped in; what later pieces make of it counts for nothing.
template <class T>
std::vector<PointResult> run_in_pieces(const Problem& problem, State<T> state, const Control<T>& control,
                                       RolloutOptions options, int piece) {
  std::optional<CrossingFinders> finders;
  if (wants_crossings(problem)) {
    finders.emplace(problem.model, options.time_step, state.q.worlds());
    options.keep_states = true;
    piece = std::min(piece, finders->longest_piece());
  }
  const int steps = options.steps, nu = problem.model.topology.nu, worlds = state.q.worlds();
  Memory& memory = memory_beside(state.q);
  const auto observer = observe_loss<T>(problem, control, options, worlds, memory);
  std::vector<WorldStatus> status(worlds);
  std::vector<PointResult> stopped(worlds);
  Trajectory<T> last;
  for (int done = 0; done < steps; done += options.steps) {
    if (interrupted()) return {};
    options.steps = std::min(piece, steps - done);
    Control<T> part;
    if (!control.u.empty()) {
      part.u = Buffer<T>(memory, options.steps * nu, worlds);
      part.u.copy_rows(0, control.u, done * nu, options.steps * nu);
    }
    last = rollout<T>(problem.model, state, part, options, memory);
    if (observer) observer->forward(last, done);
    if (finders) finders->see(last, done == 0, options.threads);
    state = last.final;
    for (int w = 0; w < worlds; ++w) {
      const WorldStatus& now = (*last.status)[w];
      if (status[w].stopped()) continue;
      if (now.unsolved_step >= 0 && status[w].unsolved_step < 0) status[w].unsolved_step = done + now.unsolved_step;
      if (!now.stopped()) continue;
      status[w].stopped_step = done + now.stopped_step;
      status[w].joint = now.joint;
      stopped[w].q = column(last.final.q, w);
      stopped[w].qd = column(last.final_velocity(), w);
    }
  }
  options.steps = last.steps = steps;
  std::vector<PointResult> results = results_of(problem, last, control, options, observer.get());
  for (int w = 0; w < worlds; ++w) {
    results[w].status = status[w];
    if (finders) results[w].crossings = finders->found(w);
    if (!status[w].stopped()) continue;
    results[w].q = std::move(stopped[w].q);
    results[w].qd = std::move(stopped[w].qd);
    results[w].loss = NAN;
  }
  return results;
}

template <class T>
std::vector<PointResult> run_batch_on(std::span<const Problem> points, int threads, Memory& memory) {
  const int worlds = static_cast<int>(points.size());
  const Problem problem = merge(points);
  State<T> state(problem.model, worlds);
  Control<T> control(problem.model, problem.simulation.steps, worlds);
  for (int w = 0; w < worlds; ++w) {
    const State<T> own = initial_state<T>(points[w], 1);
    put_column(own.q, state.q, w);
    put_column(own.qd, state.qd, w);
    put_column(initial_control<T>(points[w], 1).u, control.u, w);
  }
  if (memory.backend()) {
    state = detach(state, memory);
    control = detach(control, memory);
  }
  RolloutOptions options;
  options.time_step = problem.simulation.time_step;
  options.steps = problem.simulation.steps;
  options.keep_contact = scores_contact(problem);
  options.threads = threads;
  options.keep_states = wants_states(problem);
  state = place_bodies<T>(nullptr, problem.model, state, options, memory);
  // A device is not waited for step by step.
  const int piece = memory.backend() ? options.steps : first_piece(problem, worlds);
  const bool follows = wants_crossings(problem) && !memory.backend();
  if (piece < options.steps || follows) return run_in_pieces<T>(problem, state, control, options, piece);
  const Trajectory<T> trajectory = rollout<T>(problem.model, state, control, options, memory);
  return results_of(problem, trajectory, control, options, static_cast<const LossObserver<T>*>(nullptr));
}

}  // namespace

bool same_batch(const Problem& a, const Problem& b) {
  return members(a.simulation) == members(b.simulation) && same_structure(a.model, b.model) &&
         std::equal(a.loss.begin(), a.loss.end(), b.loss.begin(), b.loss.end(),
                    [](const LossTerm& x, const LossTerm& y) { return members(x) == members(y); });
}

Problem merge(std::span<const Problem> points) {
  Problem merged = points[0];
  for (const Field& field : fields()) merge_parameter(field, points, field.of(merged.model));
  refresh_features(merged.model);
  return merged;
}

std::vector<PointResult> run_batch(std::span<const Problem> points, const ExecutionOptions& how) {
  std::vector<PointResult> results;
  const int parts = static_cast<int>(how.devices.size()), worlds = static_cast<int>(points.size());
  for (int part = 0; part < parts; ++part) {
    const Range range = share(worlds, parts, part);
    if (range.size() == 0) continue;
    const auto own = points.subspan(range.begin, range.size());
    Memory& memory = default_memory(how.devices[part]);
    for (PointResult& r : how.precision == Precision::float32 ? run_batch_on<float>(own, how.threads, memory)
                                                              : run_batch_on<double>(own, how.threads, memory)) {
      results.push_back(std::move(r));
    }
  }
  return results;
}

}  // namespace backdrive::app
