#pragma once
// Terrain: heights over a regular grid.
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace backdrive {

constexpr int kMaxHeights = 4'000'000;  ///< of a height field, rows times columns

/// Heights along z over points of a grid in the shape's frame, centred about its z axis: columns along x, rows along y.
/// Between four neighbours it is up to contact how the surface runs.
struct HeightField {
  int rows = 0, columns = 0;    ///< 2 or more
  double spacing_x = 0;         ///< m between columns
  double spacing_y = 0;         ///< m between rows
  std::vector<double> heights;  ///< m, [row][column], the first row at the lowest y, the first column at the lowest x
  double lowest = 0, highest = 0;  ///< m, of the heights

  double x(int column) const { return (column - 0.5 * (columns - 1)) * spacing_x; }  ///< m
  double y(int row) const { return (row - 0.5 * (rows - 1)) * spacing_y; }           ///< m
  double height(int row, int column) const { return heights[static_cast<size_t>(row) * columns + column]; }
};

/// Checks numbers and makes a field of them. `name` is what errors call it. Throws Error (input): fewer than 2 rows or
/// columns, another number of heights than rows × columns, too many, spacings that are no positive number, heights that
/// are no finite number.
HeightField make_height_field(int rows, int columns, std::array<double, 2> spacing, std::vector<double> heights,
                              const std::string& name);

/// What the grey values of an image mean: black is `black` metres high, white `white` metres.
struct ImageHeights {
  std::array<double, 2> spacing;  ///< m between pixels along x and y
  double black = 0;               ///< m
  double white = 1;               ///< m
};

/// Portable graymap, text (P2) or binary (P5), of 8 or 16 bits. As on a map, the image's first row lies at the highest
/// y. Throws Error (input) that names line and column (in the binary part the byte), value and expectation.
HeightField parse_pgm(std::string_view bytes, const ImageHeights& meaning, const std::string& name);

/// Throws Error (input) where the extension is none of a height field file's: .pgm in any case.
void check_height_field_name(const std::filesystem::path& path);
/// Reads a height field by the file's extension.
HeightField read_height_field(const std::filesystem::path& path, const ImageHeights& meaning);

}  // namespace backdrive
