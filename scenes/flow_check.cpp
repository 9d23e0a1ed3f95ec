#include "scenes/flow_check.h"

namespace backdrive::scene {
namespace {

class FlowCheck {
 public:
  FlowCheck(std::string_view text, const Sources& sources, int source)
      : text_(text), sources_(sources), source_(source) {}

  std::vector<NumberList> run() {
    takes_numbers_ = !has_blocks();
    char before = '\n', token = '\n';  // the last character, and the last that is no space
    for (std::size_t i = 0; i < text_.size(); ++i) {
      const char c = text_[i];
      const bool spaced = before == ' ' || before == '\t' || before == '\n';
      const bool begins = std::string_view(depth_ > 0 ? "[{,:\n" : ":-?\n").find(token) != std::string_view::npos;
      if (c == '#' && spaced) {
        i = skip_to('\n', i);
      } else if ((c == '"' || c == '\'') && begins && (spaced || depth_ > 0)) {
        i = skip_to(c, i);
      } else if (c == '[' && depth_ == 0 && spaced && begins && take_numbers(i)) {
        i += lists_.back().inside.size() + 1;
      } else if ((c == '[' || c == '{') && (spaced || depth_ > 0)) {
        if (++depth_ > kMaxDepth) {
          refuse(i, "value nested more than " + std::to_string(kMaxDepth) + " deep",
                 "at most " + std::to_string(kMaxDepth) + " levels");
        }
        count(i);
      } else if (depth_ > 0 && (c == ']' || c == '}')) {
        --depth_;
      } else if (depth_ > 0 && c == ',') {
        count(i);
      }
      before = i < text_.size() ? text_[i] : '\n';
      if (before == '\n') {
        begin_line(i + 1);
        if (depth_ == 0) token = '\n';
      } else if (before != ' ' && before != '\t' && before != '\r') {
        token = before;
      }
    }
    check_size();
    return std::move(lists_);
  }

 private:
  /// Shorter lists are left to yaml-cpp.
  static constexpr int kLongList = 64;

  /// Whether a line ends with | or >, behind which prose may follow.
  bool has_blocks() const {
    for (std::size_t i = text_.find_first_of("|>"); i != std::string_view::npos; i = text_.find_first_of("|>", i + 1)) {
      const std::size_t end = text_.find_first_not_of("+-123456789 \t\r", i + 1);
      const bool ends = end == std::string_view::npos || text_[end] == '\n' || text_[end] == '#';
      if (i > 0 && (text_[i - 1] == ' ' || text_[i - 1] == '\n') && ends) return true;
    }
    return false;
  }

  /// Whether the bracket at `i` holds a long list of numbers, which is kept, with its lines and values counted.
  bool take_numbers(std::size_t i) {
    if (!takes_numbers_) return false;
    const NumberList list{line_, static_cast<int>(i - line_start_) + 1, i + 1, {}};
    int numbers = 0;
    bool digits = false, ended = true;  // the number so far, and whether one may begin
    for (std::size_t k = i + 1; k < text_.size(); ++k) {
      const char c = text_[k];
      const bool is_digit = c >= '0' && c <= '9';
      if (is_digit || c == '.' || c == '-' || c == '+' || c == 'e' || c == 'E') {
        if (!ended && (text_[k - 1] == ' ' || text_[k - 1] == '\n' || text_[k - 1] == '\r')) return false;
        ended = false;
        digits = digits || is_digit;
      } else if (c == ',' || c == ']') {
        if (!digits) return false;
        ++numbers;
        digits = false;
        ended = true;
        if (c == ',') continue;
        if (numbers < kLongList) return false;
        lists_.push_back(list);
        lists_.back().inside = text_.substr(i + 1, k - i - 1);
        count_numbers(lists_.back(), numbers);
        return true;
      } else if (c != ' ' && c != '\n' && c != '\r') {
        return false;
      }
    }
    return false;
  }
  void count_numbers(const NumberList& list, int numbers) {
    apart_ += list.inside.size();
    values_ += static_cast<std::size_t>(numbers);
    if (values_ > kMaxNodes) refuse(list.begin - 1, too_many_values(), "a smaller document");
    for (std::size_t k = list.inside.find('\n'); k != std::string_view::npos; k = list.inside.find('\n', k + 1)) {
      begin_line(list.begin + k + 1);
    }
  }
  void check_size() const {
    if (text_.size() - apart_ <= kMaxYamlBytes) return;
    fail(sources_, {source_, 1, 1}, "", "value of " + std::to_string(text_.size()) + " bytes",
         "at most " + std::to_string(kMaxYamlBytes >> 20) +
             " MiB beside long lists of numbers (tables may be files: CSV, up to 16 MiB)");
  }

  /// Where the comment or quoted text that begins at `i` ends; `end` is '\n' for comments.
  std::size_t skip_to(char end, std::size_t i) {
    while (++i < text_.size() && text_[i] != end) {
      if (end == '"' && text_[i] == '\\') ++i;
      if (i < text_.size() && text_[i] == '\n') begin_line(i + 1);
    }
    return i;
  }
  void begin_line(std::size_t i) {
    ++line_;
    line_start_ = i;
  }
  void count(std::size_t i) {
    if (++values_ > kMaxNodes) refuse(i, too_many_values(), "a smaller document");
  }
  [[noreturn]] void refuse(std::size_t i, const std::string& what, const std::string& expected) const {
    fail(sources_, {source_, line_, static_cast<int>(i - line_start_) + 1}, "", what, expected);
  }

  std::string_view text_;
  const Sources& sources_;
  int source_;
  int line_ = 1;
  std::size_t line_start_ = 0;
  int depth_ = 0;
  std::size_t values_ = 0;
  bool takes_numbers_ = true;
  std::vector<NumberList> lists_;
  std::size_t apart_ = 0;  ///< their bytes
};

}  // namespace

std::vector<NumberList> check_flow(std::string_view text, const Sources& sources, int source) {
  return FlowCheck(text, sources, source).run();
}

std::string without_numbers(std::string_view text, const std::vector<NumberList>& lists) {
  std::string rest(text);
  for (const NumberList& list : lists) {
    for (std::size_t k = list.begin; k < list.begin + list.inside.size(); ++k) {
      if (rest[k] != '\n' && rest[k] != '\r') rest[k] = ' ';
    }
  }
  return rest;
}

std::string too_many_values() {
  return "more than " + std::to_string(kMaxNodes) + " values";
}

}  // namespace backdrive::scene
