#pragma once

namespace backdrive::app {

/// From now on the first SIGINT or SIGTERM only asks to finish: what runs then writes what it has and exits with 130. A
/// second one ends the program at once.
void catch_interrupts();
bool interrupted();

}  // namespace backdrive::app
