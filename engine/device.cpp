#include "engine/device.h"

#include <sys/mman.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <new>

#include "engine/cuda_backend.h"
#include "engine/error.h"

namespace backdrive {
namespace {

constexpr std::align_val_t kAlignment{256};
/// Emulated devices that can be asked for.
constexpr int kEmulated = 4;

const char* word_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::cpu:
      return "cpu";
    case DeviceKind::cuda:
      return "cuda";
    case DeviceKind::emulated:
      return "emulated";
  }
  return "unknown";
}

[[noreturn]] void unknown_device(const std::string& text) {
  usage_error("device '" + text + "', expected cpu, cuda, cuda:1, cuda:0,1 or cuda:all");
}

/// Numbers separated by commas.
std::vector<int> indices_of(const std::string& text, std::size_t at) {
  std::vector<int> indices;
  const char* from = text.data() + at;
  const char* const end = text.data() + text.size();
  while (true) {
    int index = 0;
    const auto [next, error] = std::from_chars(from, end, index);
    if (error != std::errc() || index < 0) unknown_device(text);
    if (std::find(indices.begin(), indices.end(), index) != indices.end()) unknown_device(text);
    indices.push_back(index);
    if (next == end) return indices;
    if (*next != ',') unknown_device(text);
    from = next + 1;
  }
}

[[noreturn]] void missing(DeviceKind kind, const std::string& why) {
  throw Error(ErrorKind::device,
              "device '" + std::string(word_of(kind)) + "' is not available: " + why + "; expected --device cpu");
}

void copy_now(void* to, const void* from, const CopyShape& shape) {
  for (std::size_t row = 0; row < shape.rows; ++row) {
    std::memmove(static_cast<std::byte*>(to) + row * shape.pitch,
                 static_cast<const std::byte*>(from) + row * shape.pitch, shape.bytes);
  }
}

}  // namespace

std::string to_string(const Device& device) {
  const std::string word = word_of(device.kind);
  return device.is_cpu() ? word : word + ":" + std::to_string(device.index);
}

std::vector<Device> parse_devices(const std::string& text) {
  if (text == "cpu") return {Device{}};
  for (const DeviceKind kind : {DeviceKind::cuda, DeviceKind::emulated}) {
    const std::string word = word_of(kind);
    if (!text.starts_with(word)) continue;
    std::vector<int> indices = {0};
    std::string why;
    const int count = device_count(kind, &why);
    const bool all = text == word + ":all";
    if (!all && text != word) {
      if (text.size() <= word.size() + 1 || text[word.size()] != ':') unknown_device(text);
      indices = indices_of(text, word.size() + 1);
    }
    if (count == 0) missing(kind, why);
    if (all) {
      indices.clear();
      for (int k = 0; k < count; ++k) indices.push_back(k);
    }
    std::vector<Device> devices;
    for (const int index : indices) {
      if (index >= count) {
        throw Error(ErrorKind::device, "device '" + word + ":" + std::to_string(index) +
                                           "' is not available: this machine has " + std::to_string(count) +
                                           "; expected a number below");
      }
      devices.push_back({kind, index});
    }
    return devices;
  }
  unknown_device(text);
}

int device_count(DeviceKind kind, std::string* why_none) {
  switch (kind) {
    case DeviceKind::cpu:
      return 1;
    case DeviceKind::cuda:
      return cuda_device_count(why_none);
    case DeviceKind::emulated:
      if (!BACKDRIVE_HAS_EMULATED_DEVICE && why_none) {
        *why_none = "this build has none (-DBACKDRIVE_EMULATED_DEVICE=ON, or -DBACKDRIVE_TESTS=ON)";
      }
      return BACKDRIVE_HAS_EMULATED_DEVICE ? kEmulated : 0;
  }
  return 0;
}

DeviceBackend* backend_of(const Device& device) {
  if (device.is_cpu()) return nullptr;
  std::string why;
  const int count = device_count(device.kind, &why);
  if (count == 0) missing(device.kind, why);
  if (device.index < 0 || device.index >= count) {
    throw Error(ErrorKind::device, "device '" + to_string(device) + "' is not available: there are " +
                                       std::to_string(count) + "; expected a number below");
  }
  if (device.kind == DeviceKind::cuda) return cuda_backend(device.index);
  // Never destroyed: static objects may still hold blocks.
  static EmulatedBackend* const emulated[kEmulated] = {new EmulatedBackend(0), new EmulatedBackend(1),
                                                       new EmulatedBackend(2), new EmulatedBackend(3)};
  return emulated[device.index];
}

