// Scene documents back to text: whole ones for result files, excerpts for messages.
#include <algorithm>
#include <string>

#include "scenes/document.h"

namespace backdrive::scene {
namespace {

constexpr size_t kWidth = 100;

/// Whether YAML reads the bare text back as this very string.
bool plain_is_safe(const std::string& text) {
  if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") return false;
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '/' ||
           c == '.' || c == '+' || c == '-' || c == '^' || c == ' ' || c == '*';
  };
  if (!std::all_of(text.begin(), text.end(), allowed)) return false;
  // Indicators at the start, and document marks, mean something else.
  const bool dash = text[0] == '-' && (text.size() == 1 || text[1] == ' ' || text[1] == '-');
  return text.front() != ' ' && text.back() != ' ' && text[0] != '*' && !dash;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        // What files must not hold as it is.
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
          constexpr char kDigits[] = "0123456789abcdef";
          out += {'\\', 'x', kDigits[c >> 4], kDigits[c & 15]};
        } else {
          out += c;
        }
    }
  }
  return out + "\"";
}

std::string scalar_text(const Node& node) {
  return !node.quoted && plain_is_safe(node.text) ? node.text : quoted(node.text);
}

/// One line, or less when it would pass `limit` bytes (then it ends in the middle).
void append_flow(const Node& node, size_t limit, std::string& out) {
  if (out.size() > limit) return;
  const char* separator = "";
  switch (node.kind) {
    case NodeKind::null:
      out += "~";
      break;
    case NodeKind::scalar:
      out += scalar_text(node);
      break;
    case NodeKind::list:
      out += "[";
      for (const NodePtr& item : node.list) {
        if (out.size() > limit) return;
        out += separator;
        append_flow(*item, limit, out);
        separator = ", ";
      }
      out += "]";
      break;
    case NodeKind::map:
      out += "{";
      for (const Entry& entry : node.map) {
        if (out.size() > limit) return;
        out += separator;
        out += plain_is_safe(entry.key) ? entry.key : quoted(entry.key);
        out += ": ";
        append_flow(*entry.value, limit, out);
        separator = ", ";
      }
      out += "}";
      break;
  }
}

bool only_scalars(const Node& list) {
  return std::all_of(list.list.begin(), list.list.end(),
                     [](const NodePtr& item) { return item->kind == NodeKind::scalar; });
}

void append_block(const Node& node, int indent, size_t column, bool top, std::string& out);

void append_wrapped(const Node& list, int indent, std::string& out) {
  out += "[";
  size_t column = kWidth;  // so that the first number begins a line
  for (size_t i = 0; i < list.list.size(); ++i) {
    const std::string item = scalar_text(*list.list[i]) + (i + 1 < list.list.size() ? "," : "]");
    if (column + item.size() + 1 > kWidth) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else {
      out += " ";
      ++column;
    }
    out += item;
    column += item.size();
  }
}

void append_block(const Node& node, int indent, size_t column, bool top, std::string& out) {
  if (!top) {
    std::string flow;
    append_flow(node, kWidth, flow);
    if (node.kind == NodeKind::null || node.kind == NodeKind::scalar || flow.size() + column <= kWidth) {
      out += " " + flow + "\n";
      return;
    }
  }
  const std::string margin(indent, ' ');
  if (node.kind == NodeKind::list && only_scalars(node)) {
    out += " ";
    append_wrapped(node, indent, out);
    out += "\n";
    return;
  }
  if (!top) out += "\n";
  for (const NodePtr& item : node.list) {
    out += margin + "-";
    append_block(*item, indent + 2, indent + 2, false, out);
  }
  for (const Entry& entry : node.map) {
    const std::string key = plain_is_safe(entry.key) ? entry.key : quoted(entry.key);
    out += margin + key + ":";
    append_block(*entry.value, indent + 2, indent + key.size() + 2, false, out);
  }
}

}  // namespace

std::string to_yaml(const Node& node) {
  std::string out;
  const bool container = node.kind == NodeKind::map ? !node.map.empty() : false;
  append_block(node, 0, 0, container, out);
  return out;
}

std::string excerpt(std::string_view text, size_t limit) {
  std::string out;
  for (const char c : text.substr(0, limit)) out += c == '\n' || c == '\r' || c == '\t' ? ' ' : c;
  if (text.size() > limit) {
    // Do not cut inside a UTF-8 sequence.
    while (!out.empty() && (static_cast<unsigned char>(out.back()) & 0xC0) == 0x80) out.pop_back();
    if (!out.empty() && static_cast<unsigned char>(out.back()) >= 0xC0) out.pop_back();
    out += "…";
  }
  return out;
}

std::string excerpt(const Node& node, size_t limit) {
  if (node.kind == NodeKind::scalar) return excerpt(node.text, limit);
  if (node.kind == NodeKind::null) return "";
  std::string flow;
  append_flow(node, limit, flow);
  return excerpt(flow, limit);
}

}  // namespace backdrive::scene
