#pragma once
// A motion as a page shows it: where all bodies are, frame by frame, what touched, and columns of numbers to plot.
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "apps/simulate.h"
#include "models/model.h"

namespace backdrive::app {

struct ShownMotion {
  std::string name;
  std::vector<float> times;          ///< s, of the frames
  std::vector<float> poses;          ///< by frame and body: position (m), quaternion (x, y, z, w)
  std::vector<float> touches;        ///< of each contact: where (m), which force (N)
  std::vector<int> touch_starts;     ///< where each frame's contacts begin, and where the last end; empty: none
  std::vector<std::string> columns;  ///< "time" and what is plotted over it
  std::vector<float> rows;           ///< [row][column]
};

/// Little-endian bytes as base64.
std::string base64(const void* bytes, std::size_t count);
std::string base64(const std::vector<float>& numbers);
/// Back again; up to the first character that is no digit.
std::vector<unsigned char> base64_bytes(std::string_view text);

constexpr double kFewestFrames = 100;

/// Every `stride`-th of `rows` and the last, at most about `most`.
std::vector<std::size_t> picked(std::size_t rows, std::size_t stride, std::size_t most);
/// Rows between two frames, of which there are at most so many a second, but a hundred in a short motion, too.
std::size_t frame_stride(std::size_t rows, double time_step, double frames_per_second);

/// Position and quaternion of every body in the state q, after what is there.
void append_poses(const Model& model, const std::vector<double>& q, std::vector<float>& poses);

/// What was simulated; of columns, time and the joints' positions and velocities in the frames.
ShownMotion shown_motion(const Problem& problem, const SimulationResult& result, double frames_per_second,
                         std::size_t most_frames);

/// {"name", "times", "poses", "origin", "quantum", "contacts", "contactStarts", "columns", "rows"}: poses are seven
/// int16 each, origin + quantum · n and n / 32767, which is less than an eye sees; where the motion goes so far that a
/// quantum is more than a thousandth of the largest body, float32 and no quantum. Forces are float32.
nlohmann::json to_json(const ShownMotion& motion, const Model& model);

/// Bodies and shapes as a page draws them.
nlohmann::json shapes_json(const Model& model);
nlohmann::json bodies_json(const Model& model);
/// Adds "shapes" and "bodies" to a motion whose model does not look like the `first`'s: by index those that differ.
void add_differences(const nlohmann::json& shapes, const nlohmann::json& bodies, const Model& model,
                     nlohmann::json& motion);

}  // namespace backdrive::app
