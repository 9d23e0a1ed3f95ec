#pragma once

namespace backdrive {

/// Cuts the gradient of a long rollout into windows, counted from its first step.
struct GradientWindow {
  int steps = 0;     ///< 0: the whole rollout is one window
  bool cut = false;  ///< no gradient passes from a window to the one before it (truncated backpropagation)
  /// Largest norm of what a window contributes, per world: the cotangents of its controls and of the state that it
  /// begins with; a larger one is scaled down, the parameters' share by the same factor. 0: any. Gradients::windows()
  /// tells.
  double clip = 0;

  bool active() const { return steps > 0 || clip > 0; }
};

}  // namespace backdrive
