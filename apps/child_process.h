#pragma once
// Programs of others that simctl starts, talks to and ends.
#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace backdrive::app {

/// Where a program of PATH is; empty: nowhere.
std::string program_path(const std::string& name);

/// A program in a process group of its own, so that Ctrl-C at the terminal is this program's to deal with; it ends with
/// this program, however that ends. What it says goes nowhere.
class ChildProcess {
 public:
  /// Its descriptors: number in the child, and which of this process's it is.
  using Descriptors = std::vector<std::pair<int, int>>;
  /// Throws Error (usage) where it cannot be started.
  ChildProcess(const std::vector<std::string>& command, const Descriptors& descriptors);
  /// Kills its group.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Waits for its end; its exit code, or 128 + signal.
  int wait();

 private:
  pid_t pid_;
};

}  // namespace backdrive::app
