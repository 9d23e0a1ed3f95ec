// STL in both kinds: M. Burns, "Automated Fabrication" (1993), §6.5.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "engine/error.h"
#include "models/meshes/text_reader.h"
#include "models/meshes/triangle_mesh.h"

namespace backdrive {
namespace {

constexpr size_t kHeader = 80;    ///< bytes that say nothing
constexpr size_t kFacet = 50;     ///< normal and three vertices of three float32, and two bytes
constexpr size_t kSmallest = 84;  ///< header and the number of triangles

uint32_t little_endian(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (int k = 3; k >= 0; --k) value = value << 8 | static_cast<unsigned char>(bytes[at + k]);
  return value;
}

bool same_word(std::string_view word, std::string_view lower) {
  const auto equal = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; };
  return std::equal(word.begin(), word.end(), lower.begin(), lower.end(), equal);
}

/// Texts begin with "solid" and have no NUL. Binary files that begin so have one in their number of triangles, whose
/// highest byte is zero for any count that is accepted.
bool is_text(std::string_view bytes) {
  const size_t begin = std::min(bytes.find_first_not_of(" \t\r\n"), bytes.size());
  return same_word(bytes.substr(begin, 5), "solid") && bytes.substr(0, kSmallest).find('\0') == std::string_view::npos;
}

class StlTextReader {
 public:
  StlTextReader(std::string_view text, const std::string& name) : text_(text, name, {}) {}

  /// solid NAME { facet normal x y z  outer loop  vertex x y z (3 times)  endloop  endfacet } endsolid NAME; several
  /// solids in a file are one mesh.
  TriangleMesh read() {
    for (TextReader::Word word = text_.word(); !word.text.empty(); word = text_.word()) {
      if (!same_word(word.text, "solid")) text_.refuse(word, "'solid' or the end of the file");
      text_.skip_line();
      for (word = text_.word(); !same_word(word.text, "endsolid"); word = text_.word()) facet(word);
      text_.skip_line();
    }
    return std::move(mesh_);
  }

 private:
  void expect(const TextReader::Word& word, std::string_view keyword) const {
    if (!same_word(word.text, keyword)) text_.refuse(word, "'" + std::string(keyword) + "'");
  }

  void facet(const TextReader::Word& keyword) {
    if (!same_word(keyword.text, "facet")) text_.refuse(keyword, "'facet' or 'endsolid'");
    if (mesh_.triangles.size() == static_cast<size_t>(kMaxTriangles)) {
      text_.refuse(keyword, "at most " + std::to_string(kMaxTriangles) + " triangles");
    }
    expect(text_.word(), "normal");
    for (int k = 0; k < 3; ++k) text_.word();  // of degenerate facets it is often nan
    expect(text_.word(), "outer");
    expect(text_.word(), "loop");
    const int first = static_cast<int>(mesh_.vertices.size());
    for (int k = 0; k < 3; ++k) {
      expect(text_.word(), "vertex");
      Vec3<double> p{};
      for (double* coordinate : {&p.x, &p.y, &p.z}) *coordinate = text_.number(text_.word(), "a coordinate");
      mesh_.vertices.push_back(p);
    }
    expect(text_.word(), "endloop");
    expect(text_.word(), "endfacet");
    mesh_.triangles.push_back({first, first + 1, first + 2});
  }

  TextReader text_;
  TriangleMesh mesh_;
};

std::string byte_place(const std::string& name, size_t byte) {
  return name + ": byte " + std::to_string(byte);
}

TriangleMesh read_binary(std::string_view bytes, const std::string& name) {
  if (bytes.size() < kSmallest) {
    refuse_file(byte_place(name, bytes.size()), "the file ends",
                "an STL file: 'solid' at the start, or a header of 80 bytes and the number of triangles");
  }
  const uint32_t count = little_endian(bytes, kHeader);
  const std::string stated = "value '" + std::to_string(count) + "' as the number of triangles";
  if (count > static_cast<uint32_t>(kMaxTriangles)) {
    refuse_file(byte_place(name, kHeader), stated, "at most " + std::to_string(kMaxTriangles) + " triangles");
  }
  const size_t expected = kSmallest + kFacet * count;
  if (bytes.size() != expected) {
    refuse_file(byte_place(name, kHeader), stated + " in a file of " + std::to_string(bytes.size()) + " bytes",
                std::to_string(expected) + " bytes for so many");
  }
  TriangleMesh mesh;
  mesh.vertices.reserve(3 * size_t{count});
  mesh.triangles.reserve(count);
  for (uint32_t t = 0; t < count; ++t) {
    for (int k = 0; k < 3; ++k) {
      double p[3];
      for (int c = 0; c < 3; ++c) {
        const size_t at = kSmallest + kFacet * t + 12 * (k + 1) + 4 * c;
        p[c] = std::bit_cast<float>(little_endian(bytes, at));
        if (!(std::abs(p[c]) <= kMaxCoordinate)) {
          refuse_file(byte_place(name, at), "value '" + shown(p[c]) + "'",
                      "a coordinate, a number of magnitude up to " + shown(kMaxCoordinate));
        }
      }
      mesh.vertices.push_back({p[0], p[1], p[2]});
    }
    const int first = static_cast<int>(3 * t);
    mesh.triangles.push_back({first, first + 1, first + 2});
  }
  return mesh;
}

}  // namespace

TriangleMesh parse_stl(std::string_view bytes, const std::string& name) {
  std::string_view text = bytes;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // byte order mark
  TriangleMesh mesh = welded(is_text(text) ? StlTextReader(text, name).read() : read_binary(bytes, name));
  if (mesh.triangles.empty()) refuse_file(name, "no facets", "at least one facet with three different vertices");
  return mesh;
}

}  // namespace backdrive
