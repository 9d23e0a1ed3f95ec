#include "engine/memory.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <limits>
#include <mutex>
#include <new>

#include "engine/dual.h"
#include "engine/error.h"
#include "engine/generation.h"
#include "engine/pool_containers.h"
#include "engine/view.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BACKDRIVE_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define BACKDRIVE_ASAN 1
#endif
#if defined(BACKDRIVE_ASAN)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) (static_cast<void>(address), static_cast<void>(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) (static_cast<void>(address), static_cast<void>(size))
#endif

namespace backdrive {
namespace {

constexpr std::size_t kAlignment = 64;
/// No machine has more; sums of sizes below it cannot overflow.
constexpr std::size_t kMaxBytes = std::size_t{1} << 56;
/// Sizes per doubling: a block is at most an eighth (plus one unit) larger than what was asked.
constexpr int kSteps = 8;
constexpr int kClasses = 58 * kSteps;

#if defined(NDEBUG)
constexpr bool kPoison = false;
#else
constexpr bool kPoison = true;
#endif
/// All bits set: a NaN in float and double, an absurd number in anything else.
constexpr int kPoisonByte = 0xFF;

/// The size class of a request, and the bytes of each class: 64·(8 + step)·2^octave above eight
/// units of 64 bytes, every multiple of 64 below.
struct SizeClass {
  int index;
  std::size_t bytes;
};

SizeClass size_class(std::size_t bytes) {
  const std::size_t units = std::max<std::size_t>(1, (bytes + kAlignment - 1) / kAlignment);
  if (units <= kSteps) return {static_cast<int>(units) - 1, units * kAlignment};
  const int octave = std::bit_width(units - 1) - std::bit_width(std::size_t{kSteps});
  const std::size_t step = (units + (std::size_t{1} << octave) - 1) >> octave;  // in (8, 16] for octave 0
  return {octave * kSteps + static_cast<int>(step) - 1, (step << octave) * kAlignment};
}

/// What a pooled block holds: the next one of its class.
struct FreeBlock {
  FreeBlock* next;
  std::size_t bytes;
};

std::atomic<std::uint64_t> next_buffer_id{1};

}  // namespace

/// Where the blocks of a pool come from.
struct BlockSource {
  DeviceBackend* backend = nullptr;  ///< null: the system
  bool pinned = false;               ///< the device's memory of the host

  bool on_device() const { return backend && !pinned; }
  void* allocate(std::size_t bytes) const {
    if (!backend) return ::operator new (bytes, std::align_val_t{kAlignment}, std::nothrow);
    return pinned ? backend->allocate_pinned(bytes) : backend->allocate(bytes);
  }
  void free(void* block) const noexcept {
    if (!backend) return ::operator delete (block, std::align_val_t{kAlignment});
    pinned ? backend->free_pinned(block) : backend->free(block);
  }
};

/// Free lists by size class. Those of the host are threaded through the free blocks themselves, so that the pool's own
/// bookkeeping asks nothing of the system; those of a device, which the host cannot write to, stand beside.
struct Memory::Pool {
  explicit Pool(BlockSource s) : source(s) {}
  ~Pool() { release_all(); }

  std::byte* take(std::size_t bytes) {
    if (bytes > kMaxBytes) fail(bytes);
    const SizeClass wanted = size_class(bytes);
    std::byte* block = pooled(wanted);
    if (block == nullptr) block = from_system(wanted);
    open(block, bytes);
    poison(block, bytes);
    return block;
  }

  void give(std::byte* block, std::size_t bytes) noexcept {
    const SizeClass given = size_class(bytes);
    open(block, given.bytes);
    if (!source.on_device()) poison(block, given.bytes);
    const std::lock_guard lock(mutex);
    if (source.on_device()) {
      device_free[given.index].push_back(block);
    } else {
      free[given.index] = new (block) FreeBlock{free[given.index], given.bytes};
      ASAN_POISON_MEMORY_REGION(block + sizeof(FreeBlock), given.bytes - sizeof(FreeBlock));
    }
    counters.live_bytes -= given.bytes;
    counters.pooled_bytes += given.bytes;
  }

  void release_all() noexcept {
    const std::lock_guard lock(mutex);
    for (FreeBlock*& head : free) {
      while (head != nullptr) {
        FreeBlock* const block = head;
        head = block->next;
        ASAN_UNPOISON_MEMORY_REGION(block, block->bytes);
        source.free(block);
      }
    }
    for (auto& [index, blocks] : device_free) {
      for (std::byte* const block : blocks) source.free(block);
      blocks.clear();
    }
    counters.pooled_bytes = 0;
  }

  /// For control blocks and headers, which the host reads: the pool itself, or the default one beside a device.
  Pool& bookkeeping() { return source.on_device() ? *default_memory().pool_ : *this; }

