#pragma once

namespace backdrive::app {

/// From now on the first SIGINT, SIGTERM or SIGHUP only asks to finish: what runs then writes what it has and exits
/// with 130. One that comes more than a second later ends the program at once. SIGPIPE is ignored.
void catch_interrupts();
bool interrupted();

}  // namespace backdrive::app
