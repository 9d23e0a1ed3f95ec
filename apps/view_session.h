#pragma once
// What stands behind the page of `simctl view`: a scene whose numbers it moves, simulated anew for each request.
#include <functional>
#include <memory>
#include <string>

#include "apps/view_request.h"
#include "autodiff/optimize/optimize.h"
#include "scenes/scene.h"

namespace backdrive::app {

/// One request is computed at a time, in a thread of its own. A new one takes the place of the one that waits, and has
/// the one that is simulated stop; a gradient that has begun is finished first.
class ViewSession {
 public:
  ViewSession(Scene scene, const ExecutionOptions& how);
  /// Waits for what cannot be stopped; see is_idle().
  ~ViewSession();

  /// Name, description, everything that can be moved.
  std::string scene_text() const;
  /// `done` gets the answer, from the thread that computes or at once: JSON with "superseded", with "error" (path and
  /// reason), or with what was wanted.
  void ask(ViewRequest request, std::function<void(std::string)> done);
  /// Lets go of everything that waits; whether nothing is computed (any more).
  bool is_idle_after_stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace backdrive::app
