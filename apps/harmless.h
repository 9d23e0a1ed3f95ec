#pragma once
// What names, values and files hold reaches terminals without its control characters. Text is escaped here, once, where
// it leaves the program.
#include <memory>
#include <streambuf>
#include <string>
#include <string_view>

namespace backdrive::app {

/// Text with control characters (but line breaks and tabs), marks that turn the direction of writing, and what is no
/// UTF-8 as \u001b: in JSON, whose strings may hold some of them, that stands for the same.
std::string harmless(std::string_view text);

/// For as long as this lives what is written to std::cout is harmless(). Colours that simctl itself shows pass.
class HarmlessOutput {
 public:
  HarmlessOutput();
  ~HarmlessOutput();
  HarmlessOutput(const HarmlessOutput&) = delete;
  HarmlessOutput& operator=(const HarmlessOutput&) = delete;

 private:
  std::unique_ptr<std::streambuf> filter_;
  std::streambuf* plain_;
};

}  // namespace backdrive::app
