#pragma once
// What tests of robot files read of a model.
#include <gtest/gtest.h>

#include <vector>

#include "models/model.h"
#include "models/parameter_reader.h"

namespace backdrive {

inline std::vector<double> numbers(const Parameter& parameter, int item) {
  std::vector<double> values;
  for (int c = 0; c < parameter.components(); ++c) values.push_back(parameter(item, c));
  return values;
}

inline void expect_near(const std::vector<double>& got, const std::vector<double>& wanted, double tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], tolerance) << i;
}

}  // namespace backdrive
