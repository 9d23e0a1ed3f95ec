#pragma once

namespace backdrive::test {

/// Whether a sanitizer looks on. It sees what runs, however short: tests that simulate with dual numbers, whose kernels
/// are instrumented (integrators/CMakeLists.txt), take fewer steps then; those that do the same over and over, be it
/// iterations of an optimiser or points of a sweep, do it a few times.
#if defined(BACKDRIVE_SANITIZED)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

/// Whether what runs long is to be shorter: a sanitizer looks on, or nothing is optimised.
#if defined(NDEBUG)
constexpr bool kSlowBuild = kSanitized;
#else
constexpr bool kSlowBuild = true;
#endif

}  // namespace backdrive::test
