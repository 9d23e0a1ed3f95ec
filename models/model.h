#pragma once
// What is simulated: a tree of bodies and joints with shapes, constant during a rollout.
//
// Units SI; z up; quaternions (x, y, z, w); inertias as six numbers xx, yy, zz, xy, xz, yz; 6-vectors angular first.
// Everything that has a gradient is a Parameter (parameters.h), nested as users write it: model.joints.limit.lower. The
// one table of them is in parameter_list.h.
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/pool_containers.h"
#include "models/meshes/solid_moments.h"
#include "models/names.h"
#include "models/parameters.h"

namespace backdrive {

struct ConvexMesh;
struct HeightField;

/// What a joint lets its child do, seen from the joint's axes on the parent. Rotations are unit quaternions (x, y, z,
/// w); what stands for a small change of one (cotangents, gradients) has three components, in the axes of its angular
/// velocity, and leaves the row of w zero.
///
///   type       positions              velocities                         free motion
///   revolute   angle                  its rate                           turn about the axis
///   prismatic  distance               its rate                           slide along the axis
///   fixed      -                      -                                  none
///   universal  two angles             their rates                        turn about x, then about the turned y
///   planar     x, y, angle            their rates                        slide along x and y, then turn about z
///   ball       quaternion             angular velocity, child's axes     any turn
///   free       quaternion, position   angular velocity, velocity of the  any; the parent is the world
///                                     origin, joint's axes
enum class JointType { revolute, prismatic, fixed, universal, planar, ball, free };
constexpr JointType kJointTypes[] = {JointType::revolute, JointType::prismatic, JointType::universal, JointType::planar,
                                     JointType::ball,     JointType::free,      JointType::fixed};

/// How a step is taken, which decides what a state is.
enum class Integrator {
  featherstone,   ///< trees in the positions and velocities of their joints
  semi_implicit,  ///< loose bodies held together by joints in any graph: docs/semi_implicit.md
};

/// Meaning of geometry.scale. Volumes are centred on the shape's frame, the long axis along its z.
enum class GeometryType {
  plane,         ///< z = 0, normal +z, infinite (scale unused); only on the world
  sphere,        ///< radius
  ellipsoid,     ///< three radii
  capsule,       ///< radius, half length of the cylindrical part
  box,           ///< three half extents
  cylinder,      ///< radius, half length
  mesh,          ///< convex; three factors of the vertices
  height_field,  ///< half extents of the grid in x and y, factor of the heights; only on the world
};

/// Which shapes may touch: two do when each is in a group that the other meets.
struct CollisionFilter {
  std::uint32_t groups = 1;  ///< bits; 0: touches nothing
  std::uint32_t meets = ~0u;
};

/// Two bodies (−1: world), or two shapes.
struct BodyPair {
  int a = -1, b = -1;
};
struct ShapePair {
  int a = -1, b = -1;
};

/// Numbers that are told of a pair in a step: force on the first body (3), where (3), depth.
constexpr int kContactRows = 7;

/// A shape that may touch another.
struct ContactShape {
  int shape = -1;     ///< index in the model's shapes
  int body = -1;      ///< index in the model's bodies, −1: world
  int link = -1;      ///< that carries it, −1: world
  int root = -1;      ///< link at the root of its tree, −1: world
  bool fixed = true;  ///< nothing moves it: on the world, or on a link that fixed joints hold there
  GeometryType type = GeometryType::sphere;
  int mesh = -1;               ///< index in the model's meshes, of a height field in its height_fields; −1: neither
  bool resists_turns = false;  ///< has torsional or rolling friction in some world, or gradients by it are wanted
};
/// Two contact shapes (indices) that may touch. If one is on the world, it is the second; else they are in the order of
/// GeometryType, and of one type in that of the model's shapes.
struct ContactPair {
  int a = -1, b = -1;
};

/// Smoothing velocity of joint friction, rad/s or m/s.
constexpr double kFrictionVelocity = 0.01;
/// Width over which a limit's spring reaches its full stiffness, rad or m; and the damper of a speed, rad/s or m/s.
constexpr double kLimitRamp = 0.01;

/// About or along what a link of one degree of freedom moves: its joint's `axis`, or an axis of the joint's frame.
enum class LinkAxis { parameter, x, y, z };

/// Remembers which numbers were found good, by their hash; of a model that is const too. Safe from several threads.
class CheckedNumbers {
 public:
  CheckedNumbers() = default;
  CheckedNumbers(const CheckedNumbers& other) : hash_(other.hash_.load(std::memory_order_relaxed)) {}
  CheckedNumbers& operator=(const CheckedNumbers& other) {
    remember(other.hash_.load(std::memory_order_relaxed));
    return *this;
  }
  bool are(std::uint64_t hash) const { return hash_.load(std::memory_order_relaxed) == hash; }
  void remember(std::uint64_t hash) const { hash_.store(hash, std::memory_order_relaxed); }

