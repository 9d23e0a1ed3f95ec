#pragma once
#include "integrators/step.h"  // planted: the wrong way
