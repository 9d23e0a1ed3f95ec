// COLLADA, as far as it describes polygons and where they are: Khronos, COLLADA 1.4.1 specification, chapter 5.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <pugixml.hpp>
#include <vector>

#include "models/meshes/text_reader.h"
#include "models/meshes/triangle_mesh.h"

namespace backdrive {
namespace {

constexpr int kMostLevels = 64;  ///< of nodes in one another

/// x to R x + t; R by columns.
struct Affine {
  Mat3<double> linear = identity3<double>();
  Vec3<double> offset{};
  Vec3<double> operator()(const Vec3<double>& x) const { return linear * x + offset; }
};
Affine operator*(const Affine& a, const Affine& b) {
  return {a.linear * b.linear, a(b.offset)};
}

class DaeReader {
 public:
  DaeReader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  TriangleMesh read() {
    const pugi::xml_parse_result result =
        document_.load_buffer(text_.data(), text_.size(), pugi::parse_default | pugi::parse_doctype);
    if (!result) refuse_at(result.offset, std::string("XML (") + result.description() + ")");
    for (const pugi::xml_node& node : document_) {
      if (node.type() == pugi::node_doctype) refuse(node, "XML without a document type (DOCTYPE)");
    }
    const pugi::xml_node root = document_.child("COLLADA");
    if (!root) refuse_at(0, "a COLLADA document");
    if (const pugi::xml_attribute meter = root.child("asset").child("unit").attribute("meter")) {
      const auto value = parse_decimal(meter.value());
      if (!value || !(*value > 0)) refuse(root.child("asset").child("unit"), "a unit of more than 0 m");
      unit_ = *value;
    }
    for (const pugi::xml_node& geometry : root.child("library_geometries").children("geometry")) {
      geometries_[geometry.attribute("id").value()] = geometry;
    }
    library_ = root;
    bool placed = false;
    for (const pugi::xml_node& scene : root.child("library_visual_scenes").children("visual_scene")) {
      for (const pugi::xml_node& node : scene.children("node")) placed = add_node(node, {}, 1) || placed;
    }
    if (!placed) {
      for (const auto& [id, geometry] : geometries_) add_geometry(geometry, {}, {});
    }
    TriangleMesh mesh = welded(mesh_);
    if (mesh.triangles.empty()) refuse_file(name_, "no faces", "at least one triangle, polylist or polygon");
    return mesh;
  }

 private:
  [[noreturn]] void refuse_at(std::ptrdiff_t offset, const std::string& expected) const {
    int line = 1, column = 1;
    for (std::size_t i = 0; i < text_.size() && static_cast<std::ptrdiff_t>(i) < offset; ++i) {
      ++column;
      if (text_[i] == '\n') ++line, column = 1;
    }
    const std::size_t from = std::min(static_cast<std::size_t>(std::max<std::ptrdiff_t>(offset, 0)), text_.size());
    refuse_file(name_ + ":" + std::to_string(line) + ":" + std::to_string(column),
                "value '" + printable(text_.substr(from, 60)) + "'", expected);
  }
  [[noreturn]] void refuse(const pugi::xml_node& node, const std::string& expected) const {
    refuse_at(node.offset_debug(), expected);
  }

  /// The next of the numbers in a text, which is moved on; false at its end.
  template <class Number>
  bool next(const pugi::xml_node& owner, std::string_view& rest, Number& value) const {
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t\r\n"), rest.size()));
    if (rest.empty()) return false;
    if (rest[0] == '+') rest.remove_prefix(1);
    const auto [end, code] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    const bool ends = end == rest.data() + rest.size() || std::string_view(" \t\r\n").find(*end) != std::string::npos;
    if (code != std::errc() || !ends || !(std::abs(static_cast<double>(value)) <= kMaxCoordinate)) {
      refuse(owner, "numbers with spaces between them, of magnitude up to 1e9");
    }
    rest.remove_prefix(end - rest.data());
    return true;
  }
  template <class Number>
  std::vector<Number> numbers(const pugi::xml_node& node, std::size_t most) const {
    std::vector<Number> values;
    std::string_view rest = node.child_value();
    for (Number value; next(node, rest, value);) {
      if (values.size() == most) refuse(node, "at most " + std::to_string(most) + " numbers");
      values.push_back(value);
    }
    return values;
  }
  std::vector<double> exactly(const pugi::xml_node& node, std::size_t count) const {
    std::vector<double> values = numbers<double>(node, count);
    if (values.size() != count) refuse(node, std::to_string(count) + " numbers");
    return values;
  }

