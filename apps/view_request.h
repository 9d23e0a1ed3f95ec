#pragma once
// What the page of `simctl view` asks for.
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace backdrive::app {

struct ViewRequest {
  enum class Wanted { motion, gradient };
  static constexpr std::size_t kMostValues = 256, kLongestPath = 1000;

  Wanted wanted = Wanted::motion;
  std::string shapes;                                  ///< which shapes the page has already
  std::vector<std::pair<std::string, double>> values;  ///< by path; in place of the scene's own
};

/// {"wanted": "motion" or "gradient", "shapes": "...", "values": {"joints/hinge/damping": 0.1, ...}}, none of them
/// required. Throws Error (input) for everything else: other keys, other kinds of values, keys that are there twice,
/// numbers that are not finite, more than a request may have. O(size), whatever the text.
ViewRequest read_view_request(std::string_view text);

}  // namespace backdrive::app
