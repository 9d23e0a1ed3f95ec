// The masses of bodies, as MuJoCo's compiler finds them.
#include <Eigen/Eigenvalues>
#include <algorithm>

#include "models/model_validity.h"
#include "models/parameter_list.h"
#include "scenes/robots/mjcf_model.h"

namespace backdrive::scene {
namespace {

class MjcfMassFinder : MjcfReading {
 public:
  MjcfMassFinder(const MjcfReading& reading, MjcfModel& model) : MjcfReading(reading), model_(model) {}

  void find_masses() {
    const MjcfCompiler& compiler = document_.compiler();
    double total = 0;
    for (std::size_t b = 1; b < model_.bodies.size(); ++b) {
      MjcfBody& body = model_.bodies[b];
      const bool from_geoms = compiler.inertia == MjcfCompiler::Inertia::from_geoms ||
                              (compiler.inertia == MjcfCompiler::Inertia::automatic && !body.inertial);
      if (from_geoms) {
        for (const MjcfGeom& geom : body.geoms) mistakes_.attempt([&] { add_mass(body, geom); });
      } else if (body.inertial) {
        mistakes_.attempt([&] { body.mass = mass_of(*body.inertial); });
      }
      bound(body);
      total += body.mass.mass;
    }
    if (compiler.total_mass > 0 && total > 0) {
      const double factor = compiler.total_mass / total;
      for (MjcfBody& body : model_.bodies) {
        body.mass.mass *= factor;
        Sym3<double>& J = body.mass.inertia;
        J = {J.xx * factor, J.yy * factor, J.zz * factor, J.xy * factor, J.xz * factor, J.yz * factor};
      }
    }
  }

 private:
  void add_mass(MjcfBody& body, const MjcfGeom& geom) const {
    const MjcfCompiler& compiler = document_.compiler();
    const int group = values_.whole_or(geom.element, "group", 0);
    if (group >= compiler.first_group && group <= compiler.last_group) body.mass = combined(body.mass, geom.mass);
  }

  MassProperties<double> mass_of(const XmlElement& inertial) const {
    MassProperties<double> own{};
    own.mass = values_.not_negative(inertial, values_.attribute(inertial, "mass", "kg"));
    const XmlAttribute *const full = inertial.attribute("fullinertia"), *const axes = inertial.attribute("diaginertia");
    if (full) {
      const auto J = values_.numbers<6>(inertial, *full);
      own.inertia = {J[0], J[1], J[2], J[3], J[4], J[5]};
    } else if (axes) {
      const auto J = values_.numbers<3>(inertial, *axes);
      own.inertia = {J[0], J[1], J[2], 0, 0, 0};
    } else {
      values_.missing(inertial, "the attribute 'diaginertia' or 'fullinertia'");
    }
    values_.attribute(inertial, "pos", "of the centre of mass");
    return placed(own, document_.pose(inertial));
  }

  /// Lower bounds of <compiler>, and its balance: an inertia that no body has becomes that of a ball.
  void bound(MjcfBody& body) const {
    const MjcfCompiler& compiler = document_.compiler();
    body.mass.mass = std::max(body.mass.mass, compiler.least_mass);
    Sym3<double>& J = body.mass.inertia;
    const PrincipalMoments moments = principal_moments(J);
    if (compiler.balance_inertia && fault_of(moments) != InertiaFault::none) {
      const double mean = (J.xx + J.yy + J.zz) / 3;
      J = {mean, mean, mean, 0, 0, 0};
    }
    if (compiler.least_inertia > 0 && principal_moments(J).least < compiler.least_inertia) J = raised(J);
  }

  /// Principal moments below the bound raised to it, about the same axes.
  Sym3<double> raised(const Sym3<double>& J) const {
    Eigen::Matrix3d matrix;
    matrix << J.xx, J.xy, J.xz, J.xy, J.yy, J.yz, J.xz, J.yz, J.zz;
    const Eigen::SelfAdjointEigenSolver<Eigen::Matrix3d> axes(matrix);
    const Eigen::Vector3d moments = axes.eigenvalues().cwiseMax(document_.compiler().least_inertia);
    matrix = axes.eigenvectors() * moments.asDiagonal() * axes.eigenvectors().transpose();
    return {matrix(0, 0), matrix(1, 1), matrix(2, 2), matrix(0, 1), matrix(0, 2), matrix(1, 2)};
  }

  MjcfModel& model_;
};

}  // namespace

void find_mjcf_masses(const MjcfReading& reading, MjcfModel& model) {
  MjcfMassFinder(reading, model).find_masses();
}

}  // namespace backdrive::scene
