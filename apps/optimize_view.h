#pragma once
// What stands behind the page of `optimize --view`.
#include <memory>
#include <string>

#include "autodiff/optimize/optimize.h"
#include "scenes/scene.h"

namespace backdrive::app {

/// Serves the page in a thread of its own, and simulates the best numbers so far in another, on one thread of the
/// processor, while somebody looks. The optimisation hands over copies and never waits.
class OptimizeView {
 public:
  OptimizeView(const Scene& scene, const ExecutionOptions& how, int port);
  ~OptimizeView();

  const std::string& address() const;
  /// From the thread that optimises.
  void update(const OptimizeProgress& progress);
  /// The last word. Waits until a page that looks has it, two seconds at most.
  void finish(const OptimizeResult& result);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace backdrive::app
