#include "autodiff/model_constants_buffer.h"

#include "engine/dual.h"
#include "engine/exact_sum.h"
#include "models/fields.h"

namespace backdrive {
namespace {

/// The number type in which parameters are turned into constants.
template <class T>
using Exact = std::conditional_t<std::is_same_v<T, Dual<double>>, Dual<double>, double>;

template <class C>
void copy_column(const ModelConstants<C>& constants, auto&& put) {
  int row = 0;
  const auto copy = [&](const void* from, std::size_t bytes) {
    const C* numbers = static_cast<const C*>(from);
    for (std::size_t k = 0; k < bytes / sizeof(C); ++k) put(row++, numbers[k]);
  };
  copy(constants.links.data(), constants.links.size() * sizeof(constants.links[0]));
  copy(constants.alignment.data(), constants.alignment.size() * sizeof(constants.alignment[0]));
  copy(&constants.gravity, sizeof(constants.gravity));
}

/// Cotangents of the constants of one world, or of the sum of all.
template <class C>
struct ConstantsBar {
  PoolVector<LinkGradient<C>> links;
  Vec3<C> gravity;

  C& number(int row) {
    const int in_links = static_cast<int>(links.size()) * kLinkGradients<C>;
    return row < in_links ? reinterpret_cast<C*>(links.data())[row] : (&gravity.x)[row - in_links];
  }
};

/// Adds what is asked for of `from`, whose parameters all have one world, to world `world` of `to`.
void add_requested(const Model& model, const Parameters& from, int world, Parameters& to) {
  for (const Field& field : fields()) {
    Parameter& target = field.of(to);
    for (int item = 0; item < target.items(); ++item) {
      if (!field.in(model).requires_grad(item)) continue;
      for (int c = 0; c < target.components(); ++c) {
        target.at(item, c, target.uniform() ? 0 : world) += field.in(from)(item, c);
      }
    }
  }
}

bool takes_part(const WorldStatuses* status, int world) {
  return !status || !(*status)[world].stopped();
}

/// All parameters uniform: sum the rows first, then turn the sums into parameters once.
template <class T>
void add_uniform(const Model& model, const Parameters* direction, const Buffer<T>& bar, const WorldStatuses* status,
                 Parameters& gradient, Parameters& gradient_dot) {
  using C = Exact<T>;
  ConstantsBar<C> sum;
  sum.links.resize(model.topology.links.size());
  thread_local std::vector<double> values, dots;
  for (int row = 0; row < bar.rows(); ++row) {
    values.clear();
    dots.clear();
    for (int w = 0; w < bar.worlds(); ++w) {
      if (!takes_part(status, w)) continue;
      values.push_back(static_cast<double>(value_of(bar(row, w))));
      if constexpr (!std::is_same_v<C, double>) dots.push_back(bar(row, w).dot);
    }
    C& number = sum.number(row);
    number = order_independent_sum(values.data(), values.size());
    if constexpr (!std::is_same_v<C, double>) {
      number.dot = order_independent_sum(dots.data(), dots.size());
    }
  }
  Parameters value = zero_parameters(model), dot = value;
  add_parameter_gradient<C>(model, 0, direction, sum.links, sum.gravity, value, &dot);
  add_requested(model, value, 0, gradient);
  if constexpr (!std::is_same_v<C, double>) add_requested(model, dot, 0, gradient_dot);
}

/// Some parameters differ from world to world: turn each world's cotangents into parameters, then sum the uniform ones.
template <class T>
void add_per_world(const Model& model, const Parameters* direction, const Buffer<T>& bar, const WorldStatuses* status,
                   Parameters& gradient, Parameters& gradient_dot) {
  using C = Exact<T>;
  const int worlds = bar.worlds();
  Parameters value = zero_parameters(model, worlds), dot = value;
  ConstantsBar<C> world_bar;
  world_bar.links.resize(model.topology.links.size());
  for (int w = 0; w < worlds; ++w) {
    for (int row = 0; row < bar.rows(); ++row) world_bar.number(row) = C(bar(row, w));
    add_parameter_gradient<C>(model, w, direction, world_bar.links, world_bar.gravity, value, &dot);
  }
  const auto collect = [&](const Parameters& from, Parameters& to) {
    PoolVector<double> column;
    for (const Field& field : fields()) {
      Parameter& target = field.of(to);
      const Parameter& source = field.in(from);
      for (int item = 0; item < target.items(); ++item) {
        if (!field.in(model).requires_grad(item)) continue;
        for (int c = 0; c < target.components(); ++c) {
          if (!target.uniform()) {
            for (int w = 0; w < worlds; ++w) target.at(item, c, w) += source(item, c, w);
            continue;
          }
          column.clear();
          for (int w = 0; w < worlds; ++w) {
            if (takes_part(status, w)) column.push_back(source(item, c, w));
          }
          target.at(item, c) += order_independent_sum(column.data(), column.size());
        }
      }
    }
  };
  collect(value, gradient);
  if constexpr (!std::is_same_v<C, double>) collect(dot, gradient_dot);
}

}  // namespace

template <class T>
Buffer<T> constants_buffer(const Model& model, const Parameters* direction, int worlds, Memory& memory) {
  using C = Exact<T>;
  thread_local ModelConstants<C> constants;
  const int links = static_cast<int>(model.topology.links.size());
  const bool uniform = model.parameter_worlds() == 1;
  const int columns = uniform ? 1 : worlds;
  // One column is stored without gaps: a row vector of one "row" whose worlds are the rows.
  const int rows = links * (kLinkConstants<C> + 9) + 3;
  Buffer<T> buffer = uniform ? Buffer<T>(memory, 1, rows) : Buffer<T>(memory, rows, columns);
  T* numbers = buffer.write();
  const std::size_t stride = uniform ? 1 : buffer.stride();
  for (int w = 0; w < columns; ++w) {
    model_constants(model, w, direction, constants);
    copy_column(constants, [&](int row, const C& x) { numbers[row * stride + w] = T(x); });
  }
  // Padding worlds are copies of the last, so that they stay as tame.
  if (!uniform) {
    for (int row = 0; row < rows; ++row) {
      for (int w = columns; w < buffer.stride(); ++w) numbers[row * stride + w] = numbers[row * stride + columns - 1];
    }
  }
  return buffer;
}

template <class T>
void add_constants_gradient(const Model& model, const Parameters* direction, const Buffer<T>& constants_bar,
                            const WorldStatuses* status, Parameters& gradient, Parameters& gradient_dot) {
  if (model.parameter_worlds() == 1) {
    add_uniform(model, direction, constants_bar, status, gradient, gradient_dot);
  } else {
    add_per_world(model, direction, constants_bar, status, gradient, gradient_dot);
  }
}

#define BACKDRIVE_INSTANTIATE(T)                                                                                   \
  template Buffer<T> constants_buffer<T>(const Model&, const Parameters*, int, Memory&);                           \
  template void add_constants_gradient<T>(const Model&, const Parameters*, const Buffer<T>&, const WorldStatuses*, \
                                          Parameters&, Parameters&);
BACKDRIVE_INSTANTIATE(float)
BACKDRIVE_INSTANTIATE(double)
BACKDRIVE_INSTANTIATE(Dual<double>)

}  // namespace backdrive
