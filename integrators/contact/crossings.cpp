#include "integrators/contact/crossings.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "integrators/contact/geometry_table.h"
#include "integrators/contact/pairs.h"
#include "integrators/contact/shape_parameters.h"

namespace backdrive::contact {
namespace {

using V = Vec3<double>;
using M = Mat3<double>;

/// Between two looks at a pair, of its inner radii together; and over how much of them a normal is remembered.
constexpr double kLook = 0.25, kWindow = 1;
/// Way is not counted as deep as this, in inner radii together: end-on through a long one, it is pushed sideways
/// between.
constexpr double kDeep = 0.5;
/// What is remembered lies at least this far apart.
constexpr double kApart = 1. / 16;
/// Cosine of the turn that nothing makes which stays on its side.
constexpr double kTurned = -0.5;
/// At most so many looks at a pair in a step: rods of 1:1000 at any speed.
constexpr int kMostLooks = 10000;
/// Under the ground by more than its size: its middle by so many outer radii.
constexpr double kUnder = 3;

double norm(const V& v) {
  return std::sqrt(dot(v, v));
}

/// exp([φ]×) a: Rodrigues' formula, column by column.
M turned(const V& phi, const M& a) {
  const double angle = norm(phi);
  if (!(angle > 0)) return a;
  const V axis = phi * (1 / angle);
  const double s = std::sin(angle), c = std::cos(angle);
  const auto turn = [&](const V& v) { return v * c + cross(axis, v) * s + axis * (dot(axis, v) * (1 - c)); };
  return {turn(a.cx), turn(a.cy), turn(a.cz)};
}

/// φ with exp([φ]×) from = to, of at most π.
V turn_between(const M& from, const M& to) {
  const M r = to * transposed(from);
  const V twice{r.cy.z - r.cz.y, r.cz.x - r.cx.z, r.cx.y - r.cy.x};  // 2 sin·axis
  const double s = norm(twice) / 2, c = (r.cx.x + r.cy.y + r.cz.z - 1) / 2;
  if (s > 1e-7) return twice * (std::atan2(s, c) / (2 * s));
  if (c > 0) return twice * 0.5;
  // Half a turn: R + 1 = 2 axis axisᵀ, whose longest column says which way.
  const V columns[] = {r.cx + V{1, 0, 0}, r.cy + V{0, 1, 0}, r.cz + V{0, 0, 1}};
  const V longest = *std::ranges::max_element(columns, {}, [](const V& v) { return dot(v, v); });
  return longest * (M_PI / norm(longest));
}

/// What no step changes of a shape.
struct Figure {
  M rotation;  ///< in its body's frame
  V position, scale;
  V middle;             ///< in its own frame
  double inner, outer;  ///< radii of balls about the middle: inside of it, and around it
  double margin;
  bool ground = false, round = false;
};

/// Where a shape is, and how it came there from the last state.
struct Placed {
  M axes = identity3<double>();
  V middle = zero3<double>(), moved = zero3<double>(), turn = zero3<double>();
  double speed_before = 0;  ///< |moved| one state earlier
};

Figure mesh_figure(const MeshView<double>& mesh, Figure f) {
  const auto corner = [&](int i) { return times(f.scale, vertex<double>(mesh, i)); };
  f.middle = zero3<double>();
  for (int i = 0; i < mesh.vertex_count; ++i) f.middle += corner(i) * (1. / mesh.vertex_count);
  f.outer = 0, f.inner = std::numeric_limits<double>::infinity();
  for (int i = 0; i < mesh.vertex_count; ++i) f.outer = std::max(f.outer, norm(corner(i) - f.middle));
  for (int i = 0; i < mesh.face_count; ++i) {
    const V a = corner(mesh.faces[3 * i]);
    const V n = cross(corner(mesh.faces[3 * i + 1]) - a, corner(mesh.faces[3 * i + 2]) - a);
    f.inner = std::min(f.inner, std::abs(dot(n, a - f.middle)) / norm(n));
  }
  return f;
}

Figure figure_of(const ShapeConstants<double>& c, const Geometry<double>& geometry) {
  const V& s = c.scale;
  Figure f{c.rotation, c.position, s, zero3<double>(), 0, 0, c.margin};
  switch (geometry.kind) {
    case GeometryType::plane:
    case GeometryType::height_field:
      f.ground = true;
      break;
    case GeometryType::sphere:
      f.inner = f.outer = s.x;
      f.round = true;
      break;
    case GeometryType::capsule:
      f.inner = s.x, f.outer = s.x + s.y;
      break;
    case GeometryType::cylinder:
      f.inner = std::min(s.x, s.y), f.outer = std::hypot(s.x, s.y);
      break;
    case GeometryType::ellipsoid:
      f.inner = std::min({s.x, s.y, s.z}), f.outer = std::max({s.x, s.y, s.z});
      break;
    case GeometryType::box:
      f.inner = std::min({s.x, s.y, s.z}), f.outer = norm(s);
      break;
    case GeometryType::mesh:
      f = mesh_figure(geometry.mesh, f);
      break;
  }
  f.inner += f.margin, f.outer += f.margin;
  return f;
}

/// Normals of a pair that overlaps, over the last of its way.
struct Trail {
  struct Look {
    double at;  ///< how far the two had moved, m
    V normal;
  };
  std::vector<Look> looks;  ///< in order
  double way = 0;
  double fastest = 0;
};

struct Touch {
  double depth;  ///< of the deepest point; negative: apart
  V normal;
};

}  // namespace

struct CrossingFinder::Paths {
  Paths(const Model& of, double step, int world) : model(of), time_step(step), geometry(of, default_memory()) {
    const ModelStructure structure = structure_of(model);
    const ParametersView view = view_of(model);
    const ParameterReader<double> read{view, nullptr, world < model.parameter_worlds() ? world : 0};
    const PoolVector<ContactShape>& shapes = model.topology.contact_shapes;
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      const auto constants = shape_constants(structure, read, shapes[k], identity3<double>());
      figures.push_back(figure_of(constants, geometry.data()[k]));
    }
    placed.resize(figures.size());
    points.resize(std::max(geometry.most_points_of_pair(), 1));
  }

