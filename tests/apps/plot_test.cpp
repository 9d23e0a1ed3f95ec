// simctl plot: lines that are where the tables say, in files that are the same every time.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "tests/apps/simctl_process.h"

namespace backdrive::test {
namespace {

/// Where an axis has which number, by its ticks: value = a + b · coordinate, of logarithmic ones lg(value).
struct TickLine {
  double a = 0, b = 0;
  double operator()(double at) const { return a + b * at; }
};

class SimctlPlotTest : public SimctlTest {
 protected:
  static std::vector<std::smatch> matches(const std::string& text, const std::regex& pattern) {
    return {std::sregex_iterator(text.begin(), text.end(), pattern), std::sregex_iterator()};
  }
  static double number_of_tick(std::string text) {
    const std::pair<const char*, const char*> signs[] = {{"−", "-"}, {"⁻", "-"}, {"⁰", "0"}, {"¹", "1"},
                                                         {"²", "2"}, {"³", "3"}, {"⁴", "4"}, {"⁵", "5"},
                                                         {"⁶", "6"}, {"⁷", "7"}, {"⁸", "8"}, {"⁹", "9"}};
    const bool power = text.starts_with("10") && static_cast<unsigned char>(text.back()) >= 0x80;
    if (power) text = text.substr(2);
    for (const auto& [from, to] : signs) {
      for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from)) {
        text.replace(at, std::string(from).size(), to);
      }
    }
    return power ? std::pow(10, std::stod(text)) : std::stod(text);
  }
  /// Of the first and the last of the labels that stand in a row (axis 0), or in a column (axis 1).
  static TickLine ticks(const std::string& svg, int axis, bool log = false) {
    std::vector<std::pair<double, double>> found;
    const char* const anchor = axis == 0 ? "middle" : "end";
    for (const std::smatch& m : matches(svg, std::regex("<text x=\"([0-9.]+)\" y=\"([0-9.]+)\" text-anchor=\"" +
                                                        std::string(anchor) + "\">([^<]*)</text>"))) {
      const std::string text = m[3];
      if (text.find_first_not_of(
              "0123456789.e+-\xe2\x88\x92\xc2\xb9\xb2\xb3\x81\x82\x83\xb0\xb4\xb5\xb6\xb7\xb8\xbb") !=
          std::string::npos) {
        continue;
      }
      const double value = number_of_tick(text);
      found.emplace_back(std::stod(m[1 + axis]), log ? std::log10(value) : value);
    }
    EXPECT_GE(found.size(), 2u) << svg;
    if (found.size() < 2) return {};
    const auto [x0, v0] = found.front();
    const auto [x1, v1] = found.back();
    const double b = (v1 - v0) / (x1 - x0);
    // Letters stand below and beside their ticks; the ticks themselves are where the lines of the grid begin.
    return {v0 - b * x0, b};
  }
  /// Points of the k-th curve.
  static std::vector<std::pair<double, double>> curve(const std::string& svg, std::size_t k) {
    // Not by a regular expression, whose depth in the library grows with the text.
    const std::string begin = "<polyline points=\"";
    std::size_t at = svg.find(begin);
    for (; k > 0 && at != std::string::npos; --k) at = svg.find(begin, at + 1);
    EXPECT_NE(at, std::string::npos);
    std::vector<std::pair<double, double>> points;
    if (at == std::string::npos) return points;
    at += begin.size();
    std::istringstream stream(svg.substr(at, svg.find('"', at) - at));
    double x = 0, y = 0;
    for (char comma = 0; stream >> x >> comma >> y;) points.emplace_back(x, y);
    return points;
  }
  Outcome plot(std::vector<std::string> arguments, const Settings& settings = {}) const {
    arguments.insert(arguments.begin(), "plot");
    return simctl(arguments, settings);
  }
  void run_pendulum(const std::string& output = "out", const std::string& damping = "0.02") const {
    ASSERT_EQ(simctl({"run", write("p.yaml", kPendulum), "--output", output, "--quiet", "--set",
                      "joints/hinge/damping=" + damping})
                  .exit,
              0);
  }
};

