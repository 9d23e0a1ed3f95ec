// Chooses the kernels for this processor; dual numbers have one table.
#include "integrators/featherstone/kernels.h"

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
  return featherstone::dual::table<Dual<double>>();
}

Isa kernel_isa() {
  return featherstone::tables().isa;
}

}  // namespace backdrive
