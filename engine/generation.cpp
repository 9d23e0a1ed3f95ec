#include "engine/generation.h"

#include <mutex>

namespace backdrive {

#if BACKDRIVE_GUARDS

const char guards_are_on = 1;

namespace {

/// Slots in chunks that stay where they are: tickets point at them. Freed ones are handed out first.
class GenerationTable {
 public:
  GenerationSlot* take() {
    const std::lock_guard lock(mutex_);
    if (free_ == nullptr) grow();
    GenerationSlot* const slot = free_;
    free_ = slot->next_free;
    ++counters_.in_use;
    return slot;
  }

  /// Raises the number first: nobody can take the slot before its old tickets are stale.
  void give(GenerationSlot* slot) noexcept {
    slot->number.fetch_add(1, std::memory_order_acq_rel);
    const std::lock_guard lock(mutex_);
    slot->next_free = free_;
    free_ = slot;
    --counters_.in_use;
  }

  GenerationCounters counters() const {
    const std::lock_guard lock(mutex_);
    return counters_;
  }

 private:
  static constexpr std::size_t kSlots = 255;
  struct Chunk {
    Chunk* previous;  ///< keeps every chunk in reach of leak checkers
    GenerationSlot slots[kSlots];
  };

  void grow() {
    chunks_ = new Chunk{chunks_, {}};
    for (GenerationSlot& slot : chunks_->slots) {
      slot.next_free = free_;
      free_ = &slot;
    }
    counters_.slots += kSlots;
  }

  mutable std::mutex mutex_;
  GenerationSlot* free_ = nullptr;
  Chunk* chunks_ = nullptr;
  GenerationCounters counters_;
};

GenerationTable& table() {
  static GenerationTable& table = *new GenerationTable;  // never destroyed: static objects may still hold tickets
  return table;
}

}  // namespace

Generation::~Generation() {
  GenerationSlot* const slot = slot_.load(std::memory_order_acquire);
  if (slot != nullptr) table().give(slot);
}

Ticket Generation::ticket() const {
  GenerationSlot* slot = slot_.load(std::memory_order_acquire);
  if (slot == nullptr) {
    GenerationSlot* const fresh = table().take();
    if (slot_.compare_exchange_strong(slot, fresh, std::memory_order_acq_rel, std::memory_order_acquire)) {
      slot = fresh;
    } else {
      table().give(fresh);  // another thread was first; `slot` is its
    }
  }
  return {slot, slot->number.load(std::memory_order_acquire)};
}

GenerationCounters generation_counters() {
  return table().counters();
}

#else

const char guards_are_off = 1;

GenerationCounters generation_counters() {
  return {};
}

#endif

}  // namespace backdrive