TEST_F(SimctlPlotTest, LinesAreWhereTheTableSays) {
  run_pendulum();
  const Outcome o = plot({"out", "--quantity", "hinge/position", "-o", "a.svg"});
  ASSERT_EQ(o.exit, 0) << o.err;
  const std::string svg = read("a.svg");
  EXPECT_NE(svg.find(">time (s)<"), std::string::npos);
  EXPECT_NE(svg.find(">hinge/position (rad)<"), std::string::npos);
  EXPECT_NE(svg.find("width=\"12cm\" height=\"8cm\""), std::string::npos);
  const Rows rows = parse_csv(read("out/trajectory.csv"));
  const auto points = curve(svg, 0);
  ASSERT_EQ(points.size(), rows.size() - 1);
  const TickLine x = ticks(svg, 0), y = ticks(svg, 1);
  // Labels of the upright axis are set a third of their height lower than their ticks: 0.33 · 9 pt.
  for (std::size_t r = 1; r < rows.size(); ++r) {
    EXPECT_NEAR(x(points[r - 1].first), number(rows[r][0]), std::abs(x.b) * 0.02);
    EXPECT_NEAR(y(points[r - 1].second + 0.33 * 9), number(rows[r][1]), std::abs(y.b) * 0.02);
  }
  // The same once more, to the byte; not over a file that is there, unless asked.
  EXPECT_EQ(plot({"out", "--quantity", "hinge/position", "-o", "-"}).out, svg);
  EXPECT_EQ(plot({"out", "--quantity", "hinge/velocity", "-o", "a.svg"}).exit, 2);
  EXPECT_EQ(read("a.svg"), svg);
  EXPECT_EQ(plot({"out", "--quantity", "hinge/velocity", "-o", "a.svg", "--force"}).exit, 0);
  EXPECT_NE(read("a.svg"), svg);
}

TEST_F(SimctlPlotTest, LogarithmicAxesHavePowersOfTen) {
  write("t.csv", "iteration,loss\n0,1000\n1,10\n2,0\n3,0.1\n4,0.001\n");
  const Outcome o = plot({"t.csv", "--quantity", "loss", "--log", "-o", "-"});
  ASSERT_EQ(o.exit, 0) << o.err;
  const TickLine y = ticks(o.out, 1, true);
  // The zero interrupts the line.
  const auto before = curve(o.out, 0), after = curve(o.out, 1);
  ASSERT_EQ(before.size(), 2u);
  ASSERT_EQ(after.size(), 2u);
  const double wanted[] = {3, 1, -1, -3};
  for (int k = 0; k < 4; ++k) {
    const auto& [at, height] = k < 2 ? before[k] : after[k - 2];
    EXPECT_NEAR(y(height + 0.33 * 9), wanted[k], std::abs(y.b) * 0.02);
  }
  EXPECT_NE(o.out.find(">10⁻²<"), std::string::npos);
  write("zero.csv", "iteration,loss\n0,0\n1,-1\n");
  const Outcome none = plot({"zero.csv", "--quantity", "loss", "--log", "-o", "-"});
  EXPECT_EQ(none.exit, 2);
  EXPECT_NE(none.err.find("nothing above zero"), std::string::npos) << none.err;
}

TEST_F(SimctlPlotTest, FoldersStandOverOrBesideEachOther) {
  run_pendulum("light", "0.02");
  run_pendulum("heavy", "0.5");
  const Outcome over = plot({"light", "heavy/", "--quantity", "hinge/*", "-o", "over.svg", "--json"});
  ASSERT_EQ(over.exit, 0) << over.err;
  EXPECT_EQ(over.json()["curves"].size(), 6u);
  const std::string one = read("over.svg");
  for (const char* const label :
       {"light: hinge/position (rad)", "heavy: hinge/velocity (rad/s)", "heavy: hinge/effort (N·m)"}) {
    EXPECT_NE(one.find(label), std::string::npos) << label;
  }
  const Outcome beside =
      plot({"light", "heavy", "--quantity", "hinge/velocity", "--beside", "--size", "16x6", "-o", "-"});
  ASSERT_EQ(beside.exit, 0) << beside.err;
  EXPECT_NE(beside.out.find(">light<"), std::string::npos);
  EXPECT_NE(beside.out.find(">heavy<"), std::string::npos);
  // Both begin at the same height, in two panels.
  const auto left = curve(beside.out, 0), right = curve(beside.out, 1);
  EXPECT_EQ(left.front().second, right.front().second);
  EXPECT_GT(right.front().first, left.back().first);
  EXPECT_NE(left.back().second, right.back().second);
}

