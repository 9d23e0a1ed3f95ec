#pragma once
// Derivatives of first derivatives, by adjoints on dual numbers: docs/theory.md, "Gradients of first derivatives".
// States move along a direction, which has a number for each tangent row of the positions (models/coordinates.h) and
// then one for each velocity.
#include <algorithm>
#include <span>
#include <type_traits>

#include "autodiff/tape/buffers.h"
#include "engine/dual.h"

namespace backdrive {

/// A world of a batch.
template <class B>
struct WorldOf {
  B& batch;
  int world;
};

/// Copies a world's state, with the direction (2 nv numbers) as its dots.
template <class T>
void set_moving(const Topology& topology, WorldOf<const State<T>> from, std::span<const double> direction,
                WorldOf<State<Dual<double>>> to);

/// Adds the gradient of g's derivative along `direction`, of which `gradient` is that of g along it: rows of
/// positions, with the bracket that orientations make of two orders of differentiation.
void add_moved_positions_gradient(const Topology& topology, std::span<const double> direction,
                                  WorldOf<const Buffer<Dual<double>>> gradient, WorldOf<Buffer<double>> to);

/// Sets the seed of tangent row `row` of the positions q⁺, which move along what their dots say. A row of a turn has a
/// dot too, which makes up for the axes that turn with it.
void set_moving_seed(const Topology& topology, int row, WorldOf<const Buffer<Dual<double>>> q,
                     Buffer<Dual<double>>& seed);

/// The same numbers in T.
template <class T>
Buffer<T> in_precision(Buffer<double> exact, Memory& memory) {
  if constexpr (std::is_same_v<T, double>) {
    return exact;
  } else {
    Buffer<T> result(memory, exact.rows(), exact.worlds());
    for (int r = 0; r < exact.rows(); ++r) std::copy_n(exact.row(r), exact.worlds(), result.write(r));
    return result;
  }
}

}  // namespace backdrive