  void place(std::span<const double> poses) {
    for (std::size_t k = 0; k < figures.size(); ++k) {
      const Figure& f = figures[k];
      Placed& p = placed[k];
      M axes = f.rotation;
      V origin = f.position;
      if (const int body = model.topology.contact_shapes[k].body; body >= 0) {
        const double* const x = poses.data() + static_cast<std::size_t>(body) * 12;
        const M turn{{x[3], x[4], x[5]}, {x[6], x[7], x[8]}, {x[9], x[10], x[11]}};
        axes = turn * f.rotation;
        origin = plus_times(V{x[0], x[1], x[2]}, turn, f.position);
      }
      const V middle = plus_times(origin, axes, f.middle);
      p.speed_before = norm(p.moved) / time_step;
      p.moved = states > 0 ? middle - p.middle : zero3<double>();
      p.turn = states > 0 ? turn_between(p.axes, axes) : zero3<double>();
      p.middle = middle, p.axes = axes;
    }
  }

  /// Where a shape was, `back` of a step before the state.
  Shape<double> shape_at(int k, double back) const {
    const Placed& p = placed[k];
    const M axes = back > 0 ? turned(p.turn * -back, p.axes) : p.axes;
    const V middle = p.middle - p.moved * back;
    return {{axes, middle - axes * figures[k].middle}, figures[k].scale};
  }

  Touch touch(const ContactPair& pair, double back) {
    const Geometry<double>&a = geometry.data()[pair.a], &b = geometry.data()[pair.b];
    contact_points<double>({a, shape_at(pair.a, back)}, {b, shape_at(pair.b, back)}, points.data());
    const double margin = figures[pair.a].margin + figures[pair.b].margin;
    Touch deepest{-kFarGap, {0, 0, 1}};
    for (int i = 0; i < contact_count(a, b); ++i) {
      if (margin - points[i].gap > deepest.depth) deepest = {margin - points[i].gap, points[i].normal};
    }
    return deepest;
  }

  void tell(CrossingKind kind, int pair, double speed, double room) {
    if (found.count++ == 0) found.first = {kind, std::max(states - 1, 0), pair, speed, room};
  }

  /// Of volumes.
  void follow(int number) {
    const ContactPair& pair = model.topology.contact_pairs[number];
    const Figure &fa = figures[pair.a], &fb = figures[pair.b];
    const Placed &a = placed[pair.a], &b = placed[pair.b];
    const V apart = a.middle - b.middle, moved = a.moved - b.moved;
    const double reach = fa.outer + fb.outer, room = fa.inner + fb.inner;
    const auto turning = [](const Figure& f, const Placed& p) { return f.round ? 0 : norm(p.turn) * f.outer; };
    const double way = norm(moved) + turning(fa, a) + turning(fb, b);
    // |apart − back·moved| ≤ reach for back within [first, last] of [0, 1]
    const double square = dot(moved, moved), along = dot(apart, moved), far = dot(apart, apart) - reach * reach;
    double first = 0, last = 1;
    if (square > 0) {
      const double root = along * along - square * far;
      if (!(root >= 0)) return forget(number);
      first = std::max((along - std::sqrt(root)) / square, 0.);
      last = std::min((along + std::sqrt(root)) / square, 1.);
    } else if (far > 0) {
      return forget(number);
    }
    if (!(first <= last)) return forget(number);
    const double looks_needed = std::ceil(way * (last - first) / (kLook * room));
    const int looks = static_cast<int>(std::clamp(looks_needed, 1., double{kMostLooks}));
    const double speed = std::max(way / time_step, a.speed_before + b.speed_before);
    if (last < 1) forget(number);
    for (int k = looks - 1; k >= 0; --k) {
      const double back = first + (last - first) * k / looks;
      look(number, touch(pair, back), way * (last - first) / looks, room, speed);
    }
    if (first > 0) forget(number);
  }

