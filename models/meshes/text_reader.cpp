#include "models/meshes/text_reader.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <fstream>

#include "engine/error.h"

namespace backdrive {

void refuse_file(const std::string& place, const std::string& what, const std::string& expected) {
  input_error(place + ": " + what + ": expected " + expected);
}

std::string printable(std::string_view bytes, size_t limit) {
  std::string out;
  for (const char c : bytes.substr(0, limit)) out += c >= 0x20 && c < 0x7F ? c : '?';
  return bytes.size() > limit ? out + "..." : out;
}

std::string shown(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.6g", value);
  return buffer;
}

std::string lower_extension(const std::filesystem::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return extension;
}

std::string read_bytes(const std::filesystem::path& path) {
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  if (!std::filesystem::exists(status)) refuse_file(path.string(), "no such file", "an existing file");
  if (!std::filesystem::is_regular_file(status)) refuse_file(path.string(), "no regular file", "a regular file");
  std::ifstream stream(path, std::ios::binary);
  if (!stream) refuse_file(path.string(), "cannot be opened", "a file that can be read");
  std::string bytes;
  // What a file says of its size need not be so: it is read until it ends or is too large.
  for (constexpr size_t piece = size_t{1} << 20; stream && bytes.size() <= kMaxMeshBytes;) {
    const size_t before = bytes.size();
    bytes.resize(before + piece);
    stream.read(bytes.data() + before, piece);
    bytes.resize(before + static_cast<size_t>(stream.gcount()));
  }
  if (stream.bad()) refuse_file(path.string(), "reading fails", "a file that can be read");
  if (bytes.size() > kMaxMeshBytes) refuse_file(path.string(), "more than 64 MiB", "a file of at most 64 MiB");
  return bytes;
}

std::optional<double> parse_decimal(std::string_view text) {
  if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

void TextReader::pass_line_end() {
  if (at_end()) return;
  if (text_[at_] == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') ++at_;
  line_start_ = ++at_;
  ++line_;
}

/// Past a backslash and the line end behind it; false where there is none.
bool TextReader::pass_joined_line() {
  if (!rules_.backslash_joins || at_end() || text_[at_] != '\\') return false;
  if (at_ + 1 < text_.size() && text_[at_ + 1] != '\n' && text_[at_ + 1] != '\r') return false;
  ++at_;
  pass_line_end();
  return true;
}

TextReader::Word TextReader::word_in_line() {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\v' || c == '\f'; };
  for (;;) {
    if (!at_end() && blank(text_[at_])) {
      ++at_;
    } else if (!pass_joined_line()) {
      break;
    }
  }
  const auto comment = [&] { return rules_.comment != '\0' && text_[at_] == rules_.comment; };
  const size_t begin = at_;
  Word word{{}, line_, static_cast<int>(begin - line_start_) + 1};
  if (!at_line_end() && comment()) {
    while (!at_line_end()) ++at_;
    return word;
  }
  while (!at_line_end() && !blank(text_[at_]) && !comment() && !pass_joined_line()) {
    ++at_;
    word.text = text_.substr(begin, at_ - begin);
  }
  return word;
}

TextReader::Word TextReader::word() {
  for (;;) {
    const Word word = word_in_line();
    if (!word.text.empty() || at_end()) return word;
    pass_line_end();
  }
}

void TextReader::skip_line() {
  while (!at_line_end()) {
    if (!pass_joined_line()) ++at_;
  }
  pass_line_end();
}

double TextReader::number(const Word& word, const std::string& what) const {
  const std::optional<double> value = parse_decimal(word.text);
  if (!value || std::abs(*value) > kMaxCoordinate) {
    refuse(word, what + ", a decimal number of magnitude up to " + shown(kMaxCoordinate));
  }
  return *value;
}

long long TextReader::whole(const Word& word, const std::string& what, long long least, long long most) const {
  long long value = 0;
  const char* last = word.text.data() + word.text.size();
  const auto [end, code] = std::from_chars(word.text.data(), last, value);
  if (code != std::errc() || end != last || value < least || value > most) {
    refuse(word, what + ", a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

std::string TextReader::place(int line, int column) const {
  return name_ + ":" + std::to_string(line) + ":" + std::to_string(column);
}

void TextReader::refuse(const Word& word, const std::string& expected) const {
  const std::string nothing = at_end() ? "the file ends" : "the line ends";
  refuse_file(place(word.line, word.column), word.text.empty() ? nothing : "value '" + printable(word.text) + "'",
              expected);
}

}  // namespace backdrive
