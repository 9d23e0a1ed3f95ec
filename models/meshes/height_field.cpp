#include "models/meshes/height_field.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/meshes/text_reader.h"

namespace backdrive {
namespace {

void check_size(long long rows, long long columns, const std::string& place) {
  const std::string what = std::to_string(rows) + " rows and " + std::to_string(columns) + " columns";
  if (rows < 2 || columns < 2) refuse_file(place, what, "at least 2 of each");
  if (rows > kMaxHeights || columns > kMaxHeights || rows * columns > kMaxHeights) {
    refuse_file(place, what, "at most " + std::to_string(kMaxHeights) + " heights");
  }
}

void check_meaning(const ImageHeights& meaning, const std::string& name) {
  for (const double height : {meaning.black, meaning.white}) {
    if (std::abs(height) <= kMaxCoordinate) continue;
    refuse_file(name, "value '" + shown(height) + "' as the height of black or white",
                "a number of magnitude up to " + shown(kMaxCoordinate) + " m");
  }
}

/// Header and grey values of a graymap ("pgm format specification", Netpbm): the magic number, width, height and
/// largest value, then the values; from # to the end of a line is a comment.
class GraymapReader {
 public:
  GraymapReader(std::string_view bytes, const std::string& name)
      : bytes_(bytes), name_(name), text_(bytes, name, {'#'}) {
    const TextReader::Word magic = text_.word();
    if (magic.text != "P2" && magic.text != "P5") text_.refuse(magic, "a portable graymap: 'P2' or 'P5'");
    binary_ = magic.text == "P5";
    const TextReader::Word width = text_.word();
    columns = static_cast<int>(text_.whole(width, "the width", 1, kMaxHeights));
    rows = static_cast<int>(text_.whole(text_.word(), "the height", 1, kMaxHeights));
    check_size(rows, columns, text_.place(width.line, width.column));
    white = static_cast<int>(text_.whole(text_.word(), "the largest grey value", 1, 65535));
  }

  std::vector<int> values() { return binary_ ? binary_values() : text_values(); }

  int rows = 0, columns = 0, white = 0;

 private:
  std::vector<int> text_values() {
    std::vector<int> values;
    for (int i = 0; i < rows * columns; ++i) {
      values.push_back(static_cast<int>(text_.whole(text_.word(), "a grey value", 0, white)));
    }
    const TextReader::Word rest = text_.word();
    if (!rest.text.empty())
      text_.refuse(rest, "the end of the file behind " + std::to_string(rows * columns) + " values");
    return values;
  }

  /// One white space character ends the header. Values above 255 take two bytes, the high one first.
  std::vector<int> binary_values() {
    const size_t begin = text_.position() + 1, width = white > 255 ? 2 : 1;
    const size_t expected = begin + width * rows * columns;
    if (bytes_.size() != expected) {
      refuse_file(name_ + ": byte " + std::to_string(std::min(bytes_.size(), expected)),
                  bytes_.size() < expected ? "the file ends" : "more bytes",
                  std::to_string(expected) + " bytes for " + std::to_string(rows) + " rows of " +
                      std::to_string(columns) + " values");
    }
    std::vector<int> values;
    for (size_t at = begin; at < expected; at += width) {
      int value = static_cast<unsigned char>(bytes_[at]);
      if (width == 2) value = value << 8 | static_cast<unsigned char>(bytes_[at + 1]);
      if (value > white) {
        refuse_file(name_ + ": byte " + std::to_string(at), "value '" + std::to_string(value) + "'",
                    "a grey value from 0 to " + std::to_string(white));
      }
      values.push_back(value);
    }
    return values;
  }

  std::string_view bytes_;
  const std::string& name_;
  TextReader text_;
  bool binary_ = false;
};

}  // namespace

HeightField make_height_field(int rows, int columns, std::array<double, 2> spacing, std::vector<double> heights,
                              const std::string& name) {
  check_size(rows, columns, name);
  const size_t expected = static_cast<size_t>(rows) * columns;
  if (heights.size() != expected) {
    refuse_file(name, std::to_string(heights.size()) + " heights",
                std::to_string(expected) + " for " + std::to_string(rows) + " rows and " + std::to_string(columns) +
                    " columns");
  }
  for (const double step : spacing) {
    if (step >= 1 / kMaxCoordinate && step <= kMaxCoordinate) continue;
    refuse_file(name, "value '" + shown(step) + "' as the spacing",
                "a length from " + shown(1 / kMaxCoordinate) + " to " + shown(kMaxCoordinate) + " m");
  }
  for (size_t i = 0; i < expected; ++i) {
    if (std::abs(heights[i]) <= kMaxCoordinate) continue;
    refuse_file(name,
                "value '" + shown(heights[i]) + "' in row " + std::to_string(i / columns + 1) + ", column " +
                    std::to_string(i % columns + 1),
                "a height, a number of magnitude up to " + shown(kMaxCoordinate) + " m");
  }
  const auto [lowest, highest] = std::minmax_element(heights.begin(), heights.end());
  HeightField field{rows, columns, spacing[0], spacing[1], {}, *lowest, *highest};
  field.heights = std::move(heights);
  return field;
}

HeightField parse_pgm(std::string_view bytes, const ImageHeights& meaning, const std::string& name) {
  check_meaning(meaning, name);
  GraymapReader image(bytes, name);
  const std::vector<int> values = image.values();
  std::vector<double> heights(values.size());
  for (int row = 0; row < image.rows; ++row) {
    for (int column = 0; column < image.columns; ++column) {
      const size_t from = static_cast<size_t>(image.rows - 1 - row) * image.columns + column;
      const double share = static_cast<double>(values[from]) / image.white;
      heights[static_cast<size_t>(row) * image.columns + column] = meaning.black * (1 - share) + meaning.white * share;
    }
  }
  return make_height_field(image.rows, image.columns, meaning.spacing, std::move(heights), name);
}

void check_height_field_name(const std::filesystem::path& path) {
  const std::string extension = lower_extension(path);
  if (extension == ".pgm") return;
  refuse_file(path.string(), "value '" + printable(extension) + "' as the extension",
              "a height field file, .pgm (portable graymap)");
}

HeightField read_height_field(const std::filesystem::path& path, const ImageHeights& meaning) {
  check_height_field_name(path);
  return parse_pgm(read_bytes(path), meaning, path.string());
}

}  // namespace backdrive
