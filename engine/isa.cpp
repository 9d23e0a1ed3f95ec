#include "engine/isa.h"

#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/error.h"

namespace backdrive {
namespace {

constexpr std::string_view kArchitecture = "x86-64-";

constexpr int kNoneChosen = -1;
std::atomic<int> chosen = kNoneChosen;

Isa highest_isa() {
  Isa best = Isa::v2;
  if (!supports(best))
    throw Error(ErrorKind::device, "this processor is below x86-64-v2 (SSE4.2), the lowest supported");
  for (Isa isa : {Isa::v3, Isa::v4}) {
    if (supports(isa)) best = isa;
  }
  return best;
}

}  // namespace

bool supports(Isa isa) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool v2 = __builtin_cpu_supports("sse3") && __builtin_cpu_supports("ssse3") &&
                  __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") &&
                  __builtin_cpu_supports("popcnt");
  const bool v3 = v2 && __builtin_cpu_supports("avx") && __builtin_cpu_supports("avx2") &&
                  __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  switch (isa) {
    case Isa::v2:
      return v2;
    case Isa::v3:
      return v3;
    case Isa::v4:
      return v4;
  }
#endif
  static_cast<void>(isa);
  return false;
}

void choose_isa(Isa isa) {
  const Isa best = highest_isa();
  if (isa > best) {
    usage_error(std::string("instruction set ") + to_string(isa) + ": this processor supports only up to " +
                to_string(best));
  }
  chosen = static_cast<int>(isa);
}

std::string with_architecture(Isa isa) {
  return std::string(kArchitecture) + to_string(isa);
}

std::string without_architecture(std::string word) {
  if (word.starts_with(kArchitecture)) word.erase(0, kArchitecture.size());
  return word;
}

Isa best_isa() {
  if (const int choice = chosen; choice != kNoneChosen) return static_cast<Isa>(choice);
  const Isa best = highest_isa();
  const char* const asked = std::getenv("BACKDRIVE_ISA");
  if (asked == nullptr || *asked == '\0') return best;
  const std::string word = without_architecture(asked);
  for (Isa isa : {Isa::v2, Isa::v3, Isa::v4}) {
    if (word != to_string(isa)) continue;
    if (supports(isa)) return isa;
    usage_error("BACKDRIVE_ISA=" + word + ": this processor supports only up to " + to_string(best));
  }
  usage_error("BACKDRIVE_ISA=" + word + ": expected v2, v3 or v4");
}

const char* to_string(Isa isa) {
  switch (isa) {
    case Isa::v2:
      return "v2";
    case Isa::v3:
      return "v3";
    case Isa::v4:
      return "v4";
  }
  return "unknown";
}

}  // namespace backdrive
