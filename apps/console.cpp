#include "apps/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace backdrive::app {
namespace {

bool is_terminal(int descriptor) {
  const char* const term = std::getenv("TERM");
  return isatty(descriptor) && !(term && std::strcmp(term, "dumb") == 0);
}

std::string styled(std::string_view code, const std::string& text) {
  static const bool on = colour_wanted(stdout_is_terminal());
  return on ? std::string(code) + text + std::string(kPlainCode) : text;
}

}  // namespace

bool stdout_is_terminal() {
  return is_terminal(STDOUT_FILENO);
}
bool stderr_is_terminal() {
  return is_terminal(STDERR_FILENO);
}

int stderr_columns() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

bool colour_wanted(bool is_terminal) {
  const char* const no_color = std::getenv("NO_COLOR");
  return is_terminal && !(no_color && *no_color);
}

std::string bold(const std::string& text) {
  return styled(kBoldCode, text);
}
std::string green(const std::string& text) {
  return styled(kGreenCode, text);
}
std::string red(const std::string& text) {
  return styled(kRedCode, text);
}
std::string dim(const std::string& text) {
  return styled(kDimCode, text);
}

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string exact(double value) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

std::string with_prefix(double value) {
  const char* const prefixes[] = {"", " k", " M", " G", " T"};
  int power = 0;
  while (std::abs(value) >= 999.5 && power < 4) {
    value /= 1000;
    ++power;
  }
  // Three digits; %g would write 999.5 of the next power as 1e+03.
  const int decimals = power == 0 ? 0 : std::abs(value) < 9.995 ? 2 : std::abs(value) < 99.95 ? 1 : 0;
  char text[40];
  std::snprintf(text, sizeof text, "%.*f%s", decimals, value, prefixes[power]);
  return text;
}

std::string duration(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  const long long s = std::llround(seconds);
  char text[40];
  if (s < 3600) {
    std::snprintf(text, sizeof text, "%lld:%02lld", s / 60, s % 60);
  } else {
    std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
  }
  return text;
}

std::string count(long long n, const std::string& thing) {
  return std::to_string(n) + " " + thing + (n == 1 ? "" : "s");
}

}  // namespace backdrive::app
