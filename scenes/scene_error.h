#pragma once
// What is wrong with a scene, mistake by mistake, for whoever shows it elsewhere than in a terminal.
#include <string>
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

/// Goes on behind a mistake, so that all of a file are told at once, but for what follows from another.
class Mistakes {
 public:
  static constexpr std::size_t kMost = 20;

  template <class Part>
  void attempt(Part&& part) {
    if (found_.size() >= kMost) return;
    try {
      part();
    } catch (const SceneError& error) {
      for (const SceneMistake& mistake : error.mistakes()) add(mistake);
    }
  }
  bool empty() const { return found_.empty(); }
  void throw_any() const {
    if (!found_.empty()) throw SceneError(found_);
  }

 private:
  /// Copies of one part have its mistakes once.
  void add(const SceneMistake& mistake) {
    for (const SceneMistake& other : found_) {
      if (other.text == mistake.text) return;
    }
    if (found_.size() < kMost) found_.push_back(mistake);
  }
  std::vector<SceneMistake> found_;
};

}  // namespace scene
}  // namespace backdrive
