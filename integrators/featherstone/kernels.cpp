// Chooses the kernels for this processor; dual numbers have one table, compiled here.
#include "integrators/featherstone/kernels.h"

#include "engine/error.h"
#include "engine/isa.h"
#include "integrators/featherstone/kernel_table.h"

namespace backdrive {
namespace featherstone {

// Defined by kernels_isa.cpp, once per instruction set that the build has.
#define BACKDRIVE_DECLARE_TABLES(isa)            \
  namespace isa {                                \
  extern const KernelTable<float> table_float;   \
  extern const KernelTable<double> table_double; \
  }
#if defined(BACKDRIVE_HAS_V2)
BACKDRIVE_DECLARE_TABLES(v2)
#endif
#if defined(BACKDRIVE_HAS_V3)
BACKDRIVE_DECLARE_TABLES(v3)
#endif
#if defined(BACKDRIVE_HAS_V4)
BACKDRIVE_DECLARE_TABLES(v4)
#endif

namespace {

/// The tables of the highest level that is both built and supported.
struct Tables {
  const KernelTable<float>* single = nullptr;
  const KernelTable<double>* pair = nullptr;
  Isa isa = Isa::v2;
};

Tables choose() {
  [[maybe_unused]] const Isa best = best_isa();
  Tables t;
#if defined(BACKDRIVE_HAS_V2)
  t = {&v2::table_float, &v2::table_double, Isa::v2};
#endif
#if defined(BACKDRIVE_HAS_V3)
  if (best >= Isa::v3) t = {&v3::table_float, &v3::table_double, Isa::v3};
#endif
#if defined(BACKDRIVE_HAS_V4)
  if (best >= Isa::v4) t = {&v4::table_float, &v4::table_double, Isa::v4};
#endif
  if (!t.single) {
    throw Error(ErrorKind::device, std::string("this build has no kernels for this processor (") + to_string(best) +
                                       "); expected a build with BACKDRIVE_ISAS=v2;v3;v4");
  }
  return t;
}

const Tables& tables() {
  static const Tables chosen = choose();
  return chosen;
}

}  // namespace
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
