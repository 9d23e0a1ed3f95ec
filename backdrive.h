#pragma once
// Everything a program that uses Backdrive as a library needs.
#include "autodiff/gradient_check.h"
#include "autodiff/hessian.h"
#include "autodiff/loss.h"
#include "autodiff/optimize.h"
#include "autodiff/rollout.h"
#include "models/builder.h"
#include "models/fields.h"
#include "models/views.h"
#include "scenes/scene.h"
