// Meshes from OBJ and STL files, and every way in which such files are refused.
#include <gtest/gtest.h>

#include <bit>
#include <clocale>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <string>

#include "engine/error.h"
#include "models/meshes/text_reader.h"
#include "models/meshes/triangle_mesh.h"
#include "tests/support/own_folder.h"
#include "tests/support/places.h"

namespace backdrive {
namespace {

namespace fs = std::filesystem;
using std::string_literals::operator""s;

/// A folder that goes with the test.
class MeshFiles : public testing::Test {
 protected:
  fs::path write(const std::string& name, const std::string& bytes) const { return folder_.write(name, bytes); }

  const test::OwnFolder folder_;
};

/// The error's message; the error must be one of input.
template <class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.what();
  }
  return "accepted";
}

void expect_words(const std::string& message, std::initializer_list<std::string> words) {
  for (const std::string& word : words) EXPECT_NE(message.find(word), std::string::npos) << word << " in:\n" << message;
}

const char* const kTetrahedron =
    "v 0 0 0\n"
    "v 1 0 0\n"
    "v 0 1 0\n"
    "v 0 0 1\n"
    "f 1 3 2\n"
    "f 1 2 4\n"
    "f 2 3 4\n"
    "f 3 1 4\n";

void expect_tetrahedron(const TriangleMesh& mesh) {
  ASSERT_EQ(mesh.vertices.size(), 4u);
  ASSERT_EQ(mesh.triangles.size(), 4u);
  EXPECT_NEAR(solid_moments(mesh, "mesh").volume, 1.0 / 6, 1e-15);
}

// ---- OBJ ------------------------------------------------------------------------------------------------------------

TEST_F(MeshFiles, ObjByExtensionInAnyCase) {
  expect_tetrahedron(read_mesh(write("a.obj", kTetrahedron)));
  expect_tetrahedron(read_mesh(write("b.OBJ", kTetrahedron)));
}

TEST(ParseObj, EveryKindOfCornerAndIndex) {
  const TriangleMesh mesh = parse_obj(
      "# a comment\nmtllib some.mtl\no name # with spaces\nvn 0 0 1\nvt 0 0\nv 0 0 0 1\nv 1 0 0 0.1 0.2 0.3\nv 0 1 0\n"
      "v 0 0 1\nusemtl steel\ns off\nf 1 3/1 2//1\nf -4 -3/1/1 4\nf 2/1/1 3 4#no space\nf 3 1 -1\nl 1 2\n",
      "a.obj");
  expect_tetrahedron(mesh);
  EXPECT_EQ(mesh.vertices[1].y, 1);  // in order of first use: 1, 3, 2
  EXPECT_EQ(mesh.vertices[2].x, 1);
}

TEST(ParseObj, LineEndsJoinedLinesAndNumbersOfAnyShape) {
  std::string text = kTetrahedron;
  for (const std::string end : {"\r\n", "\r", "\n\n \t\n"}) {
    std::string own;
    for (char c : text) own += c == '\n' ? end : std::string(1, c);
    expect_tetrahedron(parse_obj(own, "a.obj"));
  }
  text.pop_back();
  expect_tetrahedron(parse_obj(text, "a.obj"));
  const TriangleMesh mesh =
      parse_obj("\xEF\xBB\xBFv +1.5e-1 -.5 1E2\\\n\nv 3. 0 \\\r\n 0\nv 0 1 0\nf 1 2\\\n 3", "a.obj");
  EXPECT_EQ(mesh.vertices[0].x, 0.15);
  EXPECT_EQ(mesh.vertices[0].y, -0.5);
  EXPECT_EQ(mesh.vertices[0].z, 100);
  EXPECT_EQ(mesh.vertices[1].x, 3);
}

TEST(ParseObj, PolygonsAreFansAboutTheirFirstCorner) {
  const TriangleMesh mesh = parse_obj("f 1 2 3 4 5\nv 0 0 0\nv 1 0 0\nv 2 1 0\nv 1 2 0\nv 0 1 0\n", "a.obj");
  const std::vector<std::array<int, 3>> fan{{0, 1, 2}, {0, 2, 3}, {0, 3, 4}};
  EXPECT_EQ(mesh.triangles, fan);
}

TEST(ParseObj, WeldsAndDrops) {
  const TriangleMesh mesh =
      parse_obj("v 9 9 9\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv -0 0 0\nv 1 1 0\nf 2 3 4\nf 3 6 4\nf 2 5 3\nf 3 3 4\n", "a.obj");
  EXPECT_EQ(mesh.vertices.size(), 4u);  // nobody uses the first, and two lie in one place
  EXPECT_EQ(mesh.triangles.size(), 2u);
}

