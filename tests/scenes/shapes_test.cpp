// What a scene says of shapes: how they feel, what they may touch, and meshes and terrain from files.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "models/meshes/convex_mesh.h"
#include "models/meshes/height_field.h"
#include "models/parameter_reader.h"
#include "scenes/scene.h"
#include "tests/support/own_folder.h"
#include "tests/support/places.h"

namespace backdrive {
namespace {

namespace fs = std::filesystem;
using Pairs = std::vector<std::pair<std::string, std::string>>;

/// A folder with cube.obj (a unit cube with a corner at the origin), ramp.pgm and others.
fs::path meshes() {
  return fs::path(test::kRepository) / "tests" / "fuzz" / "meshes";
}

/// Trunk, thigh, shank; the toe is welded to the shank.
const std::string kLeg = R"(name: leg
model:
  bodies:
    trunk: {mass: 5, inertia: [1, 1, 1], shapes: [{geometry: {type: box}}]}
    thigh: {mass: 1, inertia: [1, 1, 1], shapes: [{geometry: {type: capsule, scale: [0.05, 0.2]}, collision: {groups: [legs], meets: [default]}}]}
    shank: {mass: 1, inertia: [1, 1, 1], shapes: [{geometry: {type: sphere}, collision: {groups: [legs, feet]}}]}
    toe: {shapes: [{name: toe, geometry: {type: sphere}, material: {stiffness: 10 N/mm, width: 2 mm, creep: 1 mm/s, rolling_friction: 3 mm}}, {name: nail, geometry: {type: sphere}, collision: none}]}
  joints:
    base: {type: free, child: trunk}
    hip: {type: revolute, parent: trunk, child: thigh}
    knee: {type: revolute, parent: thigh, child: shank}
    weld: {type: fixed, parent: shank, child: toe}
  shapes:
    floor: {body: world, geometry: {type: plane}}
    stone: {body: world, geometry: {type: ellipsoid, scale: [1, 1, 1]}, collision: none}
)";

Scene load(const std::string& text, const std::vector<Override>& overrides = {}, const fs::path& folder = meshes()) {
  return parse_scene(text, "test.yaml", folder, overrides);
}

std::string refused(const std::string& text, const std::vector<Override>& overrides = {},
                    const fs::path& folder = meshes()) {
  try {
    load(text, overrides, folder);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    EXPECT_EQ(error.exit_code(), 3);
    return error.what();
  }
  return "accepted";
}

Pairs pairs_of(const Scene& scene) {
  const Model& model = scene.problem.model;
  const Topology& t = model.topology;
  Pairs names;
  for (const ContactPair& pair : t.contact_pairs) {
    names.emplace_back(model.shape_names[t.contact_shapes[pair.a].shape],
                       model.shape_names[t.contact_shapes[pair.b].shape]);
  }
  return names;
}

/// What the written scene reads as, which is what was written.
Scene written_and_read(const Scene& scene) {
  const std::string text = scene_with_values(scene, scene.problem);
  Scene back = load(text);
  EXPECT_EQ(scene_with_values(back, back.problem), text);
  EXPECT_EQ(pairs_of(back), pairs_of(scene));
  const Model &a = scene.problem.model, &b = back.problem.model;
  EXPECT_EQ(a.shape_meshes, b.shape_meshes);
  for (const Field& field : fields()) {
    for (int i = 0; i < field.in(a).items(); ++i) {
      for (int c = 0; c < field.in(a).components(); ++c) EXPECT_EQ(field.in(a)(i, c), field.in(b)(i, c)) << field.leaf;
    }
  }
  return back;
}

// ---- material -------------------------------------------------------------------------------------------------------

TEST(SceneMaterial, HasWidthCreepAndFrictionAgainstTurns) {
  const Scene scene = load(kLeg);
  const Model& model = scene.problem.model;
  const int toe = model.find_shape("toe"), floor = model.find_shape("floor");
  const MaterialParameters& material = model.shapes.material;
  EXPECT_EQ(material.stiffness(toe), 1e4);
  EXPECT_EQ(material.width(toe), 2e-3);
  EXPECT_EQ(material.creep(toe), 1e-3);
  EXPECT_EQ(material.stiffness(floor), kInfinity);  // auto
  EXPECT_EQ(material.width(floor), 1e-3);
  EXPECT_EQ(material.dissipation(floor), 1);
  EXPECT_EQ(material.friction(floor), 0.8);
  EXPECT_EQ(material.creep(floor), 1e-5);
  EXPECT_EQ(material.rolling_friction(toe), 3e-3);
  EXPECT_EQ(material.torsional_friction(toe), 0);
  EXPECT_EQ(material.rolling_friction(floor), 0);
  written_and_read(load(kLeg, {{"shapes/floor/material/width", "3 mm"}, {"shapes/toe/material/creep", "1e-5"}}));
  const Scene other = load(kLeg, {{"shapes/floor/material/torsional_friction", "1 cm"}});
  EXPECT_EQ(other.problem.model.shapes.material.torsional_friction(floor), 1e-2);
  const Scene automatic = load(kLeg, {{"shapes/toe/material/stiffness", "auto"}});
  EXPECT_EQ(automatic.problem.model.shapes.material.stiffness(toe), kInfinity);
  written_and_read(automatic);
  EXPECT_THROW(load(kLeg, {{"shapes/toe/material/stiffness", "automatic"}}), Error);
  written_and_read(other);
}

// ---- what may touch -------------------------------------------------------------------------------------------------

TEST(SceneContacts, GroupsFilter) {
  EXPECT_EQ(pairs_of(load(kLeg)), (Pairs{{"shank", "trunk"},
                                         {"toe", "trunk"},
                                         {"trunk", "floor"},
                                         {"thigh", "floor"},
                                         {"shank", "floor"},
                                         {"toe", "floor"}}))
      << "the toe is one with the shank, which a joint connects to the thigh";
}

TEST(SceneContacts, DefaultIsToMeetAll) {
  const std::vector<Override> overrides{{"shapes/thigh/collision", "{}"},
                                        {"shapes/shank/collision/groups", "[default]"}};
  EXPECT_EQ(pairs_of(load(kLeg, overrides)).size(), pairs_of(load(kLeg)).size());
}

TEST(SceneContacts, ExcludeAndInclude) {
  const Scene scene = load(kLeg, {{"model/contacts",
                                   "{exclude: [[trunk, world], [shank, trunk]], include: [[nail, floor], "
                                   "[shank, thigh]]}"}});
  const Pairs pairs = pairs_of(scene);
  const auto has = [&](const char* a, const char* b) {
    return std::ranges::find(pairs, std::pair<std::string, std::string>(a, b)) != pairs.end();
  };
  EXPECT_FALSE(has("trunk", "floor"));
  EXPECT_FALSE(has("shank", "trunk"));
  EXPECT_TRUE(has("toe", "trunk"));
  EXPECT_TRUE(has("nail", "floor"));
  EXPECT_TRUE(has("shank", "thigh"));
  EXPECT_FALSE(has("nail", "trunk"));
  written_and_read(scene);
}

TEST(SceneContacts, GroupsAreAtMost32) {
  const auto with_groups = [](int count) {
    std::string names;
    for (int i = 0; i < count; ++i) names += (i > 0 ? ", g" : "g") + std::to_string(i);
    return std::vector<Override>{{"shapes/trunk/collision", "{groups: [" + names + "]}"},
                                 {"shapes/thigh/collision", "none"},
                                 {"shapes/shank/collision", "none"}};
  };
  EXPECT_FALSE(load(kLeg, with_groups(31)).problem.model.topology.contact_pairs.empty());
  EXPECT_NE(refused(kLeg, with_groups(32)).find("value 'g31': expected one of the 32 groups"), std::string::npos);
}

TEST(SceneContacts, ErrorsNameTheNearestName) {
  EXPECT_NE(refused(kLeg, {{"shapes/trunk/collision", "{meets: [leg]}"}}).find("did you mean 'legs'?"),
            std::string::npos);
  EXPECT_NE(refused(kLeg, {{"model/contacts/include", "[[toe, flor]]"}}).find("did you mean 'floor'?"),
            std::string::npos);
  EXPECT_NE(refused(kLeg, {{"model/contacts/exclude", "[[tunk, world]]"}}).find("did you mean 'trunk'?"),
            std::string::npos);
}

// ---- files ----------------------------------------------------------------------------------------------------------

const std::string kMeshScene = R"(name: meshes
model:
  bodies:
    a: {shapes: [{geometry: {type: mesh, file: cube.obj, scale: [0.1, 0.2, 0.3]}, density: 500}]}
    b: {mass: 1, inertia: [1, 1, 1], shapes: [{geometry: {type: mesh, file: ./cube.obj}}, {geometry: {type: mesh, file: tetrahedron.stl}}]}
  joints:
    one: {type: free, child: a}
    other: {type: free, child: b}
  shapes:
    hill: {body: world, geometry: {type: height_field, file: ramp.pgm, scale: [5, 3 m, 20 cm]}}
)";

