#pragma once
// All pairs of shapes: how many contact points a pair has, the points, and their adjoint.
//
//   visit_pair(a.geometry.kind, b.geometry.kind, [&](auto pair) { pair.points(a, b, out); });
//
// A is on B: B is the plane or height field, or else the later of ellipsoid, sphere, capsule, box, cylinder, mesh
// (in_order). Planes and height fields do not meet each other.
#include "integrators/contact/box_box.h"
#include "integrators/contact/box_pairs.h"
#include "integrators/contact/cylinder_cylinder.h"
#include "integrators/contact/ellipsoid_pairs.h"
#include "integrators/contact/height_field.h"
#include "integrators/contact/mesh_pairs.h"
#include "integrators/contact/round_on_cylinder.h"

namespace backdrive::contact::inline BACKDRIVE_KERNELS {

/// Place among the shapes that are no ground.
constexpr int pair_rank(ShapeKind k) {
  switch (k) {
    case ShapeKind::ellipsoid:
      return 0;
    case ShapeKind::sphere:
      return 1;
    case ShapeKind::capsule:
      return 2;
    case ShapeKind::box:
      return 3;
    case ShapeKind::cylinder:
      return 4;
    case ShapeKind::mesh:
      return 5;
    default:
      return -1;
  }
}
constexpr bool in_order(ShapeKind a, ShapeKind b) {
  return !is_ground(a) && (is_ground(b) || pair_rank(a) <= pair_rank(b));
}
constexpr bool can_meet(ShapeKind a, ShapeKind b) {
  return in_order(a, b) || in_order(b, a);
}

/// Points of a shape on a plane (probes = false) or a height field; 0: one per vertex.
constexpr int ground_points(ShapeKind k, bool probes) {
  switch (k) {
    case ShapeKind::sphere:
    case ShapeKind::ellipsoid:
      return 1;
    case ShapeKind::capsule:
      return probes ? 3 : 2;
    case ShapeKind::box:
      return 8;
    case ShapeKind::cylinder:
      return kCylinderPoints;
    default:
      return 0;
  }
}
/// The unit coordinates of point i on the ground; not for ellipsoids and cylinders.
template <ShapeKind kind, class Real>
BACKDRIVE_INLINE Vec3<Real> ground_point(const Geometry<ScalarOf<Real>>& g, int i) {
  if constexpr (kind == ShapeKind::sphere) {
    return zero3<Real>();
  } else if constexpr (kind == ShapeKind::capsule) {
    return capsule_end<Real>(i == 2 ? 0 : 2 * i - 1);
  } else if constexpr (kind == ShapeKind::box) {
    return corner<Real>(i);
  } else {
    return vertex<Real>(g.mesh, i);
  }
}

/// Shape a (any but the ground) on a plane or height field b.
template <ShapeKind a, ShapeKind b>
struct GroundPair {
  static constexpr bool probes = b == ShapeKind::height_field;
  static constexpr bool supported = a == ShapeKind::ellipsoid || a == ShapeKind::cylinder;
  static constexpr bool round = a == ShapeKind::sphere || a == ShapeKind::capsule;

