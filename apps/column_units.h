#pragma once
// Units of the columns of tables, for axes of plots.
#include <map>
#include <string>

#include "models/model.h"

namespace backdrive::app {

/// Of every column that trajectory.csv may have, and of those of history.csv; none for numbers without a unit.
class ColumnUnits {
 public:
  /// Of the names that every table has alone.
  ColumnUnits();
  /// `model` has to outlive it.
  explicit ColumnUnits(const Model& model);
  /// Of a column of any table: "final/", "best/" and "initial_state/" stand before the names of states, "best/" before
  /// paths of parameters. Empty: none, or not known.
  std::string operator()(const std::string& column) const;

 private:
  void add_joints(const Model& model);
  const Model* model_ = nullptr;
  std::map<std::string, std::string> units_;
};

}  // namespace backdrive::app
