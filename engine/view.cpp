#include "engine/view.h"

#include "engine/error.h"

namespace backdrive {

#if BACKDRIVE_GUARDS

void ViewGuard::stale() const {
  usage_error("stale view of '" + std::string(name_) +
              "': what it looked at was freed, moved, or resized since; make a new view");
}

void ViewGuard::out_of_range(std::string_view what, std::ptrdiff_t index, std::size_t count) const {
  usage_error("view of '" + std::string(name_) + "': " + std::string(what) + " " + std::to_string(index) +
              ", expected one of " + std::to_string(count));
}

#endif

}  // namespace backdrive
