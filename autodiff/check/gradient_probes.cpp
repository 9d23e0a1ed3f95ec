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
      probes + kRolloutsOfDifference * differences + (options.float32 ? 50 : 17);  // adjoints and disturbed ones
}

void ProbedProblem::tell(std::size_t rollouts) const {
  done_ += static_cast<long long>(rollouts);
  if (progress_) progress_(done_, std::max(done_, expected_));
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
  // They take twenty times as long as losses do, and have no lanes to fill.
  const auto worlds = static_cast<size_t>(std::min(batch_size(options_.steps), kLeastWorlds));
  for (size_t begin = 0; begin < probes.size(); begin += worlds) {
    std::vector<Step> steps;
    for (size_t i = begin; i < std::min(probes.size(), begin + worlds); ++i) steps.push_back({probes[i], 1.0});
    const std::vector<double> some = derivatives_of(batch<D>(steps));
    result.insert(result.end(), some.begin(), some.end());
  }
  return result;
}

std::vector<double> ProbedProblem::derivatives_of(const Batch<Dual<double>>& b) const {
  using D = Dual<double>;
  RolloutOptions options = options_;
  options.direction = &b.direction;
  const State<D> start = place_bodies<D>(nullptr, b.problem.model, b.state, options);
  const auto trajectory = rollout(b.problem.model, start, b.control, options);
  const auto loss = evaluate_loss<D>(b.problem, trajectory, b.control, options, nullptr);
  std::vector<double> dots;
  for (int w = 0; w < loss.total.worlds(); ++w) dots.push_back(loss.total(0, w).dot);
  tell(dots.size());
  return dots;
}

std::vector<double> ProbedProblem::derivative_rounding(std::span<const Probe> probes, int worlds,
                                                       double relative) const {
  std::vector<double> rounding;
  for (const Probe& probe : probes) {
    Batch<Dual<double>> b = batch<Dual<double>>(std::vector<Step>(static_cast<size_t>(worlds), {probe, 1.0}));
    disturb(b, relative);
    const std::vector<double> dots = derivatives_of(b);
    double most = 0;
    for (const double dot : dots) most = std::max(most, std::abs(dot - dots[0]));
    rounding.push_back(most);
  }
  return rounding;
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
void ProbedProblem::disturb(Batch<T>& b, double relative) const {
  const int worlds = b.state.q.worlds();
  std::mt19937_64 generator(seed_ + 1);
  const auto disturbance = [&] { return relative * (2 * unit_interval(generator) - 1); };
  for (Buffer<T>* buffer : {&b.state.q, &b.state.qd, &b.control.u}) {
    for (int r = 0; r < buffer->rows(); ++r) {
      T* row = buffer->write(r);
      for (int w = 1; w < worlds; ++w) {
        const double size = std::abs(static_cast<double>(value_of(row[w])));
        row[w] += static_cast<ScalarOf<T>>(disturbance() * std::max(1.0, size));
      }
    }
  }
  each_quaternion(problem_.model.topology, [&](TurnSide, int first, int) {
    T* rows[4];
    for (int k = 0; k < 4; ++k) rows[k] = b.state.q.write(first + k);
    for (int w = 1; w < worlds; ++w) {
      const auto part = [&](int k) { return value_of(rows[k][w]); };
      const ScalarOf<T> length = std::hypot(std::hypot(part(0), part(1)), std::hypot(part(2), part(3)));
      for (T* const row : rows) row[w] /= length;
    }
  });
  for (const Field& field : fields()) {
    Parameter& parameter = field.of(b.problem.model);
    if (parameter.worlds() != worlds) parameter.spread(worlds);
    for (int w = 1; w < worlds; ++w) {
      for (int item = 0; item < parameter.items(); ++item) {
        for (int c = 0; c < parameter.components(); ++c) parameter.at(item, c, w) *= 1 + disturbance();
      }
    }
  }
}

template <class T>
ProbedGradients ProbedProblem::gradients() const {
  Batch<T> b{problem_, initial_state<T>(problem_, 1), initial_control<T>(problem_, 1), {}};
  return gradients_of(b);
}

template <class T>
ProbedGradients ProbedProblem::disturbed_gradients(int worlds, double relative) const {
  Batch<T> b{problem_, initial_state<T>(problem_, worlds), initial_control<T>(problem_, worlds), {}};
  disturb(b, relative);
  return gradients_of(b);
}

template ProbedGradients ProbedProblem::gradients<float>() const;
template ProbedGradients ProbedProblem::gradients<double>() const;
template ProbedGradients ProbedProblem::disturbed_gradients<float>(int, double) const;
template ProbedGradients ProbedProblem::disturbed_gradients<double>(int, double) const;

}  // namespace backdrive
