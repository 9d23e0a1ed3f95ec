#pragma once
// Everything a program that uses Backdrive as a library needs.
#include "autodiff/check/gradient_check.h"
#include "autodiff/check/hessian.h"
#include "autodiff/optimize/optimize.h"
#include "autodiff/problem/loss.h"
#include "autodiff/tape/dynamics.h"
#include "autodiff/tape/mass_motion.h"
#include "autodiff/tape/rollout.h"
#include "autodiff/tape/step_jacobians.h"
#include "models/builder.h"
#include "models/parameter_list.h"
#include "models/views.h"
#include "scenes/scene.h"
