#include "autodiff/model_constants_buffer.h"

#include <algorithm>

#include "engine/error.h"
#include "engine/exact_sum.h"
#include "engine/kernel_array.h"
#include "engine/launch.h"
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
  const WorldStatus* const stopped = status ? status->address() : nullptr;
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

/// The model on a device, for the kernels of parameter_kernel.h.
struct DeviceModel {
  DeviceModel(const Model& model, Memory& memory)
      : links(model.topology.links, memory),
        shape_types(model.shape_types, memory),
        shape_bodies(model.shape_bodies, memory),
        structure(structure_of(model)) {
    structure.links = links.data();
    structure.shape_types = shape_types.data();
    structure.shape_bodies = shape_bodies.data();
    PoolVector<double> flat(flat_size(model));
    write_flat(model, flat.data());
    numbers = KernelArray<double>(flat, memory);
    parameters = flat_view(model, numbers.data());
  }

  KernelArray<Link> links;
  KernelArray<GeometryType> shape_types;
  KernelArray<int> shape_bodies;
  KernelArray<double> numbers;
  ModelStructure structure;
  ParametersView parameters;
};

/// Constants of worlds that all have parameters of their own, computed on the device.
template <class T>
Buffer<T> constants_on_device(const Model& model, int rows, int worlds, Memory& memory) {
  Buffer<T> buffer = Buffer<T>::uninitialized(memory, rows, worlds);
  if constexpr (kHasDots<Exact<T>>) {
    usage_error("dual numbers on " + to_string(memory.device()) + ", expected buffers of the host");
  } else {
    const DeviceModel there(model, memory);
    const ConstantsOfWorld<T> fill{there.structure, there.parameters, buffer.write_address(), buffer.stride(), worlds};
    launch_on_device(*memory.backend(), buffer.stride(), fill);  // the padding too
  }
  return buffer;
}

/// Cotangents of a device: what is summed over worlds is summed there, to the same bits; of parameters that differ from
/// world to world each world's gradient is made there. The numbers that are left come to the host, which waits.
template <class T>
void add_from_device(const Model& model, const Buffer<T>& bar, const WorldStatuses* status, Parameters& gradient) {
  if constexpr (kHasDots<Exact<T>>) {
    usage_error("dual numbers on a device, expected buffers of the host");
  } else {
    DeviceBackend& backend = *bar.backend();
    Memory& memory = memory_beside(bar);
    Parameters no_dots;
    if (model.parameter_worlds() == 1) {
      const std::shared_ptr<std::byte> there = memory.allocate(bar.rows() * sizeof(double));
      auto* const sums = reinterpret_cast<double*>(there.get());
      const Summands<T> row{bar.address(), static_cast<std::size_t>(bar.worlds()), 1,
                            status ? status->address() : nullptr};
      sum_rows_on_device(backend, row, bar.stride(), bar.rows(), sums);
      PoolVector<double> here(bar.rows());
      backend.download(here.data(), sums, here.size() * sizeof(double));
      backend.synchronize();
      add_columns<double>(model, nullptr, here.data(), 1, 1, nullptr, gradient, no_dots);
      return;
    }
    const DeviceModel device_model(model, memory);
    const GradientBlock block(model, gradient, bar.worlds());
    const std::size_t bytes = block.numbers() * sizeof(double);
    const std::shared_ptr<std::byte> there = memory.allocate(bytes);
    backend.fill(there.get(), 0, bytes);
    const ParameterGradientOfWorld<T> add{device_model.structure, device_model.parameters, bar.address(), bar.stride(),
                                          block.slots(reinterpret_cast<double*>(there.get()))};
    launch_on_device(backend, bar.worlds(), add);
    PoolVector<double> here(block.numbers());
    backend.download(here.data(), there.get(), bytes);
    backend.synchronize();
    add_block(block, bar.worlds(), status, here, gradient);
  }
}

}  // namespace

template <class T>
Buffer<T> constants_buffer(const Model& model, const Parameters* direction, int worlds, Memory& memory) {
  const int links = static_cast<int>(model.topology.links.size());
  const bool uniform = model.parameter_worlds() == 1;
  const int columns = uniform ? 1 : worlds;
  // One column is stored without gaps: a row vector of one "row" whose worlds are the rows.
  const int rows = links * (kLinkConstants<T> + 9) + 3;
  if (memory.backend() && !uniform) return constants_on_device<T>(model, rows, worlds, memory);
  if (memory.backend()) return constants_buffer<T>(model, direction, worlds, default_memory()).clone(memory);
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
  if (constants_bar.backend()) return add_from_device(model, constants_bar, status, gradient);
  if (model.parameter_worlds() != 1) {
    add_columns(model, direction, constants_bar.row(0), constants_bar.stride(), worlds, status, gradient, gradient_dot);
    return;
  }
  // All parameters uniform: sum the rows first, then turn the sums into parameters once.
  PoolVector<Exact<T>> sums(static_cast<std::size_t>(constants_bar.rows()));
  for (int row = 0; row < constants_bar.rows(); ++row) sums[row] = sum_of(constants_bar.row(row), worlds, status);
  add_columns(model, direction, sums.data(), 1, 1, nullptr, gradient, gradient_dot);
}

template <class T>
KernelModel<T>::KernelModel(const Model& model, const Parameters* direction, int worlds, Memory& memory)
    : topology(view_of(model.topology)),
      tree(topology),
      constants(constants_buffer<T>(model, direction, worlds, memory)),
      links(model.topology.links, memory) {
  topology.links = links.data();
}

#define BACKDRIVE_INSTANTIATE(T)                                                                                   \
  template struct KernelModel<T>;                                                                                  \
  template Buffer<T> constants_buffer<T>(const Model&, const Parameters*, int, Memory&);                           \
  template void add_constants_gradient<T>(const Model&, const Parameters*, const Buffer<T>&, const WorldStatuses*, \
                                          Parameters&, Parameters&);
BACKDRIVE_INSTANTIATE(float)
BACKDRIVE_INSTANTIATE(double)
BACKDRIVE_INSTANTIATE(Dual<double>)

}  // namespace backdrive
