// No function has more than six parameters and no call as many arguments, so that each can be told by its place; what
// belongs together is a struct. Nor do two arguments in a row say no more than nullptr.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/support/places.h"

namespace backdrive {
namespace {

namespace fs = std::filesystem;

constexpr int kMostArguments = 6;

/// Functions of other libraries, and one of any number of arguments.
const std::set<std::string> kOfOthers{"cudaMemcpy2DAsync", "qh_new_qhull", "get_cauchy_point", "subspace_minimize",
                                      "tie"};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

/// The code without its comments and without what its strings say; lines stay lines.
std::string code_of(const std::string& text) {
  std::string code;
  for (std::size_t i = 0; i < text.size();) {
    if (text.compare(i, 2, "//") == 0) {
      i = std::min(text.find('\n', i), text.size());
    } else if (text.compare(i, 3, "R\"(") == 0) {
      const std::size_t end = std::min(text.find(")\"", i), text.size());
      code.append(static_cast<std::size_t>(
                      std::count(text.begin() + static_cast<long>(i), text.begin() + static_cast<long>(end), '\n')),
                  '\n');
      i = std::min(end + 2, text.size());
    } else if (text[i] == '"' || (text[i] == '\'' && (i == 0 || !is_word(text[i - 1])))) {
      const char quote = text[i++];
      while (i < text.size() && text[i] != quote && text[i] != '\n') i += text[i] == '\\' ? 2 : 1;
      code += "\"\"";
      ++i;
    } else {
      code += text[i++];
    }
  }
  return code;
}

/// How many items the list in parentheses at `open` has; commas within brackets of its own and template arguments do
/// not count.
int items_of(const std::string& code, std::size_t open) {
  int depth = 0, angles = 0, items = 1;
  for (std::size_t i = open; i < code.size(); ++i) {
    const char c = code[i];
    if (c == '(' || c == '[' || c == '{') ++depth;
    if (c == ')' || c == ']' || c == '}') --depth;
    if (depth == 0) return items;
    if (depth > 1) continue;
    if (c == '<' && is_word(code[i - 1])) ++angles;
    if (c == '>' && angles > 0 && code[i - 1] != '-') --angles;
    if (c == ',' && angles == 0) ++items;
  }
  return items;
}

/// What is wrong with a source: "name of 7 in line 3". Macros, whose names are capitals, list what they like.
std::vector<std::string> long_lists(const std::string& text) {
  static const std::regex nameless("\\bnullptr,\\s*nullptr\\b"), capitals("[A-Z0-9_]+");
  const std::string code = code_of(text);
  std::vector<std::string> found;
  const auto in_line = [&](std::size_t at) {
    return " in line " + std::to_string(1 + std::count(code.begin(), code.begin() + static_cast<long>(at), '\n'));
  };
  for (std::size_t open = code.find('('); open != std::string::npos; open = code.find('(', open + 1)) {
    std::size_t end = open;
    if (end > 0 && code[end - 1] == '>') end = code.rfind('<', end);  // arguments of a template
    std::size_t begin = end;
    while (begin > 0 && is_word(code[begin - 1])) --begin;
    const bool lambda = open > 0 && code[open - 1] == ']';
    const std::string name = lambda ? "a lambda" : code.substr(begin, end - begin);
    if (name.empty() || std::regex_match(name, capitals) || kOfOthers.contains(name)) continue;
    const int items = items_of(code, open);
    if (items > kMostArguments) found.push_back(name + " of " + std::to_string(items) + in_line(open));
  }
  for (std::sregex_iterator at(code.begin(), code.end(), nameless), none; at != none; ++at) {
    found.push_back("nullptr after nullptr" + in_line(static_cast<std::size_t>(at->position())));
  }
  return found;
}

TEST(Arguments, AreSixAtMost) {
  static const std::regex source("\\.(h|cpp|cuh?)$");
  int read = 0;
  for (const char* folder : {"engine", "models", "integrators", "autodiff", "scenes", "apps"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(test::kRepository) / folder)) {
      const std::string name = fs::relative(entry.path(), test::kRepository);
      if (!entry.is_regular_file() || !std::regex_search(name, source)) continue;
      ++read;
      std::ifstream file(entry.path());
      for (const std::string& what : long_lists({std::istreambuf_iterator<char>(file), {}})) {
        ADD_FAILURE() << name << ": " << what << ", expected " << kMostArguments << " at most, in structs";
      }
    }
  }
  EXPECT_GT(read, 200);
}

TEST(Arguments, BeyondSixAreFound) {
  using Found = std::vector<std::string>;
  EXPECT_EQ(long_lists("void f(int a, int b, int c,\n       int d, int e, int g);\n"), Found{});
  EXPECT_EQ(long_lists("\nvoid f(int a, int b, int c, int d, int e, int g, int h);"), Found{"f of 7 in line 2"});
  EXPECT_EQ(long_lists("g<float>(1, 2, 3, 4, 5, 6, 7);"), Found{"g of 7 in line 1"});
  EXPECT_EQ(long_lists("[&](int a, int b, int c, int d, int e, int g, int h) {};"), Found{"a lambda of 7 in line 1"});
  EXPECT_EQ(long_lists("f(h(1, 2, 3), {4, 5, 6, 7}, g<8, 9>(10), \"11, 12\", 13);  // f(1, 2, 3, 4, 5, 6, 7)"),
            Found{});
  EXPECT_EQ(long_lists("X x{1,\nnullptr, nullptr};"), Found{"nullptr after nullptr in line 2"});
  EXPECT_EQ(long_lists("f(p ? p : nullptr, nullptr);"), Found{"nullptr after nullptr in line 1"});
}

}  // namespace
}  // namespace backdrive
