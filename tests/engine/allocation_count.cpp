#include "tests/engine/allocation_count.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::uint64_t> count{0};

}  // namespace

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
#define BACKDRIVE_NEW_CANNOT_BE_REPLACED
#endif
#endif
#ifdef BACKDRIVE_NEW_CANNOT_BE_REPLACED
// clang's ThreadSanitizer has an operator new that nobody can replace, and calls this from it and from malloc.
extern "C" __attribute__((no_sanitize("thread"))) void __sanitizer_malloc_hook(const volatile void*, std::size_t) {
  count.fetch_add(1, std::memory_order_relaxed);
}
#else
namespace {

void* counted(std::size_t bytes, std::size_t alignment) {
  count.fetch_add(1, std::memory_order_relaxed);
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
}

void* checked(void* block) {
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

// Array forms call these.
void* operator new(std::size_t bytes) {
  return checked(counted(bytes, alignof(std::max_align_t)));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return checked(counted(bytes, static_cast<std::size_t>(alignment)));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return counted(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* block) noexcept {
  std::free(block);
}
void operator delete(void* block, std::size_t) noexcept {
  std::free(block);
}
void operator delete(void* block, std::align_val_t) noexcept {
  std::free(block);
}
void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
  std::free(block);
}
#endif

namespace backdrive::test {

std::uint64_t system_allocations() {
  return count.load(std::memory_order_relaxed);
}

}  // namespace backdrive::test
