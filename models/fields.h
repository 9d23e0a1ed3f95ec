#pragma once
// The one table of the model's parameters. Loader, --set, sweeps, gradients, gradient check and printing walk it.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.h"

namespace backdrive {

enum class FieldGroup { bodies, joints, shapes, model };

struct Field {
  FieldGroup group;
  std::string_view leaf;  ///< path below the item: "limit/lower"; for group model the whole path: "gravity"
  std::string_view unit;
  std::string_view doc;  ///< one line
  int components;
  int tangents;      ///< numbers in its gradient: 3 for an orientation, else `components`
  bool nonnegative;  ///< values below zero are refused
  Parameter& (*of)(Parameters&);
  const Parameter& in(const Parameters& p) const { return of(const_cast<Parameters&>(p)); }
};

std::span<const Field> fields();

/// One parameter of one item; component −1 is all of them.
struct FieldSelection {
  const Field* field;
  int item;
  int component = -1;
};

/// "joints/hinge/damping", "bodies/pole/com/2" (or /z), "gravity". A segment `*` stands for every name; a path that
/// ends early stands for the subtree. Throws Error (input) naming the nearest known name when nothing matches.
std::vector<FieldSelection> select_fields(const Model& model, std::string_view path);

/// The path of a selection, in the form select_fields reads.
std::string path_of(const Model& model, const FieldSelection& selection);

/// Switches requires_grad of everything the path selects; recordings made from now on follow it.
void set_requires_grad(Model& model, std::string_view path, bool on);

/// The known word nearest to `word` in edit distance, or empty when none is near.
std::string nearest_name(std::string_view word, std::span<const std::string> known);

}  // namespace backdrive
