// Contact points of all pairs of shapes, and their adjoints, for one instruction set and number type
// (integrators/rollout/instance.h).
#include "integrators/contact/point_instances.h"

BACKDRIVE_CONTACT_POINTS()