TEST_F(SimctlPlotTest, CurvesDifferInDashesAndLightness) {
  write("t.csv", "time,a,b,c,d\n0,0,1,2,3\n1,1,2,3,4\n");
  const Outcome o = plot({"t.csv", "--quantity", "*", "--grey", "-o", "-"});
  ASSERT_EQ(o.exit, 0) << o.err;
  std::map<std::string, int> dashes, greys;
  for (const std::smatch& m : matches(
           o.out,
           std::regex("<polyline [^>]* stroke=\"#([0-9a-f]{6})\" stroke-width=\"[0-9.]+\"([^/]*)stroke-linejoin"))) {
    const std::string grey = m[1];
    EXPECT_EQ(grey.substr(0, 2), grey.substr(2, 2));
    EXPECT_EQ(grey.substr(0, 2), grey.substr(4, 2));
    ++greys[grey];
    ++dashes[m[2]];
  }
  EXPECT_EQ(greys.size(), 4u);
  EXPECT_EQ(dashes.size(), 4u);
}

TEST_F(SimctlPlotTest, SweepsAreDrawnOverTheirFirstParameter) {
  ASSERT_EQ(simctl({"sweep", write("p.yaml", kPendulum), "--output", "s.csv", "--quiet", "--set",
                    "initial_state/hinge/position=10 deg,20 deg,40 deg", "--set", "joints/hinge/damping=0.1,0.4"})
                .exit,
            0);
  const Outcome o = plot({"s.csv", "--quantity", "loss", "-o", "-"});
  ASSERT_EQ(o.exit, 0) << o.err;
  EXPECT_NE(o.out.find(">initial_state/hinge/position (deg)<"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("joints/hinge/damping = 0.4"), std::string::npos);
  const Rows rows = parse_csv(read("s.csv"));
  const TickLine x = ticks(o.out, 0), y = ticks(o.out, 1);
  const auto loss = std::ranges::find(rows[0], "loss") - rows[0].begin();
  for (std::size_t k = 0; k < 2; ++k) {
    const auto points = curve(o.out, k);
    ASSERT_EQ(points.size(), 3u);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(x(points[i].first), i == 0 ? 10 : i == 1 ? 20 : 40, std::abs(x.b) * 0.02);
      EXPECT_NEAR(y(points[i].second + 0.33 * 9), number(rows[1 + 2 * i + k][loss]), std::abs(y.b) * 0.02);
    }
  }
  const Outcome other = plot({"s.csv", "--quantity", "loss", "--over", "joints/hinge/damping", "-o", "-"});
  EXPECT_NE(other.out.find(">joints/hinge/damping<"), std::string::npos);
  EXPECT_NE(other.out.find("initial_state/hinge/position = 40 deg"), std::string::npos);
}

TEST_F(SimctlPlotTest, MistakesAreNamed) {
  run_pendulum();
  const auto fails = [&](std::vector<std::string> arguments, int exit, const std::string& words) {
    const Outcome o = plot(std::move(arguments));
    EXPECT_EQ(o.exit, exit) << o.err;
    EXPECT_NE(o.err.find(words), std::string::npos) << o.err;
  };
  fails({"out", "-q", "hinge/positon", "-o", "a.svg"}, 2, "did you mean 'hinge/position'?");
  fails({"out", "-q", "hinge/positon", "-o", "a.svg"}, 2, "out/trajectory.csv");
  fails({"out", "-q", "*", "-o", "a.svg", "--over", "tim"}, 2, "did you mean 'time'?");
  fails({"out", "-q", "*", "-o", "a.jpg"}, 2, "expected a name that ends in .svg, .pdf or .png");
  fails({"out", "-q", "*", "-o", "a.svg", "--size", "1x1"}, 2, "expected WIDTHxHEIGHT in cm");
  fails({"out", "-q", "*", "-o", "a.svg", "--size", "2x2"}, 2, "no room to draw");
  fails({"out", "-q", "*", "-o", "a.svg", "--font", "comic"}, 2, "serif");
  fails({"nothing", "-q", "*", "-o", "a.svg"}, 3, "nothing: expected a result folder");
  write("cut.csv", "time,a\n0\n");
  fails({"cut.csv", "-q", "a", "-o", "a.svg"}, 3, "cut.csv:2:1: 1 cells: expected 2");
  write("empty.csv", "");
  fails({"empty.csv", "-q", "a", "-o", "a.svg"}, 3, "no columns");
  write("words.csv", "time,a\nx,1\n");
  fails({"words.csv", "-q", "a", "-o", "a.svg"}, 3, "words.csv:2: 'x' in column 'time'");
  write("nan.csv", "time,a\n0,nan\n1,\n");
  fails({"nan.csv", "-q", "a", "-o", "a.svg"}, 2, "no finite number to draw");
  fails({"nan.csv", "-q", "*", "-o", "a.svg"}, 2, "no such column");
  EXPECT_FALSE(std::filesystem::exists(path("a.svg")));
}

