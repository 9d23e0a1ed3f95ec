#pragma once
// Structs made of numbers of one type and nothing else, as those numbers in a row and back. The one place that looks at
// one as the other.
#include <type_traits>

#include "engine/real_traits.h"

namespace backdrive {

/// How many numbers there are in one. Does not compile for a struct that could hold anything else.
template <class Real, class Struct>
constexpr int kNumbers = [] {
  static_assert(std::is_trivially_copyable_v<Struct> && sizeof(Struct) % sizeof(Real) == 0 &&
                alignof(Struct) == alignof(Real));
  return static_cast<int>(sizeof(Struct) / sizeof(Real));
}();

/// The numbers of structs that lie side by side. Null stays null.
template <class Real, class Struct>
BACKDRIVE_HD inline Real* numbers_of(Struct* structs) {
  static_assert(kNumbers<std::remove_const_t<Real>, std::remove_const_t<Struct>> > 0);
  return reinterpret_cast<Real*>(structs);
}
/// The structs whose numbers lie there. Null stays null.
template <class Struct, class Real>
BACKDRIVE_HD inline Struct* structs_of(Real* numbers) {
  static_assert(kNumbers<std::remove_const_t<Real>, std::remove_const_t<Struct>> > 0);
  return reinterpret_cast<Struct*>(numbers);
}

}  // namespace backdrive