TEST(ParseObj, DoesNotDependOnTheLocale) {
  const std::string before = std::setlocale(LC_ALL, nullptr);
  bool found = false;
  for (const char* name : {"de_DE.UTF-8", "de_DE", "fr_FR.UTF-8"}) found = found || std::setlocale(LC_ALL, name);
  if (!found) GTEST_SKIP() << "no locale with a decimal comma is installed";
  const TriangleMesh mesh = parse_obj("v 0.5 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", "a.obj");
  std::setlocale(LC_ALL, before.c_str());
  EXPECT_EQ(mesh.vertices[0].x, 0.5);
}

struct BadText {
  const char* name;
  std::string text;
  const char* where;
  const char* value;
  const char* expected;
};

void expect_refused(const BadText& bad, TriangleMesh (*parse)(std::string_view, const std::string&)) {
  const std::string message = message_of([&] { parse(bad.text, "mesh"); });
  EXPECT_TRUE(message.starts_with("mesh"s + bad.where + ": " + bad.value)) << bad.name << ":\n" << message;
  expect_words(message, {": expected "s + bad.expected});
}

TEST(ParseObj, RefusesWhatItCannotBelieve) {
  const std::string points = "v 0 0 0\nv 1 0 0\nv 0 1 0\n";
  const BadText cases[] = {
      {"empty", "", "", "no faces", "at least one line 'f'"},
      {"points only", points, "", "no faces", "at least one line 'f'"},
      {"only degenerate faces", points + "f 1 1 2\n", "", "no faces", "at least one line 'f'"},
      {"short vertex", "v 1 2\n", ":1:6", "the line ends", "a coordinate, a decimal number"},
      {"short vertex at the end", "v 1 2", ":1:6", "the file ends", "a coordinate"},
      {"text for a number", "v 0 0 0\nv 0 x1 0\n", ":2:5", "value 'x1'", "a coordinate"},
      {"nan", "v nan 0 0\n", ":1:3", "value 'nan'", "a coordinate"},
      {"inf", "v 0 -inf 0\n", ":1:5", "value '-inf'", "a coordinate"},
      {"too large", "v 0 0 1e999\n", ":1:7", "value '1e999'", "a coordinate"},
      {"too far", "v 0 0 2e9\n", ":1:7", "value '2e9'", "a coordinate, a decimal number of magnitude up to 1e+09"},
      {"decimal comma", "v 0,5 0 0\n", ":1:3", "value '0,5'", "a coordinate"},
      {"hexadecimal", "v 0x10 0 0\n", ":1:3", "value '0x10'", "a coordinate"},
      {"two signs", "v +-1 0 0\n", ":1:3", "value '+-1'", "a coordinate"},
      {"two corners", points + "f 1 2\n", ":4:6", "the line ends", "at least 3 corners"},
      {"no corners", points + "f", ":4:2", "the file ends", "at least 3 corners"},
      {"index 0", points + "f 0 1 2\n", ":4:3", "value '0'", "a corner v, v/vt, v//vn or v/vt/vn"},
      {"index past the end", points + "f 1 2 4\nf 1 2 3\n", ":4:7", "value '4'", "a vertex of the file, 1 to 3"},
      {"index before the start", points + "f 1 2 -4\n", ":4:7", "value '-4'",
       "a vertex: 1 to 3000000, or, from the last"},
      {"huge index", points + "f 1 2 99999999999\n", ":4:7", "value '99999999999'", "a vertex: 1 to"},
      {"index of 30 digits", points + "f 1 2 999999999999999999999999999999\n", ":4:7", "value '9999", "a corner"},
      {"fraction", points + "f 1 2 3.5\n", ":4:7", "value '3.5'", "a corner"},
      {"slashes only", points + "f 1 2 //\n", ":4:7", "value '//'", "a corner"},
      {"ends in a slash", points + "f 1 2 3/\n", ":4:7", "value '3/'", "a corner"},
      {"ends in two slashes", points + "f 1 2 3//\n", ":4:7", "value '3//'", "a corner"},
      {"four indices", points + "f 1 2 3/1/1/1\n", ":4:7", "value '3/1/1/1'", "a corner"},
      {"texture 0", points + "f 1 2 3/0\n", ":4:7", "value '3/0'", "a corner"},
      {"binary", "v \x01\xFF 0 0\n", ":1:3", "value '?", "a coordinate"},
      {"line after CRLF", "v 0 0 0\r\nv 0 0\r\n", ":2:6", "the line ends", "a coordinate"},
      {"line after a joined one", "v 0 0 \\\n0\nv 0 0 z", ":3:7", "value 'z'", "a coordinate"},
  };
  for (const BadText& bad : cases) expect_refused(bad, parse_obj);
}

