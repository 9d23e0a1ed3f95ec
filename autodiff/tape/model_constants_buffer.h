#pragma once
// Between a model's parameters and the rows that the kernels read and write.
#include <optional>

#include "autodiff/tape/world_parameters.h"
#include "engine/kernel_array.h"
#include "engine/memory.h"
#include "engine/status.h"
#include "integrators/contact/geometry_table.h"
#include "integrators/rollout/arguments.h"
#include "integrators/semi_implicit/tables.h"
#include "models/model.h"

namespace backdrive {

/// Rows of the cotangents of a model's constants, with those of contact shapes and couplings, as rollouts have them, or
/// without.
template <class T>
int gradient_rows_of(const Model& model, bool of_rollout);

/// Rows as Launch::constants wants them: one column when all parameters are uniform, else one per world.
template <class T>
Buffer<T> constants_buffer(const Model& model, const Parameters* direction, int worlds, Memory& memory);

/// A model as the kernels read it, where `memory` is. On the host good as long as the model. Values of `parameters`,
/// unless null, stand in place of the model's.
template <class T>
struct KernelModel {
  KernelModel(const Model& model, const Parameters* direction, int worlds, Memory& memory,
              const WorldParameters* parameters = nullptr);

  KernelModel(const KernelModel&) = delete;
  KernelModel& operator=(const KernelModel&) = delete;
  KernelModel(KernelModel&&) = default;

  TopologyView topology, tree;  ///< as kernels and as the host read it
  Buffer<T> constants;
  KernelArray<Link> links;
  KernelArray<ContactShape> contact_shapes;
  KernelArray<ContactPair> contact_pairs;
  KernelArray<Coupling> couplings;
  KernelArray<CouplingTerm> coupling_terms;
  GeometryTable<ScalarOf<T>> geometry;
  std::optional<semi_implicit::Tables> tables;  ///< of the integrator semi_implicit
  semi_implicit::PlacedTables placed_tables;
  semi_implicit::TablesView bodies{};  ///< theirs, for the host to hand on: Launch::bodies
};

/// Turns cotangents of those rows ([row][world], gradient_rows_of()) into gradients of the
/// parameters that ask for one, and adds them. Sums over worlds do not depend on the order of worlds, and leave out
/// those that stopped.
template <class T>
void add_constants_gradient(const Model& model, const Parameters* direction, const Buffer<T>& constants_bar,
                            const WorldStatuses* status, Parameters& gradient, Parameters& gradient_dot);
/// The same of the fields that have values of their own in every world, added where they are
/// (WorldParameters::gradient).
template <class T>
void add_constants_gradient(const WorldParameters& parameters, const Buffer<T>& constants_bar,
                            Buffer<double>& gradient);

}  // namespace backdrive
