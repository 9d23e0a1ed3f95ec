#pragma once
// What the terminal can show, and numbers as people read them.
#include <string>
#include <string_view>

namespace backdrive::app {

/// Whether a person looks at the stream. TERM=dumb counts as no terminal.
bool stdout_is_terminal();
bool stderr_is_terminal();

/// Columns of the terminal at stderr, 80 when it does not say.
int stderr_columns();

constexpr std::string_view kPlainCode = "\033[0m", kBoldCode = "\033[1m", kDimCode = "\033[2m", kRedCode = "\033[31m",
                           kGreenCode = "\033[32m";
constexpr std::string_view kColourCodes[] = {kPlainCode, kBoldCode, kDimCode, kRedCode, kGreenCode};
/// Text in a colour or weight when stdout shows colour (a terminal, and NO_COLOR is not set), else as it is.
std::string bold(const std::string& text);
std::string green(const std::string& text);
std::string red(const std::string& text);
std::string dim(const std::string& text);
/// Whether colour is welcome on a stream that is a terminal or not: NO_COLOR and TERM=dumb say no.
bool colour_wanted(bool is_terminal);

/// Four significant digits.
std::string number(double value);
/// As few digits as read back to the same number.
std::string exact(double value);
/// With a prefix: "1.93 M", "512 k".
std::string with_prefix(double value);
/// "0:07", "1:02:03".
std::string duration(double seconds);
/// "1 world", "3 worlds".
std::string count(long long n, const std::string& thing);

}  // namespace backdrive::app
