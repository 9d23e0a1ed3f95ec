#pragma once
#include <stdexcept>
#include <string>

namespace backdrive {

/// What went wrong, numbered as the exit code that `simctl` gives for it.
enum class ErrorKind { not_reached = 1, usage = 2, input = 3, non_finite = 4, device = 5 };

/// Every error that Backdrive throws. The message is complete: it names the thing, its value and what was expected.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(without_nul(message)), kind_(kind) {}
  ErrorKind kind() const { return kind_; }
  int exit_code() const { return static_cast<int>(kind_); }

 private:
  /// what() ends at a NUL, which names and values may have.
  static std::string without_nul(std::string message) {
    for (size_t at = 0; (at = message.find('\0', at)) != std::string::npos;) message.replace(at, 1, "\\u0000");
    return message;
  }
  ErrorKind kind_;
};

/// The caller broke a rule of the interface (spent tape, buffer of another shape, ...).
[[noreturn]] inline void usage_error(const std::string& message) {
  throw Error(ErrorKind::usage, message);
}

/// The model or scene cannot be what it says it is.
[[noreturn]] inline void input_error(const std::string& message) {
  throw Error(ErrorKind::input, message);
}

}  // namespace backdrive
