#include "pinocchio_peer.h"

#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <pinocchio/multibody.hpp>

#include <stdexcept>
#include <string>
#include <utility>

namespace backdrive::peers {
namespace {

using Vector = Eigen::VectorXd;
using ConstView = Eigen::Map<const Vector>;
using View = Eigen::Map<Vector>;

pinocchio::SE3 placement(const PeerLink& link) {
  using RowMajor = Eigen::Matrix<double, 3, 3, Eigen::RowMajor>;
  return {Eigen::Map<const RowMajor>(link.rotation.data()), Eigen::Map<const Eigen::Vector3d>(link.position.data())};
}

pinocchio::Inertia inertia(const PeerLink& link) {
  const auto& [xx, yy, zz, xy, xz, yz] = link.inertia;
  Eigen::Matrix3d about_com;
  about_com << xx, xy, xz, xy, yy, yz, xz, yz, zz;
  return {link.mass, Eigen::Map<const Eigen::Vector3d>(link.com.data()), about_com};
}

// Joints along x, y or z have types of their own, whose sparsity Pinocchio exploits: give it that
// advantage, as its URDF reader does.
pinocchio::JointModel joint(const PeerLink& link) {
  using namespace pinocchio;
  if (link.joint == PeerLink::Joint::free) return JointModelFreeFlyer();
  const Eigen::Vector3d axis = Eigen::Map<const Eigen::Vector3d>(link.axis.data()).normalized();
  const auto along = [&](int i) { return axis == Eigen::Vector3d::Unit(i); };
  if (link.joint == PeerLink::Joint::revolute) {
    if (along(0)) return JointModelRX();
    if (along(1)) return JointModelRY();
    if (along(2)) return JointModelRZ();
    return JointModelRevoluteUnaligned(axis);
  }
  if (along(0)) return JointModelPX();
  if (along(1)) return JointModelPY();
  if (along(2)) return JointModelPZ();
  return JointModelPrismaticUnaligned(axis);
}

pinocchio::Model build(const std::vector<PeerLink>& links, const std::array<double, 3>& gravity) {
  pinocchio::Model model;
  model.gravity.linear() << gravity[0], gravity[1], gravity[2];

  // Where link i hangs: Pinocchio merges fixed joints into the moving joint above them.
  std::vector<pinocchio::JointIndex> carrier(links.size());
  std::vector<pinocchio::SE3> offset(links.size(), pinocchio::SE3::Identity());

  for (std::size_t i = 0; i < links.size(); ++i) {
    const PeerLink& link = links[i];
    if (link.parent < -1 || link.parent >= static_cast<int>(i))
      throw std::invalid_argument("peer link " + std::to_string(i) + ": parent must be an earlier link or -1");
    const bool root = link.parent < 0;
    const pinocchio::JointIndex parent = root ? 0 : carrier[link.parent];
    const pinocchio::SE3 frame = root ? placement(link) : offset[link.parent] * placement(link);

    if (link.joint == PeerLink::Joint::fixed) {
      carrier[i] = parent;
      offset[i] = frame;
    } else {
      // Depth first: the parent must be the newest joint or one of its ancestors.
      pinocchio::JointIndex ancestor = model.njoints - 1;
      while (ancestor > parent) ancestor = model.parents[ancestor];
      if (ancestor != parent)
        throw std::invalid_argument("peer link " + std::to_string(i) + ": links must be numbered depth first");
      carrier[i] = model.addJoint(parent, joint(link), frame, "joint" + std::to_string(i));
      if (link.joint != PeerLink::Joint::free) model.armature[model.nv - 1] = link.armature;
    }
    model.appendBodyToJoint(carrier[i], inertia(link), offset[i]);
  }
  return model;
}

}  // namespace

struct PinocchioPeer::Workspace {
  explicit Workspace(pinocchio::Model built) : model(std::move(built)), data(model) {}

  // Views of plain arrays go to Pinocchio as they are: nothing is copied on the way in.
  ConstView view(const double* values) const { return {values, model.nv}; }
  ConstView positions(const double* values) const { return {values, model.nq}; }
  View view(double* values) const { return {values, model.nv}; }

  pinocchio::Model model;
  pinocchio::Data data;
};

PinocchioPeer::PinocchioPeer(const std::vector<PeerLink>& links, std::array<double, 3> gravity)
    : workspace_(std::make_unique<Workspace>(build(links, gravity))) {}
PinocchioPeer::~PinocchioPeer() = default;
PinocchioPeer::PinocchioPeer(PinocchioPeer&&) noexcept = default;
PinocchioPeer& PinocchioPeer::operator=(PinocchioPeer&&) noexcept = default;

int PinocchioPeer::dof() const {
  return workspace_->model.nv;
}

int PinocchioPeer::positions() const {
  return workspace_->model.nq;
}

const char* PinocchioPeer::description() {
#ifdef PINOCCHIO_ENABLE_TEMPLATE_INSTANTIATION
  return "Pinocchio " PINOCCHIO_VERSION ", its wheel's shared library";
#else
#ifdef __clang__
#define BACKDRIVE_PEER_COMPILER __VERSION__
#else
#define BACKDRIVE_PEER_COMPILER "GCC " __VERSION__
#endif
  return "Pinocchio " PINOCCHIO_VERSION ", its headers by " BACKDRIVE_PEER_COMPILER ", -march=native";
#endif
}

void PinocchioPeer::aba(const double* q, const double* v, const double* tau, double* qdd) {
  Workspace& w = *workspace_;
  w.view(qdd) = pinocchio::aba(w.model, w.data, w.positions(q), w.view(v), w.view(tau), pinocchio::Convention::LOCAL);
}

void PinocchioPeer::rnea(const double* q, const double* v, const double* qdd, double* tau) {
  Workspace& w = *workspace_;
  w.view(tau) = pinocchio::rnea(w.model, w.data, w.positions(q), w.view(v), w.view(qdd));
}

void PinocchioPeer::aba_derivatives(const double* q, const double* v, const double* tau) {
  Workspace& w = *workspace_;
  pinocchio::computeABADerivatives(w.model, w.data, w.positions(q), w.view(v), w.view(tau));
}

const double* PinocchioPeer::qdd_q() const {
  return workspace_->data.ddq_dq.data();
}
const double* PinocchioPeer::qdd_v() const {
  return workspace_->data.ddq_dv.data();
}
const double* PinocchioPeer::minv() const {
  return workspace_->data.Minv.data();
}

void PinocchioPeer::steps(double* q, double* v, const double* tau, double dt, int n) {
  Workspace& w = *workspace_;
  View q_view = w.view(q), v_view = w.view(v);
  for (int i = 0; i < n; ++i) {
    v_view += dt * pinocchio::aba(w.model, w.data, q_view, v_view, w.view(tau), pinocchio::Convention::LOCAL);
    q_view += dt * v_view;
  }
}

}  // namespace backdrive::peers
