#include "integrators/reference/inverse_dynamics.h"

#include <complex>

#include "engine/error.h"
#include "integrators/reference/link_motion.h"

namespace backdrive::reference {
namespace {

void check_size(const char* what, std::size_t size, int expected) {
  if (size == static_cast<std::size_t>(expected)) return;
  usage_error(std::string(what) + " has " + std::to_string(size) + " numbers, expected " + std::to_string(expected));
}

/// World poses of the links, in kernel order.
struct WorldPose {
  Matrix3<double> rotation;
  Vector3<double> position;
};
std::vector<WorldPose> world_poses(const Model& model, const std::vector<double>& q, int world) {
  check_size("q", q.size(), model.topology.nq);
  const auto motions = link_motions(model, q, world);
  std::vector<WorldPose> poses;
  for (std::size_t i = 0; i < motions.size(); ++i) {
    WorldPose pose{motions[i].rotation, motions[i].position};
    if (const int p = model.topology.links[i].parent; p >= 0) {
      pose.position = poses[p].position + poses[p].rotation * pose.position;
      pose.rotation = poses[p].rotation * motions[i].rotation;
    }
    poses.push_back(pose);
  }
  return poses;
}

}  // namespace

// Table 5.1 of the book, with −gravity as the acceleration of the world.
template <class Scalar>
std::vector<Scalar> inverse_dynamics(const Model& model, const std::vector<Scalar>& q, const std::vector<Scalar>& qd,
                                     const std::vector<Scalar>& qdd, int world) {
  const Topology& t = model.topology;
  check_size("q", q.size(), t.nq);
  check_size("qd", qd.size(), t.nv);
  check_size("qdd", qdd.size(), t.nv);
  const auto motions = link_motions(model, q, world);
  const std::size_t n = t.links.size();
  std::vector<Vector6<Scalar>> v(n), a(n), f(n), gravity(n);
  std::vector<Scalar> tau(t.nv);
  for (std::size_t i = 0; i < n; ++i) {
    const Link& link = t.links[i];
    const LinkMotion<Scalar>& m = motions[i];
    Vector6<Scalar> v_parent = Vector6<Scalar>::Zero(), a_parent = Vector6<Scalar>::Zero();
    for (int k = 0; k < 3; ++k) a_parent[3 + k] = -model.gravity(0, k, world);
    if (link.parent >= 0) {
      v_parent = v[link.parent];
      a_parent = a[link.parent];
    }
    v[i] = m.X * v_parent;
    a[i] = m.X * a_parent;
    const Vector6<Scalar> rate = m.times(qd, link.v);
    v[i] += rate;
    a[i] += m.times(qdd, link.v) + motion_cross<Scalar>(v[i], rate);
    if (m.fixed_in_world) {
      const Matrix3<Scalar> turning = skew<Scalar>(v[i].template head<3>());
      a[i].template head<3>() -= turning * rate.template head<3>();
      a[i].template tail<3>() -= turning * rate.template tail<3>();
    }
    const Matrix6<Scalar> I = link_inertia(model, link, world).template cast<Scalar>();
    // The share of gravity that is compensated, in link axes, without what turns.
    Vector6<Scalar> lift = Vector6<Scalar>::Zero();
    for (int k = 0; k < 3; ++k) lift[3 + k] = model.gravity(0, k, world);
    gravity[i] = m.X * (link.parent >= 0 ? gravity[link.parent] : lift);
    const double share = link.body < 0 ? 0 : model.bodies.gravity_compensation(link.body, 0, world);
    f[i] = I * (a[i] + gravity[i] * Scalar(share)) + force_cross<Scalar>(v[i], I * v[i]);
  }
  for (std::size_t i = n; i-- > 0;) {
    const Link& link = t.links[i];
    for (int k = 0; k < motions[i].dofs(); ++k) {
      tau[link.v + k] =
          (motions[i].S.col(k).transpose() * f[i])(0) + model.joints.armature(link.joint, 0, world) * qdd[link.v + k];
    }
    if (link.parent >= 0) f[link.parent] += motions[i].X.transpose() * f[i];
  }
  return tau;
}

template std::vector<double> inverse_dynamics<double>(const Model&, const std::vector<double>&,
                                                      const std::vector<double>&, const std::vector<double>&, int);
template std::vector<std::complex<double>> inverse_dynamics<std::complex<double>>(
    const Model&, const std::vector<std::complex<double>>&, const std::vector<std::complex<double>>&,
    const std::vector<std::complex<double>>&, int);

double kinetic_energy(const Model& model, const std::vector<double>& q, const std::vector<double>& qd, int world) {
  const Topology& t = model.topology;
  check_size("q", q.size(), t.nq);
  check_size("qd", qd.size(), t.nv);
  const auto motions = link_motions(model, q, world);
  std::vector<Vector6<double>> v(t.links.size());
  double energy = 0;
  for (std::size_t i = 0; i < t.links.size(); ++i) {
    const Link& link = t.links[i];
    v[i].setZero();
    if (link.parent >= 0) v[i] = motions[i].X * v[link.parent];
    v[i] += motions[i].times(qd, link.v);
    for (int k = 0; k < motions[i].dofs(); ++k) {
      energy += 0.5 * model.joints.armature(link.joint, 0, world) * qd[link.v + k] * qd[link.v + k];
    }
    energy += 0.5 * v[i].dot(link_inertia(model, link, world) * v[i]);
  }
  return energy;
}

double potential_energy(const Model& model, const std::vector<double>& q, int world) {
  const auto poses = world_poses(model, q, world);
  const Vector3<double> gravity(model.gravity(0, 0, world), model.gravity(0, 1, world), model.gravity(0, 2, world));
  double energy = 0;
  for (std::size_t i = 0; i < poses.size(); ++i) {
    const Matrix6<double> I = link_inertia(model, model.topology.links[i], world);
    // The upper right block is m [c]×.
    const Vector3<double> first_moment(I(2, 4), I(0, 5), I(1, 3));
    const int body = model.topology.links[i].body;
    const double share = body < 0 ? 1 : 1 - model.bodies.gravity_compensation(body, 0, world);
    energy -= share * gravity.dot(I(3, 3) * poses[i].position + poses[i].rotation * first_moment);
  }
  return energy;
}

std::vector<LinkPose> body_poses(const Model& model, const std::vector<double>& q, int world) {
  const auto poses = world_poses(model, q, world);
  std::vector<LinkPose> result(model.body_names.size());
  for (std::size_t i = 0; i < poses.size(); ++i) {
    if (model.topology.links[i].body < 0) continue;
    LinkPose& pose = result[model.topology.links[i].body];
    for (int k = 0; k < 3; ++k) pose.position[k] = poses[i].position[k];
    for (int k = 0; k < 9; ++k) pose.rotation[k] = poses[i].rotation(k % 3, k / 3);
  }
  return result;
}

}  // namespace backdrive::reference
