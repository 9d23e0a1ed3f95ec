// Comments and pages stand on their own: what they cite by name or number (files, equations, sections) is in the
// repository. Equations are defined where their number stands in an indented line of a page.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/support/places.h"

namespace backdrive {
namespace {

namespace fs = std::filesystem;
using Words = std::set<std::string>;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

/// Every match of a pattern, with where it begins.
template <class Visit>
void each_match(const std::string& text, const std::regex& pattern, Visit&& visit) {
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) {
    visit(*at, static_cast<std::size_t>(at->position()));
  }
}

/// What precedes a place, as far as a sentence may reach back.
std::string before(const std::string& text, std::size_t at) {
  const std::size_t reach = std::min<std::size_t>(at, 160);
  return text.substr(at - reach, reach);
}

/// The comments of a source, those of consecutive lines as one line; other text as it is.
std::string prose_of(const std::string& name, const std::string& text) {
  const std::string extension = fs::path(name).extension();
  if (extension == ".md") return text;
  const std::regex comment(extension == ".cmake" || extension == ".txt" || extension.empty()
                               ? "(?:^|\\s)#+ (.*)"
                               : "(?:^|[^:])//[/!<]*(.*)");
  std::string prose;
  for (const std::string& line : lines_of(text)) {
    std::smatch found;
    prose += std::regex_search(line, found, comment) ? found[1].str() + ' ' : "\n";
  }
  return prose;
}

/// Names that are not of the repository: made by the build, of other packages, or standing for any.
const Words kElsewhere{"backdrive-config.cmake", "pinocchioTargets.cmake", "cooperative_groups.h", "NAME_0.cpp",
                       "path/of/header.h",       "engine/built_devices.h"};

/// What may be cited.
struct Repository {
  std::vector<std::string> files;          ///< from the root
  std::map<std::string, Words> equations;  ///< of each page: "8", "C4"
  std::map<std::string, Words> sections;   ///< of each page: "4" of "## 4. Measured"

