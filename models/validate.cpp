// Whether a model's numbers are those of something that can exist and can be simulated.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <unordered_map>

#include "models/builder.h"
#include "models/model_validity.h"
#include "models/parameter_list.h"

namespace backdrive {
namespace {

std::string text(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.6g", value);
  return buffer;
}

template <class Numbers>
std::string list(const Numbers& values) {
  std::string result = "[";
  for (double value : values) result += (result.size() > 1 ? ", " : "") + text(value);
  return result + "]";
}

std::string in_world(const Parameter& parameter, int world) {
  return parameter.uniform() ? "" : " in world " + std::to_string(world);
}

// ---- numbers one by one ---------------------------------------------------------------------------------------------

bool is_scale(const Field& field) {
  return field.leaf == "geometry/scale";
}

/// Calls check(world) until one has something wrong: other worlds would say the same.
template <class Check>
void check_worlds(const ModelMistakes& mistakes, int worlds, const Check& check) {
  const std::size_t before = mistakes.size();
  for (int w = 0; w < worlds && mistakes.size() == before && !mistakes.full(); ++w) check(w);
}

void check_field(ModelMistakes& mistakes, const Model& model, const Field& field) {
  const Parameter& parameter = field.in(model);
  const ValueRule rule = rule_of(field);
  check_worlds(mistakes, parameter.worlds(), [&](int w) {
    for (int i = 0; i < parameter.items(); ++i) {
      for (int c = 0; c < parameter.components(); ++c) {
        const double value = parameter(i, c, w);
        if (rule.allows(value)) continue;
        const std::string unit = field.unit == "1" ? "" : " " + std::string(field.unit);
        mistakes.add(path_of(model, {&field, i, field.components == 1 ? -1 : c}),
                     text(value) + in_world(parameter, w) + ", expected a " + (rule.may_be_infinite ? "" : "finite ") +
                         "number" +
                         (rule.positive      ? " > 0"
                          : rule.nonnegative ? " >= 0"
                                             : "") +
                         unit);
      }
    }
  });
}

/// Scales each item's components (finite ones) to unit length, of which there is none of zero. `leaf`: as of a field.
void normalize_all(ModelMistakes& mistakes, Parameter& parameter, const std::string& group,
                   const std::vector<std::string>& names, const std::string& leaf) {
  const std::string what = leaf == "axis" ? "a vector" : "a quaternion";
  check_worlds(mistakes, parameter.worlds(), [&](int w) {
    for (int i = 0; i < parameter.items(); ++i) {
      if (normalize(parameter.slots(), i, w)) continue;
      mistakes.add(group + "/" + names[i] + "/" + leaf,
                   "zero" + in_world(parameter, w) + ", expected " + what + " of any length but zero");
    }
  });
}

/// What joints of some types cannot have.
void check_joint_kinds(ModelMistakes& mistakes, const Model& model) {
  const JointParameters& joints = model.joints;
  const auto refuse = [&](const Parameter& parameter, const char* key, const char* what, const auto& is_wrong) {
    check_worlds(mistakes, parameter.worlds(), [&](int w) {
      for (int j = 0; j < parameter.items(); ++j) {
        const JointType type = model.joint_types[j];
        if (!is_wrong(type, parameter(j, 0, w))) continue;
        mistakes.add("joints/" + model.joint_names[j] + "/" + key,
                     std::string(what) + to_string(type) + " joint" + in_world(parameter, w));
      }
    });
  };
  const auto free_has = [](JointType type, bool has) { return joint_size(type).nv > 0 && !may_be_driven(type) && has; };
  refuse(joints.spring.stiffness, "spring", "a spring, expected none on a ",
         [&](JointType type, double x) { return free_has(type, x > 0); });
  for (const Parameter* bound : {&joints.limit.lower, &joints.limit.upper, &joints.limit.velocity}) {
    refuse(*bound, "limit", "a limit, expected none on a ",
           [&](JointType type, double x) { return free_has(type, std::isfinite(x)); });
  }
  refuse(joints.limit.lower, "limit/lower", "a lowest angle, expected none: `upper` bounds the turn of a ",
         [](JointType type, double x) { return type == JointType::ball && std::isfinite(x); });
  refuse(joints.limit.upper, "limit/upper", "an angle that is not above 0, expected more for the turn of a ",
         [](JointType type, double x) { return type == JointType::ball && !(x > 0); });
  refuse(joints.spring.rest, "spring/rest", "an angle, expected 0: orientation zero is where the spring pulls a ",
         [](JointType type, double x) { return type == JointType::ball && x != 0; });
}

void check_limits(ModelMistakes& mistakes, const Model& model, const ParametersView& view) {
  const ModelStructure structure = structure_of(model);
  const LimitParameters& limit = model.joints.limit;
  const int worlds = std::max(limit.lower.worlds(), limit.upper.worlds());
  check_worlds(mistakes, worlds, [&](int w) {
    for (int j = 0; j < limit.lower.items(); ++j) {
      if (WorldValidity{structure, {view, nullptr, w}}.limits_in_order(j)) continue;
      mistakes.add("joints/" + model.joint_names[j] + "/limit",
                   "lower " + text(limit.lower(j, 0, w)) + " and upper " + text(limit.upper(j, 0, w)) +
                       (worlds > 1 ? " in world " + std::to_string(w) : "") + ", expected lower < upper");
    }
  });
}

// ---- couplings ------------------------------------------------------------------------------------------------------

/// What would act on a coupling that is held, if it were not.
void check_held(const Model& model, int c) {
  const std::string path = "couplings/" + model.coupling_names[c];
  const CouplingParameters& own = model.couplings;
  const std::pair<const Parameter*, const char*> parts[] = {
      {&own.armature, "armature"},       {&own.damping, "damping"},
      {&own.friction, "friction"},       {&own.spring.stiffness, "spring/stiffness"},
      {&own.limit.lower, "limit/lower"}, {&own.limit.upper, "limit/upper"}};
  for (const auto& [part, leaf] : parts) {
    for (int w = 0; w < part->worlds(); ++w) {
      const double value = (*part)(c, 0, w);
      if (value == 0 || std::isinf(value)) continue;
      throw ModelError(path + "/" + leaf, text(value) + in_world(*part, w) +
                                              " of a coupling that is held, on which nothing else acts; expected none, "
                                              "or `hold: false`");
    }
  }
}

/// Ratios by joint, those that are not zero.
using RatioRow = std::map<int, double>;

double largest_of(const RatioRow& row) {
  double largest = 0;
  for (const auto& [joint, ratio] : row) largest = std::max(largest, std::abs(ratio));
  return largest;
}

std::vector<RatioRow> ratio_rows(const Model& model, int world) {
  std::vector<RatioRow> rows(model.coupling_names.size());
  for (std::size_t t = 0; t < model.coupling_terms.size(); ++t) {
    const double ratio = model.couplings.ratios(static_cast<int>(t), 0, world);
    if (ratio != 0) rows[model.coupling_terms[t].coupling][model.coupling_terms[t].joint] = ratio;
  }
  return rows;
}

/// Elimination of rows that are mostly zeros, one by one, with the largest of each.
class RatioElimination {
 public:
  /// Adds a row less what those before it have of it. Returns the largest that is left, −1: that is too much work.
  double add(RatioRow row) {
    std::set<std::size_t> due;  // rows whose pivots it has
    for (const auto& [joint, ratio] : row) note(joint, due);
    while (!due.empty()) {
      const std::size_t k = *due.begin();
      due.erase(due.begin());
      const auto& [above, pivot] = rows_[k];
      work_ += above.size();
      if (work_ > kMostWork) return -1;
      const double factor = row.at(pivot) / above.at(pivot);
      for (const auto& [joint, ratio] : above) {
        const auto [at, is_new] = row.try_emplace(joint, 0.0);
        at->second -= factor * ratio;
        if (is_new) note(joint, due);
      }
      row.erase(pivot);
    }
    const double left = largest_of(row);
    if (left == 0) return 0;
    const auto is_largest = [&](const auto& entry) { return std::abs(entry.second) == left; };
    const int pivot = std::ranges::find_if(row, is_largest)->first;
    row_of_pivot_.emplace(pivot, rows_.size());
    rows_.emplace_back(std::move(row), pivot);
    return left;
  }

