#pragma once
// Numbers and words of a robot file's elements, and the same as values of a scene.
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "scenes/document.h"
#include "scenes/pose.h"
#include "scenes/robots/xml.h"

namespace backdrive::scene {

/// An element by its name, as messages call it: "joint 'elbow'".
std::string title(const XmlElement& element);

/// The text of an attribute, where the element has it.
std::string text_or(const XmlElement& element, const char* name, const std::string& otherwise);

/// Reads attributes; errors name place, element, attribute, value and expectation.
class XmlValues {
 public:
  explicit XmlValues(const Sources& sources) : sources_(sources) {}

  [[noreturn]] void refuse(const XmlElement& owner, const XmlAttribute& value, const std::string& expected,
                           const std::string& hint = {}) const;
  [[noreturn]] void missing(const XmlElement& owner, const std::string& expected) const;
  const XmlAttribute& attribute(const XmlElement& element, const char* name, const std::string& what) const;

  /// At least `least` and at most `most` numbers with spaces between them.
  std::vector<double> list(const XmlElement& owner, const XmlAttribute& attribute, std::size_t least,
                           std::size_t most) const;
  template <std::size_t N>
  std::array<double, N> numbers(const XmlElement& owner, const XmlAttribute& attribute) const {
    const std::vector<double> all = list(owner, attribute, N, N);
    std::array<double, N> values{};
    for (std::size_t i = 0; i < N; ++i) values[i] = all[i];
    return values;
  }
  double number(const XmlElement& owner, const XmlAttribute& attribute) const {
    return numbers<1>(owner, attribute)[0];
  }
  double not_negative(const XmlElement& owner, const XmlAttribute& attribute) const;
  double number_or(const XmlElement& element, const char* name, double otherwise) const;
  /// A whole number of 32 bits.
  int whole_or(const XmlElement& element, const char* name, int otherwise) const;
  /// true or false.
  bool flag_or(const XmlElement& element, const char* name, bool otherwise) const;
  /// A length in m that the element must have.
  double length(const XmlElement& element, const char* name) const;

 private:
  const Sources& sources_;
};

/// The shortest text that reads back to the same number.
std::string shortest(double value);
NodePtr scalar_of(double value, Place place);
template <class Numbers>
NodePtr list_of(const Numbers& values, Place place) {
  NodePtr list = make_list(place);
  for (const double value : values) list->list.push_back(scalar_of(value, place));
  return list;
}
template <class Map>
std::vector<std::string> names_of(const Map& map) {
  std::vector<std::string> names;
  for (const auto& [name, unused] : map) names.push_back(name);
  return names;
}
NodePtr list_of_names(const std::vector<std::string>& names, Place place);
void set_key(const NodePtr& map, const std::string& key, NodePtr value, Place place);
/// A scene's `frame`; what is zero is left out.
NodePtr frame_node(const Pose& pose, Place place);

inline bool is_zero(const Numbers3& x) {
  return x == Numbers3{0, 0, 0};
}
inline bool is_identity(const Pose& pose) {
  return is_zero(pose.position) && pose.orientation == Turn{0, 0, 0, 1};
}

/// A name as scenes may have it, behind a robot's prefix.
std::string scene_name(const std::string& prefix, const std::string& name);

}  // namespace backdrive::scene
