#include "apps/log.h"

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "apps/console.h"
#include "apps/harmless.h"
#include "apps/progress.h"

namespace backdrive::app {
namespace {

spdlog::logger& logger() {
  static spdlog::logger instance("simctl");
  return instance;
}

void write(spdlog::level::level_enum level, const std::string& line) {
  ProgressLine::hide();
  logger().log(level, harmless(line));
}

}  // namespace

void start_log(bool quiet) {
  const bool colour = colour_wanted(stderr_is_terminal());
  auto sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>(colour ? spdlog::color_mode::always
                                                                           : spdlog::color_mode::never);
  sink->set_pattern("%^%v%$");
  sink->set_color(spdlog::level::info, sink->reset);
  sink->set_level(quiet ? spdlog::level::warn : spdlog::level::info);
  logger().set_level(spdlog::level::debug);
  logger().sinks() = {sink};
  logger().flush_on(spdlog::level::debug);
}

struct LogFile::Impl {
  std::shared_ptr<spdlog::sinks::ostream_sink_mt> sink;
};

LogFile::LogFile(std::ostream& stream) : impl_(std::make_unique<Impl>()) {
  impl_->sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(stream);
  impl_->sink->set_pattern("%Y-%m-%dT%H:%M:%S.%e%z %l %v");
  logger().sinks().push_back(impl_->sink);
}

LogFile::~LogFile() {
  auto& sinks = logger().sinks();
  sinks.erase(std::remove(sinks.begin(), sinks.end(), impl_->sink), sinks.end());
}

void log_info(const std::string& line) {
  write(spdlog::level::info, line);
}
void log_warning(const std::string& line) {
  write(spdlog::level::warn, "warning: " + line);
}
void log_error(const std::string& line) {
  write(spdlog::level::err, "error: " + line);
}
void log_detail(const std::string& line) {
  logger().log(spdlog::level::debug, harmless(line));
}

}  // namespace backdrive::app