 private:
  static constexpr std::size_t kMostWork = 10'000'000;  ///< entries: a second or two

  void note(int joint, std::set<std::size_t>& due) const {
    const auto found = row_of_pivot_.find(joint);
    if (found != row_of_pivot_.end()) due.insert(found->second);
  }

  std::vector<std::pair<RatioRow, int>> rows_;  ///< without pivots of those before them
  std::unordered_map<int, std::size_t> row_of_pivot_;
  std::size_t work_ = 0;
};

/// Whether those that are held can be so at once, whatever their joints carry: their ratios are linearly independent.
/// O(couplings² · joints) where all share joints, O(terms) where few do.
void check_independence(const Model& model, int world) {
  std::vector<RatioRow> rows = ratio_rows(model, world);
  RatioElimination held;
  for (std::size_t c = 0; c < rows.size(); ++c) {
    if (!model.coupling_holds[c]) continue;
    const double size = largest_of(rows[c]), left = held.add(std::move(rows[c]));
    if (left < 0) {
      throw ModelError("couplings", "more of those that are held share joints than can be checked, expected fewer");
    }
    // Rounding leaves about 1e-16 of what cancels.
    if (left > 1e-12 * size) continue;
    throw ModelError("couplings/" + model.coupling_names[c] + "/ratios",
                     (size > 0 ? std::string("no more than what the couplings before it hold already")
                               : std::string("nothing but zeros")) +
                         in_world(model.couplings.ratios, world) + ", expected a sum of its own to hold");
  }
}

void check_coupling_numbers(ModelMistakes& mistakes, const Model& model, const ParametersView& view) {
  const ModelStructure structure = structure_of(model);
  const LimitParameters& limit = model.couplings.limit;
  const int worlds = std::max(limit.lower.worlds(), limit.upper.worlds());
  for (int c = 0; c < structure.coupling_count; ++c) {
    if (model.coupling_holds[c]) mistakes.attempt([&] { check_held(model, c); });
    for (int w = 0; w < worlds; ++w) {
      if (WorldValidity{structure, {view, nullptr, w}}.coupling_limits_in_order(c)) continue;
      mistakes.add("couplings/" + model.coupling_names[c] + "/limit",
                   "lower " + text(limit.lower(c, 0, w)) + " and upper " + text(limit.upper(c, 0, w)) +
                       (worlds > 1 ? " in world " + std::to_string(w) : "") + ", expected lower < upper");
      break;
    }
  }
  mistakes.attempt([&] {
    for (int w = 0; w < model.couplings.ratios.worlds(); ++w) check_independence(model, w);
  });
}

void check_scales(ModelMistakes& mistakes, Model& model) {
  const ValueRule rule = rule_of(*std::ranges::find_if(fields(), is_scale));
  Parameter& scale = model.shapes.geometry.scale;
  check_worlds(mistakes, scale.worlds(), [&](int w) {
    for (int s = 0; s < scale.items(); ++s) {
      const GeometryType type = model.shape_types[s];
      for (int c = 0; c < scale.components(); ++c) {
        if (c >= scale_components(type)) {
          scale.at(s, c, w) = 0;
        } else if (!rule.allows(scale(s, c, w))) {
          mistakes.add(
              "shapes/" + model.shape_names[s] + "/geometry/scale/" + std::to_string(c),
              text(scale(s, c, w)) + in_world(scale, w) +
                  (type == GeometryType::mesh ? ", expected a finite factor > 0" : ", expected a finite length > 0 m") +
                  " (a " + to_string(type) + " has " + std::to_string(scale_components(type)) + ")");
        }
      }
    }
  });
}

// ---- inertias -------------------------------------------------------------------------------------------------------

void check_inertias(ModelMistakes& mistakes, const Model& model, const ParametersView& view) {
  const ModelStructure structure = structure_of(model);
  const Parameter& inertia = model.bodies.inertia;
  check_worlds(mistakes, inertia.worlds(), [&](int w) {
    for (int b = 0; b < inertia.items(); ++b) {
      if (model.unphysical_inertias[b]) continue;
      const PrincipalMoments m = WorldValidity{structure, {view, nullptr, w}}.moments(b);
      const InertiaFault fault = fault_of(m);
      if (fault == InertiaFault::none) continue;
      mistakes.add(
          "bodies/" + model.body_names[b] + "/inertia",
          "principal moments " + list(std::array{m.least, m.middle, m.most}) + " kg·m²" + in_world(inertia, w) +
              ", expected " +
              (fault == InertiaFault::negative ? "none below zero" : "none larger than the sum of the other two"));
    }
  });
}

/// Every moving joint must move inertia.
void check_moved_inertia(const Model& model, const ParametersView& view) {
  const ModelStructure structure = structure_of(model);
  const int worlds = model.parameter_worlds();
  PoolVector<double> scratch;
  for (int w = 0; w < worlds; ++w) {
    const WorldValidity world{structure, {view, nullptr, w}};
    if (world.all_joints_sound()) continue;
    scratch.resize(static_cast<std::size_t>(structure.link_count) * kInertiaScratch);
    const int joint = world.idle_joint({scratch.data(), 1});
    if (joint < 0) continue;
    if (model.topology.has_bodies()) {
      throw ModelError("bodies/" + model.body_names[model.joint_children[joint]],
                       std::string("no mass, or no inertia about some axis") +
                           (worlds > 1 ? " in world " + std::to_string(w) : "") +
                           ", expected both (mass, inertia, a shape with a density), since the integrator "
                           "semi_implicit moves every body by itself");
    }
    const bool one = has_one_degree(model.joint_types[joint]);
    const bool slides = model.joint_types[joint] == JointType::prismatic;
    const std::string body = model.body_names[model.joint_children[joint]];
    throw ModelError("joints/" + model.joint_names[joint],
                     std::string("moves no inertia") + (worlds > 1 ? " in world " + std::to_string(w) : "") +
                         ", expected body '" + body + "' or those it carries to have " +
                         (slides ? "mass"
                          : one  ? "inertia about the joint's axis"
                                 : "mass and inertia") +
                         " (mass, inertia, a shape with a " + "density), or the joint an armature > 0");
  }
}

/// Adds what is wrong about single numbers, and what is wrong about several of an item whose single ones are right.
void add_first(ModelMistakes& mistakes, const ModelMistakes& numbers, const ModelMistakes& together) {
  std::set<std::string> items;
  for (const ModelMistake& one : numbers.list()) {
    items.insert(item_of(one.path));
    mistakes.add(one.path, one.message);
  }
  for (const ModelMistake& one : together.list()) {
    if (!items.contains(item_of(one.path))) mistakes.add(one.path, one.message);
  }
}

/// Of all numbers: FNV-1a by words of 64 bits. Never 0.
std::uint64_t hash_of(const Parameters& parameters) {
  std::uint64_t hash = 14695981039346656037ull;
  for (const Field& field : fields()) {
    const Parameter& p = field.in(parameters);
    const std::size_t count = static_cast<std::size_t>(p.worlds()) * p.items() * p.components();
    const double* const numbers = p.values().first;
    for (std::size_t k = 0; k < count; ++k) hash = (hash ^ std::bit_cast<std::uint64_t>(numbers[k])) * 1099511628211ull;
    hash = (hash ^ count) * 1099511628211ull;
  }
  return hash | 1;
}

}  // namespace

ValueRule rule_of(const Field& field) {
  return {field.may_be_infinite, field.values != ValueRange::any,
          is_scale(field) || field.values == ValueRange::positive};
}

void validate(Model& model) {
  ModelMistakes mistakes;
  validate(model, mistakes);
  mistakes.throw_any();
}

void validate(Model& model, ModelMistakes& mistakes, const UnknownParts& unknown) {
  ModelMistakes numbers, together;
  for (const Field& field : fields()) {
    // The scale has its own rules: unused components may hold anything.
    if (field.of(model).components() != field.components) usage_error("validate: parameters are not those of a model");
    if (!is_scale(field)) check_field(numbers, model, field);
  }
  check_scales(numbers, model);
  normalize_all(together, model.joints.axis, "joints", model.joint_names, "axis");
  normalize_all(together, model.joints.frame.orientation, "joints", model.joint_names, "frame/orientation");
  normalize_all(together, model.joints.child_frame.orientation, "joints", model.joint_names, "child_frame/orientation");
  normalize_all(together, model.shapes.frame.orientation, "shapes", model.shape_names, "frame/orientation");
  const ParametersView view = view_of(model);
  check_joint_kinds(together, model);
  check_limits(together, model, view);
  check_coupling_numbers(together, model, view);
  check_inertias(together, model, view);
  add_first(mistakes, numbers, together);
  if (mistakes.size() > 0 || unknown.tree || unknown.inertia) return;
  mistakes.attempt([&] { check_moved_inertia(model, view); });
  if (mistakes.size() > 0) return;
  refresh_features(model);
  model.checked.remember(hash_of(model));
}

Model snapshot(const Model& model, const Parameters* direction, bool checked) {
  Model copy = model;
  if (const std::uint64_t hash = checked ? 0 : hash_of(copy); hash != 0 && !copy.checked.are(hash)) {
    validate(copy);
    // Numbers that validate() made unit vectors of are to be made so again.
    if (copy.checked.are(hash)) model.checked.remember(hash);
  }
  refresh_features(copy, direction);
  return copy;
}

}  // namespace backdrive
