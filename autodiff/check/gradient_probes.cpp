#include "autodiff/check/gradient_probes.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "autodiff/problem/loss.h"
#include "engine/error.h"
#include "models/parameter_reader.h"

namespace backdrive {
namespace {

/// Worlds of one batch, fewer of long runs: bounds memory, and the time in which nothing is told. No bit depends on it.
constexpr int kWorlds = 128, kLeastWorlds = 16, kStepsOfBatch = 200'000;

int batch_size(int steps) {
  return std::clamp(kStepsOfBatch / std::max(steps, 1) / kLeastWorlds * kLeastWorlds, kLeastWorlds, kWorlds);
}

/// For each number that is held against differences: two for each of six steps and for the distance.
constexpr long long kRolloutsOfDifference = 14;

/// In [0, 1), the same on every platform.
double uniform(std::mt19937_64& generator) {
  return static_cast<double>(generator() >> 11) * 0x1p-53;
}

const char* unit_of(ControlChannel channel, bool turns) {
  switch (channel) {
    case ControlChannel::effort:
      return turns ? "N·m" : "N";
    case ControlChannel::target_position:
      return turns ? "rad" : "m";
    case ControlChannel::target_velocity:
      return turns ? "rad/s" : "m/s";
  }
  return "";
}

double largest_finite(const Parameter& p, int item) {
  double largest = 0;
  for (int c = 0; c < p.components(); ++c) {
    if (std::isfinite(p(item, c))) largest = std::max(largest, std::abs(p(item, c)));
  }
  return largest;
}

template <class T>
void move(T& number, double amount) {
  if constexpr (std::is_same_v<T, double>) {
    number += amount;
  } else {
    number.dot += amount;
  }
}

}  // namespace

/// Worlds that may be moved each by itself: values where T is double, dots where it is dual.
template <class T>
struct ProbedProblem::Batch {
  Problem problem;
  State<T> state;
  Control<T> control;
  Parameters direction;
};

ProbedProblem::ProbedProblem(const Problem& problem, const GradientCheckOptions& options)
    : problem_(problem), memory_(default_memory(options.device)), seed_(options.seed), progress_(options.progress) {
  if (problem.loss.empty()) input_error("no gradient to check: the problem has no loss");
  if (problem.model.parameter_worlds() != 1) {
    usage_error("gradient check of a model whose parameters differ from world to world");
  }
  options_.time_step = problem.simulation.time_step;
  options_.steps = problem.simulation.steps;
  options_.keep_contact = scores_contact(problem);
  options_.threads = options.threads;
  options_.checked = true;  // a probe may step over a bound
  options_.keep_states = scores_states_on_the_way(problem);
  for (const Field& field : fields()) {
    Parameter& parameter = field.of(problem_.model);
    for (int item = 0; item < parameter.items(); ++item) parameter.requires_grad(item, true);
  }
  refresh_features(problem_.model);
  add_state_groups();
  add_control_groups(options.controls, options.seed);
  add_parameter_groups();
  add_units(problem);
  long long probes = 0;
  for (const ProbeGroup& group : groups_) probes += static_cast<long long>(group.probes.size());
  const long long differences = options.differences < 0 ? probes : std::min<long long>(options.differences, probes);
  expected_ =
      probes + kRolloutsOfDifference * differences + (options.float32 ? 34 : 17);  // adjoints and disturbed ones
}

void ProbedProblem::tell(std::size_t rollouts) const {
  done_ += static_cast<long long>(rollouts);
  if (progress_) progress_(done_, std::max(done_, expected_));
}

void ProbedProblem::add_units(const Problem& problem) {
  const Topology& t = problem.model.topology;
  for (const Variable& variable : problem.variables) {
    if (variable.is_tied() || variable.scale == 1) continue;
    const bool of_state =
        variable.kind == VariableKind::initial_position || variable.kind == VariableKind::initial_velocity;
    const Link* const link = of_state ? &t.links[problem.model.link_of_joint(variable.joint)] : nullptr;
    int channel = -1;
    if (variable.is_control()) {
      channel = channel_row(problem.model, variable.joint, variable.channel, variable.component, {"", variable.name});
    }
    const auto varies = [&](const ProbeGroup& group, const Probe& probe) {
      const FieldSelection& own = variable.parameter;
      switch (variable.kind) {
        case VariableKind::parameter:
          return probe.kind == Probe::Kind::parameter && group.field.field == own.field &&
                 group.field.item == own.item && (own.component < 0 || own.component == probe.component);
        case VariableKind::initial_position:
          return probe.kind == Probe::Kind::position && probe.row == link->q + variable.component;
        case VariableKind::initial_velocity:
          return probe.kind == Probe::Kind::velocity && probe.row == link->v + variable.component;
        case VariableKind::control:
          return probe.kind == Probe::Kind::control && probe.row % t.nu == channel;
      }
      return false;
    };
    for (ProbeGroup& group : groups_) {
      for (Probe& probe : group.probes) {
        if (varies(group, probe)) probe.unit = variable.scale;
      }
    }
  }
}

bool ProbedProblem::may_fall(const Probe& probe, double amount) const {
  if (probe.kind != Probe::Kind::parameter) return true;
  const ParameterChart& chart = charts_[probe.chart];
  return chart.field().values == ValueRange::any || chart.start()[probe.component] > amount;
}

void ProbedProblem::add_state_groups() {
  const Model& model = problem_.model;
  const std::vector<int> tangent = tangent_rows(model.topology);
  for (const Probe::Kind kind : {Probe::Kind::position, Probe::Kind::velocity}) {
    const bool position = kind == Probe::Kind::position;
    const std::vector<double>& values = position ? problem_.initial_position : problem_.initial_velocity;
    for (std::size_t joint = 0; joint < model.joint_names.size(); ++joint) {
      const JointType type = model.joint_types[joint];
      if (joint_size(type).nv == 0 || model.joint_loops[joint]) continue;
      const int first = model.topology.links[model.link_of_joint(static_cast<int>(joint))].v;
      // A position's small changes are those of its velocities.
      const auto components = velocity_components(type);
      for (std::size_t k = 0; k < components.size(); ++k) {
        const JointComponent& c = components[k];
        const bool turns_quaternion = has_quaternion(type) && k < 3;
        if (k == 0 || c.quantity != components[k - 1].quantity || c.turns != components[k - 1].turns) {
          ProbeGroup group;
          std::string quantity = position ? (turns_quaternion ? "orientation" : "position") : c.quantity;
          if (k > 0 && c.quantity == components[k - 1].quantity) quantity += std::string("/") + c.axis;
          group.name = "initial_state/" + model.joint_names[joint] + "/" + quantity;
          group.unit = unit_of(position ? ControlChannel::target_position : ControlChannel::target_velocity, c.turns);
          groups_.push_back(std::move(group));
        }
        ProbeGroup& group = groups_.back();
        const int row = position ? tangent[first + k] : first + static_cast<int>(k);
        const double scale = turns_quaternion && position ? 1 : std::max(1.0, std::abs(values[row]));
        group.index.push_back(group.total++);
        group.probes.push_back({kind, row, -1, 0, scale});
      }
    }
  }
}

void ProbedProblem::add_control_groups(int sample, std::uint64_t seed) {
  const Model& model = problem_.model;
  const int nu = model.topology.nu, steps = options_.steps, total = row_count(steps, nu);
  if (total == 0) return;
  const Control<double> control = initial_control<double>(problem_, 1);
  std::mt19937_64 generator(seed);
  std::vector<int> rows(total);
  std::iota(rows.begin(), rows.end(), 0);
  const int count = std::min(std::max(sample, 0), total);
  for (int k = 0; k < count; ++k) {
    std::swap(rows[k], rows[k + static_cast<int>(generator() % static_cast<std::uint64_t>(total - k))]);
  }
  std::sort(rows.begin(), rows.begin() + count);
  double square = 0, largest = 0;
  for (int r = 0; r < total; ++r) {
    direction_.push_back(2 * uniform(generator) - 1);
    square += direction_.back() * direction_.back();
    largest = std::max(largest, std::abs(control.u(r, 0)));
  }
  for (double& d : direction_) d /= std::sqrt(square);

  for (const ControlRow& channel : control_rows(model)) {
    ProbeGroup group;
    group.name = "control/" + channel.name;
    group.unit = unit_of(channel.channel, channel.turns);
    group.total = steps;
    for (int k = 0; k < count; ++k) {
      if (rows[k] % nu != channel.row) continue;
      group.probes.push_back({Probe::Kind::control, rows[k], -1, 0, std::max(1.0, std::abs(control.u(rows[k], 0)))});
      group.index.push_back(rows[k] / nu);
    }
    if (!group.probes.empty()) groups_.push_back(std::move(group));
  }
  ProbeGroup all;
  all.name = "control/* (one random direction)";
  all.total = total;
  all.probes.push_back({Probe::Kind::all_controls, 0, -1, 0, std::max(1.0, largest) * std::sqrt(total)});
  all.index.push_back(0);
  groups_.push_back(std::move(all));
}

/// How large numbers of this kind are: the item's own, or where they are zero what stands beside
/// them.
double ProbedProblem::parameter_scale(const Field& field, int item) const {
  const Model& model = problem_.model;
  const Parameter& values = field.in(model);
  if (field.tangents != field.components || field.leaf == "axis") return 1;
  double scale = largest_finite(values, item);
  const bool mass = field.leaf == "mass", inertia = field.leaf == "inertia";
  if (field.group != FieldGroup::couplings && (mass || inertia || field.leaf == "armature")) {
    const int body = field.group == FieldGroup::bodies ? item : model.joint_children[item];
    const MassProperties<double> all = body_mass(model, body, 0);
    const bool heavy = mass || (!inertia && model.joint_types[item] == JointType::prismatic);
    scale = std::max(scale, heavy ? all.mass : std::max({all.inertia.xx, all.inertia.yy, all.inertia.zz}));
  }
  for (int other = 0; scale == 0 && other < values.items(); ++other) scale = largest_finite(values, other);
  return scale > 0 ? scale : 1;
}

void ProbedProblem::add_parameter_groups() {
  const Model& model = problem_.model;
  for (const Field& field : fields()) {
    for (int item = 0; item < field.in(model).items(); ++item) {
      const FieldSelection selection{&field, item, -1};
      ProbeGroup group;
      group.name = path_of(model, selection);
      group.unit = field.unit;
      group.unused = unused_reason(model, field, item);
      group.field = selection;
      if (!group.unused) {
        const int chart = static_cast<int>(charts_.size());
        charts_.emplace_back(model, selection);
        group.total = charts_.back().size();
        for (int k = 0; k < group.total; ++k) {
          group.probes.push_back({Probe::Kind::parameter, 0, chart, k, parameter_scale(field, item)});
          group.index.push_back(k);
        }
      }
      groups_.push_back(std::move(group));
    }
  }
}

template <class T>
void ProbedProblem::move_position(Buffer<T>& q, int row, int world, double amount) const {
  bool turned = false;
  each_quaternion(problem_.model.topology, [&](TurnSide side, int first, int) {
    if (row < first || row > first + 3) return;
    double numbers[3] = {0, 0, 0};
    numbers[row - first] = amount;
    const Vec3<double> theta{numbers[0], numbers[1], numbers[2]};
    const Quaternion<double> at = load_quaternion(problem_.initial_position.data() + first);
    Quaternion<double> next;
    if constexpr (std::is_same_v<T, double>) {
      next = side == TurnSide::left ? backdrive::turned<TurnSide::left>(at, theta)
                                    : backdrive::turned<TurnSide::right>(at, theta);
    } else {
      next = quaternion_rate(side, at, theta);
    }
    const double result[4] = {next.v.x, next.v.y, next.v.z, next.w};
    for (int k = 0; k < 4; ++k) {
      T& x = q.write(first + k)[world];
      if constexpr (std::is_same_v<T, double>) {
        x = result[k];
      } else {
        x.dot = result[k];
      }
    }
    turned = true;
  });
  if (!turned) move(q.write(row)[world], amount);
}

template <class T>
ProbedProblem::Batch<T> ProbedProblem::batch(std::span<const Step> steps) const {
  constexpr bool dual = !std::is_same_v<T, double>;
  const int worlds = static_cast<int>(steps.size());
  Batch<T> b{problem_, initial_state<T>(problem_, worlds), initial_control<T>(problem_, worlds), {}};
  if constexpr (dual) {
    b.direction = zero_parameters(problem_.model, worlds);
    // Directions differ from world to world, so the constants must.
    b.problem.model.gravity.spread(worlds);
  }
  for (int w = 0; w < worlds; ++w) {
    const auto& [probe, amount] = steps[w];
    if (probe.kind == Probe::Kind::position) move_position(b.state.q, probe.row, w, amount);
    if (probe.kind == Probe::Kind::velocity) move(b.state.qd.write(probe.row)[w], amount);
    if (probe.kind == Probe::Kind::control) move(b.control.u.write(probe.row)[w], amount);
    if (probe.kind == Probe::Kind::all_controls) {
      for (size_t r = 0; r < direction_.size(); ++r) {
        move(b.control.u.write(static_cast<int>(r))[w], amount * direction_[r]);
      }
    }
    if (probe.kind != Probe::Kind::parameter) continue;
    const ParameterChart& chart = charts_[probe.chart];
    std::vector<double> numbers = chart.start();
    if constexpr (dual) {
      std::vector<double> dots(numbers.size(), 0.0), tangents(chart.field().tangents);
      dots[probe.component] = amount;
      chart.push(numbers.data(), dots.data(), tangents.data());
      Parameter& direction = chart.field().of(b.direction);
      for (int c = 0; c < chart.field().tangents; ++c) direction.at(chart.item(), c, w) = tangents[c];
    } else {
      Parameter& parameter = chart.field().of(b.problem.model);
      if (parameter.worlds() != worlds) parameter.spread(worlds);
      numbers[probe.component] += amount;
      chart.write(parameter, numbers.data(), w);
    }
  }
  return b;
}

std::vector<double> ProbedProblem::losses(std::span<const Step> steps) const {
  std::vector<double> result;
  Memory memory = memory_;
  const auto worlds = static_cast<size_t>(batch_size(options_.steps));
  for (size_t begin = 0; begin < steps.size(); begin += worlds) {
    const Batch<double> b = batch<double>(steps.subspan(begin, std::min(worlds, steps.size() - begin)));
    const Control<double> control = detach(b.control, memory);
    const State<double> start =
        place_bodies<double>(nullptr, b.problem.model, detach(b.state, memory), options_, memory);
    const auto trajectory = rollout(b.problem.model, start, control, options_, memory);
    const auto loss = evaluate_loss<double>(b.problem, trajectory, control, options_, nullptr);
    const Buffer<double> total = on_host(loss.total);
    for (int w = 0; w < total.worlds(); ++w) result.push_back(total(0, w));
    tell(static_cast<std::size_t>(total.worlds()));
  }
  return result;
}

std::vector<double> ProbedProblem::derivatives(std::span<const Probe> probes) const {
  using D = Dual<double>;
  std::vector<double> result;
  const auto worlds = static_cast<size_t>(batch_size(options_.steps));
  for (size_t begin = 0; begin < probes.size(); begin += worlds) {
    std::vector<Step> steps;
    for (size_t i = begin; i < std::min(probes.size(), begin + worlds); ++i) steps.push_back({probes[i], 1.0});
    const Batch<D> b = batch<D>(steps);
    RolloutOptions options = options_;
    options.direction = &b.direction;
    const State<D> start = place_bodies<D>(nullptr, b.problem.model, b.state, options);
    const auto trajectory = rollout(b.problem.model, start, b.control, options);
    const auto loss = evaluate_loss<D>(b.problem, trajectory, b.control, options, nullptr);
    for (int w = 0; w < loss.total.worlds(); ++w) result.push_back(loss.total(0, w).dot);
    tell(steps.size());
  }
  return result;
}

template <class T>
ProbedGradients ProbedProblem::gradients_of(Batch<T>& b) const {
  Tape<T> tape(memory_);
  const State<T> state = detach(b.state, tape.memory());
  const Control<T> control = detach(b.control, tape.memory());
  const State<T> start = place_bodies(&tape, b.problem.model, state, options_);
  const auto trajectory = rollout(tape, b.problem.model, start, control, options_);
  const auto loss = evaluate_loss(b.problem, trajectory, control, options_, &tape);
  if (const WorldStatus& s = (*trajectory.status)[0]; s.stopped()) {
    throw Error(ErrorKind::non_finite, "the rollout stops at step " + std::to_string(s.stopped_step) + ": joint '" +
                                           (s.joint >= 0 ? b.problem.model.joint_names[s.joint] : "?") +
                                           "' is no longer finite");
  }
  const Gradients<T> g = std::move(tape).backward(loss.seeds, Disconnected::zero);  // every one there is
  ProbedGradients result;
  result.parameters = g.parameters();
  tell(static_cast<std::size_t>(b.state.q.worlds()));
  const Buffer<T> total = on_host(loss.total), q_bar = on_host(g.of(state.q)), qd_bar = on_host(g.of(state.qd));
  const Buffer<T> u_bar = control.u.empty() ? Buffer<T>() : on_host(g.of(control.u));
  for (int w = 0; w < b.state.q.worlds(); ++w) {
    result.loss.push_back(total(0, w));
    std::vector<double>& row = result.gradient.emplace_back();
    double squares = 0;
    for (int r = 0; r < u_bar.rows(); ++r)
      squares += static_cast<double>(u_bar(r, w)) * static_cast<double>(u_bar(r, w));
    result.by_controls.push_back(u_bar.rows() > 0 ? std::sqrt(squares / u_bar.rows()) : 0);
    for (const ProbeGroup& group : groups_) {
      for (const Probe& probe : group.probes) {
        switch (probe.kind) {
          case Probe::Kind::position:
            row.push_back(q_bar(probe.row, w));
            break;
          case Probe::Kind::velocity:
            row.push_back(qd_bar(probe.row, w));
            break;
          case Probe::Kind::control:
            row.push_back(u_bar(probe.row, w));
            break;
          case Probe::Kind::all_controls: {
            double along = 0;
            for (size_t r = 0; r < direction_.size(); ++r) {
              along += u_bar(static_cast<int>(r), w) * direction_[r];
            }
            row.push_back(along);
            break;
          }
          case Probe::Kind::parameter: {
            const ParameterChart& chart = charts_[probe.chart];
            const Parameter& field = chart.field().in(g.parameters());
            std::array<double, 6> tangents{}, gradient{};
            for (int c = 0; c < field.components(); ++c) tangents[c] = field(chart.item(), c, field.uniform() ? 0 : w);
            chart.pull(chart.start().data(), tangents.data(), gradient.data());
            row.push_back(gradient[probe.component]);
            break;
          }
        }
      }
    }
  }
  return result;
}

template <class T>
ProbedGradients ProbedProblem::gradients() const {
  Batch<T> b{problem_, initial_state<T>(problem_, 1), initial_control<T>(problem_, 1), {}};
  return gradients_of(b);
}

template <class T>
ProbedGradients ProbedProblem::disturbed_gradients(int worlds, double relative) const {
  Batch<T> b{problem_, initial_state<T>(problem_, worlds), initial_control<T>(problem_, worlds), {}};
  std::mt19937_64 generator(seed_ + 1);
  const auto disturbance = [&] { return relative * (2 * uniform(generator) - 1); };
  for (Buffer<T>* buffer : {&b.state.q, &b.state.qd, &b.control.u}) {
    for (int r = 0; r < buffer->rows(); ++r) {
      T* row = buffer->write(r);
      for (int w = 1; w < worlds; ++w) {
        row[w] += static_cast<T>(disturbance() * std::max(1.0, std::abs(static_cast<double>(row[w]))));
      }
    }
  }
  for (const Field& field : fields()) {
    Parameter& parameter = field.of(b.problem.model);
    parameter.spread(worlds);
    for (int w = 1; w < worlds; ++w) {
      for (int item = 0; item < parameter.items(); ++item) {
        for (int c = 0; c < parameter.components(); ++c) parameter.at(item, c, w) *= 1 + disturbance();
      }
    }
  }
  return gradients_of(b);
}

template ProbedGradients ProbedProblem::gradients<float>() const;
template ProbedGradients ProbedProblem::gradients<double>() const;
template ProbedGradients ProbedProblem::disturbed_gradients<float>(int, double) const;
template ProbedGradients ProbedProblem::disturbed_gradients<double>(int, double) const;

}  // namespace backdrive
