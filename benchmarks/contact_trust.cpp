// Whether contact can be trusted with bodies of any size, mass and shape at the default material: how much energy
// throws gain, and how gradients compare with slopes over a distance. docs/contact.md, section 4, has what it prints.
//   contact_trust energy [worlds]      throws of one body: how many gain energy, how many have a step whose contact was
//                                      not solved, the largest energy over that at the start
//   contact_trust piles [worlds]       and of three that fall on one another
//   contact_trust mixed [worlds]       and of three of which the others are of any thing, another size and mass
//   contact_trust chains [throws]      and of chains of 20 links on a floor: all, and those that steps follow, with no
//                                      joint that turns by more than a radian in one
//   contact_trust gradients [worlds]   ∂x(T)/∂v of the adjoint against differences over 1 mm/s and 1 cm/s, and whether
//                                      `simctl gradient` tells of those that are off
// Then, in any order: names of things, for these alone, and of motions, for these gradients alone; half lengths as
// 0.001m, for the energy of these sizes; a number, for other throws than those of the docs.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "engine/error.h"
#include "tests/support/contact_trust.h"
#include "tests/support/thrown_chain.h"

namespace backdrive::benchmarks {
namespace {

using namespace test;

/// What is asked for.
struct Part {
  int worlds = 20;
  std::vector<Thing> things;
  std::vector<Motion> motions;
  std::vector<double> sizes;  ///< Throw::size
  std::uint64_t seed = 0;

