#pragma once
// Which of an integrator's kernel tables this processor runs: its kernel_instances.cpp defines them in a namespace per
// instruction set that the build has.
#include <string>

#include "engine/error.h"
#include "engine/isa.h"
#include "integrators/rollout/kernel_table.h"

namespace backdrive {

/// The tables of the highest instruction set that is both built and supported.
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
                                       to_string(best_isa()) +
                                       "); expected one made on such a processor, or by cmake --preset portable");
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

#define BACKDRIVE_DECLARE_TABLES(level) \
  namespace level {                     \
  template <class T>                    \
  const KernelTable<T>& table();        \
  }
#define BACKDRIVE_OFFER_TABLES(level) chosen.offer(Isa::level, level::table<float>(), level::table<double>());

// In the integrator's namespace: defines tables(), which chooses once, and declares that of dual numbers.
#define BACKDRIVE_CHOOSE_TABLES()                \
  BACKDRIVE_EACH_ISA(BACKDRIVE_DECLARE_TABLES)   \
  BACKDRIVE_DECLARE_TABLES(dual)                 \
  static const ChosenTables& tables() {          \
    static const ChosenTables best = [] {        \
      ChosenTables chosen;                       \
      BACKDRIVE_EACH_ISA(BACKDRIVE_OFFER_TABLES) \
      chosen.check();                            \
      return chosen;                             \
    }();                                         \
    return best;                                 \
  }
