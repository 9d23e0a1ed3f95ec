#include "scenes/inside_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "scenes/reader.h"

namespace backdrive::scene {
namespace {

namespace fs = std::filesystem;

/// Does not wait for the other end of a pipe, and follows no link.
constexpr int kReading = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;

std::string at_most(std::size_t bytes) {
  return "a file of at most " + std::to_string(bytes >> 20) + " MiB";
}

/// Opens what lies at `path` below `folder`, none of whose parts may be a link. −1 where that fails.
int open_by_parts(const fs::path& folder, const fs::path& path) {
  int at = ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (auto part = path.begin(); at >= 0 && part != path.end(); ++part) {
    const bool last = std::next(part) == path.end();
    const int next = ::openat(at, part->c_str(), last ? kReading : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    ::close(at);
    at = next;
  }
  return at;
}

int open_inside(const fs::path& directory, const View& file) {
  const fs::path relative(file.text());
  const bool climbs = std::find(relative.begin(), relative.end(), "..") != relative.end();
  if (file.text().empty() || relative.is_absolute() || climbs || file.text().size() > 4000) {
    file.refuse("a file inside the scene's folder: a relative path without '..'");
  }
  std::error_code code;
  const fs::path folder = fs::canonical(directory.empty() ? fs::path(".") : directory, code);
  if (code) file.refuse("a scene whose folder exists (" + directory.string() + ")");
  const fs::path path = fs::canonical(folder / relative, code);
  if (code) file.refuse("an existing file in " + folder.string());
  const auto [end, rest] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  if (end != folder.end()) file.refuse("a file inside the scene's folder (the path leaves it through a link)");
  if (rest == path.end()) file.refuse("a regular file");
  return open_by_parts(folder, path.lexically_relative(folder));
}

/// What is wrong with an open file; empty: nothing.
std::string trouble_with(int descriptor, std::size_t most_bytes, struct stat& status) {
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return "a regular file";
  return static_cast<std::size_t>(status.st_size) > most_bytes ? at_most(most_bytes) : "";
}

/// All of an open file, and what is wrong with it. What a file says of its size need not be so: it is read until it
/// ends or is too large.
std::string read_all(int descriptor, std::size_t size_hint, std::size_t most_bytes, std::string& trouble) {
  std::string bytes(size_hint + 1, '\0');
  std::size_t size = 0;
  while (true) {
    const ssize_t n = ::pread(descriptor, bytes.data() + size, bytes.size() - size, static_cast<off_t>(size));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) trouble = "a file that can be read";
    if (n <= 0) break;
    size += static_cast<std::size_t>(n);
    if (size > most_bytes) {
      trouble = at_most(most_bytes);
      break;
    }
    if (size == bytes.size()) bytes.resize(2 * size);
  }
  bytes.resize(size);
  return bytes;
}

int open_canonical(const fs::path& path) {
  return open_by_parts("/", path.relative_path());
}

}  // namespace

std::string bytes_of_canonical(const fs::path& path, std::size_t most_bytes) {
  const int descriptor = open_canonical(path);
  if (descriptor < 0) input_error(path.string() + ": expected a file that can be read");
  struct stat status {};
  std::string bytes, trouble = trouble_with(descriptor, most_bytes, status);
  if (trouble.empty()) bytes = read_all(descriptor, static_cast<std::size_t>(status.st_size), most_bytes, trouble);
  ::close(descriptor);
  if (!trouble.empty()) input_error(path.string() + ": expected " + trouble);
  return bytes;
}

InsideFile::InsideFile(const fs::path& directory, const View& file, std::size_t most_bytes)
    : file_(file), name_((directory / file.text()).string()), most_bytes_(most_bytes) {
  const bool of_robot = file.node()->place.source < 0;
  descriptor_ = of_robot ? open_canonical(file.text()) : open_inside(directory, file);
  if (descriptor_ < 0) file.refuse("a file that can be read");
  if (const std::string trouble = trouble_with(descriptor_, most_bytes, status_); !trouble.empty()) {
    ::close(descriptor_);
    file.refuse(trouble);
  }
}

InsideFile::~InsideFile() {
  ::close(descriptor_);
}

std::string InsideFile::bytes() const {
  std::string trouble;
  std::string bytes = read_all(descriptor_, static_cast<std::size_t>(status_.st_size), most_bytes_, trouble);
  if (!trouble.empty()) file_.refuse(trouble);
  return bytes;
}

InsideFile::State InsideFile::state() const {
  return {status_.st_dev, status_.st_ino, status_.st_size, status_.st_mtim.tv_sec, status_.st_mtim.tv_nsec};
}

}  // namespace backdrive::scene
