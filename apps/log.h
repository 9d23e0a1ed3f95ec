#pragma once
// Log lines: to stderr, and to log.txt of the result folder.
#include <memory>
#include <ostream>
#include <string>

namespace backdrive::app {

/// Sets up lines on stderr; with `quiet` only warnings and errors.
void start_log(bool quiet);

/// Log lines go to a stream too, as long as this lives; info lines also when stderr is quiet.
class LogFile {
 public:
  explicit LogFile(std::ostream& stream);
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

void log_info(const std::string& line);
void log_warning(const std::string& line);
void log_error(const std::string& line);
/// To the log file only.
void log_detail(const std::string& line);

}  // namespace backdrive::app
