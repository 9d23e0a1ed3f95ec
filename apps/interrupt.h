#pragma once
#include <chrono>

namespace backdrive::app {

/// From now on the first SIGINT, SIGTERM or SIGHUP only asks to finish: what runs then writes what it has and exits
/// with 130. One that comes more than a second later ends the program at once. SIGPIPE is ignored, and SIGHUP where
/// whoever started the program (nohup) has it ignored.
void catch_interrupts();
bool interrupted();

/// For what is worked out beside a result that is there already: after an interrupt it has two seconds more. Calling it
/// throws Hurried when they are over.
struct Hurried {};
class Patience {
 public:
  void operator()();

 private:
  std::chrono::steady_clock::time_point asked_{};
};

/// SIGINT and SIGTERM end the program at once, also where a script started it in the background, as which shells have
/// SIGINT ignored. SIGPIPE is ignored.
void end_at_interrupts();

/// SIGPIPE is ignored: what writes to a pipe without a reader finds that out, and whoever is told of it.
void survive_closed_pipes();

}  // namespace backdrive::app
