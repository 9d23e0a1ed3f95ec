#include "tests/autodiff/program_dynamics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

namespace backdrive::test::plain {
namespace {

using V = std::array<D, 3>;
using M = std::array<V, 3>;  // rows

V operator+(const V& a, const V& b) {
  return {a[0] + b[0], a[1] + b[1], a[2] + b[2]};
}
V operator-(const V& a, const V& b) {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}
V operator*(const V& a, const D& s) {
  return {a[0] * s, a[1] * s, a[2] * s};
}
D dot(const V& a, const V& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
V cross(const V& a, const V& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
V operator*(const M& m, const V& a) {
  return {dot(m[0], a), dot(m[1], a), dot(m[2], a)};
}
M transpose(const M& m) {
  return {V{m[0][0], m[1][0], m[2][0]}, V{m[0][1], m[1][1], m[2][1]}, V{m[0][2], m[1][2], m[2][2]}};
}
M operator*(const M& a, const M& b) {
  const M t = transpose(b);
  M c;
  for (int r = 0; r < 3; ++r) c[r] = {dot(a[r], t[0]), dot(a[r], t[1]), dot(a[r], t[2])};
  return c;
}
M skew(const V& a) {
  return {V{D(0), -a[2], a[1]}, V{a[2], D(0), -a[0]}, V{-a[1], a[0], D(0)}};
}
M identity() {
  return {V{D(1), D(0), D(0)}, V{D(0), D(1), D(0)}, V{D(0), D(0), D(1)}};
}
M plus(const M& a, const M& b, const D& factor) {
  M c;
  for (int r = 0; r < 3; ++r) c[r] = a[r] + b[r] * factor;
  return c;
}
D sine(const D& x) {
  return {std::sin(x.value), std::cos(x.value) * x.dot};
}
D cosine(const D& x) {
  return {std::cos(x.value), -std::sin(x.value) * x.dot};
}

/// Where the fields stand in the table.
int index_of(FieldGroup group, std::string_view leaf) {
  const auto all = fields();
  for (std::size_t k = 0; k < all.size(); ++k) {
    if (all[k].group == group && all[k].leaf == leaf) return static_cast<int>(k);
  }
  throw std::logic_error("no field " + std::string(leaf));
}
struct Table {
  using enum FieldGroup;
  int mass = index_of(bodies, "mass"), com = index_of(bodies, "com"), inertia = index_of(bodies, "inertia");
  int position = index_of(joints, "frame/position"), orientation = index_of(joints, "frame/orientation");
  int axis = index_of(joints, "axis"), armature = index_of(joints, "armature"), damping = index_of(joints, "damping");
  int friction = index_of(joints, "friction"), lower = index_of(joints, "limit/lower");
  int upper = index_of(joints, "limit/upper"), limit_stiffness = index_of(joints, "limit/stiffness");
  int limit_damping = index_of(joints, "limit/damping"), drive_stiffness = index_of(joints, "drive/stiffness");
  int spring_stiffness = index_of(joints, "spring/stiffness"), spring_rest = index_of(joints, "spring/rest");
  int drive_damping = index_of(joints, "drive/damping"), effort_limit = index_of(joints, "drive/effort_limit");
  int shape_position = index_of(shapes, "frame/position"), scale = index_of(shapes, "geometry/scale");
  int density = index_of(shapes, "density"), gravity = index_of(model, "gravity");
  int lift = index_of(bodies, "gravity_compensation");
};
const Table& table() {
  static const Table t;
  return t;
}

struct Reader {
  const Model& model;
  const Direction& direction;
  int world;

  double value(int field, int item, int component) const {
    const FieldValues& f = model.fields[field];
    const int w = f.worlds == 1 ? 0 : world;
    return f.values[(static_cast<std::size_t>(w) * f.items + item) * f.components + component];
  }
  double dot(int field, int item, int tangent) const {
    return direction.field == field && direction.item == item && direction.tangent == tangent;
  }
  D number(int field, int item, int component = 0) const {
    return {value(field, item, component), dot(field, item, component)};
  }
  V vector(int field, int item) const {
    return {number(field, item, 0), number(field, item, 1), number(field, item, 2)};
  }
  /// Axes are unit vectors: only what of the direction is perpendicular to one can move it.
  V axis(int field, int item) const {
    V a{D(value(field, item, 0)), D(value(field, item, 1)), D(value(field, item, 2))};
    if (direction.field != field || direction.item != item) return a;
    const double along = a[direction.tangent].value;
    for (int k = 0; k < 3; ++k) a[k].dot = dot(field, item, k) - a[k].value * along;
    return a;
  }
  /// R (1 + [θ]×): the tangents of an orientation turn about its own axes.
  M rotation(int field, int item) const {
    const double x = value(field, item, 0), y = value(field, item, 1), z = value(field, item, 2);
    const double w = value(field, item, 3);
    const V u{D(x), D(y), D(z)};
    const M R = plus(plus(identity(), skew(u), D(2 * w)), skew(u) * skew(u), D(2));
    const V theta{D(0, dot(field, item, 0)), D(0, dot(field, item, 1)), D(0, dot(field, item, 2))};
    return R * plus(identity(), skew(theta), D(1));
  }
};

/// A body and the joint it hangs on, in world axes, with accelerations for q̈ = 0.
struct Placed {
  M R = identity();
  V origin, omega, alpha, acceleration;
  V axis;  ///< of its joint
};

std::vector<Placed> place(const Reader& read, const std::vector<D>& q, const std::vector<D>& qd) {
  std::vector<Placed> bodies;
  for (std::size_t j = 0; j < read.model.joints.size(); ++j) {
    const Joint& joint = read.model.joints[j];
    const int item = static_cast<int>(j);
    const Placed parent = joint.parent < 0 ? Placed() : bodies[joint.parent];
    Placed b;
    const M frame = parent.R * read.rotation(table().orientation, item);
    const V axis = read.axis(table().axis, item);
    b.axis = frame * axis;
    V arm = parent.R * read.vector(table().position, item);
    b.omega = parent.omega;
    b.alpha = parent.alpha;
    V coriolis;
    if (joint.slides) {
      b.R = frame;
      arm = arm + b.axis * q[j];
      coriolis = cross(parent.omega, b.axis * qd[j]) * D(2);
    } else {
      const M K = skew(axis);  // Rodrigues
      b.R = frame * plus(plus(identity(), K, sine(q[j])), K * K, D(1) - cosine(q[j]));
      b.omega = b.omega + b.axis * qd[j];
      b.alpha = b.alpha + cross(parent.omega, b.axis * qd[j]);
    }
    b.origin = parent.origin + arm;
    b.acceleration =
        parent.acceleration + cross(parent.alpha, arm) + cross(parent.omega, cross(parent.omega, arm)) + coriolis;
    bodies.push_back(b);
  }
  return bodies;
}

/// One rigid thing on a body: the body's own numbers, or a shape with a density.
struct Part {
  int body;
  D mass;
  V com;      ///< link axes
  M inertia;  ///< link axes, about com
};

std::vector<Part> parts_of(const Reader& read) {
  std::vector<Part> parts;
  for (std::size_t b = 0; b < read.model.joints.size(); ++b) {
    const int item = static_cast<int>(b);
    const auto I = [&](int k) { return read.number(table().inertia, item, k); };
    parts.push_back({item,
                     read.number(table().mass, item),
                     read.vector(table().com, item),
                     {V{I(0), I(3), I(4)}, V{I(3), I(1), I(5)}, V{I(4), I(5), I(2)}}});
  }
  for (std::size_t s = 0; s < read.model.shape_bodies.size(); ++s) {
    const int item = static_cast<int>(s);
    const D r = read.number(table().scale, item);
    const D mass = D(4 * M_PI / 3) * r * r * r * read.number(table().density, item), moment = D(0.4) * mass * r * r;
    parts.push_back({read.model.shape_bodies[s],
                     mass,
                     read.vector(table().shape_position, item),
                     {V{moment, D(0), D(0)}, V{D(0), moment, D(0)}, V{D(0), D(0), moment}}});
  }
  return parts;
}

/// A q̈ = b.
struct Equations {
  std::vector<std::vector<D>> A;
  std::vector<D> b;
};

/// What moves a point at x of a body: joints, and by each its velocity and that of the body's turn.
struct Columns {
  std::vector<int> joints;
  std::vector<V> linear, angular;
};
Columns columns_of(const Reader& read, const std::vector<Placed>& bodies, int body, const V& x) {
  Columns columns;
  for (int j = body; j >= 0; j = read.model.joints[j].parent) {
    const bool slides = read.model.joints[j].slides;
    columns.joints.push_back(j);
    columns.linear.push_back(slides ? bodies[j].axis : cross(bodies[j].axis, x - bodies[j].origin));
    columns.angular.push_back(slides ? V() : bodies[j].axis);
  }
  return columns;
}
V velocity_of(const Columns& columns, const std::vector<D>& qd) {
  V v;
  for (std::size_t k = 0; k < columns.joints.size(); ++k) v = v + columns.linear[k] * qd[columns.joints[k]];
  return v;
}

int root_of(const Reader& read, int joint) {
  while (read.model.joints[joint].parent >= 0) joint = read.model.joints[joint].parent;
  return joint;
}

/// x² (3 − 2 x) of y = ⁴√turns, x = (y − from)/(to − from).
D share_of(const D& turns, double from, double to) {
  if (!(turns.value > 0)) return D(0);
  const D x = (square_root(square_root(turns)) - D(from)) / D(to - from);
  if (x.value >= 1) return D(1);
  return x.value > 0 ? x * x * (D(3) - D(2) * x) : D(0);
}

/// Of each tree, at its root: λ (docs/theory.md, equation 22) and μ (24).
struct TurnShares {
  std::vector<D> whip, middle;
};
TurnShares turn_shares(const Reader& read, const std::vector<D>& qd, double time_step) {
  const int n = static_cast<int>(qd.size());
  std::vector<D> pairs(n), joints(n), moving(n);
  const auto turning = [&](int j) {
    while (j >= 0 && read.model.joints[j].slides) j = read.model.joints[j].parent;
    return j;
  };
  for (int j = 0; j < n; ++j) {
    const int root = root_of(read, j), other = turning(read.model.joints[j].parent);
    moving[root] += D(1);
    if (read.model.joints[j].slides) continue;
    const D a = qd[j] * qd[j] * D(time_step);
    joints[root] += a * a * a * a;
    if (other < 0) continue;
    const D b = qd[other] * qd[other] * D(time_step);
    if (!((a + b).value > 0)) continue;
    const D h = D(2) * a * b / (a + b) * D(time_step);
    pairs[root] += h * h * h * h;
  }
  TurnShares shares{std::vector<D>(n), std::vector<D>(n)};
  for (int j = 0; j < n; ++j) {
    shares.whip[j] = share_of(pairs[j], 0.01, 0.02);
    if (!(moving[j].value > 1)) continue;
    const D lost = share_of(joints[j] * D(std::pow(time_step, 4)), 2, 8);
    shares.middle[j] = share_of(joints[j], 1e-5, 1e-4) * (D(1) - lost) * (D(1) - shares.whip[j]);
  }
  return shares;
}

/// Σ r × ṙ⁻ of a part whose points were turned by R⁻ and moved by ω⁻, and are turned by R now: each along by itself.
V momentum_of_points(const Part& part, const Placed& now, const Placed& before) {
  const D trace = part.inertia[0][0] + part.inertia[1][1] + part.inertia[2][2];
  V sum;
  for (int k = 0; k < 3; ++k) {
    for (int l = 0; l < 3; ++l) {
      const D moment = (k == l ? D(0.5) * trace : D(0)) - part.inertia[k][l];
      const V r = transpose(now.R)[k], r_before = transpose(before.R)[l];
      sum = sum + cross(r, cross(before.omega, r_before)) * moment;
    }
  }
  return sum;
}

/// A = Σ m JᵥᵀJᵥ + JωᵀI Jω, b = −Σ Jᵥᵀ m (a − g) + Jωᵀ (I α + ω × I ω), where whipping trees have, for λ of a, α and
/// the rest, the change of their bodies' momenta on the way from q − Δt q̇ (docs/theory.md, equation 21).
Equations equations_of(const Reader& read, const std::vector<D>& q, const std::vector<D>& qd, double time_step,
                       const std::vector<D>& shares) {
  const std::size_t n = q.size();
  std::vector<D> q_before(n);
  for (std::size_t j = 0; j < n; ++j) q_before[j] = q[j] - D(time_step) * qd[j];
  const std::vector<Placed> bodies = place(read, q, qd), before = place(read, q_before, qd);
  Equations e{std::vector<std::vector<D>>(n, std::vector<D>(n)), std::vector<D>(n)};
  const V gravity = read.vector(table().gravity, 0);
  const D rate(1 / time_step);
  for (const Part& part : parts_of(read)) {
    const Placed &body = bodies[part.body], &was = before[part.body];
    const M I = body.R * part.inertia * transpose(body.R);
    const V arm = body.R * part.com, at = body.origin + arm;
    const Columns columns = columns_of(read, bodies, part.body, at);
    V a = body.acceleration + cross(body.alpha, arm) + cross(body.omega, cross(body.omega, arm));
    V torque = I * body.alpha + cross(body.omega, I * body.omega);
    const D share = shares[root_of(read, part.body)];
    if (share.value > 0) {
      const V flown = velocity_of(columns_of(read, before, part.body, was.origin + was.R * part.com), qd);
      a = a * (D(1) - share) + (velocity_of(columns, qd) - flown) * (share * rate);
      torque = torque * (D(1) - share) + (I * body.omega - momentum_of_points(part, body, was)) * (share * rate);
    }
    const D weight = D(1) - read.number(table().lift, part.body);
    const V force = (a - gravity * weight) * part.mass;
    const auto& [moving, linear, angular] = columns;
    for (std::size_t r = 0; r < moving.size(); ++r) {
      e.b[moving[r]] -= dot(linear[r], force) + dot(angular[r], torque);
      for (std::size_t c = 0; c < moving.size(); ++c) {
        e.A[moving[r]][moving[c]] += part.mass * dot(linear[r], linear[c]) + dot(angular[r], I * angular[c]);
      }
    }
  }
  return e;
}

/// The limit's ramp and its slope.
struct Ramp {
  D value, slope;
  Ramp(const D& x, bool present) {
    if (!present || x.value <= 0) return;
    const bool full = x.value >= kLimitRamp;
    value = full ? x - D(kLimitRamp / 2) : x * x / D(2 * kLimitRamp);
    slope = full ? D(1) : x / D(kLimitRamp);
  }
};

/// The effort of joint j, T = T₀ − c q̈ with q̇⁺ = q̇ + Δt q̈ (docs/theory.md, equation 9): adds T₀ to b and c to A.
void add_effort(const Reader& read, int j, const D& q, const D& qd, const std::vector<D>& u, double time_step,
                Equations& e) {
  const Table& t = table();
  const D dt(time_step), zero(0);
  const int target = read.model.joints[j].target;
  D effort = u.empty() ? zero : u[j];
  D rate = read.number(t.damping, j);  // what multiplies −q̇⁺ and is never saturated
  if (target >= 0) {
    const D k = read.number(t.drive_stiffness, j), d = read.number(t.drive_damping, j);
    const D bound = read.number(t.effort_limit, j);
    const D position = u.empty() ? zero : u[target], velocity = u.empty() ? zero : u[target + 1];
    effort += k * (position - q - dt * qd) + d * (velocity - qd);
    D resists = dt * (d + dt * k);
    if (std::abs(effort.value) > bound.value) {
      const D limited = effort.value > 0 ? bound : -bound;
      resists = resists * limited / effort;
      effort = limited;
    }
    e.A[j][j] += resists;
  }
  effort -= read.number(t.spring_stiffness, j) * (q - read.number(t.spring_rest, j));
  rate += read.number(t.friction, j) / square_root(qd * qd + D(kFrictionVelocity * kFrictionVelocity));
  const D lower = read.number(t.lower, j), upper = read.number(t.upper, j),
          stiffness = read.number(t.limit_stiffness, j);
  const Ramp above(q - upper, std::isfinite(upper.value)), below(lower - q, std::isfinite(lower.value));
  effort -= stiffness * (above.value - below.value);
  rate += (above.slope + below.slope) * (dt * stiffness + read.number(t.limit_damping, j));
  e.b[j] += effort - rate * qd;
  e.A[j][j] += read.number(t.armature, j) + dt * rate;
}

/// Elimination; the diagonal of a positive definite matrix needs no pivots.
std::vector<D> solve(Equations e) {
  const std::size_t n = e.b.size();
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t r = k + 1; r < n; ++r) {
      const D factor = e.A[r][k] / e.A[k][k];
      for (std::size_t c = k; c < n; ++c) e.A[r][c] -= factor * e.A[k][c];
      e.b[r] -= factor * e.b[k];
    }
  }
  for (std::size_t k = n; k-- > 0;) {
    for (std::size_t c = k + 1; c < n; ++c) e.b[k] -= e.A[k][c] * e.b[c];
    e.b[k] /= e.A[k][k];
  }
  return e.b;
}

}  // namespace

void step(const Model& model, const Direction& direction, int world, double time_step, std::vector<D>& q,
          std::vector<D>& qd, const std::vector<D>& u) {
  const Reader read{model, direction, world};
  const TurnShares shares = turn_shares(read, qd, time_step);
  Equations e = equations_of(read, q, qd, time_step, shares.whip);
  for (std::size_t j = 0; j < q.size(); ++j) {
    add_effort(read, static_cast<int>(j), q[j], qd[j], u, time_step, e);
  }
  std::vector<D> qdd = solve(e);
  // What does not whip has the velocity terms of z = q̇ + ½ μ Δt q̈ in place of those of q̇ (docs/theory.md, equation 24).
  const std::vector<D> none(q.size());
  std::vector<D> z = qd;
  for (std::size_t j = 0; j < q.size(); ++j) {
    z[j] += D(time_step / 2) * shares.middle[root_of(read, static_cast<int>(j))] * qdd[j];
  }
  const Equations start = equations_of(read, q, qd, time_step, none),
                  middle = equations_of(read, q, z, time_step, none);
  for (std::size_t j = 0; j < q.size(); ++j) e.b[j] += middle.b[j] - start.b[j];
  qdd = solve(std::move(e));
  for (std::size_t j = 0; j < q.size(); ++j) {
    qd[j] += D(time_step) * qdd[j];
    q[j] += D(time_step) * qd[j];
  }
}

}  // namespace backdrive::test::plain
