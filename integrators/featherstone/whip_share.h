#pragma once

namespace backdrive::featherstone {

/// |ω|² Δt of two adjoining joints that turn alike, in 1/s, from which they whip, and from which wholly: λ of (22) in
/// docs/theory.md goes from 0 to 1. What velocity terms of a step's start feed a motion in a second is some tenths of
/// it.
constexpr double kWhipFrom = 0.09, kWhipTo = 1;
/// Of steps longer than this, s, what they feed it in a step counts: |ω|² is multiplied with more than Δt.
constexpr double kWhipStep = 1.0 / 60;
constexpr double whip_time(double time_step) {
  return time_step > kWhipStep ? time_step * (time_step / kWhipStep) : time_step;
}

}  // namespace backdrive::featherstone
