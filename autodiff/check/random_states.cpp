#include "autodiff/check/random_states.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <random>

#include "autodiff/problem/loss.h"
#include "engine/rotation.h"

namespace backdrive {
namespace {

/// How deep shapes may begin in one another, as a part of the smaller one's least length.
constexpr double kDeepest = 0.25;
/// How deep what is let down to the ground begins in it, as a part of the same.
constexpr double kPressed = 0.01;
/// Turns of a step, rad.
constexpr double kTurnOfStep = 0.05;
/// Of joints with both limits, how much of their range is left free at each end.
constexpr double kFromLimit = 0.05;
constexpr int kDraws = 12;

double length_of(double x, double y, double z) {
  return std::sqrt(x * x + y * y + z * z);
}

/// The largest length that the model's numbers tell of: between joints, to centres of mass, of shapes; else 1 m.
double model_length(const Model& model) {
  double most = 0;
  const auto take = [&](const Parameter& p, int item) {
    most = std::max(most, length_of(p(item, 0), p(item, 1), p(item, 2)));
  };
  for (std::size_t j = 0; j < model.joint_names.size(); ++j) {
    if (model.joint_parents[j] >= 0) take(model.joints.frame.position, static_cast<int>(j));
  }
  for (std::size_t b = 0; b < model.body_names.size(); ++b) take(model.bodies.com, static_cast<int>(b));
  for (std::size_t s = 0; s < model.shape_names.size(); ++s) {
    const int shape = static_cast<int>(s);
    if (std::isfinite(least_size(model, shape))) take(model.shapes.geometry.scale, shape);
  }
  return most > 0 ? most : 1;
}

/// What moves a whole tree against gravity: how much a position changes, and a velocity, per metre upwards.
struct Lift {
  int q, v;
  double per_metre;
};

Mat3<double> frame_rotation(const Model& model, int joint) {
  const Parameter& p = model.joints.frame.orientation;
  return rotation_matrix(p(joint, 0), p(joint, 1), p(joint, 2), p(joint, 3));
}

/// Of each tree whose first joint is free, or that hangs on slides of which one is along gravity.
std::vector<Lift> find_lifts(const Model& model, const Vec3<double>& up) {
  std::vector<Lift> lifts;
  const auto& links = model.topology.links;
  std::vector<int> root(links.size());
  std::vector<bool> slides(links.size()), lifted(links.size());
  std::vector<Mat3<double>> rotation(links.size());
  for (std::size_t i = 0; i < links.size(); ++i) {
    const Link& link = links[i];
    if (link.loop_child >= 0) continue;
    const bool on_world = link.parent < 0;
    root[i] = on_world ? static_cast<int>(i) : root[link.parent];
    slides[i] = (on_world || slides[link.parent]) && link.type == JointType::prismatic;
    rotation[i] = on_world ? Mat3<double>{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}} : rotation[link.parent];
    if (link.first) rotation[i] = rotation[i] * frame_rotation(model, link.joint);
    const Vec3<double> axes[3] = {rotation[i].cx, rotation[i].cy, rotation[i].cz};
    if (on_world && link.type == JointType::free) {
      for (int k = 0; k < 3; ++k) lifts.push_back({link.q + 4 + k, link.v + 3 + k, dot(axes[k], up)});
    } else if (slides[i] && !lifted[root[i]]) {
      const Parameter& own = model.joints.axis;
      const Vec3<double> axis =
          link.axis == LinkAxis::parameter
              ? rotation[i] * Vec3<double>{own(link.joint, 0), own(link.joint, 1), own(link.joint, 2)}
              : axes[static_cast<int>(link.axis) - static_cast<int>(LinkAxis::x)];
      const double along = dot(axis, up);
      if (std::abs(along) < 0.9) continue;
      lifts.push_back({link.q, link.v, 1 / along});
      lifted[root[i]] = true;
    }
  }
  return lifts;
}

class Draw {
 public:
  Draw(const Problem& problem, std::uint64_t seed, int number)
      : problem_(problem),
        model_(problem.model),
        generator_(seed * 0x9E3779B97F4A7C15u + static_cast<std::uint64_t>(number)),
        presses_(number % 2 == 1),
        length_(model_length(problem.model)) {
    const Parameter& g = model_.gravity;
    const double gravity = length_of(g(0, 0), g(0, 1), g(0, 2));
    const double duration = problem.simulation.time_step * problem.simulation.steps;
    rate_ =
        std::min(gravity > 0 ? std::sqrt(gravity / length_) : 1 / duration, kTurnOfStep / problem.simulation.time_step);
    if (gravity > 0) lifts_ = find_lifts(model_, Vec3<double>{g(0, 0), g(0, 1), g(0, 2)} * (-1 / gravity));
    deepest_ = std::max(kDeepest, touch(problem.initial_position).depth);
  }

