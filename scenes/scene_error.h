#pragma once
// What is wrong with a scene, mistake by mistake, for whoever shows it elsewhere than in a terminal.
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/error.h"

namespace backdrive {

/// One mistake of a scene, of an override or of a robot file.
struct SceneMistake {
  std::string text;          ///< the whole message: "scene.yaml:3:7: model/bodies/a: …: expected …"
  std::string file;          ///< or the override, as in the message
  int line = 0, column = 0;  ///< from 1; of an override 0
  std::string path;          ///< of the scene's document; empty: the whole
  std::string what;          ///< "value '1 m'", "unknown key 'mas'"
  std::string expected;
  std::string hint;  ///< the nearest name; empty: none

  /// What stands in quotes in `what`; empty: nothing.
  std::string value() const {
    const std::size_t first = what.find('\''), last = what.rfind('\'');
    return first < last ? what.substr(first + 1, last - first - 1) : "";
  }
};

/// An Error of kind input whose message has a line for each mistake.
class SceneError : public Error {
 public:
  explicit SceneError(std::vector<SceneMistake> mistakes)
      : Error(ErrorKind::input, lines(mistakes)), mistakes_(std::move(mistakes)) {}
  const std::vector<SceneMistake>& mistakes() const { return mistakes_; }

 private:
  static std::string lines(const std::vector<SceneMistake>& mistakes) {
    std::string all;
    for (const SceneMistake& mistake : mistakes) all += (all.empty() ? "" : "\n") + mistake.text;
    return all;
  }
  std::vector<SceneMistake> mistakes_;
};

namespace scene {

/// An error that is no SceneError, of a mesh's text for one, as a mistake: its place is what the message begins with.
SceneMistake mistake_of(const Error& error);

/// Goes on behind a mistake, so that all of a scene and of the files that it names are told at once, but for what
/// follows from another: what reads a value that is wrong leaves off without a word.
class Mistakes {
 public:
  static constexpr std::size_t kMost = 100;
  /// Attempts that may fail, with something new to tell or not: copies of one mistake are not gone through without end.
  static constexpr std::size_t kMostFailures = 5000;

  /// Whether the part went well.
  template <class Part>
  bool attempt(Part&& part) {
    const bool goes_on = !is_full();
    ++failures_;
    if (!goes_on) return false;
    try {
      part();
      --failures_;
      return true;
    } catch (const SceneError& error) {
      for (const SceneMistake& mistake : error.mistakes()) add(mistake);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::input) throw;
      add(mistake_of(error));
    }
    return false;
  }
  /// Ends an attempt because of what has been told already.
  [[noreturn]] static void leave_off() { throw SceneError({}); }

  /// Because of a mistake not all names of a kind ("joints") are known: one that is not may be right.
  void lose_names(std::string_view kind) { lost_.emplace(kind); }
  void lose_names() {
    for (const char* const kind : {"bodies", "joints", "couplings", "shapes", "robots"}) lose_names(kind);
  }
  bool names_lost(std::string_view kind) const { return lost_.contains(kind); }

  bool empty() const { return found_.empty(); }
  /// No more are looked for.
  bool is_full() const { return found_.size() >= kMost || failures_ >= kMostFailures; }
  /// How many attempts did not go well, whether there was anything to tell or not.
  std::size_t failures() const { return failures_; }
  /// In the order of their lines, those of `first_file` first, those of overrides last.
  void throw_any(const std::string& first_file = "") const;

 private:
  /// What is written once is told once, however many copies of it or aliases to it there are.
  void add(const SceneMistake& mistake) {
    for (const SceneMistake& m : found_) {
      const bool is_there = m.file == mistake.file && m.line == mistake.line && m.column == mistake.column;
      if (m.text == mistake.text ||
          (is_there && m.line > 0 && m.what == mistake.what && m.expected == mistake.expected)) {
        return;
      }
    }
    if (found_.size() < kMost) found_.push_back(mistake);
  }
  std::vector<SceneMistake> found_;
  std::size_t failures_ = 0;
  std::set<std::string, std::less<>> lost_;
};

/// Parts of one thing, all of which are read: where any is wrong, nothing comes of the thing.
class Parts {
 public:
  explicit Parts(Mistakes& mistakes) : mistakes_(mistakes) {}
  template <class Part>
  void read(Part&& part) {
    is_whole_ = mistakes_.attempt(part) && is_whole_;
  }
  /// Leaves off where any was wrong.
  void need_all() const {
    if (!is_whole_) Mistakes::leave_off();
  }

 private:
  Mistakes& mistakes_;
  bool is_whole_ = true;
};

}  // namespace scene
}  // namespace backdrive
