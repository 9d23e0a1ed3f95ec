#pragma once
// What is simulated: a tree of bodies and joints with shapes, constant during a rollout.
//
// Units SI; z up; quaternions (x, y, z, w); inertias as six numbers xx, yy, zz, xy, xz, yz; 6-vectors angular first.
// Everything that has a gradient is a Parameter, nested as users write it: model.joints.limit.lower. The one table of
// them is in fields.h.
#include <string>
#include <vector>

#include "engine/generation.h"
#include "engine/pool_containers.h"
#include "models/names.h"

namespace backdrive {

/// Numbers of one kind, one row of `components` per item (body, joint or shape), the same for all worlds or one set per
/// world. A gradient with respect to a Parameter is a Parameter of the same shape. Copies share nothing.
class Parameter {
 public:
  explicit Parameter(int components = 1, double fill = 0) : components_(components), fill_(fill) {}

  /// 0 in what was moved from.
  int items() const { return static_cast<int>(requires_grad_.size()); }
  int components() const { return components_; }
  /// 1 when uniform (all worlds share the values).
  int worlds() const { return worlds_; }
  bool uniform() const { return worlds_ == 1; }

  /// Value for a world; a uniform parameter has the same one for every world. O(1).
  double operator()(int item, int component = 0, int world = 0) const {
    return values_[index(item, component, worlds_ == 1 ? 0 : world)];
  }
  double& at(int item, int component = 0, int world = 0) { return values_[index(item, component, world)]; }
  /// The same value in every world.
  void set(int item, int component, double value) {
    for (int w = 0; w < worlds_; ++w) at(item, component, w) = value;
  }
  /// Appends or removes items; new ones hold the fill value and ask for no gradient.
  void resize(int items);
  /// Gives each of `worlds` worlds its own copy of the values (of the first world's when it already had some).
  void spread(int worlds);
  /// Zeros in the same shape, `components` wide when that is not the same (orientations: 4 values, 3 tangents).
  Parameter zeros(int components, int worlds) const;

  /// Whether a recording made from now on computes this item's gradient.
  bool requires_grad(int item) const { return requires_grad_[item]; }
  void requires_grad(int item, bool on) { requires_grad_[item] = on; }
  bool any_requires_grad() const;

  /// For views (models/views.h): those made before a resize, a spread, an assignment, a move or the end are stale.
  /// Writing values and switching requires_grad leaves them good.
  const Generation& generation() const { return generation_; }

