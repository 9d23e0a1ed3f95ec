#include "apps/atomic_output.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <string_view>

#include "engine/error.h"

namespace backdrive::app {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& what, const fs::path& path, int code = errno) {
  usage_error("cannot " + what + " '" + path.string() + "': " + std::strerror(code));
}

/// Makes the folder above `path`, and says which had to be made.
std::vector<fs::path> make_parents(const fs::path& path) {
  std::vector<fs::path> missing;
  for (fs::path p = path.parent_path(); !p.empty() && !fs::exists(p); p = p.parent_path()) {
    missing.insert(missing.begin(), p);
  }
  for (const fs::path& p : missing) {
    if (::mkdir(p.c_str(), 0777) != 0 && errno != EEXIST) fail("create folder", p);
  }
  return missing;
}

fs::path parent_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

void sync_path(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) fail("open", path);
  const int result = ::fsync(descriptor), code = errno;
  ::close(descriptor);
  // Some file systems cannot sync folders and say EINVAL.
  if (result != 0 && code != EINVAL) fail("sync", path, code);
}

/// What a process makes without mkstemp's and mkdtemp's caution.
mode_t usual_mode(mode_t all) {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return all & ~mask;
}

bool rename_exclusively(const fs::path& from, const fs::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return true;
  if (errno == EEXIST) return false;
  if (errno != EINVAL && errno != ENOSYS) fail("rename to", to);
  // File systems without the flag: a short race is left.
  if (fs::exists(fs::symlink_status(to))) return false;
  if (::rename(from.c_str(), to.c_str()) != 0) fail("rename to", to);
  return true;
}

constexpr std::string_view kTemporary = ".simctl-";
constexpr std::string_view kRandom = "XXXXXX";  // for mkdtemp and mkstemp

/// Locks what lies there for as long as the descriptor is open, at most until this process ends. -1: nothing there, it
/// is held by somebody, or the file system knows no locks.
int try_lock(const fs::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor >= 0 && ::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return descriptor;
  const int code = errno;
  if (descriptor >= 0) ::close(descriptor);
  errno = code;
  return -1;
}

/// Removes what killed processes have left in the making: nobody holds its lock any more.
void clear_leftovers(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const bool ours =
        name.starts_with(kTemporary) && name.size() == kTemporary.size() + kRandom.size() &&
        std::all_of(name.begin() + kTemporary.size(), name.end(), [](unsigned char c) { return std::isalnum(c); });
    const int lock = ours ? try_lock(entry.path()) : -1;
    if (lock < 0) continue;
    fs::remove_all(entry.path(), ignored);
    ::close(lock);
  }
}

/// Makes, and locks, what becomes `final`, beside it. `make` is mkdtemp or mkstemp: false when it failed.
template <class Make>
fs::path make_temporary(const fs::path& final, int& lock, Make make) {
  clear_leftovers(parent_of(final));
  while (true) {
    std::string name = (parent_of(final) / kTemporary).string() + std::string(kRandom);
    if (!make(name.data())) return {};
    lock = try_lock(name);
    // Between the two calls somebody may have taken it for a leftover.
    const bool taken = lock < 0 && (errno == ENOENT || errno == EWOULDBLOCK);
    if (!taken && fs::exists(name)) return name;
    if (lock >= 0) ::close(lock);
  }
}

/// Whether a folder holds only what simctl writes, so that --force takes nothing else away.
void check_replaceable(const fs::path& folder) {
  if (!fs::is_directory(fs::symlink_status(folder))) {
    usage_error("--output '" + folder.string() + "' exists and is not a folder; expected a new name");
  }
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const bool known = std::find(kResultFiles.begin(), kResultFiles.end(), name) != kResultFiles.end();
    if (!known || !fs::is_regular_file(entry.symlink_status())) {
      usage_error("--output '" + folder.string() + "' holds '" + name +
                  "', which simctl did not write; --force replaces result folders only");
    }
  }
}

void close_and_sync(std::ofstream& stream, const fs::path& path) {
  stream.close();
  if (!stream) fail("write", path, errno ? errno : EIO);
  sync_path(path);
}

void remove_created(const std::vector<fs::path>& created) {
  for (auto p = created.rbegin(); p != created.rend(); ++p) ::rmdir(p->c_str());
}

}  // namespace

OutputFolder::OutputFolder(const fs::path& path, const std::string& stem, bool force)
    : final_(path), stem_(path.empty() ? file_name(stem) : ""), force_(force) {
  if (path.empty()) {
    final_ = fs::path("results") / stem_;
  } else {
    // "folder/" names the same as "folder".
    if (!final_.has_filename()) final_ = final_.parent_path();
    if (fs::exists(fs::symlink_status(final_))) {
      if (!force) {
        usage_error("--output '" + path.string() + "' exists; expected a new name, or --force to replace it");
      }
      check_replaceable(final_);
    }
  }
  created_ = make_parents(final_);
  temporary_ = make_temporary(final_, lock_, [](char* name) { return ::mkdtemp(name) != nullptr; });
  if (temporary_.empty()) {
    const int code = errno;
    remove_created(created_);
    fail("create a folder in", parent_of(final_), code);
  }
}

