#include "autodiff/tape/model_constants_buffer.h"

#include <algorithm>

#include "engine/error.h"
#include "engine/exact_sum.h"
#include "engine/kernel_array.h"
#include "engine/launch.h"
#include "integrators/featherstone/link_parameters.h"
#include "integrators/semi_implicit/parameter_rows.h"

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

/// The sum of a row of the host over the worlds that take part; of dual numbers that of their dots beside it.
template <class T>
Exact<T> sum_of(const T* row, int worlds, const WorldStatuses* status) {
  const std::size_t count = static_cast<std::size_t>(worlds);
  const WorldStatus* const stopped = status ? status->begin() : nullptr;
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

bool steps_bodies(const ModelStructure& structure) {
  return structure.integrator == Integrator::semi_implicit;
}

/// Rows of the cotangents of a model's constants, with those of contact shapes and couplings or without.
template <class T>
int gradient_rows_of(const ModelStructure& s, bool of_rollout) {
  const int shapes = of_rollout ? s.contact_shape_count : 0;
  const int couplings = of_rollout ? s.coupling_count : 0, terms = of_rollout ? s.coupling_term_count : 0;
  if (steps_bodies(s)) return semi_implicit::gradient_rows<T>(s.body_count, s.joint_count, shapes, couplings, terms);
  return featherstone::gradient_rows<T>(s.link_count, shapes, couplings, terms);
}
/// Whether cotangents in so many rows are those of a rollout.
template <class T>
bool are_of_rollout(const ModelStructure& structure, int rows) {
  return rows > gradient_rows_of<T>(structure, false);
}

/// Rows of a model's constants.
template <class T>
int constant_rows_of(const ModelStructure& s) {
  const int shapes = s.contact_shape_count, couplings = s.coupling_count, terms = s.coupling_term_count;
  return steps_bodies(s) ? semi_implicit::constant_rows<T>(s.body_count, s.joint_count, shapes, couplings, terms)
                         : featherstone::constant_rows<T>(s.link_count, shapes, couplings, terms);
}

/// Calls visit with the work of a world as the integrator wants it done.
template <class T, class Visit>
void as_integrator_wants(const WorldConstants<T>& to, Visit&& visit) {
  if (steps_bodies(to.structure)) return visit(semi_implicit::ConstantsOfWorld<T>{to});
  visit(featherstone::ConstantsOfWorld<T>{to});
}
template <class T, class Visit>
void as_integrator_wants(const WorldGradient<T>& to, Visit&& visit) {
  if (steps_bodies(to.structure)) return visit(semi_implicit::ParameterGradientOfWorld<T>{to});
  visit(featherstone::ParameterGradientOfWorld<T>{to});
}
/// Does that of one world on the host, or of `count` of them on a device.
template <class To>
void do_world(const To& to, int world) {
  as_integrator_wants(to, [&](const auto& work) { work(world); });
}
template <class To>
void do_worlds_there(DeviceBackend& backend, int count, const To& to) {
  as_integrator_wants(to, [&](const auto& work) { launch_on_device(backend, count, work); });
}

/// Cotangents of the constants, a column for each world.
template <class T>
struct ColumnsBar {
  const T* first;
  int rows, stride, worlds;
  const WorldStatuses* status;  ///< null: none has stopped
};
/// Gradients of parameters, and along a direction their dots.
struct ParameterSums {
  Parameters& gradient;
  Parameters& dot;
};
/// Turns the cotangents of each world into parameters, then sums those that all worlds share.
template <class T>
void add_columns(const Model& model, const Parameters* direction, const ColumnsBar<T>& bar, const ParameterSums& to) {
  const DirectionView dots(direction);
  const GradientBlock block(model, to.gradient, bar.worlds);
  const ModelStructure structure = structure_of(model);
  PoolVector<double> values(block.numbers()), value_dots;
  const bool of_rollout = are_of_rollout<T>(structure, bar.rows);
  WorldGradient<T> add{structure,  view_of(model), bar.first, bar.stride, block.slots(values.data()),
                       of_rollout, of_rollout,     dots.get()};
  GradientSlots dot_slots;
  if constexpr (kHasDots<Exact<T>>) {
    value_dots.resize(block.numbers());
    dot_slots = block.slots(value_dots.data());
    add.dots = &dot_slots;
  }
  for (int w = 0; w < bar.worlds; ++w) do_world(add, w);
  add_block(block, bar.worlds, bar.status, values, to.gradient);
  if constexpr (kHasDots<Exact<T>>) add_block(block, bar.worlds, bar.status, value_dots, to.dot);
}

/// Constants of worlds that all have parameters of their own, computed where `memory` is and where these are to be
/// read.
template <class T>
Buffer<T> constants_of_worlds(const ModelStructure& structure, const ParametersView& parameters,
                              const ParametersView* direction, int worlds, Memory& memory) {
  Buffer<T> buffer = Buffer<T>::uninitialized(memory, constant_rows_of<T>(structure), worlds);
  T* const numbers = buffer.write_address();
  const int stride = buffer.stride();
  const WorldConstants<T> fill{structure, parameters, numbers, stride, worlds, direction};
  if (DeviceBackend* const backend = memory.backend()) {
    do_worlds_there(*backend, stride, fill);  // the padding too
    return buffer;
  }
  for (int w = 0; w < worlds; ++w) do_world(fill, w);
  // Padding worlds are copies of the last, so that they stay as tame.
  for (int row = 0; row < buffer.rows(); ++row) {
    T* const padding = numbers + static_cast<std::size_t>(row) * stride;
    std::fill(padding + worlds, padding + stride, padding[worlds - 1]);
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
      add_columns<double>(model, nullptr, {here.data(), bar.rows(), 1, 1, nullptr}, {gradient, no_dots});
      return;
    }
    const PlacedModel placed(model, memory);
    const GradientBlock block(model, gradient, bar.worlds());
    const std::size_t bytes = block.numbers() * sizeof(double);
    const std::shared_ptr<std::byte> there = memory.allocate(bytes);
    backend.fill(there.get(), 0, bytes);
    const bool of_rollout = are_of_rollout<T>(placed.structure, bar.rows());
    const WorldGradient<T> add{placed.structure,
                               placed.parameters,
                               bar.address(),
                               bar.stride(),
                               block.slots(reinterpret_cast<double*>(there.get())),
                               of_rollout,
                               of_rollout};
    do_worlds_there(backend, bar.worlds(), add);
    PoolVector<double> here(block.numbers());
    backend.download(here.data(), there.get(), bytes);
    backend.synchronize();
    add_block(block, bar.worlds(), status, here, gradient);
  }
}

}  // namespace

