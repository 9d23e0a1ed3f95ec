#include "benchmarks/ratios.h"

#include <cstdio>

namespace backdrive::benchmarks {

void RatioReporter::ReportRuns(const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    const auto rate = run.counters.find("items_per_second");
    if (run.run_type != Run::RT_Iteration || rate == run.counters.end() || !(rate->second.value > 0)) continue;
    const double time = 1e9 / rate->second.value;
    const auto [at, fresh] = least_.emplace(run.run_name.function_name, time);
    if (!fresh && time < at->second) at->second = time;
  }
  ConsoleReporter::ReportRuns(runs);
}

double RatioReporter::least(const std::string& name) const {
  const auto found = least_.find(name);
  return found == least_.end() ? 0 : found->second;
}

namespace {

struct Promise {
  const char* what;
  const char* slow[2];  ///< times that add up
  const char* fast[2];
  double floor;    ///< the ratio is to be at least this, ...
  double ceiling;  ///< ... or at most this, where not zero
};

constexpr Promise kPromises[] = {
    {"arm7 float32, forward: Pinocchio ABA / ours", {"pinocchio/arm7/aba"}, {"arm7/float32/forward"}, 30, 0},
    {"arm7 float64, forward: Pinocchio ABA / ours", {"pinocchio/arm7/aba"}, {"arm7/float64/forward"}, 15, 0},
    {"tree30 float32, forward: Pinocchio ABA / ours", {"pinocchio/tree30/aba"}, {"tree30/float32/forward"}, 20, 0},
    {"tree30 float64, forward: Pinocchio ABA / ours", {"pinocchio/tree30/aba"}, {"tree30/float64/forward"}, 10, 0},
    {"quadruped float32, forward: Pinocchio ABA / ours",
     {"pinocchio/quadruped/aba"},
     {"quadruped/float32/forward"},
     20,
     0},
    {"quadruped float64, forward: Pinocchio ABA / ours",
     {"pinocchio/quadruped/aba"},
     {"quadruped/float64/forward"},
     10,
     0},
    {"humanoid float32, forward: Pinocchio ABA / ours",
     {"pinocchio/humanoid/aba"},
     {"humanoid/float32/forward"},
     20,
     0},
    {"humanoid float64, forward: Pinocchio ABA / ours",
     {"pinocchio/humanoid/aba"},
     {"humanoid/float64/forward"},
     10,
     0},
    {"arm7 float32, gradient: Pinocchio ABA + derivatives / ours",
     {"pinocchio/arm7/aba", "pinocchio/arm7/derivatives"},
     {"arm7/float32/gradient"},
     35,
     0},
    {"arm7 float64: Pinocchio derivatives / step_jacobians",
     {"pinocchio/arm7/derivatives"},
     {"arm7/float64/step_jacobians"},
     1.43,
     0},
    {"arm7 float32: forward + gradient / forward", {"arm7/float32/gradient"}, {"arm7/float32/forward"}, 0, 3.3},
    {"arm7 float64: forward + gradient / forward", {"arm7/float64/gradient"}, {"arm7/float64/forward"}, 0, 3.3},
    {"arm7 float32: forward without gradients / its bare parts",
     {"arm7/float32/forward"},
     {"arm7/float32/bare_forward"},
     0,
     1.01},
    {"time per link, 128 links / 8 links (float32) x 16",
     {"chain128/float32/forward"},
     {"chain8/float32/forward"},
     0,
     32},
};

double sum(const RatioReporter& reporter, const char* const (&names)[2]) {
  double total = 0;
  for (const char* name : names) {
    if (!name) continue;
    const double time = reporter.least(name);
    if (time == 0) return 0;
    total += time;
  }
  return total;
}

}  // namespace

void print_ratios(const RatioReporter& reporter) {
  std::printf("\n%-62s %8s  %s\n", "ratio of least times in this run", "ratio", "promised");
  for (const Promise& p : kPromises) {
    const double slow = sum(reporter, p.slow), fast = sum(reporter, p.fast);
    if (slow == 0 || fast == 0) {
      std::printf("%-62s %8s\n", p.what, "not run");
      continue;
    }
    const double ratio = slow / fast;
    const bool kept = p.ceiling > 0 ? ratio <= p.ceiling : ratio >= p.floor;
    std::printf("%-62s %8.3f  %s %g%s\n", p.what, ratio, p.ceiling > 0 ? "at most" : "at least",
                p.ceiling > 0 ? p.ceiling : p.floor, kept ? "" : "  MISSED");
  }
}

}  // namespace backdrive::benchmarks
