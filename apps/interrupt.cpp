#include "apps/interrupt.h"

#include <signal.h>
#include <time.h>

namespace backdrive::app {
namespace {

volatile sig_atomic_t asked = 0;
volatile time_t first_second = 0;

/// The first one asks for an early end. Within a second others say the same again (`timeout` signals a program and its
/// group); later ones end the program at once.
void ask(int number) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  if (asked == 0) {
    first_second = now.tv_sec;
    asked = 1;
  } else if (now.tv_sec > first_second + 1) {
    signal(number, SIG_DFL);
    raise(number);
  }
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = ask;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  struct sigaction now {};
  const bool outlives_terminal = sigaction(SIGHUP, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
  const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
  for (const int number : numbers) {
    if (number != SIGHUP || !outlives_terminal) sigaction(number, &action, nullptr);
  }
  survive_closed_pipes();
}

void end_at_interrupts() {
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
  survive_closed_pipes();
}

// A reader that goes away (`| head`) does not take the results with it.
void survive_closed_pipes() {
  signal(SIGPIPE, SIG_IGN);
}

bool interrupted() {
  return asked != 0;
}

void Patience::operator()() {
  using Clock = std::chrono::steady_clock;
  if (!interrupted()) return;
  if (asked_ == Clock::time_point{}) asked_ = Clock::now();
  if (Clock::now() - asked_ > std::chrono::seconds(2)) throw Hurried{};
}

}  // namespace backdrive::app
