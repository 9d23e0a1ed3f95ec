// simctl view and optimize --view: who is let in, what the page is told, and that a browser shows it.
#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <future>
#include <random>
#include <thread>

#include "apps/browser.h"
#include "apps/view_request.h"
#include "engine/error.h"
#include "tests/apps/simctl_process.h"

namespace backdrive {
namespace {

using nlohmann::json;

struct HttpReply {
  int status = 0;
  std::string head, body;
};

/// A simctl that serves, until it is told to end.
class RunningView {
 public:
  RunningView(const std::filesystem::path& folder, const std::vector<std::string>& arguments) {
    static int servers = 0;
    output_ = folder / ("view" + std::to_string(servers++) + ".out");
    child_ = fork();
    if (child_ == 0) {
      const int out = ::open(output_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
      dup2(out, 1);
      dup2(out, 2);
      if (chdir(folder.c_str()) != 0) _exit(126);
      std::vector<char*> argv = {const_cast<char*>("simctl")};
      for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
      argv.push_back(nullptr);
      execv(test::kSimctl.c_str(), argv.data());
      _exit(127);
    }
    for (int k = 0; k < 3000 && address_.empty() && is_running(); ++k) {
      const std::string said = output();
      const std::size_t at = said.find("http://127.0.0.1:");
      const std::size_t end = at == std::string::npos ? at : said.find_first_of(" \n\"", at);
      if (end != std::string::npos) address_ = said.substr(at, end - at);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    EXPECT_FALSE(address_.empty()) << output();
  }
  ~RunningView() {
    if (child_ > 0) end(SIGKILL);
  }
  RunningView(const RunningView&) = delete;
  RunningView& operator=(const RunningView&) = delete;

  std::string output() const {
    std::ifstream stream(output_);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  bool is_running() {
    if (child_ > 0 && waitpid(child_, &status_, WNOHANG) == child_) child_ = 0;
    return child_ > 0;
  }
  /// Exit code, or 128 + signal; −1 when it did not end within the time.
  int end(int signal, double seconds = 20) {
    kill(child_, signal);
    return wait(seconds);
  }
  int wait(double seconds) {
    const auto last = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (is_running() && std::chrono::steady_clock::now() < last) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    if (child_ > 0) return -1;
    return WIFSIGNALED(status_) ? 128 + WTERMSIG(status_) : WEXITSTATUS(status_);
  }

  const std::string& address() const { return address_; }
  std::string host() const { return address_.substr(7, address_.find('/', 7) - 7); }
  std::string token() const {
    const std::string path = address_.substr(address_.find('/', 7) + 1);
    return path.substr(0, path.size() - 1);
  }

  /// Bytes to the server, and all that it says until it closes.
  HttpReply send(const std::string& bytes) const {
    const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in name{};
    name.sin_family = AF_INET;
    name.sin_port = htons(static_cast<std::uint16_t>(std::stoi(host().substr(host().find(':') + 1))));
    inet_pton(AF_INET, "127.0.0.1", &name.sin_addr);
    std::string all;
    if (connect(connection, reinterpret_cast<sockaddr*>(&name), sizeof name) == 0) {
      for (std::size_t sent = 0; sent < bytes.size();) {
        const ssize_t n = ::send(connection, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
        if (n <= 0) break;
        sent += static_cast<std::size_t>(n);
      }
      char part[65536];
      for (ssize_t n; (n = recv(connection, part, sizeof part, 0)) > 0;) all.append(part, static_cast<std::size_t>(n));
    }
    close(connection);
    HttpReply reply;
    if (all.size() > 12 && all.starts_with("HTTP/1.")) reply.status = std::stoi(all.substr(9, 3));
    const std::size_t end = all.find("\r\n\r\n");
    reply.head = all.substr(0, end);
    if (end != std::string::npos) reply.body = all.substr(end + 4);
    return reply;
  }
  HttpReply get(const std::string& path, const std::string& more = "") const {
    return send("GET " + path + " HTTP/1.1\r\nHost: " + host() + "\r\nConnection: close\r\n" + more + "\r\n");
  }
  HttpReply post(const std::string& body, const std::string& type = "application/json") const {
    return send("POST /" + token() + "/ask HTTP/1.1\r\nHost: " + host() + "\r\nConnection: close\r\nContent-Type: " +
                type + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  json ask(const std::string& wanted, const json& values) const {
    const HttpReply reply = post(json{{"wanted", wanted}, {"values", values}}.dump());
    EXPECT_EQ(reply.status, 200) << reply.body;
    return json::parse(reply.body, nullptr, false);
  }

 private:
  std::filesystem::path output_;  ///< of its own, for two may run in a folder
  pid_t child_ = 0;
  int status_ = 0;
  std::string address_;
};

/// A pendulum of 500 s in steps of 50 µs: it takes a minute or so.
const char* const kEndless = R"(
simulation: {time_step: 50 us, duration: 500 s}
model:
  bodies: {rod: {mass: 1, com: [0, 0, 0.5], inertia: [0.0833, 0.0833, 0.0004]}}
  joints: {hinge: {type: revolute, child: rod, axis: [0, 1, 0]}}
)";

class SimctlViewTest : public test::SimctlTest {};

TEST_F(SimctlViewTest, LetsInWhoKnowsItsAddress) {
  RunningView view(path(""), {"view", write("p.yaml", test::kPendulum)});
  const std::string own = "/" + view.token() + "/";
  ASSERT_EQ(view.token().size(), 32u);
  const HttpReply page = view.get(own);
  EXPECT_EQ(page.status, 200);
  EXPECT_NE(page.body.find("view.js"), std::string::npos);
  EXPECT_NE(page.head.find("Content-Security-Policy: default-src 'none'"), std::string::npos) << page.head;
  EXPECT_NE(page.head.find("Referrer-Policy: no-referrer"), std::string::npos) << page.head;
  EXPECT_EQ(view.get(own + "scene").status, 200);
  EXPECT_EQ(view.get(own + "scene", "Origin: http://" + view.host() + "\r\n").status, 200);
  // Nobody else.
  for (const std::string& path :
       {std::string("/"), std::string("/scene"), std::string("/") + std::string(32, '0') + "/",
        own.substr(0, own.size() - 1), "/" + view.token().substr(1) + "/scene", "/x/" + view.token() + "/"}) {
    EXPECT_EQ(view.get(path).status, 403) << path;
  }
  EXPECT_EQ(view.get(own + "scene", "Origin: http://evil.example\r\n").status, 403);
  EXPECT_EQ(view.get(own + "scene", "Host: " + view.host() + "\r\n").status, 403);  // twice
  for (const std::string host : {"evil.example", "evil.example:80", "127.0.0.1", "localhost:1", ""}) {
    EXPECT_EQ(view.send("GET " + own + "scene HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n").status, 403)
        << host;
  }
  EXPECT_EQ(view.send("GET " + own + "scene HTTP/1.0\r\n\r\n").status, 403);
  EXPECT_EQ(view.end(SIGTERM), 0) << view.output();
}

TEST_F(SimctlViewTest, NamesNoFilesAndTakesNoMoreThanItSays) {
  write("secret.txt", "secret");
  RunningView view(path(""), {"view", write("p.yaml", test::kPendulum)});
  const std::string own = "/" + view.token() + "/";
  for (const std::string name : {"../secret.txt", "..%2fsecret.txt", "%2e%2e/secret.txt", "secret.txt", "/etc/passwd",
                                 "../../../../../../etc/passwd", "page.css/..", "page.css%00", "ask/x"}) {
    const HttpReply reply = view.get(own + name);
    EXPECT_EQ(reply.status, 404) << name;
    EXPECT_EQ(reply.body.find("secret"), std::string::npos);
  }
  EXPECT_EQ(view.get(own + "ask").status, 405);
  const auto refused = [](int status) { return status >= 400 && status < 600; };
  EXPECT_TRUE(refused(view.send("PUT " + own + "page.css HTTP/1.1\r\nHost: " + view.host() +
                                "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                          .status));
  EXPECT_EQ(view.post("{}", "text/plain").status, 415);
  EXPECT_EQ(view.post(std::string(70'000, ' ')).status, 413);
  EXPECT_TRUE(refused(view.get(own + "scene", "X: " + std::string(40'000, 'x') + "\r\n").status));
  for (const std::string body : {"", "{", "[1]", "nonsense", R"({"values": {"a": "b"}})", R"({"values": {"a": 1e999}})",
                                 R"({"values": {"a": NaN}})", R"({"wanted": "everything"})", R"({"x": 1})", "{}{}"}) {
    const HttpReply reply = view.post(body);
    EXPECT_EQ(reply.status, 400) << body;
    EXPECT_TRUE(json::parse(reply.body).contains("error")) << reply.body;
  }
  view.send("nonsense\r\n\r\n");
  view.send(std::string(1000, '\0') + "\r\n\r\n");
  EXPECT_EQ(view.get(own).status, 200);
  EXPECT_EQ(view.end(SIGINT), 0);
}

TEST_F(SimctlViewTest, ErrorsAreToldWithPathAndReasonAndItGoesOn) {
  RunningView view(path(""), {"view", write("p.yaml", test::kPendulum)});
  const std::pair<json, std::vector<std::string>> cases[] = {
      {{{"bodies/rod/mass", -1}}, {"bodies/rod/mass", "-1", "at least 0"}},
      {{{"bodies/rod/mas", 1}}, {"bodies/rod/mas", "did you mean 'mass'"}},
      {{{"bodies/rod/com", 1}}, {"bodies/rod/com", "one number"}},
      {{{"initial_state/hing/position", 1}}, {"initial_state/hing/position"}},
      {{{"bodies/rod/inertia/xx", -5}}, {"bodies/rod"}},
      {{{"initial_state/hinge/velocity", 1e308}}, {"non-finite", "hinge"}}};
  for (const auto& [values, words] : cases) {
    const json answer = view.ask("motion", values);
    ASSERT_TRUE(answer.contains("error")) << values;
    for (const std::string& word : words) {
      EXPECT_NE(answer["error"].get<std::string>().find(word), std::string::npos) << answer["error"] << ' ' << word;
    }
  }
  EXPECT_FALSE(view.ask("motion", json::object()).contains("error"));
  EXPECT_EQ(view.end(SIGHUP), 0);
}

TEST_F(SimctlViewTest, LossAndGradientAreThoseOfRunAndGradient) {
  const std::string file = write(
      "p.yaml", std::string(test::kPendulum) + "requires_grad: [joints/hinge/damping, bodies/rod/com/z, gravity/z]\n");
  RunningView view(path(""), {"view", file, "--json"});
  const json values{{"joints/hinge/damping", 0.07},
                    {"bodies/rod/com/z", 0.4},
                    {"gravity/z", -9},
                    {"initial_state/hinge/position", 1.25}};
  std::vector<std::string> set;
  for (const auto& [name, value] : values.items()) {
    set.insert(set.end(), {"--set", name + "=" + value.dump() + (name[0] == 'i' ? " rad" : "")});
  }
  std::vector<std::string> run{"run", file, "--json", "--quiet", "--output", "out"},
      gradient{"gradient", file, "--json"};
  run.insert(run.end(), set.begin(), set.end());
  gradient.insert(gradient.end(), set.begin(), set.end());
  const json ran = simctl(run).json(), slopes = simctl(gradient).json();
  const json motion = view.ask("motion", values), arrows = view.ask("gradient", values);
  EXPECT_EQ(motion["loss"], ran["loss"]);  // the same bits
  EXPECT_EQ(motion["terms"].size(), ran["loss_terms"].size());
  int found = 0;
  for (const json& row : slopes["rows"]) {
    if (!arrows["gradient"].contains(row["name"].get<std::string>())) continue;
    ++found;
    EXPECT_EQ(arrows["gradient"][row["name"].get<std::string>()], row["gradient"]) << row["name"];
    EXPECT_NE(row["gradient"], 0);
  }
  EXPECT_EQ(found, 3);
  // That by the initial position, by differences over ±1e-5: h² and rounding leave 1e-7 of it or so.
  const auto loss_at = [&](double x) {
    json moved = values;
    moved["initial_state/hinge/position"] = x;
    return view.ask("motion", moved)["loss"].get<double>();
  };
  const double slope = (loss_at(1.25 + 1e-5) - loss_at(1.25 - 1e-5)) / 2e-5;
  EXPECT_NEAR(arrows["gradient"]["initial_state/hinge/position"], slope, 1e-6 * std::max(1.0, std::abs(slope)));
}

TEST_F(SimctlViewTest, TheNewestOfManyRequestsWins) {
  RunningView view(path(""), {"view", write("p.yaml", test::kPendulum)});
  std::vector<std::future<json>> answers;
  for (int k = 0; k < 100; ++k) {
    answers.push_back(std::async(std::launch::async, [&view, k] {
      return view.ask("motion", {{"initial_state/hinge/position", 0.01 * k}});
    }));
  }
  int done = 0;
  for (auto& one : answers) {
    const json answer = one.get();
    EXPECT_TRUE(answer.contains("superseded") || answer.contains("motion")) << answer;
    done += answer.contains("motion");
  }
  EXPECT_GE(done, 1);
  const json last = view.ask("motion", {{"initial_state/hinge/position", 0.99}});
  EXPECT_TRUE(last.contains("motion"));
  EXPECT_EQ(view.end(SIGTERM), 0);
}

TEST_F(SimctlViewTest, ANewRequestAndASignalStopALongSimulation) {
  RunningView view(path(""), {"view", write("long.yaml", kEndless)});
  std::future<json> first = std::async(std::launch::async, [&] { return view.ask("motion", json::object()); });
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  std::future<json> second = std::async(std::launch::async, [&] {
    return view.ask("motion", {{"bodies/rod/mass", -1}});
  });
  EXPECT_TRUE(second.get().contains("error"));
  EXPECT_TRUE(first.get().contains("superseded"));
  std::thread([&view] { view.post("{}"); }).detach();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(view.end(SIGINT, 10), 0);
}

TEST_F(SimctlViewTest, WhatCannotBeServedIsRefused) {
  RunningView view(path(""), {"view", write("p.yaml", test::kPendulum)});
  const std::string port = view.host().substr(view.host().find(':') + 1);
  const test::Outcome taken = simctl({"view", "p.yaml", "--port", port});
  EXPECT_EQ(taken.exit, 2);
  EXPECT_NE(taken.err.find("127.0.0.1:" + port), std::string::npos) << taken.err;
  EXPECT_EQ(simctl({"view", "none.yaml"}).exit, 3);
  EXPECT_EQ(simctl({"view", "."}).exit, 3);
  EXPECT_EQ(simctl({"view", "p.yaml", "--port", "70000"}).exit, 2);
  EXPECT_EQ(simctl({"optimize", "p.yaml", "--port", "8080"}).exit, 2);  // without --view
}

TEST_F(SimctlViewTest, SlidersMoveTheMotionInABrowser) {
  if (!has_chromium()) GTEST_SKIP() << "no chromium here";
  RunningView view(path(""), {"view", scene("cartpole_swingup")});
  app::Browser browser(1280, 900);
  browser.open(view.address());
  const auto wait_for = [&](const std::string& condition) {
    return browser.evaluate("new Promise(done => { const look = n => (" + condition +
                            ") ? done(true) : n ? setTimeout(look, 50, n - 1) : done(false); look(600); })") == true;
  };
  ASSERT_TRUE(wait_for("window.backdriveView && backdriveView.gradient")) << browser.errors().size();
  const auto poles = [&] {
    return browser.evaluate(
        "(() => { const v = backdriveView; v.time.play(false); v.time.show(0); v.stage.draw(); "
        "return v.stage.links.map(l => l.quaternion.toArray()); })()");
  };
  const json before = poles();
  const auto motions = browser.evaluate("backdriveView.motions").get<int>();
  const std::string loss = browser.evaluate("document.getElementById('loss').textContent");
  // As a hand would: the slider of the hinge to its end.
  browser.evaluate(
      "(() => { const input = "
      "backdriveView.shown.get('initial_state/hinge/position').box.querySelector('input[type=range]');"
      "input.value = 900; input.dispatchEvent(new Event('input')); })()");
  ASSERT_TRUE(wait_for("backdriveView.motions > " + std::to_string(motions)));
  EXPECT_NE(poles(), before);
  EXPECT_NE(browser.evaluate("document.getElementById('loss').textContent"), loss);
  // A parameter that is searched for gets a slider and, after a moment, an arrow.
  browser.evaluate(
      "(() => { const s = document.getElementById('search'); s.value = 'hinge damping'; s.oninput(); "
      "document.querySelector('#found button').click(); backdriveView.gradient = null; })()");
  ASSERT_TRUE(wait_for("backdriveView.gradient && 'joints/hinge/damping' in backdriveView.gradient"));
  EXPECT_GT(browser.evaluate("document.querySelectorAll('.slider svg line').length"), 0);
  // What cannot be shows as text.
  browser.evaluate(
      "(() => { const e = backdriveView.shown.get('joints/hinge/damping').box.querySelector('.value'); "
      "e.value = -3; e.onchange(); })()");
  ASSERT_TRUE(wait_for("!document.getElementById('error').hidden"));
  const std::string error = browser.evaluate("document.getElementById('error').textContent");
  EXPECT_NE(error.find("joints/hinge/damping"), std::string::npos) << error;
  EXPECT_TRUE(browser.errors().empty()) << browser.errors()[0];
  for (const std::string& request : browser.requests()) {
    EXPECT_TRUE(request.starts_with(view.address()) || request.starts_with("data:") || request == "about:blank")
        << request;
  }
}

TEST_F(SimctlViewTest, ShowsResultFoldersAndRobots) {
  ASSERT_EQ(simctl({"run", scene("toss"), "--output", "out", "--quiet"}).exit, 0);
  RunningView view(path(""), {"view", "out"});
  const HttpReply result = view.get("/" + view.token() + "/result");
  EXPECT_EQ(result.status, 200);
  EXPECT_TRUE(json::parse(result.body).contains("motion"));
  RunningView robot(path(""), {"view", test::kRepository + "/scenes/quadruped.urdf"});
  EXPECT_EQ(robot.get("/" + robot.token() + "/result").status, 204);
  const json about = json::parse(robot.get("/" + robot.token() + "/scene").body);
  EXPECT_GT(about["sliders"].size(), 50u);
  for (const json& slider : about["sliders"]) {  // every one can be moved to where it is
    if (slider["value"].is_null()) continue;
    const json answer = robot.ask("gradient", {{slider["path"].get<std::string>(), slider["value"]}});
    EXPECT_FALSE(answer.contains("error")) << slider << answer;
  }
}

TEST_F(SimctlViewTest, OptimisingIsTheSameWhereSomebodyLooks) {
  const std::string file = write("p.yaml", test::kPendulum);
  // Steps so short that somebody can look before it is done.
  const std::vector<std::string> more{"--quiet", "--set", "optimize/goal=1e-9", "--set", "simulation/time_step=0.2 ms"};
  std::vector<std::string> alone{"optimize", file, "--output", "alone"};
  std::vector<std::string> seen{"optimize", file, "--output", "seen", "--view"};
  alone.insert(alone.end(), more.begin(), more.end());
  seen.insert(seen.end(), more.begin(), more.end());
  ASSERT_EQ(simctl(alone).exit, 1);
  RunningView view(path(""), seen);
  std::uint64_t motion = 0;
  int motions = 0;
  bool done = false;
  while (!done) {
    const HttpReply reply = view.get("/" + view.token() + "/progress?" + std::to_string(motion));
    if (reply.status != 200) break;
    const json answer = json::parse(reply.body);
    if (answer.contains("motion")) ++motions, motion = answer["number"];
    done = answer.contains("done");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(done);
  EXPECT_GT(motions, 0);
  EXPECT_EQ(view.wait(30), 1) << view.output();
  for (const char* const name : {"result.yaml", "trajectory.csv"}) {
    EXPECT_EQ(read(std::string("seen/") + name), read(std::string("alone/") + name)) << name;
  }
}

TEST(ViewRequests, AreReadOrRefusedWhateverTheyAre) {
  const app::ViewRequest request = app::read_view_request(
      R"({"wanted": "gradient", "shapes": "12", "values": {"a/b": 1, "c": -2.5e3, "d": 18446744073709551615}})");
  EXPECT_EQ(request.wanted, app::ViewRequest::Wanted::gradient);
  EXPECT_EQ(request.shapes, "12");
  const std::vector<std::pair<std::string, double>> values{{"a/b", 1}, {"c", -2500}, {"d", 18446744073709551615.0}};
  EXPECT_EQ(request.values, values);
  EXPECT_TRUE(app::read_view_request("{}").values.empty());
  const auto is_taken = [](const std::string& text) {
    try {
      const app::ViewRequest read = app::read_view_request(text);
      EXPECT_LE(read.values.size(), app::ViewRequest::kMostValues);
      for (const auto& [path, value] : read.values) EXPECT_TRUE(std::isfinite(value)) << path;
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::input);
      return false;
    }
  };
  std::string many = R"({"values": {)";
  for (int k = 0; k < 257; ++k) many += (k ? ",\"" : "\"") + std::to_string(k) + "\": 1";
  for (const std::string& text : std::initializer_list<std::string>{
           many + "}}", std::string(60'000, '['), std::string(60'000, '{'), R"({"values": {"a": {"b": 1}}})",
           R"({"values": {"a": [1]}})", R"({"values": {"a": 1, "a": 2}})", R"({"values": {}, "values": {}})",
           R"({"values": 3})", R"({"wanted": null})", R"({"values": {"a": true}})", std::string("{\"\xff\": 1}"),
           "{\"values\": {\"" + std::string(2000, 'x') + "\": 1}}", std::string("\0\0", 2), std::string(" ")}) {
    EXPECT_FALSE(is_taken(text)) << text.substr(0, 60);
  }
  // Every beginning of a good one, and good ones with bytes of others.
  const std::string good =
      R"({"wanted":"motion","shapes":"7","values":{"joints/hinge/damping":0.1,"gravity/z":-9.81}})";
  for (std::size_t n = 0; n < good.size(); ++n) EXPECT_FALSE(is_taken(good.substr(0, n))) << n;
  std::mt19937_64 random(1);
  for (int k = 0; k < 20'000; ++k) {
    std::string text = good;
    for (std::uint64_t n = random() % 4 + 1; n > 0; --n) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.insert(at, 1, "{}[]\",:-+.eE0"[random() % 13]);
          break;
        default:
          text.erase(at, random() % 5 + 1);
          if (text.empty()) text = "x";
      }
    }
    is_taken(text);
  }
  for (int k = 0; k < 5'000; ++k) {
    std::string noise(random() % 200, ' ');
    for (char& c : noise) c = static_cast<char>(random());
    EXPECT_FALSE(is_taken(noise));
  }
}

}  // namespace
}  // namespace backdrive
