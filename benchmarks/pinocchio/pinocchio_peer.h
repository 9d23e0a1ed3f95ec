// Pinocchio's dynamics behind a plain C++ interface, so that a benchmark can time it beside
// Backdrive in one program. No Pinocchio or Eigen type appears here: the peer is built with flags
// of its own (see CMakeLists.txt).
#pragma once

#include <array>
#include <memory>
#include <vector>

namespace backdrive::peers {

// A joint and the body it carries. At q = 0 the body's frame is the joint's frame, placed in the
// parent's body by `rotation` and `position`. Units SI; inertia about the centre of mass, body
// axes.
struct PeerLink {
  enum class Joint { revolute, prismatic, fixed, free };

  int parent = -1;  // index of an earlier link; -1 is the world
  Joint joint = Joint::revolute;
  std::array<double, 9> rotation{1, 0, 0, 0, 1, 0, 0, 0, 1};  // row major
  std::array<double, 3> position{0, 0, 0};
  std::array<double, 3> axis{0, 0, 1};
  double mass = 0;
  std::array<double, 3> com{0, 0, 0};
  std::array<double, 6> inertia{0, 0, 0, 0, 0, 0};  // xx, yy, zz, xy, xz, yz
  double armature = 0;
};

// A tree of links and the workspace for it. Nothing allocates after construction. Arrays have dof()
// entries, one per joint that is not fixed, six for a free one, in the order of the links; q has
// positions(), of a free joint position and quaternion (x, y, z, w). Matrices are dof() x dof(), row
// major.
class PinocchioPeer {
 public:
  // Links must be numbered depth first (each subtree contiguous), as Pinocchio's derivatives
  // require; throws std::invalid_argument otherwise.
  explicit PinocchioPeer(const std::vector<PeerLink>& links, std::array<double, 3> gravity = {0, 0, -9.81});
  ~PinocchioPeer();
  PinocchioPeer(PinocchioPeer&&) noexcept;
  PinocchioPeer& operator=(PinocchioPeer&&) noexcept;

  int dof() const;
  int positions() const;
  // How this peer was compiled, to print beside its times: version, compiler, instruction set.
  static const char* description();

  void aba(const double* q, const double* v, const double* tau, double* qdd);
  void rnea(const double* q, const double* v, const double* qdd, double* tau);

  // Leaves its results in the workspace, where the three functions below find them until the next
  // call. Only the upper triangle of minv() is filled.
  void aba_derivatives(const double* q, const double* v, const double* tau);
  const double* qdd_q() const;
  const double* qdd_v() const;
  const double* minv() const;

  // n steps of semi-implicit Euler under constant tau: v += dt * qdd, then q += dt * v, in place. Not
  // with free joints.
  void steps(double* q, double* v, const double* tau, double dt, int n);

 private:
  struct Workspace;
  std::unique_ptr<Workspace> workspace_;
};

}  // namespace backdrive::peers