  template <class T>
  static BACKDRIVE_HD int count(const Geometry<T>& ga, const Geometry<T>&) {
    return a == ShapeKind::mesh ? ga.mesh.vertex_count : ground_points(a, probes);
  }
  template <class Real>
  static BACKDRIVE_HD void points(const GeometricShape<Real>& A, const GeometricShape<Real>& B,
                                  ContactPoint<Real>* out) {
    const Core<Real> core = core_of<a>(A.shape), ground = core_of<b>(B.shape);
    [[maybe_unused]] const GroundField<Real> field{ground, B.geometry.field};
    const int n = count(A.geometry, B.geometry);
    if constexpr (supported && probes) {
      const FieldSupports<a, Real> supports(A.shape, field);
      for (int i = 0; i < n; ++i) out[i] = supports.point(i);
    } else if constexpr (supported) {
      for (int i = 0; i < n; ++i) out[i] = support_on_plane<a>(A.shape, B.shape.pose, i);
    } else {
      for (int i = 0; i < n; ++i) {
        const Vec3<Real> xi = ground_point<a, Real>(A.geometry, i);
        if constexpr (probes) {
          out[i] = witness(core, ground, probe_feature<round>(core, xi, field));
        } else {
          out[i] = core_on_plane(core, xi, B.shape.pose);
        }
      }
    }
  }
  template <class Real>
  static BACKDRIVE_HD void adjoint(const GeometricShape<Real>& A, const GeometricShape<Real>& B,
                                   const ContactPoint<Real>* bar, ShapeBar<Real>& A_bar, ShapeBar<Real>& B_bar) {
    const Core<Real> core = core_of<a>(A.shape), ground = core_of<b>(B.shape);
    [[maybe_unused]] const GroundField<Real> field{ground, B.geometry.field};
    CoreBar<Real> core_bar = zero_core_bar<Real>(), ground_bar = core_bar;
    const int n = count(A.geometry, B.geometry);
    if constexpr (supported && probes) {
      const FieldSupports<a, Real> supports(A.shape, field);
      Vec3<Real> n_bar = zero3<Real>();
      for (int i = 0; i < n; ++i) supports.adj_point(i, bar[i], A_bar, ground_bar, n_bar);
      supports.adj(n_bar, A_bar, ground_bar);
    } else if constexpr (supported) {
      for (int i = 0; i < n; ++i) {
        adj_support_on_plane<a>(A.shape, B.shape.pose, i, bar[i], A_bar, ground_bar.pose);
      }
    } else {
      for (int i = 0; i < n; ++i) {
        const Vec3<Real> xi = ground_point<a, Real>(A.geometry, i);
        if constexpr (probes) {
          adj_witness(core, ground, probe_feature<round>(core, xi, field), bar[i], core_bar, ground_bar);
        } else {
          adj_core_on_plane(core, xi, B.shape.pose, bar[i], core_bar, ground_bar.pose);
        }
      }
    }
    adj_core_of<a>(core_bar, A_bar);
    adj_core_of<b>(ground_bar, B_bar);
  }
};

/// Spheres, capsules, boxes and meshes among each other, in the order of pair_rank.
template <ShapeKind a, ShapeKind b>
struct BodyPair {
  using K = ShapeKind;
  static constexpr bool round = a == K::sphere || a == K::capsule;
  static constexpr int fixed_count = round ? (a == K::sphere ? 1 : 2) : (b == K::box ? kBoxBoxPoints : kMeshMeshPoints);

  template <class T>
  static BACKDRIVE_HD int count(const Geometry<T>&, const Geometry<T>&) {
    return fixed_count;
  }
  template <class Real>
  static BACKDRIVE_INLINE FeaturePair<Real> feature(const Core<Real>& A, const Core<Real>& B,
                                                    const MeshView<ScalarOf<Real>>& mesh_b, int i) {
    if constexpr (b == K::mesh) {
      if constexpr (a == K::sphere) {
        return sphere_mesh_feature(A, B, mesh_b);
      } else {
        return capsule_mesh_feature(A, B, mesh_b, i);
      }
    } else if constexpr (a == K::capsule) {
      return capsule_capsule_feature(A, B, i);
    } else if constexpr (b == K::capsule) {
      return sphere_capsule_feature(A, B);
    } else {
      return sphere_sphere_feature<Real>();
    }
  }
  template <class Real>
  static BACKDRIVE_HD void points(const GeometricShape<Real>& shape_a, const GeometricShape<Real>& shape_b,
                                  ContactPoint<Real>* out) {
    const Core<Real> A = core_of<a>(shape_a.shape), B = core_of<b>(shape_b.shape);
    [[maybe_unused]] const auto &mesh_a = shape_a.geometry.mesh, &mesh_b = shape_b.geometry.mesh;
    if constexpr (!round && b == K::box) {
      box_box(A, B, out);
    } else if constexpr (!round) {
      mesh_mesh<Real>({A, mesh_a}, {B, mesh_b}, out);
    } else {
      for (int i = 0; i < fixed_count; ++i) {
        if constexpr (b == K::box) {
          out[i] = round_on_box<a>(A, B, i);
        } else {
          out[i] = witness(A, B, feature(A, B, mesh_b, i));
        }
      }
    }
  }
  template <class Real>
  static BACKDRIVE_HD void adjoint(const GeometricShape<Real>& shape_a, const GeometricShape<Real>& shape_b,
                                   const ContactPoint<Real>* bar, ShapeBar<Real>& a_bar, ShapeBar<Real>& b_bar) {
    const Core<Real> A = core_of<a>(shape_a.shape), B = core_of<b>(shape_b.shape);
    [[maybe_unused]] const auto &mesh_a = shape_a.geometry.mesh, &mesh_b = shape_b.geometry.mesh;
    CoreBar<Real> A_bar = zero_core_bar<Real>(), B_bar = A_bar;
    if constexpr (!round && b == K::box) {
      adj_box_box(A, B, bar, A_bar, B_bar);
    } else if constexpr (!round) {
      adj_mesh_mesh<Real>({A, mesh_a}, {B, mesh_b}, bar, A_bar, B_bar);
    } else {
      for (int i = 0; i < fixed_count; ++i) {
        if constexpr (b == K::box) {
          adj_round_on_box<a>(A, B, i, bar[i], A_bar, B_bar);
        } else {
          adj_witness(A, B, feature(A, B, mesh_b, i), bar[i], A_bar, B_bar);
        }
      }
    }
    adj_core_of<a>(A_bar, a_bar);
    adj_core_of<b>(B_bar, b_bar);
  }
};

/// A cylinder and any of those, in the order of pair_rank. Adjoints by dual numbers (by_duals.h).
template <ShapeKind a, ShapeKind b>
struct CylinderPair {
  using K = ShapeKind;
  static constexpr bool round = a == K::sphere || a == K::capsule;
  static constexpr bool both = a == K::cylinder && b == K::cylinder;
  static constexpr int fixed_count = a == K::sphere    ? 1
                                     : a == K::capsule ? 2
                                     : both            ? kCylinderCylinderPoints
                                                       : kCylinderPolyhedronPoints;