TEST_F(SimctlPlotTest, NumbersOfAnySizeAndHostileNamesAreDrawn) {
  write("t.csv", "time,\"<b>&\"\"x\xff\",huge,same,tiny\n0,1,-1e300,5,1e-300\n1,2,1e300,5,3e-300\n");
  for (const char* const column : {"<b>*", "huge", "same", "tiny"}) {
    const Outcome o = plot({"t.csv", "-q", column, "-o", "-"});
    EXPECT_EQ(o.exit, 0) << column << o.err;
    EXPECT_EQ(o.out.find("<b>"), std::string::npos);
    EXPECT_EQ(o.out.find("nan"), std::string::npos) << o.out;
    EXPECT_EQ(o.out.find("inf"), std::string::npos) << o.out;
    EXPECT_EQ(curve(o.out, 0).size(), 2u) << column;
  }
  // A million rows: the same line in a small file, with the peak that one of them is.
  std::string many = "time,a\n";
  for (int k = 0; k < 200'000; ++k) many += std::to_string(k) + (k == 77'777 ? ",9\n" : ",1\n");
  write("many.csv", many);
  const Outcome o = plot({"many.csv", "-q", "a", "-o", "-"});
  EXPECT_LT(o.out.size(), 200'000u);
  const auto points = curve(o.out, 0);
  const TickLine y = ticks(o.out, 1);
  double most = -INFINITY;
  for (const auto& [at, height] : points) most = std::max(most, y(height + 0.33 * 9));
  EXPECT_NEAR(most, 9, 0.05);
}

TEST_F(SimctlPlotTest, SaysWhichPackageIsMissing) {
  run_pendulum();
  std::filesystem::create_directory(path("bin"));
  Settings settings;
  settings.environment = {"PATH=" + path("bin").string()};
  for (const char* const name : {"a.pdf", "a.png"}) {
    const Outcome o = plot({"out", "-q", "*", "-o", name}, settings);
    EXPECT_EQ(o.exit, 2);
    EXPECT_NE(o.err.find("Debian package chromium"), std::string::npos) << o.err;
    EXPECT_FALSE(std::filesystem::exists(path(name)));
  }
  EXPECT_EQ(plot({"out", "-q", "*", "-o", "a.svg"}, settings).exit, 0);
}

TEST_F(SimctlPlotTest, PdfAndPngAreOfTheSizeAndTheSameEveryTime) {
  if (std::system("command -v chromium >/dev/null 2>&1") != 0) GTEST_SKIP() << "no chromium here";
  run_pendulum();
  for (const char* const name : {"a.pdf", "b.pdf", "a.png", "b.png"}) {
    const Outcome o = plot({"out", "-q", "hinge/*", "--size", "10x5", "--dpi", "96", "-o", name});
    ASSERT_EQ(o.exit, 0) << o.err;
  }
  const std::string pdf = read("a.pdf"), png = read("a.png");
  EXPECT_EQ(pdf, read("b.pdf"));
  EXPECT_EQ(png, read("b.png"));
  EXPECT_TRUE(pdf.starts_with("%PDF-"));
  std::smatch box;
  ASSERT_TRUE(std::regex_search(pdf, box, std::regex("/MediaBox \\[0 0 ([0-9.]+) ([0-9.]+)\\]")));
  EXPECT_NEAR(std::stod(box[1]), 10 * 72 / 2.54, 1);
  EXPECT_NEAR(std::stod(box[2]), 5 * 72 / 2.54, 1);
  const std::regex page("/Type */Page[^s]");
  EXPECT_EQ(std::distance(std::sregex_iterator(pdf.begin(), pdf.end(), page), std::sregex_iterator()), 1);
  ASSERT_TRUE(png.starts_with("\x89PNG"));
  const auto size = [&](std::size_t at) {
    return static_cast<unsigned char>(png[at + 2]) << 8 | static_cast<unsigned char>(png[at + 3]);
  };
  EXPECT_EQ(size(16), 378);  // 10 cm of 96 dots an inch
  EXPECT_EQ(size(20), 189);
}

}  // namespace
}  // namespace backdrive::test
