#pragma once
// Standard containers whose memory comes from default_memory(): what an iteration makes and drops costs the next one no
// call to the system.
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "engine/memory.h"

namespace backdrive {

template <class T>
struct PoolAllocator {
  using value_type = T;

  PoolAllocator() = default;
  template <class U>
  PoolAllocator(const PoolAllocator<U>&) {}  // NOLINT: allocators convert

  T* allocate(std::size_t n) { return static_cast<T*>(pool_allocate(n * sizeof(T))); }
  void deallocate(T* block, std::size_t n) noexcept { pool_free(block, n * sizeof(T)); }
  friend bool operator==(const PoolAllocator&, const PoolAllocator&) { return true; }
};

template <class T>
using PoolVector = std::vector<T, PoolAllocator<T>>;
template <class K, class V>
using PoolMap = std::map<K, V, std::less<K>, PoolAllocator<std::pair<const K, V>>>;
template <class K>
using PoolSet = std::set<K, std::less<K>, PoolAllocator<K>>;

/// std::make_shared, in the pool.
template <class T, class... Arguments>
std::shared_ptr<T> make_pooled(Arguments&&... arguments) {
  return std::allocate_shared<T>(PoolAllocator<T>(), std::forward<Arguments>(arguments)...);
}

/// Base of classes whose objects `new` takes from the pool.
struct Pooled {
  static void* operator new(std::size_t bytes) { return pool_allocate(bytes); }
  static void operator delete(void* block, std::size_t bytes) noexcept { pool_free(block, bytes); }
};

}  // namespace backdrive
