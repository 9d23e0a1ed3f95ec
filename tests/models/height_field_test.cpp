// Height fields from numbers and from graymaps, and every way in which they are refused.
#include "models/meshes/height_field.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "engine/error.h"
#include "tests/support/own_folder.h"

namespace backdrive {
namespace {

namespace fs = std::filesystem;
using std::string_literals::operator""s;

const ImageHeights kMeaning{{0.5, 0.25}, -1, 2};

template <class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::input);
    return error.what();
  }
  return "accepted";
}

TEST(HeightFieldOfNumbers, IsCentredAboutItsFrame) {
  const HeightField field = make_height_field(2, 3, {0.5, 0.25}, {0, 1, 2, 3, 4, -5}, "terrain");
  EXPECT_EQ(field.x(0), -0.5);
  EXPECT_EQ(field.x(1), 0);
  EXPECT_EQ(field.x(2), 0.5);
  EXPECT_EQ(field.y(0), -0.125);
  EXPECT_EQ(field.y(1), 0.125);
  EXPECT_EQ(field.height(0, 2), 2);
  EXPECT_EQ(field.height(1, 0), 3);
  EXPECT_EQ(field.lowest, -5);
  EXPECT_EQ(field.highest, 4);
}

TEST(HeightFieldOfNumbers, RefusesWhatCannotBe) {
  const auto message = [](int rows, int columns, std::array<double, 2> spacing, const std::vector<double>& heights) {
    return message_of([&] { make_height_field(rows, columns, spacing, heights, "terrain"); });
  };
  const std::vector<double> four{0, 0, 0, 0};
  EXPECT_EQ(message(2, 2, {1, 1}, four), "accepted");
  EXPECT_EQ(message(1, 4, {1, 1}, four), "terrain: 1 rows and 4 columns: expected at least 2 of each");
  EXPECT_EQ(message(-2, -2, {1, 1}, four), "terrain: -2 rows and -2 columns: expected at least 2 of each");
  EXPECT_EQ(message(2000, 2001, {1, 1}, four), "terrain: 2000 rows and 2001 columns: expected at most 4000000 heights");
  EXPECT_EQ(message(2147483647, 2147483647, {1, 1}, four),
            "terrain: 2147483647 rows and 2147483647 columns: expected at most 4000000 heights");
  EXPECT_EQ(message(2, 3, {1, 1}, four), "terrain: 4 heights: expected 6 for 2 rows and 3 columns");
  for (double spacing : {0.0, -1.0, 1e-12, 1e12, std::numeric_limits<double>::infinity(), std::nan("")}) {
    EXPECT_NE(message(2, 2, {1, spacing}, four).find("as the spacing: expected a length from 1e-09 to 1e+09 m"),
              std::string::npos);
  }
  EXPECT_EQ(message(2, 2, {1, 1}, {0, 0, std::nan(""), 0}),
            "terrain: value 'nan' in row 2, column 1: expected a height, a number of magnitude up to 1e+09 m");
  EXPECT_NE(message(2, 2, {1, 1}, {0, 1e300, 0, 0}).find("value '1e+300' in row 1, column 2"), std::string::npos);
}

/// Rows of an image run down, those of a field up.
void expect_image(const HeightField& field) {
  ASSERT_EQ(field.rows, 2);
  ASSERT_EQ(field.columns, 3);
  EXPECT_EQ(field.spacing_x, 0.5);
  EXPECT_EQ(field.spacing_y, 0.25);
  EXPECT_EQ(field.height(1, 0), -1);
  EXPECT_EQ(field.height(1, 2), 2);
  EXPECT_DOUBLE_EQ(field.height(1, 1), -1 + 3 * 0.4);
  EXPECT_DOUBLE_EQ(field.height(0, 0), -1 + 3 * 0.2);
  EXPECT_EQ(field.lowest, -1);
  EXPECT_EQ(field.highest, 2);
}

TEST(HeightFieldOfGraymap, TextOfAnyLayout) {
  expect_image(parse_pgm("P2\n3 2\n10\n0 4 10\n2 2 2\n", kMeaning, "a.pgm"));
  expect_image(parse_pgm("P2 # made\r\n# by hand\r\n3 2 10 0 4\r\n10 2 2 2", kMeaning, "a.pgm"));
  expect_image(parse_pgm("P2\n3 2\n65535\n0 26214 65535\n13107 13107 13107\n", kMeaning, "a.pgm"));
}

