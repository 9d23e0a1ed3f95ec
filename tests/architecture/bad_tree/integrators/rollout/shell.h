#pragma once
#include "integrators/featherstone/links.h"  // planted: upwards
