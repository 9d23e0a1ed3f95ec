#pragma once
// Checks of gradients of mechanisms, block by block of what they depend on.
#include <algorithm>
#include <cmath>
#include <map>

#include "tests/integrators/semi_implicit_cases.h"

namespace backdrive::test::inline BACKDRIVE_KERNELS {

inline StateSeeds random_seeds(const Mechanism& m, std::uint64_t seed) {
  Random random(seed);
  StateSeeds seeds(m.steps + 1, std::vector<BodyStateBar<double>>(m.numbers.state.size()));
  for (auto& state : seeds) {
    for (auto& body : state) {
      for (std::size_t k = 0; k < sizeof(body) / sizeof(double); ++k) {
        reinterpret_cast<double*>(&body)[k] = random.symmetric(1);
      }
    }
  }
  return seeds;
}

/// A random direction in one block.
inline MechanismTangent random_direction(const Mechanism& m, const std::string& block, std::uint64_t seed) {
  Random random(seed);
  MechanismTangent v = zero_tangent(m);
  each_number(v, [&](const char* name, double& x) {
    if (block == name) x = random.symmetric(1);
  });
  // The part along an axis has no meaning, neither in a direction nor in a gradient.
  for (std::size_t j = 0; j < v.joints.size(); ++j) {
    const Vec3<double>& a = m.numbers.joints[j].axis;
    v.joints[j].axis -= a * dot(a, v.joints[j].axis);
  }
  return v;
}

struct BlockIdentity {
  double error;  ///< |⟨w, Jv⟩ − ⟨Jᵀw, v⟩| over the larger sum of the magnitudes of their terms
  double size;   ///< Σ|g v|: zero when the gradient of the whole block is
};

/// Σ g v of one block and Σ|g v|.
inline std::pair<double, double> inner(MechanismTangent g, MechanismTangent v) {
  std::vector<double> numbers;
  each_number(v, [&](const char*, double& x) { numbers.push_back(x); });
  std::size_t k = 0;
  double sum = 0, size = 0;
  each_number(g, [&](const char*, double& x) {
    sum += x * numbers[k];
    size += std::abs(x * numbers[k++]);
  });
  return {sum, size};
}

inline std::vector<std::string> blocks_of(const Mechanism& m) {
  std::vector<std::string> blocks;
  MechanismTangent v = zero_tangent(m);
  each_number(v, [&](const char* name, double&) {
    if (std::find(blocks.begin(), blocks.end(), name) == blocks.end()) blocks.push_back(name);
  });
  return blocks;
}

inline std::map<std::string, BlockIdentity> identity_errors(const Mechanism& m, std::uint64_t seed) {
  const StateSeeds seeds = random_seeds(m, seed);
  const MechanismTangent g = gradient_of(m, seeds);
  std::map<std::string, BlockIdentity> errors;
  for (const std::string& block : blocks_of(m)) {
    const MechanismTangent v = random_direction(m, block, seed + 1);
    const auto along =
        numbers_along<Dual<double>>(m.numbers, v, [](double x, double dot) { return Dual<double>(x, dot); });
    const auto [forward, terms] = seeds_times_dot(seeds, roll_out(m, along));
    const auto [sum, size] = inner(g, v);
    errors[block] = {std::abs(forward - sum) / std::max({size, terms, 1e-30}), size};
  }
  return errors;
}

inline std::map<std::string, double> difference_errors(const Mechanism& m, std::uint64_t seed, double h) {
  const StateSeeds seeds = random_seeds(m, seed);
  const MechanismTangent g = gradient_of(m, seeds);
  std::map<std::string, double> errors;
  for (const std::string& block : blocks_of(m)) {
    const MechanismTangent v = random_direction(m, block, seed + 1);
    const auto moved = [&](double s) {
      return roll_out(m, numbers_along<double>(m.numbers, v, [&](double x, double d) { return x + s * d; }));
    };
    const double forward = seeds_times(seeds, moved(-h), moved(h)) / (2 * h);
    const auto [sum, size] = inner(g, v);
    errors[block] = std::abs(forward - sum) / (1 + size);
  }
  return errors;
}

}  // namespace backdrive::test::inline BACKDRIVE_KERNELS
