// Chooses the kernels for this processor; dual numbers have one table, compiled here.
#include "integrators/featherstone/kernels.h"

#include "integrators/featherstone/kernel_table.h"
#include "integrators/kernel_choice.h"

namespace backdrive {
namespace featherstone {

BACKDRIVE_CHOOSE_TABLES()

}  // namespace featherstone

template <>
const KernelTable<float>& kernels<float>() {
  return *featherstone::tables().single;
}
template <>
const KernelTable<double>& kernels<double>() {
  return *featherstone::tables().pair;
}
template <>
const KernelTable<Dual<double>>& kernels<Dual<double>>() {
  static const KernelTable<Dual<double>> table = featherstone::make_kernel_table<Dual<double>>();
  return table;
}

Isa kernel_isa() {
  return featherstone::tables().isa;
}

}  // namespace backdrive
