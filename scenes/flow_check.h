#pragma once
// Lists and maps in brackets before yaml-cpp reads them, of which it keeps all tokens of an outermost one, hundreds of
// bytes each, and takes microseconds for every number: what is too deep or too much is refused, and long lists of
// numbers are read apart.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "scenes/document.h"

namespace backdrive::scene {

/// `[1, 2, …]` behind a key or a dash, of nothing but numbers.
struct NumberList {
  int line = 1, column = 1;  ///< of the bracket, from 1
  std::size_t begin = 0;     ///< of what is behind the bracket, in the text
  std::string_view inside;   ///< up to the other one
};

/// Calls visit(text, line, column) for all of them.
template <class Visit>
void each_number(const NumberList& list, const Visit& visit) {
  constexpr std::string_view kBetween = ", \r\n";
  int line = list.line, column = list.column + 1;
  for (std::size_t i = 0; i < list.inside.size();) {
    if (kBetween.find(list.inside[i]) != std::string_view::npos) {
      ++column;
      if (list.inside[i++] == '\n') ++line, column = 1;
      continue;
    }
    const std::size_t length = std::min(list.inside.find_first_of(kBetween, i), list.inside.size()) - i;
    visit(list.inside.substr(i, length), line, column);
    i += length;
    column += static_cast<int>(length);
  }
}

/// Refuses what is too deep or too much before yaml-cpp reads it: of text that holds brackets without being such a
/// value (blocks of prose) at most the depth is misjudged, by as many as it leaves open. Returns its long lists of
/// numbers, in their order; none of a text with blocks of prose, in which something may look like one. Throws Error
/// (input): nesting, values, kMaxYamlBytes beside those lists. O(bytes).
std::vector<NumberList> check_flow(std::string_view text, const Sources& sources, int source);

/// The text with spaces in place of these numbers: all else stands where it stood.
std::string without_numbers(std::string_view text, const std::vector<NumberList>& lists);

/// "more than 500000 values"
std::string too_many_values();

}  // namespace backdrive::scene
