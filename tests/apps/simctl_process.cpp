#include "tests/apps/simctl_process.h"
#include "tests/support/places.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

namespace backdrive::test {

namespace fs = std::filesystem;

const char* const kPendulum = R"(
simulation: {time_step: 10 ms, duration: 1 s}
model:
  bodies:
    rod: {mass: 1, com: [0, 0, 0.5], inertia: [0.0833, 0.0833, 0.0004]}
  joints:
    hinge: {type: revolute, child: rod, axis: [0, 1, 0], damping: 0.02}
initial_state: {hinge: {position: 90 deg}}
optimize:
  variables: [{control: hinge, knots: 20, bounds: [-20, 20], initial: {random: 1}}]
  loss:
    terminal: [{joint: hinge, position: 0, velocity: 0, weight: 10}]
    running: [{control: hinge, weight: 1e-4}]
  iterations: 60
  starts: 3
  goal: 0.5
)";

nlohmann::json Outcome::json() const {
  try {
    nlohmann::json value = nlohmann::json::parse(out);
    EXPECT_TRUE(value.is_object()) << out;
    return value;
  } catch (const std::exception& e) {
    ADD_FAILURE() << "stdout is not one JSON object: " << e.what() << "\n" << out << "\nstderr:\n" << err;
    return nullptr;
  }
}

std::string SimctlTest::read(const fs::path& path) const {
  std::ifstream stream(path.is_absolute() ? path : folder_ / path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::string SimctlTest::write(const std::string& name, const std::string& text) const {
  return folder_.write(name, text).string();
}

std::vector<std::string> SimctlTest::entries(const std::string& folder) const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path(folder))) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

[[noreturn]] void become_simctl(const fs::path& folder, const fs::path& out, const fs::path& err,
                                const std::vector<std::string>& arguments, const CallSettings& settings) {
  const int out_fd = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  const int err_fd = open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (out_fd < 0 || err_fd < 0 || dup2(out_fd, 1) < 0 || dup2(err_fd, 2) < 0 || chdir(folder.c_str()) != 0) _exit(126);
  for (const std::string& one : settings.environment) {
    const size_t equals = one.find('=');
    setenv(one.substr(0, equals).c_str(), one.substr(equals + 1).c_str(), 1);
  }
  std::vector<char*> argv = {const_cast<char*>("simctl")};
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  // What was opened for them would be handed on, too.
  close(out_fd);
  close(err_fd);
  for (const int descriptor : settings.closed) close(descriptor);
  if (settings.address_space_mib > 0) {
    const auto bytes = static_cast<rlim_t>(settings.address_space_mib) << 20;
    const rlimit limit{bytes, bytes};
    setrlimit(RLIMIT_AS, &limit);
  }
  // Whoever runs the tests may ignore them: nohup, a shell in the background.
  for (const int one : {SIGHUP, SIGINT, SIGQUIT, SIGPIPE, SIGTERM}) signal(one, SIG_DFL);
  for (const int one : settings.ignored) signal(one, SIG_IGN);
  execv(test::kSimctl.c_str(), argv.data());
  _exit(127);
}

}  // namespace

Outcome SimctlTest::simctl(const std::vector<std::string>& arguments, const Settings& settings) const {
  // Beside the folder, so that entries() shows what simctl left and nothing else.
  const fs::path out =
      settings.stdout_to.empty() ? fs::path(folder_.path().string() + ".out") : fs::path(settings.stdout_to);
  const fs::path err = folder_.path().string() + ".err";
  const pid_t child = fork();
  if (child == 0) become_simctl(folder_, out, err, arguments, settings);
  int status = 0;
  rusage usage{};
  if (settings.interrupt_at.empty()) {
    wait4(child, &status, 0, &usage);
  } else {
    bool sent = false;
    while (wait4(child, &status, WNOHANG, &usage) == 0) {
      if (!sent && read(err).find(settings.interrupt_at) != std::string::npos) {
        // A moment later, so that it is in the middle of its work.
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        if (settings.signals.empty()) kill(child, SIGINT);
        for (const int number : settings.signals) kill(child, number);
        sent = true;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(sent) << "ended before it could be interrupted: " << read(err);
  }
  Outcome outcome;
  outcome.peak_kib = usage.ru_maxrss;
  outcome.exit = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  if (settings.stdout_to.empty()) outcome.out = read(out);
  outcome.err = read(err);
  std::error_code ignored;
  if (settings.stdout_to.empty()) fs::remove(out, ignored);
  fs::remove(err, ignored);
  return outcome;
}

Rows parse_csv(const std::string& text) {
  Rows rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> fields(1);
    for (const char c : line) {
      if (c == ',') {
        fields.emplace_back();
      } else {
        fields.back() += c;
      }
    }
    rows.push_back(fields);
  }
  return rows;
}

double number(const std::string& text) {
  size_t used = 0;
  const double value = std::stod(text, &used);
  EXPECT_EQ(used, text.size()) << text;
  return value;
}

}  // namespace backdrive::test
