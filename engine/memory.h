#pragma once
// Memory that is handed out, counted, and used again: after the first iteration of a loop nothing is asked of the
// system.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/device.h"

namespace backdrive {

template <class T>
class View;  // engine/view.h

struct MemoryCounters {
  std::size_t live_bytes = 0;     ///< in buffers somebody holds
  std::size_t pooled_bytes = 0;   ///< kept for the next request
  std::size_t peak_bytes = 0;     ///< highest live_bytes so far
  std::uint64_t allocations = 0;  ///< requests that went to the system
  std::uint64_t requests = 0;     ///< all requests
};

/// A pool of aligned blocks, of the host or on a device. Copies share it; it lives until the last block is returned.
/// Safe to use from any thread. On a device, a block that was returned goes to the next request at once: whatever still
/// uses it was told to the device before.
class Memory {
 public:
  Memory();
  /// Throws Error (device) when there is no such device.
  explicit Memory(const Device& device);
  /// Of the host, for copies that need not be staged.
  static Memory pinned(const Device& device);

  Device device() const;
  /// Of the device; null for memory of the host.
  DeviceBackend* backend() const;
  /// A block of at least `bytes`, 64-byte aligned, contents unspecified (NaN in debug builds); it returns to the pool
  /// with its last handle. O(log number of pooled blocks).
  std::shared_ptr<std::byte> allocate(std::size_t bytes);
  MemoryCounters counters() const;
  /// Gives pooled blocks back to the system.
  void trim();

 private:
  friend void* pool_allocate(std::size_t bytes);
  friend void pool_free(void* block, std::size_t bytes) noexcept;
  template <class T>
  friend class Buffer;
  struct Pool;
  explicit Memory(std::shared_ptr<Pool> pool) : pool_(std::move(pool)) {}
  /// A block that begins with a Header, which is destroyed just before the block returns to the pool.
  template <class Header>
  std::shared_ptr<Header> allocate_headed(std::size_t bytes);
  std::shared_ptr<Pool> pool_;
};

/// The pool that buffers use when none is named. It outlives every static object.
Memory& default_memory();
/// The same, one for each device. Throws Error (device) when there is no such device.
Memory& default_memory(const Device& device);
/// Devices whose default memory somebody has asked for, the processor first.
std::vector<Device> devices_in_use();

/// Bare blocks of default_memory(), for containers (engine/pool_containers.h); `bytes` of both calls must agree.
void* pool_allocate(std::size_t bytes);
void pool_free(void* block, std::size_t bytes) noexcept;

/// Worlds in 64 bytes, a pack of the widest instruction set; scalar types have no packs.
template <class T>
constexpr int kPackWorlds = sizeof(T) < 64 ? static_cast<int>(64 / sizeof(T)) : 1;

/// Distance between the rows of a buffer: whole packs, and an odd number of them, since rows a power of two apart would
/// compete for the same few lines of the cache.
template <class T>
constexpr int row_stride(int worlds) {
  const int packs = (worlds + kPackWorlds<T> - 1) / kPackWorlds<T>;
  return (packs > 1 && packs % 2 == 0 ? packs + 1 : packs) * kPackWorlds<T>;
}

/// Rows of `items` times `each` rows, as a Buffer counts them: steps by components, say. Throws Error (input) beyond
/// 2³¹ − 1 with both numbers, so that no product of them overflows.
int row_count(std::int64_t items, std::int64_t each);

/// Numbers laid out [row][world], world innermost, rows padded to whole packs, in memory of the host or on a device. A
/// handle: copies share the numbers, and the storage lives as long as any handle. Every write view raises the version,
/// by which a recording sees that what it had read was changed. The host reads and writes its own memory only: on a
/// device's buffer row(), write(), set() and view() throw Error (usage), and clone() brings the numbers.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  /// Zeros.
  Buffer(Memory& memory, int rows, int worlds);
  Buffer(int rows, int worlds) : Buffer(default_memory(), rows, worlds) {}
  /// For what writes every number before anybody reads one: contents are unspecified (NaN in debug builds).
  static Buffer uninitialized(Memory& memory, int rows, int worlds);

  int rows() const { return rows_; }
  int worlds() const { return worlds_; }
  int stride() const { return stride_; }
  bool empty() const { return rows_ == 0; }
  /// The same number for all handles of one storage, never used again for another.
  std::uint64_t id() const;
  std::uint64_t version() const;
  /// Whether other handles of this storage exist.
  bool shared() const { return storage_.use_count() > 1; }
  /// Of the device; null for memory of the host.
  DeviceBackend* backend() const { return backend_; }

  const T* row(int row) const {
    if (backend_) not_on_host();
    return address(row);
  }
  /// A view to write through; raises the version.
  T* write(int row = 0);
  /// For kernels: pointers into the memory of the device, if it is on one. write_address() raises the version.
  const T* address(int row = 0) const { return data_ + static_cast<std::size_t>(row) * stride_; }
  T* write_address(int row = 0);
  const T& operator()(int row, int world) const { return this->row(row)[world]; }
  void set(int row, int world, const T& value) { write(row)[world] = value; }
  void fill(const T& value);
  /// All numbers, row by row with their padding, to read: rows are stride() apart. `name` stands in the message when
  /// the view is used after the last handle has gone (engine/view.h); reassigning one handle of several does it no
  /// harm.
  View<const T> view(std::string_view name) const;
  /// A deep copy, with its own storage. From a device to the host it waits until the numbers are there.
  Buffer clone(Memory& memory) const;
  /// Takes over the numbers of a buffer of the same shape. Between a device and the host it returns at once: the host's
  /// side is pinned memory, to be left alone until the device was waited for.
  void copy_from(const Buffer& other);
  /// The same of `rows` rows of a buffer with as many worlds; the host's side need not be pinned to be read.
  void copy_rows(int to_row, const Buffer& other, int from_row, int rows);

 private:
  struct Storage;
  struct DeviceStorage;
  /// Numbers from another place; between devices only by way of the host.
  void take(T* to, const Buffer& other, const T* from, int rows);
  std::size_t numbers() const { return static_cast<std::size_t>(rows_) * static_cast<std::size_t>(stride_); }
  [[noreturn]] void not_on_host() const;
  std::shared_ptr<Storage> storage_;
  T* data_ = nullptr;
  DeviceBackend* backend_ = nullptr;
  int rows_ = 0, worlds_ = 0, stride_ = 0;
};

/// The buffer itself, or where it lies on a device a copy on the host.
template <class T>
Buffer<T> on_host(const Buffer<T>& buffer) {
  return buffer.backend() ? buffer.clone(default_memory()) : buffer;
}

/// The default memory where a buffer lies.
template <class T>
Memory& memory_beside(const Buffer<T>& buffer) {
  return buffer.backend() ? default_memory(buffer.backend()->device()) : default_memory();
}

}  // namespace backdrive
