#include "integrators/contact/pair_stiffness.h"

#include <cmath>
#include <numbers>

#include "integrators/contact/shape_parameters.h"
#include "integrators/contact/springs.h"

namespace backdrive::contact {

double PairStiffness::impact() const {
  return std::numbers::pi * std::sqrt(mass / stiffness);
}

std::vector<PairStiffness> pair_stiffnesses(const Model& model, double time_step, int world) {
  const ModelStructure structure = structure_of(model);
  const ParametersView view = view_of(model);
  const ParameterReader<double> read{view, nullptr, world < model.parameter_worlds() ? world : 0};
  struct Side {
    ShapeConstants<double> constants;
    double mass;  ///< 0: nothing moves it
  };
  std::vector<Side> sides;
  for (const ContactShape& shape : model.topology.contact_shapes) {
    sides.push_back({shape_constants(structure, read, shape, identity3<double>()),
                     shape.fixed ? 0 : tree_mass(structure, read, shape.root)});
  }
  std::vector<PairStiffness> result;
  for (const ContactPair& pair : model.topology.contact_pairs) {
    const Side &a = sides[pair.a], &b = sides[pair.b];
    const PairSprings<double> springs = pair_springs(a.constants, b.constants, time_step);
    const double mass = a.mass > 0 && b.mass > 0 ? a.mass * b.mass / (a.mass + b.mass) : a.mass + b.mass;
    result.push_back({springs.a * springs.b / (springs.a + springs.b), mass});
  }
  return result;
}

}  // namespace backdrive::contact
