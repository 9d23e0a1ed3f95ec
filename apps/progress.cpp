#include "apps/progress.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <utility>

#include "apps/console.h"
#include "apps/harmless.h"
#include "apps/log.h"

namespace backdrive::app {
namespace {

std::atomic<bool> line_shown = false;

/// The first `columns` characters of UTF-8 text.
std::string cut(const std::string& text, int columns) {
  int seen = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80 && seen++ == columns) return text.substr(0, i);
  }
  return text;
}

}  // namespace

ProgressLine::ProgressLine(bool quiet)
    : terminal_(stderr_is_terminal()),
      quiet_(quiet),
      next_shown_(Clock::now()),
      next_logged_(Clock::now() + log_interval_) {}

ProgressLine::~ProgressLine() {
  hide();
}

void ProgressLine::update(const std::function<std::string()>& text) {
  const auto now = Clock::now();
  if (now >= next_logged_) {
    // Ever rarer, so that the log of a long run stays readable.
    log_interval_ = std::min(log_interval_ * 2, std::chrono::seconds(60));
    next_logged_ = now + log_interval_;
    if (terminal_ || quiet_) {
      log_detail(text());
    } else {
      log_info(text());
    }
  }
  if (terminal_ && !quiet_ && now >= next_shown_) {
    next_shown_ = now + std::chrono::milliseconds(100);
    std::fprintf(stderr, "\r\033[K%s", cut(harmless(text()), stderr_columns() - 1).c_str());
    std::fflush(stderr);
    line_shown = true;
  }
}

void ProgressLine::hide() {
  if (!line_shown) return;
  std::fputs("\r\033[K", stderr);
  std::fflush(stderr);
  line_shown = false;
}

Ticker::Ticker(bool quiet, std::string text) : text_(std::move(text)), thread_([this, quiet] { run(quiet); }) {}

Ticker::~Ticker() {
  {
    const std::scoped_lock lock(mutex_);
    end_ = true;
  }
  ended_.notify_one();
  thread_.join();
}

void Ticker::say(std::string text) {
  const std::scoped_lock lock(mutex_);
  text_ = std::move(text);
}

void Ticker::run(bool quiet) {
  ProgressLine line(quiet);
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  while (!ended_.wait_for(lock, std::chrono::milliseconds(200), [this] { return end_; })) {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    line.update([&] { return text_ + ", " + duration(passed.count()); });
  }
}

}  // namespace backdrive::app