  Affine transform(const pugi::xml_node& node) const {
    Affine result;
    for (const pugi::xml_node& part : node.children()) {
      const std::string_view kind = part.name();
      if (kind == "matrix") {
        const std::vector<double> m = exactly(part, 16);  // row by row
        result = result * Affine{{{m[0], m[4], m[8]}, {m[1], m[5], m[9]}, {m[2], m[6], m[10]}}, {m[3], m[7], m[11]}};
      } else if (kind == "translate") {
        const std::vector<double> t = exactly(part, 3);
        result = result * Affine{identity3<double>(), {t[0], t[1], t[2]}};
      } else if (kind == "scale") {
        const std::vector<double> s = exactly(part, 3);
        result = result * Affine{{{s[0], 0, 0}, {0, s[1], 0}, {0, 0, s[2]}}, {}};
      } else if (kind == "rotate") {
        result = result * Affine{rotation(part), {}};
      } else if (kind == "lookat" || kind == "skew") {
        refuse(part, "nodes placed by matrix, translate, rotate and scale");
      }
    }
    return result;
  }
  Mat3<double> rotation(const pugi::xml_node& part) const {
    const std::vector<double> r = exactly(part, 4);  // axis, degrees
    const double norm = std::hypot(r[0], r[1], r[2]), angle = r[3] * std::acos(-1.0) / 180;
    if (!(norm > 0)) refuse(part, "an axis that is not zero");
    const double x = r[0] / norm, y = r[1] / norm, z = r[2] / norm, c = std::cos(angle), s = std::sin(angle);
    return {{c + x * x * (1 - c), y * x * (1 - c) + z * s, z * x * (1 - c) - y * s},
            {x * y * (1 - c) - z * s, c + y * y * (1 - c), z * y * (1 - c) + x * s},
            {x * z * (1 - c) + y * s, y * z * (1 - c) - x * s, c + z * z * (1 - c)}};
  }

  /// Whether there was a geometry in it.
  bool add_node(const pugi::xml_node& node, const Affine& above, int level) {
    if (level > kMostLevels) refuse(node, "at most " + std::to_string(kMostLevels) + " nodes in one another");
    const Affine here = above * transform(node);
    bool placed = false;
    for (const pugi::xml_node& instance : node.children("instance_geometry")) {
      const std::string_view url = instance.attribute("url").value();
      const auto found = geometries_.find(std::string(url.substr(url.starts_with('#') ? 1 : 0)));
      if (found == geometries_.end()) refuse(instance, "the id of a geometry in this file");
      add_geometry(found->second, here, instance);
      placed = true;
    }
    for (const pugi::xml_node& child : node.children("node")) placed = add_node(child, here, level + 1) || placed;
    return placed;
  }

  static pugi::xml_node by_id(const pugi::xml_node& mesh, const char* kind, std::string_view url) {
    const std::string id(url.substr(url.starts_with('#') ? 1 : 0));
    return mesh.find_child_by_attribute(kind, "id", id.c_str());
  }

  void add_geometry(const pugi::xml_node& geometry, const Affine& placed, const pugi::xml_node& instance) {
    const pugi::xml_node mesh = geometry.child("mesh");
    for (const char* const kind : {"triangles", "polylist", "polygons"}) {
      for (const pugi::xml_node& primitive : mesh.children(kind)) {
        colour_ = colour_of(primitive.attribute("material").value(), instance);
        add_primitive(mesh, primitive, placed);
      }
    }
  }

  /// The diffuse colour of the material that an instance binds to a symbol. How a mesh looks is no reason to refuse it.
  int colour_of(const char* symbol, const pugi::xml_node& instance) {
    const pugi::xml_node bound = instance.child("bind_material").child("technique_common");
    const std::string_view target =
        bound.find_child_by_attribute("instance_material", "symbol", symbol).attribute("target").value();
    const auto [known, is_new] = colours_.try_emplace(std::string(target), kNoColour);
    if (!is_new || target.empty()) return known->second;
    const pugi::xml_node material = by_id(library_.child("library_materials"), "material", target);
    const pugi::xml_node effect =
        by_id(library_.child("library_effects"), "effect", material.child("instance_effect").attribute("url").value());
    for (const pugi::xml_node& model : effect.child("profile_COMMON").child("technique").children()) {
      if (const pugi::xml_node colour = model.child("diffuse").child("color"))
        known->second = rgb(colour.child_value());
    }
    return known->second;
  }
  static int rgb(std::string_view text) {
    int colour = 0;
    for (int k = 0; k < 3; ++k) {
      text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
      const std::string_view word = text.substr(0, text.find_first_of(" \t\r\n"));
      text.remove_prefix(word.size());
      const auto share = parse_decimal(word);
      if (!share) return kNoColour;
      colour = colour << 8 | static_cast<int>(std::lround(std::clamp(*share, 0.0, 1.0) * 255));
    }
    return colour;
  }

