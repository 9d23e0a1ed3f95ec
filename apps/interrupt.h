#pragma once

namespace backdrive::app {

/// From now on the first SIGINT, SIGTERM or SIGHUP only asks to finish: what runs then writes what it has and exits
/// with 130. One that comes more than a second later ends the program at once. SIGPIPE is ignored.
void catch_interrupts();
bool interrupted();

/// SIGPIPE is ignored: what writes to a pipe without a reader finds that out, and whoever is told of it.
void survive_closed_pipes();

}  // namespace backdrive::app