template <class T>
int gradient_rows_of(const Model& model, bool of_rollout) {
  return gradient_rows_of<T>(structure_of(model), of_rollout);
}

template <class T>
Buffer<T> constants_buffer(const Model& model, const Parameters* direction, int worlds, Memory& memory) {
  const DirectionView dots(direction);
  if (model.parameter_worlds() != 1) {
    const PlacedModel placed(model, memory);
    return constants_of_worlds<T>(placed.structure, placed.parameters, dots.get(), worlds, memory);
  }
  if (memory.backend()) return constants_buffer<T>(model, direction, worlds, default_memory()).clone(memory);
  // One column is stored without gaps: a row vector of one "row" whose worlds are the rows.
  const ModelStructure structure = structure_of(model);
  Buffer<T> buffer(memory, 1, constant_rows_of<T>(structure));
  do_world(WorldConstants<T>{structure, view_of(model), buffer.write(), 1, 1, dots.get()}, 0);
  return buffer;
}

template <class T>
void add_constants_gradient(const Model& model, const Parameters* direction, const Buffer<T>& constants_bar,
                            const WorldStatuses* status, Parameters& gradient, Parameters& gradient_dot) {
  const int worlds = constants_bar.worlds();
  if (constants_bar.backend()) return add_from_device(model, constants_bar, status, gradient);
  if (model.parameter_worlds() != 1) {
    const ColumnsBar<T> all{constants_bar.row(0), constants_bar.rows(), constants_bar.stride(), worlds, status};
    return add_columns(model, direction, all, {gradient, gradient_dot});
  }
  // All parameters uniform: sum the rows first, then turn the sums into parameters once.
  PoolVector<Exact<T>> sums(static_cast<std::size_t>(constants_bar.rows()));
  for (int row = 0; row < constants_bar.rows(); ++row) sums[row] = sum_of(constants_bar.row(row), worlds, status);
  const ColumnsBar<Exact<T>> summed{sums.data(), constants_bar.rows(), 1, 1, nullptr};
  add_columns(model, direction, summed, {gradient, gradient_dot});
}

