#pragma once
// The switches of planted faults (README.md), for the copies of headers that plant.cmake makes, and for tests. One
// thread.
#include <string_view>
#include <vector>

#include "engine/real.h"

namespace backdrive {

enum class Fault {
  none,
#define BACKDRIVE_FAULT(table, name, trap) name,
#include "tests/faults/faults.inc"
#undef BACKDRIVE_FAULT
};

inline Fault planted_fault = Fault::none;
inline bool planted(Fault fault) {
  return planted_fault == fault;
}
/// x, or zero where the fault that leaves it out is planted.
template <class X>
BACKDRIVE_INLINE X left_out(Fault fault, const X& x) {
  return planted(fault) ? X{} : x;
}

namespace test {

struct FaultEntry {
  Fault fault;
  const char *table, *name, *trap;
};
constexpr FaultEntry kFaults[] = {
#define BACKDRIVE_FAULT(table, name, trap) {Fault::name, #table, #name, trap},
#include "tests/faults/faults.inc"
#undef BACKDRIVE_FAULT
};

inline std::vector<FaultEntry> faults_of(std::string_view table) {
  std::vector<FaultEntry> found;
  for (const FaultEntry& entry : kFaults) {
    if (entry.table == table) found.push_back(entry);
  }
  return found;
}

/// Plants a fault for as long as it lives.
class Planted {
 public:
  explicit Planted(Fault fault) { planted_fault = fault; }
  Planted(const Planted&) = delete;
  ~Planted() { planted_fault = Fault::none; }
};

}  // namespace test
}  // namespace backdrive
