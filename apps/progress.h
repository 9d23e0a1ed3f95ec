#pragma once
// One line that tells how far things are: rewritten in place on a terminal, a log line now and then elsewhere.
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace backdrive::app {

class ProgressLine {
 public:
  explicit ProgressLine(bool quiet);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  /// Shows the text when it is time: it is made only then. Safe to call as often as one likes, from one thread.
  void update(const std::function<std::string()>& text);
  /// Takes a line from the terminal, so that something else can be written there.
  static void hide();

 private:
  using Clock = std::chrono::steady_clock;
  bool terminal_, quiet_;
  std::chrono::seconds log_interval_{2};
  Clock::time_point next_shown_, next_logged_;
};

/// Such a line with the time that has passed, by itself: for work that tells little of how far it is.
class Ticker {
 public:
  Ticker(bool quiet, std::string text);
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  /// What stands before the time from now on.
  void say(std::string text);

 private:
  void run(bool quiet);

  std::mutex mutex_;
  std::condition_variable ended_;
  std::string text_;
  bool end_ = false;
  std::thread thread_;
};

}  // namespace backdrive::app
