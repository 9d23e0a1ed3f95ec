#pragma once
// Small tables that the host makes and kernels read.
#include <cstddef>
#include <memory>
#include <type_traits>

#include "engine/memory.h"

namespace backdrive {

/// The items at `host`, where kernels read them that work on `memory`: the very same on the host, a copy on a device.
/// The copy is made at once; on the host the items have to live as long as this.
template <class X>
class KernelArray {
  static_assert(std::is_trivially_copyable_v<X>);

 public:
  KernelArray() = default;
  KernelArray(const X* host, std::size_t count, Memory& memory) : data_(host) {
    DeviceBackend* const backend = memory.backend();
    if (!backend || count == 0) return;
    block_ = memory.allocate(count * sizeof(X));
    backend->upload(block_.get(), host, count * sizeof(X));
    data_ = reinterpret_cast<const X*>(block_.get());
  }
  template <class Items>
  KernelArray(const Items& items, Memory& memory) : KernelArray(items.data(), items.size(), memory) {}

  const X* data() const { return data_; }

 private:
  const X* data_ = nullptr;
  std::shared_ptr<std::byte> block_;
};

}  // namespace backdrive
