// How much the bodies and joints of a model give way to a force where its file shows them, all else at rest.
#include <Eigen/Geometry>
#include <cmath>
#include <cstdlib>

#include "scenes/robots/mjcf_softness.h"

namespace backdrive::scene {
namespace {

using Vector3 = Eigen::Vector3d;
using Vector6 = Eigen::Matrix<double, 6, 1>;  // angular, linear
using Matrix6 = Eigen::Matrix<double, 6, 6>;

Vector3 vector_of(const Numbers3& x) {
  return {x[0], x[1], x[2]};
}
Eigen::Matrix3d cross_of(const Vector3& x) {
  Eigen::Matrix3d m;
  m << 0, -x.z(), x.y(), x.z(), 0, -x.x(), -x.y(), x.x(), 0;
  return m;
}

/// The articulated-body algorithm without velocities, and after it, from the roots on, of each body the matrix
/// J M⁻¹ Jᵀ of its twist (its velocity after a unit impulse on it). Axes of the world, about the tree's root.
class MobilityFinder {
 public:
  explicit MobilityFinder(MjcfModel& model) : model_(model), places_(model.bodies.size()) {}

  void find() {
    for (std::size_t b = 1; b < places_.size(); ++b) place(static_cast<int>(b));
    for (std::size_t b = places_.size() - 1; b > 0; --b) to_root(static_cast<int>(b));
    for (std::size_t b = 1; b < places_.size(); ++b) to_leaves(static_cast<int>(b));
  }

 private:
  /// One degree of freedom.
  struct Axis {
    int joint;
    Vector6 S, U;
    double D = 0;
  };
  struct Place {
    Pose pose;
    Vector3 origin;  ///< of its tree
    std::vector<Axis> axes;
    Matrix6 inertia = Matrix6::Zero(), mobility = Matrix6::Zero();
  };

  void place(int b) {
    const MjcfBody& body = model_.bodies[b];
    Place& own = places_[b];
    own.pose = body.parent == 0 ? body.pose : places_[body.parent].pose * body.pose;
    own.origin = body.parent == 0 ? vector_of(own.pose.position) : places_[body.parent].origin;
    for (const int j : body.joints) add_axes(j, own);
    const MassProperties<double> mass = placed(body.mass, own.pose);
    const Vector3 com = Vector3(mass.com.x, mass.com.y, mass.com.z) - own.origin;
    const Sym3<double>& J = mass.inertia;
    Eigen::Matrix3d about_com;
    about_com << J.xx, J.xy, J.xz, J.xy, J.yy, J.yz, J.xz, J.yz, J.zz;
    const Eigen::Matrix3d c = cross_of(com);
    own.inertia.topLeftCorner<3, 3>() = about_com - mass.mass * c * c;
    own.inertia.topRightCorner<3, 3>() = mass.mass * c;
    own.inertia.bottomLeftCorner<3, 3>() = -mass.mass * c;
    own.inertia.bottomRightCorner<3, 3>() = mass.mass * Eigen::Matrix3d::Identity();
  }

  void add_axes(int j, Place& own) const {
    const MjcfJoint& joint = model_.joints[j];
    const Vector3 anchor = vector_of((own.pose * at(joint.anchor)).position) - own.origin;
    const auto add = [&](const Vector3& turn, const Vector3& slide) {
      Axis axis{j, Vector6::Zero(), Vector6::Zero()};
      axis.S << turn, slide + anchor.cross(turn);
      own.axes.push_back(axis);
    };
    const Vector3 none = Vector3::Zero();
    if (joint.has_one_degree()) {
      const Vector3 axis = vector_of(turned(own.pose.orientation, joint.axis)).normalized();
      return joint.type == "revolute" ? add(axis, none) : add(none, axis);
    }
    for (int i = 0; i < 3 && joint.type == "free"; ++i) add(none, Vector3::Unit(i));
    for (int i = 0; i < 3; ++i) add(Vector3::Unit(i), none);
  }

  /// As the file has it: mistakes in it are told where the joint becomes part of the scene.
  double armature(int j) const {
    const XmlAttribute* const given = model_.joints[j].element.attribute("armature");
    const double value = given ? std::strtod(given->value.c_str(), nullptr) : 0;
    return std::isfinite(value) && value > 0 ? value : 0;
  }

  void to_root(int b) {
    Place& own = places_[b];
    for (auto axis = own.axes.rbegin(); axis != own.axes.rend(); ++axis) {
      axis->U = own.inertia * axis->S;
      axis->D = axis->S.dot(axis->U) + armature(axis->joint);
      if (axis->D > 0) own.inertia -= axis->U * axis->U.transpose() / axis->D;
    }
    if (const int parent = model_.bodies[b].parent; parent != 0) places_[parent].inertia += own.inertia;
  }

  void to_leaves(int b) {
    MjcfBody& body = model_.bodies[b];
    Place& own = places_[b];
    if (body.parent != 0) own.mobility = places_[body.parent].mobility;
    for (std::size_t i = 0; i < own.axes.size(); ++i) {
      const Axis& axis = own.axes[i];
      if (!(axis.D > 0)) continue;
      const Vector6 passed = own.mobility * axis.U / axis.D;
      const double diagonal = 1 / axis.D + axis.U.dot(passed) / axis.D;
      own.mobility -= passed * axis.S.transpose() + axis.S * passed.transpose();
      own.mobility += diagonal * axis.S * axis.S.transpose();
      MjcfJoint& joint = model_.joints[axis.joint];
      joint.inverse_inertia += diagonal / (joint.has_one_degree() ? 1 : joint.type == "free" ? 6 : 3);
    }
    const MassProperties<double> mass = placed(body.mass, own.pose);
    const Vector3 com = Vector3(mass.com.x, mass.com.y, mass.com.z) - own.origin;
    Eigen::Matrix<double, 3, 6> J;
    J << -cross_of(com), Eigen::Matrix3d::Identity();
    body.inverse_mass = (J * own.mobility * J.transpose()).trace() / 3;
  }

  MjcfModel& model_;
  std::vector<Place> places_;
};

}  // namespace

void find_mjcf_mobility(MjcfModel& model) {
  MobilityFinder(model).find();
}

}  // namespace backdrive::scene