TEST(SceneMeshes, AreReadOnceAndWeighWhatTheirHullDoes) {
  const Scene scene = load(kMeshScene);
  const Model& model = scene.problem.model;
  ASSERT_EQ(model.meshes.size(), 2u);
  EXPECT_EQ(model.shape_meshes, (PoolVector<int>{0, 0, 1, 0}));
  EXPECT_EQ(model.meshes[0]->vertices.size(), 8u);
  EXPECT_EQ(model.meshes[1]->vertices.size(), 4u);
  EXPECT_EQ(model.shapes.geometry.scale(1, 2), 1);
  const MassProperties<double> a = body_mass(model, 0, 0);
  EXPECT_NEAR(a.mass, 500 * 0.1 * 0.2 * 0.3, 1e-12);
  EXPECT_NEAR(a.com.y, 0.1, 1e-15);
  EXPECT_NEAR(a.inertia.zz, a.mass / 12 * (0.1 * 0.1 + 0.2 * 0.2), 1e-12);
}

TEST(SceneMeshes, HeightFieldsRunFromBlackToWhite) {
  const Scene scene = load(kMeshScene);
  const Model& model = scene.problem.model;
  ASSERT_EQ(model.height_fields.size(), 1u);
  EXPECT_GE(model.height_fields[0]->lowest, 0);
  EXPECT_LE(model.height_fields[0]->highest, 1);
  EXPECT_GT(model.height_fields[0]->highest, model.height_fields[0]->lowest);
  EXPECT_EQ(model.shapes.geometry.scale(3, 0), 5);
  EXPECT_EQ(model.shapes.geometry.scale(3, 2), 0.2);
}