  std::uint64_t seed_of(const Throw& what) const { return table_seed(what) + 1000003 * seed; }
};

void print_energy(Motion motion, const Part& part) {
  double worst_of_all = 0;
  for (const Integrator integrator : {Integrator::featherstone, Integrator::semi_implicit}) {
    for (const Thing thing : part.things) {
      if (thing == Thing::two_links) continue;
      for (const bool single : {false, true}) {
        double worst = 0;
        Throw at;
        int throws = 0, gained = 0, unsolved = 0;
        for (const double rate : {120., 240., 480., 1920.}) {
          for (const double mass : {1e-3, 0.03, 1., 30., 1000.}) {
            for (const double size : part.sizes) {
              const Throw what{thing, mass, size, rate, integrator};
              const Experiment e = thrown(what, motion, part.worlds, 1.5, part.seed_of(what));
              for (const auto& [largest, is_solved] : single ? largest_energy<float>(e) : largest_energy<double>(e)) {
                ++throws;
                gained += !(largest <= 1.001);
                unsolved += !is_solved;
                if (!(largest <= worst)) worst = largest, at = what;
              }
            }
          }
        }
        worst_of_all = std::max(worst_of_all, worst);
        std::printf("| %s | %s | %s | %d | %d | %d | %.5g | %g kg, %g m, %g/s |\n",
                    integrator == Integrator::featherstone ? "featherstone" : "semi_implicit", name_of(thing),
                    single ? "float32" : "float64", throws, gained, unsolved, worst, at.mass, at.size, at.rate);
        std::fflush(stdout);
      }
    }
  }
  std::printf("worst %.6g\n", worst_of_all);
}

void print_chains(const Part& part) {
  for (const JointType joint : {JointType::revolute, JointType::ball}) {
    for (const double rate : {120., 240., 480., 960., 1920.}) {
      std::vector<double> most;
      double followed = 0;
      int gained = 0, gained_followed = 0;
      for (int k = 0; k < part.worlds; ++k) {
        const ChainEnergy e = energy_of({joint, rate, static_cast<unsigned>(100 + part.seed * 1000 + k)});
        most.push_back(e.most);
        followed = std::max(followed, e.while_followed);
        gained += !(e.most <= 1.001);
        gained_followed += !(e.while_followed <= 1.001);
      }
      std::ranges::sort(most);
      std::printf("| %s | %g/s | %d | %.5f | %d | %.4g | %d | %.4g |\n", to_string(joint), rate, part.worlds,
                  most[most.size() / 2], gained, most.back(), gained_followed, followed);
      std::fflush(stdout);
    }
  }
}

void print_gradients(const Part& part) {
  int all = 0, all_defined = 0, all_off = 0, all_wrong = 0, all_huge = 0, all_untold = 0;
  for (const Thing thing : part.things) {
    for (const Motion motion : part.motions) {
      int defined = 0, off = 0, wrong = 0, count = 0, huge = 0, untold = 0;
      double largest_error = 0, largest_adjoint = 0;
      Throw at;
      for (const double rate : {120., 240., 480., 1920.}) {
        for (const double mass : {0.01, 1., 100.}) {
          const Throw what{thing, mass, 0.1 * std::cbrt(mass), rate};
          const Experiment e = thrown(what, motion, part.worlds, 1, part.seed_of(what));
          const auto all_slopes = slopes(e);
          double largest_slope = 1;
          for (const Slope& s : all_slopes) largest_slope = std::max(largest_slope, s.scale());
          for (int world = 0; world < part.worlds; ++world) {
            const Slope& s = all_slopes[world];
            const bool is_huge = !(std::abs(s.adjoint) <= 100 * largest_slope);
            ++count;
            huge += is_huge;
            if ((is_huge || s.is_off()) && !is_doubted(e, world)) {
              ++untold;
              std::fprintf(stderr, "not told of: %s, %s, %g kg, %g/s, throw %d: %g, and %g, %g by differences\n",
                           name_of(thing), name_of(motion), mass, rate, world, s.adjoint, s.near, s.far);
            }
            largest_adjoint = std::max(largest_adjoint, std::abs(s.adjoint));
            if (!s.defined()) continue;
            ++defined;
            off += s.is_off();
            wrong += !(s.error() <= 1);
            if (!(s.error() <= largest_error)) largest_error = s.error(), at = what;
          }
        }
      }
      std::printf("| %s | %s | %d | %d | %d | %d | %d | %d | %.2g | %.2g | %g kg, %g/s |\n", name_of(thing),
                  name_of(motion), count, defined, off, wrong, huge, untold, largest_error, largest_adjoint, at.mass,
                  at.rate);
      std::fflush(stdout);
      all += count, all_defined += defined, all_off += off, all_wrong += wrong, all_huge += huge, all_untold += untold;
    }
  }
  std::printf("all %d, defined %d, off by 5 %%: %d (%.2f %%), by 2x: %d, huge: %d; not told of: %d\n", all, all_defined,
              all_off, 100. * all_off / all_defined, all_wrong, all_huge, all_untold);
}

/// Of a word as 0.001m, in m; 0 of others.
double length_of(const std::string& word) {
  double length = 0;
  char unit = 0, more = 0;
  const bool whole = std::sscanf(word.c_str(), "%lf%c%c", &length, &unit, &more) == 2 && unit == 'm';
  return whole && std::isfinite(length) ? length : 0;
}

/// Of the words behind the first; throws Error (usage).
Part part_of(const std::vector<std::string>& words) {
  Part part;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const auto is_it = [&](auto what) { return word == name_of(what); };
    if (const auto thing = std::ranges::find_if(kThings, is_it); thing != std::end(kThings)) {
      part.things.push_back(*thing);
    } else if (const auto motion = std::ranges::find_if(kMotions, is_it); motion != std::end(kMotions)) {
      part.motions.push_back(*motion);
    } else if (!word.empty() && word.find_first_not_of("0123456789") == std::string::npos && word.size() < 9) {
      const int number = std::stoi(word);
      if (i == 0)
        part.worlds = number;
      else
        part.seed = number;
    } else if (const double size = length_of(word); size > 0) {
      part.sizes.push_back(size);
    } else {
      usage_error(
          "'" + word +
          "': expected a number, a thing (sphere, capsule, box, cylinder, rod, "
          "disc, mesh, 'two links', egg, lens), a motion (drop, toss, slide, roll, tip, pile) or a size (0.001m)");
    }
  }
  if (part.worlds < 1) usage_error("expected a world at least");
  if (part.things.empty()) part.things.assign(std::begin(kThings), std::end(kThings));
  if (part.sizes.empty()) part.sizes = {0.01, 0.1, 1};
  if (part.motions.empty()) part.motions.assign(std::begin(kMotions), std::end(kMotions));
  return part;
}

}  // namespace
}  // namespace backdrive::benchmarks

int main(int argc, char** argv) {
  using namespace backdrive;
  const std::string what = argc > 1 ? argv[1] : "";
  try {
    const benchmarks::Part part = benchmarks::part_of({argv + std::min(argc, 2), argv + argc});
    if (what == "energy") {
      benchmarks::print_energy(test::Motion::toss, part);
    } else if (what == "piles") {
      benchmarks::print_energy(test::Motion::pile, part);
    } else if (what == "mixed") {
      benchmarks::print_energy(test::Motion::mixed, part);
    } else if (what == "chains") {
      benchmarks::print_chains(part);
    } else if (what == "gradients") {
      benchmarks::print_gradients(part);
    } else {
      std::fprintf(stderr,
                   "usage: contact_trust energy|piles|mixed|chains|gradients [worlds [thing|motion|size|seed...]]\n");
      return 2;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
