#pragma once
// Experiments with contact whose gradients are known (docs/known_gradients.md): the tests hold the engine to them, and
// benchmarks/contact_convergence.cpp prints how they converge. Every experiment runs in 40 worlds that differ in the
// phase of the time step at which they touch, since that is what plain sampling of a contact's force cannot bear.
#include <functional>
#include <string>
#include <vector>

#include "autodiff/tape/rollout.h"
#include "models/builder.h"

namespace backdrive::test {

constexpr int kPhases = 40;
constexpr double kGravity = 9.81;  ///< m/s²

/// Of two shapes in touch.
struct PairConstants {
  double stiffness = 1e4;  ///< N/m
  double width = 1e-3;     ///< m
  double dissipation = 0;  ///< s/m
  double friction = 0;     ///< 1
  double creep = 1e-6;     ///< m/s
};
/// One of two alike. They are springs in series: each is twice as stiff as the pair.
ShapeOptions shape_of_pair(const PairConstants& pair, GeometryType type, const Numbers3& scale = {0, 0, 0});

/// A batch, and the number that is looked at in the end.
struct Experiment {
  Model model;
  State<double> state;
  double time_step = 0;
  int steps = 0;
  int row = 0;  ///< of q

  Trajectory<double> run(bool keep_states = false) const;
  int q_of(const char* joint) const { return model.topology.links[model.link_of_joint(model.find_joint(joint))].q; }
  int v_of(const char* joint) const { return model.topology.links[model.link_of_joint(model.find_joint(joint))].v; }
};

/// That number and its gradients, by one backward, world by world.
class Sensitivity {
 public:
  /// `paths` of parameters: gradients are per world.
  Sensitivity(Experiment experiment, const std::vector<std::string>& paths);
  double end(int world) const { return end_(0, world); }
  double by_position(int row, int world) const { return gradients_.of(experiment_.state.q)(row, world); }
  double by_velocity(int row, int world) const { return gradients_.of(experiment_.state.qd)(row, world); }
  /// The sum over all numbers that the path selects: of what changes them all alike.
  double by(const std::string& path, int world) const;

 private:
  Experiment experiment_;
  Buffer<double> end_;
  Gradients<double> gradients_;
};

/// The pair's constants behind those of its two shapes: k = k_i/2 = k_j/2, μ = μ_i = μ_j, α = α_i = α_j.
inline double by_stiffness(const Sensitivity& s, int world) {
  return 2 * s.by("shapes/*/material/stiffness", world);
}
inline double by_friction(const Sensitivity& s, int world) {
  return s.by("shapes/*/material/friction", world);
}
inline double by_dissipation(const Sensitivity& s, int world) {
  return s.by("shapes/*/material/dissipation", world);
}

/// Largest |error(world)|.
double worst(const std::function<double(int world)>& error);

/// On what bodies are held: a sliding joint (planar: two and a turn), or nothing.
enum class Support { joint, free };

/// 3, 4. A ball of 1 kg and 0.1 m falls or flies onto the plane z = 0 and comes back: its height after `seconds`.
struct BounceOptions {
  Support support = Support::joint;
  Integrator integrator = Integrator::featherstone;
  double rate = 480;     ///< steps per second
  double seconds = 0.6;  ///< in which it touches once
  double velocity = -1;  ///< m/s, at the start
  double gravity = 0;    ///< m/s²
  PairConstants pair = {};
};
constexpr double kBallRadius = 0.1, kBallMass = 1;
Experiment bounce(const BounceOptions& options);
/// Height of the ball's centre at the start, m.
double bounce_start(const BounceOptions& options, int world);

/// 5. Balls in a line along x, at 0 and 0.52, the first with 1 m/s: where the second one is after a second.
struct TwoBallsOptions {
  Support support = Support::joint;
  Integrator integrator = Integrator::featherstone;
  double rate = 480;
  double masses[2] = {1, 1};
  PairConstants pair = {};
};
Experiment two_balls(const TwoBallsOptions& options);

/// 6. A box (free), or a body on two feet (planar joint in the plane of x and z), sliding along x from 2 m/s on: where
/// it stops, and rocks back from having leaned on its front.
struct SlideOptions {
  Support support = Support::joint;
  Integrator integrator = Integrator::featherstone;
  double rate = 480;
  double friction = 0.5;
  double creep = 1e-4;  ///< m/s
};
Experiment slide(const SlideOptions& options);
/// m/s, at the start.
double slide_speed(const SlideOptions& options, int world);

// ---- known answers --------------------------------------------------------------------------------------------------

/// Share of its speed that a body keeps whose contact dissipates with α: a bounce without gravity takes d through
/// m ḋ dḋ = −f(d) h(1 + α ḋ) dd, from 0 to 0, whatever f: ∫ u du / h(1 + α u) from −e v to v is zero. h as in (1) of
/// docs/contact.md.
double restitution(double dissipation, double speed);

/// Where a bounce ends, and its gradients.
struct BounceTruth {
  double height;
  double by_start, by_velocity, by_stiffness, by_mass, by_radius;
};
/// The motion in continuous time, for any constants, by fine integration: m ÿ = −m g + f. Mass and radius are the
/// ball's unless given.
BounceTruth integrated_bounce(const BounceOptions& options, double start, double mass = kBallMass,
                              double radius = kBallRadius);
/// The same exactly, with a linear undamped spring: with v₁ = √(v² + 2 g (y₀ − r)) at touch-down, the contact takes
/// (π + 2 atan(g/ω v₁))/ω and gives v₁ back.
BounceTruth spring_bounce(const BounceOptions& options, double start);

}  // namespace backdrive::test