  const BlockSource source;
  mutable std::mutex mutex;
  std::array<FreeBlock*, kClasses> free{};
  PoolMap<int, PoolVector<std::byte*>> device_free;
  MemoryCounters counters;

 private:
  void open([[maybe_unused]] std::byte* block, [[maybe_unused]] std::size_t bytes) const {
    if (!source.on_device()) ASAN_UNPOISON_MEMORY_REGION(block, bytes);
  }
  void poison(std::byte* block, std::size_t bytes) const {
    if (!kPoison) return;
    source.on_device() ? source.backend->fill(block, kPoisonByte, bytes)
                       : static_cast<void>(std::memset(block, kPoisonByte, bytes));
  }

  /// A block from the free list, or null.
  std::byte* pooled(const SizeClass& wanted) {
    const std::lock_guard lock(mutex);
    ++counters.requests;
    std::byte* block = nullptr;
    if (source.on_device()) {
      const auto found = device_free.find(wanted.index);
      if (found == device_free.end() || found->second.empty()) return nullptr;
      block = found->second.back();
      found->second.pop_back();
    } else {
      FreeBlock*& head = free[wanted.index];
      if (head == nullptr) return nullptr;
      block = reinterpret_cast<std::byte*>(head);
      head = head->next;
      ASAN_POISON_MEMORY_REGION(block, wanted.bytes);  // take() opens what was asked for
    }
    counters.pooled_bytes -= wanted.bytes;
    count_live(wanted.bytes);
    return block;
  }

  std::byte* from_system(const SizeClass& wanted) {
    void* block = source.allocate(wanted.bytes);
    if (block == nullptr) {
      release_all();
      block = source.allocate(wanted.bytes);
    }
    if (block == nullptr) fail(wanted.bytes);
    if (!source.on_device()) ASAN_POISON_MEMORY_REGION(block, wanted.bytes);
    const std::lock_guard lock(mutex);
    ++counters.allocations;
    count_live(wanted.bytes);
    return static_cast<std::byte*>(block);
  }

  void count_live(std::size_t bytes) {
    counters.live_bytes += bytes;
    counters.peak_bytes = std::max(counters.peak_bytes, counters.live_bytes);
  }

  [[noreturn]] void fail(std::size_t bytes) const {
    std::size_t live;
    {
      const std::lock_guard lock(mutex);
      live = counters.live_bytes;
    }
    input_error("out of memory" + (source.on_device() ? " on " + to_string(source.backend->device()) : "") + ": " +
                std::to_string(bytes) + " bytes asked for with " + std::to_string(live) +
                " bytes live; expected fewer worlds, fewer steps or a smaller memory budget");
  }
};

namespace {

/// Gives std::shared_ptr its control block from the pool, and keeps the pool alive as long as the
/// block.
template <class T, class Pool>
struct BlockAllocator {
  using value_type = T;
  template <class U>
  struct rebind {
    using other = BlockAllocator<U, Pool>;
  };

  explicit BlockAllocator(std::shared_ptr<Pool> p) : pool(std::move(p)) {}
  template <class U>
  BlockAllocator(const BlockAllocator<U, Pool>& other) : pool(other.pool) {}  // NOLINT: allocators convert

  T* allocate(std::size_t n) { return reinterpret_cast<T*>(pool->bookkeeping().take(n * sizeof(T))); }
  void deallocate(T* block, std::size_t n) noexcept {
    pool->bookkeeping().give(reinterpret_cast<std::byte*>(block), n * sizeof(T));
  }
  template <class U>
  bool operator==(const BlockAllocator<U, Pool>& other) const {
    return pool == other.pool;
  }

