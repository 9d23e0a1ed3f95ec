#pragma once
// Who looks at storage learns when it has gone: its owner keeps a number that rises, a view keeps what it was.
//
// BACKDRIVE_GUARDS is 1 or 0 for a whole program, since it decides the layout of what owns storage: the CMake option of
// that name sets it for the libraries and for whoever links them. Without CMake it follows NDEBUG, and a program that
// disagrees with its libraries does not link.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#if !defined(BACKDRIVE_GUARDS)
#if defined(NDEBUG)
#define BACKDRIVE_GUARDS 0
#else
#define BACKDRIVE_GUARDS 1
#endif
#endif

namespace backdrive {

/// Whether stale views are caught.
constexpr bool kGuards = BACKDRIVE_GUARDS != 0;

/// The table that tickets look into; zeros when guards are off.
struct GenerationCounters {
  std::size_t slots = 0;   ///< made so far; they are used again, never given back
  std::size_t in_use = 0;  ///< of owners that somebody took a ticket from
};
/// Safe to call from any thread. O(1).
GenerationCounters generation_counters();

#if BACKDRIVE_GUARDS

/// Referred to by every file that includes this one: the libraries define the one of their own setting only.
extern const char guards_are_on;
[[maybe_unused, gnu::used]] static const char* const guards_agree = &guards_are_on;

/// A number in a table that lives as long as the process, so that asking after an owner never reads the owner.
struct GenerationSlot {
  std::atomic<std::uint64_t> number{0};  ///< only rises, also from one owner to the next: 64 bits do not come around
  GenerationSlot* next_free = nullptr;   ///< guarded by the table
};

/// The view's side: what an owner's number was when the view was made.
class Ticket {
 public:
  /// Of nothing, which cannot go stale.
  Ticket() = default;
  /// Whether the storage still is what it was. Safe from any thread, also after the owner has gone; a thread that frees
  /// storage while another reads it is a race all the same. O(1), no lock.
  bool valid() const { return slot_ == nullptr || slot_->number.load(std::memory_order_acquire) == number_; }

 private:
  friend class Generation;
  Ticket(const GenerationSlot* slot, std::uint64_t number) : slot_(slot), number_(number) {}
  const GenerationSlot* slot_ = nullptr;
  std::uint64_t number_ = 0;
};

/// The owner's side: a member of whatever owns storage. Tickets go stale when it is destroyed, assigned to, moved from,
/// or told to. Copies start with tickets of their own. It takes a slot with the first ticket only, so that owners whom
/// nobody looks at cost nothing.
class Generation {
 public:
  Generation() = default;
  Generation(const Generation&) noexcept {}
  Generation(Generation&& other) noexcept { other.invalidate(); }
  Generation& operator=(const Generation& other) noexcept {
    if (this != &other) invalidate();
    return *this;
  }
  Generation& operator=(Generation&& other) noexcept {
    invalidate();
    other.invalidate();
    return *this;
  }
  ~Generation();

  /// Safe from several threads at once. O(1); takes a lock the first time.
  Ticket ticket() const;
  /// Makes all tickets stale. O(1), no lock.
  void invalidate() noexcept {
    GenerationSlot* const slot = slot_.load(std::memory_order_acquire);
    if (slot != nullptr) slot->number.fetch_add(1, std::memory_order_acq_rel);
  }

 private:
  mutable std::atomic<GenerationSlot*> slot_{nullptr};
};

#else

extern const char guards_are_off;
[[maybe_unused, gnu::used]] static const char* const guards_agree = &guards_are_off;

// Empty, so that [[no_unique_address]] members of them take no room and every call is no code.
class Ticket {
 public:
  constexpr bool valid() const { return true; }
};

class Generation {
 public:
  constexpr Ticket ticket() const { return {}; }
  constexpr void invalidate() noexcept {}
};

#endif

}  // namespace backdrive
