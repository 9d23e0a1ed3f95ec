// The second opinion: the same model stepped by the semi-implicit integrator and by Featherstone's. As attachments
// stiffen and the step shrinks, motions and gradients approach each other and the truth, which is Featherstone at a
// much smaller step. Prints the table of docs/semi_implicit.md.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <map>

#include "autodiff/tape/rollout.h"
#include "tests/integrators/semi_implicit_checks.h"
#include "tests/integrators/semi_implicit_mechanisms.h"
#include "tests/support/models.h"

namespace backdrive {
namespace {

using test::Mechanism;
using Vector = std::vector<double>;
constexpr double kDuration = 0.5;

struct Setting {
  const char* name;
  Model model;
  Vector q, qd;  ///< at the start, by joint: hinges only
};

/// The pose of the last body at the end, and the gradient of a random combination of its twelve numbers by block.
struct Answer {
  Vector pose;
  std::map<std::string, Vector> gradient;
};

/// Weights of the last pose's numbers: position, then the rotation's columns.
double weight(int k) {
  return std::cos(1.7 * k + 0.3);
}

Answer by_featherstone(const Setting& s, double dt) {
  Model model = s.model;
  test::require_all(model);
  const int n = model.topology.nv, last = model.bodies.mass.items() - 1;
  State<double> state(model, 1);
  for (int i = 0; i < n; ++i) state.q.set(i, 0, s.q[i]), state.qd.set(i, 0, s.qd[i]);
  RolloutOptions options;
  options.time_step = dt;
  options.steps = static_cast<int>(std::lround(kDuration / dt));
  Control<double> control(model, options.steps, 1);
  Tape<double> tape;
  const Trajectory<double> t = rollout(tape, model, state, control, options);
  const Buffer<double> pose = body_poses<double>(&tape, model, t.final.q, std::span(&last, 1), {});
  Seeds<double> seeds;
  Buffer<double> bar(12, 1);
  Answer a;
  for (int k = 0; k < 12; ++k) bar.set(k, 0, weight(k)), a.pose.push_back(pose(k, 0));
  seeds.add(pose, bar);
  const Gradients<double> g = std::move(tape).backward(seeds);
  a.gradient["effort"].assign(n, 0);
  for (int i = 0; i < n; ++i) {
    a.gradient["q0"].push_back(g.of(state.q)(i, 0));
    a.gradient["qd0"].push_back(g.of(state.qd)(i, 0));
    for (int k = 0; k < options.steps; ++k) a.gradient["effort"][i] += g.of(control.u)(k * model.topology.nu + i, 0);
  }
  const Parameters& p = g.parameters();
  for (int i = 0; i <= last; ++i) {
    a.gradient["mass"].push_back(p.bodies.mass(i));
    for (int k = 0; k < 3; ++k) a.gradient["com"].push_back(p.bodies.com(i, k));
    for (int k = 0; k < 6; ++k) a.gradient["inertia"].push_back(p.bodies.inertia(i, k));
    for (int k = 0; k < 3; ++k) a.gradient["frame"].push_back(p.joints.frame.position(i, k));
    for (int k = 0; k < 3; ++k) a.gradient["turn of frame"].push_back(p.joints.frame.orientation(i, k));
    for (int k = 0; k < 3; ++k) a.gradient["axis"].push_back(p.joints.axis(i, k));
    a.gradient["armature"].push_back(p.joints.armature(i));
    a.gradient["damping"].push_back(p.joints.damping(i));
  }
  for (int k = 0; k < 3; ++k) a.gradient["gravity"].push_back(p.gravity(0, k));
  return a;
}

std::vector<Vector> by_joint(const Vector& v) {
  std::vector<Vector> r;
  for (const double x : v) r.push_back({x});
  return r;
}

Mechanism mechanism(const Setting& s, double dt, double stiffness) {
  Mechanism m = test::mechanism_of(s.model, test::stiff(stiffness));
  m.dt = dt;
  m.steps = static_cast<int>(std::lround(kDuration / dt));
  test::place(m, by_joint(s.q), by_joint(s.qd));
  test::set_inputs(m, nullptr);
  return m;
}

Answer by_attachments(const Setting& s, const Mechanism& m) {
  Answer a;
  const auto end = test::roll_out(m).back().back();
  const Mat3<double> R = rotation_matrix(end.rotation);
  for (const Vec3<double>& v : {end.position, R.cx, R.cy, R.cz}) a.pose.insert(a.pose.end(), {v.x, v.y, v.z});
  test::StateSeeds seeds(m.steps + 1, std::vector<test::BodyStateBar<double>>(m.numbers.state.size()));
  test::BodyStateBar<double>& bar = seeds.back().back();
  const auto w = [](int k) { return Vec3<double>{weight(3 * k), weight(3 * k + 1), weight(3 * k + 2)}; };
  bar.position = w(0);
  bar.turn = cross(R.cx, w(1)) + cross(R.cy, w(2)) + cross(R.cz, w(3));
  const test::MechanismTangent g = test::gradient_of(m, seeds);
  // Joint positions, rates and frames put the bodies where they start: differences of that, good to 1e-9.
  const int n = static_cast<int>(s.q.size());
  const auto by_start = [&](const auto& move) {
    const double h = 1e-5;
    Mechanism side[2] = {m, m};
    for (int k = 0; k < 2; ++k) {
      Vector q = s.q, qd = s.qd;
      move(side[k], q, qd, k ? h : -h);
      test::place(side[k], by_joint(q), by_joint(qd));
    }
    double sum = 0;
    for (std::size_t b = 0; b < g.state.size(); ++b) {
      const auto &low = side[0].numbers.state[b], &high = side[1].numbers.state[b];
      sum += dot(g.state[b].turn, test::turn_between(low.rotation, high.rotation)) +
             dot(g.state[b].position, high.position - low.position) +
             dot(g.state[b].velocity, high.velocity - low.velocity);
    }
    return sum / (2 * h);
  };
  for (int i = 0; i < n; ++i) {
    a.gradient["q0"].push_back(by_start([&](Mechanism&, Vector& q, Vector&, double h) { q[i] += h; }));
    a.gradient["qd0"].push_back(by_start([&](Mechanism&, Vector&, Vector& qd, double h) { qd[i] += h; }));
    for (int k = 0; k < 3; ++k) {
      Vec3<double> d{};
      (k == 0 ? d.x : k == 1 ? d.y : d.z) = 1;
      const auto& own = g.joints[i];
      a.gradient["frame"].push_back(dot(own.parent.position, d) + by_start([&](Mechanism& c, auto&, auto&, double h) {
                                      c.numbers.joints[i].parent.position += d * h;
                                    }));
      a.gradient["turn of frame"].push_back(dot(own.parent.orientation, d) +
                                            by_start([&](Mechanism& c, auto&, auto&, double h) {
                                              auto& o = c.numbers.joints[i].parent.orientation;
                                              o = turned<TurnSide::right>(o, d * h);
                                            }));
      a.gradient["axis"].push_back(dot(own.axis, d) + by_start([&](Mechanism& c, auto&, auto&, double h) {
                                     Vec3<double>& axis = c.numbers.joints[i].axis;
                                     axis += (d - axis * dot(axis, d)) * h;
                                   }));
    }
  }
  const auto three = [&](const char* block, const Vec3<double>& v) {
    a.gradient[block].insert(a.gradient[block].end(), {v.x, v.y, v.z});
  };
  a.gradient["effort"].assign(n, 0);
  for (int i = 0; i < n; ++i) {
    for (const auto& step : g.inputs) a.gradient["effort"][i] += step[i].effort[0];
    const auto& J = g.bodies[i].inertia;
    a.gradient["mass"].push_back(g.bodies[i].mass);
    three("com", g.bodies[i].com);
    for (const double x : {J.xx, J.yy, J.zz, J.xy, J.xz, J.yz}) a.gradient["inertia"].push_back(x);
    a.gradient["armature"].push_back(g.joints[i].efforts.armature);
    a.gradient["damping"].push_back(g.joints[i].efforts.damping);
  }
  three("gravity", g.gravity);
  return a;
}

double norm(const Vector& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return std::sqrt(sum);
}
double distance(Vector a, const Vector& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
  return norm(a);
}
/// Worst block, relative.
double gradient_distance(const Answer& a, const Answer& b) {
  double worst = 0;
  for (const auto& [block, g] : b.gradient) worst = std::max(worst, distance(a.gradient.at(block), g) / norm(g));
  return worst;
}

struct Row {
  double gap, tilt;         ///< worst error of an attachment over time, m and rad
  double energy;            ///< worst change of energy over Σ m |g| · 1 m
  double pose, pose_truth;  ///< distance of the last pose from Featherstone's at the same step, and from the truth
  double grad, grad_truth;  ///< of gradients, worst block, relative
};

Row measure(const Setting& s, double dt, double stiffness, const Answer& same, const Answer& truth) {
  const Mechanism m = mechanism(s, dt, stiffness);
  Row row{};
  const auto states = test::roll_out(m);
  double start = 0, weight_sum = 0;
  for (const auto& b : m.numbers.bodies) weight_sum += b.mass * 9.81;
  for (const auto& state : states) {
    const auto [gap, tilt] = test::worst_attachment(m, state);
    row.gap = std::max(row.gap, gap), row.tilt = std::max(row.tilt, tilt);
    const double energy = test::energy(m, state);
    if (&state == &states.front()) start = energy;
    row.energy = std::max(row.energy, std::abs(energy - start) / weight_sum);
  }
  const Answer a = by_attachments(s, m);
  row.pose = distance(a.pose, same.pose), row.pose_truth = distance(a.pose, truth.pose);
  row.grad = gradient_distance(a, same), row.grad_truth = gradient_distance(a, truth);
  return row;
}

Setting pendulum() {
  return {"double pendulum", test::double_pendulum(), {1.2, -0.7}, {0.5, 1}};
}
Setting arm() {
  return {"arm, 7 links", test::chain(7), {0.3, 0.8, -0.4, -1, 0.5, 0.7, 0.2}, {0.5, -1, 1, 0.5, -1, 1, 0.5}};
}

class SemiImplicitAgreement : public testing::TestWithParam<Setting (*)()> {};
INSTANTIATE_TEST_SUITE_P(Chains, SemiImplicitAgreement, testing::Values(&pendulum, &arm));

TEST_P(SemiImplicitAgreement, WithFeatherstoneAsAttachmentsStiffenAndStepsShrink) {
  const Setting s = GetParam()();
  const Answer truth = by_featherstone(s, 1. / 40000);
  std::printf(
      "%s\n| step | stiffness | gap, m | tilt, rad | energy | pose | pose, truth | gradient | gradient, truth |\n",
      s.name);
  std::map<std::pair<int, double>, Row> rows;
  for (const int rate : {240, 2000}) {
    const Answer same = by_featherstone(s, 1. / rate);
    for (const double k : {1e4, 1e5, 1e6, 1e8, 1e10}) {
      const Row r = rows[{rate, k}] = measure(s, 1. / rate, k, same, truth);
      std::printf("| 1/%d | %.0e | %.1e | %.1e | %.1e | %.1e | %.1e | %.1e | %.1e |\n", rate, k, r.gap, r.tilt,
                  r.energy, r.pose, r.pose_truth, r.grad, r.grad_truth);
    }
    std::printf("| 1/%d | Featherstone | | | | | %.1e | | %.1e |\n", rate, distance(same.pose, truth.pose),
                gradient_distance(same, truth));
  }
  // Both integrators are of first order where a run begins and where dampers act: 2000/240 = 8.3 times the steps bring
  // them some eight times closer. Half of that is asked for, since errors of two orders cancel in part.
  const Row &coarse = rows[{240, 1e8}], &fine = rows[{2000, 1e8}];
  EXPECT_LT(fine.pose, coarse.pose / 4);
  EXPECT_LT(fine.grad, coarse.grad / 4);
  EXPECT_LT(fine.pose_truth, coarse.pose_truth / 4);
  EXPECT_LT(fine.grad_truth, coarse.grad_truth / 4);
  // Springs of 1e4 N/m give way: stiffer ones are closer, in motion and gradient.
  const Row& soft = rows[{2000, 1e4}];
  EXPECT_LT(fine.pose, soft.pose / 2);
  EXPECT_LT(fine.grad, soft.grad / 2);
  EXPECT_GT(fine.grad, 0);
}

}  // namespace
}  // namespace backdrive
