#include "scenes/robots/xml_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "models/meshes/text_reader.h"

namespace backdrive::scene {

std::string title(const XmlElement& element) {
  const XmlAttribute* const name = element.attribute("name");
  return element.name + (name ? " '" + excerpt(name->value) + "'" : "");
}

std::string text_or(const XmlElement& element, const char* name, const std::string& otherwise) {
  const XmlAttribute* const found = element.attribute(name);
  return found ? found->value : otherwise;
}

void XmlValues::refuse(const XmlElement& owner, const XmlAttribute& value, const std::string& expected,
                       const std::string& hint) const {
  fail(sources_, value.place, title(owner) + ": " + value.name, "value '" + excerpt(value.value) + "'", expected, hint);
}

void XmlValues::missing(const XmlElement& owner, const std::string& expected) const {
  fail(sources_, owner.place, title(owner), "nothing", expected);
}

const XmlAttribute& XmlValues::attribute(const XmlElement& element, const char* name, const std::string& what) const {
  const XmlAttribute* const found = element.attribute(name);
  if (!found) missing(element, "the attribute '" + std::string(name) + "' (" + what + ")");
  return *found;
}

std::vector<double> XmlValues::list(const XmlElement& owner, const XmlAttribute& attribute, std::size_t least,
                                    std::size_t most) const {
  constexpr std::string_view spaces = " \t\r\n";
  std::vector<double> values;
  std::string_view rest = attribute.value;
  for (;;) {
    rest.remove_prefix(std::min(rest.find_first_not_of(spaces), rest.size()));
    if (rest.empty()) break;
    const std::size_t end = std::min(rest.find_first_of(spaces), rest.size());
    std::string_view word = rest.substr(0, end);
    if (word.starts_with('+')) word.remove_prefix(1);
    const std::optional<double> value = parse_decimal(word);
    if (!value || values.size() == most) break;
    values.push_back(*value);
    rest.remove_prefix(end);
  }
  if (values.size() < least || !rest.empty()) {
    const std::string count =
        least == most ? std::to_string(most) : std::to_string(least) + " to " + std::to_string(most);
    refuse(owner, attribute, most == 1 ? "a number" : count + " numbers with spaces between them");
  }
  return values;
}

double XmlValues::not_negative(const XmlElement& owner, const XmlAttribute& attribute) const {
  const double value = number(owner, attribute);
  if (value < 0) refuse(owner, attribute, "a number of at least 0");
  return value;
}

double XmlValues::number_or(const XmlElement& element, const char* name, double otherwise) const {
  const XmlAttribute* const found = element.attribute(name);
  return found ? number(element, *found) : otherwise;
}

int XmlValues::whole_or(const XmlElement& element, const char* name, int otherwise) const {
  const XmlAttribute* const found = element.attribute(name);
  if (!found) return otherwise;
  const double value = number(element, *found);
  if (!(std::abs(value) <= 2147483647.0) || value != std::floor(value)) {
    refuse(element, *found, "a whole number of 32 bits");
  }
  return static_cast<int>(value);
}

bool XmlValues::flag_or(const XmlElement& element, const char* name, bool otherwise) const {
  const XmlAttribute* const found = element.attribute(name);
  if (!found) return otherwise;
  if (found->value != "true" && found->value != "false") refuse(element, *found, "true or false");
  return found->value == "true";
}

double XmlValues::length(const XmlElement& element, const char* name) const {
  return not_negative(element, attribute(element, name, "a length in m"));
}

std::string shortest(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

NodePtr scalar_of(double value, Place place) {
  return make_scalar(shortest(value), place);
}

NodePtr list_of_names(const std::vector<std::string>& names, Place place) {
  NodePtr list = make_list(place);
  for (const std::string& name : names) list->list.push_back(make_scalar(name, place, true));
  return list;
}

void set_key(const NodePtr& map, const std::string& key, NodePtr value, Place place) {
  map->map.push_back({key, place, std::move(value)});
}

NodePtr frame_node(const Pose& pose, Place place) {
  NodePtr node = make_map(place);
  if (!is_zero(pose.position)) set_key(node, "position", list_of(pose.position, place), place);
  if (pose.orientation != Turn{0, 0, 0, 1}) set_key(node, "orientation", list_of(pose.orientation, place), place);
  return node;
}

std::string scene_name(const std::string& prefix, const std::string& name) {
  std::string result = prefix + name;
  for (char& c : result) {
    if (c == '/' || c == '*' || c == '\n') c = '_';
  }
  return result;
}

}  // namespace backdrive::scene
