#include "apps/interrupt.h"

#include <signal.h>

namespace backdrive::app {
namespace {

volatile sig_atomic_t asked = 0;

void ask(int) {
  asked = 1;
}

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = ask;
  sigemptyset(&action.sa_mask);
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupted() {
  return asked != 0;
}

}  // namespace backdrive::app
