#pragma once
// Packs of worlds as number type: what real.h asks of one. To be included before anything else that includes real.h:
// templates find only functions declared before them. Apart from real.h, since <immintrin.h> is long.
//
// A pack is a vector of the compiler in a struct, and every operation on it one call deep: the kernels are made of some
// hundred thousand of them, each inlined, and with the five calls deep of <experimental/simd> compilers took three
// times as long.
#include <immintrin.h>

#include <utility>

#include "engine/real_traits.h"

namespace backdrive {

/// A vector of the compiler. Apart from Pack, in which GCC 12 would lose the attribute of a type that depends on it.
template <class T, int lanes>
struct VectorOf {
  typedef T type __attribute__((vector_size(sizeof(T) * lanes)));
};

/// A number of `lanes` worlds each. sizeof(T) · lanes is the width of a register of the instruction set compiled for.
template <class T, int lanes_>
struct alignas(sizeof(T) * lanes_) Pack {
  static constexpr int lanes = lanes_;
  using Vector = typename VectorOf<T, lanes>::type;

  /// Of a comparison: all bits of a lane or none.
  struct Mask {
    using Bits = decltype(Vector() < Vector());
    Bits bits;

    Mask() = default;
    BACKDRIVE_INLINE Mask(Bits b) : bits(b) {}  // NOLINT: what comparisons return
    /// The same in all lanes.
    BACKDRIVE_INLINE explicit Mask(bool all) : bits(all ? ~Bits{} : Bits{}) {}
    friend BACKDRIVE_INLINE Mask operator!(const Mask& a) { return {~a.bits}; }
    friend BACKDRIVE_INLINE Mask operator&&(const Mask& a, const Mask& b) { return {a.bits & b.bits}; }
    friend BACKDRIVE_INLINE Mask operator||(const Mask& a, const Mask& b) { return {a.bits | b.bits}; }
  };

  Vector numbers;

  Pack() = default;
  /// The same in all lanes.
  BACKDRIVE_INLINE Pack(T x) : Pack(x, std::make_integer_sequence<int, lanes>()) {}  // NOLINT: as numbers widen
  BACKDRIVE_INLINE explicit Pack(Vector v) : numbers(v) {}

  BACKDRIVE_INLINE T operator[](int lane) const { return numbers[lane]; }
  BACKDRIVE_INLINE void set(int lane, T x) { numbers[lane] = x; }

  /// `from` and `to`: lanes numbers, aligned to the pack.
  static BACKDRIVE_INLINE Pack load(const T* from) {
    Pack x;
    __builtin_memcpy(&x, __builtin_assume_aligned(from, alignof(Pack)), sizeof x);
    return x;
  }
  BACKDRIVE_INLINE void store(T* to) const {
    __builtin_memcpy(__builtin_assume_aligned(to, alignof(Pack)), this, sizeof *this);
  }

  friend BACKDRIVE_INLINE Pack operator+(const Pack& a, const Pack& b) { return Pack(a.numbers + b.numbers); }
  friend BACKDRIVE_INLINE Pack operator-(const Pack& a, const Pack& b) { return Pack(a.numbers - b.numbers); }
  friend BACKDRIVE_INLINE Pack operator*(const Pack& a, const Pack& b) { return Pack(a.numbers * b.numbers); }
  friend BACKDRIVE_INLINE Pack operator/(const Pack& a, const Pack& b) { return Pack(a.numbers / b.numbers); }
  BACKDRIVE_INLINE Pack operator-() const { return Pack(-numbers); }
  BACKDRIVE_INLINE Pack& operator+=(const Pack& b) {
    numbers += b.numbers;
    return *this;
  }
  BACKDRIVE_INLINE Pack& operator-=(const Pack& b) {
    numbers -= b.numbers;
    return *this;
  }
  BACKDRIVE_INLINE Pack& operator*=(const Pack& b) {
    numbers *= b.numbers;
    return *this;
  }

