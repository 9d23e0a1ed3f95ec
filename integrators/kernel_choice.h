#pragma once
// Which of an integrator's kernel tables this processor runs: kernels_isa.cpp defines them in a namespace per
// instruction set that the build has.
#include <string>

#include "engine/error.h"
#include "engine/isa.h"

namespace backdrive {

/// The tables of the highest instruction set that is both built and supported.
template <template <class> class KernelTable>
struct ChosenTables {
  const KernelTable<float>* single = nullptr;
  const KernelTable<double>* pair = nullptr;
  Isa isa = Isa::v2;

  void offer(Isa level, const KernelTable<float>& of_floats, const KernelTable<double>& of_doubles) {
    if (level <= best_isa()) *this = {&of_floats, &of_doubles, level};
  }
  /// Throws Error (device) when none was offered that the processor runs.
  void check() const {
    if (single) return;
    throw Error(ErrorKind::device, std::string("this build has no kernels for this processor (") +
                                       to_string(best_isa()) + "); expected a build with BACKDRIVE_ISAS=v2;v3;v4");
  }
};

}  // namespace backdrive

// BACKDRIVE_EACH_ISA(visit): visit(v2), visit(v3), visit(v4), those that the build has, the lowest first.
#if defined(BACKDRIVE_HAS_V2)
#define BACKDRIVE_VISIT_V2(visit) visit(v2)
#else
#define BACKDRIVE_VISIT_V2(visit)
#endif
#if defined(BACKDRIVE_HAS_V3)
#define BACKDRIVE_VISIT_V3(visit) visit(v3)
#else
#define BACKDRIVE_VISIT_V3(visit)
#endif
#if defined(BACKDRIVE_HAS_V4)
#define BACKDRIVE_VISIT_V4(visit) visit(v4)
#else
#define BACKDRIVE_VISIT_V4(visit)
#endif
#define BACKDRIVE_EACH_ISA(visit) BACKDRIVE_VISIT_V2(visit) BACKDRIVE_VISIT_V3(visit) BACKDRIVE_VISIT_V4(visit)

#define BACKDRIVE_DECLARE_TABLES(level)          \
  namespace level {                              \
  extern const KernelTable<float> table_float;   \
  extern const KernelTable<double> table_double; \
  }
#define BACKDRIVE_OFFER_TABLES(level) chosen.offer(Isa::level, level::table_float, level::table_double);

// Where KernelTable is the integrator's: defines tables(), which chooses once.
#define BACKDRIVE_CHOOSE_TABLES()                      \
  BACKDRIVE_EACH_ISA(BACKDRIVE_DECLARE_TABLES)         \
  static const ChosenTables<KernelTable>& tables() {   \
    static const ChosenTables<KernelTable> best = [] { \
      ChosenTables<KernelTable> chosen;                \
      BACKDRIVE_EACH_ISA(BACKDRIVE_OFFER_TABLES)       \
      chosen.check();                                  \
      return chosen;                                   \
    }();                                               \
    return best;                                       \
  }
