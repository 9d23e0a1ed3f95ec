#pragma once
// One step of one world on dual numbers, the slow way: Jacobians of every centre of mass in world coordinates, a dense
// mass matrix, elimination. O(n³). Everything is read from the plain numbers of program_reference.h.
#include <vector>

#include "engine/dual.h"
#include "tests/autodiff/program_reference.h"

namespace backdrive::test::plain {

using D = Dual<double>;

/// The number along which derivatives are taken: of a buffer, or of a field, in all worlds at once (worlds do not
/// touch).
struct Direction {
  int slot = -1, row = 0;
  int field = -1, item = 0, tangent = 0;
};

/// Efforts and targets of one step in `u`, all zero when empty.
void step(const Model& model, const Direction& direction, int world, double time_step, std::vector<D>& q,
          std::vector<D>& qd, const std::vector<D>& u);

}  // namespace backdrive::test::plain
