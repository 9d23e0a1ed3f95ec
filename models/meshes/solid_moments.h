#pragma once
#include "engine/spatial.h"

namespace backdrive {

/// Volume in m³, com in m, and ∫(x − com)(x − com)ᵀ dV in m⁵, in the axes of the mesh.
template <class C>
struct SolidMoments {
  C volume{};
  Vec3<C> com{};
  Sym3<C> second{};
};

}  // namespace backdrive