 private:
  mutable std::atomic<std::uint64_t> hash_ = 0;  ///< 0: none
};

/// What acts on a joint in some world, or would if a gradient that is wanted were followed (refresh_features). The same
/// for all worlds: kernels branch on it.
struct EffortParts {
  bool spring = false, limit = false, drive = false, speed = false;  ///< not of free joints; speed: its limit
  bool friction = false;
};

/// One joint with the link it moves, in the order the kernels walk: depth first, parents before children. A universal
/// or planar joint is a chain of links of one degree of freedom each, of which the last has the body and the others
/// have no mass.
struct Link {
  JointType type = JointType::fixed;  ///< not universal, not planar
  LinkAxis axis = LinkAxis::parameter;
  int joint = -1;           ///< index in the model's joints
  bool first = true;        ///< of its joint: the one with the joint's frame
  int body = -1;            ///< index in the model's bodies; −1: none
  int parent = -1;          ///< link index, −1: world
  int q = 0;                ///< first position component
  int v = 0;                ///< first velocity component; the control's efforts stand at the same index
  int loop_child = -1;      ///< of a joint that closes a loop the link that carries its child; −1: of the tree
  int target = -1;          ///< first of two controls (target position, velocity) per degree of freedom; −1: no drive
  bool leaf = true;         ///< has no children
  bool last_child = false;  ///< of its parent's children the first that a leaves-to-root sweep meets
  EffortParts acts = {};
  bool touches = false;  ///< its body has shapes that may touch others
  bool lifted = false;   ///< gravity compensation of its body acts, or would as in EffortParts
  /// The link above whose joint turns next to its own, but for what slides or is fixed between them; −1: none does, or
  /// a hinge of the two is said to spin.
  int turns_with = -1;
  int carrier = -1;    ///< of a link that is fixed: the one that it turns with, which is not; −1: none, or it is not
  int fixed_end = -1;  ///< one past the last link whose carrier it is; −1: none is
  bool spins = false;  ///< the gyroscopic couple of all it carries is that of the whole step (JointOptions::spins)
  bool rigid = false;  ///< the free root of a tree in which all else is fixed: it flies as one body
  bool unphysical_inertia = false;  ///< of its body (Model::unphysical_inertias)
  int way = -1;                     ///< of a root: which of State::ways() is its tree's; −1: none
};

/// A weighted sum of joint positions, s = Σ ratio·q + offset, on which a spring, a damper, limits, a drive and friction
/// act as on a joint, or which is held at zero.
struct Coupling {
  int first_term = 0, term_count = 0;  ///< of Topology::coupling_terms
  bool holds = false;                  ///< s = 0 at the end of every step, exactly
  int effort = -1;                     ///< control channel; −1: of one that holds
  int target = -1;                     ///< first of two control channels, as Link::target; −1: no drive
  EffortParts acts = {};
};
/// One joint of one degree of freedom in a coupling.
struct CouplingTerm {
  int joint = -1;  ///< index in the model's joints
  int link = -1;
  int q = 0, v = 0;  ///< as the link's
};

/// Rows of a body in a state in maximal coordinates: unit quaternion of its link frame and the position of its
/// origin; angular velocity and velocity of the origin. World axes; the quaternion's small turns stand on the left.
constexpr int kBodyPositions = 7, kBodyVelocities = 6;

/// What State::ways() has of a tree of whose last step nothing is known.
constexpr double kUnknownWay = -1;

/// What does not depend on any parameter's value, shared by all worlds.
struct Topology {
  /// Those of the tree; behind them, without bodies, those of joints that close loops.
  PoolVector<Link> links;
  Integrator integrator = Integrator::featherstone;
  int joint_nq = 0;  ///< position components of the joints, which stand first
  int joint_nv = 0;  ///< velocity components of the joints = degrees of freedom of all joints
  int nq = 0;        ///< position components: the joints', and with semi_implicit the bodies'
  int nv = 0;        ///< velocity components, likewise
  /// Control components: joint_nv efforts, then two targets per degree of freedom of driven joints; then of each
  /// coupling that does not hold an effort and, of a driven one, two targets.
  int nu = 0;
  PoolVector<ContactShape> contact_shapes;  ///< those of contact_pairs
  PoolVector<ContactPair> contact_pairs;
  int way_count = 0;               ///< trees that may whip and touch something, of featherstone (Link::way)
  PoolVector<Coupling> couplings;  ///< as the model's
  PoolVector<CouplingTerm> coupling_terms;

