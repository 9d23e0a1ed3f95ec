#pragma once
// Results appear whole or not at all: they are written beside their place, synced, and renamed into it. What is in the
// making is called .simctl-XXXXXX and locked by its process; what killed ones have left there is removed by the next.
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace backdrive::app {

/// A result folder in the making. Nothing is seen under its name before commit; dropped without it, nothing is left.
class OutputFolder {
 public:
  /// The folder that the user named; an existing one is refused, unless `force` and it holds nothing that simctl does
  /// not write. An empty path means results/<stem>-1, or the next number that is free. Throws Error (usage).
  OutputFolder(const std::filesystem::path& path, const std::string& stem, bool force);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  /// A new file of the folder, open until commit. One of the names that simctl writes (kResultFiles).
  std::ostream& file(const std::string& name);
  /// Such a file to be read from its begin; it is no longer in the folder, and may be written anew.
  std::ifstream take_back(const std::string& name);
  /// Closes, syncs and renames; the folder's final path. Throws Error (usage) when the disk refuses.
  std::filesystem::path commit();

 private:
  void place_in_results();
  std::filesystem::path final_, temporary_;
  int lock_ = -1;     ///< holds temporary_
  std::string stem_;  ///< of the numbered name; empty when the user named the folder
  bool force_;
  std::vector<std::filesystem::path> created_;  ///< parents made on the way, outermost first
  std::map<std::string, std::unique_ptr<std::ofstream>> files_;
};

/// Everything simctl ever writes into a result folder.
inline const std::vector<std::string> kResultFiles = {
    "result.yaml", "scene.yaml",   "history.csv", "starts.csv",   "trajectory.csv", "before.csv", "contacts.csv",
    "sweep.csv",   "motions.json", "log.txt",     "details.json", "looks.json",     "report.html"};

/// A single file in the making; the same rules.
class OutputFile {
 public:
  OutputFile(const std::filesystem::path& path, bool force);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  std::ostream& stream() { return stream_; }
  /// Where it is in the making, for other programs that write it.
  const std::filesystem::path& temporary() const { return temporary_; }
  void commit();

 private:
  std::filesystem::path final_, temporary_;
  int lock_ = -1;  ///< holds temporary_
  bool force_;
  std::vector<std::filesystem::path> created_;
  std::ofstream stream_;
};

/// A name that is safe as one folder name: letters, digits, '.', '_' and '-', the rest replaced.
std::string file_name(const std::string& text);

/// Flushes stdout. Throws Error (usage) when it took not everything.
void finish_stdout();

}  // namespace backdrive::app
