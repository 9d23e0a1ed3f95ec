#include "autodiff/model_constants_buffer.h"

#include <algorithm>

#include "engine/exact_sum.h"
#include "integrators/featherstone/parameter_kernel.h"

namespace backdrive {
namespace {

/// A direction as kernels want it: a pointer, null where there is none.
class DirectionView {
 public:
  explicit DirectionView(const Parameters* direction) : given_(direction != nullptr) {
    if (given_) view_ = view_of(*direction);
  }
  const ParametersView* get() const { return given_ ? &view_ : nullptr; }

 private:
  bool given_;
  ParametersView view_;
};

template <class C>
constexpr bool kHasDots = !std::is_same_v<C, double>;

/// The sum of a row over the worlds that take part; of dual numbers that of their dots beside it.
template <class T>
Exact<T> sum_of(const T* row, int worlds, const WorldStatuses* status) {
  const std::size_t count = static_cast<std::size_t>(worlds);
  const WorldStatus* const stopped = status ? status->data() : nullptr;
  if constexpr (kHasDots<Exact<T>>) {
    return {order_independent_sum(Summands<double>{&row->value, count, 2, stopped}),
            order_independent_sum(Summands<double>{&row->dot, count, 2, stopped})};
  } else {
    return order_independent_sum(Summands<T>{row, count, 1, stopped});
  }
}

/// Adds a block to the gradient that it belongs to, with the sums of its rows over the worlds that take part.
void add_block(const GradientBlock& block, int worlds, const WorldStatuses* status, const PoolVector<double>& numbers,
               Parameters& gradient) {
  PoolVector<double> sums(static_cast<std::size_t>(block.rows()));
  const double* row = numbers.data() + block.first_row();
  // The only world's numbers need no sum, which would turn infinity into NaN.
  for (double& sum : sums) {
    sum = worlds == 1 ? *row : sum_of(row, worlds, status);
    row += block.stride();
  }
  block.add_to(gradient, numbers.data(), sums.data());
}

/// Turns the cotangents of each of `worlds` worlds into parameters, then sums those that all worlds share.
template <class T>
void add_columns(const Model& model, const Parameters* direction, const T* bar, int stride, int worlds,
                 const WorldStatuses* status, Parameters& gradient, Parameters& gradient_dot) {
  const DirectionView dots(direction);
  const GradientBlock block(model, gradient, worlds);
  PoolVector<double> values(block.numbers()), value_dots;
  ParameterGradientOfWorld<T> add{structure_of(model),        view_of(model), bar, stride,
                                  block.slots(values.data()), dots.get()};
  GradientSlots dot_slots;
  if constexpr (kHasDots<Exact<T>>) {
    value_dots.resize(block.numbers());
    dot_slots = block.slots(value_dots.data());
    add.dots = &dot_slots;
  }
  for (int w = 0; w < worlds; ++w) add(w);
  add_block(block, worlds, status, values, gradient);
  if constexpr (kHasDots<Exact<T>>) add_block(block, worlds, status, value_dots, gradient_dot);
}

}  // namespace

template <class T>
Buffer<T> constants_buffer(const Model& model, const Parameters* direction, int worlds, Memory& memory) {
  const int links = static_cast<int>(model.topology.links.size());
  const bool uniform = model.parameter_worlds() == 1;
  const int columns = uniform ? 1 : worlds;
  // One column is stored without gaps: a row vector of one "row" whose worlds are the rows.
  const int rows = links * (kLinkConstants<T> + 9) + 3;
  Buffer<T> buffer = uniform ? Buffer<T>(memory, 1, rows) : Buffer<T>(memory, rows, columns);
  T* numbers = buffer.write();
  const int stride = uniform ? 1 : buffer.stride();
  const DirectionView dots(direction);
  const ConstantsOfWorld<T> fill{structure_of(model), view_of(model), numbers, stride, columns, dots.get()};
  for (int w = 0; w < columns; ++w) fill(w);
  // Padding worlds are copies of the last, so that they stay as tame.
  for (int row = 0; row < rows; ++row) {
    T* const padding = numbers + static_cast<std::size_t>(row) * stride;
    std::fill(padding + columns, padding + stride, padding[columns - 1]);
  }
  return buffer;
}

template <class T>
void add_constants_gradient(const Model& model, const Parameters* direction, const Buffer<T>& constants_bar,
                            const WorldStatuses* status, Parameters& gradient, Parameters& gradient_dot) {
  const int worlds = constants_bar.worlds();
  if (model.parameter_worlds() != 1) {
    add_columns(model, direction, constants_bar.row(0), constants_bar.stride(), worlds, status, gradient, gradient_dot);
    return;
  }
  // All parameters uniform: sum the rows first, then turn the sums into parameters once.
  PoolVector<Exact<T>> sums(static_cast<std::size_t>(constants_bar.rows()));
  for (int row = 0; row < constants_bar.rows(); ++row) sums[row] = sum_of(constants_bar.row(row), worlds, status);
  add_columns(model, direction, sums.data(), 1, 1, nullptr, gradient, gradient_dot);
}

#define BACKDRIVE_INSTANTIATE(T)                                                                                   \
  template Buffer<T> constants_buffer<T>(const Model&, const Parameters*, int, Memory&);                           \
  template void add_constants_gradient<T>(const Model&, const Parameters*, const Buffer<T>&, const WorldStatuses*, \
                                          Parameters&, Parameters&);
BACKDRIVE_INSTANTIATE(float)
BACKDRIVE_INSTANTIATE(double)
BACKDRIVE_INSTANTIATE(Dual<double>)

}  // namespace backdrive