 private:
  size_t index(int item, int component, int world) const {
    return (static_cast<size_t>(world) * requires_grad_.size() + item) * components_ + component;
  }
  int components_;
  int worlds_ = 1;
  double fill_;
  PoolVector<double> values_;  // [world][item][component]
  PoolVector<bool> requires_grad_;
  [[no_unique_address]] Generation generation_;
};

struct FrameParameters {
  Parameter position{3};     ///< m
  Parameter orientation{4};  ///< unit quaternion (x, y, z, w); gradients are 3 numbers θ in R exp(θ)
};

struct BodyParameters {
  Parameter mass{1};     ///< kg, beside what shapes with a density add
  Parameter com{3};      ///< m, link axes, from the link origin
  Parameter inertia{6};  ///< kg·m², link axes, about the com
};

/// Soft limits: beyond them a spring of C¹ onset and a damper that acts only there.
struct LimitParameters {
  Parameter lower{1};      ///< rad or m; −inf: none
  Parameter upper{1};      ///< rad or m; +inf: none
  Parameter stiffness{1};  ///< N·m/rad or N/m
  Parameter damping{1};    ///< N·m·s/rad or N·s/m
};

/// Position and velocity servo, treated implicitly: stiffness·(target − q⁺) + damping·(target velocity − q̇⁺).
struct DriveParameters {
  Parameter stiffness{1};     ///< N·m/rad or N/m
  Parameter damping{1};       ///< N·m·s/rad or N·s/m
  Parameter effort_limit{1};  ///< N·m or N, bounds drive + commanded effort; +inf: none
};

struct JointParameters {
  FrameParameters frame;  ///< joint in the parent link's frame; the child link's frame at position zero
  Parameter axis{3};      ///< unit vector in the joint frame
  Parameter armature{1};  ///< kg·m² or kg, reflected inertia of the actuator
  Parameter damping{1};   ///< N·m·s/rad or N·s/m, viscous, implicit
  Parameter friction{1};  ///< N·m or N, Coulomb level of μ q̇/√(q̇² + kFrictionVelocity²), implicit
  LimitParameters limit;
  DriveParameters drive;
};

struct GeometryParameters {
  Parameter scale{3};   ///< m; meaning per GeometryType
  Parameter margin{1};  ///< m
};

struct MaterialParameters {
  Parameter stiffness{1};    ///< N/m
  Parameter dissipation{1};  ///< s/m
  Parameter friction{1};     ///< 1
};

struct ShapeParameters {
  FrameParameters frame;  ///< shape in its body's link frame
  GeometryParameters geometry;
  MaterialParameters material;
  Parameter density{1};  ///< kg/m³; 0: the shape adds no mass
};

/// Every differentiable number of a model; also the shape of a gradient or a direction in parameter space.
struct Parameters {
  BodyParameters bodies;
  JointParameters joints;
  ShapeParameters shapes;
  Parameter gravity{3};  ///< m/s², world axes; one item
};

enum class JointType { revolute, prismatic, fixed };

/// Meaning of geometry.scale. Volumes are centred on the shape's frame, the long axis along its z.
enum class GeometryType {
  plane,      ///< z = 0, normal +z, infinite (scale unused); only on the world
  sphere,     ///< radius
  ellipsoid,  ///< three radii
  capsule,    ///< radius, half length of the cylindrical part
  box,        ///< three half extents
  cylinder,   ///< radius, half length
};

/// Smoothing velocity of joint friction, rad/s or m/s.
constexpr double kFrictionVelocity = 0.01;
/// Width over which a limit's spring reaches its full stiffness, rad or m.
constexpr double kLimitRamp = 0.01;

/// One joint with the link it moves, in the order the kernels walk: depth first, parents before children.
struct Link {
  JointType type = JointType::fixed;
  int joint = -1;           ///< index in the model's joints
  int body = -1;            ///< index in the model's bodies
  int parent = -1;          ///< link index, −1: world
  int q = 0;                ///< first position component
  int v = 0;                ///< first velocity component; the control's effort stands at the same index
  int target = -1;          ///< first of two control channels (target position, target velocity); −1: no drive
  bool leaf = true;         ///< has no children
  bool last_child = false;  ///< of its parent's children the first that a leaves-to-root sweep meets
  bool has_drive = false;
  bool has_limit = false;
  bool has_friction = false;
};

/// What does not depend on any parameter's value, shared by all worlds.
struct Topology {
  PoolVector<Link> links;
  int nq = 0;  ///< position components
  int nv = 0;  ///< velocity components = degrees of freedom
  int nu = 0;  ///< control components: nv efforts, then two targets per driven joint
};

/// What kernels see of a Topology: on a device, `links` is a device pointer. The links outlive the launch.
struct TopologyView {
  const Link* links;  ///< [link_count]
  int link_count;
  int nq, nv, nu;
};
inline TopologyView view_of(const Topology& topology) {
  return {topology.links.data(), static_cast<int>(topology.links.size()), topology.nq, topology.nv, topology.nu};
}

/// Positions and velocities a joint type has. Later types (ball: 4 and 3, free: 7 and 6) add a row here.
struct JointSize {
  int nq, nv;
};
constexpr JointSize joint_size(JointType type) {
  switch (type) {
    case JointType::revolute:
    case JointType::prismatic:
      return {1, 1};
    case JointType::fixed:
      return {0, 0};
  }
  return {0, 0};
}

/// How many components of geometry.scale a type uses; the others are stored as 0.
constexpr int scale_components(GeometryType type) {
  switch (type) {
    case GeometryType::plane:
      return 0;
    case GeometryType::sphere:
      return 1;
    case GeometryType::capsule:
    case GeometryType::cylinder:
      return 2;
    case GeometryType::ellipsoid:
    case GeometryType::box:
      return 3;
  }
  return 0;
}

struct Model : Parameters {
  Names body_names;
  Names joint_names;
  Names shape_names;
  PoolVector<JointType> joint_types;
  PoolVector<int> joint_parents;  ///< body index, −1: world
  PoolVector<int> joint_children;
  PoolVector<GeometryType> shape_types;
  PoolVector<int> shape_bodies;  ///< body index, −1: world
  Topology topology;

  int find_body(const std::string& name) const;   ///< −1 when there is none
  int find_joint(const std::string& name) const;  ///< −1 when there is none
  int find_shape(const std::string& name) const;  ///< −1 when there is none
  int link_of_body(int body) const;
  int link_of_joint(int joint) const;
  /// Number of worlds that per-world parameters ask for; 1 when all are uniform. Throws Error (usage) when they
  /// disagree, and when a parameter has not as many items as the model (it was moved from, or belongs to another).
  int parameter_worlds() const;
};

/// Parameters of zeros shaped as a gradient of `model`'s: orientations have three components; `worlds` sets each.
Parameters zero_parameters(const Model& model, int worlds = 1);

/// Sets the has_* flags of the links from the parameter values of all worlds and from requires_grad: whoever changes
/// either calls it (set_requires_grad and validate do). Driven joints stay driven. O(links · worlds).
void refresh_features(Model& model);

const char* to_string(JointType type);
const char* to_string(GeometryType type);

}  // namespace backdrive
