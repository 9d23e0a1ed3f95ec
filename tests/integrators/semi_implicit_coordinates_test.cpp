// Coordinates of joints from bodies and bodies from coordinates: there and back, their adjoints against dual numbers of
// the very same source, and proof that this check can fail.
#include "integrators/semi_implicit/coordinates.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <vector>

#include "models/coordinates.h"
#include "tests/faults/planted.h"
#include "tests/integrators/semi_implicit_mechanisms.h"

namespace backdrive {
namespace {

using namespace semi_implicit;
using test::Mechanism;
using test::Random;
using D = Dual<double>;

constexpr JointType kTypes[] = {JointType::revolute, JointType::prismatic, JointType::universal, JointType::planar,
                                JointType::ball,     JointType::free,      JointType::fixed};

/// A joint with frames on both sides between two bodies, as far from each other as its coordinates say.
struct Pair {
  JointType type;
  bool on_body;
  JointConstants<double> joint;
  BodyConstants<double> bodies[2];  // parent, child
  BodyState<double> parent;
  double q[kBodyPositions], qd[kBodyVelocities];
};

Pair random_pair(JointType type, bool on_body, Random& random) {
  Pair p{type, on_body, {}, {}, {}, {}, {}};
  auto numbers = test::plain_joint();
  numbers.parent = {test::random3(random, 0.5), test::random_turn(random, 2)};
  numbers.child = {test::random3(random, 0.5), test::random_turn(random, 2)};
  const Vec3<double> axis = test::random3(random, 1);
  numbers.axis = axis * (1 / std::sqrt(dot(axis, axis)));
  p.joint = joint_constants(type, numbers);
  for (auto& body : p.bodies) body = body_constants(test::random_body(random));
  p.parent = {
      test::random_turn(random, 3), test::random3(random, 1), {test::random3(random, 2), test::random3(random, 2)}};
  for (double& x : p.q) x = random.symmetric(1.2);
  for (double& x : p.qd) x = random.symmetric(2);
  if (type == JointType::revolute || type == JointType::universal) p.q[0] = random.symmetric(9);  // whole turns too
  if (has_quaternion(type)) store_quaternion(test::random_turn(random, 3), p.q);
  return p;
}

/// A direction through all that a placed child depends on, or a cotangent of it; frames turn as R exp(θ).
struct Motion {
  JointGradient<double> joint{};
  BodyStateBar<double> parent{};
  double q[kBodyPositions]{}, qd[kBodyVelocities]{};
};

Vec3<D> dual(const Vec3<double>& v, const Vec3<double>& d) {
  return {{v.x, d.x}, {v.y, d.y}, {v.z, d.z}};
}
Mat3<D> dual_turned(const Mat3<double>& m, const Vec3<double>& t) {
  const Mat3<double> d = m * Mat3<double>{{0, t.z, -t.y}, {-t.z, 0, t.x}, {t.y, -t.x, 0}};
  return {dual(m.cx, d.cx), dual(m.cy, d.cy), dual(m.cz, d.cz)};
}
Quaternion<D> dual_turned(TurnSide side, const Quaternion<double>& q, const Vec3<double>& t) {
  const Quaternion<double> d = quaternion_rate(side, q, t);
  return {dual(q.v, d.v), {q.w, d.w}};
}
JointConstants<D> dual(const JointConstants<double>& c, const JointGradient<double>& d) {
  JointConstants<D> r{};
  r.parent_axes = dual_turned(c.parent_axes, d.parent_turn), r.child_axes = dual_turned(c.child_axes, d.child_turn);
  r.parent_origin = dual(c.parent_origin, d.parent_origin), r.child_origin = dual(c.child_origin, d.child_origin);
  return r;
}
BodyState<D> dual(const BodyState<double>& s, const BodyStateBar<double>& d) {
  return {dual_turned(TurnSide::left, s.rotation, d.turn),
          dual(s.position, d.position),
          {dual(s.velocity.ang, d.velocity.ang), dual(s.velocity.lin, d.velocity.lin)}};
}
/// Tangents of a state from the dots of its numbers.
BodyStateBar<double> dots_of(const BodyState<D>& s) {
  const auto value = [](const Vec3<D>& v) { return Vec3<double>{v.x.value, v.y.value, v.z.value}; };
  const auto dot = [](const Vec3<D>& v) { return Vec3<double>{v.x.dot, v.y.dot, v.z.dot}; };
  const Vec3<double> turn = turn_of_rate(TurnSide::left, Quaternion<double>{value(s.rotation.v), s.rotation.w.value},
                                         Quaternion<double>{dot(s.rotation.v), s.rotation.w.dot});
  return {turn, dot(s.position), {dot(s.velocity.ang), dot(s.velocity.lin)}};
}

/// All numbers of a motion in a row.
std::vector<double> numbers(const Motion& m, const Pair& p) {
  std::vector<double> v;
  const auto add = [&](const Vec3<double>& x) { v.insert(v.end(), {x.x, x.y, x.z}); };
  for (const Vec3<double>& x : {m.joint.parent_turn, m.joint.parent_origin, m.joint.child_turn, m.joint.child_origin}) {
    add(x);
  }
  if (p.on_body) {
    for (const Vec3<double>& x : {m.parent.turn, m.parent.position, m.parent.velocity.ang, m.parent.velocity.lin})
      add(x);
  }
  for (int k = 0; k < joint_size(p.type).nv; ++k) {
    v.push_back(m.q[position_row(p.type, k)]);
    v.push_back(m.qd[k]);
  }
  return v;
}
double product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Motion random_motion(Random& random) {
  Motion m;
  const auto three = [&] { return test::random3(random, 1); };
  m.joint.parent_turn = three(), m.joint.parent_origin = three();
  m.joint.child_turn = three(), m.joint.child_origin = three();
  m.parent = {three(), three(), {three(), three()}};
  for (double& x : m.q) x = random.symmetric(1);
  for (double& x : m.qd) x = random.symmetric(1);
  return m;
}

PlacingJoint<double> placing(const Pair& p) {
  return {p.type, p.joint, p.on_body ? &p.parent : nullptr, p.q, p.qd};
}
BodyState<double> child_of(const Pair& p) {
  return placed_child(placing(p));
}

/// q with dots along a motion's.
void dual_coordinates(const Pair& p, const Motion& m, D* q, D* qd) {
  const JointSize size = joint_size(p.type);
  for (int k = 0; k < size.nv; ++k) qd[k] = {p.qd[k], m.qd[k]};
  for (int k = 0; k < size.nq; ++k) q[k] = {p.q[k], m.q[k]};
  if (!has_quaternion(p.type)) return;
  const TurnSide side = p.type == JointType::free ? TurnSide::left : TurnSide::right;
  store_quaternion(dual_turned(side, load_quaternion(p.q), {m.q[0], m.q[1], m.q[2]}), q);
}

/// |⟨w, Jv⟩ − ⟨Jᵀw, v⟩| of placing, relative.
double placing_error(const Pair& p, Random& random) {
  const Motion v = random_motion(random);
  const Motion other = random_motion(random);
  const BodyStateBar<double>& w = other.parent;
  D q[kBodyPositions], qd[kBodyVelocities];
  dual_coordinates(p, v, q, qd);
  const BodyState<D> parent = dual(p.parent, v.parent);
  const BodyStateBar<double> Jv =
      dots_of(placed_child<D>({p.type, dual(p.joint, v.joint), p.on_body ? &parent : nullptr, q, qd}));
  const double forward = dot(w.turn, Jv.turn) + dot(w.position, Jv.position) + dot(w.velocity.ang, Jv.velocity.ang) +
                         dot(w.velocity.lin, Jv.velocity.lin);
  Motion bar;
  adj_placed_child(placing(p), child_of(p), w, {p.on_body ? &bar.parent : nullptr, bar.q, bar.qd, &bar.joint});
  const double backward = product(numbers(bar, p), numbers(v, p));
  return std::abs(forward - backward) / (1 + std::abs(forward));
}

/// Two bodies and the joint between them as a system of one joint.
template <class T>
struct Reader {
  Joint joint;
  BodyConstants<T> bodies[2];
  JointConstants<T> constants;
  BodyScratch<T> scratch[2];
  BodyBar<T> bar[2];
  System<T> system;
  Workspace<T> ws;

