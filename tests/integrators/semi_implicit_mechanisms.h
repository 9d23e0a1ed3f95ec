#pragma once
// Mechanisms that the tests of the semi-implicit integrator share: random trees, a four-bar linkage, and whatever
// ModelBuilder made.
#include "models/model.h"
#include "tests/integrators/semi_implicit_cases.h"

namespace backdrive::test::inline BACKDRIVE_KERNELS {

inline Vec3<double> random3(Random& random, double bound) {
  return {random.symmetric(bound), random.symmetric(bound), random.symmetric(bound)};
}
inline Quaternion<double> random_turn(Random& random, double bound) {
  return turned<TurnSide::right>(Quaternion<double>{{0, 0, 0}, 1}, random3(random, bound));
}

/// Moves of a joint's child from the joint's axes on its parent: turn, then shift of the origin.
struct JointMotion {
  Quaternion<double> turn{{0, 0, 0}, 1};
  Vec3<double> shift{};
};
/// q: as many numbers as degrees of freedom; of ball and free joints a rotation vector and a position.
inline JointMotion joint_motion(semi_implicit::Joint joint, const Vec3<double>& axis, const double* q) {
  const auto about = [](const Vec3<double>& v) { return turned<TurnSide::right>(Quaternion<double>{{0, 0, 0}, 1}, v); };
  switch (joint.type) {
    case JointType::revolute:
      return {about(axis * q[0]), {}};
    case JointType::prismatic:
      return {about({}), axis * q[0]};
    case JointType::universal:
      return {about({q[0], 0, 0}) * about({0, q[1], 0}), {}};
    case JointType::planar:
      return {about({0, 0, q[2]}), {q[0], q[1], 0}};
    case JointType::ball:
      return {about({q[0], q[1], q[2]}), {}};
    case JointType::free:
      return {about({q[0], q[1], q[2]}), {q[3], q[4], q[5]}};
    case JointType::fixed:
      break;
  }
  return {};
}

inline Vec3<double> rotate(const Quaternion<double>& q, const Vec3<double>& v) {
  return rotation_matrix(q) * v;
}
inline Quaternion<double> conjugate(const Quaternion<double>& q) {
  return {-q.v, q.w};
}

/// Puts the child of joint j where its positions want it; the parent's pose is known.
inline void place_child(Mechanism& m, int j, const double* q) {
  const auto& joint = m.joints[j];
  const auto& p = m.numbers.joints[j];
  Quaternion<double> rotation{{0, 0, 0}, 1};
  Vec3<double> position{};
  if (joint.parent >= 0) {
    rotation = m.numbers.state[joint.parent].rotation, position = m.numbers.state[joint.parent].position;
  }
  position += rotate(rotation, p.parent.position);
  rotation = rotation * p.parent.orientation;
  const JointMotion move = joint_motion(joint, p.axis, q);
  position += rotate(rotation, move.shift);
  rotation = rotation * move.turn * conjugate(p.child.orientation);
  BodyState<double>& child = m.numbers.state[joint.child];
  child.rotation = rotation;
  child.position = position - rotate(rotation, p.child.position);
}

/// Poses from joint positions [joint][dof], velocities from their rates: by a difference of poses that is exact to
/// 1e-11.
inline void place(Mechanism& m, const std::vector<std::vector<double>>& q, const std::vector<std::vector<double>>& qd) {
  const double h = 1e-5;
  std::vector<BodyState<double>> poses[2];
  for (int side = 0; side < 2; ++side) {
    for (std::size_t j = 0; j < q.size(); ++j) {
      std::vector<double> at = q[j];
      for (std::size_t k = 0; k < at.size(); ++k) at[k] += (side ? h : -h) * qd[j][k];
      at.resize(6);
      place_child(m, static_cast<int>(j), at.data());
    }
    poses[side] = m.numbers.state;
  }
  for (std::size_t j = 0; j < q.size(); ++j) {
    std::vector<double> at = q[j];
    at.resize(6);
    place_child(m, static_cast<int>(j), at.data());
  }
  for (std::size_t i = 0; i < m.numbers.state.size(); ++i) {
    m.numbers.state[i].velocity = {turn_between(poses[0][i].rotation, poses[1][i].rotation) * (0.5 / h),
                                   (poses[1][i].position - poses[0][i].position) * (0.5 / h)};
  }
}

inline semi_implicit::Attachment<double> stiff(double k, double damping = 0) {
  return {k, damping, k, damping};
}

/// A solid box of 10 to 30 cm, turned.
inline semi_implicit::BodyProperties<double> random_body(Random& random) {
  semi_implicit::BodyProperties<double> b;
  b.mass = random.uniform(0.5, 2);
  b.com = random3(random, 0.1);
  b.lift = 0.3;
  double s[3];
  for (double& x : s) x = random.uniform(0.1, 0.3), x *= x;
  b.inertia = rotated(
      rotation_matrix(random_turn(random, 3)),
      Sym3<double>{b.mass / 12 * (s[1] + s[2]), b.mass / 12 * (s[0] + s[2]), b.mass / 12 * (s[0] + s[1]), 0, 0, 0});
  return b;
}

inline semi_implicit::JointProperties<double> plain_joint() {
  semi_implicit::JointProperties<double> p{};
  p.parent.orientation = p.child.orientation = {{0, 0, 0}, 1};
  p.axis = {0, 0, 1};
  p.efforts.limit.lower = -kNoLimit, p.efforts.limit.upper = kNoLimit, p.efforts.drive.effort_limit = kNoLimit;
  p.efforts.limit.velocity = kNoLimit;
  p.attach = stiff(1e6);
  return p;
}

/// Every kind of force at some joint, by its number.
inline void add_forces(Random& random, int j, Mechanism& m) {
  semi_implicit::Joint& joint = m.joints[j];
  auto& e = m.numbers.joints[j].efforts;
  e.armature = random.uniform(0.01, 0.1);
  e.damping = random.uniform(0.05, 0.3);
  if (j % 3 == 1) joint.acts.friction = true, e.friction = random.uniform(0.1, 0.5);
  if (!may_be_driven(joint.type)) return;
  if (j % 4 == 3) joint.acts.speed = true, e.limit.velocity = 0.3, e.limit.velocity_damping = 2;
  if (!has_one_degree(joint.type)) {
    const bool ball = joint.type == JointType::ball;
    joint.acts.spring = true, e.spring.stiffness = 3.0 + j, e.spring.rest = ball ? 0 : 0.2;
    joint.acts.limit = true, e.limit.stiffness = 30, e.limit.damping = 0.5, e.limit.upper = ball ? 0.3 : 0.08;
    if (!ball) e.limit.lower = -0.05;
    joint.acts.drive = true, e.drive.stiffness = 8, e.drive.damping = 1;
    if (j % 2 == 0) e.drive.effort_limit = 1.5;
    return;
  }
  if (j % 3 == 2) joint.acts.spring = true, e.spring.stiffness = 12.0 + j, e.spring.rest = 0.3;
  if (j % 2 == 0) {  // narrow: the motion runs into them
    joint.acts.limit = true;
    e.limit.lower = -random.uniform(0.02, 0.1), e.limit.upper = random.uniform(0.02, 0.1);
    e.limit.stiffness = random.uniform(20, 60), e.limit.damping = random.uniform(0.2, 1);
  }
  if (j % 3 != 2) {
    joint.acts.drive = true;
    e.drive.stiffness = random.uniform(5, 20), e.drive.damping = random.uniform(0.5, 2);
    // Low on every other drive, so that it saturates in some steps and not in others.
    if (j % 2 == 1) e.drive.effort_limit = random.uniform(1, 3);
  }
}

/// Inputs and wrenches of all steps, zero or random.
inline void set_inputs(Mechanism& m, Random* random) {
  m.numbers.inputs.assign(m.steps, std::vector<JointInputs<double>>(m.joints.size()));
  m.numbers.wrenches.assign(m.steps, std::vector<Spatial<double>>(m.numbers.state.size()));
  if (!random) return;
  for (auto& step : m.numbers.inputs) {
    for (auto& in : step) {
      for (double& x : in.effort) x = random->symmetric(1);
      for (double& x : in.target_position) x = random->symmetric(0.5);
      for (double& x : in.target_velocity) x = random->symmetric(0.5);
    }
  }
  for (auto& step : m.numbers.wrenches) {
    for (auto& w : step) w = {random3(*random, 0.3), random3(*random, 1)};
  }
}

struct MechanismOptions {
  int bodies = 7;
  double stiffness = 2e4, damping = 30;
  int loops = 0;  ///< joints beyond the tree, ball and fixed by turns, between random bodies where they are
  int steps = 5;
  double dt = 0.005;
};

/// A tree with all joint types, frames on both sides, all forces, wrenches, and velocities that no joint agrees with.
inline Mechanism random_mechanism(std::uint64_t seed, const MechanismOptions& options) {
  constexpr JointType types[] = {JointType::free,   JointType::revolute,  JointType::ball,  JointType::universal,
                                 JointType::planar, JointType::prismatic, JointType::fixed, JointType::revolute};
  Random random(seed);
  Mechanism m;
  m.dt = options.dt, m.steps = options.steps;
  m.numbers.gravity = {random.symmetric(2), random.symmetric(2), -9.81};
  m.numbers.state.resize(options.bodies);
  std::vector<std::vector<double>> q, qd;
  for (int i = 0; i < options.bodies; ++i) {
    m.numbers.bodies.push_back(random_body(random));
    const int parent = i == 0 || random.chance(0.15) ? -1 : random.index(i);
    m.joints.push_back({types[(i + seed) % 8], parent, i});
    auto p = plain_joint();
    p.parent = {random3(random, 0.25), random_turn(random, 2)};
    p.child = {random3(random, 0.25), random_turn(random, 2)};
    const Vec3<double> axis = random3(random, 1);
    p.axis = axis * (1 / std::sqrt(dot(axis, axis)));
    p.attach = {options.stiffness, options.damping, 0.1 * options.stiffness, 0.1 * options.damping};
    m.numbers.joints.push_back(p);
    add_forces(random, i, m);
    q.emplace_back(), qd.emplace_back();
    for (int k = 0; k < 6; ++k) q.back().push_back(random.symmetric(0.3)), qd.back().push_back(random.symmetric(1));
  }
  place(m, q, qd);
  for (int l = 0; l < options.loops; ++l) {
    const int child = random.index(options.bodies),
              parent = (child + 1 + random.index(options.bodies - 1)) % options.bodies;
    auto p = plain_joint();
    const auto &a = m.numbers.state[parent], &b = m.numbers.state[child];
    p.child.position = random3(random, 0.2);
    p.parent.position = rotate(conjugate(a.rotation), b.position + rotate(b.rotation, p.child.position) - a.position);
    p.parent.orientation = conjugate(a.rotation) * b.rotation;
    p.attach = stiff(options.stiffness, options.damping);
    m.joints.push_back({l % 2 ? JointType::fixed : JointType::ball, parent, child});
    m.numbers.joints.push_back(p);
  }
  for (auto& s : m.numbers.state) {  // the attachments have something to do
    s.velocity.ang += random3(random, 0.2), s.velocity.lin += random3(random, 0.1);
    s.position += random3(random, 1e-3);
    s.rotation = turned<TurnSide::left>(s.rotation, random3(random, 5e-3));
  }
  set_inputs(m, &random);
  return m;
}

/// Crank 0.2 m, coupler 0.5 m, rocker 0.4 m on a ground of 0.45 m, hinges about y; the crank stands upright and turns
/// with `rate`. Velocities are those of the closed loop.
inline Mechanism four_bar(double rate, double stiffness, double damping = 0) {
  constexpr double a = 0.2, b = 0.5, c = 0.4, ground = 0.45;
  // Joint A at the origin, B on the crank, C between coupler and rocker, D on the ground.
  const Vec3<double> A{0, 0, 0}, B{0, 0, a}, D{ground, 0, 0};
  const Vec3<double> way = D - B;
  const double L = std::sqrt(dot(way, way)), along = (b * b - c * c + L * L) / (2 * L);
  const double up = std::sqrt(b * b - along * along);
  const Vec3<double> e = way * (1 / L), n{-e.z, 0, e.x};
  const Vec3<double> C = B + e * along + n * up;
  Mechanism m;
  const auto add_bar = [&](const Vec3<double>& from, const Vec3<double>& to) {
    const Vec3<double> d = to - from;
    const double length = std::sqrt(dot(d, d)), angle = std::atan2(-d.z, d.x);  // the bar lies along its own x
    m.numbers.bodies.push_back({1 * length,
                                {length / 2, 0, 0},
                                {1e-3, length * length * length / 12, length * length * length / 12, 0, 0, 0}});
    m.numbers.state.push_back({{{0, std::sin(angle / 2), 0}, std::cos(angle / 2)}, from, {}});
    return length;
  };
  add_bar(A, B), add_bar(B, C), add_bar(D, C);
  const auto add_hinge = [&](int parent, int child, const Vec3<double>& on_parent, const Vec3<double>& on_child) {
    m.joints.push_back({JointType::revolute, parent, child});
    auto p = plain_joint();
    p.axis = {0, 1, 0};
    p.parent.position = on_parent, p.child.position = on_child;
    p.attach = stiff(stiffness, damping);
    m.numbers.joints.push_back(p);
  };
  add_hinge(-1, 0, A, {}), add_hinge(0, 1, {a, 0, 0}, {}), add_hinge(-1, 2, D, {});
  add_hinge(1, 2, {b, 0, 0}, {c, 0, 0});
  // Rates about y: of B = ω_a × AB, and C seen from both sides.
  const auto turn = [](double w, const Vec3<double>& r) { return cross(Vec3<double>{0, w, 0}, r); };
  const Vec3<double> vB = turn(rate, B - A), rb = turn(1, C - B), rc = turn(1, C - D);
  const double det = -rb.x * rc.z + rb.z * rc.x;  // vB + w_b rb = w_c rc
  const double wb = (vB.x * rc.z - vB.z * rc.x) / det, wc = (-vB.z * rb.x + vB.x * rb.z) / det;
  m.numbers.state[0].velocity = {{0, rate, 0}, {}};
  m.numbers.state[1].velocity = {{0, wb, 0}, vB};
  m.numbers.state[2].velocity = {{0, wc, 0}, {}};
  m.numbers.gravity = {0, 0, -9.81};
  return m;
}

/// Bodies and joints of a model of the library, without shapes; every state at joint positions zero.
inline Mechanism mechanism_of(const Model& model, const semi_implicit::Attachment<double>& attach) {
  Mechanism m;
  const auto three = [](const Parameter& p, int i) { return Vec3<double>{p(i, 0), p(i, 1), p(i, 2)}; };
  for (int i = 0; i < model.bodies.mass.items(); ++i) {
    const Parameter& J = model.bodies.inertia;
    m.numbers.bodies.push_back(
        {model.bodies.mass(i), three(model.bodies.com, i), {J(i, 0), J(i, 1), J(i, 2), J(i, 3), J(i, 4), J(i, 5)}});
  }
  m.numbers.state.resize(m.numbers.bodies.size(), {{{0, 0, 0}, 1}, {}, {}});
  for (int j = 0; j < model.joints.damping.items(); ++j) {
    const JointParameters& from = model.joints;
    auto p = plain_joint();
    p.parent.position = three(from.frame.position, j);
    const Parameter& o = from.frame.orientation;
    p.parent.orientation = {{o(j, 0), o(j, 1), o(j, 2)}, o(j, 3)};
    p.axis = three(from.axis, j);
    p.efforts = joint_efforts(ParameterReader<double>{view_of(model), nullptr, 0}, j);
    p.attach = attach;
    m.numbers.joints.push_back(p);
    const Link& link = model.topology.links[model.link_of_joint(j)];
    m.joints.push_back({model.joint_types[j], model.joint_parents[j], model.joint_children[j], link.acts});
  }
  m.numbers.gravity = three(model.gravity, 0);
  return m;
}

/// Largest errors of attachments at a state: of the slides, m, and of the turns, rad.
inline std::pair<double, double> worst_attachment(const Mechanism& m, const std::vector<BodyState<double>>& state) {
  Runner<double> runner(m, body_constants_of(m.numbers), joint_constants_of(m, m.numbers), m.numbers.gravity);
  double gap = 0, tilt = 0;
  std::vector<semi_implicit::BodyPose<double>> poses;
  for (std::size_t i = 0; i < state.size(); ++i) {
    const Mat3<double> R = rotation_matrix(state[i].rotation);
    poses.push_back({R, state[i].position + R * m.numbers.bodies[i].com});
  }
  for (std::size_t j = 0; j < m.joints.size(); ++j) {
    const auto& joint = m.joints[j];
    const auto g = semi_implicit::geometry_of(
        runner.system(), static_cast<int>(j), [&](int body) -> const auto& { return poses[body]; });
    double e[semi_implicit::kRows];
    semi_implicit::joint_errors(joint.type, g, e);
    for (int row = 0; row < semi_implicit::kRows; ++row) {
      if (semi_implicit::dof_of_row(joint.type, row) >= 0) continue;
      (row < 3 ? tilt : gap) = std::max(row < 3 ? tilt : gap, std::abs(e[row]));
    }
  }
  return {gap, tilt};
}

/// A box of wood whose longest half length is `size` m, its axes turned in the link's, spinning at `speed` rad/s.
inline Mechanism spinning(const Vec3<double>& shape, double size, const Vec3<double>& spin, double speed, int steps) {
  const Vec3<double> h = shape * size;
  const double mass = 500 * 8 * h.x * h.y * h.z;
  const Mat3<double> axes =
      rotation_matrix(turned<TurnSide::left>(Quaternion<double>{{0, 0, 0}, 1}, Vec3<double>{0.3, -0.8, 0.5}));
  const auto moment = [&](double a, double b) { return mass / 3 * (a * a + b * b); };
  Mechanism m;
  m.dt = 1e-3, m.steps = steps;
  m.numbers.bodies.push_back(
      {mass, Vec3<double>{0.1, 0.2, -0.05} * size,
       rotated(axes, Sym3<double>{moment(h.y, h.z), moment(h.x, h.z), moment(h.x, h.y), 0, 0, 0})});
  m.numbers.state.push_back({{{0, 0, 0}, 1}, {}, {axes * spin * (speed / std::sqrt(dot(spin, spin))), {}}});
  // The centre of mass at rest: what is left is the spin.
  auto& v = m.numbers.state[0].velocity;
  v.lin = cross(m.numbers.bodies[0].com, v.ang);
  set_inputs(m, nullptr);
  return m;
}

/// Momenta and energy of the bodies: linear, angular about the world's origin; kinetic and of weight.
struct Totals {
  Vec3<double> linear{}, angular{};
  double energy = 0;
};
inline Totals totals(const Mechanism& m, const std::vector<BodyState<double>>& state) {
  Totals t;
  for (std::size_t i = 0; i < state.size(); ++i) {
    const auto& b = m.numbers.bodies[i];
    const Mat3<double> R = rotation_matrix(state[i].rotation);
    const Vec3<double> lever = R * b.com, c = state[i].position + lever, &omega = state[i].velocity.ang;
    const Vec3<double> v = plus_cross(state[i].velocity.lin, omega, lever), L = rotated(R, b.inertia) * omega;
    t.linear += v * b.mass;
    t.angular += L + cross(c, v) * b.mass;
    t.energy += 0.5 * dot(omega, L) + 0.5 * b.mass * dot(v, v) - b.mass * dot(m.numbers.gravity, c);
  }
  return t;
}
inline double energy(const Mechanism& m, const std::vector<BodyState<double>>& state) {
  return totals(m, state).energy;
}

}  // namespace backdrive::test::inline BACKDRIVE_KERNELS
