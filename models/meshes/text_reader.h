#pragma once
// Words and numbers of text files that nobody vouches for, and what their errors say.
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace backdrive {

constexpr size_t kMaxMeshBytes = size_t{64} << 20;  ///< of a mesh or height field file
constexpr double kMaxCoordinate = 1e9;              ///< keeps moments of the fifth order far from overflow

/// Throws Error (input): "<place>: <what>: expected <expected>".
[[noreturn]] void refuse_file(const std::string& place, const std::string& what, const std::string& expected);

/// Bytes as they may stand in a message: printable ASCII, the rest as '?', cut to `limit`.
std::string printable(std::string_view bytes, size_t limit = 60);

/// A number as messages show it.
std::string shown(double value);

/// ".obj" of "Part.OBJ".
std::string lower_extension(const std::filesystem::path& path);

/// All of a regular file. Throws Error (input) when it is missing, no file, or above kMaxMeshBytes.
std::string read_bytes(const std::filesystem::path& path);

/// A decimal number in whatever locale; empty for inf, nan, what does not fit, and what has more behind it.
std::optional<double> parse_decimal(std::string_view text);

struct TextRules {
  char comment = '\0';           ///< from here to the end of the line nothing counts
  bool backslash_joins = false;  ///< a backslash at the end of a line joins the next one
};

/// Walks a text word by word. Lines end in \n, \r\n or \r; the last may do without.
class TextReader {
 public:
  /// Empty where line or file end.
  struct Word {
    std::string_view text;
    int line = 1;    ///< from 1
    int column = 1;  ///< bytes, from 1
  };

  /// Both outlive the reader.
  TextReader(std::string_view text, const std::string& name, TextRules rules)
      : text_(text), name_(name), rules_(rules) {}

  Word word_in_line();  ///< empty at the end of the line, which stays there
  Word word();          ///< empty at the end of the text
  void skip_line();     ///< to the start of the next
  bool at_end() const { return at_ >= text_.size(); }
  size_t position() const { return at_; }  ///< of the byte behind the last word

  /// Of magnitude up to kMaxCoordinate. `what` names it in the error.
  double number(const Word& word, const std::string& what) const;
  /// From `least` to `most`.
  long long whole(const Word& word, const std::string& what, long long least, long long most) const;

  std::string place(int line, int column) const;
  [[noreturn]] void refuse(const Word& word, const std::string& expected) const;

 private:
  bool at_line_end() const { return at_end() || text_[at_] == '\n' || text_[at_] == '\r'; }
  void pass_line_end();
  bool pass_joined_line();

  std::string_view text_;
  const std::string& name_;
  TextRules rules_;
  size_t at_ = 0, line_start_ = 0;
  int line_ = 1;
};

}  // namespace backdrive
