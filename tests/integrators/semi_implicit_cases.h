#pragma once
// Mechanisms for the tests of the semi-implicit integrator: their rollouts in any number type, their gradients by the
// adjoint, and directions through all that they depend on. Everything stands in the namespace of the kernels, so that
// a test may compile a copy with planted faults.
#include <string>
#include <vector>

#include "engine/dual.h"
#include "integrators/semi_implicit/elimination.h"
#include "integrators/semi_implicit/properties.h"
#include "integrators/semi_implicit/step_adjoint.h"
#include "tests/support/random.h"

namespace backdrive::test::inline BACKDRIVE_KERNELS {

using semi_implicit::BodyState;
using semi_implicit::BodyStateBar;
using semi_implicit::JointInputs;

/// All that a rollout depends on.
template <class T>
struct MechanismNumbers {
  std::vector<BodyState<T>> state;
  std::vector<semi_implicit::BodyProperties<T>> bodies;
  std::vector<semi_implicit::JointProperties<T>> joints;
  Vec3<T> gravity{};
  std::vector<std::vector<JointInputs<T>>> inputs;  // [step][joint]
  std::vector<std::vector<Spatial<T>>> wrenches;    // [step][body]
};

/// A direction in that, or a gradient with respect to it.
struct MechanismTangent {
  std::vector<BodyStateBar<double>> state;
  std::vector<semi_implicit::BodyGradient<double>> bodies;
  std::vector<semi_implicit::JointPropertiesBar<double>> joints;
  Vec3<double> gravity{};
  std::vector<std::vector<JointInputs<double>>> inputs;
  std::vector<std::vector<Spatial<double>>> wrenches;
};

struct Mechanism {
  std::vector<semi_implicit::Joint> joints;
  MechanismNumbers<double> numbers;
  double dt = 1. / 240;
  int steps = 1;
};

/// Memory for a workspace.
class AlignedBlock {
 public:
  explicit AlignedBlock(std::size_t bytes) : lines_(bytes / sizeof(Line) + 1) {}
  std::byte* data() { return reinterpret_cast<std::byte*>(lines_.data()); }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> lines_;
};

/// One world, or one group of worlds, of a mechanism: constants, workspace and the steps themselves.
template <class T>
class Runner {
 public:
  Runner(const Mechanism& m, const std::vector<semi_implicit::BodyConstants<T>>& bodies,
         const std::vector<semi_implicit::JointConstants<T>>& joints, const Vec3<T>& gravity)
      : elimination_(m.joints.data(), static_cast<int>(m.joints.size())),
        bodies_(bodies),
        joints_(joints),
        system_{m.joints.data(), static_cast<int>(m.joints.size()),
                bodies_.data(),  static_cast<int>(bodies_.size()),
                joints_.data(),  elimination_.view(),
                gravity,         constant<T>(m.dt)},
        memory_(semi_implicit::workspace_bytes(system_, true)) {
    Arena arena(memory_.data());
    semi_implicit::take_arrays(system_, true, arena, ws_);
  }
  Runner(const Runner&) = delete;

  const semi_implicit::System<T>& system() const { return system_; }
  const semi_implicit::Elimination& elimination() const { return elimination_; }
  semi_implicit::Workspace<T>& workspace() { return ws_; }
  /// In place.
  void step(std::vector<BodyState<T>>& state, const std::vector<JointInputs<T>>& inputs,
            const std::vector<Spatial<T>>& wrenches) {
    semi_implicit::step(system_, state.data(), {inputs.data(), wrenches.data()}, ws_, state.data(), halted);
  }
  void step_adjoint(const std::vector<BodyState<T>>& state, const std::vector<JointInputs<T>>& inputs,
                    const std::vector<Spatial<T>>& wrenches, const semi_implicit::StepBar<T>& bar) {
    semi_implicit::step_adjoint(system_, state.data(), {inputs.data(), wrenches.data()}, ws_, bar);
  }
  T halted = constant<T>(0);

