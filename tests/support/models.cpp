#include "tests/support/models.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "autodiff/problem/variables.h"
#include "models/meshes/convex_mesh.h"
#include "models/parameter_list.h"
#include "tests/support/random.h"

namespace backdrive::test {

Numbers3 random_vector(Random& random, double bound) {
  return {random.symmetric(bound), random.symmetric(bound), random.symmetric(bound)};
}

namespace {

std::array<double, 4> random_orientation(Random& random) {
  std::array<double, 4> q;
  double squares;
  do {
    squares = 0;
    for (double& x : q) {
      x = random.symmetric(1);
      squares += x * x;
    }
  } while (squares < 0.01 || squares > 1);
  return q;
}

/// A solid box of 5 to 30 cm, turned: an inertia that a real body could have.
BodyOptions random_body(Random& random) {
  BodyOptions body;
  body.mass = random.uniform(0.5, 2);
  body.com = random_vector(random, 0.1);
  double s[3], diagonal[3];
  for (double& x : s) x = std::pow(random.uniform(0.05, 0.3), 2);
  for (int k = 0; k < 3; ++k) diagonal[k] = body.mass / 12 * (s[0] + s[1] + s[2] - s[k]);
  const auto q = random_orientation(random);
  const double norm = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  const double x = q[0] / norm, y = q[1] / norm, z = q[2] / norm, w = q[3] / norm;
  const double R[3][3] = {{1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)},
                          {2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)},
                          {2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)}};
  const int rows[6] = {0, 1, 2, 0, 0, 1}, columns[6] = {0, 1, 2, 1, 2, 2};
  for (int e = 0; e < 6; ++e) {
    for (int k = 0; k < 3; ++k) {
      body.inertia[e] += R[rows[e]][k] * diagonal[k] * R[columns[e]][k];
    }
  }
  return body;
}

/// The same for joints of several degrees of freedom.
void add_forces_of_several(int joint, JointType type, JointOptions& options) {
  const bool ball = type == JointType::ball;
  if (joint % 3 != 1) options.spring = {.stiffness = 2.0 + joint % 4, .rest = ball ? 0 : 0.2};
  options.limit.stiffness = 15, options.limit.damping = 0.3, options.limit.upper = ball ? 0.4 : 0.08;
  if (!ball) options.limit.lower = -0.05;
  if (joint % 2 == 1) options.limit.velocity = 0.4, options.limit.velocity_damping = 3;
  options.driven = true;
  options.drive.stiffness = 4, options.drive.damping = 0.5;
  if (joint % 2 == 0) options.drive.effort_limit = 1.5;
}

/// Every kind of force at some joint: which ones goes by the joint's number, so that six joints have them all.
void add_forces(Random& random, int joint, JointType type, JointOptions& options) {
  options.damping = random.uniform(0.05, 0.3);
  if (joint % 3 == 1) options.friction = random.uniform(0.1, 0.5);
  if (!may_be_driven(type)) return;
  if (!has_one_degree(type)) return add_forces_of_several(joint, type, options);
  if (joint % 3 == 2) options.spring = {.stiffness = 3.0 + joint % 4, .rest = 0.3};
  if (joint % 2 == 0) {  // narrow: the motion runs into them
    options.limit = {-random.uniform(0.02, 0.1), random.uniform(0.02, 0.1), random.uniform(20, 60),
                     random.uniform(0.2, 1)};
  }
  if (joint % 3 != 2) {
    options.driven = true;
    options.drive.stiffness = random.uniform(5, 20);
    options.drive.damping = random.uniform(0.5, 2);
    // Low on every other drive, so that it saturates in some steps and worlds and not in others.
    if (joint % 2 == 1) options.drive.effort_limit = random.uniform(1, 3);
  }
}

/// Nothing about it is symmetric, and its com is not its origin.
std::shared_ptr<const ConvexMesh> lump() {
  const std::vector<Vec3<double>> points{{0.3, 0, 0.1}, {1, 0.2, 0},     {0.1, 1.3, 0},
                                         {0, 0.1, 0.9}, {1.1, 0.8, 0.7}, {-0.4, 0.5, 0.6}};
  return std::make_shared<const ConvexMesh>(convex_hull(points, "lump"));
}

