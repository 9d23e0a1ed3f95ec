#pragma once
// Columns of result folders, picked by name, as curves.
#include <filesystem>
#include <string>
#include <vector>

#include "apps/figure.h"

namespace backdrive::app {

/// What is picked of a folder's tables.
struct PlottedColumns {
  struct Quantity {
    std::string name, unit;
    std::vector<FigureCurve> curves;  ///< one; of a sweep over several parameters one for each value of the others
  };
  std::vector<Quantity> quantities;  ///< in the order of the patterns, then of the columns
  std::string over, over_unit;       ///< what they are drawn over
};

/// The columns of a folder's trajectory.csv, history.csv or sweep.csv, or of such a file, that the patterns name:
/// names, or with * and ? as file names have them. All are of one table, the first that has any of the first pattern.
/// `over`: the column they are drawn over; empty: time, iteration or the first parameter that was swept. Throws Error:
/// usage where nothing has that name, or two tables are asked for, input where there is no table.
PlottedColumns plotted_columns(const std::filesystem::path& result, const std::vector<std::string>& patterns,
                               const std::string& over);

}  // namespace backdrive::app