  /// Appends the positions that a <vertices> names; returns how many there are.
  int add_positions(const pugi::xml_node& mesh, const pugi::xml_node& input, const Affine& placed) {
    const pugi::xml_node vertices = by_id(mesh, "vertices", input.attribute("source").value());
    const pugi::xml_node position = vertices.find_child_by_attribute("input", "semantic", "POSITION");
    const pugi::xml_node source = by_id(mesh, "source", position.attribute("source").value());
    const pugi::xml_node array = source.child("float_array");
    if (!array) refuse(input, "vertices with positions");
    const std::vector<double> x = numbers<double>(array, 3 * static_cast<std::size_t>(kMaxVertices));
    const int stride = source.child("technique_common").child("accessor").attribute("stride").as_int(3);
    if (stride < 3 || stride > 16) refuse(source, "positions of three numbers");
    const std::size_t count = x.size() / stride;
    if (mesh_.vertices.size() + count > static_cast<std::size_t>(kMaxVertices)) {
      refuse(array, "at most " + std::to_string(kMaxVertices) + " vertices");
    }
    for (std::size_t i = 0; i < count; ++i) {
      const double* const at = &x[i * stride];
      const Vec3<double> p = placed(Vec3<double>{at[0], at[1], at[2]}) * unit_;
      if (!(std::abs(p.x) <= kMaxCoordinate && std::abs(p.y) <= kMaxCoordinate && std::abs(p.z) <= kMaxCoordinate)) {
        refuse(array, "coordinates of magnitude up to 1e9");
      }
      mesh_.vertices.push_back(p);
    }
    return static_cast<int>(count);
  }

  void add_primitive(const pugi::xml_node& mesh, const pugi::xml_node& primitive, const Affine& placed) {
    int inputs = 1, at = -1;  // numbers of a corner, and which of them names the vertex
    const int first = static_cast<int>(mesh_.vertices.size());
    int count = 0;
    for (const pugi::xml_node& input : primitive.children("input")) {
      const int offset = input.attribute("offset").as_int(0);
      if (offset < 0 || offset > 64) refuse(input, "an offset from 0 to 64");
      inputs = std::max(inputs, offset + 1);
      if (std::string_view(input.attribute("semantic").value()) != "VERTEX" || at >= 0) continue;
      at = offset;
      count = add_positions(mesh, input, placed);
    }
    if (at < 0) refuse(primitive, "an input VERTEX");
    const bool polygons = std::string_view(primitive.name()) == "polygons";
    std::string_view corners = primitive.child("vcount").child_value();
    const bool has_counts = std::string_view(primitive.name()) == "polylist";
    for (const pugi::xml_node& p : primitive.children("p")) {
      std::vector<int> index;  // of one face's vertices
      std::string_view rest = p.child_value();
      int wanted = 3;
      if (has_counts) wanted = next_count(primitive, corners);
      int k = 0;
      for (long long value; next(p, rest, value); k = (k + 1) % inputs) {
        if (k != at) continue;
        if (value < 0 || value >= count) refuse(p, "indices of vertices, 0 to " + std::to_string(count - 1));
        index.push_back(first + static_cast<int>(value));
        if (polygons || static_cast<int>(index.size()) < wanted) continue;
        add_face(p, index);
        index.clear();
        if (has_counts) wanted = next_count(primitive, corners);
      }
      if (polygons) add_face(p, index);
    }
  }
  /// Corners of the next face of a polylist.
  int next_count(const pugi::xml_node& primitive, std::string_view& rest) const {
    long long count = 3;
    if (next(primitive.child("vcount"), rest, count) && (count < 1 || count > kMaxVertices)) {
      refuse(primitive.child("vcount"), "numbers of corners of at least 1");
    }
    return static_cast<int>(count);
  }
  /// As a fan about its first corner.
  void add_face(const pugi::xml_node& owner, const std::vector<int>& index) {
    for (std::size_t i = 2; i < index.size(); ++i) {
      if (mesh_.triangles.size() == static_cast<std::size_t>(kMaxTriangles)) {
        refuse(owner, "at most " + std::to_string(kMaxTriangles) + " triangles");
      }
      mesh_.triangles.push_back({index[0], index[i - 1], index[i]});
      mesh_.colours.push_back(colour_);
    }
  }

  std::string_view text_;
  const std::string& name_;
  pugi::xml_document document_;
  double unit_ = 1;  ///< m
  std::map<std::string, pugi::xml_node> geometries_;
  pugi::xml_node library_;                           ///< the root
  std::map<std::string, int, std::less<>> colours_;  ///< by material
  int colour_ = kNoColour;                           ///< of what is being added
  TriangleMesh mesh_;
};

}  // namespace

TriangleMesh parse_dae(std::string_view text, const std::string& name) {
  return DaeReader(text, name).read();
}

}  // namespace backdrive
