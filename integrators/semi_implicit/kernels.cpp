// Chooses the kernels for this processor; dual numbers have one table, compiled here.
#include "integrators/semi_implicit/kernels.h"

#include "integrators/kernel_choice.h"
#include "integrators/semi_implicit/kernel_table.h"

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
  static const KernelTable<Dual<double>> table = make_kernel_table<Dual<double>>();
  return table;
}

}  // namespace backdrive::semi_implicit
