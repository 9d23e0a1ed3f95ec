#pragma once
// Loops over threads: static contiguous shares, so that who does what depends on nothing but the
// counts.
#include <memory>
#include <type_traits>

namespace backdrive {

/// The indices begin <= i < end.
struct Range {
  int begin = 0, end = 0;
  int size() const { return end - begin; }
};

/// The part-th of `parts` contiguous shares of `count` items: sizes differ by at most one, the
/// larger ones first. O(1).
constexpr Range share(int count, int parts, int part) {
  const int size = count / parts, larger = count % parts;
  const int begin = part * size + (part < larger ? part : larger);
  return {begin, begin + size + (part < larger ? 1 : 0)};
}

/// Processors this process may run on (its affinity), at least 1.
int hardware_threads();

namespace detail {

/// A function that somebody else keeps alive.
struct PartFunction {
  void* object;
  void (*call)(void* object, Range range, int part);
};
void run_parts(int parts, int count, PartFunction function);

}  // namespace detail

/// Calls function for every index below `count`, on up to `threads` threads of which the caller is
/// one: as function(index), function(Range) or function(Range, int part), whichever it accepts;
/// `part` < min(threads, count) tells scratch apart. Returns when all is done. A call from inside
/// another one runs its parts one after the other, as does threads = 1; calls from several threads
/// at once take turns. What a part throws is thrown here after all parts have ended, that of the
/// lowest part when several do. Allocates nothing once the threads exist. Throws Error (usage) when
/// threads < 1.
template <class Function>
void parallel_for(int threads, int count, Function&& function) {
  using F = std::remove_reference_t<Function>;
  const auto call = [](void* object, Range range, [[maybe_unused]] int part) {
    F& f = *static_cast<F*>(object);
    if constexpr (std::is_invocable_v<F&, Range, int>) {
      f(range, part);
    } else if constexpr (std::is_invocable_v<F&, Range>) {
      f(range);
    } else {
      for (int i = range.begin; i < range.end; ++i) f(i);
    }
  };
  void* const object = const_cast<void*>(static_cast<const void*>(std::addressof(function)));
  detail::run_parts(threads < count ? threads : count, count, {object, call});
}

}  // namespace backdrive
