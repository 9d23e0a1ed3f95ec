#pragma once
// Views that know whether what they look at is still there.
#include <cstddef>
#include <string>
#include <string_view>

#include "engine/generation.h"
#include "engine/pool_containers.h"

namespace backdrive {

/// What a view carries for its check: the path to name and the ticket. Empty when guards are off.
class ViewGuard {
 public:
  ViewGuard() = default;
#if BACKDRIVE_GUARDS
  ViewGuard(std::string_view name, Ticket ticket) : name_(name), ticket_(ticket) {}
  std::string_view name() const {
    return name_;
  }
  bool valid() const {
    return ticket_.valid();
  }
  /// Throws Error (usage) naming the path when the view is stale. O(1).
  void check() const {
    if (!ticket_.valid()) stale();
  }
  /// check(), and throws Error (usage) when `index` is not one of `count`: `what` says of which.
  void check(std::string_view what, std::ptrdiff_t index, std::size_t count) const {
    check();
    if (index < 0 || static_cast<std::size_t>(index) >= count) out_of_range(what, index, count);
  }

 private:
  [[noreturn]] void stale() const;
  [[noreturn]] void out_of_range(std::string_view what, std::ptrdiff_t index, std::size_t count) const;

  // A copy: the name that the maker passed may be gone by the time it is needed.
  std::basic_string<char, std::char_traits<char>, PoolAllocator<char>> name_;
  Ticket ticket_;
#else
  ViewGuard(std::string_view, Ticket) {}
  std::string_view name() const {
    return {};
  }
  bool valid() const {
    return true;
  }
  void check() const {}
  void check(std::string_view, std::ptrdiff_t, std::size_t) const {}
#endif
};

/// Numbers that somebody else owns. With guards each access throws Error (usage) when they were freed, moved or resized
/// since the view was made, or when the index is past the end; without them a View is a pointer and a count.
template <class T>
class View {
 public:
  View() = default;
  /// Of `count` numbers at `data`; `ticket` is one of their owner's, `name` the path that messages say.
  View(T* data, std::size_t count, std::string_view name, Ticket ticket)
      : data_(data), count_(count), guard_(name, ticket) {}

  T& operator[](std::size_t index) const {
    guard_.check("number", static_cast<std::ptrdiff_t>(index), count_);
    return data_[index];
  }
  /// Checked here only: what is read through the pointer is the caller's to keep alive.
  T* data() const {
    guard_.check();
    return data_;
  }
  T* begin() const { return data(); }
  T* end() const { return data() + count_; }
  std::size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  /// Whether accesses are still good; always when guards are off.
  bool valid() const { return guard_.valid(); }
  /// The path; empty when guards are off.
  std::string_view name() const { return guard_.name(); }

 private:
  T* data_ = nullptr;
  std::size_t count_ = 0;
  [[no_unique_address]] ViewGuard guard_;
};

}  // namespace backdrive