  std::shared_ptr<Pool> pool;
};

}  // namespace

Memory::Memory() : Memory(std::make_shared<Pool>(BlockSource{})) {}

Memory::Memory(const Device& device) : Memory(std::make_shared<Pool>(BlockSource{backend_of(device), false})) {}

Memory Memory::pinned(const Device& device) {
  if (device.is_cpu()) return Memory();
  return Memory(std::make_shared<Pool>(BlockSource{backend_of(device), true}));
}

DeviceBackend* Memory::backend() const {
  return pool_->source.on_device() ? pool_->source.backend : nullptr;
}

Device Memory::device() const {
  return backend() ? backend()->device() : Device{};
}

std::shared_ptr<std::byte> Memory::allocate(std::size_t bytes) {
  std::byte* const block = pool_->take(bytes);
  // The deleter may hold the pool by a plain pointer: the allocator in the same control block
  // outlives it.
  const auto give = [pool = pool_.get(), bytes](std::byte* b) noexcept { pool->give(b, bytes); };
  // Should the control block be refused, this constructor returns the block itself.
  return {block, give, BlockAllocator<std::byte, Pool>(pool_)};
}

template <class Header>
std::shared_ptr<Header> Memory::allocate_headed(std::size_t bytes) {
  static_assert(std::is_nothrow_default_constructible_v<Header>);
  auto* const header = new (pool_->take(bytes)) Header;  // before the deleter below can be called, also by a throw
  const auto give = [pool = pool_.get(), bytes](Header* h) noexcept {
    std::destroy_at(h);
    pool->give(reinterpret_cast<std::byte*>(h), bytes);
  };
  return {header, give, BlockAllocator<std::byte, Pool>(pool_)};
}

MemoryCounters Memory::counters() const {
  const std::lock_guard lock(pool_->mutex);
  return pool_->counters;
}

void Memory::trim() {
  pool_->release_all();
}

Memory& default_memory() {
  static Memory& memory = *new Memory;  // never destroyed: static objects may still hold blocks
  return memory;
}

namespace {

/// The default memories of devices, made when first asked for and never destroyed.
struct DeviceMemories {
  std::mutex mutex;
  std::vector<std::pair<Device, Memory*>> all;
};
DeviceMemories& device_memories() {
  static DeviceMemories& memories = *new DeviceMemories;
  return memories;
}

}  // namespace

Memory& default_memory(const Device& device) {
  if (device.is_cpu()) return default_memory();
  DeviceMemories& memories = device_memories();
  const std::lock_guard lock(memories.mutex);
  for (const auto& [own, memory] : memories.all) {
    if (own == device) return *memory;
  }
  memories.all.emplace_back(device, new Memory(device));
  return *memories.all.back().second;
}

std::vector<Device> devices_in_use() {
  DeviceMemories& memories = device_memories();
  const std::lock_guard lock(memories.mutex);
  std::vector<Device> devices = {Device{}};
  for (const auto& [device, memory] : memories.all) devices.push_back(device);
  return devices;
}

void* pool_allocate(std::size_t bytes) {
  return default_memory().pool_->take(bytes);
}
void pool_free(void* block, std::size_t bytes) noexcept {
  default_memory().pool_->give(static_cast<std::byte*>(block), bytes);
}

/// Stands in the first 64 bytes of the block, before the numbers.
template <class T>
struct Buffer<T>::Storage {
  const std::uint64_t id = next_buffer_id.fetch_add(1, std::memory_order_relaxed);
  std::atomic<std::uint64_t> version{0};
  [[no_unique_address]] Generation generation;
};

/// The header of a device's buffer, whose numbers stand elsewhere.
template <class T>
struct Buffer<T>::DeviceStorage : Buffer<T>::Storage {
  std::shared_ptr<std::byte> block;
};

int row_count(std::int64_t items, std::int64_t each) {
  std::int64_t rows = 0;
  if (items < 0 || each < 0 || __builtin_mul_overflow(items, each, &rows) || rows > std::numeric_limits<int>::max()) {
    input_error(std::to_string(items) + " steps or states of " + std::to_string(each) +
                " numbers in every world, expected at most " + std::to_string(std::numeric_limits<int>::max()) +
                " numbers in all: fewer steps or pairs in contact, or a memory budget (--memory-budget) that keeps fewer "
                "of them at a time");
  }
  return static_cast<int>(rows);
}

template <class T>
Buffer<T>::Buffer(Memory& memory, int rows, int worlds) : Buffer(uninitialized(memory, rows, worlds)) {
  if (backend_) {
    backend_->fill(data_, 0, numbers() * sizeof(T));
  } else {
    std::uninitialized_fill_n(data_, numbers(), T(0));
  }
}

template <class T>
Buffer<T> Buffer<T>::uninitialized(Memory& memory, int rows, int worlds) {
  static_assert(sizeof(Storage) <= kAlignment);
  static_assert(kGuards || std::is_trivially_destructible_v<Storage>);
  if (rows < 0 || worlds < 0 || worlds > std::numeric_limits<int>::max() - 2 * kPackWorlds<T>) {
    usage_error("Buffer of " + std::to_string(rows) + " rows of " + std::to_string(worlds) +
                " worlds, expected neither below zero nor past " +
                std::to_string(std::numeric_limits<int>::max() - 2 * kPackWorlds<T>));
  }
  Buffer buffer;
  buffer.rows_ = rows;
  buffer.worlds_ = worlds;
  buffer.stride_ = row_stride<T>(worlds);
  if (buffer.numbers() > kMaxBytes / (2 * sizeof(T))) {
    usage_error("Buffer of " + std::to_string(rows) + " rows of " + std::to_string(worlds) +
                " worlds, expected one that fits in memory");
  }
  buffer.backend_ = memory.backend();
  if (buffer.backend_) {
    const auto header = default_memory().allocate_headed<DeviceStorage>(sizeof(DeviceStorage));
    header->block = memory.allocate(buffer.numbers() * sizeof(T));
    buffer.data_ = reinterpret_cast<T*>(header->block.get());
    buffer.storage_ = header;
    return buffer;
  }
  buffer.storage_ = memory.allocate_headed<Storage>(kAlignment + buffer.numbers() * sizeof(T));
  buffer.data_ = reinterpret_cast<T*>(reinterpret_cast<std::byte*>(buffer.storage_.get()) + kAlignment);
  return buffer;
}

template <class T>
std::uint64_t Buffer<T>::id() const {
  return storage_ ? storage_->id : 0;
}

template <class T>
std::uint64_t Buffer<T>::version() const {
  return storage_ ? storage_->version.load(std::memory_order_relaxed) : 0;
}

template <class T>
void Buffer<T>::not_on_host() const {
  usage_error("a buffer of " + std::to_string(rows_) + " rows of " + std::to_string(worlds_) + " worlds lies on " +
              to_string(backend_->device()) + ", expected one of the host: clone() brings it there");
}

template <class T>
T* Buffer<T>::write(int row) {
  if (backend_) not_on_host();
  return write_address(row);
}

template <class T>
T* Buffer<T>::write_address(int row) {
  if (!storage_ || row < 0 || row > rows_) {
    usage_error("write to row " + std::to_string(row) + " of a Buffer of " + std::to_string(rows_) + " rows");
  }
  storage_->version.fetch_add(1, std::memory_order_relaxed);
  return data_ + static_cast<std::size_t>(row) * static_cast<std::size_t>(stride_);
}

template <class T>
void Buffer<T>::fill(const T& value) {
  if (empty()) return;
  if (!backend_) {
    std::fill_n(write(), numbers(), value);
    return;
  }
  Buffer filled = uninitialized(default_memory(), rows_, worlds_);
  std::uninitialized_fill_n(filled.data_, numbers(), value);
  copy_from(filled);
}

template <class T>
View<const T> Buffer<T>::view(std::string_view name) const {
  if (backend_) not_on_host();
  return {data_, numbers(), name, storage_ ? storage_->generation.ticket() : Ticket()};
}

template <class T>
Buffer<T> Buffer<T>::clone(Memory& memory) const {
  if (!storage_) return {};
  Buffer copy = uninitialized(memory, rows_, worlds_);
  DeviceBackend* const there = copy.backend_;
  if (backend_ && there && backend_ != there) {  // by way of the host
    const Buffer staged = clone(default_memory());
    copy.take(copy.data_, staged, staged.data_, rows_);
  } else {
    copy.take(copy.data_, *this, data_, rows_);
    if (backend_ && !there) backend_->synchronize();
  }
  return copy;
}

template <class T>
void Buffer<T>::copy_from(const Buffer& other) {
  if (rows_ != other.rows_) {
    usage_error("copy of a Buffer of " + std::to_string(other.rows_) + " rows to one of " + std::to_string(rows_));
  }
  copy_rows(0, other, 0, rows_);
}

template <class T>
void Buffer<T>::copy_rows(int to_row, const Buffer& other, int from_row, int rows) {
  const auto outside = [&](int row, const Buffer& b) { return row < 0 || rows < 0 || row > b.rows_ - rows; };
  if (worlds_ != other.worlds_ || outside(to_row, *this) || outside(from_row, other)) {
    usage_error("copy of " + std::to_string(rows) + " rows of " + std::to_string(other.worlds_) + " worlds from row " +
                std::to_string(from_row) + " to row " + std::to_string(to_row) + " of a Buffer of " +
                std::to_string(rows_) + " rows of " + std::to_string(worlds_));
  }
  if (backend_ && other.backend_ && backend_ != other.backend_) {
    usage_error("copy from " + to_string(other.backend_->device()) + " to " + to_string(backend_->device()) +
                "; expected clone() to the host in between");
  }
  if (rows == 0 || worlds_ == 0) return;
  take(write_address(to_row), other, other.address(from_row), rows);
}

template <class T>
void Buffer<T>::take(T* to, const Buffer& other, const T* from, int rows) {
  // On devices without the padding, which nobody may have written.
  const CopyShape shape(worlds_ * sizeof(T), rows, stride_ * sizeof(T));
  if (backend_ && other.backend_) return backend_->copy(to, from, shape);
  if (backend_) return backend_->upload(to, from, shape);
  if (other.backend_) return other.backend_->download(to, from, shape);
  std::copy_n(from, static_cast<std::size_t>(rows) * stride_, to);
}

template class Buffer<int>;
template class Buffer<float>;
template class Buffer<double>;
template class Buffer<Dual<double>>;

}  // namespace backdrive
