// Meshes as shapes of a model: shared, and their masses with gradients.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "models/meshes/convex_mesh.h"
#include "models/meshes/height_field.h"
#include "models/parameter_reader.h"
#include "tests/models/model_cases.h"

namespace backdrive {
namespace {

using D = Dual<double>;
using Mesh = std::shared_ptr<const ConvexMesh>;

Mesh hull_of(const std::vector<Vec3<double>>& points) {
  return std::make_shared<const ConvexMesh>(convex_hull(points, "points"));
}
/// Half extents 1, 2, 3 about its origin.
Mesh box() {
  std::vector<Vec3<double>> corners;
  for (int k = 0; k < 8; ++k) corners.push_back({k & 1 ? 1.0 : -1.0, k & 2 ? 2.0 : -2.0, k & 4 ? 3.0 : -3.0});
  return hull_of(corners);
}
/// Nothing about it is symmetric, and its com is not its origin.
Mesh lump() {
  return hull_of({{0.3, 0, 0.1}, {1, 0.2, 0}, {0.1, 1.3, 0}, {0, 0.1, 0.9}, {1.1, 0.8, 0.7}, {-0.4, 0.5, 0.6}});
}

ShapeOptions mesh_shape(const Mesh& mesh) {
  ShapeOptions options;
  options.type = GeometryType::mesh;
  options.mesh = mesh;
  options.scale = {0.1, 0.2, 0.15};
  options.density = 700;
  options.frame = {{0.1, -0.2, 0.3}, {0.1, -0.3, 0.5, std::sqrt(1 - 0.35)}};
  return options;
}

/// A hinge with a body of one shape.
Model model_with(const ShapeOptions& options) {
  ModelBuilder builder;
  const int body = builder.add_body("body", test::solid_body(0.3));
  builder.add_joint("hinge", JointType::revolute, ModelBuilder::world, body);
  builder.add_shape("shape", body, options);
  return builder.build();
}

std::vector<double> numbers(const MassProperties<double>& m) {
  const Sym3<double>& J = m.inertia;
  return {m.mass, m.com.x, m.com.y, m.com.z, J.xx, J.yy, J.zz, J.xy, J.xz, J.yz};
}

TEST(MeshShapes, ABoxGivenAsAMeshWeighsAsTheBox) {
  const ShapeOptions as_mesh = mesh_shape(box());
  ShapeOptions as_box = as_mesh;
  as_box.type = GeometryType::box;
  as_box.scale = {as_mesh.scale[0] * 1, as_mesh.scale[1] * 2, as_mesh.scale[2] * 3};
  const std::vector<double> a = numbers(body_mass(model_with(as_mesh), 0, 0));
  const std::vector<double> b = numbers(body_mass(model_with(as_box), 0, 0));
  for (size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(a[k], b[k], 1e-12 * (1 + std::abs(b[k]))) << k;
  EXPECT_GT(b[0], 50);
}

TEST(MeshShapes, WithoutDensityNothingIsAdded) {
  ShapeOptions options = mesh_shape(lump());
  options.density = 0;
  const Model model = model_with(options);
  EXPECT_EQ(numbers(body_mass(model, 0, 0)), numbers(explicit_mass(model, 0, 0)));
}

TEST(MeshShapes, AreSharedByShapesAndCopies) {
  const Mesh one = box(), other = lump();
  ModelBuilder builder;
  const int body = builder.add_body("body", test::solid_body());
  builder.add_joint("hinge", JointType::revolute, ModelBuilder::world, body);
  builder.add_shape("a", body, mesh_shape(one));
  builder.add_shape("ball", body, {});
  builder.add_shape("b", body, mesh_shape(other));
  builder.add_shape("c", body, mesh_shape(one));
  ShapeOptions field;
  field.type = GeometryType::height_field;
  field.height_field = std::make_shared<const HeightField>(make_height_field(2, 2, {1, 1}, {0, 0, 1, 1}, "slope"));
  builder.add_shape("hill", ModelBuilder::world, field);
  const Model model = builder.build(), copy = model;
  EXPECT_EQ(model.shape_meshes, (PoolVector<int>{0, -1, 1, 0, 0}));
  ASSERT_EQ(model.meshes.size(), 2u);
  EXPECT_EQ(copy.meshes[0], one);
  EXPECT_EQ(copy.meshes[1], other);
  ASSERT_EQ(copy.height_fields.size(), 1u);
  EXPECT_EQ(copy.height_fields[0], field.height_field);
  EXPECT_EQ(model.shape_moments[0].volume, model.shape_moments[3].volume);
  EXPECT_NEAR(model.shape_moments[0].volume, 48, 1e-12);
  EXPECT_EQ(model.shape_moments[1].volume, 0);
  EXPECT_EQ(model.shape_moments[4].volume, 0);
}

TEST(MeshShapes, ScaleIsAPositiveFactor) {
  ShapeOptions options = mesh_shape(box());
  options.scale[1] = 0;
  test::expect_model_error([&] { model_with(options); }, "shapes/shape/geometry/scale/1",
                           {"expected a finite factor > 0 (a mesh has 3)"});
}

// ---- gradients ------------------------------------------------------------------------------------------------------

/// What the mass depends on: scale 3, density, position 3, tangent 3.
constexpr int kInputs = 10;

SolidShape<double> solid_of(const Model& model) {
  return solid_shape(structure_of(model), ParameterReader<double>{view_of(model), nullptr, 0}, 0);
}

/// ⟨weights, mass of the shape⟩ when one input is moved by `step`.
double weighed(SolidShape<double> shape, int input, double step, const std::vector<double>& weights) {
  double* const numbers_at[] = {&shape.scale.x,    &shape.scale.y,    &shape.scale.z,   &shape.density,
                                &shape.position.x, &shape.position.y, &shape.position.z};
  if (input < 7) {
    *numbers_at[input] += step;
  } else {
    double axis[3] = {0, 0, 0};
    axis[input - 7] = std::sin(step / 2);
    shape.rotation = shape.rotation * rotation_matrix(axis[0], axis[1], axis[2], std::cos(step / 2));
  }
  const std::vector<double> m = numbers(shape_mass(shape));
  double sum = 0;
  for (size_t k = 0; k < m.size(); ++k) sum += weights[k] * m[k];
  return sum;
}

const std::vector<double> kWeights{0.7, -1.1, 0.4, 0.9, 1.3, -0.8, 0.6, 0.5, -1.2, 0.35};

std::vector<double> adjoint(const SolidShape<double>& shape) {
  const std::vector<double>& w = kWeights;
  const MassProperties<double> bar{w[0], {w[1], w[2], w[3]}, {w[4], w[5], w[6], w[7], w[8], w[9]}};
  SolidShapeBar<double> b;
  adj_shape_mass(shape, bar, b);
  return {b.scale.x,    b.scale.y,    b.scale.z, b.density, b.position.x,
          b.position.y, b.position.z, b.theta.x, b.theta.y, b.theta.z};
}

TEST(MeshShapes, AdjointAgreesWithDifferences) {
  const SolidShape<double> shape = solid_of(model_with(mesh_shape(lump())));
  const std::vector<double> got = adjoint(shape);
  for (int k = 0; k < kInputs; ++k) {
    const double step = k == 3 ? 1 : 1e-5;
    const double difference = (weighed(shape, k, step, kWeights) - weighed(shape, k, -step, kWeights)) / (2 * step);
    EXPECT_NE(got[k], 0) << k;
    EXPECT_NEAR(got[k], difference, 1e-7 * (1 + std::abs(difference))) << k;
  }
}

/// Through the reader, as kernels go: the direction moves one number of one parameter.
TEST(MeshShapes, AdjointAgreesWithDualNumbers) {
  const Model model = model_with(mesh_shape(lump()));
  const std::vector<double> got = adjoint(solid_of(model));
  for (int k = 0; k < kInputs; ++k) {
    Parameters direction = zero_parameters(model);
    ShapeParameters& s = direction.shapes;
    if (k < 3) s.geometry.scale.at(0, k) = 1;
    if (k == 3) s.density.at(0) = 1;
    if (k > 3 && k < 7) s.frame.position.at(0, k - 4) = 1;
    if (k >= 7) s.frame.orientation.at(0, k - 7) = 1;
    const ParametersView dots = view_of(direction);
    const ParametersView values = view_of(model);
    const MassProperties<D> m = shape_mass(solid_shape(structure_of(model), ParameterReader<D>{values, &dots, 0}, 0));
    const D parts[] = {m.mass,       m.com.x,      m.com.y,      m.com.z,      m.inertia.xx,
                       m.inertia.yy, m.inertia.zz, m.inertia.xy, m.inertia.xz, m.inertia.yz};
    double sum = 0;
    for (size_t i = 0; i < kWeights.size(); ++i) sum += kWeights[i] * parts[i].dot;
    EXPECT_NEAR(got[k], sum, 1e-12 * (1 + std::abs(sum))) << k;
  }
}

}  // namespace
}  // namespace backdrive
