#pragma once
// What is wrong with a scene, one thing after the other: everything that a file has is told at once.
#include <string>
#include <utility>
#include <vector>

#include "engine/error.h"

namespace backdrive {

/// One thing that is wrong.
struct SceneFault {
  std::string message;       ///< all of it in words
  std::string file;          ///< or "--set path=value"
  int line = 0, column = 0;  ///< from 1; 0: of an override
  std::string path;          ///< "joints/hinge/damping"; empty: of the whole
  std::string value;         ///< what stands there, in words: "value '-1 kg'", "unknown key 'mas'"
  std::string expected;
  std::string hint;  ///< what was meant, perhaps
};

/// All of them, as far as one does not hide another; its message has a line for each.
class SceneError : public Error {
 public:
  explicit SceneError(std::vector<SceneFault> faults)
      : Error(ErrorKind::input, lines(faults)), faults_(std::move(faults)) {}
  const std::vector<SceneFault>& faults() const { return faults_; }

 private:
  static std::string lines(const std::vector<SceneFault>& faults) {
    std::string text;
    for (const SceneFault& fault : faults) text += (text.empty() ? "" : "\n") + fault.message;
    return text;
  }
  std::vector<SceneFault> faults_;
};

namespace scene {

/// Gathers what several parts of a scene are refused for.
class Faults {
 public:
  /// Calls it; what it throws is one fault more.
  template <class Read>
  void collect(Read&& read) {
    if (is_full()) return;
    try {
      read();
    } catch (const SceneError& error) {
      all_.insert(all_.end(), error.faults().begin(), error.faults().end());
    }
  }
  bool empty() const { return all_.empty(); }
  /// Nobody reads more of them.
  bool is_full() const { return all_.size() >= 20; }
  void throw_any() const {
    if (!all_.empty()) throw SceneError(all_);
  }

 private:
  std::vector<SceneFault> all_;
};

}  // namespace scene
}  // namespace backdrive
