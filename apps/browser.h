#pragma once
// A Chromium without a window, by its DevTools protocol through pipes.
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/child_process.h"

namespace backdrive::app {

class Browser {
 public:
  /// With a page of so many pixels. Throws Error (usage): there is none, or it does not start.
  Browser(int width, int height);
  ~Browser();
  Browser(const Browser&) = delete;
  Browser& operator=(const Browser&) = delete;

  /// Returns once the page has loaded.
  void open(const std::string& address);
  /// The value of an expression of JavaScript, awaited where it is a promise. Throws Error (usage) with what it throws.
  nlohmann::json evaluate(const std::string& expression);
  nlohmann::json call(const std::string& method, const nlohmann::json& parameters = nlohmann::json::object());

  /// Goes with it.
  const std::filesystem::path& folder() const { return folder_; }
  /// What pages have asked for, and what they threw or called an error, so far.
  const std::vector<std::string>& requests() const { return requests_; }
  const std::vector<std::string>& errors() const { return errors_; }

 private:
  void start(int width, int height);
  void end();
  void send(const nlohmann::json& message);
  nlohmann::json receive();
  void note(const nlohmann::json& event);

  std::filesystem::path folder_;  ///< of its profile
  int to_ = -1, from_ = -1;
  std::unique_ptr<ChildProcess> process_;
  std::string unread_, session_;
  int last_ = 0;  ///< number of the last call
  bool loaded_ = false;
  std::vector<std::string> requests_, errors_;
};

}  // namespace backdrive::app
