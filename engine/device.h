#pragma once
// Where numbers live and kernels run: the processor, a GPU, or a GPU that the processor plays.
//
// A device does what it is told in order, one thing after the other (one stream), while the host goes on: nothing here
// waits but synchronize(). The emulated device keeps to these rules, down to doing nothing before somebody waits for
// it, so that the tests of every machine see what a GPU would be told.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace backdrive {

enum class DeviceKind { cpu, cuda, emulated };

struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;

  bool is_cpu() const { return kind == DeviceKind::cpu; }
  friend bool operator==(const Device&, const Device&) = default;
};

/// "cpu", "cuda:0", "emulated:1".
std::string to_string(const Device& device);
/// Reads "cpu", "cuda" (the first one), "cuda:1", "cuda:0,2" or "cuda:all"; "emulated" likewise. Throws Error (usage)
/// for other words and Error (device) for a device that is not there.
std::vector<Device> parse_devices(const std::string& text);

/// What a device has been told so far.
struct DeviceCounters {
  std::uint64_t launches = 0;
  std::uint64_t synchronizations = 0;  ///< times that the host waited
  std::uint64_t bytes_up = 0, bytes_down = 0;
};

/// What a device is.
struct DeviceInfo {
  std::string name;
  std::string architecture;  ///< "9.0" of CUDA; empty: none
  int multiprocessors = 0;
  int threads_per_multiprocessor = 0;
  std::size_t memory_bytes = 0;
  std::size_t cache_bytes = 0;   ///< L2
  std::size_t shared_bytes = 0;  ///< per multiprocessor
  int clock_khz = 0;
};

/// Launches, copies and fills that a device was told once.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
  /// Tells them again.
  virtual void launch() = 0;
};

/// How a kernel uses a device.
struct KernelResources {
  std::string name;
  int registers = 0;            ///< per thread
  std::size_t local_bytes = 0;  ///< per thread: arrays and spills
  std::size_t spill_bytes = 0;  ///< of these, what is not arrays
  std::size_t shared_bytes = 0;
  int threads_per_block = 0;
  int blocks_per_multiprocessor = 0;  ///< that run at once
  double occupancy = 0;               ///< of the threads that a multiprocessor can hold
};

/// Rows of bytes, `pitch` bytes apart on both sides: what lies between is neither read nor written.
struct CopyShape {
  CopyShape(std::size_t all) : bytes(all), rows(1), pitch(all) {}  // NOLINT: a number of bytes is one row
  CopyShape(std::size_t row_bytes, std::size_t row_count, std::size_t row_pitch)
      : bytes(row_bytes), rows(row_count), pitch(row_pitch) {}
  std::size_t bytes, rows, pitch;

  std::size_t all_bytes() const { return bytes * rows; }
  /// From the first byte to the last.
  std::size_t span() const { return rows == 0 ? 0 : (rows - 1) * pitch + bytes; }
};

/// A device's own memory, copies and work. One object per device, which lives as long as the process. Calls come from
/// one thread at a time.
class DeviceBackend {
 public:
  explicit DeviceBackend(Device device) : device_(device) {}
  DeviceBackend(const DeviceBackend&) = delete;
  DeviceBackend& operator=(const DeviceBackend&) = delete;
  virtual ~DeviceBackend() = default;

  const Device& device() const { return device_; }
  virtual DeviceInfo info() const = 0;
  const DeviceCounters& counters() const { return counters_; }
  /// Of all kernels of this build, by name.
  virtual std::vector<KernelResources> kernels() const { return {}; }

  /// Null when there is no room.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void free(void* block) noexcept = 0;
  /// Memory of the host that copies need not stage.
  virtual void* allocate_pinned(std::size_t bytes) = 0;
  virtual void free_pinned(void* block) noexcept = 0;

  /// Within the device.
  virtual void copy(void* to, const void* from, const CopyShape& shape) = 0;
  /// `from` may be changed after the call unless it is pinned; then after synchronize().
  virtual void upload(void* to, const void* from, const CopyShape& shape) = 0;
  /// `to` holds the bytes after synchronize().
  virtual void download(void* to, const void* from, const CopyShape& shape) = 0;
  virtual void fill(void* at, int byte, std::size_t bytes) = 0;
  /// Returns when all is done. Throws Error (device) when something went wrong since the last time.
  virtual void synchronize() = 0;
  /// What `work` tells this device, to be told again with one call: a CUDA graph. `work` asks for no memory and copies
  /// from pinned memory only; what it names has to live as long as the graph.
  virtual std::unique_ptr<DeviceGraph> record(const std::function<void()>& work) = 0;

 protected:
  DeviceCounters counters_;

 private:
  Device device_;
};

/// The device's backend; null for the processor. Throws Error (device) when there is no such device or this build
/// cannot use it.
DeviceBackend* backend_of(const Device& device);

/// Devices of a kind that can be used here; `why_none` says why there is none.
int device_count(DeviceKind kind, std::string* why_none = nullptr);

/// Plays a device on the processor: its memory is memory of the host that the host must not touch, and cannot while the
/// device does nothing, and its work waits in a queue until somebody synchronizes.
class EmulatedBackend final : public DeviceBackend {
 public:
  explicit EmulatedBackend(int index) : DeviceBackend({DeviceKind::emulated, index}) {}

  DeviceInfo info() const override;
  void* allocate(std::size_t bytes) override;
  void free(void* block) noexcept override;
  void* allocate_pinned(std::size_t bytes) override;
  void free_pinned(void* block) noexcept override;
  void copy(void* to, const void* from, const CopyShape& shape) override;
  void upload(void* to, const void* from, const CopyShape& shape) override;
  void download(void* to, const void* from, const CopyShape& shape) override;
  void fill(void* at, int byte, std::size_t bytes) override;
  void synchronize() override;
  std::unique_ptr<DeviceGraph> record(const std::function<void()>& work) override;
  void launch(std::function<void()> work);

 private:
  struct Pinned {
    const std::byte *begin, *end;
  };
  bool is_pinned(const void* at) const;
  void drain();
  /// Lets the processor touch the device's memory, or no longer.
  void open_blocks(bool open);

  std::vector<std::function<void()>> queue_;
  std::vector<Pinned> pinned_;
  std::unordered_map<void*, std::size_t> blocks_;  ///< [address]: bytes
};

}  // namespace backdrive
