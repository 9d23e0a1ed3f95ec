#include "scenes/scene_error.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <tuple>

namespace backdrive::scene {
namespace {

/// Takes ":7" from the end of a place; 0: there is none.
int number_behind_colon(std::string& place) {
  const std::size_t colon = place.rfind(':');
  if (colon == std::string::npos) return 0;
  int number = 0;
  const char* const end = place.data() + place.size();
  const auto [at, error] = std::from_chars(place.data() + colon + 1, end, number);
  if (error != std::errc() || at != end || number <= 0) return 0;
  place.resize(colon);
  return number;
}

}  // namespace

SceneMistake mistake_of(const Error& error) {
  SceneMistake mistake{.text = error.what(), .file = "", .path = "", .what = "", .expected = "", .hint = ""};
  const std::string& text = mistake.text;
  constexpr std::string_view expected = "expected ";
  const std::size_t place_end = text.find(": "), expected_at = text.rfind(expected);
  if (place_end != std::string::npos) {
    std::string place = text.substr(0, place_end);
    mistake.column = number_behind_colon(place);
    mistake.line = mistake.column > 0 ? number_behind_colon(place) : 0;
    if (mistake.line == 0) mistake.line = std::exchange(mistake.column, 0);  // of a line alone
    mistake.file = std::move(place);
  }
  if (expected_at != std::string::npos) mistake.expected = text.substr(expected_at + expected.size());
  const std::size_t begin = place_end == std::string::npos ? 0 : place_end + 2;
  const std::size_t end = expected_at == std::string::npos ? text.size() : expected_at;
  if (begin < end) mistake.what = text.substr(begin, end - begin);
  while (mistake.what.ends_with(' ') || mistake.what.ends_with(':') || mistake.what.ends_with(',')) {
    mistake.what.pop_back();
  }
  return mistake;
}

void Mistakes::throw_any(const std::string& first_file) const {
  if (found_.empty()) return;
  std::map<std::string, int> files{{first_file, 0}};
  for (const SceneMistake& mistake : found_) files.emplace(mistake.file, static_cast<int>(files.size()));
  const auto order = [&](const SceneMistake& mistake) {
    const bool of_override = mistake.text.starts_with("--set ");
    return std::tuple(of_override, files.at(mistake.file), mistake.line, mistake.column);
  };
  std::vector<SceneMistake> sorted = found_;
  std::ranges::stable_sort(sorted, {}, order);
  throw SceneError(std::move(sorted));
}

}  // namespace backdrive::scene