/// So soft that bodies may lie deep in each other, as random ones do.
void set_touch(Random& random, bool contact, ShapeOptions& shape) {
  shape.filter.groups = contact ? 1 : 0;
  if (!contact) return;
  shape.margin = random.uniform(0.001, 0.01);
  shape.stiffness = random.uniform(50, 200);
  shape.width = random.uniform(0.02, 0.05);
  shape.dissipation = random.uniform(0.1, 0.5);
  shape.friction = random.uniform(0.3, 1);
  shape.creep = random.uniform(0.02, 0.1);
  if (shape.friction < 0.65) return;  // half of them let others turn as they like
  shape.torsional_friction = 0.2 * shape.creep;
  shape.rolling_friction = 2 * shape.margin;
}

void add_shapes(ModelBuilder& builder, Random& random, int bodies, bool contact) {
  const GeometryType types[] = {GeometryType::sphere, GeometryType::ellipsoid, GeometryType::capsule,
                                GeometryType::box,    GeometryType::cylinder,  GeometryType::box,
                                GeometryType::mesh};
  int count = 0;
  for (const GeometryType type : types) {
    ShapeOptions shape;
    shape.type = type;
    for (double& s : shape.scale) s = random.uniform(0.04, 0.1);
    shape.frame = {random_vector(random, 0.1), random_orientation(random)};
    shape.density = random.uniform(200, 1000);
    if (type == GeometryType::mesh) shape.mesh = lump();
    set_touch(random, contact, shape);
    // The last joins the first one's body: two shapes and the body's own numbers together.
    const int body = count == 5 ? 0 : count % bodies;
    builder.add_shape("shape" + std::to_string(count++), body, shape);
  }
  ShapeOptions floor;
  floor.type = GeometryType::plane;
  if (contact) floor.frame = {random_vector(random, 0.1), {0.05, -0.1, 0, 1}};
  set_touch(random, contact, floor);
  // Half of a random tree is deep in the floor, where it meets the second spring, 200 times as stiff as the first: were
  // that as stiff as others', 1e-12 of rounding would be 1e-9 some steps later.
  floor.stiffness /= 20;
  builder.add_shape("floor", ModelBuilder::world, floor);
}

void add_coupling(ModelBuilder& builder, Random& random, const std::vector<JointIndex>& joints, int number) {
  CouplingOptions coupling;
  const int count = std::min<int>(2 + number % 2, static_cast<int>(joints.size()));
  const int first = random.index(static_cast<int>(joints.size()));
  for (int k = 0; k < count; ++k) {
    const double ratio = random.uniform(0.3, 1) * (random.chance(0.5) ? 1 : -1);
    coupling.ratios.push_back({joints[(first + k) % joints.size()], ratio});
  }
  coupling.offset = random.symmetric(0.1);
  if (number % 3 == 0) {
    coupling.armature = random.uniform(0.01, 0.1);
    coupling.damping = random.uniform(0.05, 0.3);
    coupling.friction = random.uniform(0.1, 0.5);
    coupling.spring = {random.uniform(3, 10), 0.2};
    coupling.limit = {-random.uniform(0.02, 0.1), random.uniform(0.02, 0.1), random.uniform(20, 60),
                      random.uniform(0.2, 1)};
    coupling.limit.velocity = 0.2, coupling.limit.velocity_damping = 2;
    coupling.driven = true;
    coupling.drive = {random.uniform(5, 20), random.uniform(0.5, 2), random.uniform(1, 3)};
  } else if (number % 3 == 1) {
    coupling.hold = true;
  } else {
    coupling.spring = {random.uniform(1e4, 2e4), -0.1};
    coupling.damping = random.uniform(10, 20);
  }
  builder.add_coupling("coupling" + std::to_string(number), coupling);
}

}  // namespace