 private:
  semi_implicit::Elimination elimination_;
  std::vector<semi_implicit::BodyConstants<T>> bodies_;
  std::vector<semi_implicit::JointConstants<T>> joints_;
  semi_implicit::System<T> system_;
  AlignedBlock memory_;
  semi_implicit::Workspace<T> ws_;
};

template <class T>
std::vector<semi_implicit::BodyConstants<T>> body_constants_of(const MechanismNumbers<T>& n) {
  std::vector<semi_implicit::BodyConstants<T>> c;
  for (const auto& body : n.bodies) c.push_back(semi_implicit::body_constants(body));
  return c;
}
template <class T>
std::vector<semi_implicit::JointConstants<T>> joint_constants_of(const Mechanism& m, const MechanismNumbers<T>& n) {
  std::vector<semi_implicit::JointConstants<T>> c;
  for (std::size_t j = 0; j < n.joints.size(); ++j) {
    c.push_back(semi_implicit::joint_constants(m.joints[j].type, n.joints[j]));
  }
  return c;
}

/// States before every step and after the last.
template <class T>
std::vector<std::vector<BodyState<T>>> roll_out(const Mechanism& m, const MechanismNumbers<T>& n) {
  Runner<T> runner(m, body_constants_of(n), joint_constants_of(m, n), n.gravity);
  std::vector<std::vector<BodyState<T>>> states{n.state};
  for (int k = 0; k < m.steps; ++k) {
    states.push_back(states.back());
    runner.step(states.back(), n.inputs[k], n.wrenches[k]);
  }
  return states;
}
inline std::vector<std::vector<BodyState<double>>> roll_out(const Mechanism& m) {
  return roll_out(m, m.numbers);
}

inline MechanismTangent zero_tangent(const Mechanism& m) {
  MechanismTangent t;
  const std::size_t bodies = m.numbers.bodies.size(), joints = m.joints.size();
  t.state.resize(bodies), t.bodies.resize(bodies), t.joints.resize(joints);
  t.inputs.assign(m.steps, std::vector<JointInputs<double>>(joints));
  t.wrenches.assign(m.steps, std::vector<Spatial<double>>(bodies));
  return t;
}

/// Seeds: cotangents of all states, [step][body].
using StateSeeds = std::vector<std::vector<BodyStateBar<double>>>;

/// The gradient of Σ seeds·states.
inline MechanismTangent gradient_of(const Mechanism& m, const StateSeeds& seeds) {
  const MechanismNumbers<double>& n = m.numbers;
  const auto states = roll_out(m);
  Runner<double> runner(m, body_constants_of(n), joint_constants_of(m, n), n.gravity);
  MechanismTangent g = zero_tangent(m);
  std::vector<semi_implicit::JointGradient<double>> joints(m.joints.size());
  g.state = seeds[m.steps];
  for (int k = m.steps - 1; k >= 0; --k) {
    const semi_implicit::StepBar<double> bar{g.state.data(),  g.inputs[k].data(), g.wrenches[k].data(),
                                             g.bodies.data(), joints.data(),      &g.gravity};
    runner.step_adjoint(states[k], n.inputs[k], n.wrenches[k], bar);
    for (std::size_t i = 0; i < g.state.size(); ++i) {
      g.state[i].turn += seeds[k][i].turn;
      g.state[i].position += seeds[k][i].position;
      g.state[i].velocity += seeds[k][i].velocity;
    }
  }
  for (std::size_t j = 0; j < joints.size(); ++j) {
    semi_implicit::adj_joint_constants(m.joints[j].type, n.joints[j], joints[j], g.joints[j]);
  }
  return g;
}

/// Visits the numbers of a tangent with the name of the block that they belong to: visit(name, number).
template <class Tangent, class Visit>
void each_number(Tangent& t, const Visit& visit) {
  const auto three = [&](const char* name, auto& v) { visit(name, v.x), visit(name, v.y), visit(name, v.z); };
  for (auto& s : t.state) {
    three("orientation", s.turn), three("position", s.position);
    three("angular velocity", s.velocity.ang), three("velocity", s.velocity.lin);
  }
  for (auto& b : t.bodies) {
    visit("mass", b.mass), visit("lift", b.lift);
    three("com", b.com);
    for (auto* x : {&b.inertia.xx, &b.inertia.yy, &b.inertia.zz, &b.inertia.xy, &b.inertia.xz, &b.inertia.yz}) {
      visit("inertia", *x);
    }
  }
  for (auto& j : t.joints) {
    three("parent position", j.parent.position), three("parent orientation", j.parent.orientation);
    three("child position", j.child.position), three("child orientation", j.child.orientation);
    three("axis", j.axis);
#define BACKDRIVE_VISIT(at, name, ...) visit(#at #name, j.efforts.at name);
    BACKDRIVE_EFFORT_PARAMETERS(BACKDRIVE_VISIT)
#undef BACKDRIVE_VISIT
    visit("attach stiffness", j.attach.stiffness), visit("attach damping", j.attach.damping);
    visit("attach angular stiffness", j.attach.angular_stiffness);
    visit("attach angular damping", j.attach.angular_damping);
  }
  three("gravity", t.gravity);
  for (auto& step : t.inputs) {
    for (auto& in : step) {
      for (auto& x : in.effort) visit("effort", x);
      for (auto& x : in.target_position) visit("target", x);
      for (auto& x : in.target_velocity) visit("target", x);
    }
  }
  for (auto& step : t.wrenches) {
    for (auto& w : step) three("wrench", w.ang), three("wrench", w.lin);
  }
}

// ---- numbers along a direction --------------------------------------------------------------------------------------

/// n + v as numbers of T, where mix(number, its tangent) is the sum; rotations by exp.
template <class T, class Mix>
MechanismNumbers<T> numbers_along(const MechanismNumbers<double>& n, const MechanismTangent& v, const Mix& mix) {
  const auto three = [&](const Vec3<double>& x, const Vec3<double>& d) {
    return Vec3<T>{mix(x.x, d.x), mix(x.y, d.y), mix(x.z, d.z)};
  };
  const auto six = [&](const Spatial<double>& x, const Spatial<double>& d) {
    return Spatial<T>{three(x.ang, d.ang), three(x.lin, d.lin)};
  };
  const auto constant_quaternion = [](const Quaternion<double>& q) {
    return Quaternion<T>{{T(q.v.x), T(q.v.y), T(q.v.z)}, T(q.w)};
  };
  const Vec3<double> o{};
  MechanismNumbers<T> r;
  for (std::size_t i = 0; i < n.state.size(); ++i) {
    const auto& s = n.state[i];
    r.state.push_back({turned<TurnSide::left>(constant_quaternion(s.rotation), three(o, v.state[i].turn)),
                       three(s.position, v.state[i].position), six(s.velocity, v.state[i].velocity)});
    const auto &b = n.bodies[i].inertia, &d = v.bodies[i].inertia;
    r.bodies.push_back(
        {mix(n.bodies[i].mass, v.bodies[i].mass),
         three(n.bodies[i].com, v.bodies[i].com),
         {mix(b.xx, d.xx), mix(b.yy, d.yy), mix(b.zz, d.zz), mix(b.xy, d.xy), mix(b.xz, d.xz), mix(b.yz, d.yz)},
         mix(n.bodies[i].lift, v.bodies[i].lift)});
  }
  const auto numbers_of = [&](const auto& from, const auto& dot, auto& to) {
    for (std::size_t k = 0; k < sizeof(from) / sizeof(double); ++k) {
      reinterpret_cast<T*>(&to)[k] =
          mix(reinterpret_cast<const double*>(&from)[k], reinterpret_cast<const double*>(&dot)[k]);
    }
  };
  const auto frame = [&](const semi_implicit::JointFrame<double>& f, const semi_implicit::JointFrameBar<double>& d) {
    return semi_implicit::JointFrame<T>{
        three(f.position, d.position),
        turned<TurnSide::right>(constant_quaternion(f.orientation), three(o, d.orientation))};
  };
  for (std::size_t j = 0; j < n.joints.size(); ++j) {
    const auto& p = n.joints[j];
    const auto& d = v.joints[j];
    semi_implicit::JointProperties<T> q;
    q.parent = frame(p.parent, d.parent), q.child = frame(p.child, d.child);
    q.axis = three(p.axis, d.axis - p.axis * dot(p.axis, d.axis));
    q.axis = q.axis * (T(1) / square_root(dot(q.axis, q.axis)));
    numbers_of(p.efforts, d.efforts, q.efforts);
    numbers_of(p.attach, d.attach, q.attach);
    r.joints.push_back(q);
  }
  r.gravity = three(n.gravity, v.gravity);
  for (std::size_t k = 0; k < n.inputs.size(); ++k) {
    r.inputs.emplace_back(n.joints.size());
    r.wrenches.emplace_back(n.state.size());
    for (std::size_t j = 0; j < n.joints.size(); ++j) numbers_of(n.inputs[k][j], v.inputs[k][j], r.inputs[k][j]);
    for (std::size_t i = 0; i < n.state.size(); ++i) r.wrenches[k][i] = six(n.wrenches[k][i], v.wrenches[k][i]);
  }
  return r;
}

/// Left tangent from a to b, for small ones: 2 vec(b a⁻¹).
template <class T>
Vec3<T> turn_between(const Quaternion<T>& a, const Quaternion<T>& b) {
  const Quaternion<T> d = b * Quaternion<T>{-a.v, a.w};
  return d.v * (value_of(d.w) < 0 ? T(-2) : T(2));
}

/// Σ seeds·(b − a) over states, b near a.
inline double seeds_times(const StateSeeds& seeds, const std::vector<std::vector<BodyState<double>>>& a,
                          const std::vector<std::vector<BodyState<double>>>& b) {
  double sum = 0;
  for (std::size_t k = 0; k < seeds.size(); ++k) {
    for (std::size_t i = 0; i < seeds[k].size(); ++i) {
      const auto& s = seeds[k][i];
      sum += dot(s.turn, turn_between(a[k][i].rotation, b[k][i].rotation)) +
             dot(s.position, b[k][i].position - a[k][i].position) +
             dot(s.velocity, b[k][i].velocity - a[k][i].velocity);
    }
  }
  return sum;
}
/// And the derivative of that along duals, with the sum of the magnitudes of its terms.
inline std::pair<double, double> seeds_times_dot(const StateSeeds& seeds,
                                                 const std::vector<std::vector<BodyState<Dual<double>>>>& b) {
  double sum = 0, size = 0;
  const auto three = [&](const Vec3<double>& s, const Vec3<Dual<double>>& x) {
    for (const double term : {s.x * x.x.dot, s.y * x.y.dot, s.z * x.z.dot}) sum += term, size += std::abs(term);
  };
  for (std::size_t k = 0; k < seeds.size(); ++k) {
    for (std::size_t i = 0; i < seeds[k].size(); ++i) {
      const auto& s = seeds[k][i];
      const Quaternion<Dual<double>>& q = b[k][i].rotation;
      const Quaternion<Dual<double>> at{{q.v.x.value, q.v.y.value, q.v.z.value}, q.w.value};
      three(s.turn, turn_between(at, q)), three(s.position, b[k][i].position);
      three(s.velocity.ang, b[k][i].velocity.ang), three(s.velocity.lin, b[k][i].velocity.lin);
    }
  }
  return {sum, size};
}

}  // namespace backdrive::test::inline BACKDRIVE_KERNELS
