#pragma once
#include "integrators/semi_implicit/bodies.h"  // planted: a sibling
