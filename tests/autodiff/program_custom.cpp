#include "tests/autodiff/program_custom.h"

#include <cmath>
#include <stdexcept>

namespace backdrive::test {
namespace {

template <class Number>
Buffer<double> elementwise(const Buffer<double>& shape, Number&& number) {
  Buffer<double> y(shape.rows(), shape.worlds());
  for (int r = 0; r < y.rows(); ++r) {
    for (int w = 0; w < y.worlds(); ++w) y.set(r, w, number(r, w));
  }
  return y;
}

}  // namespace

// Each adjoint goes another of the ways that there are: adding in place, handing over a buffer, handing one to two.
Buffer<double> custom_operation(Tape<double>& tape, plain::OpKind kind, const Buffer<double>& a,
                                const Buffer<double>& b, double factor) {
  using enum plain::OpKind;
  const auto make = [&](auto&& number, auto&& adjoint, std::vector<Buffer<double>> inputs) {
    const Buffer<double> y = elementwise(a, number);
    tape.record({std::move(inputs), {y}, [y, adjoint](Cotangents<double>& bars) {
                   if (bars.find(y)) adjoint(bars, *bars.find(y));
                 }});
    return y;
  };
  // The cotangents are copied as handles: asking for another may move them.
  switch (kind) {
    case product:
      return make([&](int r, int w) { return a(r, w) * b(r, w); },
                  [a, b](Cotangents<double>& bars, Buffer<double> y_bar) {
                    for (int r = 0; r < a.rows(); ++r) {
                      for (int w = 0; w < a.worlds(); ++w) {
                        bars.of(a).write(r)[w] += y_bar(r, w) * b(r, w);
                        bars.of(b).write(r)[w] += y_bar(r, w) * a(r, w);
                      }
                    }
                  },
                  {a, b});
    case sum:
      return make([&](int r, int w) { return a(r, w) + b(r, w); },
                  [a, b](Cotangents<double>& bars, Buffer<double> y_bar) {
                    bars.add(a, y_bar);
                    bars.add(b, y_bar);
                  },
                  {a, b});
    case sine:
      return make([&](int r, int w) { return std::sin(a(r, w)); },
                  [a](Cotangents<double>& bars, Buffer<double> y_bar) {
                    bars.add(a, elementwise(a, [&](int r, int w) { return y_bar(r, w) * std::cos(a(r, w)); }));
                  },
                  {a});
    case scaled:
      return make([&](int r, int w) { return factor * a(r, w); },
                  [a, factor](Cotangents<double>& bars, Buffer<double> y_bar) {
                    Buffer<double>& a_bar = bars.of(a);
                    for (int r = 0; r < a.rows(); ++r) {
                      for (int w = 0; w < a.worlds(); ++w) a_bar.write(r)[w] += factor * y_bar(r, w);
                    }
                  },
                  {a});
    default:
      throw std::logic_error("no custom operation");
  }
}

Buffer<double> detached(const Buffer<double>& buffer, Memory& memory) {
  return detach(buffer, memory);
}

Gradients<double> gradients_of(Tape<double>&& tape, const Seeds<double>& seeds) {
  return std::move(tape).backward(seeds, Disconnected::zero);  // the reference knows zeros, too
}

}  // namespace backdrive::test
