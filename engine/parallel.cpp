#include "engine/parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/error.h"

namespace backdrive {
namespace {

/// Tells the processor that this is a loop that waits.
void pause_processor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// True in a thread while it runs a part: what it starts then runs inline.
thread_local bool inside_part = false;

/// Looks for a while whether the condition holds before anybody goes to sleep for it: launches follow one another
/// within microseconds, and to wake a thread takes many more of them. True when it came to hold.
template <class Condition>
bool spin_until(const Condition& condition) {
  constexpr std::chrono::microseconds patience{200};
  for (const auto start = std::chrono::steady_clock::now(); std::chrono::steady_clock::now() - start < patience;) {
    for (int i = 0; i < 32; ++i) {
      if (condition()) return true;
      pause_processor();
    }
  }
  return false;
}

/// Threads that live until the process ends. Worker k runs part k + 1 of every task that has that
/// many parts; the caller runs part 0.
class ThreadPool {
 public:
  ~ThreadPool() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    start_.notify_all();
  }  // the threads join here, as the last member goes first

  void run(int parts, int count, detail::PartFunction function) {
    const std::lock_guard turn(turn_);
    {
      const std::lock_guard lock(mutex_);
      while (static_cast<int>(workers_.size()) < parts - 1) add_worker();
      function_ = function;
      parts_ = parts;
      count_ = count;
      pending_ = parts - 1;
      error_ = nullptr;
      error_part_ = parts;
      ++task_;
    }
    start_.notify_all();
    run_part(0, parts, count, function);
    spin_until([this] { return pending_ == 0; });
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return pending_ == 0; });
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  /// Called with the mutex held.
  void add_worker() {
    const int part = static_cast<int>(workers_.size()) + 1;
    workers_.emplace_back([this, part, seen = task_.load()] { work(part, seen); });
  }

  void work(int part, std::uint64_t seen) {
    std::unique_lock lock(mutex_);
    for (;;) {
      lock.unlock();
      spin_until([&] { return task_ != seen; });
      lock.lock();
      start_.wait(lock, [&] { return stopping_ || task_ != seen; });
      if (stopping_) return;
      seen = task_;
      if (part >= parts_) continue;
      const int parts = parts_, count = count_;
      const detail::PartFunction function = function_;
      lock.unlock();
      run_part(part, parts, count, function);
      lock.lock();
      if (--pending_ == 0) done_.notify_one();
    }
  }

  void run_part(int part, int parts, int count, detail::PartFunction function) noexcept {
    inside_part = true;
    try {
      function.call(function.object, share(count, parts, part), part);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (part < error_part_) {
        error_part_ = part;
        error_ = std::current_exception();
      }
    }
    inside_part = false;
  }

  std::mutex turn_;   ///< one task at a time
  std::mutex mutex_;  ///< guards all below; the atomic ones are looked at without it, too
  std::condition_variable start_, done_;
  detail::PartFunction function_{};
  int parts_ = 0, count_ = 0, error_part_ = 0;
  std::atomic<int> pending_ = 0;
  std::atomic<std::uint64_t> task_ = 0;
  bool stopping_ = false;
  std::exception_ptr error_;
  std::vector<std::jthread> workers_;
};

ThreadPool& thread_pool() {
  static ThreadPool pool;
  return pool;
}

}  // namespace

int hardware_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

namespace detail {

void run_parts(int parts, int count, PartFunction function) {
  if (count <= 0) return;
  if (parts < 1) usage_error("parallel_for: " + std::to_string(parts) + " threads, expected >= 1");
  if (parts > 1 && !inside_part) return thread_pool().run(parts, count, function);
  for (int part = 0; part < parts; ++part) function.call(function.object, share(count, parts, part), part);
}

}  // namespace detail
}  // namespace backdrive
