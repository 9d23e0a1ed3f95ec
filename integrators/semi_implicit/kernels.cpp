// Chooses the kernels for this processor; dual numbers have one table.
#include "integrators/semi_implicit/kernels.h"

#include "integrators/kernel_choice.h"

namespace backdrive::semi_implicit {

BACKDRIVE_CHOOSE_TABLES()

template <>
const KernelTable<float>& kernels<float>() {
  return *tables().single;
}
template <>
const KernelTable<double>& kernels<double>() {
  return *tables().pair;
}
template <>
const KernelTable<Dual<double>>& kernels<Dual<double>>() {
  return dual::table<Dual<double>>();
}

}  // namespace backdrive::semi_implicit
