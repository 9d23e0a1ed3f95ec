#pragma once
// Values of other engines, of tests/reference, and how far ours are from them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/places.h"

namespace backdrive::test {

/// The content of tests/reference/NAME.json.
inline nlohmann::json read_reference(const std::string& name) {
  std::ifstream file(kRepository + "/tests/reference/" + name + ".json");
  return nlohmann::json::parse(file);
}

/// The largest difference over the largest number of theirs.
inline double relative_difference(const std::vector<double>& ours, const std::vector<double>& theirs) {
  EXPECT_EQ(ours.size(), theirs.size());
  double largest = 0, worst = 0;
  for (const double x : theirs) largest = std::max(largest, std::abs(x));
  for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    worst = std::max(worst, std::abs(ours[i] - theirs[i]));
  }
  return worst / largest;
}

}  // namespace backdrive::test
