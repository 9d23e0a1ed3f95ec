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
  const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
  for (const int number : numbers) sigaction(number, &action, nullptr);
  survive_closed_pipes();
}

// A reader that goes away (`| head`) does not take the results with it.
void survive_closed_pipes() {
  signal(SIGPIPE, SIG_IGN);
}

bool interrupted() {
  return asked != 0;
}

}  // namespace backdrive::app
