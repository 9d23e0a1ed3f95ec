#include "scenes/robots/robot.h"

#include <algorithm>

namespace backdrive::scene {

std::array<double, 4> shown_colour(std::array<double, 4> colour) {
  for (double& share : colour) share = std::clamp(share, 0.0, 1.0);
  return colour;
}

void RobotParts::note(Place place, const std::string& what, bool changes_motion) {
  auto known = std::ranges::find(notes, what, &RobotNote::what);
  if (known == notes.end() && notes.size() >= kMostNotes) {
    known = notes.end() - 1;
    known->what = "and more, of other kinds";
    known->changes_motion = known->changes_motion || changes_motion;
  }
  if (known != notes.end()) {
    ++known->times;
  } else {
    notes.push_back({place, what, 1, changes_motion});
  }
}

}  // namespace backdrive::scene
