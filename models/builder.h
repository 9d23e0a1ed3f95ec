#pragma once
#include <array>
#include <limits>
#include <memory>
#include <string>

#include "engine/error.h"
#include "models/model.h"

namespace backdrive {

using Numbers3 = std::array<double, 3>;

struct Frame {
  Numbers3 position{0, 0, 0};
  std::array<double, 4> orientation{0, 0, 0, 1};
};

struct BodyOptions {
  double mass = 0;
  Numbers3 com{0, 0, 0};
  std::array<double, 6> inertia{0, 0, 0, 0, 0, 0};
};

struct LimitOptions {
  double lower = -std::numeric_limits<double>::infinity();
  double upper = std::numeric_limits<double>::infinity();
  double stiffness = 1e3;
  double damping = 10;
};

struct DriveOptions {
  double stiffness = 0;
  double damping = 0;
  double effort_limit = std::numeric_limits<double>::infinity();
};

struct AttachmentOptions {
  double stiffness = 1e7;
  double damping = 0;
  double angular_stiffness = 1e5;
  double angular_damping = 0;
};

struct JointOptions {
  Frame frame;
  /// Closes a loop: the child hangs on another joint already. What places it then is child_frame.
  bool loop = false;
  Frame child_frame;
  Numbers3 axis{0, 0, 1};
  double armature = 0;
  double damping = 0;
  double friction = 0;
  LimitOptions limit;
  /// A joint with a drive gets control channels for its target position and velocity.
  bool driven = false;
  DriveOptions drive;
  AttachmentOptions attachment;
};

struct ShapeOptions {
  GeometryType type = GeometryType::sphere;
  Numbers3 scale{0.1, 0.1, 0.1};
  double margin = 0;
  Frame frame;
  double density = 0;
  double stiffness = 6e4;
  double width = 1e-3;
  double dissipation = 1;
  double friction = 0.8;
  double creep = 1e-5;
  double torsional_friction = 0;
  double rolling_friction = 0;
  CollisionFilter filter = {};
  std::shared_ptr<const ConvexMesh> mesh = nullptr;           ///< of a mesh, whose scale is mostly {1, 1, 1}
  std::shared_ptr<const HeightField> height_field = nullptr;  ///< of a height field; its spacings do not count
};

/// A model that cannot be: `path` names the entry at fault ("bodies/pole/mass").
class ModelError : public Error {
 public:
  ModelError(std::string path, const std::string& message)
      : Error(ErrorKind::input, path + ": " + message), path_(std::move(path)), message_(message) {}
  const std::string& path() const { return path_; }
  const std::string& message() const { return message_; }

 private:
  std::string path_, message_;
};

/// Makes axes and quaternions unit vectors, zeroes unused scale components, then checks the values of all worlds and
/// refreshes the links' features. build() calls it; so does whoever writes parameter values afterwards. Throws
/// ModelError. O((bodies + joints + shapes) · worlds).
void validate(Model& model);

/// Collects bodies, joints and shapes in any order; names must be unique within their kind and joined without `/`.
class ModelBuilder {
 public:
  static constexpr int world = -1;

  void set_gravity(const Numbers3& gravity) { gravity_ = gravity; }
  void set_integrator(Integrator integrator) { model_.topology.integrator = integrator; }
  int add_body(const std::string& name, const BodyOptions& options);
  int add_joint(const std::string& name, JointType type, int parent, int child, const JointOptions& options = {});
  int add_shape(const std::string& name, int body, const ShapeOptions& options);
  /// No shapes of the two bodies (one may be the world) touch, but for included pairs.
  void exclude_contacts(int body_a, int body_b) { model_.excluded_contacts.push_back({body_a, body_b}); }
  /// The two shapes may touch whatever their filters, the joints and exclude_contacts say.
  void include_contact(int shape_a, int shape_b) { model_.included_contacts.push_back({shape_a, shape_b}); }

  /// Checks everything and orders the tree. Throws ModelError: a body without or with two joints (but for those that
  /// close loops), a circle of joints that does not hang on the world, negative mass, an inertia no body can have, a
  /// joint that moves no inertia, a zero axis, non-finite numbers, a mesh shape without a mesh, included contacts that
  /// cannot be, what the integrator cannot do: loops with featherstone, bodies without inertia with
  /// semi_implicit.
  Model build() const;

 private:
  Model model_;
  std::vector<bool> driven_;
  Numbers3 gravity_{0, 0, -9.81};
};

}  // namespace backdrive
