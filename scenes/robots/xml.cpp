#include "scenes/robots/xml.h"

#include <algorithm>
#include <cctype>
#include <pugixml.hpp>
#include <unordered_set>

namespace backdrive::scene {

const XmlAttribute* XmlElement::attribute(std::string_view wanted) const {
  const auto found = std::ranges::find(attributes, wanted, &XmlAttribute::name);
  return found == attributes.end() ? nullptr : &*found;
}

const XmlElement* XmlElement::child(std::string_view wanted) const {
  const auto found = std::ranges::find(children, wanted, &XmlElement::name);
  return found == children.end() ? nullptr : &*found;
}

namespace {

std::string without_spaces_around(std::string_view text) {
  const auto space = [](unsigned char c) { return std::isspace(c) != 0; };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return std::string(text);
}

class XmlReader {
 public:
  XmlReader(const std::string& text, const Sources& sources, int source)
      : text_(text), buffer_(text), sources_(sources), source_(source) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') line_starts_.push_back(i + 1);
    }
  }

  XmlElement read() {
    // In place, so that pointers to names and values tell where in the text they were.
    const pugi::xml_parse_result result = document_.load_buffer_inplace(
        buffer_.data(), buffer_.size(), pugi::parse_default | pugi::parse_doctype, pugi::encoding_utf8);
    if (!result) {
      const Place at = place(static_cast<std::size_t>(std::max<std::ptrdiff_t>(result.offset, 0)));
      fail(sources_, at, "", "value '" + excerpt(line_from(at)) + "'",
           std::string("XML (") + result.description() + ")");
    }
    const pugi::xml_node* root = nullptr;
    for (const pugi::xml_node& node : document_) {
      if (node.type() == pugi::node_doctype) {
        fail(sources_, place_of(node), "", "a document type (DOCTYPE)", "XML without one: entities are not expanded");
      }
      if (node.type() != pugi::node_element) continue;
      if (root) fail(sources_, place_of(node), "", "a second element '" + excerpt(node.name()) + "'", "one element");
      root_ = node;
      root = &root_;
    }
    if (!root) fail(sources_, {source_, 1, 1}, "", "no element", "XML with an element");
    return element(*root, 1);
  }

 private:
  XmlElement element(const pugi::xml_node& node, int depth) {
    XmlElement result;
    result.name = node.name();
    result.place = place_of(node);
    if (depth > kMaxDepth) {
      fail(sources_, result.place, "",
           "element '" + excerpt(result.name) + "' nested more than " + std::to_string(kMaxDepth) + " deep",
           "at most " + std::to_string(kMaxDepth) + " levels");
    }
    count(result.place);
    std::unordered_set<std::string_view> names;
    for (const pugi::xml_attribute& attribute : node.attributes()) {
      const Place at = place_of(attribute.value(), result.place);
      count(at);
      if (!names.insert(attribute.name()).second) {
        fail(sources_, at, result.name, "attribute '" + excerpt(attribute.name()) + "' a second time",
             "each attribute once");
      }
      result.attributes.push_back({attribute.name(), attribute.value(), at});
    }
    for (const pugi::xml_node& child : node.children()) {
      if (child.type() == pugi::node_element) result.children.push_back(element(child, depth + 1));
      if (child.type() == pugi::node_pcdata || child.type() == pugi::node_cdata) result.text += child.value();
    }
    result.text = without_spaces_around(result.text);
    return result;
  }

  void count(Place at) {
    if (++nodes_ > kMaxNodes) {
      fail(sources_, at, "", "more than " + std::to_string(kMaxNodes) + " elements and attributes", "a smaller file");
    }
  }

  /// Where a pointer into the buffer points; `otherwise` for one that does not.
  Place place_of(const char* pointer, Place otherwise) {
    const bool inside = pointer >= buffer_.data() && pointer < buffer_.data() + buffer_.size();
    return inside ? place(static_cast<std::size_t>(pointer - buffer_.data())) : otherwise;
  }
  Place place_of(const pugi::xml_node& node) {
    const std::ptrdiff_t name = std::max<std::ptrdiff_t>(node.offset_debug(), 1);
    return place(static_cast<std::size_t>(name) - (node.type() == pugi::node_element ? 1 : 0));
  }
  Place place(std::size_t offset) {
    offset = std::min(offset, text_.size());
    const auto next = std::ranges::upper_bound(line_starts_, offset);
    const std::size_t start = *(next - 1);
    // Places are asked for in the order of the text: on a line of megabytes each goes on from the last.
    if (counted_from_ != start || counted_to_ > offset) {
      counted_from_ = counted_to_ = start;
      counted_ = 0;
    }
    for (; counted_to_ < offset; ++counted_to_) {
      counted_ +=
          (static_cast<unsigned char>(text_[counted_to_]) & 0xC0u) != 0x80u;  // of UTF-8 a character's first byte
    }
    return {source_, static_cast<int>(next - line_starts_.begin()), counted_ + 1};
  }
  std::string line_from(Place at) const {
    const std::size_t start = std::min(line_starts_[at.line - 1] + at.column - 1, text_.size());
    return text_.substr(start, std::min<std::size_t>(text_.find('\n', start) - start, 200));
  }

  const std::string& text_;
  std::string buffer_;  ///< pugixml's, which writes in it
  const Sources& sources_;
  int source_;
  std::size_t nodes_ = 0;
  std::vector<std::size_t> line_starts_{0};
  std::size_t counted_from_ = 0, counted_to_ = 0;  ///< of one line the part whose characters are counted
  int counted_ = 0;
  pugi::xml_document document_;
  pugi::xml_node root_;
};

}  // namespace

XmlElement parse_xml(const std::string& text, const Sources& sources, int source) {
  check_text(text, sources, source, false);
  return XmlReader(text, sources, source).read();
}

}  // namespace backdrive::scene
