#pragma once
// Line plots for papers, as SVG: same numbers, same bytes.
#include <string>
#include <vector>

namespace backdrive::app {

struct FigureCurve {
  std::string label;         ///< in the legend
  std::vector<double> x, y;  ///< of one length; a number that is not finite interrupts the line
};

struct FigurePanel {
  std::string title;  ///< above it; empty: none
  std::vector<FigureCurve> curves;
};

struct FigureStyle {
  double width = 12, height = 8;  ///< cm
  double font = 9;                ///< pt
  bool serif = false, grey = false, log_x = false, log_y = false;
  std::string title, x_label, y_label;
};

/// Panels side by side, all with the same axes, and one legend for what has a label. Curves differ in dashes and in
/// lightness, not by colour alone. On logarithmic axes what is not above zero interrupts the line. Throws Error
/// (usage): no number to draw, or no room for the panels.
std::string figure_svg(const std::vector<FigurePanel>& panels, const FigureStyle& style);

}  // namespace backdrive::app
