#include "engine/status.h"

#include <algorithm>

#include "engine/error.h"
#include "engine/launch.h"

namespace backdrive {

static_assert(sizeof(WorldStatus) == 3 * sizeof(int));

WorldStatuses::WorldStatuses(std::size_t worlds, Memory& memory)
    : worlds_(worlds), backend_(memory.backend()), host_(worlds) {
  if (!backend_ || worlds == 0) return;
  block_ = memory.allocate(worlds * sizeof(WorldStatus));
  backend_->fill(block_.get(), 0xFF, worlds * sizeof(WorldStatus));  // −1 each
}

PoolVector<WorldStatus>& WorldStatuses::on_host() const {
  if (stale_) {
    // host_ is not pinned: the copy is over when this returns, on any device.
    backend_->download(host_.data(), block_.get(), worlds_ * sizeof(WorldStatus));
    backend_->synchronize();
    stale_ = false;
  }
  return host_;
}

const WorldStatus* WorldStatuses::address() const {
  return backend_ ? reinterpret_cast<const WorldStatus*>(block_.get()) : host_.data();
}

WorldStatus* WorldStatuses::write_address() {
  stale_ = backend_ != nullptr;
  return const_cast<WorldStatus*>(address());
}

bool WorldStatuses::any_stopped() const {
  return std::any_of(begin(), end(), [](const WorldStatus& s) { return s.stopped(); });
}

int WorldStatuses::count_stopped() const {
  return static_cast<int>(std::count_if(begin(), end(), [](const WorldStatus& s) { return s.stopped(); }));
}

void WorldStatuses::merge(const WorldStatuses& other) {
  if (worlds_ != other.worlds_ || backend_ != other.backend_) {
    usage_error("statuses of " + std::to_string(other.worlds_) + " worlds merged into those of " +
                std::to_string(worlds_) + "; expected as many on the same device");
  }
  for_each_index(backend_, 1, static_cast<int>(worlds_), MergeStatus{write_address(), other.address()});
}

}  // namespace backdrive