  void look(int number, const Touch& now, double way, double room, double speed) {
    if (!(now.depth > 0)) return forget(number);
    const bool fresh = !trails.contains(number);
    Trail& trail = trails[number];
    if (fresh && states == 0 && now.depth > kDeep * room) tell(CrossingKind::started, number, 0, room);
    if (now.depth < kDeep * room) trail.way += way;
    trail.fastest = std::max(trail.fastest, speed);
    std::erase_if(trail.looks, [&](const Trail::Look& l) { return l.at < trail.way - kWindow * room; });
    const auto turned_from = [&](const Trail::Look& l) { return dot(l.normal, now.normal) < kTurned; };
    if (std::ranges::any_of(trail.looks, turned_from)) {
      tell(CrossingKind::through, number, trail.fastest, room);
      trail.looks.clear();
    }
    if (trail.looks.empty() || trail.looks.back().at < trail.way - kApart * room) {
      trail.looks.push_back({trail.way, now.normal});
    }
  }

  void forget(int number) { trails.erase(number); }

  /// How deep the middle of a shape is in the ground.
  Touch middle_in_ground(const ContactPair& pair, double back) {
    Geometry<double> probe{};
    probe.kind = GeometryType::sphere;
    const Placed& p = placed[pair.a];
    const double tiny = 1e-9 * figures[pair.a].inner;
    const Shape<double> at{{identity3<double>(), p.middle - p.moved * back}, {tiny, 0, 0}};
    ContactPoint<double> point;
    contact_points<double>({probe, at}, {geometry.data()[pair.b], shape_at(pair.b, back)}, &point);
    return {-point.gap, point.normal};
  }

  /// Of a shape on a plane or a height field.
  void follow_on_ground(int number) {
    const ContactPair& pair = model.topology.contact_pairs[number];
    const Figure& f = figures[pair.a];
    const Placed& p = placed[pair.a];
    const double now = middle_in_ground(pair, 0).depth, way = norm(p.moved), room = kUnder * f.outer;
    const double speed = std::max(way / time_step, p.speed_before);
    if (now > room) {
      const bool fresh = lost.insert(number).second;
      return fresh ? tell(states == 0 ? CrossingKind::started : CrossingKind::under, number, speed, room) : void();
    }
    lost.erase(number);
    if (geometry.data()[pair.b].kind == GeometryType::height_field) follow_over_hills(number, now, speed);
  }

  /// Through a ridge within a step, or into it and out on its other side.
  void follow_over_hills(int number, double now, double speed) {
    const ContactPair& pair = model.topology.contact_pairs[number];
    const double way = norm(placed[pair.a].moved), room = figures[pair.a].inner;
    const int looks = static_cast<int>(std::clamp(std::ceil(way / (kLook * room)), 1., double{kMostLooks}));
    const bool outside = !(now > 0) && !(middle_in_ground(pair, 1).depth > 0);
    for (int k = looks - 1; k >= 0; --k) {
      const Touch touch = middle_in_ground(pair, static_cast<double>(k) / looks);
      if (outside && touch.depth > 0) return tell(CrossingKind::through, number, speed, room);
      look(number, touch, way / looks, room, speed);
    }
  }

  const Model& model;
  double time_step;
  GeometryTable<double> geometry;
  std::vector<Figure> figures;  ///< per contact shape
  std::vector<Placed> placed;
  std::vector<ContactPoint<double>> points;
  std::unordered_map<int, Trail> trails;  ///< by pair
  std::unordered_set<int> lost;           ///< pairs of which one lies far under the other, the ground
  int states = 0;                         ///< seen before this one
  Crossings found;
};

CrossingFinder::CrossingFinder(const Model& model, double time_step, int world)
    : paths_(std::make_unique<Paths>(model, time_step, world)) {}
CrossingFinder::~CrossingFinder() = default;

void CrossingFinder::see(std::span<const double> poses) {
  Paths& p = *paths_;
  p.place(poses);
  const PoolVector<ContactPair>& pairs = p.model.topology.contact_pairs;
  for (std::size_t k = 0; k < pairs.size(); ++k) {
    const int number = static_cast<int>(k);
    p.figures[pairs[k].b].ground ? p.follow_on_ground(number) : p.follow(number);
  }
  ++p.states;
}

const Crossings& CrossingFinder::found() const {
  return paths_->found;
}

}  // namespace backdrive::contact
