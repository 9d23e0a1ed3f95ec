#pragma once
// The kernels of both integrators for this processor. They are compiled once per instruction set and number type; the
// best that the processor runs is chosen at run time.
#include "engine/dual.h"
#include "engine/isa.h"
#include "integrators/rollout/kernel_table.h"

namespace backdrive {

/// T is float, double or Dual<double>, which has one table for all processors. Throws Error (device) where the build
/// has no kernels for this processor.
template <class T>
const KernelTable<T>& kernels(Integrator integrator = Integrator::featherstone);
template <>
const KernelTable<float>& kernels<float>(Integrator);
template <>
const KernelTable<double>& kernels<double>(Integrator);
template <>
const KernelTable<Dual<double>>& kernels<Dual<double>>(Integrator);

/// The instruction set of kernels<float>() and kernels<double>().
Isa kernel_isa();

}  // namespace backdrive
