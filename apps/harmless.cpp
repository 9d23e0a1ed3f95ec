#include "apps/harmless.h"

#include <cstdio>
#include <iostream>

#include "apps/console.h"
#include "scenes/utf8.h"

namespace backdrive::app {
namespace {

unsigned code_point(std::string_view sequence) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(sequence[i]); };
  if (sequence.size() == 1) return byte(0);
  unsigned code = byte(0) & (0xFFu >> (sequence.size() + 1));
  for (std::size_t i = 1; i < sequence.size(); ++i) code = code << 6 | (byte(i) & 0x3Fu);
  return code;
}

bool is_harmful(unsigned code) {
  const bool control = (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7F && code < 0xA0);
  const bool turns = (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
  return control || turns;
}

/// Appends `text`; `passes` gives the length of what passes as it is at a place, or 0.
template <class Passes>
void append_harmless(std::string_view text, std::string& out, Passes&& passes) {
  for (std::size_t i = 0; i < text.size();) {
    if (const std::size_t n = passes(text.substr(i)); n > 0) {
      out += text.substr(i, n);
      i += n;
      continue;
    }
    const std::size_t length = scene::utf8_length(text, i);
    const unsigned code = length > 0 ? code_point(text.substr(i, length)) : static_cast<unsigned char>(text[i]);
    if (length == 0 || is_harmful(code)) {
      char escaped[16];
      std::snprintf(escaped, sizeof escaped, "\\u%04x", code);
      out += escaped;
    } else {
      out += text.substr(i, length);
    }
    i += length > 0 ? length : 1;
  }
}

/// Holds back a line until it is whole, so that no character is cut.
class HarmlessBuffer : public std::streambuf {
 public:
  HarmlessBuffer(std::streambuf* plain, bool colours) : plain_(plain), colours_(colours) {}

 protected:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    const char one = traits_type::to_char_type(c);
    return xsputn(&one, 1) == 1 ? c : traits_type::eof();
  }
  std::streamsize xsputn(const char* text, std::streamsize n) override {
    const std::string_view added(text, static_cast<std::size_t>(n));
    const std::size_t end = added.rfind('\n');
    if (end == std::string_view::npos) {
      held_ += added;
      return n;
    }
    held_ += added.substr(0, end + 1);
    if (!pass_on()) return 0;
    held_ = added.substr(end + 1);
    return n;
  }
  int sync() override { return pass_on() && plain_->pubsync() == 0 ? 0 : -1; }

 private:
  bool pass_on() {
    std::string out;
    append_harmless(held_, out, [&](std::string_view rest) -> std::size_t {
      if (!colours_ || rest[0] != '\033') return 0;
      for (const std::string_view code : kColourCodes) {
        if (rest.starts_with(code)) return code.size();
      }
      return 0;
    });
    held_.clear();
    const auto size = static_cast<std::streamsize>(out.size());
    return plain_->sputn(out.data(), size) == size;
  }

  std::streambuf* plain_;
  bool colours_;
  std::string held_;
};

}  // namespace

std::string harmless(std::string_view text) {
  std::string out;
  append_harmless(text, out, [](std::string_view) { return std::size_t{0}; });
  return out;
}

HarmlessOutput::HarmlessOutput()
    : filter_(std::make_unique<HarmlessBuffer>(std::cout.rdbuf(), colour_wanted(stdout_is_terminal()))),
      plain_(std::cout.rdbuf(filter_.get())) {}

HarmlessOutput::~HarmlessOutput() {
  std::cout.flush();
  std::cout.rdbuf(plain_);
}

}  // namespace backdrive::app
