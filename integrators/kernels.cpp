#include "integrators/kernels.h"

#include "integrators/rollout/kernel_choice.h"

namespace backdrive {

namespace featherstone {
BACKDRIVE_CHOOSE_TABLES()
}
namespace semi_implicit {
BACKDRIVE_CHOOSE_TABLES()
}

template <>
const KernelTable<float>& kernels<float>(Integrator integrator) {
  return *(integrator == Integrator::semi_implicit ? semi_implicit::tables() : featherstone::tables()).single;
}
template <>
const KernelTable<double>& kernels<double>(Integrator integrator) {
  return *(integrator == Integrator::semi_implicit ? semi_implicit::tables() : featherstone::tables()).pair;
}
template <>
const KernelTable<Dual<double>>& kernels<Dual<double>>(Integrator integrator) {
  return integrator == Integrator::semi_implicit ? semi_implicit::dual::table<Dual<double>>()
                                                 : featherstone::dual::table<Dual<double>>();
}

Isa kernel_isa() {
  return featherstone::tables().isa;
}

}  // namespace backdrive
