#include "apps/report_page.h"

#include <string_view>
#include <utility>
#include <vector>

#include "apps/looks.h"
#include "apps/web_server.h"
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
BACKDRIVE_EMBED(shapes, BACKDRIVE_REPORT_SHAPES);
BACKDRIVE_EMBED(stage, BACKDRIVE_REPORT_STAGE);
BACKDRIVE_EMBED(motions, BACKDRIVE_REPORT_MOTIONS);
BACKDRIVE_EMBED(plots, BACKDRIVE_REPORT_PLOTS);
BACKDRIVE_EMBED(sweep, BACKDRIVE_REPORT_SWEEP);
BACKDRIVE_EMBED(script, BACKDRIVE_REPORT_SCRIPT);
BACKDRIVE_EMBED(view, BACKDRIVE_REPORT_VIEW);
BACKDRIVE_EMBED(view_css, BACKDRIVE_REPORT_VIEW_CSS);
BACKDRIVE_EMBED(view_script, BACKDRIVE_REPORT_VIEW_SCRIPT);
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

using Parts = std::vector<std::pair<std::string_view, std::string_view>>;

/// A template with {{name}} replaced by the part of that name.
std::string filled(std::string_view rest, const Parts& parts) {
  std::string page;
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

/// The element of page.html that holds the replay.
std::string_view replay_section() {
  const std::string_view page = BACKDRIVE_TEXT(page), end = "</section>";
  const std::size_t begin = page.find("<section id=\"replay\"");
  return page.substr(begin, page.find(end, begin) + end.size() - begin);
}

}  // namespace

std::string report_page(const nlohmann::json& data) {
  const std::string numbers = harmless(data), title = escaped(data.value("name", ""));
  return filled(BACKDRIVE_TEXT(page), {{"title", title},
                                       {"css", BACKDRIVE_TEXT(css)},
                                       {"data", numbers},
                                       {"three", BACKDRIVE_TEXT(three)},
                                       {"orbit", BACKDRIVE_TEXT(orbit)},
                                       {"chart", BACKDRIVE_TEXT(chart)},
                                       {"shapes", BACKDRIVE_TEXT(shapes)},
                                       {"stage", BACKDRIVE_TEXT(stage)},
                                       {"motions", BACKDRIVE_TEXT(motions)},
                                       {"plots", BACKDRIVE_TEXT(plots)},
                                       {"sweep", BACKDRIVE_TEXT(sweep)},
                                       {"script", BACKDRIVE_TEXT(script)}});
}

void put_view_page(WebServer& server, const Looks& looks) {
  static const std::string page = filled(BACKDRIVE_TEXT(view), {{"replay", replay_section()}});
  server.put("", page, "text/html");
  server.on_get("looks", [text = looks_json(looks).dump()](const std::string&, const WebAnswer& answer) {
    answer({200, text});
  });
  server.put("page.css", BACKDRIVE_TEXT(css), "text/css");
  server.put("view.css", BACKDRIVE_TEXT(view_css), "text/css");
  server.put("three.js", BACKDRIVE_TEXT(three), "text/javascript");
  server.put("orbit.js", BACKDRIVE_TEXT(orbit), "text/javascript");
  server.put("chart.js", BACKDRIVE_TEXT(chart), "text/javascript");
  server.put("shapes.js", BACKDRIVE_TEXT(shapes), "text/javascript");
  server.put("stage.js", BACKDRIVE_TEXT(stage), "text/javascript");
  server.put("motions.js", BACKDRIVE_TEXT(motions), "text/javascript");
  server.put("plots.js", BACKDRIVE_TEXT(plots), "text/javascript");
  server.put("view.js", BACKDRIVE_TEXT(view_script), "text/javascript");
}

}  // namespace backdrive::app