  bool has_bodies() const { return integrator == Integrator::semi_implicit; }
  /// First rows of a body's pose and velocity, where there are any.
  int body_q(int body) const { return joint_nq + body * kBodyPositions; }
  int body_v(int body) const { return joint_nv + body * kBodyVelocities; }
  int bodies() const { return (nq - joint_nq) / kBodyPositions; }
};

/// What kernels see of a Topology: on a device, the pointers are device pointers. What they point at outlives the
/// launch.
struct TopologyView {
  const Link* links;  ///< [link_count]
  int link_count;
  int nq, nv, nu;
  const ContactShape* contact_shapes = nullptr;  ///< [contact_shape_count]
  int contact_shape_count = 0;
  const ContactPair* contact_pairs = nullptr;  ///< [contact_pair_count]
  int contact_pair_count = 0;
  int contact_point_count = 0;  ///< of all pairs
  int most_points_of_pair = 0;
  int way_count = 0;
  bool resists_turns = false;           ///< any of the contact shapes does
  bool lifted = false;                  ///< any of the links is
  const Coupling* couplings = nullptr;  ///< [coupling_count]
  int coupling_count = 0;
  const CouplingTerm* coupling_terms = nullptr;  ///< [coupling_term_count]
  int coupling_term_count = 0;
};
inline TopologyView view_of(const Topology& t) {
  const auto count = [](const auto& items) { return static_cast<int>(items.size()); };
  TopologyView view{
      t.links.data(),         count(t.links),        t.nq, t.nv, t.nu, t.contact_shapes.data(), count(t.contact_shapes),
      t.contact_pairs.data(), count(t.contact_pairs)};
  view.way_count = t.way_count;
  for (const Link& link : t.links) view.lifted = view.lifted || link.lifted;
  view.couplings = t.couplings.data();
  view.coupling_count = count(t.couplings);
  view.coupling_terms = t.coupling_terms.data();
  view.coupling_term_count = count(t.coupling_terms);
  return view;
}

/// Positions and velocities a joint type has.
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
    case JointType::universal:
      return {2, 2};
    case JointType::planar:
      return {3, 3};
    case JointType::ball:
      return {4, 3};
    case JointType::free:
      return {7, 6};
  }
  return {0, 0};
}
/// Whether the positions begin with a quaternion.
constexpr bool has_quaternion(JointType type) {
  return type == JointType::ball || type == JointType::free;
}
/// Whether there is one position and one velocity.
constexpr bool has_one_degree(JointType type) {
  return type == JointType::revolute || type == JointType::prismatic;
}