void expect_same(const ConvexMesh& a, const ConvexMesh& b) {
  const auto numbers = [](const ConvexMesh& mesh) {
    std::vector<double> all;
    for (const Vec3<double>& v : mesh.vertices) all.insert(all.end(), {v.x, v.y, v.z});
    for (const ConvexMesh::Face& f : mesh.faces) {
      all.insert(all.end(), {f.normal.x, f.normal.y, f.normal.z, f.offset, double(f.first), double(f.count)});
    }
    for (const ConvexMesh::Edge& e : mesh.edges) {
      for (const int i : {e.from, e.to, e.left, e.right}) all.push_back(i);
    }
    return all;
  };
  EXPECT_EQ(numbers(a), numbers(b));
  EXPECT_EQ(a.face_vertices, b.face_vertices);
}

TEST(SceneMeshes, WrittenScenesReadTheSameAnywhere) {
  const Scene scene = load(kMeshScene, {{"shapes/b_1/geometry/file", "ball.obj"}});
  const std::string text = scene_with_values(scene, scene.problem);
  EXPECT_EQ(text.find(".obj"), std::string::npos) << text;
  EXPECT_EQ(text.find(".pgm"), std::string::npos);
  const Scene back = load(text, {}, "/");
  EXPECT_EQ(scene_with_values(back, back.problem), text);
  const Model &a = scene.problem.model, &b = back.problem.model;
  for (const size_t shape : {0, 1, 2}) expect_same(*a.meshes[a.shape_meshes[shape]], *b.meshes[b.shape_meshes[shape]]);
  EXPECT_EQ(a.height_fields[0]->heights, b.height_fields[0]->heights);
  EXPECT_EQ(a.height_fields[0]->columns, b.height_fields[0]->columns);
  Problem filled = scene.problem;
  filled.model.shapes.geometry.scale.at(1, 1) = 1.0 / 3;
  const Scene changed = load(scene_with_values(scene, filled));
  EXPECT_EQ(changed.problem.model.shapes.geometry.scale(1, 1), 1.0 / 3);
  EXPECT_EQ(changed.problem.model.shapes.geometry.scale(1, 0), 1);
}

