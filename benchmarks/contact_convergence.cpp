// How the gradients through contact converge with the time step: (K3) to (K6) of docs/known_gradients.md, the worst
// of 40 phases of touch-down, as a Markdown table. docs/contact.md, section 4, has what it prints.
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "engine/error.h"
#include "tests/support/contact_experiments.h"

namespace backdrive::benchmarks {
namespace {

using test::PairConstants;
using test::Sensitivity;
using test::Support;

constexpr double kRates[] = {240, 480, 960, 1920};
const char* const kHeld[] = {"on a sliding joint", "free"};
const std::string kMass = "bodies/ball/mass", kRadius = "shapes/ball/geometry/scale/x";
const std::string kStiffness = "shapes/*/material/stiffness", kFriction = "shapes/*/material/friction";

/// A line of the table has several figures per rate, each under its own name.
using Figures = std::vector<double>;
void print_lines(const std::vector<std::string>& names, const std::function<Figures(double rate)>& figures) {
  std::vector<Figures> columns;
  for (const double rate : kRates) columns.push_back(figures(rate));
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::printf("| %s |", names[i].c_str());
    for (const Figures& column : columns) std::printf(" %.1e |", column[i]);
    std::printf("\n");
  }
}

double relative(double ours, double truth) {
  return (ours - truth) / truth;
}

/// 3. Without gravity: ∂h/∂y₀ = −e, in absolute terms.
void print_bounces(Support support) {
  const std::string held = kHeld[support == Support::free];
  struct Law {
    const char* name;
    double width, dissipation;
  };
  for (const Law& law :
       {Law{"linear law", 1e-9, 0}, Law{"ramp 2 mm", 2e-3, 0}, Law{"ramp 1 mm", 1e-3, 0},
        Law{"ramp 1 mm, α = 0.1", 1e-3, 0.1}, Law{"ramp 1 mm, α = 0.5", 1e-3, 0.5}, Law{"ramp 1 mm, α = 1", 1e-3, 1}}) {
    const double e = test::restitution(law.dissipation, 1);
    char name[200];
    std::snprintf(name, sizeof name, "bounce %s, %s, e = %.3f: dh/dy0", held.c_str(), law.name, e);
    print_lines({name}, [&](double rate) {
      test::BounceOptions options{.support = support, .rate = rate};
      options.pair.width = law.width;
      options.pair.dissipation = law.dissipation;
      const test::Experiment experiment = test::bounce(options);
      const Sensitivity s(experiment, {});
      return Figures{test::worst([&](int w) { return s.by_position(experiment.row, w) + e; })};
    });
  }
}

/// 3 and 4. What else the height depends on: of a linear law in closed form, else integrated.
void print_parameters(Support support, const char* name, double gravity, const PairConstants& pair, bool linear) {
  std::vector<std::string> names;
  for (const char* what : {"dh/dy0", "dh/dv", "dh/dk", "dh/dm", "dh/dradius"}) {
    names.push_back("bounce " + std::string(kHeld[support == Support::free]) + ", " + name + ": " + what +
                    ", relative");
  }
  print_lines(names, [&](double rate) {
    test::BounceOptions options{.support = support, .rate = rate};
    options.gravity = gravity;
    options.pair = pair;
    if (gravity > 0) options.seconds = 0.35;  // before it comes down again
    const test::Experiment experiment = test::bounce(options);
    const int height = experiment.row, velocity = support == Support::free ? 5 : 0;
    const Sensitivity s(experiment, {kMass, kRadius, kStiffness});
    Figures figures(5, 0);
    for (int w = 0; w < test::kPhases; ++w) {
      const double start = test::bounce_start(options, w);
      // In units of what they are with a linear spring: where contact dissipates some pass through zero.
      const test::BounceTruth unit = test::spring_bounce(options, start);
      const test::BounceTruth t = linear ? unit : test::integrated_bounce(options, start);
      const double errors[] = {(s.by_position(height, w) - t.by_start) / unit.by_start,
                               (s.by_velocity(velocity, w) - t.by_velocity) / unit.by_velocity,
                               (test::by_stiffness(s, w) - t.by_stiffness) / unit.by_stiffness,
                               (s.by(kMass, w) - t.by_mass) / unit.by_mass,
                               (s.by(kRadius, w) - t.by_radius) / unit.by_radius};
      for (int i = 0; i < 5; ++i) figures[i] = std::max(figures[i], std::abs(errors[i]));
    }
    return figures;
  });
}

/// 5. ∂x/∂(x₁, x₂, v₁) of the second ball, in absolute terms.
void print_two_balls(Support support) {
  const double truth[] = {1, 0, 1 - M_PI / (2 * std::sqrt(2e4))};  // half of the contact, at ω² = k/(m/2), is lost
  const int at_first = support == Support::free ? 4 : 0;
  print_lines({"two balls " + std::string(kHeld[support == Support::free]) +
               ", ramp 1 mm: d/d(x1, x2, v1), worst of the three"},
              [&](double rate) {
                const test::Experiment experiment = test::two_balls({.support = support, .rate = rate});
                const int speed = support == Support::free ? 3 : 0;
                const Sensitivity s(experiment, {});
                return Figures{test::worst([&](int w) {
                  const double errors[] = {s.by_position(at_first, w) - truth[0],
                                           s.by_position(experiment.row, w) - truth[1],
                                           s.by_velocity(speed, w) - truth[2]};
                  return std::max({std::abs(errors[0]), std::abs(errors[1]), std::abs(errors[2])});
                })};
              });
}

/// 6. Coulomb: x = v²/(2μg).
void print_slides(Support support, double creep) {
  std::string name =
      support == Support::free ? "box, free, sliding to a stop, ε = " : "two feet, planar, sliding to a stop, ε = ";
  char number[20];
  std::snprintf(number, sizeof number, "%g: ", creep);
  name += number;
  print_lines({name + "x, relative", name + "dx/dv, relative", name + "dx/dμ, relative"}, [&](double rate) {
    test::SlideOptions options{.support = support, .rate = rate};
    options.creep = creep;
    const test::Experiment experiment = test::slide(options);
    const Sensitivity s(experiment, {kFriction});
    const double mu = options.friction, g = test::kGravity;
    const auto worst = [&](const std::function<double(int, double)>& error) {
      return test::worst([&](int w) { return error(w, test::slide_speed(options, w)); });
    };
    const int speed = support == Support::free ? 3 : 0;
    return Figures{
        worst([&](int w, double v) { return relative(s.end(w), v * v / (2 * mu * g)); }),
        worst([&](int w, double v) { return relative(s.by_velocity(speed, w), v / (mu * g)); }),
        worst([&](int w, double v) { return relative(test::by_friction(s, w), -v * v / (2 * mu * mu * g)); })};
  });
}

void print_table() {
  std::printf("| worst of %d phases, steps/s |", test::kPhases);
  for (const double rate : kRates) std::printf(" %.0f |", rate);
  std::printf("\n| --- |");
  for ([[maybe_unused]] const double rate : kRates) std::printf(" --- |");
  std::printf("\n");
  const PairConstants ramp, linear{1e4, 1e-9}, damped{1e4, 1e-3, 0.5};
  for (const Support support : {Support::joint, Support::free}) {
    print_bounces(support);
    print_parameters(support, "linear law", 0, linear, true);
    print_parameters(support, "ramp 1 mm", 0, ramp, false);
    print_parameters(support, "linear law, under gravity", test::kGravity, linear, true);
    print_parameters(support, "ramp 1 mm, α = 0.5, under gravity", test::kGravity, damped, false);
    print_two_balls(support);
    for (const double creep : {1e-3, 1e-4, 1e-5, 1e-6}) print_slides(support, creep);
  }
}

}  // namespace
}  // namespace backdrive::benchmarks

int main() {
  try {
    backdrive::benchmarks::print_table();
    return 0;
  } catch (const backdrive::Error& error) {
    std::fprintf(stderr, "contact_convergence: %s\n", error.what());
    return error.exit_code();
  }
}
