#pragma once
// The model's parameters (parameter_table.h) as a list. Loader, --set, sweeps, gradients, gradient check and printing
// walk it.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.h"

namespace backdrive {

/// `terms`: items are those of couplings, one for each of their joints.
enum class FieldGroup { bodies, joints, shapes, couplings, terms, model };

/// Picks one field of any of the nests. Made of a function that does so for all of them.
class FieldOf {
 public:
  template <class Pick>
  constexpr FieldOf(Pick pick) : parameter_(pick), values_(pick), slots_(pick) {}  // NOLINT: the table is made of these
  Parameter& operator()(Parameters& nest) const { return parameter_(nest); }
  ParameterValues& operator()(ParametersView& nest) const { return values_(nest); }
  ParameterSlots& operator()(GradientSlots& nest) const { return slots_(nest); }

 private:
  Parameter& (*parameter_)(Parameters&);
  ParameterValues& (*values_)(ParametersView&);
  ParameterSlots& (*slots_)(GradientSlots&);
};

struct Field {
  FieldGroup group;
  std::string_view leaf;  ///< path below the item: "limit/lower"; for group model the whole path: "gravity"
  std::string_view unit;
  std::string_view doc;  ///< one line
  int components;
  int tangents;       ///< numbers in its gradient: 3 for an orientation, else `components`
  ValueRange values;  ///< others are refused
  bool may_be_infinite;
  double begins;  ///< what it is where nothing is said; of a vector its first component
  FieldOf of;     ///< of(nest): its place in a nest, so that several nests are walked side by side
  const Parameter& in(const Parameters& p) const { return of(const_cast<Parameters&>(p)); }
};

std::span<const Field> fields();

/// How many components of a parameter's item mean something: of a sphere's scale one of three. The first ones.
int used_components(const Model& model, const Field& field, int item);

/// One parameter of one item; component −1 is all of them.
struct FieldSelection {
  const Field* field;
  int item;
  int component = -1;
};

/// "joints/hinge/damping", "bodies/pole/com/2" (or /z), "couplings/grip/ratios/left", "gravity". A segment `*` stands
/// for every name; a path that ends early stands for the subtree. Throws Error (input) naming the nearest known name
/// when nothing matches.
std::vector<FieldSelection> select_fields(const Model& model, std::string_view path);

/// The path of a selection, in the form select_fields reads.
std::string path_of(const Model& model, const FieldSelection& selection);

/// Whether a gradient is asked for of any parameter.
bool any_requires_grad(const Model& model);
/// Switches requires_grad of everything the path selects; recordings made from now on follow it.
void set_requires_grad(Model& model, std::string_view path, bool on);

/// Adds the numbers of one nest to those of another of the same shape: gradients of a batch that was split over
/// devices, shard by shard in their order. Throws Error (usage) when shapes differ. O(numbers).
void add_numbers(const Parameters& from, Parameters& to);

/// The known word nearest to `word` in edit distance, or empty when none is near.
std::string nearest_name(std::string_view word, std::span<const std::string> known);

}  // namespace backdrive
