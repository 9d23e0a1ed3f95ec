#include "engine/exact_sum.h"

namespace backdrive {

template <class T>
double order_independent_sum(const Summands<T>& summands) {
  const SumUnits units(summands.scale());
  return units.value(summands.sum(units));
}

template double order_independent_sum(const Summands<float>&);
template double order_independent_sum(const Summands<double>&);

}  // namespace backdrive