/// Whether a joint can have limits, springs and drives.
constexpr bool may_be_driven(JointType type) {
  return type != JointType::fixed && type != JointType::free;
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
    case GeometryType::mesh:
    case GeometryType::height_field:
      return 3;
  }
  return 0;
}

/// A term of a coupling, by the user's numbers.
struct JointOfCoupling {
  int coupling = -1, joint = -1;
  friend bool operator==(const JointOfCoupling&, const JointOfCoupling&) = default;
};

struct Model : Parameters {
  Names body_names;
  Names joint_names;
  Names shape_names;
  Names coupling_names;
  PoolVector<JointType> joint_types;
  PoolVector<int> joint_parents;  ///< body index, −1: world
  PoolVector<int> joint_children;
  PoolVector<bool> joint_loops;  ///< whether it closes a loop: its child hangs on another joint
  /// s from the start of a rollout: from there on, to whole steps, a joint holds nothing. +inf: never. No parameter.
  PoolVector<double> joint_releases;
  /// Whether a body may have an inertia that no rigid body has: a principal moment below zero or above the sum of the
  /// other two. Robot files hold such ones.
  PoolVector<bool> unphysical_inertias;
  PoolVector<JointOfCoupling> coupling_terms;  ///< coupling by coupling; the items of couplings.ratios
  PoolVector<bool> coupling_holds;
  PoolVector<GeometryType> shape_types;
  PoolVector<int> shape_bodies;  ///< body index, −1: world
  PoolVector<CollisionFilter> shape_filters;
  /// What contact needs of meshes, and terrain: never changed, shared by copies and by shapes. Vertices and heights are
  /// in whatever unit the shapes' scales are factors of.
  PoolVector<std::shared_ptr<const ConvexMesh>> meshes;
  PoolVector<std::shared_ptr<const HeightField>> height_fields;
  PoolVector<int> shape_meshes;  ///< index in meshes, of a height field in height_fields; −1: neither
  PoolVector<SolidMoments<double>> shape_moments;  ///< of meshes at scale 1; of others zeros
  PoolVector<BodyPair> excluded_contacts;          ///< none of their shapes touch, but for included_contacts
  PoolVector<ShapePair> excluded_shapes;           ///< do not touch, but for included_contacts
  PoolVector<ShapePair> included_contacts;         ///< touch whatever filters, joints and excluded_contacts say
  Topology topology;

  /// What of the parameters was found good (snapshot).
  CheckedNumbers checked;

  BodyIndex find_body(const std::string& name) const;          ///< −1 when there is none
  JointIndex find_joint(const std::string& name) const;        ///< −1 when there is none
  ShapeIndex find_shape(const std::string& name) const;        ///< −1 when there is none
  CouplingIndex find_coupling(const std::string& name) const;  ///< −1 when there is none
  int link_of_body(BodyIndex body) const;
  int link_of_joint(JointIndex joint) const;  ///< the first of its links
  /// Number of worlds that per-world parameters ask for; 1 when all are uniform. Throws Error (usage) when they
  /// disagree, and when a parameter has not as many items as the model (it was moved from, or belongs to another).
  int parameter_worlds() const;
};

/// The least of a shape's lengths in world 0, m; infinite for ground, and for meshes, whose scale is a factor.
double least_size(const Model& model, int shape);

/// Parameters of zeros shaped as a gradient of `model`'s: orientations have three components; `worlds` sets each.
Parameters zero_parameters(const Model& model, int worlds = 1);

/// Sets what acts on the links and resists_turns of the contact shapes from the parameter values of all worlds
/// and from requires_grad: whoever changes either calls it (set_requires_grad and validate do). Driven joints stay
/// driven. O((links + contact shapes + couplings) · worlds).
/// `direction`: what dual numbers follow, whose parameters count as present too.
void refresh_features(Model& model, const Parameters* direction = nullptr);

const char* to_string(Integrator integrator);
const char* to_string(JointType type);
const char* to_string(GeometryType type);

}  // namespace backdrive
