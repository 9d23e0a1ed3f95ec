#include "apps/browser.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "apps/json_text.h"
#include "engine/error.h"

namespace backdrive::app {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr int kPatienceMs = 60'000;  ///< for an answer

std::string chromium() {
  for (const char* const name : {"chromium", "chromium-browser", "google-chrome"}) {
    if (std::string path = program_path(name); !path.empty()) return path;
  }
  usage_error("no Chromium here to draw with: expected the Debian package chromium");
}

}  // namespace

std::string from_base64(std::string_view text) {
  std::string bytes;
  unsigned bits = 0;
  int count = 0;
  for (const char c : text) {
    const char* const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const std::size_t digit = std::string_view(digits).find(c);
    if (digit == std::string_view::npos) break;
    bits = bits << 6 | static_cast<unsigned>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 255);
  }
  return bytes;
}

std::string file_address(const std::filesystem::path& path) {
  std::string address = "file://";
  for (const unsigned char c : path.string()) {
    char code[4];
    std::snprintf(code, sizeof code, "%%%02X", c);
    address +=
        std::isalnum(c) || c == '/' || c == '-' || c == '_' || c == '.' ? std::string(1, static_cast<char>(c)) : code;
  }
  return address;
}

Browser::Browser(int width, int height) {
  try {
    start(width, height);
  } catch (...) {
    end();
    throw;
  }
}

Browser::~Browser() {
  end();
}

void Browser::start(int width, int height) {
  const std::string program = chromium();
  std::string name = (fs::temp_directory_path() / "simctl-browser-XXXXXX").string();
  if (!::mkdtemp(name.data())) usage_error("cannot create folder '" + name + "': " + std::strerror(errno));
  folder_ = name;
  int down[2], up[2];
  if (::pipe2(down, O_CLOEXEC) != 0 || ::pipe2(up, O_CLOEXEC) != 0) usage_error("cannot make pipes");
  to_ = down[1], from_ = up[0];
  std::vector<std::string> command{program,
                                   "--headless=new",
                                   "--remote-debugging-pipe",
                                   "--use-angle=swiftshader",  // the same pixels on every machine
                                   "--enable-unsafe-swiftshader",
                                   "--hide-scrollbars",
                                   "--force-device-scale-factor=1",
                                   "--no-first-run",
                                   "--disable-background-networking",
                                   "--disable-component-update",
                                   "--disable-sync",
                                   "--user-data-dir=" + name,
                                   "--window-size=" + std::to_string(width) + "," + std::to_string(height),
                                   "about:blank"};
  if (::geteuid() == 0) command.insert(command.begin() + 1, "--no-sandbox");  // Chromium has none for root
  process_ = std::make_unique<ChildProcess>(command, ChildProcess::Descriptors{{3, down[0]}, {4, up[1]}});
  ::close(down[0]);
  ::close(up[1]);
  const Json target = call("Target.createTarget", {{"url", "about:blank"}});
  session_ = call("Target.attachToTarget", {{"targetId", target.at("targetId")}, {"flatten", true}})
                 .at("sessionId")
                 .get<std::string>();
  for (const char* const domain : {"Page.enable", "Runtime.enable", "Log.enable", "Network.enable"}) call(domain);
  call("Emulation.setDeviceMetricsOverride",
       {{"width", width}, {"height", height}, {"deviceScaleFactor", 1}, {"mobile", false}});
}

void Browser::end() {
  process_.reset();
  if (to_ >= 0) ::close(to_);
  if (from_ >= 0) ::close(from_);
  // Its helpers are killed too, or end as they find it gone, but each in its own time: until then one may put a file
  // where all are being removed. A busy machine takes seconds.
  std::error_code ignored;
  for (int attempt = 0; attempt < 500 && !folder_.empty(); ++attempt) {
    fs::remove_all(folder_, ignored);
    ::usleep(20'000);
    if (!fs::exists(folder_, ignored)) break;
  }
}

void Browser::open(const std::string& address) {
  loaded_ = false;
  call("Page.navigate", {{"url", address}});
  while (!loaded_) note(receive());
}

Json Browser::evaluate(const std::string& expression) {
  const Json answer =
      call("Runtime.evaluate", {{"expression", expression}, {"awaitPromise", true}, {"returnByValue", true}});
  if (answer.contains("exceptionDetails")) usage_error("the page says: " + answer["exceptionDetails"].dump());
  return answer.at("result").value("value", Json());
}

Json Browser::call(const std::string& method, const Json& parameters) {
  Json message{{"id", ++last_}, {"method", method}, {"params", parameters}};
  if (!session_.empty()) message["sessionId"] = session_;
  send(message);
  while (true) {
    const Json answer = receive();
    if (answer.value("id", 0) != last_) {
      note(answer);
      continue;
    }
    if (answer.contains("error")) usage_error("Chromium says of " + method + ": " + answer["error"].dump());
    return answer.at("result");
  }
}

void Browser::send(const Json& message) {
  const std::string text = text_of(message) + '\0';
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t n = ::write(to_, text.data() + sent, text.size() - sent);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) usage_error(std::string("Chromium has ended: ") + std::strerror(errno));
    sent += static_cast<std::size_t>(n);
  }
}

Json Browser::receive() {
  std::size_t looked = 0;
  while (true) {
    const std::size_t end = unread_.find('\0', looked);
    if (end != std::string::npos) {
      Json message = Json::parse(unread_.substr(0, end));
      unread_.erase(0, end + 1);
      return message;
    }
    looked = unread_.size();
    pollfd ready{from_, POLLIN, 0};
    const int count = ::poll(&ready, 1, kPatienceMs);
    if (count < 0 && errno == EINTR) continue;
    if (count == 0) usage_error("Chromium does not answer");
    char bytes[1 << 16];
    const ssize_t n = ::read(from_, bytes, sizeof bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) usage_error("Chromium has ended, or does not start here");
    unread_.append(bytes, static_cast<std::size_t>(n));
  }
}

void Browser::note(const Json& event) {
  const std::string method = event.value("method", "");
  const Json parameters = event.value("params", Json::object());
  if (method == "Page.loadEventFired") loaded_ = true;
  if (method == "Network.requestWillBeSent") requests_.push_back(parameters.at("request").at("url").get<std::string>());
  if (method == "Runtime.exceptionThrown") errors_.push_back(parameters.dump());
  if (method == "Runtime.consoleAPICalled" && parameters.at("type") == "error") errors_.push_back(parameters.dump());
  if (method == "Log.entryAdded" && parameters.at("entry").at("level") == "error") errors_.push_back(parameters.dump());
}

}  // namespace backdrive::app
