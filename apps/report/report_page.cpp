#include "apps/report_page.h"

#include <string_view>
#include <utility>

#include "engine/error.h"

// The files as the build found them (apps/CMakeLists.txt), each between two symbols.
#define BACKDRIVE_EMBED(name, file)                  \
  asm(".section .rodata\n"                           \
      ".global backdrive_" #name                     \
      "_begin\n"                                     \
      ".global backdrive_" #name                     \
      "_end\n"                                       \
      "backdrive_" #name "_begin:\n.incbin \"" file  \
      "\"\n"                                         \
      "backdrive_" #name "_end:\n.byte 0\n.text\n"); \
  extern "C" const char backdrive_##name##_begin[], backdrive_##name##_end[]

BACKDRIVE_EMBED(page, BACKDRIVE_REPORT_PAGE);
BACKDRIVE_EMBED(css, BACKDRIVE_REPORT_CSS);
BACKDRIVE_EMBED(stage, BACKDRIVE_REPORT_STAGE);
BACKDRIVE_EMBED(motions, BACKDRIVE_REPORT_MOTIONS);
BACKDRIVE_EMBED(plots, BACKDRIVE_REPORT_PLOTS);
BACKDRIVE_EMBED(sweep, BACKDRIVE_REPORT_SWEEP);
BACKDRIVE_EMBED(script, BACKDRIVE_REPORT_SCRIPT);
BACKDRIVE_EMBED(three, BACKDRIVE_REPORT_THREE);
BACKDRIVE_EMBED(orbit, BACKDRIVE_REPORT_ORBIT);
BACKDRIVE_EMBED(chart, BACKDRIVE_REPORT_CHART);

namespace backdrive::app {
namespace {

#define BACKDRIVE_TEXT(name)                 \
  std::string_view(backdrive_##name##_begin, \
                   static_cast<std::size_t>(backdrive_##name##_end - backdrive_##name##_begin))

/// JSON that no HTML parser takes for the end of a script: '<' stands in strings only, and may be written as its code.
std::string harmless(const nlohmann::json& data) {
  const std::string text = data.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  std::string result;
  result.reserve(text.size());
  for (const char c : text) {
    if (c == '<') {
      result += "\\u003c";
    } else {
      result += c;
    }
  }
  return result;
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    result += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  }
  return result;
}

}  // namespace

std::string report_page(const nlohmann::json& data) {
  const std::string numbers = harmless(data), title = escaped(data.value("name", ""));
  const std::pair<std::string_view, std::string_view> parts[] = {{"title", title},
                                                                 {"css", BACKDRIVE_TEXT(css)},
                                                                 {"data", numbers},
                                                                 {"three", BACKDRIVE_TEXT(three)},
                                                                 {"orbit", BACKDRIVE_TEXT(orbit)},
                                                                 {"chart", BACKDRIVE_TEXT(chart)},
                                                                 {"stage", BACKDRIVE_TEXT(stage)},
                                                                 {"motions", BACKDRIVE_TEXT(motions)},
                                                                 {"plots", BACKDRIVE_TEXT(plots)},
                                                                 {"sweep", BACKDRIVE_TEXT(sweep)},
                                                                 {"script", BACKDRIVE_TEXT(script)}};
  std::string page;
  std::string_view rest = BACKDRIVE_TEXT(page);
  while (true) {
    const std::size_t open = rest.find("{{"), close = rest.find("}}", open);
    page += rest.substr(0, open);
    if (close == std::string_view::npos) return page;
    const std::string_view name = rest.substr(open + 2, close - open - 2);
    for (const auto& [known, text] : parts) {
      if (known == name) page += text;
    }
    rest.remove_prefix(close + 2);
  }
}

}  // namespace backdrive::app