Model random_tree(std::uint64_t seed, const TreeOptions& options) {
  Random random(seed);
  ModelBuilder builder;
  std::vector<JointIndex> of_one_degree;
  builder.set_integrator(options.integrator);
  builder.set_gravity({random.symmetric(2), random.symmetric(2), -9.81 + random.symmetric(1)});
  for (int i = 0; i < options.links; ++i) {
    BodyOptions body = random_body(random);
    if (options.forces && options.rotations && i % 3 == 1) body.gravity_compensation = 0.4 + 0.1 * i;
    builder.add_body("body" + std::to_string(i), body);
  }
  for (int i = 0; i < options.links; ++i) {
    int parent = i - 1;
    if (options.branched && i > 0) parent = random.chance(0.1) ? -1 : random.index(i);
    const bool may_be_fixed = options.fixed && i > 0 && i + 1 < options.links;
    JointType type = JointType::revolute;
    if (options.sliding && i % 4 == 2) type = JointType::prismatic;
    if (may_be_fixed && i % 7 == 3) type = JointType::fixed;
    if (options.rotations) {
      constexpr JointType types[] = {JointType::free, JointType::ball, JointType::universal, JointType::revolute,
                                     JointType::planar};
      type = i > 0 && i % 5 == 0 ? JointType::ball : types[i % 5];
      if (i > 0 && parent < 0) type = i % 2 ? JointType::free : JointType::ball;
      if (options.slides && type == JointType::revolute) type = JointType::prismatic;
    }
    JointOptions joint;
    joint.frame = {random_vector(random, options.spread), random_orientation(random)};
    joint.axis = random_vector(random, 1);
    joint.spins = options.rotations && (type == JointType::revolute || type == JointType::universal);
    if (type != JointType::fixed) {
      if (options.forces || random.chance(0.5)) joint.armature = random.uniform(0.01, 0.1);
      if (options.forces) add_forces(random, i, type, joint);
      if (options.forces && options.rotations && type == JointType::revolute) {
        joint.limit.velocity = 0.3, joint.limit.velocity_damping = 2;
      }
    }
    const JointIndex added = builder.add_joint("joint" + std::to_string(i), type, parent, i, joint);
    if (has_one_degree(type)) of_one_degree.push_back(added);
  }
  for (int l = 0; l < options.loops; ++l) {
    const int child = random.index(options.links);
    const int parent = (child + 1 + random.index(options.links - 1)) % options.links;
    JointOptions joint;
    joint.loop = true;
    joint.frame = {random_vector(random, options.spread), random_orientation(random)};
    joint.child_frame = {random_vector(random, options.spread), random_orientation(random)};
    // Soft: they begin open, and gradients of stiff ones are all about closing them.
    joint.attachment = {200, 5, 20, 0.5};
    builder.add_joint("loop" + std::to_string(l), l % 2 ? JointType::fixed : JointType::ball, parent, child, joint);
  }
  if (options.shapes) add_shapes(builder, random, options.links, options.contact);
  for (int k = 0; k < options.couplings; ++k) add_coupling(builder, random, of_one_degree, k);
  return builder.build();
}

Model pendulum(double length) {
  ModelBuilder builder;
  builder.add_body("bob", {1, {0, 0, -length}, {}});
  JointOptions hinge;
  hinge.axis = {0, 1, 0};
  builder.add_joint("hinge", JointType::revolute, ModelBuilder::world, 0, hinge);
  return builder.build();
}

Model double_pendulum() {
  ModelBuilder builder;
  JointOptions hinge;
  hinge.axis = {0, 1, 0};
  for (int i = 0; i < 2; ++i) {
    const std::string number = std::to_string(i);
    builder.add_body("bob" + number, {1, {0, 0, -1}, {0.01, 0.01, 0.01, 0, 0, 0}});
    if (i > 0) hinge.frame.position = {0, 0, -1};
    builder.add_joint("hinge" + number, JointType::revolute, i - 1, i, hinge);
  }
  return builder.build();
}

Model slider(double mass, const std::function<void(JointOptions&)>& change) {
  ModelBuilder builder;
  builder.add_body("weight", {mass, {0, 0, 0}, {0.1, 0.1, 0.1, 0, 0, 0}});
  JointOptions joint;
  if (change) change(joint);
  builder.add_joint("slide", JointType::prismatic, ModelBuilder::world, 0, joint);
  return builder.build();
}

Model chain(int links) {
  ModelBuilder builder;
  for (int i = 0; i < links; ++i) {
    const std::string number = std::to_string(i);
    builder.add_body("link" + number, {1, {0.01, 0, 0.1}, {0.01, 0.012, 0.008, 0, 0, 0.001}});
    JointOptions joint;
    joint.axis = i % 2 == 0 ? Numbers3{0, 0, 1} : Numbers3{0, 1, 0};
    joint.armature = 0.05;
    joint.damping = 0.1;
    if (i > 0) joint.frame.position = {0, 0, 0.2};
    builder.add_joint("joint" + number, JointType::revolute, i - 1, i, joint);
  }
  return builder.build();
}

void require_all(Model& model) {
  for (const Field& field : fields()) {
    Parameter& parameter = field.of(model);
    for (int i = 0; i < parameter.items(); ++i) parameter.requires_grad(i, unused_reason(model, field, i) == nullptr);
  }
  refresh_features(model);
}

}  // namespace backdrive::test
