#pragma once

namespace backdrive::featherstone {

/// |ω|² Δt of two adjoining joints that turn alike, in 1/s, from which they whip, and from which wholly: λ of (22) in
/// docs/theory.md goes from 0 to 1. What velocity terms of a step's start feed a motion in a second is some tenths of
/// it.
constexpr double kWhipFrom = 0.09, kWhipTo = 1;

}  // namespace backdrive::featherstone
