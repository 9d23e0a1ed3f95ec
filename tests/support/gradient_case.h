#pragma once
// One rollout with a cotangent for everything it puts out, and two routes to ⟨w, J v⟩: dual numbers forward, the
// adjoint backward. The gradient tests and the mutation tests share it.
#include <string>
#include <vector>

#include "autodiff/tape/rollout.h"
#include "integrators/kernels.h"
#include "models/parameter_list.h"
#include "tests/support/batch.h"

namespace backdrive::test {

/// f = ⟨seeds, (every q, every qd, final q, final qd, every pose of `bodies`, with contact every drift)⟩, summed over
/// worlds.
struct GradientCase {
  Model model;
  RolloutOptions options;
  Batch<double> batch;
  std::vector<int> bodies;  ///< whose poses are put out
  Buffer<double> q_bar, qd_bar, q_end_bar, qd_end_bar, pose_bar, reported_bar, reported_end_bar;

  int worlds() const { return batch.state.q.worlds(); }
};

GradientCase make_case(Model model, int steps, double time_step, int worlds, std::uint64_t seed,
                       const BatchScale& scale = {});

/// Gradient of f, computed where `memory` is. With float, the numbers of the case are rounded first.
struct CaseGradient {
  Buffer<double> q0, qd0, control;
  Parameters parameters;
};
template <class T>
CaseGradient gradient_by_tape(const GradientCase& c, Memory memory = default_memory());
/// The same by calls of a kernel table, without a tape.
CaseGradient gradient_by_kernels(const GradientCase& c, const KernelTable<double>& table);

/// f itself, in T's arithmetic up to the sum.
template <class T>
double value_of_case(const GradientCase& c);

/// The inputs come in blocks: "q0", "qd0", "effort", "target_position", "target_velocity" and one per field of the
/// model's parameters, named as the field's path ("joints/limit/lower").
std::vector<std::string> block_names();
std::string block_of(const Field& field);
/// Whether the motion of a model can depend on a block at all.
bool block_is_live(const Model& model, const std::string& block);

/// A direction in the inputs: zero outside the block (or the single number of it that is named).
struct Direction {
  Buffer<double> q0, qd0, control;
  Parameters parameters;
};
Direction zero_direction(const GradientCase& c);
/// Random numbers; axis tangents are perpendicular to the axis.
Direction random_direction(const GradientCase& c, const std::string& block, std::uint64_t seed);

/// A sum and the sum of the magnitudes of its terms, which says how small the sum's rounding error can be.
struct Product {
  double value = 0, magnitude = 0;
};
/// ⟨w, J v⟩ by dual numbers, and the part of each world in it.
Product forward_product(const GradientCase& c, const Direction& v);
std::vector<Product> forward_products(const GradientCase& c, const Direction& v);
/// ⟨Jᵀ w, v⟩.
Product reverse_product(const CaseGradient& gradient, const Direction& v);

/// |⟨w, J v⟩ − ⟨Jᵀ w, v⟩| over the larger magnitude: rounding leaves about 1e-15 per step of it.
struct BlockError {
  std::string block;
  double error = 0;  ///< relative
  double size = 0;   ///< Σ |g v|: zero when the gradient of the whole block is
};
std::vector<BlockError> compare_blocks(const GradientCase& c, const CaseGradient& gradient, std::uint64_t seed);
BlockError worst(const std::vector<BlockError>& errors);

}  // namespace backdrive::test