DeviceInfo EmulatedBackend::info() const {
  DeviceInfo info;
  info.name = "a GPU played by the processor, for tests";
  return info;
}

// Pages of its own for each block, that only the work of the device may touch: a host that reads or writes one is
// stopped as it would be with a GPU. Sanitizers look at the ends of blocks instead.
#if defined(BACKDRIVE_SANITIZED)
void* EmulatedBackend::allocate(std::size_t bytes) {
  return ::operator new(bytes, kAlignment, std::nothrow);
}
void EmulatedBackend::free(void* block) noexcept {
  drain();  // as cudaFree waits
  ::operator delete(block, kAlignment);
}
void EmulatedBackend::open_blocks(bool) {}
#else
void* EmulatedBackend::allocate(std::size_t bytes) {
  void* const block = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) return nullptr;
  blocks_.emplace(block, bytes);
  return block;
}
void EmulatedBackend::free(void* block) noexcept {
  drain();
  const auto found = blocks_.find(block);
  if (found == blocks_.end()) return;
  ::munmap(block, found->second);
  blocks_.erase(found);
}
void EmulatedBackend::open_blocks(bool open) {
  for (const auto& [block, bytes] : blocks_) ::mprotect(block, bytes, open ? PROT_READ | PROT_WRITE : PROT_NONE);
}
#endif

void* EmulatedBackend::allocate_pinned(std::size_t bytes) {
  void* const block = ::operator new(bytes, kAlignment, std::nothrow);
  const auto* const begin = static_cast<const std::byte*>(block);
  if (block) pinned_.push_back({begin, begin + bytes});
  return block;
}

void EmulatedBackend::free_pinned(void* block) noexcept {
  drain();
  std::erase_if(pinned_, [&](const Pinned& p) { return p.begin == block; });
  ::operator delete(block, kAlignment);
}

bool EmulatedBackend::is_pinned(const void* at) const {
  return std::any_of(pinned_.begin(), pinned_.end(), [&](const Pinned& p) { return at >= p.begin && at < p.end; });
}

void EmulatedBackend::copy(void* to, const void* from, const CopyShape& shape) {
  queue_.push_back([=] { copy_now(to, from, shape); });
}

void EmulatedBackend::upload(void* to, const void* from, const CopyShape& shape) {
  counters_.bytes_up += shape.all_bytes();
  if (is_pinned(from)) return copy(to, from, shape);
  std::vector<std::byte> staged(shape.span());
  copy_now(staged.data(), from, shape);
  queue_.push_back([to, shape, staged = std::move(staged)] { copy_now(to, staged.data(), shape); });
}

void EmulatedBackend::download(void* to, const void* from, const CopyShape& shape) {
  counters_.bytes_down += shape.all_bytes();
  copy(to, from, shape);
}

void EmulatedBackend::fill(void* at, int byte, std::size_t bytes) {
  queue_.push_back([=] { std::memset(at, byte, bytes); });
}

void EmulatedBackend::launch(std::function<void()> work) {
  ++counters_.launches;
  queue_.push_back(std::move(work));
}

std::unique_ptr<DeviceGraph> EmulatedBackend::record(const std::function<void()>& work) {
  struct Graph final : DeviceGraph {
    void launch() override {
      ++backend->counters_.launches;
      backend->queue_.insert(backend->queue_.end(), works.begin(), works.end());
    }
    EmulatedBackend* backend;
    std::vector<std::function<void()>> works;
  };
  auto graph = std::make_unique<Graph>();
  graph->backend = this;
  const DeviceCounters before = counters_;
  std::vector<std::function<void()>> told = std::move(queue_);
  queue_.clear();
  work();
  graph->works = std::move(queue_);
  queue_ = std::move(told);
  counters_ = before;
  return graph;
}

void EmulatedBackend::drain() {
  if (queue_.empty()) return;
  open_blocks(true);
  for (const std::function<void()>& work : queue_) work();
  queue_.clear();
  open_blocks(false);
}

void EmulatedBackend::synchronize() {
  ++counters_.synchronizations;
  drain();
}

}  // namespace backdrive
