#include "apps/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "engine/error.h"

namespace backdrive::app {
namespace {

[[noreturn]] void become(const std::vector<std::string>& command, const ChildProcess::Descriptors& descriptors,
                         pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it ended in between
  constexpr int kAbove = 64;                // where no number is in the way of another
  std::vector<int> moved;
  for (const auto& [to, from] : descriptors) moved.push_back(::fcntl(from, F_DUPFD_CLOEXEC, kAbove));
  const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int descriptor = 0; descriptor < 3; ++descriptor) ::dup2(nowhere, descriptor);
  for (std::size_t k = 0; k < moved.size(); ++k) ::dup2(moved[k], descriptors[k].first);
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

}  // namespace

std::string program_path(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string file = (folder.empty() ? "." : folder) + "/" + name;
    if (::access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

ChildProcess::ChildProcess(const std::vector<std::string>& command, const Descriptors& descriptors) {
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) usage_error("cannot start '" + command[0] + "': " + std::strerror(errno));
  if (pid_ == 0) become(command, descriptors, parent);
  ::setpgid(pid_, pid_);  // whoever is first
}

ChildProcess::~ChildProcess() {
  if (pid_ <= 0) return;
  ::kill(-pid_, SIGKILL);
  wait();
}

int ChildProcess::wait() {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  pid_ = 0;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace backdrive::app