  std::optional<RandomState> state() {
    const bool loops = std::ranges::find(model_.joint_loops, true) != model_.joint_loops.end();
    for (int draw = 0; draw < kDraws; ++draw) {
      const double amplitude = draw + 1 < kDraws ? std::pow(0.7, draw) : 0;
      RandomState state{problem_, 0};
      const bool sane = loops ? move_on(state.problem) : place(state.problem, amplitude);
      if (!sane || !std::isfinite(loss_of(state.problem))) continue;
      state.touching = touch(state.problem.initial_position).pairs;
      return state;
    }
    return {};
  }

 private:
  using Numbers = std::vector<double>;

  /// In [low, high), the same on every platform.
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(generator_() >> 11) * 0x1p-53;
  }

  double joint_position(int joint, double now) {
    const double span = model_.joint_types[joint] == JointType::revolute ? 1 : length_ / 2;
    const double lower = model_.joints.limit.lower(joint), upper = model_.joints.limit.upper(joint);
    const double margin = std::isfinite(upper - lower) ? kFromLimit * (upper - lower) : 0;
    if (std::isfinite(upper - lower)) return uniform(lower + margin, upper - margin);
    const double inside = std::clamp(now, lower, upper);
    return uniform(std::max(lower, inside - span), std::min(upper, inside + span));
  }

  Numbers pose(double amplitude) {
    Numbers q = problem_.initial_position;
    for (std::size_t j = 0; j < model_.joint_names.size(); ++j) {
      const int joint = static_cast<int>(j);
      const JointType type = model_.joint_types[j];
      double* const own = q.data() + model_.topology.links[model_.link_of_joint(joint)].q;
      if (has_one_degree(type)) {
        const double target = joint_position(joint, own[0]);
        own[0] += amplitude * (target - own[0]);
        continue;
      }
      const auto components = position_components(type);
      if (has_quaternion(type)) {
        const Vec3<double> turn{uniform(-1, 1), uniform(-1, 1), uniform(-1, 1)};
        const auto turned_by =
            turned<TurnSide::left>(load_quaternion<double>(own), turn * (amplitude / std::sqrt(3.0)));
        own[0] = turned_by.v.x, own[1] = turned_by.v.y, own[2] = turned_by.v.z, own[3] = turned_by.w;
      }
      for (std::size_t k = has_quaternion(type) ? 4 : 0; k < components.size(); ++k) {
        own[k] += amplitude * uniform(-1, 1) * (components[k].turns ? 1 : length_ / 2);
      }
    }
    return q;
  }

  Numbers velocities(double amplitude) {
    Numbers qd = problem_.initial_velocity;
    for (std::size_t j = 0; j < model_.joint_names.size(); ++j) {
      const auto components = velocity_components(model_.joint_types[j]);
      if (components.empty()) continue;
      double* const own = qd.data() + model_.topology.links[model_.link_of_joint(static_cast<int>(j))].v;
      for (std::size_t k = 0; k < components.size(); ++k) {
        own[k] += amplitude * rate_ * (components[k].turns ? 1 : length_) * uniform(-1, 1);
      }
    }
    return qd;
  }

  struct Touch {
    int pairs = 0;
    double depth = 0;  ///< of the deepest, as a part of the smaller shape's size
    double size = 0;   ///< its size
  };
  /// Of a state of rest.
  Touch touch(const Numbers& q) const {
    Touch touch;
    if (model_.topology.contact_pairs.empty()) return touch;
    Problem first = problem_;
    first.initial_position = q;
    first.initial_velocity.assign(q.empty() ? 0 : problem_.initial_velocity.size(), 0.0);
    RolloutOptions options{.time_step = problem_.simulation.time_step, .steps = 1, .keep_contact = true};
    options.checked = true;
    const State<double> start = place_bodies<double>(nullptr, first.model, initial_state<double>(first, 1), options);
    const Trajectory<double> step = rollout(first.model, start, Control<double>{}, options);
    const auto& pairs = model_.topology.contact_pairs;
    for (std::size_t k = 0; k < pairs.size(); ++k) {
      const int row = static_cast<int>(k) * kContactRows;
      const bool presses = step.contact(row, 0) != 0 || step.contact(row + 1, 0) != 0 || step.contact(row + 2, 0) != 0;
      if (!presses) continue;
      ++touch.pairs;
      const auto& shapes = model_.topology.contact_shapes;
      double size =
          std::min(least_size(model_, shapes[pairs[k].a].shape), least_size(model_, shapes[pairs[k].b].shape));
      if (!std::isfinite(size)) size = length_;
      if (const double depth = step.contact(row + 6, 0) / size; !(depth < touch.depth)) touch.depth = depth;
      touch.size = size;
    }
    return touch;
  }