TEST(HeightFieldOfGraymap, BinaryOfEightAndSixteenBits) {
  expect_image(parse_pgm("P5\n# a comment\n3 2\n10\n\x00\x04\x0A\x02\x02\x02"s, kMeaning, "a.pgm"));
  expect_image(parse_pgm("P5 3 2 1000\n\x00\x00\x01\x90\x03\xE8\x00\xC8\x00\xC8\x00\xC8"s, kMeaning, "a.pgm"));
  // What looks like white space belongs to the values.
  EXPECT_EQ(parse_pgm("P5 2 2 32\n\x20\x0A\x20\x20"s, kMeaning, "a.pgm").height(1, 0), 2);
}

TEST(HeightFieldOfGraymap, RefusesWhatItCannotBelieve) {
  const struct {
    std::string bytes;
    const char* begin;
    const char* expected;
  } cases[] = {
      {"", "a.pgm:1:1: the file ends", "a portable graymap: 'P2' or 'P5'"},
      {"P6 2 2 255\n", "a.pgm:1:1: value 'P6'", "a portable graymap"},
      {"\x89PNG\r\n", "a.pgm:1:1: value '?PNG'", "a portable graymap"},
      {"P2", "a.pgm:1:3: the file ends", "the width, a whole number from 1 to 4000000"},
      {"P2 2 x", "a.pgm:1:6: value 'x'", "the height, a whole number"},
      {"P2 -2 2 1", "a.pgm:1:4: value '-2'", "the width"},
      {"P2 99999999999999999999 2 1", "a.pgm:1:4: value '99999999999999999999'", "the width"},
      {"P2\n1 5\n1", "a.pgm:2:1: 5 rows and 1 columns", "at least 2 of each"},
      {"P5\n4000000 4000000\n1\n", "a.pgm:2:1: 4000000 rows and 4000000 columns", "at most 4000000 heights"},
      {"P2 2 2 0\n", "a.pgm:1:8: value '0'", "the largest grey value, a whole number from 1 to 65535"},
      {"P2 2 2 65536\n", "a.pgm:1:8: value '65536'", "the largest grey value"},
      {"P2 2 2 9\n1 2\n3", "a.pgm:3:2: the file ends", "a grey value, a whole number from 0 to 9"},
      {"P2 2 2 9\n1 2\n3 10", "a.pgm:3:3: value '10'", "a grey value"},
      {"P2 2 2 9\n1 2\n3 1.5", "a.pgm:3:3: value '1.5'", "a grey value"},
      {"P2 2 2 9\n1 2\n3 4 5", "a.pgm:3:5: value '5'", "the end of the file behind 4 values"},
      {"P5 2 2 9", "a.pgm: byte 8: the file ends", "13 bytes for 2 rows of 2 values"},
      {"P5 2 2 9\nabc", "a.pgm: byte 12: the file ends", "13 bytes"},
      {"P5 2 2 9\n\x01\x02\x03\x04z", "a.pgm: byte 13: more bytes", "13 bytes"},
      {"P5 2 2 9\n\x01\x02\x0A\x04", "a.pgm: byte 11: value '10'", "a grey value from 0 to 9"},
      {"P5 2 2 300\n\x01\x02\x01", "a.pgm: byte 14: the file ends", "19 bytes"},
  };
  for (const auto& bad : cases) {
    const std::string message = message_of([&] { parse_pgm(bad.bytes, kMeaning, "a.pgm"); });
    EXPECT_TRUE(message.starts_with(bad.begin + ": expected "s + bad.expected)) << bad.bytes << ":\n" << message;
  }
  const ImageHeights odd{{1, 1}, 0, std::nan("")}, narrow{{0, 1}, 0, 1};
  EXPECT_NE(
      message_of([&] { parse_pgm("P2 2 2 1 0 0 0 0", odd, "a.pgm"); }).find("value 'nan' as the height of black or"),
      std::string::npos);
  EXPECT_NE(message_of([&] { parse_pgm("P2 2 2 1 0 0 0 0", narrow, "a.pgm"); }).find("value '0' as the spacing"),
            std::string::npos);
}

TEST(HeightFieldOfGraymap, FromAFile) {
  const test::OwnFolder folder;
  const fs::path path = folder.write("hill.PGM", "P2 3 2 10 0 4 10 2 2 2\n");
  expect_image(read_height_field(path, kMeaning));
  fs::remove(path);
  EXPECT_NE(message_of([&] { read_height_field(path, kMeaning); }).find("expected an existing file"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              read_height_field("a.png", kMeaning);
            }).find("value '.png' as the extension: expected a height"),
            std::string::npos);
}

}  // namespace
}  // namespace backdrive