  friend BACKDRIVE_INLINE Mask operator<(const Pack& a, const Pack& b) { return {a.numbers < b.numbers}; }
  friend BACKDRIVE_INLINE Mask operator>(const Pack& a, const Pack& b) { return {a.numbers > b.numbers}; }
  friend BACKDRIVE_INLINE Mask operator<=(const Pack& a, const Pack& b) { return {a.numbers <= b.numbers}; }
  friend BACKDRIVE_INLINE Mask operator>=(const Pack& a, const Pack& b) { return {a.numbers >= b.numbers}; }
  friend BACKDRIVE_INLINE Mask operator==(const Pack& a, const Pack& b) { return {a.numbers == b.numbers}; }
  friend BACKDRIVE_INLINE Mask operator!=(const Pack& a, const Pack& b) { return {a.numbers != b.numbers}; }

  friend BACKDRIVE_INLINE Pack select(const Mask& mask, const Pack& yes, const Pack& no) {
    return Pack(mask.bits ? yes.numbers : no.numbers);
  }
  friend BACKDRIVE_INLINE Pack magnitude(const Pack& x) {
    using Bits = typename Mask::Bits;
    return Pack(Vector(Bits(x.numbers) & ~Bits(Pack(T(-0.0)).numbers)));
  }
  friend BACKDRIVE_INLINE bool lane(const Mask& mask, int i) { return mask.bits[i] != 0; }
  friend BACKDRIVE_INLINE bool any(const Mask& mask) {
    if constexpr (sizeof(Pack) == 16) {
      return _mm_movemask_epi8(__m128i(mask.bits)) != 0;
#if defined(__AVX__)
    } else if constexpr (sizeof(Pack) == 32) {
      const auto bits = __m256i(mask.bits);
      return !_mm256_testz_si256(bits, bits);
#endif
#if defined(__AVX512F__)
    } else {
      const auto bits = __m512i(mask.bits);
      return _mm512_test_epi32_mask(bits, bits) != 0;
#endif
    }
  }
  friend BACKDRIVE_INLINE Pack square_root(const Pack& x) {
    if constexpr (sizeof(Pack) == 16 && sizeof(T) == 4) return Pack(Vector(_mm_sqrt_ps(__m128(x.numbers))));
    if constexpr (sizeof(Pack) == 16 && sizeof(T) == 8) return Pack(Vector(_mm_sqrt_pd(__m128d(x.numbers))));
#if defined(__AVX__)
    if constexpr (sizeof(Pack) == 32 && sizeof(T) == 4) return Pack(Vector(_mm256_sqrt_ps(__m256(x.numbers))));
    if constexpr (sizeof(Pack) == 32 && sizeof(T) == 8) return Pack(Vector(_mm256_sqrt_pd(__m256d(x.numbers))));
#endif
#if defined(__AVX512F__)
    if constexpr (sizeof(Pack) == 64 && sizeof(T) == 4) return Pack(Vector(_mm512_sqrt_ps(__m512(x.numbers))));
    if constexpr (sizeof(Pack) == 64 && sizeof(T) == 8) return Pack(Vector(_mm512_sqrt_pd(__m512d(x.numbers))));
#endif
  }

 private:
  template <int... all>
  BACKDRIVE_INLINE Pack(T x, std::integer_sequence<int, all...>) : numbers{(static_cast<void>(all), x)...} {}
};

/// Bytes of a register of the instruction set that this file is compiled for.
#if defined(__AVX512F__)
constexpr int kRegisterBytes = 64;
#elif defined(__AVX__)
constexpr int kRegisterBytes = 32;
#else
constexpr int kRegisterBytes = 16;
#endif

/// A register full of worlds.
template <class T>
using NativePack = Pack<T, kRegisterBytes / sizeof(T)>;

template <class T, int lanes_>
struct RealTraits<Pack<T, lanes_>> {
  using Storage = T;
  using Scalar = T;
  static constexpr int lanes = lanes_;
};

}  // namespace backdrive

#include "engine/real.h"  // after these: what it makes of them knows them then