/// Many points: the hull has a limit, and the limited one settles.
TEST(SceneMeshes, HullsOfManyPointsAreWrittenToTheSameBits) {
  std::string vertices;
  for (int i = 0; i < 400; ++i) {
    const double z = 1 - (2 * i + 1) / 400.0, r = std::sqrt(1 - z * z), turn = 2.399963229728653 * i;
    vertices += (i > 0 ? ", [" : "[") + std::to_string(1.7 * r * std::cos(turn)) + ", " +
                std::to_string(r * std::sin(turn)) + ", " + std::to_string(0.3 * z) + "]";
  }
  const Scene scene = load(kMeshScene, {{"shapes/a/geometry", "{type: mesh, vertices: [" + vertices + "]}"}});
  const Scene back = load(scene_with_values(scene, scene.problem));
  EXPECT_EQ(scene.problem.model.meshes[0]->vertices.size(), 64u);
  EXPECT_GT(scene.problem.model.meshes[0]->deviation, 0);
  EXPECT_EQ(scene_with_values(back, back.problem), scene_with_values(scene, scene.problem));
  expect_same(*scene.problem.model.meshes[0], *back.problem.model.meshes[0]);
}

TEST(SceneMeshes, ModelsThatReadOneFileShareWhatWasMadeOfIt) {
  const Model a = load(kMeshScene).problem.model, b = load(kMeshScene, {{"gravity", "[0, 0, 0]"}}).problem.model;
  EXPECT_EQ(a.meshes[0], b.meshes[0]);
  EXPECT_EQ(a.height_fields[0], b.height_fields[0]);
}

TEST(SceneMeshes, AChangedFileIsReadAnew) {
  const test::OwnFolder folder;
  fs::copy_file(meshes() / "cube.obj", folder / "part.obj");
  const std::vector<Override> overrides{{"shapes/a/geometry/file", "part.obj"},
                                        {"shapes/b_0/geometry/file", "part.obj"},
                                        {"shapes/b_1/geometry/file", "part.obj"},
                                        {"shapes/hill", "{body: world, geometry: {type: plane}}"}};
  const Scene before = load(kMeshScene, overrides, folder);
  EXPECT_EQ(before.problem.model.meshes[0]->vertices.size(), 8u);
  folder.write("part.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4\n");
  const Scene after = load(kMeshScene, overrides, folder);
  EXPECT_EQ(after.problem.model.meshes[0]->vertices.size(), 4u);
  EXPECT_EQ(before.problem.model.meshes[0]->vertices.size(), 8u);
}

TEST(SceneMeshes, BadFilesAreNamedWithTheirLine) {
  const std::string message = refused(kMeshScene, {{"shapes/a/geometry/file", "not_finite.obj"}});
  EXPECT_EQ(message.rfind((meshes() / "not_finite.obj").string() + ":", 0), 0u) << message;
  EXPECT_NE(refused(kMeshScene, {{"shapes/hill/geometry/file", "huge.pgm"}}).find("huge.pgm:"), std::string::npos);
  EXPECT_NE(refused(kMeshScene, {{"shapes/a/geometry/file", "none.obj"}}).find("expected an existing file"),
            std::string::npos);
}

TEST(SceneMeshes, ListedHeightsRunFromTheLowestCorner) {
  const std::string hill =
      "{body: world, geometry: {type: height_field, scale: [1, 1, 1], heights: [[0, 1, 2], [3, 4, 5]]}}";
  const Scene scene = load(kMeshScene, {{"shapes/hill", hill}});
  const HeightField& field = *scene.problem.model.height_fields[0];
  EXPECT_EQ(field.rows, 2);
  EXPECT_EQ(field.columns, 3);
  EXPECT_EQ(field.height(1, 0), 3);
  EXPECT_EQ(field.highest, 5);
  EXPECT_NE(
      refused(kMeshScene, {{"shapes/hill/geometry", "{type: height_field, scale: [1, 1, 1], heights: [[0, 1], [3]]}"}})
          .find("expected as many numbers as in the first row, which has 2"),
      std::string::npos);
  EXPECT_NE(refused(kMeshScene, {{"shapes/a/geometry", "{type: mesh, vertices: [[0, 0, 0], [1, 0, 0], [0, 1, 0]]}"}})
                .find("3 different points: expected at least 4"),
            std::string::npos);
  EXPECT_NE(
      refused(kMeshScene, {{"shapes/a/geometry", "{type: box, vertices: [[0, 0, 0]]}"}}).find("no vertices for a box"),
      std::string::npos);
}

}  // namespace
}  // namespace backdrive
