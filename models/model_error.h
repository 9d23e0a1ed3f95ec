#pragma once
// What a model cannot be, mistake by mistake.
#include <string>
#include <utility>
#include <vector>

#include "engine/error.h"

namespace backdrive {

/// One mistake of a model.
struct ModelMistake {
  std::string path;     ///< of the entry at fault: "bodies/pole/mass"
  std::string message;  ///< "-1, expected a finite number >= 0 kg"
};

/// The entry that a path is in: "joints/hip" of "joints/hip/limit/lower".
inline std::string item_of(const std::string& path) {
  const std::size_t group = path.find('/');
  return path.substr(0, group == std::string::npos ? group : path.find('/', group + 1));
}

/// A model that cannot be: an Error of kind input whose message has a line for each mistake.
class ModelError : public Error {
 public:
  ModelError(std::string path, std::string message)
      : ModelError(std::vector<ModelMistake>{{std::move(path), std::move(message)}}) {}
  explicit ModelError(std::vector<ModelMistake> mistakes)
      : Error(ErrorKind::input, lines(mistakes)), mistakes_(std::move(mistakes)) {}
  const std::vector<ModelMistake>& mistakes() const { return mistakes_; }
  /// Of the first.
  const std::string& path() const { return mistakes_.front().path; }
  const std::string& message() const { return mistakes_.front().message; }

 private:
  static std::string lines(const std::vector<ModelMistake>& mistakes) {
    std::string all;
    for (const ModelMistake& one : mistakes) all += (all.empty() ? "" : "\n") + one.path + ": " + one.message;
    return all;
  }
  std::vector<ModelMistake> mistakes_;
};

/// Goes on behind a mistake, so that those that do not follow from another are told at once.
class ModelMistakes {
 public:
  static constexpr std::size_t kMost = 20;

  void add(std::string path, std::string message) {
    if (!full()) found_.push_back({std::move(path), std::move(message)});
  }
  template <class Part>
  void attempt(Part&& part) {
    if (full()) return;
    try {
      part();
    } catch (const ModelError& error) {
      for (const ModelMistake& one : error.mistakes()) add(one.path, one.message);
    }
  }
  bool full() const { return found_.size() >= kMost; }
  std::size_t size() const { return found_.size(); }
  const std::vector<ModelMistake>& list() const { return found_; }
  void throw_any() const {
    if (!found_.empty()) throw ModelError(found_);
  }

 private:
  std::vector<ModelMistake> found_;
};

}  // namespace backdrive