  Reader(const Pair& p, const JointConstants<T>& c, const BodyConstants<T> (&b)[2], const BodyState<T>& parent,
         const BodyState<T>& child)
      : joint{p.type, p.on_body ? 0 : -1, 1}, bodies{b[0], b[1]}, constants(c) {
    system = {&joint, 1, bodies, 2, &constants, {}, {}, T(0.01)};
    ws = {scratch, nullptr, {}, bar};
    set_motion(bodies[0], parent, scratch[0]);
    set_motion(bodies[1], child, scratch[1]);
    for (auto& x : bar) {
      x.turn = x.centre = zero3<T>();
      x.velocity = zero6<T>();
    }
  }
};

/// The same of reading the child's coordinates off, where nothing has moved apart: `stray` is how far the child is from
/// where its coordinates want it.
double reading_error(const Pair& p, double stray, Random& random) {
  BodyState<double> child = child_of(p);
  child.rotation = turned<TurnSide::left>(child.rotation, test::random3(random, stray));
  child.position += test::random3(random, stray);
  const Motion v = random_motion(random), of_child = random_motion(random), w = random_motion(random);
  const Vec3<double> com[2] = {test::random3(random, 1), test::random3(random, 1)};
  BodyConstants<D> bodies[2];
  for (int k = 0; k < 2; ++k) bodies[k].com = dual(p.bodies[k].com, com[k]);
  Reader<D> forward(p, dual(p.joint, v.joint), bodies, dual(p.parent, v.parent), dual(child, of_child.parent));
  D q[kBodyPositions], qd[kBodyVelocities];
  for (int k = 0; k < kBodyPositions; ++k) q[k] = p.q[k];
  read_coordinates(forward.system, forward.ws, 0, q, qd);
  double along = 0;
  const JointSize size = joint_size(p.type);
  Vec3<double> turn{};
  if (has_quaternion(p.type)) {
    const auto part = [&](auto pick) { return Quaternion<double>{{pick(q[0]), pick(q[1]), pick(q[2])}, pick(q[3])}; };
    turn = turn_of_rate(p.type == JointType::free ? TurnSide::left : TurnSide::right,
                        part([](const D& x) { return x.value; }), part([](const D& x) { return x.dot; }));
  }
  const double turns[] = {turn.x, turn.y, turn.z};
  for (int k = 0; k < size.nv; ++k) {
    const int row = position_row(p.type, k);
    const bool turns_quaternion = has_quaternion(p.type) && k < 3;
    along += w.q[row] * (turns_quaternion ? turns[k] : q[row].dot) + w.qd[k] * qd[k].dot;
  }

  Reader<double> backward(p, p.joint, p.bodies, p.parent, child);
  BodyGradient<double> body_bar[2] = {};
  Motion bar, child_bar;
  StepBar<double> out{};
  out.bodies = body_bar;
  out.joint_parameters = &bar.joint;
  double q_bar[kBodyPositions], qd_bar[kBodyVelocities];
  std::copy(w.q, w.q + kBodyPositions, q_bar);
  std::copy(w.qd, w.qd + kBodyVelocities, qd_bar);
  adj_read_coordinates(backward.system, backward.ws, 0, q_bar, qd_bar, out);
  adj_set_motion(backward.scratch[0], backward.bar[0], bar.parent, &body_bar[0]);
  adj_set_motion(backward.scratch[1], backward.bar[1], child_bar.parent, &body_bar[1]);
  const auto of_body = [](const BodyStateBar<double>& a, const BodyStateBar<double>& b) {
    return dot(a.turn, b.turn) + dot(a.position, b.position) + dot(a.velocity.ang, b.velocity.ang) +
           dot(a.velocity.lin, b.velocity.lin);
  };
  const auto& j = bar.joint;
  double back = dot(j.parent_turn, v.joint.parent_turn) + dot(j.parent_origin, v.joint.parent_origin) +
                dot(j.child_turn, v.joint.child_turn) + dot(j.child_origin, v.joint.child_origin) +
                of_body(child_bar.parent, of_child.parent) + dot(body_bar[1].com, com[1]);
  if (p.on_body) back += of_body(bar.parent, v.parent) + dot(body_bar[0].com, com[0]);
  return std::abs(along - back) / (1 + std::abs(along));
}

/// Largest error of both over all types, on bodies and on the world.
double worst() {
  double worst = 0;
  Random random(5);
  for (const JointType type : kTypes) {
    for (int k = 0; k < 6; ++k) {
      const bool on_body = k % 2 == 0 && type != JointType::free;
      const Pair p = random_pair(type, on_body, random);
      worst = std::max({worst, placing_error(p, random), reading_error(p, 0, random), reading_error(p, 0.05, random)});
    }
  }
  return worst;
}

TEST(SemiImplicitCoordinates, ComeBackFromTheBodiesThatTheyPlace) {
  Random random(3);
  for (const JointType type : kTypes) {
    for (int k = 0; k < 8; ++k) {
      const Pair p = random_pair(type, k % 2 == 0 && type != JointType::free, random);
      const BodyConstants<double> bodies[2] = {p.bodies[0], p.bodies[1]};
      Reader<double> reader(p, p.joint, bodies, p.parent, child_of(p));
      double q[kBodyPositions], qd[kBodyVelocities];
      const JointSize size = joint_size(type);
      for (int i = 0; i < size.nq; ++i) q[i] = p.q[i] + (has_quaternion(type) ? 0.1 : 1) * random.symmetric(1);
      read_coordinates(reader.system, reader.ws, 0, q, qd);
      for (int i = 0; i < size.nq; ++i) EXPECT_NEAR(q[i], p.q[i], 1e-13) << to_string(type) << ", position " << i;
      for (int i = 0; i < size.nv; ++i) EXPECT_NEAR(qd[i], p.qd[i], 1e-12) << to_string(type) << ", rate " << i;
    }
  }
}

TEST(SemiImplicitCoordinates, AdjointsAreThoseOfTheirDuals) {
  EXPECT_LT(worst(), 1e-12);
}

TEST(SemiImplicitCoordinates, EveryFaultIsCaught) {
  for (const test::FaultEntry& entry : test::faults_of("coordinates")) {
    const test::Planted planted(entry.fault);
    const double error = worst();
    EXPECT_GT(error, 1e-3) << entry.name;
    std::printf("%s: %.1e\n", entry.name, error);
  }
}

}  // namespace
}  // namespace backdrive
