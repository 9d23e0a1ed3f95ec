#pragma once
#include <benchmark/benchmark.h>

#include <map>
#include <string>

namespace backdrive::benchmarks {

/// Prints as the console does, and keeps the least time of all repetitions of each benchmark, in ns per item.
class RatioReporter : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override;
  /// ns per item, or 0 when the benchmark did not run.
  double least(const std::string& name) const;

 private:
  std::map<std::string, double> least_;
};

/// The ratios that the project promises, each beside its floor.
void print_ratios(const RatioReporter& reporter);

}  // namespace backdrive::benchmarks