template <class T>
void add_constants_gradient(const WorldParameters& parameters, const Buffer<T>& constants_bar,
                            Buffer<double>& gradient) {
  if constexpr (kHasDots<Exact<T>>) {
    usage_error("dual numbers with values for every world, expected parameters of the model and a direction");
  } else {
    const bool of_rollout = are_of_rollout<T>(parameters.structure(), constants_bar.rows());
    const WorldGradient<T> add{parameters.structure(),
                               parameters.view(),
                               constants_bar.address(),
                               constants_bar.stride(),
                               parameters.slots(gradient),
                               of_rollout,
                               of_rollout};
    if (DeviceBackend* const backend = constants_bar.backend()) {
      return do_worlds_there(*backend, constants_bar.worlds(), add);
    }
    for (int w = 0; w < constants_bar.worlds(); ++w) do_world(add, w);
  }
}

template <class T>
KernelModel<T>::KernelModel(const Model& model, const Parameters* direction, int worlds, Memory& memory,
                            const WorldParameters* parameters)
    : topology(view_of(model.topology)),
      tree(topology),
      constants(parameters
                    ? constants_of_worlds<T>(parameters->structure(), parameters->view(), nullptr, worlds, memory)
                    : constants_buffer<T>(model, direction, worlds, memory)),
      links(model.topology.links, memory),
      contact_shapes(model.topology.contact_shapes, memory),
      contact_pairs(model.topology.contact_pairs, memory),
      couplings(model.topology.couplings, memory),
      coupling_terms(model.topology.coupling_terms, memory),
      geometry(model, memory) {
  tree.contact_point_count = topology.contact_point_count = geometry.points();
  tree.most_points_of_pair = topology.most_points_of_pair = geometry.most_points_of_pair();
  tree.resists_turns = topology.resists_turns =
      std::ranges::any_of(model.topology.contact_shapes, [](const ContactShape& s) { return s.resists_turns; });
  topology.links = links.data();
  topology.contact_shapes = contact_shapes.data();
  topology.contact_pairs = contact_pairs.data();
  topology.couplings = couplings.data();
  topology.coupling_terms = coupling_terms.data();
  if (!model.topology.has_bodies()) return;
  tables.emplace(model);
  placed_tables = {*tables, memory};
  bodies = placed_tables.view();
}

#define BACKDRIVE_INSTANTIATE(T)                                                                                   \
  template struct KernelModel<T>;                                                                                  \
  template int gradient_rows_of<T>(const Model&, bool);                                                            \
  template Buffer<T> constants_buffer<T>(const Model&, const Parameters*, int, Memory&);                           \
  template void add_constants_gradient<T>(const Model&, const Parameters*, const Buffer<T>&, const WorldStatuses*, \
                                          Parameters&, Parameters&);                                               \
  template void add_constants_gradient<T>(const WorldParameters&, const Buffer<T>&, Buffer<double>&);
BACKDRIVE_INSTANTIATE(float)
BACKDRIVE_INSTANTIATE(double)
BACKDRIVE_INSTANTIATE(Dual<double>)
#undef BACKDRIVE_INSTANTIATE

}  // namespace backdrive
