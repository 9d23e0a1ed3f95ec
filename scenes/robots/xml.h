#pragma once
// XML text as a tree in which every element and attribute knows where it was written.
#include <string>
#include <string_view>
#include <vector>

#include "scenes/document.h"

namespace backdrive::scene {

struct XmlAttribute {
  std::string name, value;
  Place place;  ///< of the value
};

struct XmlElement {
  std::string name;
  Place place;  ///< of its `<`
  std::vector<XmlAttribute> attributes;
  std::vector<XmlElement> children;
  std::string text;  ///< what stands in it beside elements, without the spaces around it

  /// The attribute, or null. O(attributes).
  const XmlAttribute* attribute(std::string_view name) const;
  /// The first child of that name, or null. O(children).
  const XmlElement* child(std::string_view name) const;
};

/// Reads a document's one root element by pugixml, which expands no entities and opens no files. Throws Error (input)
/// with place and expectation: what check_text refuses, malformed text, a document type (DOCTYPE), more than one root,
/// an attribute that an element has twice, more than kMaxDepth levels, more than kMaxNodes elements and attributes.
XmlElement parse_xml(const std::string& text, const Sources& sources, int source);

}  // namespace backdrive::scene
