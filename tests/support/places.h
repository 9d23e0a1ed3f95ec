#pragma once
// Where tests find what they read and the program that they try. Written by tests/CMakeLists.txt.
#include <string>

namespace backdrive::test {

extern const std::string kRepository;  ///< root of the sources
extern const std::string kSimctl;      ///< the program

}  // namespace backdrive::test
