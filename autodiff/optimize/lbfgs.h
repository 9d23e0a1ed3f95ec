#pragma once
#include <LBFGSpp/BFGSMat.h>

#include "autodiff/optimize/search.h"

namespace backdrive {

/// One start of L-BFGS, or with any finite bound of L-BFGS-B, that is asked for points and told losses: nothing in it
/// waits. Directions are LBFGSpp's (D. C. Liu and J. Nocedal, On the limited memory BFGS method for large scale
/// optimization, 1989; R. H. Byrd et al., A limited memory algorithm for bound constrained optimization, 1995); the
/// line search is for losses with kinks (lbfgs.cpp).
class LbfgsStart {
 public:
  /// Begins at start.x; counts start.iterations. All three outlive it.
  LbfgsStart(const VariableBounds& bounds, const OptimizeOptions& options, StartResult& start);

  /// Where loss and gradient are wanted: scaled numbers, within bounds.
  const std::vector<double>& point() const { return point_; }
  /// Takes them. Null: point() has moved on; else what the start stops by. O(numbers) beside what is evaluated. `start`
  /// holds the best point by then.
  StopReason tell(double loss, const std::vector<double>& gradient);

 private:
  using Vector = Eigen::VectorXd;

  void begin();
  StopReason ask(const Vector& x);
  StopReason give_up();
  StopReason begin_line(double step);
  StopReason walk_line();
  StopReason accept();
  StopReason first_direction();
  StopReason next_direction();
  StopReason limits() const;
  bool bounded_direction(bool first);
  bool is_stationary() const;

  const VariableBounds& bounds_;
  const OptimizeOptions& options_;
  StartResult& start_;
  const bool bounded_;
  LBFGSpp::BFGSMat<double, false> free_pairs_;  ///< of L-BFGS
  LBFGSpp::BFGSMat<double, true> pairs_;        ///< of L-BFGS-B
  std::vector<double> point_;
  Vector x_, gradient_, line_begin_, gradient_begin_, direction_;
  double loss_ = 0;
  bool on_line_ = false;  ///< else at the first point of a memory
  bool evaluated_ = false, restarted_ = false;
  int flat_ = 0;  ///< iterations in a row that left the loss as it was
  double loss_at_restart_ = 0;
  // Of the line search.
  double step_ = 0, longest_step_ = 0, low_ = 0, high_ = 0, loss_begin_ = 0, slope_begin_ = 0;
  int evaluations_ = 0;
};

/// For the given starts, at most kLargestBatch: whatever they ask for is evaluated as one batch. A start's result does
/// not depend on the others.
void run_lbfgs(Search& search, std::span<const int> starts);

/// Where all starts have stopped short of the goal and the best of them has iterations left: so many neighbours of its
/// best point are searched from, as worlds of one batch, and again about the best of these, until the goal is reached
/// or its iterations are used up. Motions that bounce and slide have hollows that no descent leaves; others are often
/// near (basin hopping: D. J. Wales and J. P. K. Doye, Global optimization by basin-hopping, J. Phys. Chem. A 101,
/// 1997; deviation: several hops at once, the best is kept). Neighbours lie as far off as the start has come from
/// begins[start], or a half, a quarter, an eighth of that. Returns the rounds it took, at most 8.
int look_around(Search& search, const std::vector<std::vector<double>>& begins, int neighbours, std::uint64_t seed);

}  // namespace backdrive
