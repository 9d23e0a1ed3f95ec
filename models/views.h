#pragma once
// Views of single parameters, which know when the parameter they look at has gone.
#include <string_view>

#include "engine/view.h"
#include "models/model.h"

namespace backdrive {

/// One item's numbers of one parameter, or one component of them, read and written in place. With guards every access
/// throws Error (usage) naming the path once the parameter was resized, spread, assigned to, moved from or destroyed,
/// and for components and worlds that are not there; without them it is two indices beside a pointer. All O(1) but set.
class ParameterView {
 public:
  int components() const {
    guard_.check();
    return component_ < 0 ? parameter_->components() : 1;
  }
  /// 1 when all worlds share the values.
  int worlds() const {
    guard_.check();
    return parameter_->worlds();
  }
  /// Value for a world; a uniform parameter has the same one for every world.
  double operator()(int component = 0, int world = 0) const {
    check(component, world);
    return (*parameter_)(item_, first() + component, world);
  }
  /// In every world. O(worlds).
  void set(int component, double value) const {
    check(component, 0);
    parameter_->set(item_, first() + component, value);
  }
  /// In one world: 0 when uniform.
  void set(int component, int world, double value) const {
    check(component, world);
    guard_.check("world", world, static_cast<std::size_t>(parameter_->worlds()));
    parameter_->at(item_, first() + component, world) = value;
  }
  /// What it is now, whoever switched it and when.
  bool requires_grad() const {
    guard_.check();
    return parameter_->requires_grad(item_);
  }
  /// Whether accesses are still good; always when guards are off.
  bool valid() const { return guard_.valid(); }
  /// The path; empty when guards are off.
  std::string_view path() const { return guard_.name(); }

 private:
  friend ParameterView view(Model& model, std::string_view path);
  ParameterView(Parameter& parameter, int item, int component, std::string_view path)
      : parameter_(&parameter), item_(item), component_(component), guard_(path, parameter.generation().ticket()) {}

  int first() const { return component_ < 0 ? 0 : component_; }
  void check(int component, int world) const {
    if constexpr (kGuards) {
      guard_.check("component", component, static_cast<std::size_t>(components()));
      const bool uniform = parameter_->uniform();
      if (!uniform || world < 0) guard_.check("world", world, static_cast<std::size_t>(parameter_->worlds()));
    }
  }

  Parameter* parameter_;
  int item_;
  int component_;  ///< −1: all
  [[no_unique_address]] ViewGuard guard_;
};

/// The parameter that a path such as "shapes/ball/geometry/scale" or "bodies/pole/com/z" names. Throws Error: of kind
/// input as select_fields does when there is none, usage when the path stands for several. O(size of the model).
ParameterView view(Model& model, std::string_view path);

}  // namespace backdrive
