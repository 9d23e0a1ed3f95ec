#include "tests/support/gradient_case.h"

#include <algorithm>
#include <cmath>

#include "autodiff/tape/recorded.h"
#include "integrators/featherstone/link_constants.h"
#include "integrators/rollout/arguments.h"
#include "models/parameter_list.h"

namespace backdrive::test {
namespace {

Buffer<double> random_buffer(int rows, int worlds, Random& random) {
  Buffer<double> b(std::max(rows, 0), worlds);
  for (int r = 0; r < rows; ++r) {
    for (int w = 0; w < worlds; ++w) b.set(r, w, random.symmetric(1));
  }
  return b;
}

template <class To, class From>
Buffer<To> converted(const Buffer<From>& from) {
  Buffer<To> to(from.rows(), from.worlds());
  for (int r = 0; r < from.rows(); ++r) {
    for (int w = 0; w < from.worlds(); ++w) to.set(r, w, static_cast<To>(from(r, w)));
  }
  return to;
}

/// A column of a buffer of duals or plain numbers as a quaternion of plain numbers.
template <class Numbers>
Quaternion<double> quaternion_in(const Buffer<Numbers>& q, int row, int world, double (*part)(const Numbers&)) {
  return {{part(q(row, world)), part(q(row + 1, world)), part(q(row + 2, world))}, part(q(row + 3, world))};
}
double value_part(const Dual<double>& x) {
  return x.value;
}
double dot_part(const Dual<double>& x) {
  return x.dot;
}
double itself(const double& x) {
  return x;
}

/// A direction of q in tangent rows as one of its numbers.
Buffer<double> directions_of_numbers(const Topology& t, const Buffer<double>& q, const Buffer<double>& tangent) {
  Buffer<double> result = converted<double>(tangent);
  each_quaternion(t, [&](TurnSide side, int row, int) {
    for (int w = 0; w < q.worlds(); ++w) {
      const Vec3<double> theta{tangent(row, w), tangent(row + 1, w), tangent(row + 2, w)};
      const Quaternion<double> rate = quaternion_rate(side, quaternion_in(q, row, w, itself), theta);
      const double numbers[4] = {rate.v.x, rate.v.y, rate.v.z, rate.w};
      for (int k = 0; k < 4; ++k) result.set(row + k, w, numbers[k]);
    }
  });
  return result;
}

/// The dots of positions (of any number of states) in tangent rows.
Buffer<double> tangent_of_dots(const Topology& t, const Buffer<Dual<double>>& q) {
  Buffer<double> result(q.rows(), q.worlds());
  for (int r = 0; r < q.rows(); ++r) {
    for (int w = 0; w < q.worlds(); ++w) result.set(r, w, q(r, w).dot);
  }
  for (int first = 0; first < q.rows(); first += t.nq) {
    each_quaternion(t, [&](TurnSide side, int own, int) {
      const int row = first + own;
      for (int w = 0; w < q.worlds(); ++w) {
        const Vec3<double> theta =
            turn_of_rate(side, quaternion_in(q, row, w, value_part), quaternion_in(q, row, w, dot_part));
        const double numbers[4] = {theta.x, theta.y, theta.z, 0};
        for (int k = 0; k < 4; ++k) result.set(row + k, w, numbers[k]);
      }
    });
  }
  return result;
}

Buffer<Dual<double>> dual(const Buffer<double>& value, const Buffer<double>& dot) {
  Buffer<Dual<double>> to(value.rows(), value.worlds());
  for (int r = 0; r < value.rows(); ++r) {
    for (int w = 0; w < value.worlds(); ++w) to.set(r, w, {value(r, w), dot(r, w)});
  }
  return to;
}

const Field* field_of(const std::string& block) {
  for (const Field& field : fields()) {
    if (block_of(field) == block) return &field;
  }
  return nullptr;
}

/// Calls visit(number of `a`, number of `b`) for all of two buffers.
template <class A, class B, class Visit>
void zip(const Buffer<A>& a, const Buffer<B>& b, Visit&& visit) {
  for (int r = 0; r < a.rows(); ++r) {
    for (int w = 0; w < a.worlds(); ++w) visit(a(r, w), b(r, w));
  }
}

/// Calls visit for the outputs of a rollout beside their cotangents. `q` and `q_end`: what stands for the positions.
template <class T, class Q, class Visit>
void each_output(const GradientCase& c, const Buffer<Q>& q, const Buffer<Q>& q_end, const Trajectory<T>& t,
                 const Buffer<T>& poses, Visit&& visit) {
  zip(q, c.q_bar, visit);
  zip(t.qd, c.qd_bar, visit);
  zip(q_end, c.q_end_bar, visit);
  zip(t.final.qd, c.qd_end_bar, visit);
  zip(poses, c.pose_bar, visit);
  if (c.reported_bar.empty()) return;
  zip(t.reported, c.reported_bar, visit);
  zip(t.final_reported, c.reported_end_bar, visit);
}

/// The rows of a control block: those of `channel` 0 (effort), 1, 2 (targets) in each step.
bool in_channel(const Topology& t, int row, int channel) {
  const int r = row % t.nu;
  for (const Coupling& c : t.couplings) {
    if (r == c.effort) return channel == 0;
    if (c.target >= 0 && (r == c.target || r == c.target + 1)) return channel == r - c.target + 1;
  }
  return channel == 0 ? r < t.nv : r >= t.nv && (r - t.nv) % 2 == channel - 1;
}

/// A random vector perpendicular to the axis.
void set_axis_tangent(const GradientCase& c, int item, int world, Random& random, Parameter& to) {
  double along = 0, t[3];
  for (int k = 0; k < 3; ++k) {
    t[k] = random.symmetric(1);
    along += t[k] * c.model.joints.axis(item, k, world);
  }
  for (int k = 0; k < 3; ++k) {
    to.at(item, k, world) = t[k] - along * c.model.joints.axis(item, k, world);
  }
}

}  // namespace

GradientCase make_case(Model model, int steps, double time_step, int worlds, std::uint64_t seed,
                       const BatchScale& scale) {
  GradientCase c;
  c.options.steps = steps;
  c.options.checked = true;  // differences may step over a bound
  c.options.time_step = time_step;
  c.batch = random_batch<double>(model, steps, first_worlds(worlds), seed, scale);
  const Topology& t = model.topology;
  const int bodies = static_cast<int>(model.body_names.size());
  c.bodies = {bodies - 1};
  if (bodies > 2) c.bodies.push_back(bodies / 2);
  Random random(seed + 77);
  const auto in_tangent_rows = [&](Buffer<double> bar) {
    for (int first = 0; first < bar.rows(); first += t.nq) {
      each_quaternion(t, [&](TurnSide, int row, int) {
        for (int w = 0; w < worlds; ++w) bar.set(first + row + 3, w, 0);
      });
    }
    return bar;
  };
  c.q_bar = in_tangent_rows(random_buffer((steps + 1) * t.nq, worlds, random));
  c.qd_bar = random_buffer((steps + 1) * t.nv, worlds, random);
  c.q_end_bar = in_tangent_rows(random_buffer(t.nq, worlds, random));
  c.qd_end_bar = random_buffer(t.nv, worlds, random);
  c.pose_bar = random_buffer((steps + 1) * static_cast<int>(c.bodies.size()) * kMotionRows, worlds, random);
  if (!t.contact_pairs.empty()) {
    c.reported_bar = random_buffer((steps + 1) * t.nv, worlds, random);
    c.reported_end_bar = random_buffer(t.nv, worlds, random);
  }
  c.model = std::move(model);
  return c;
}

/// Of the case's bodies, with the velocities that q̇ says.
template <class T>
Buffer<T> motions(Tape<T>* tape, const GradientCase& c, const Trajectory<T>& t, const RolloutOptions& options,
                  Memory& memory = default_memory()) {
  State<T> states;
  states.q = t.q;
  states.qd = t.qd;
  return body_motions<T>(tape, c.model, states, c.bodies, options, memory);
}

template <class T>
CaseGradient gradient_by_tape(const GradientCase& c, Memory memory) {
  const auto there = [&](const Buffer<double>& numbers) { return converted<T>(numbers).clone(memory); };
  const auto back = [](const Buffer<T>& numbers) { return converted<double>(on_host(numbers)); };
  State<T> state;
  state.q = there(c.batch.state.q);
  state.qd = there(c.batch.state.qd);
  Control<T> control;
  control.u = there(c.batch.control.u);
  Tape<T> tape(memory);
  const Trajectory<T> t = rollout(tape, c.model, state, control, c.options);
  const Buffer<T> poses = motions(&tape, c, t, c.options, tape.memory());
  Seeds<T> seeds;
  seeds.add(t.q, there(c.q_bar));
  seeds.add(t.qd, there(c.qd_bar));
  seeds.add(t.final.q, there(c.q_end_bar));
  seeds.add(t.final.qd, there(c.qd_end_bar));
  seeds.add(poses, there(c.pose_bar));
  if (!c.reported_bar.empty()) {
    seeds.add(t.reported, there(c.reported_bar));
    seeds.add(t.final_reported, there(c.reported_end_bar));
  }
  // All parameters that ask: some of them cannot matter.
  const Gradients<T> g = std::move(tape).backward(seeds, Disconnected::zero);
  return {back(g.of(state.q)), back(g.of(state.qd)), back(g.of(control.u)), g.parameters()};
}
template CaseGradient gradient_by_tape<float>(const GradientCase&, Memory);
template CaseGradient gradient_by_tape<double>(const GradientCase&, Memory);

CaseGradient gradient_by_kernels(const GradientCase& c, const KernelTable<double>& table) {
  const Topology& t = c.model.topology;
  Memory memory;
  const int worlds = c.worlds(), steps = c.options.steps;
  const KernelModel<double> model(c.model, nullptr, worlds, memory);
  const State<double>& start = c.batch.state;
  Buffer<double> q(memory, (steps + 1) * t.nq, worlds), qd(memory, (steps + 1) * t.nv, worlds);
  State<double> end(c.model, worlds, memory);
  WorldStatuses status(worlds);
  Launch<double> launch = launch_of(model, c.options.time_step, steps, start.q);
  launch.fresh = !c.reported_bar.empty();
  const std::shared_ptr<std::byte> scratch = memory.allocate(table.scratch_bytes(launch));
  const int groups = (worlds + table.lanes - 1) / table.lanes;
  const bool touches = !c.reported_bar.empty();
  Buffer<double> reported(memory, (steps + 1) * t.nv, worlds);
  RolloutArguments<double> forward{launch,     start.q.row(0), start.qd.row(0), c.batch.control.u.row(0), q.write(),
                                   qd.write(), end.q.write(),  end.qd.write(),  status.write_address()};
  Buffer<double> ways(memory, (steps + 1) * t.way_count, worlds);
  if (touches) forward.reported = reported.write();
  if (t.way_count > 0) forward.ways = ways.write();
  table.rollout(forward, 0, groups, scratch.get());
  std::vector<int> links;
  for (const int body : c.bodies) links.push_back(c.model.link_of_body(body));
  const int count = static_cast<int>(t.links.size());
  CaseGradient result;
  result.parameters = zero_parameters(c.model, c.model.parameter_worlds());
  Parameters unused = result.parameters;
  Launch<double> pose_launch = launch;
  pose_launch.steps = steps + 1;
  Buffer<double> q_bar(memory, q.rows(), worlds), qd_bar(memory, qd.rows(), worlds),
      poses_constants_bar(memory, featherstone::gradient_rows<double>(count), worlds);
  Buffer<double> constants_bar(memory, gradient_rows_of<double>(c.model, true), worlds);
  table.poses_adjoint({pose_launch, q.row(0), links.data(), static_cast<int>(links.size()), nullptr, c.pose_bar.row(0),
                       q_bar.write(), poses_constants_bar.write(), false, qd.row(0), qd_bar.write()},
                      0, groups, scratch.get());
  add_constants_gradient(c.model, nullptr, poses_constants_bar, &status, result.parameters, unused);
  for (int r = 0; r < q_bar.rows(); ++r) {
    for (int w = 0; w < worlds; ++w) q_bar.write(r)[w] += c.q_bar(r, w);
  }
  for (int r = 0; r < qd_bar.rows(); ++r) {
    for (int w = 0; w < worlds; ++w) qd_bar.write(r)[w] += c.qd_bar(r, w);
  }
  result.q0 = Buffer<double>(memory, t.nq, worlds);
  result.qd0 = Buffer<double>(memory, t.nv, worlds);
  result.control = Buffer<double>(memory, steps * t.nu, worlds);
  RolloutAdjointArguments<double> adjoint{launch,
                                          q.row(0),
                                          qd.row(0),
                                          c.batch.control.u.row(0),
                                          status.address(),
                                          q_bar.row(0),
                                          qd_bar.row(0),
                                          c.q_end_bar.row(0),
                                          c.qd_end_bar.row(0),
                                          result.q0.write(),
                                          result.qd0.write(),
                                          result.control.write(),
                                          constants_bar.write()};
  if (touches) {
    adjoint.reported = reported.row(0);
    adjoint.reported_bar = c.reported_bar.row(0);
    adjoint.reported_end_bar = c.reported_end_bar.row(0);
  }
  if (t.way_count > 0) adjoint.ways = ways.row(0);
  table.rollout_adjoint(adjoint, 0, groups, scratch.get());
  add_constants_gradient(c.model, nullptr, constants_bar, &status, result.parameters, unused);
  return result;
}

template <class T>
double value_of_case(const GradientCase& c) {
  State<T> state;
  state.q = converted<T>(c.batch.state.q);
  state.qd = converted<T>(c.batch.state.qd);
  Control<T> control;
  control.u = converted<T>(c.batch.control.u);
  const Trajectory<T> t = rollout(c.model, state, control, c.options);
  const Buffer<T> poses = motions<T>(nullptr, c, t, c.options);
  double sum = 0;
  each_output(c, t.q, t.final.q, t, poses, [&](T x, double w) { sum += w * static_cast<double>(x); });
  return sum;
}
template double value_of_case<float>(const GradientCase&);
template double value_of_case<double>(const GradientCase&);

std::string block_of(const Field& field) {
  switch (field.group) {
    case FieldGroup::bodies:
      return "bodies/" + std::string(field.leaf);
    case FieldGroup::joints:
      return "joints/" + std::string(field.leaf);
    case FieldGroup::shapes:
      return "shapes/" + std::string(field.leaf);
    case FieldGroup::couplings:
    case FieldGroup::terms:
      return "couplings/" + std::string(field.leaf);
    case FieldGroup::model:
      break;
  }
  return std::string(field.leaf);
}

std::vector<std::string> block_names() {
  std::vector<std::string> names{"q0", "qd0", "effort", "target_position", "target_velocity"};
  for (const Field& field : fields()) names.push_back(block_of(field));
  return names;
}

bool block_is_live(const Model& model, const std::string& block) {
  const bool of_touch = block == "shapes/geometry/margin" || block.find("shapes/material") == 0;
  if (block.starts_with("couplings/")) return !model.topology.couplings.empty();
  const bool of_bodies = block.find("joints/attachment") == 0 || block.find("joints/child_frame") == 0;
  if (of_bodies) return model.topology.has_bodies();
  if (block.find("joints/spring") == 0) {
    for (std::size_t j = 0; j < model.joint_types.size(); ++j) {
      const bool pulls = model.joints.spring.stiffness(static_cast<int>(j)) > 0;
      const JointType type = model.joint_types[j];
      if (block == "joints/spring/rest" && type == JointType::ball) continue;
      if (may_be_driven(type) && (pulls || block == "joints/spring/stiffness")) return true;
    }
    return false;
  }
  if (block.find("joints/limit/velocity") == 0) {
    for (int j = 0; j < model.joints.limit.velocity.items(); ++j) {
      if (std::isfinite(model.joints.limit.velocity(j))) return true;
    }
    return false;
  }
  return !of_touch || !model.topology.contact_pairs.empty();
}

Direction zero_direction(const GradientCase& c) {
  const Topology& t = c.model.topology;
  Direction v{Buffer<double>(t.nq, c.worlds()),
              Buffer<double>(t.nv, c.worlds()),
              Buffer<double>(c.options.steps * t.nu, c.worlds()),
              {}};
  v.parameters = zero_parameters(c.model, c.model.parameter_worlds());
  return v;
}

Direction random_direction(const GradientCase& c, const std::string& block, std::uint64_t seed) {
  Direction v = zero_direction(c);
  Random random(seed);
  const Topology& t = c.model.topology;
  if (block == "q0") {
    v.q0 = random_buffer(t.nq, c.worlds(), random);
    each_quaternion(t, [&](TurnSide, int row, int) {
      for (int w = 0; w < c.worlds(); ++w) v.q0.set(row + 3, w, 0);
    });
  } else if (block == "qd0") {
    v.qd0 = random_buffer(t.nv, c.worlds(), random);
  } else if (const Field* field = field_of(block)) {
    Parameter& p = field->of(v.parameters);
    for (int w = 0; w < p.worlds(); ++w) {
      for (int i = 0; i < p.items(); ++i) {
        if (block == "joints/axis") {
          set_axis_tangent(c, i, w, random, p);
        } else {
          for (int k = 0; k < p.components(); ++k) p.at(i, k, w) = random.symmetric(1);
        }
      }
    }
  } else {
    const int channel = block == "effort" ? 0 : (block == "target_position" ? 1 : 2);
    for (int r = 0; r < v.control.rows(); ++r) {
      if (!in_channel(t, r, channel)) continue;
      for (int w = 0; w < c.worlds(); ++w) v.control.set(r, w, random.symmetric(1));
    }
  }
  return v;
}

std::vector<Product> forward_products(const GradientCase& c, const Direction& v) {
  using D = Dual<double>;
  State<D> state;
  const Topology& topology = c.model.topology;
  state.q = dual(c.batch.state.q, directions_of_numbers(topology, c.batch.state.q, v.q0));
  state.qd = dual(c.batch.state.qd, v.qd0);
  Control<D> control;
  control.u = dual(c.batch.control.u, v.control);
  RolloutOptions options = c.options;
  options.direction = &v.parameters;
  const Trajectory<D> t = rollout(c.model, state, control, options);
  const Buffer<D> poses = motions<D>(nullptr, c, t, options);
  std::vector<Product> sums(c.worlds());
  std::size_t world = 0;  // the numbers of a row come world by world
  const auto add = [&](const auto& x, double w) {
    double dot = 0;
    if constexpr (std::is_same_v<std::decay_t<decltype(x)>, double>) {
      dot = x;
    } else {
      dot = x.dot;
    }
    sums[world].value += w * dot;
    sums[world].magnitude += std::abs(w * dot);
    world = (world + 1) % sums.size();
  };
  each_output(c, tangent_of_dots(topology, t.q), tangent_of_dots(topology, t.final.q), t, poses, add);
  return sums;
}

Product forward_product(const GradientCase& c, const Direction& v) {
  Product sum;
  for (const Product& world : forward_products(c, v)) {
    sum.value += world.value;
    sum.magnitude += world.magnitude;
  }
  return sum;
}

Product reverse_product(const CaseGradient& gradient, const Direction& v) {
  Product sum;
  const auto add = [&](double g, double d) {
    if (d == 0) return;
    sum.value += g * d;
    sum.magnitude += std::abs(g * d);
  };
  zip(gradient.q0, v.q0, add);
  zip(gradient.qd0, v.qd0, add);
  zip(gradient.control, v.control, add);
  for (const Field& field : fields()) {
    const Parameter& g = field.in(gradient.parameters);
    const Parameter& d = field.in(v.parameters);
    for (int w = 0; w < g.worlds(); ++w) {
      for (int i = 0; i < g.items(); ++i) {
        for (int k = 0; k < g.components(); ++k) add(g(i, k, w), d(i, k, w));
      }
    }
  }
  return sum;
}

std::vector<BlockError> compare_blocks(const GradientCase& c, const CaseGradient& gradient, std::uint64_t seed) {
  std::vector<BlockError> errors;
  for (const std::string& block : block_names()) {
    const Direction v = random_direction(c, block, seed++);
    const Product forward = forward_product(c, v), reverse = reverse_product(gradient, v);
    const double scale = std::max(forward.magnitude, reverse.magnitude);
    const double difference = std::abs(forward.value - reverse.value);
    BlockError e{block, scale > 0 ? difference / scale : 0, reverse.magnitude};
    // NaN compares false with everything: say so loudly.
    if (!std::isfinite(forward.value) || !std::isfinite(reverse.value)) e.error = HUGE_VAL;
    errors.push_back(e);
  }
  return errors;
}

BlockError worst(const std::vector<BlockError>& errors) {
  return *std::max_element(errors.begin(), errors.end(),
                           [](const BlockError& a, const BlockError& b) { return a.error < b.error; });
}

}  // namespace backdrive::test