  /// Whether a file's path is the name or ends with it.
  bool has(std::string name) const {
    name = std::regex_replace(name, std::regex("^(\\.{1,2}/)+|^backdrive/"), "");
    if (kElsewhere.contains(name)) return true;
    for (const std::string& file : files) {
      if (file == name || (file.size() > name.size() && file.ends_with('/' + name))) return true;
    }
    return false;
  }
  void add_page(const std::string& name, const std::string& text) {
    const std::regex equation("  \\(([A-Z]?[0-9]+[a-z]?)\\)(?= |$)"), section("^## ([0-9]+)\\.");
    for (const std::string& line : lines_of(text)) {
      std::smatch found;
      if (std::regex_search(line, found, section)) sections[name].insert(found[1]);
      if (!line.starts_with("    ") && !line.starts_with("- (")) continue;
      each_match(line, equation, [&](const std::smatch& number, std::size_t) { equations[name].insert(number[1]); });
      if (std::regex_search(line, found, std::regex("^- \\(([A-Z]?[0-9]+)\\) "))) equations[name].insert(found[1]);
    }
  }
  bool knows(const std::string& equation) const {
    for (const auto& [page, own] : equations) {
      if (own.contains(equation)) return true;
    }
    return false;
  }
};

/// What a file cites that is not there.
std::vector<std::string> dangling(const Repository& repository, const std::string& name, const std::string& text) {
  std::vector<std::string> found;
  const std::string prose = prose_of(name, text);
  const auto missing = [&](const std::string& what) { found.push_back(name + ": " + what); };

  static const std::regex file("[A-Za-z0-9_./-]*[A-Za-z0-9_]\\.(h|cpp|cuh?|md|cmake|py)\\b(?![-/(*]|\\.[a-z*])");
  each_match(prose, file, [&](const std::smatch& match, std::size_t at) {
    const char left = at > 0 ? prose[at - 1] : ' ';
    if (std::string("*}>$<:").find(left) == std::string::npos && !repository.has(match.str())) missing(match.str());
  });

  static const std::regex lettered("\\(([CALTK][0-9]+[a-z]?)\\)");
  each_match(prose, lettered, [&](const std::smatch& match, std::size_t) {
    if (!repository.knows(match[1])) missing("equation " + match.str());
  });

  // Of the integrators' own files: numbers of the page on their integrator, or of a formula in the file itself.
  static const std::regex numbered("(?:^|[^A-Za-z0-9_\\)\\]])\\(([0-9]{1,2}[a-z]?)\\)");
  static const std::regex integrators("^(tests/)?integrators/.*\\.(h|cpp|cu)$");
  if (std::regex_search(name, integrators)) {
    each_match(prose, numbered, [&](const std::smatch& match, std::size_t) {
      const std::string number = match[1];
      const bool own = std::regex_search(text, std::regex("//[^\n]*\\(" + number + "\\) [^\n]*="));
      if (!own && !repository.knows(number)) missing("equation (" + number + ")");
    });
  }

  static const std::regex section("\\bsections? ([0-9]+)");
  static const std::regex elsewhere("[A-Z][a-z]+[ ,]+((19|20)[0-9]{2}|[A-Z])[^.]*$|§");
  static const std::regex page("([a-z_]+)\\.md[^.]*$");
  each_match(prose, section, [&](const std::smatch& match, std::size_t at) {
    const std::string context = before(prose, at);
    std::smatch cited;
    const std::string cites =
        std::regex_search(context, cited, page) ? cited[1].str() + ".md" : fs::path(name).filename().string();
    const auto own = repository.sections.find(cites);
    if (own != repository.sections.end() && own->second.contains(match[1])) return;
    if (!std::regex_search(context, elsewhere)) missing(match.str() + " of " + cites);
  });

  static const std::regex nowhere(
      "\\bthe contract\\b|\\b[Dd]esign,? section\\b|\\bthe design('s)?\\b (section|sets|says)");
  each_match(prose, nowhere, [&](const std::smatch& match, std::size_t) { missing(match.str()); });
  return found;
}

/// Whether the test reads it: sources, build files and pages, but for those made to be wrong.
bool is_read(const std::string& name) {
  static const std::regex wrong("^tests/(architecture/(bad_tree/|citations_test)|faults/bad/)|^CHANGELOG\\.md$");
  static const std::regex read("\\.(h|cpp|cuh?|md|cmake)$|CMakeLists\\.txt$|^scripts/|^\\.ci/");
  return std::regex_search(name, read) && !std::regex_search(name, wrong);
}

Repository repository(const fs::path& root) {
  Repository result;
  for (auto at = fs::recursive_directory_iterator(root); at != fs::recursive_directory_iterator(); ++at) {
    const std::string name = fs::relative(at->path(), root);
    if (at->is_directory() && (name == "build" || name == ".git")) {
      at.disable_recursion_pending();
    } else if (at->is_regular_file()) {
      result.files.push_back(name);
      if (name.starts_with("docs/") && name.ends_with(".md")) {
        result.add_page(at->path().filename(), text_of(at->path()));
      }
    }
  }
  return result;
}

TEST(Citations, LeadSomewhere) {
  const Repository all = repository(test::kRepository);
  ASSERT_TRUE(all.knows("8"));
  ASSERT_TRUE(all.knows("C4"));
  int read = 0;
  for (const std::string& name : all.files) {
    if (!is_read(name)) continue;
    ++read;
    for (const std::string& what : dangling(all, name, text_of(fs::path(test::kRepository) / name))) {
      ADD_FAILURE() << what << " is cited, and is not in the repository";
    }
  }
  EXPECT_GT(read, 300);
}

TEST(Citations, ThatLeadNowhereAreFound) {
  Repository all;
  all.files = {"engine/pack.h", "docs/theory.md"};
  all.add_page("theory.md", "## 4. Measured\n\n    (1)  v = p\n    (C4) K = 1        (A1) x\n");
  const auto count = [&](const std::string& text) { return dangling(all, "integrators/a.h", "// " + text).size(); };
  EXPECT_EQ(count("See engine/pack.h, pack.h and docs/theory.md, section 4: (1), (C4) and (A1), O(1), f(2)."), 0u);
  const std::string absent = std::string("nowhere.") + "md";  // in two, so that nobody takes it for a citation
  EXPECT_EQ(count("See " + absent + "."), 1u);
  EXPECT_EQ(count("See integrators/pack.h."), 1u);
  EXPECT_EQ(count("By (2)."), 1u);
  EXPECT_EQ(count("(2) a = b, and (2) again."), 0u);
  EXPECT_EQ(count("By (C5)."), 1u);
  EXPECT_EQ(count("See docs/theory.md, section 5."), 1u);
  EXPECT_EQ(count("As section 4 says."), 1u);
  EXPECT_EQ(count("Ericson, Real-Time Collision Detection, section 4.4."), 0u);
  EXPECT_EQ(count("Held to the contract, design section 12."), 3u);
  EXPECT_TRUE(dangling(all, "a.h", "const char* s = \"b.h\";").empty());
}

}  // namespace
}  // namespace backdrive
