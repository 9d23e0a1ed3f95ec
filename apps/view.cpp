// simctl view: a page of this machine that shows a scene and simulates it anew as its numbers are moved.
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "apps/atomic_output.h"
#include "apps/json_text.h"
#include "apps/log.h"
#include "apps/machine_memory.h"
#include "apps/options.h"
#include "apps/report_data.h"
#include "apps/report_page.h"
#include "apps/result_motion.h"
#include "apps/view_session.h"
#include "apps/web_server.h"

namespace backdrive::app {
namespace {

struct ViewArguments : Options {
  int port = 0;
  bool open = false;
};

void tell_address(const ViewArguments& options, const std::string& address) {
  if (options.json) {
    print_json({{"address", address}, {"exit_code", static_cast<int>(kDone)}});
  } else {
    std::cout << "view: " << address << "   (Ctrl-C ends it)\n";
  }
  finish_stdout();
  if (options.open && !open_in_browser(address)) log_warning(kNoBrowserOpens);
}

int run_view(ViewArguments options) {
  const ExecutionOptions how = execution(options);
  std::string motion;  // of a result folder, as its page takes it
  if (std::filesystem::is_directory(options.scene)) {
    const std::filesystem::path folder = options.scene;
    options.scene = scene_file_in(folder).string();
    if (options.set.empty()) {
      const nlohmann::json data = report_data(folder);
      motion =
          nlohmann::json{
              {"motion", data.at("motions").at(0)}, {"bodies", data.at("bodies")}, {"shapes", data.at("shapes")}}
              .dump();
    }
  }
  const Scene scene = load(options);
  check_motion_fits(scene.problem);
  WebServer server(options.port);
  ViewSession session(scene, how);
  put_view_page(server);
  server.on_get("scene", [text = session.scene_text()](const std::string&, const WebAnswer& answer) {
    answer({200, text});
  });
  server.on_get("result", [motion](const std::string&, const WebAnswer& answer) {
    motion.empty() ? answer({204, ""}) : answer({200, motion});
  });
  server.on_post("ask", [&](std::string_view body, const WebAnswer& answer) {
    ViewRequest request;
    try {
      request = read_view_request(body);
    } catch (const Error& error) {
      return answer({400, text_of({{"error", error.what()}})});
    }
    session.ask(std::move(request), [&server, answer](std::string text) {
      server.post([answer, text = std::move(text)] { answer({200, text}); });
    });
  });
  tell_address(options, server.address());
  server.run(true);
  // A gradient that has begun cannot be stopped, and nobody waits for it any more.
  if (!session.is_idle_after_stop()) std::_Exit(kDone);
  return kDone;
}

}  // namespace

void add_view(CLI::App& app, Invocation& invocation) {
  CLI::App* const command = app.add_subcommand(
      "view",
      "Show a scene, robot or result folder in a browser of this machine (docs/view.md): its motion, and sliders for\n"
      "where joints begin and for every parameter, which simulate it anew and show the loss and its gradient.\n"
      "Only this machine reaches the page, below an address that is printed and holds a random token. Ctrl-C ends it.");
  static ViewArguments options;
  add_scene(*command, options);
  command->get_option("scene")->description("scene file, robot (URDF, MJCF) or result folder")->type_name(kAnyPath);
  command->add_option("--port", options.port, "port of 127.0.0.1 [one that is free]")
      ->check(in_range(0, 65535))
      ->type_name("N");
  command->add_flag("--open", options.open, "open the address in the desktop's browser (xdg-open)");
  add_precision(*command, options);
  add_execution(*command, options);
  add_json_and_quiet(*command, options);
  finish_command(*command, invocation, options,
                 "  simctl view scenes/cartpole_swingup.yaml --open\n"
                 "  simctl view scenes/walker.xml --port 8080\n"
                 "  simctl view results/cartpole_swingup-optimize-1",
                 [] { return run_view(options); });
}

}  // namespace backdrive::app