TEST(ParseObj, CapsTheCounts) {
  std::string many = "v 0 0 0\nv 1 0 0\nv 0 1 0\nf";
  for (int i = 0; i < kMaxTriangles + 3; ++i) many += " 1";
  expect_words(message_of([&] { parse_obj(many, "mesh"); }), {"mesh:4:1: value 'f'", "at most 1000000 triangles"});
  std::string points;
  for (int i = 0; i < kMaxVertices + 1; ++i) points += "v 0 0 0\n";
  expect_words(message_of([&] { parse_obj(points, "mesh"); }),
               {"mesh:3000001:1: value 'v'", "at most 3000000 vertices"});
}

// ---- STL ------------------------------------------------------------------------------------------------------------

const float kCorners[4][3][3] = {{{0, 0, 0}, {0, 1, 0}, {1, 0, 0}},
                                 {{0, 0, 0}, {1, 0, 0}, {0, 0, 1}},
                                 {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}},
                                 {{0, 1, 0}, {0, 0, 0}, {0, 0, 1}}};

std::string bytes_of(uint32_t value) {
  std::string bytes;
  for (int k = 0; k < 4; ++k) bytes += static_cast<char>(value >> (8 * k) & 0xFF);
  return bytes;
}

std::string binary_stl(const std::string& header, uint32_t count = 4) {
  std::string bytes = header;
  bytes.resize(80, '\0');
  bytes += bytes_of(count);
  for (const auto& facet : kCorners) {
    for (int k = 0; k < 3; ++k) bytes += bytes_of(std::bit_cast<uint32_t>(std::numeric_limits<float>::quiet_NaN()));
    for (const auto& corner : facet) {
      for (float coordinate : corner) bytes += bytes_of(std::bit_cast<uint32_t>(coordinate));
    }
    bytes += "ab";
  }
  return bytes;
}

std::string text_stl(const std::string& end = "\n") {
  std::string text = "solid a b c" + end;
  for (const auto& facet : kCorners) {
    text += "  facet normal 0 nan 1e0" + end + "    outer loop" + end;
    for (const auto& p : facet) {
      text += "      vertex " + std::to_string(p[0]) + " " + std::to_string(p[1]) + " +" + std::to_string(p[2]) +
              "e-00" + end;
    }
    text += "    endloop" + end + "  endfacet" + end;
  }
  return text + "endsolid a b c" + end;
}

TEST_F(MeshFiles, StlOfBothKinds) {
  expect_tetrahedron(read_mesh(write("a.stl", binary_stl("by somebody"))));
  expect_tetrahedron(read_mesh(write("b.Stl", text_stl())));
}

TEST(ParseStl, BinaryFilesMayBeginWithSolid) {
  expect_tetrahedron(parse_stl(binary_stl("solid by a tool that fills its header with zeros"), "a.stl"));
  std::string header = "solid by a tool that fills its header with blanks";
  header.resize(80, ' ');
  expect_tetrahedron(parse_stl(binary_stl(header), "a.stl"));
}

TEST(ParseStl, TextOfAnyLayout) {
  for (const std::string end : {"\r\n", "\r", "\n\n"}) expect_tetrahedron(parse_stl(text_stl(end), "a.stl"));
  std::string text = text_stl();
  text.pop_back();
  expect_tetrahedron(parse_stl(text, "a.stl"));
  expect_tetrahedron(parse_stl(" \n" + text, "a.stl"));
  std::string upper;
  for (char c : text_stl()) upper += c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  expect_tetrahedron(parse_stl(upper, "a.stl"));
  // A second solid in the file, without a name and on one line.
  const TriangleMesh two = parse_stl(
      text_stl() +
          "solid\nfacet normal 0 0 1 outer loop vertex 5 5 5 vertex 6 5 5 vertex 5 6 5 endloop endfacet endsolid\n",
      "a.stl");
  EXPECT_EQ(two.triangles.size(), 5u);
  EXPECT_EQ(two.vertices.size(), 7u);
}