  void raise(Numbers& q, double metres) const {
    for (const Lift& lift : lifts_) q[lift.q] += lift.per_metre * metres;
  }
  Touch touch_at(Numbers q, double height) const {
    raise(q, height);
    return touch(q);
  }

  /// Lifts or lets down all trees until something just touches.
  void put_on_ground(Numbers& q) const {
    const bool begins = touch(q).pairs > 0;
    double near = 0, far = 0, step = begins ? length_ / 8 : -length_ / 8;
    for (int k = 0;; ++k, step *= 1.5) {
      if (k == 24) return;  // there is nothing below
      far = near + step;
      if ((touch_at(q, far).pairs > 0) != begins) break;
      near = far;
    }
    double touching = begins ? near : far, apart = begins ? far : near;
    for (int k = 0; k < 40 && apart - touching > 1e-9 * length_; ++k) {
      const double middle = (touching + apart) / 2;
      (touch_at(q, middle).pairs > 0 ? touching : apart) = middle;
    }
    raise(q, touching - kPressed * touch_at(q, touching).size);
  }

  bool place(Problem& problem, double amplitude) {
    Numbers q = pose(amplitude), qd = velocities(amplitude);
    if (!lifts_.empty() && (presses_ || touch(q).depth > deepest_)) {
      put_on_ground(q);
      const double down = presses_ ? -0.5 * rate_ * length_ : 0;
      for (const Lift& lift : lifts_) qd[lift.v] += amplitude * lift.per_metre * down;
    }
    const double depth = touch(q).depth;
    problem.initial_position = std::move(q);
    problem.initial_velocity = std::move(qd);
    return depth <= deepest_;
  }

  /// Puts the problem to where its own motion is at a random time.
  bool move_on(Problem& problem) {
    RolloutOptions options{.time_step = problem_.simulation.time_step};
    options.steps = 1 + static_cast<int>(uniform(0, problem_.simulation.steps));
    options.keep_states = false;
    options.checked = true;
    const State<double> start = place_bodies<double>(nullptr, model_, initial_state<double>(problem_, 1), options);
    const Control<double> all = initial_control<double>(problem_, 1);
    Control<double> control;
    if (!all.u.empty()) {
      const int rows = options.steps * model_.topology.nu;
      control.u = Buffer<double>(rows, 1);
      control.u.copy_rows(0, all.u, 0, rows);
    }
    const Trajectory<double> motion = rollout(model_, start, control, options);
    if (motion.any_stopped()) return false;
    for (int r = 0; r < motion.final.q.rows(); ++r) problem.initial_position[r] = motion.final.q(r, 0);
    for (int r = 0; r < motion.final.qd.rows(); ++r) problem.initial_velocity[r] = motion.final.qd(r, 0);
    return true;
  }

  static double loss_of(const Problem& problem) {
    RolloutOptions options{.time_step = problem.simulation.time_step, .steps = problem.simulation.steps};
    options.keep_states = scores_states_on_the_way(problem);
    options.keep_contact = scores_contact(problem);
    options.checked = true;
    const State<double> start =
        place_bodies<double>(nullptr, problem.model, initial_state<double>(problem, 1), options);
    const Control<double> control = initial_control<double>(problem, 1);
    const Trajectory<double> motion = rollout(problem.model, start, control, options);
    return evaluate_loss<double>(problem, motion, control, options, nullptr).total(0, 0);
  }

  const Problem& problem_;
  const Model& model_;
  std::mt19937_64 generator_;
  bool presses_;
  double length_;    ///< m
  double rate_ = 0;  ///< 1/s
  double deepest_ = kDeepest;
  std::vector<Lift> lifts_;
};

}  // namespace

std::optional<RandomState> random_state(const Problem& problem, std::uint64_t seed, int number) {
  return Draw(problem, seed, number).state();
}

}  // namespace backdrive
