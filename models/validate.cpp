// Whether a model's numbers are those of something that can exist and can be simulated.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <optional>

#include "models/builder.h"
#include "models/fields.h"
#include "models/parameter_reader.h"

namespace backdrive {
namespace {

/// Principal moments may break their inequalities by this share of the largest (files carry few
/// digits).
constexpr double kInertiaTolerance = 1e-5;

std::string text(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.6g", value);
  return buffer;
}

template <class Numbers>
std::string list(const Numbers& values) {
  std::string result = "[";
  for (double value : values) result += (result.size() > 1 ? ", " : "") + text(value);
  return result + "]";
}

std::string in_world(const Parameter& parameter, int world) {
  return parameter.uniform() ? "" : " in world " + std::to_string(world);
}

// ---- numbers one by one ---------------------------------------------------------------------------------------------

bool may_be_infinite(const Model& model, const Parameter& parameter) {
  return &parameter == &model.joints.limit.lower || &parameter == &model.joints.limit.upper ||
         &parameter == &model.joints.drive.effort_limit;
}

void check_field(const Model& model, const Field& field) {
  const Parameter& parameter = field.in(model);
  const bool infinite = may_be_infinite(model, parameter);
  for (int w = 0; w < parameter.worlds(); ++w) {
    for (int i = 0; i < parameter.items(); ++i) {
      for (int c = 0; c < parameter.components(); ++c) {
        const double value = parameter(i, c, w);
        const bool finite = std::isfinite(value) || (infinite && !std::isnan(value));
        if (finite && !(field.nonnegative && value < 0)) continue;
        const std::string unit = field.unit == "1" ? "" : " " + std::string(field.unit);
        throw ModelError(path_of(model, {&field, i, field.components == 1 ? -1 : c}),
                         text(value) + in_world(parameter, w) + ", expected a " + (infinite ? "" : "finite ") +
                             "number" + (field.nonnegative ? " >= 0" : "") + unit);
      }
    }
  }
}

/// Scales each item's components (finite ones) to unit length; throws for zero.
void normalize(Parameter& parameter, const std::string& group, const std::vector<std::string>& names,
               const std::string& leaf, const std::string& what) {
  for (int w = 0; w < parameter.worlds(); ++w) {
    for (int i = 0; i < parameter.items(); ++i) {
      double largest = 0, squares = 0;
      for (int c = 0; c < parameter.components(); ++c) {
        largest = std::max(largest, std::abs(parameter(i, c, w)));
      }
      if (largest == 0) {
        throw ModelError(group + "/" + names[i] + "/" + leaf,
                         "zero" + in_world(parameter, w) + ", expected " + what + " of any length but zero");
      }
      for (int c = 0; c < parameter.components(); ++c) {
        const double share = parameter(i, c, w) / largest;
        squares += share * share;
      }
      const double length = largest * std::sqrt(squares);
      // What is a unit vector to rounding stays as it is, so that a second call changes no bit.
      if (std::abs(length - 1) < 1e-15) continue;
      for (int c = 0; c < parameter.components(); ++c) parameter.at(i, c, w) /= length;
    }
  }
}

/// Limits are of joints with one position.
void check_joints_with_limits(const Model& model) {
  const LimitParameters& limit = model.joints.limit;
  for (const Parameter* bound : {&limit.lower, &limit.upper}) {
    for (int w = 0; w < bound->worlds(); ++w) {
      for (int j = 0; j < bound->items(); ++j) {
        if (joint_size(model.joint_types[j]).nv < 2 || !std::isfinite((*bound)(j, 0, w))) continue;
        throw ModelError("joints/" + model.joint_names[j] + "/limit",
                         "a limit on a " + std::string(to_string(model.joint_types[j])) +
                             " joint, expected a revolute or prismatic joint");
      }
    }
  }
}

void check_limits(const Model& model) {
  const LimitParameters& limit = model.joints.limit;
  const int worlds = std::max(limit.lower.worlds(), limit.upper.worlds());
  for (int w = 0; w < worlds; ++w) {
    for (int j = 0; j < limit.lower.items(); ++j) {
      const double lower = limit.lower(j, 0, w), upper = limit.upper(j, 0, w);
      if (lower < upper) continue;
      throw ModelError("joints/" + model.joint_names[j] + "/limit",
                       "lower " + text(lower) + " and upper " + text(upper) +
                           (worlds > 1 ? " in world " + std::to_string(w) : "") + ", expected lower < upper");
    }
  }
}

void check_scales(Model& model) {
  Parameter& scale = model.shapes.geometry.scale;
  for (int w = 0; w < scale.worlds(); ++w) {
    for (int s = 0; s < scale.items(); ++s) {
      const GeometryType type = model.shape_types[s];
      for (int c = 0; c < scale.components(); ++c) {
        if (c >= scale_components(type)) {
          scale.at(s, c, w) = 0;
        } else if (!(scale(s, c, w) > 0 && std::isfinite(scale(s, c, w)))) {
          throw ModelError("shapes/" + model.shape_names[s] + "/geometry/scale/" + std::to_string(c),
                           text(scale(s, c, w)) + in_world(scale, w) + ", expected a finite length > 0 m (a " +
                               to_string(type) + " has " + std::to_string(scale_components(type)) + ")");
        }
      }
    }
  }
}

// ---- inertias -------------------------------------------------------------------------------------------------------

/// Eigenvalues of a symmetric 3x3 matrix, ascending, by cyclic Jacobi rotations; error a few ulp of
/// the largest.
std::array<double, 3> eigenvalues(const Sym3<double>& s) {
  double a[3][3] = {{s.xx, s.xy, s.xz}, {s.xy, s.yy, s.yz}, {s.xz, s.yz, s.zz}};
  for (int sweep = 0; sweep < 12; ++sweep) {
    for (const auto& [p, q] : {std::pair{0, 1}, std::pair{0, 2}, std::pair{1, 2}}) {
      if (a[p][q] == 0) continue;
      const double ratio = (a[q][q] - a[p][p]) / (2 * a[p][q]);
      const double t = std::copysign(1.0, ratio) / (std::abs(ratio) + std::hypot(1.0, ratio));
      const double c = 1 / std::hypot(1.0, t), sn = t * c;
      for (int k = 0; k < 3; ++k) {
        const double kp = a[k][p], kq = a[k][q];
        a[k][p] = c * kp - sn * kq;
        a[k][q] = sn * kp + c * kq;
      }
      for (int k = 0; k < 3; ++k) {
        const double pk = a[p][k], qk = a[q][k];
        a[p][k] = c * pk - sn * qk;
        a[q][k] = sn * pk + c * qk;
      }
    }
  }
  std::array<double, 3> result{a[0][0], a[1][1], a[2][2]};
  std::sort(result.begin(), result.end());
  return result;
}

void check_inertias(const Model& model) {
  const Parameter& inertia = model.bodies.inertia;
  for (int w = 0; w < inertia.worlds(); ++w) {
    for (int b = 0; b < inertia.items(); ++b) {
      const auto moments = eigenvalues(explicit_mass(model, b, w).inertia);
      const double tolerance = kInertiaTolerance * std::max(std::abs(moments[0]), std::abs(moments[2]));
      const char* broken = nullptr;
      if (moments[0] < -tolerance) {
        broken = "none below zero";
      } else if (moments[0] + moments[1] < moments[2] - tolerance) {
        broken = "none larger than the sum of the other two";
      }
      if (!broken) continue;
      throw ModelError("bodies/" + model.body_names[b] + "/inertia",
                       "principal moments " + list(moments) + " kg·m²" + in_world(inertia, w) + ", expected " + broken);
    }
  }
}

// ---- joints that move nothing ---------------------------------------------------------------------------------------

using Matrix6 = std::array<std::array<double, 6>, 6>;
using Vector6 = std::array<double, 6>;

/// Rigid inertia of a body about its link origin as a full matrix, angular first.
Matrix6 rigid_matrix(const MassProperties<double>& body) {
  RigidInertia<double> I;
  set(I, body.mass, body.com, body.inertia);
  Matrix6 result;
  for (int c = 0; c < 6; ++c) {
    double e[6] = {};
    e[c] = 1;
    const Spatial<double> f = I * Spatial<double>{{e[0], e[1], e[2]}, {e[3], e[4], e[5]}};
    const double column[6] = {f.ang.x, f.ang.y, f.ang.z, f.lin.x, f.lin.y, f.lin.z};
    for (int r = 0; r < 6; ++r) result[r][c] = column[r];
  }
  return result;
}

/// to += Xᵀ I X, where X takes motions about the parent's origin to the child's, at rotation·exp(q
/// axis) and position.
void add_to_parent(Matrix6& to, const Matrix6& I, const Mat3<double>& rotation, const Vec3<double>& position) {
  double X[6][6];
  for (int c = 0; c < 6; ++c) {
    double e[6] = {};
    e[c] = 1;
    const Vec3<double> ang{e[0], e[1], e[2]}, lin{e[3], e[4], e[5]};
    const Vec3<double> a = transposed_times(rotation, ang);
    const Vec3<double> l = transposed_times(rotation, lin + cross(ang, position));
    const double column[6] = {a.x, a.y, a.z, l.x, l.y, l.z};
    for (int r = 0; r < 6; ++r) X[r][c] = column[r];
  }
  for (int c = 0; c < 6; ++c) {
    Vector6 IX{};
    for (int r = 0; r < 6; ++r) {
      for (int k = 0; k < 6; ++k) IX[r] += I[r][k] * X[k][c];
    }
    for (int r = 0; r < 6; ++r) {
      for (int k = 0; k < 6; ++k) to[r][c] += X[k][r] * IX[k];
    }
  }
}

struct LinkPlacement {
  Mat3<double> rotation;  ///< link axes in the parent's
  Vec3<double> position;  ///< link origin in the parent's axes
};

Vec3<double> axis_of(const Model& model, const Link& link, int world) {
  switch (link.axis) {
    case LinkAxis::parameter:
      break;
    case LinkAxis::x:
      return {1, 0, 0};
    case LinkAxis::y:
      return {0, 1, 0};
    case LinkAxis::z:
      return {0, 0, 1};
  }
  return vector_of(model.joints.axis, link.joint, world);
}

/// At position q of a link of one degree of freedom; of other joints where they begin.
LinkPlacement placement(const Model& model, const Link& link, int world, double q) {
  const JointParameters& joints = model.joints;
  const int j = link.joint;
  const Parameter& o = joints.frame.orientation;
  LinkPlacement at{identity3<double>(), {0, 0, 0}};
  if (link.first) {
    at.rotation = rotation_matrix(o(j, 0, world), o(j, 1, world), o(j, 2, world), o(j, 3, world));
    at.position = vector_of(joints.frame.position, j, world);
  }
  const Vec3<double> axis = axis_of(model, link, world);
  if (link.type == JointType::prismatic) at.position += at.rotation * (axis * q);
  if (link.type == JointType::revolute) {
    const Vec3<double> s = axis * std::sin(q / 2);
    at.rotation = at.rotation * rotation_matrix(s.x, s.y, s.z, std::cos(q / 2));
  }
  return at;
}

/// The motions that a link's joint allows, in link axes about the link origin.
std::vector<Vector6> subspace(const Model& model, const Link& link, int world) {
  const Vec3<double> a = axis_of(model, link, world);
  if (link.type == JointType::revolute) return {{a.x, a.y, a.z, 0, 0, 0}};
  if (link.type == JointType::prismatic) return {{0, 0, 0, a.x, a.y, a.z}};
  std::vector<Vector6> columns(joint_size(link.type).nv, Vector6{});
  for (std::size_t k = 0; k < columns.size(); ++k) columns[k][k] = 1;
  return columns;
}

/// Takes one degree of freedom out of an articulated inertia. False when it moves no inertia.
bool eliminate(const Vector6& S, double armature, const Matrix6& composite, Matrix6& articulated) {
  Vector6 U{};
  double D = armature, scale = armature;
  for (int r = 0; r < 6; ++r) {
    for (int c = 0; c < 6; ++c) U[r] += articulated[r][c] * S[c];
  }
  for (int r = 0; r < 6; ++r) D += S[r] * U[r], scale += S[r] != 0 ? composite[r][r] : 0;
  // Rounding leaves about 1e-16 of the composite inertia where there should be nothing.
  if (!(armature > 0) && !(D > 1e-13 * scale)) return false;
  D = std::max(D, armature);
  for (int r = 0; r < 6; ++r) {
    for (int c = 0; c < 6; ++c) articulated[r][c] -= U[r] * U[c] / D;
  }
  return true;
}

/// The first joint (leaves first) with D = 0 in the articulated-body algorithm at some generic
/// configuration, by (2) and (3) of design.md in link axes. O(links).
std::optional<int> joint_without_inertia(const Model& model, int world, double phase) {
  const PoolVector<Link>& links = model.topology.links;
  const size_t n = links.size();
  std::vector<Matrix6> articulated(n), composite(n);
  for (size_t i = 0; i < n; ++i) articulated[i] = composite[i] = rigid_matrix(body_mass(model, links[i].body, world));
  for (size_t i = n; i-- > 0;) {
    const Link& link = links[i];
    // Golden-ratio steps: no two joints of a chain at angles that cancel.
    const double q = 2 * std::fmod(phase + 0.6180339887498949 * static_cast<double>(i), 1.0) - 1;
    const LinkPlacement at = placement(model, link, world, q);
    const double armature = model.joints.armature(link.joint, 0, world);
    for (const Vector6& S : subspace(model, link, world)) {
      if (!eliminate(S, armature, composite[i], articulated[i])) return link.joint;
    }
    if (link.parent < 0) continue;
    add_to_parent(articulated[link.parent], articulated[i], at.rotation, at.position);
    add_to_parent(composite[link.parent], composite[i], at.rotation, at.position);
  }
  return std::nullopt;
}

/// A body that resists every motion by itself: whatever hangs on it, its joint moves inertia.
bool solid(const Model& model, int body, int world) {
  if (body < 0) return false;
  const MassProperties<double> own = body_mass(model, body, world);
  const auto moments = eigenvalues(own.inertia);
  return own.mass > 0 && moments[0] > 1e-12 * moments[2];
}

/// Every moving joint must move inertia. A single configuration may be singular (a wrist stretched
/// out), so only what is without inertia in three generic ones is refused.
void check_moved_inertia(const Model& model) {
  const auto& links = model.topology.links;
  const int worlds = model.parameter_worlds();
  for (int w = 0; w < worlds; ++w) {
    const bool sound = std::all_of(links.begin(), links.end(), [&](const Link& link) {
      return joint_size(link.type).nv == 0 || solid(model, link.body, w) || model.joints.armature(link.joint, 0, w) > 0;
    });
    if (sound) continue;
    std::optional<int> joint;
    for (double phase : {0.137, 0.419, 0.853}) {
      joint = joint_without_inertia(model, w, phase);
      if (!joint) break;
    }
    if (!joint) continue;
    const bool slides = model.joint_types[*joint] == JointType::prismatic;
    const bool one = has_one_degree(model.joint_types[*joint]);
    const std::string body = model.body_names[model.joint_children[*joint]];
    throw ModelError("joints/" + model.joint_names[*joint],
                     std::string("moves no inertia") + (worlds > 1 ? " in world " + std::to_string(w) : "") +
                         ", expected body '" + body + "' or those it carries to have " +
                         (slides ? "mass"
                          : one  ? "inertia about the joint's axis"
                                 : "mass and inertia") +
                         " (mass, inertia, a shape with a " + "density), or the joint an armature > 0");
  }
}

}  // namespace

void validate(Model& model) {
  for (const Field& field : fields()) {
    // The scale has its own rules: unused components may hold anything.
    if (field.of(model).components() != field.components) usage_error("validate: parameters are not those of a model");
    if (&field.in(model) != &model.shapes.geometry.scale) check_field(model, field);
  }
  check_scales(model);
  normalize(model.joints.axis, "joints", model.joint_names, "axis", "a vector");
  normalize(model.joints.frame.orientation, "joints", model.joint_names, "frame/orientation", "a quaternion");
  normalize(model.shapes.frame.orientation, "shapes", model.shape_names, "frame/orientation", "a quaternion");
  check_joints_with_limits(model);
  check_limits(model);
  check_inertias(model);
  check_moved_inertia(model);
  refresh_features(model);
}

}  // namespace backdrive