  template <class T>
  static BACKDRIVE_HD int count(const Geometry<T>&, const Geometry<T>&) {
    return fixed_count;
  }

  /// visit(point): point(A, B, i) of numbers that duals of Real may be, with the features of these shapes.
  template <class Real, class Visit>
  static BACKDRIVE_HD void with_features(const GeometricShape<Real>& shape_a, const GeometricShape<Real>& shape_b,
                                         const Visit& visit) {
    using Value = ValueOf<Real>;
    const Shape<Value> A = values_of(shape_a.shape), B = values_of(shape_b.shape);
    if constexpr (round) {
      Value near[fixed_count];
      for (int i = 0; i < fixed_count; ++i) near[i] = nearest_to_cylinder<a>(A, B, i);
      visit([&]<class N>(const Shape<N>& on, const Shape<N>& under, int i) {
        return round_on_cylinder<a>(on, under, i, near[i]);
      });
    } else if constexpr (both) {
      CylinderCylinderFeatures<Value> features;
      cylinder_cylinder_features(A, B, features);
      visit([&]<class N>(const Shape<N>& on, const Shape<N>& under, int i) {
        return cylinder_cylinder_point(on, under, features, i);
      });
    } else {
      CylinderPolyhedronFeatures<Value> features;
      if constexpr (a == K::cylinder) {
        const Core<Value> core = core_of<b>(B);
        cylinder_polyhedron_features<Value>(A, {core, shape_b.geometry.mesh}, features);
      } else {
        const Core<Value> core = core_of<a>(A);
        cylinder_polyhedron_features<Value>(B, {core, shape_a.geometry.mesh}, features);
      }
      visit([&]<class N>(const Shape<N>& on, const Shape<N>& under, int i) {
        if constexpr (a == K::cylinder) {
          return cylinder_polyhedron_point(on, core_of<b>(under), features, i);
        } else {
          return turned(cylinder_polyhedron_point(under, core_of<a>(on), features, i));
        }
      });
    }
  }

  template <class Real>
  static BACKDRIVE_HD void points(const GeometricShape<Real>& A, const GeometricShape<Real>& B,
                                  ContactPoint<Real>* out) {
    with_features(A, B, [&](const auto& point) {
      for (int i = 0; i < fixed_count; ++i) out[i] = point(A.shape, B.shape, i);
    });
  }
  template <class Real>
  static BACKDRIVE_HD void adjoint(const GeometricShape<Real>& A, const GeometricShape<Real>& B,
                                   const ContactPoint<Real>* bar, ShapeBar<Real>& A_bar, ShapeBar<Real>& B_bar) {
    with_features(A, B, [&](const auto& point) {
      for (int i = 0; i < fixed_count; ++i) {
        adj_by_duals<a, b>(
            A.shape, B.shape, bar[i], [&](const auto& on, const auto& under) { return point(on, under, i); }, A_bar,
            B_bar);
      }
    });
  }
};

/// An ellipsoid and any of those or another. Adjoints by dual numbers.
template <ShapeKind kind_b>
struct EllipsoidPair {
  static constexpr ShapeKind b = kind_b == ShapeKind::box ? ShapeKind::mesh : kind_b;  // the same, compiled once

