#pragma once
// |x|. Packs have an overload (pack.h), which needs no comparison.
#include "engine/real.h"

namespace backdrive {

template <class Real>
BACKDRIVE_INLINE Real magnitude(const Real& x) {
  return maximum(x, -x);
}

}  // namespace backdrive