TEST(ParseStl, RefusesTextsItCannotBelieve) {
  const std::string whole = text_stl();
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    return text.replace(text.find(from), from.size(), to);
  };
  const BadText cases[] = {
      {"nothing", "", ": byte 0", "the file ends", "an STL file: 'solid' at the start"},
      {"something else", "hello", ": byte 5", "the file ends", "an STL file"},
      {"no facets", "solid x\nendsolid x\n", "", "no facets", "at least one facet"},
      {"no end", "solid x", ":1:8", "the file ends", "'facet' or 'endsolid'"},
      {"no name, no end", "solid", ":1:6", "the file ends", "'facet' or 'endsolid'"},
      {"word behind solid", "solids x\n", ":1:1", "value 'solids'", "'solid' or the end of the file"},
      {"cut in a facet", whole.substr(0, whole.find("endloop")), ":7:5", "the file ends", "'endloop'"},
      {"cut in a vertex", whole.substr(0, whole.find("vertex") + 10), ":4:17", "the file ends", "a coordinate"},
      {"cut in a normal", "solid\nfacet normal 0", ":2:15", "the file ends", "'outer'"},
      {"other keyword", with("facet", "color 1 2 3\nfacet"), ":2:3", "value 'color'", "'facet' or 'endsolid'"},
      {"no normal", with("normal", "norm"), ":2:9", "value 'norm'", "'normal'"},
      {"no loop", with("outer loop", "outer"), ":4:7", "value 'vertex'", "'loop'"},
      {"four vertices", with("endloop", "vertex 1 1 1\nendloop"), ":7:5", "value 'vertex'", "'endloop'"},
      {"nan", with("vertex 0", "vertex nan 0"), ":4:14", "value 'nan'", "a coordinate"},
      {"too far", with("vertex 0.000000", "vertex 1e10"), ":4:14", "value '1e10'", "a coordinate"},
      {"behind the end", whole + "more\n", ":31:1", "value 'more'", "'solid' or the end of the file"},
  };
  for (const BadText& bad : cases) expect_refused(bad, parse_stl);
}

TEST(ParseStl, RefusesBinariesItCannotBelieve) {
  const std::string whole = binary_stl("x");
  std::string nan = whole, far = whole;
  nan.replace(84 + 50 + 12 + 16, 4, bytes_of(0x7FC00000));
  far.replace(84 + 12, 4, bytes_of(std::bit_cast<uint32_t>(-1e30f)));
  const BadText cases[] = {
      {"header only", whole.substr(0, 83), ": byte 83", "the file ends", "an STL file"},
      {"solid, header only", "solid"s + std::string(60, '\0'), ": byte 65", "the file ends", "an STL file"},
      {"cut", whole.substr(0, 283), ": byte 80", "value '4' as the number of triangles in a file of 283 bytes",
       "284 bytes"},
      {"longer", whole + "x", ": byte 80", "value '4' as the number of triangles in a file of 285 bytes", "284 bytes"},
      {"solid, cut", binary_stl("solid").substr(0, 200), ": byte 80", "value '4' as the number",
       "284 bytes for so many"},
      {"huge count", binary_stl("x", 0xFFFFFFFF), ": byte 80", "value '4294967295'", "at most 1000000 triangles"},
      {"count that overflows 32 bits", binary_stl("x", 85899350), ": byte 80", "value '85899350'", "at most 1000000"},
      {"no triangles", whole.substr(0, 80) + bytes_of(0), "", "no facets", "at least one facet"},
      {"nan", nan, ": byte 162", "value 'nan'", "a coordinate, a number of magnitude up to 1e+09"},
      {"too far", far, ": byte 96", "value '-1e+30'", "a coordinate"},
  };
  for (const BadText& bad : cases) expect_refused(bad, parse_stl);
}

// ---- COLLADA --------------------------------------------------------------------------------------------------------

/// A unit cube of all kinds of faces (tests/fuzz/meshes/cube.dae), in centimetres, doubled, turned about z by 90° and
/// moved.
TEST(Dae, ReadsFacesUnitsAndNodes) {
  const TriangleMesh mesh = read_mesh(test::kRepository + "/tests/fuzz/meshes/cube.dae");
  ASSERT_EQ(mesh.vertices.size(), 8u);
  ASSERT_EQ(mesh.triangles.size(), 12u);
  const SolidMoments<double> moments = solid_moments(mesh, "cube.dae");
  EXPECT_NEAR(moments.volume, 8e-6, 1e-18);
  // Up to (1, 1, 6) in the inner node; doubled, turned: (−2, 2, 12); moved: x −1…1, y 2…4, z 13…15.
  Vec3<double> low{9, 9, 9}, high{-9, -9, -9};
  for (const Vec3<double>& v : mesh.vertices) {
    low = {std::min(low.x, v.x), std::min(low.y, v.y), std::min(low.z, v.z)};
    high = {std::max(high.x, v.x), std::max(high.y, v.y), std::max(high.z, v.z)};
  }
  const double got[] = {low.x, low.y, low.z, high.x, high.y, high.z}, wanted[] = {-1, 2, 13, 1, 4, 15};
  for (int k = 0; k < 6; ++k) EXPECT_NEAR(got[k], wanted[k] / 100, 1e-15) << k;
}