  template <class T>
  static BACKDRIVE_HD int count(const Geometry<T>&, const Geometry<T>&) {
    return 1;
  }
  template <class Real>
  static BACKDRIVE_INLINE EllipsoidTouch<ValueOf<Real>> touch(const GeometricShape<Real>& A,
                                                              const GeometricShape<Real>& B) {
    return ellipsoid_touch<b>(values_of(A.shape), values_of(B.shape), B.geometry.mesh);
  }
  template <class Real>
  static BACKDRIVE_HD void points(const GeometricShape<Real>& A, const GeometricShape<Real>& B,
                                  ContactPoint<Real>* out) {
    out[0] = ellipsoid_point<b>(A.shape, B.shape, touch(A, B));
  }
  template <class Real>
  static BACKDRIVE_HD void adjoint(const GeometricShape<Real>& A, const GeometricShape<Real>& B,
                                   const ContactPoint<Real>* bar, ShapeBar<Real>& A_bar, ShapeBar<Real>& B_bar) {
    const auto t = touch(A, B);
    adj_by_duals<ShapeKind::ellipsoid, b>(
        A.shape, B.shape, bar[0], [&](const auto& on, const auto& under) { return ellipsoid_point<b>(on, under, t); },
        A_bar, B_bar);
  }
};

/// What has the functions of two bodies in order.
template <ShapeKind a, ShapeKind b>
using PairOfBodies = std::conditional_t<
    a == ShapeKind::ellipsoid, EllipsoidPair<b>,
    std::conditional_t<a == ShapeKind::cylinder || b == ShapeKind::cylinder, CylinderPair<a, b>, BodyPair<a, b>>>;

/// Calls visit(std::integral_constant) with a kind that is no ground.
template <class Visit>
BACKDRIVE_HD void visit_body_kind(ShapeKind kind, const Visit& visit) {
  using K = ShapeKind;
  switch (kind) {
    case K::ellipsoid:
      return visit(std::integral_constant<K, K::ellipsoid>());
    case K::sphere:
      return visit(std::integral_constant<K, K::sphere>());
    case K::capsule:
      return visit(std::integral_constant<K, K::capsule>());
    case K::box:
      return visit(std::integral_constant<K, K::box>());
    case K::cylinder:
      return visit(std::integral_constant<K, K::cylinder>());
    case K::mesh:
      return visit(std::integral_constant<K, K::mesh>());
    default:
      return;
  }
}

/// Calls visit(pair) with the pair's functions; for shapes in order that can meet.
template <class Visit>
BACKDRIVE_HD void visit_pair(ShapeKind a, ShapeKind b, const Visit& visit) {
  visit_body_kind(a, [&](auto on) {
    constexpr ShapeKind first = decltype(on)::value;
    if (b == ShapeKind::plane) return visit(GroundPair<first, ShapeKind::plane>());
    if (b == ShapeKind::height_field) return visit(GroundPair<first, ShapeKind::height_field>());
    visit_body_kind(b, [&](auto under) {
      constexpr ShapeKind second = decltype(under)::value;
      if constexpr (in_order(first, second)) visit(PairOfBodies<first, second>());
    });
  });
}

// ---- in either order ------------------------------------------------------------------------------------------------

template <class Real>
BACKDRIVE_INLINE void turn_normals(ContactPoint<Real>* points, int count) {
  for (int i = 0; i < count; ++i) points[i].normal = -points[i].normal;
}

/// How many points fill in; 0 where the two cannot meet.
template <class T>
BACKDRIVE_HD int contact_count(const Geometry<T>& a, const Geometry<T>& b) {
  int count = 0;
  const bool kept = in_order(a.kind, b.kind);
  const Geometry<T>&first = kept ? a : b, &second = kept ? b : a;
  visit_pair(first.kind, second.kind, [&](auto pair) { count = pair.count(first, second); });
  return count;
}

/// The pair's contact points, normals from B towards A.
template <class Real>
BACKDRIVE_HD void contact_points(const GeometricShape<Real>& a, const GeometricShape<Real>& b,
                                 ContactPoint<Real>* out) {
  const bool kept = in_order(a.geometry.kind, b.geometry.kind);
  const GeometricShape<Real>&on = kept ? a : b, &under = kept ? b : a;
  visit_pair(on.geometry.kind, under.geometry.kind, [&](auto pair) {
    pair.points(on, under, out);
    if (!kept) turn_normals(out, pair.count(on.geometry, under.geometry));
  });
}

/// Adds the cotangents of poses and scales. `bar`: those of the points, left as they were.
template <class Real>
BACKDRIVE_HD void adj_contact_points(const GeometricShape<Real>& a, const GeometricShape<Real>& b,
                                     ContactPoint<Real>* bar, ShapeBar<Real>& a_bar, ShapeBar<Real>& b_bar) {
  const bool kept = in_order(a.geometry.kind, b.geometry.kind);
  const GeometricShape<Real>&on = kept ? a : b, &under = kept ? b : a;
  visit_pair(on.geometry.kind, under.geometry.kind, [&](auto pair) {
    const int n = pair.count(on.geometry, under.geometry);
    if (!kept) turn_normals(bar, n);
    pair.adjoint(on, under, bar, kept ? a_bar : b_bar, kept ? b_bar : a_bar);
    if (!kept) turn_normals(bar, n);
  });
}

}  // namespace backdrive::contact::inline BACKDRIVE_KERNELS
