// Wavefront OBJ, as far as it describes polygons: P. Bourke's transcript of the "Object Files (.obj)" specification.
#include <charconv>

#include "engine/error.h"
#include "models/meshes/text_reader.h"
#include "models/meshes/triangle_mesh.h"

namespace backdrive {
namespace {

class ObjReader {
 public:
  ObjReader(std::string_view text, const std::string& name) : name_(name), text_(text, name, {'#', true}) {}

  TriangleMesh read() {
    for (;;) {
      const TextReader::Word keyword = text_.word();
      if (keyword.text.empty()) break;
      if (keyword.text == "v") {
        vertex(keyword);
      } else if (keyword.text == "f") {
        face(keyword);
      }
      text_.skip_line();
    }
    if (highest_ >= static_cast<long long>(mesh_.vertices.size())) {
      text_.refuse(highest_word_, "a vertex of the file, 1 to " + std::to_string(mesh_.vertices.size()));
    }
    TriangleMesh mesh = welded(mesh_);
    if (mesh.triangles.empty()) refuse_file(name_, "no faces", "at least one line 'f' with three different vertices");
    return mesh;
  }

 private:
  void vertex(const TextReader::Word& keyword) {
    if (mesh_.vertices.size() == static_cast<size_t>(kMaxVertices)) {
      text_.refuse(keyword, "at most " + std::to_string(kMaxVertices) + " vertices");
    }
    Vec3<double> p{};
    for (double* coordinate : {&p.x, &p.y, &p.z}) *coordinate = text_.number(text_.word_in_line(), "a coordinate");
    mesh_.vertices.push_back(p);
  }

  void face(const TextReader::Word& keyword) {
    int corners = 0, first = 0, last = 0;
    for (;; ++corners) {
      const TextReader::Word word = text_.word_in_line();
      if (word.text.empty()) {
        if (corners < 3) text_.refuse(word, "at least 3 corners of a face");
        return;
      }
      const int index = corner(word);
      if (corners >= 2) {
        if (mesh_.triangles.size() == static_cast<size_t>(kMaxTriangles)) {
          text_.refuse(keyword, "at most " + std::to_string(kMaxTriangles) + " triangles");
        }
        mesh_.triangles.push_back({first, last, index});
      }
      if (corners == 0) first = index;
      last = index;
    }
  }

  /// The vertex of "v", "v/vt", "v//vn" or "v/vt/vn". Those of texture and normal only have to be numbers.
  int corner(const TextReader::Word& word) {
    long long indices[3] = {0, 0, 0};
    std::string_view rest = word.text;
    for (int k = 0; k < 3; ++k) {
      const auto [end, code] = std::from_chars(rest.data(), rest.data() + rest.size(), indices[k]);
      const bool skipped = k == 1 && code == std::errc::invalid_argument && rest.starts_with('/');
      if ((code != std::errc() || indices[k] == 0) && !skipped) break;
      rest.remove_prefix(end - rest.data());
      if (rest.empty()) return resolved(indices[0], word);
      if (rest[0] != '/') break;
      rest.remove_prefix(1);
    }
    text_.refuse(word, "a corner v, v/vt, v//vn or v/vt/vn of whole numbers other than 0");
  }

  /// From 0. Positive ones may lie ahead, and are held to the number of vertices at the end.
  int resolved(long long index, const TextReader::Word& word) {
    const auto count = static_cast<long long>(mesh_.vertices.size());
    if (index < -count || index > kMaxVertices) {
      text_.refuse(word, "a vertex: 1 to " + std::to_string(kMaxVertices) +
                             ", or, from the last one backwards, -1 to " + std::to_string(-count));
    }
    const long long own = index > 0 ? index - 1 : count + index;
    if (own > highest_) {
      highest_ = own;
      highest_word_ = word;
    }
    return static_cast<int>(own);
  }

  const std::string& name_;
  TextReader text_;
  TriangleMesh mesh_;
  long long highest_ = -1;
  TextReader::Word highest_word_;
};

}  // namespace

TriangleMesh parse_obj(std::string_view text, const std::string& name) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // byte order mark
  return ObjReader(text, name).read();
}

}  // namespace backdrive