TEST(Dae, RefusesWhatIsBroken) {
  const auto mesh = [](const std::string& faces, const std::string& numbers = "0 0 0 1 0 0 0 1 0") {
    return "<COLLADA><library_geometries><geometry id=\"g\"><mesh><source id=\"x\"><float_array>" + numbers +
           "</float_array></source><vertices id=\"v\"><input semantic=\"POSITION\" source=\"#x\"/></vertices>" + faces +
           "</mesh></geometry></library_geometries></COLLADA>";
  };
  const std::string input = "<input semantic=\"VERTEX\" source=\"#v\" offset=\"0\"/>";
  const auto refused = [](const std::string& text) { return message_of([&] { parse_dae(text, "a.dae"); }); };
  EXPECT_EQ(parse_dae(mesh("<triangles>" + input + "<p>0 1 2</p></triangles>"), "a.dae").triangles.size(), 1u);
  expect_words(refused("<COLLADA>"), {"a.dae:1:", "expected XML ("});
  expect_words(refused("<!DOCTYPE x><COLLADA/>"), {"a.dae:1:", "document type"});
  expect_words(refused("<x/>"), {"expected a COLLADA document"});
  expect_words(refused(mesh("")), {"no faces"});
  expect_words(refused(mesh("<triangles>" + input + "<p>0 1 3</p></triangles>")), {"indices of vertices, 0 to 2"});
  expect_words(refused(mesh("<triangles>" + input + "<p>0 1 -1</p></triangles>")), {"indices of vertices, 0 to 2"});
  expect_words(refused(mesh("<triangles>" + input + "<p>0 1 x</p></triangles>")), {"expected numbers"});
  expect_words(refused(mesh("<triangles><p>0 1 2</p></triangles>")), {"expected an input VERTEX"});
  expect_words(refused(mesh("<triangles>" + input + "<p>0 1 2</p></triangles>", "0 0 0 1e99 0 0 0 1 0")),
               {"up to 1e9"});
  expect_words(refused("<COLLADA><asset><unit meter=\"0\"/></asset></COLLADA>"), {"a unit of more than 0 m"});
}

// ---- files ----------------------------------------------------------------------------------------------------------

TEST_F(MeshFiles, RefusesWhatIsNoMeshFile) {
  expect_words(message_of([&] { read_mesh(folder_ / "none.obj"); }),
               {"none.obj: no such file: expected an existing file"});
  fs::create_directory(folder_ / "folder.stl");
  expect_words(message_of([&] { read_mesh(folder_ / "folder.stl"); }), {"expected a regular file"});
  expect_words(message_of([&] { read_mesh(write("a.ply", "ply")); }),
               {"value '.ply'", "expected a mesh file, .obj, .stl or .dae"});
  expect_words(message_of([&] { read_mesh(write("plain", "")); }),
               {"value ''", "expected a mesh file, .obj, .stl or .dae"});
  const fs::path bad = write("bad.obj", "v 1 2 3\nv 1 2 three\n");
  expect_words(message_of([&] { read_mesh(bad); }), {bad.string() + ":2:7: value 'three': expected a coordinate"});
}

TEST_F(MeshFiles, RefusesWhatIsTooLarge) {
  const fs::path path = write("large.obj", "#");
  fs::resize_file(path, kMaxMeshBytes + 1);  // sparse
  expect_words(message_of([&] { read_mesh(path); }),
               {"large.obj: more than 64 MiB", "expected a file of at most 64 MiB"});
}

TEST(Messages, ShowOnlyWhatCanBePrinted) {
  EXPECT_EQ(printable("a\x1B[31m\xC3\xA4\n"), "a?[31m???");
  EXPECT_EQ(printable(std::string(70, 'x')), std::string(60, 'x') + "...");
}

}  // namespace
}  // namespace backdrive
