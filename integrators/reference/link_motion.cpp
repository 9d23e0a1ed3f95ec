#include "integrators/reference/link_motion.h"

#include <cmath>
#include <complex>

namespace backdrive::reference {
namespace {

Vector3<double> vector_at(const Parameter& p, int item, int world) {
  return {p(item, 0, world), p(item, 1, world), p(item, 2, world)};
}

Matrix3<double> rotation_at(const Parameter& p, int item, int world) {
  return Eigen::Quaterniond(p(item, 3, world), p(item, 0, world), p(item, 1, world), p(item, 2, world))
      .toRotationMatrix();
}

/// Inertia about the origin from mass, com and inertia about the com (2.63).
Matrix6<double> rigid_body(double mass, const Vector3<double>& com, const Matrix3<double>& J) {
  const Matrix3<double> c = skew<double>(com);
  Matrix6<double> I;
  I << J + mass * c * c.transpose(), mass * c, mass * c.transpose(), mass * Matrix3<double>::Identity();
  return I;
}

struct Solid {
  double volume;            ///< m³
  Vector3<double> inertia;  ///< principal, per unit of density, about the centre, m⁵
};

/// Textbook formulas of homogeneous solids.
Solid solid(GeometryType type, const Vector3<double>& s) {
  const auto of_squares = [](double volume, double factor, const Vector3<double>& h) {
    const Vector3<double> k = h.cwiseProduct(h) * (factor * volume);
    return Solid{volume, {k.y() + k.z(), k.x() + k.z(), k.x() + k.y()}};
  };
  const double r = s.x(), h = s.y();
  const auto cylinder = [&] {
    const double m = M_PI * r * r * 2 * h, across = m * (3 * r * r + 4 * h * h) / 12;
    return Solid{m, {across, across, m * r * r / 2}};
  };
  switch (type) {
    case GeometryType::plane:
    case GeometryType::mesh:
    case GeometryType::height_field:
      break;
    case GeometryType::sphere:
      return of_squares(4 * M_PI / 3 * r * r * r, 0.2, {r, r, r});
    case GeometryType::ellipsoid:
      return of_squares(4 * M_PI / 3 * s.prod(), 0.2, s);
    case GeometryType::box:
      return of_squares(8 * s.prod(), 1.0 / 3, s);
    case GeometryType::cylinder:
      return cylinder();
    case GeometryType::capsule: {
      // Two half balls at the ends; each has its centre 3/8 r from its flat side, and 83/320 m r² about it.
      Solid result = cylinder();
      const double half = 2 * M_PI / 3 * r * r * r, out = h + 3 * r / 8;
      const double across = 2 * half * (83.0 / 320 * r * r + out * out);
      result.volume += 2 * half;
      result.inertia += Vector3<double>(across, across, 2 * half * 0.4 * r * r);
      return result;
    }
  }
  return {0, {0, 0, 0}};
}

template <class Scalar>
Matrix3<Scalar> turn(const Vector3<double>& axis, const Scalar& angle) {
  using std::cos;
  using std::sin;
  const Matrix3<Scalar> K = skew<double>(axis).cast<Scalar>();  // Rodrigues
  return Matrix3<Scalar>::Identity() + K * sin(angle) + K * K * (Scalar(1) - cos(angle));
}

}  // namespace

Matrix6<double> link_inertia(const Model& model, const Link& link, int world) {
  const int b = link.body;
  if (b < 0) return Matrix6<double>::Zero();
  const Parameter& J = model.bodies.inertia;
  const auto j = [&](int k) { return J(b, k, world); };
  Matrix3<double> about_com;
  about_com << j(0), j(3), j(4), j(3), j(1), j(5), j(4), j(5), j(2);
  Matrix6<double> I = rigid_body(model.bodies.mass(b, 0, world), vector_at(model.bodies.com, b, world), about_com);
  for (std::size_t s = 0; s < model.shape_bodies.size(); ++s) {
    if (model.shape_bodies[s] != b) continue;
    const int item = static_cast<int>(s);
    const double density = model.shapes.density(item, 0, world);
    const Solid one = solid(model.shape_types[s], vector_at(model.shapes.geometry.scale, item, world));
    const Matrix3<double> R = rotation_at(model.shapes.frame.orientation, item, world);
    const Vector3<double> inertia = one.inertia * density;
    I += rigid_body(density * one.volume, vector_at(model.shapes.frame.position, item, world),
                    R * inertia.asDiagonal() * R.transpose());
  }
  return I;
}

namespace {

Vector3<double> link_axis(const Model& model, const Link& link, int world) {
  switch (link.axis) {
    case LinkAxis::parameter:
      break;
    case LinkAxis::x:
      return Vector3<double>::UnitX();
    case LinkAxis::y:
      return Vector3<double>::UnitY();
    case LinkAxis::z:
      return Vector3<double>::UnitZ();
  }
  return vector_at(model.joints.axis, link.joint, world);
}

/// Of four numbers, by the product of quaternions: R v = q v q*.
template <class Scalar>
Matrix3<Scalar> quaternion_rotation(const Scalar* q) {
  const Vector3<Scalar> v(q[0], q[1], q[2]);
  const Matrix3<Scalar> K = skew<Scalar>(v);
  return Matrix3<Scalar>::Identity() + K * q[3] * Scalar(2) + K * K * Scalar(2);
}

/// What the joint adds to its placement.
template <class Scalar>
void move(const Model& model, const Link& link, const Scalar* q, int world, LinkMotion<Scalar>& m) {
  const Matrix3<Scalar> placed = m.rotation;
  const Vector3<Scalar> axis = link_axis(model, link, world).template cast<Scalar>();
  m.S.setZero(6, joint_size(link.type).nv);
  switch (link.type) {
    case JointType::revolute:
      m.S.template topRows<3>() = axis;
      m.rotation = placed * turn<Scalar>(link_axis(model, link, world), q[0]);
      break;
    case JointType::prismatic:
      m.S.template bottomRows<3>() = axis;
      m.position += placed * axis * q[0];
      break;
    case JointType::ball:
      m.S.template topRows<3>().setIdentity();
      m.rotation = placed * quaternion_rotation(q);
      break;
    case JointType::free: {
      const Matrix3<Scalar> turned = quaternion_rotation(q);
      m.S.template topLeftCorner<3, 3>() = m.S.template bottomRightCorner<3, 3>() = turned.transpose();
      m.fixed_in_world = true;
      m.position += placed * Vector3<Scalar>(q[4], q[5], q[6]);
      m.rotation = placed * turned;
      break;
    }
    default:
      break;
  }
}

}  // namespace

template <class Scalar>
std::vector<LinkMotion<Scalar>> link_motions(const Model& model, const std::vector<Scalar>& q, int world) {
  std::vector<LinkMotion<Scalar>> motions;
  for (const Link& link : model.topology.links) {
    LinkMotion<Scalar> m;
    m.rotation.setIdentity();
    m.position.setZero();
    if (link.first) {
      m.rotation = rotation_at(model.joints.frame.orientation, link.joint, world).template cast<Scalar>();
      m.position = vector_at(model.joints.frame.position, link.joint, world).template cast<Scalar>();
    }
    move(model, link, q.data() + link.q, world, m);
    const Matrix3<Scalar> E = m.rotation.transpose();
    m.X << E, Matrix3<Scalar>::Zero(), -E * skew<Scalar>(m.position), E;
    motions.push_back(m);
  }
  return motions;
}

template std::vector<LinkMotion<double>> link_motions<double>(const Model&, const std::vector<double>&, int);
template std::vector<LinkMotion<std::complex<double>>> link_motions<std::complex<double>>(
    const Model&, const std::vector<std::complex<double>>&, int);

}  // namespace backdrive::reference
