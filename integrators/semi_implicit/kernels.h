#pragma once
// The launches of the semi-implicit integrator, compiled once per instruction set as featherstone's are, and with the
// same arguments: a state has the coordinates of all joints and, behind them, the poses and velocities of all bodies
// (Topology). The bodies are what is stepped; the joints' rows are read off after every step. On the processor; what
// devices run is in device_kernels.h.
#include "integrators/featherstone/kernels.h"
#include "integrators/semi_implicit/tables.h"

namespace backdrive::semi_implicit {

/// Bodies from the coordinates of the tree's joints, and the coordinates of joints that close loops from the bodies.
template <class T>
struct PlaceArguments {
  Launch<T> launch;
  const T *q, *qd;                                            ///< [nq], [nv] rows: those of the tree's joints are read
  T *q_placed, *qd_placed;                                    ///< out, all rows; not of the adjoint
  const T *q_placed_bar = nullptr, *qd_placed_bar = nullptr;  ///< adjoint only, from here on; null: zeros
  T *q_bar = nullptr, *qd_bar = nullptr;                      ///< out
  T* constants_bar = nullptr;                                 ///< out, gradient_rows(); null: not asked for
};

/// Entry points of one instruction set.
template <class T>
struct KernelTable : backdrive::KernelTable<T> {
  void (*place)(const PlaceArguments<T>&, int begin, int end, std::byte* scratch);
  void (*place_adjoint)(const PlaceArguments<T>&, int begin, int end, std::byte* scratch);
};

/// The kernels for this processor; T is float, double or Dual<double>.
template <class T>
const KernelTable<T>& kernels();
template <>
const KernelTable<float>& kernels<float>();
template <>
const KernelTable<double>& kernels<double>();
template <>
const KernelTable<Dual<double>>& kernels<Dual<double>>();

}  // namespace backdrive::semi_implicit