OutputFolder::~OutputFolder() {
  if (lock_ >= 0) ::close(lock_);
  if (temporary_.empty()) return;
  files_.clear();
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
  remove_created(created_);
}

std::ostream& OutputFolder::file(const std::string& name) {
  if (std::find(kResultFiles.begin(), kResultFiles.end(), name) == kResultFiles.end()) {
    usage_error("output file '" + name + "' is not in kResultFiles");
  }
  auto stream = std::make_unique<std::ofstream>(temporary_ / name, std::ios::binary);
  if (!*stream) fail("create", temporary_ / name);
  return *(files_[name] = std::move(stream));
}

std::ifstream OutputFolder::take_back(const std::string& name) {
  const fs::path path = temporary_ / name;
  std::ofstream& written = *files_.at(name);
  written.close();
  std::ifstream stream(path, std::ios::binary);
  if (!written || !stream) fail("write", path, errno ? errno : EIO);
  ::unlink(path.c_str());
  files_.erase(name);
  return stream;
}

void OutputFolder::place_in_results() {
  for (int n = 1;; ++n) {
    final_ = fs::path("results") / (stem_ + "-" + std::to_string(n));
    if (!fs::exists(fs::symlink_status(final_)) && rename_exclusively(temporary_, final_)) return;
  }
}

fs::path OutputFolder::commit() {
  for (auto& [name, stream] : files_) close_and_sync(*stream, temporary_ / name);
  ::chmod(temporary_.c_str(), usual_mode(0777));
  sync_path(temporary_);
  if (!stem_.empty()) {
    place_in_results();
  } else if (!rename_exclusively(temporary_, final_)) {
    if (!force_) usage_error("--output '" + final_.string() + "' came into being meanwhile");
    check_replaceable(final_);
    if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, final_.c_str(), RENAME_EXCHANGE) != 0) {
      fail("replace", final_);
    }
    fs::remove_all(temporary_);  // now the old result
  }
  temporary_.clear();
  sync_path(parent_of(final_));
  return final_;
}

OutputFile::OutputFile(const fs::path& path, bool force) : final_(path), force_(force) {
  if (fs::is_directory(final_)) {
    usage_error("--output '" + path.string() + "' is a folder; expected the name of a file");
  }
  const fs::file_status status = fs::symlink_status(final_);
  const bool exists = fs::exists(status);
  if (exists && !fs::is_regular_file(status)) {
    usage_error("--output '" + path.string() + "' exists and is no regular file; expected a new name");
  }
  if (!force && exists) {
    usage_error("--output '" + path.string() + "' exists; expected a new name, or --force to replace it");
  }
  created_ = make_parents(final_);
  temporary_ = make_temporary(final_, lock_, [](char* name) {
    const int descriptor = ::mkstemp(name);
    if (descriptor < 0) return false;
    ::fchmod(descriptor, usual_mode(0666));
    ::close(descriptor);
    return true;
  });
  if (temporary_.empty()) {
    const int code = errno;
    remove_created(created_);
    fail("create a file in", parent_of(final_), code);
  }
  stream_.open(temporary_, std::ios::binary);
}

OutputFile::~OutputFile() {
  if (lock_ >= 0) ::close(lock_);
  if (temporary_.empty()) return;
  stream_.close();
  ::unlink(temporary_.c_str());
  remove_created(created_);
}

void OutputFile::commit() {
  close_and_sync(stream_, temporary_);
  if (force_) {
    if (::rename(temporary_.c_str(), final_.c_str()) != 0) fail("rename to", final_);
  } else if (!rename_exclusively(temporary_, final_)) {
    usage_error("--output '" + final_.string() + "' came into being meanwhile");
  }
  temporary_.clear();
  sync_path(parent_of(final_));
}

std::string file_name(const std::string& text) {
  std::string name = text;
  for (char& c : name) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
    if (!plain) c = '_';
  }
  if (name.empty() || name[0] == '.') name = "_" + name;
  return name.substr(0, 100);
}

void finish_stdout() {
  errno = 0;
  std::cout.flush();
  if (!std::cout || std::fflush(stdout) != 0) {
    if (errno == EPIPE) return;  // whoever read it wants no more
    usage_error(std::string("cannot write to stdout: ") + std::strerror(errno ? errno : EIO));
  }
}

}  // namespace backdrive::app
