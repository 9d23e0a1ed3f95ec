#pragma once
#include <cstdint>

namespace backdrive::test {

/// How often this process has asked the system allocator for memory through operator new
/// (allocation_count.cpp replaces it).
std::uint64_t system_allocations();

}  // namespace backdrive::test
