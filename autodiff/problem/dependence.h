#pragma once
// What the loss of a problem depends on, by structure alone (tape/activity.h).
#include "autodiff/problem/problem.h"
#include "autodiff/tape/activity.h"

namespace backdrive {

/// What the loss of a problem reads of its links.
LinkDependence loss_dependence(const Problem& problem);
/// Why the loss of a problem, which reads `links`, cannot depend on a variable, or null when it may.
const char* disconnected_reason(const Problem& problem, const LinkDependence& links, const Variable& variable);

}  // namespace backdrive
