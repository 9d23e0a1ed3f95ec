// Prints the highest x86-64 level of this machine, for instruction_sets.cmake.
#include <cstdio>
#include <cstdlib>

#include "engine/error.h"
#include "engine/isa.h"

int main() {
  unsetenv("BACKDRIVE_ISA");
  try {
    std::fputs(backdrive::to_string(backdrive::best_isa()), stdout);
  } catch (const backdrive::Error& error) {
    std::puts(error.what());
    return 1;
  }
}
