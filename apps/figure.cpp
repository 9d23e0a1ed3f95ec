#include "apps/figure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "apps/json_text.h"
#include "engine/error.h"

namespace backdrive::app {
namespace {

constexpr double kPointsPerCm = 72 / 2.54;
constexpr std::size_t kMostDrawn = 4000;  ///< points of a curve that are drawn one by one

/// Dark to light, each with dashes of its own; lengths in widths of the line.
struct FigureStroke {
  const char* colour;
  const char* grey;
  std::array<int, 6> dashes;  ///< drawn, left out, drawn, ...; zeros: the rest is none
};
constexpr std::array<FigureStroke, 6> kStrokes{{{"#16181d", "#000000", {}},
                                                {"#1f5fbf", "#3c3c3c", {5, 2}},
                                                {"#c2431a", "#5a5a5a", {1, 2}},
                                                {"#2b8a57", "#747474", {6, 2, 1, 2}},
                                                {"#8d52b3", "#8c8c8c", {9, 3}},
                                                {"#b98310", "#a0a0a0", {6, 2, 1, 2, 1, 2}}}};

/// Text of an SVG: markup escaped, what is no UTF-8 and no character of XML replaced.
std::string figure_text(const std::string& text) {
  using Json = nlohmann::json;
  const std::string clean = Json::parse(text_of(Json(text)));
  std::string result;
  for (const char c : clean) {
    if (static_cast<unsigned char>(c) < ' ') {
      result += ' ';
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '&') {
      result += "&amp;";
    } else if (c == '"') {
      result += "&quot;";
    } else {
      result += c;
    }
  }
  return result;
}

/// A coordinate, to a hundredth of a point.
std::string at(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", x + 0.0);
  std::string result = text;
  while (result.ends_with('0')) result.pop_back();
  if (result.ends_with('.')) result.pop_back();
  return result == "-0" ? "0" : result;
}

std::size_t letters(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string with_minus(std::string text) {
  if (text.starts_with('-')) text.replace(0, 1, "−");
  return text;
}

/// 10 to a whole power.
std::string power_of_ten(int exponent) {
  const char* const digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string result = exponent < 0 ? "10⁻" : "10";
  for (const char c : std::to_string(std::abs(exponent))) result += digits[c - '0'];
  return result;
}

/// An axis from `begin` to `end`: numbers, or where it is logarithmic their decimal logarithms.
class FigureAxis {
 public:
  struct Tick {
    double value;
    std::string text;
  };

  FigureAxis(bool log, double low, double high, double margin) : log_(log), begin_(low), end_(high) {
    if (!(end_ > begin_)) {
      const double around = log_ ? 0.5 : begin_ == 0 ? 1 : 0.1 * std::abs(begin_);
      begin_ -= around;
      end_ += around;
    } else {
      const double more = margin * (end_ - begin_);
      begin_ -= more;
      end_ += more;
    }
  }
  double on(double x) const { return log_ ? std::log10(x) : x; }
  bool has(double x) const { return std::isfinite(x) && (!log_ || x > 0); }
  /// 0 at the begin, 1 at the end.
  double part(double x) const { return (on(x) - begin_) / (end_ - begin_); }
  double part_of_tick(const Tick& tick) const { return (tick.value - begin_) / (end_ - begin_); }

  /// About `count`, at 1, 2 or 5 times a power of ten.
  std::vector<Tick> ticks(double count) const {
    double step = std::pow(10.0, std::floor(std::log10((end_ - begin_) / count)));
    for (const double factor : {2.0, 2.5, 2.0}) {
      if ((end_ - begin_) / step > count) step *= factor;
    }
    if (log_) step = std::max(1.0, std::ceil(step));
    std::vector<Tick> result;
    for (double k = std::ceil(begin_ / step - 1e-9); k * step <= end_ + 1e-9 * step; ++k) {
      result.push_back({k * step, log_ ? power_of_ten(static_cast<int>(k * step)) : words(k * step, step)});
    }
    if (log_ && result.size() < 2) return in_a_decade();
    return result;
  }

 private:
  static std::string words(double x, double step) {
    char text[40];
    const double size = std::max(std::abs(x), step);
    const int places = static_cast<int>(std::max(0.0, std::ceil(-std::log10(step) - 1e-9)));
    if (size >= 1e6 || places > 5) {
      std::snprintf(text, sizeof text, "%.4g", std::abs(x) < 1e-9 * step ? 0.0 : x);
    } else {
      std::snprintf(text, sizeof text, "%.*f", places, x);
    }
    const std::string said = text;
    return said.find_first_of("123456789") == std::string::npos ? "0" : with_minus(said);
  }
  /// Of a logarithmic axis without two powers of ten: the digits between.
  std::vector<Tick> in_a_decade() const {
    std::vector<Tick> result;
    for (int decade = static_cast<int>(std::floor(begin_)); decade <= end_; ++decade) {
      for (int digit = 1; digit < 10; ++digit) {
        const double value = decade + std::log10(digit);
        if (value < begin_ || value > end_) continue;
        char text[40];
        std::snprintf(text, sizeof text, "%g", digit * std::pow(10.0, decade));
        result.push_back({value, text});
      }
    }
    while (result.size() > 6) {
      for (std::size_t k = 1; k < result.size(); ++k) result.erase(result.begin() + static_cast<std::ptrdiff_t>(k));
    }
    return result;
  }

  bool log_;
  double begin_, end_;
};

struct FigureRange {
  double low = INFINITY, high = -INFINITY;
  void take(double x) {
    low = std::min(low, x);
    high = std::max(high, x);
  }
};

/// Indices that draw the same line: of many points between two, those where it is lowest and highest.
std::vector<std::size_t> drawn_points(const std::vector<double>& y) {
  std::vector<std::size_t> result;
  const std::size_t every = y.size() > kMostDrawn ? (4 * y.size() + kMostDrawn - 1) / kMostDrawn : 1;
  for (std::size_t begin = 0; begin < y.size(); begin += every) {
    const std::size_t end = std::min(y.size(), begin + every);
    std::array<std::size_t, 4> picked{begin, begin, begin, end - 1};
    for (std::size_t k = begin; k < end; ++k) {
      if (y[k] < y[picked[1]] || std::isnan(y[picked[1]])) picked[1] = k;
      if (y[k] > y[picked[2]] || std::isnan(y[picked[2]])) picked[2] = k;
    }
    std::ranges::sort(picked);
    for (const std::size_t k : picked) {
      if (result.empty() || result.back() < k) result.push_back(k);
    }
  }
  return result;
}

class Figure {
 public:
  Figure(const std::vector<FigurePanel>& panels, const FigureStyle& style)
      : panels_(panels),
        style_(style),
        width_(style.width * kPointsPerCm),
        height_(style.height * kPointsPerCm),
        x_(axis(style.log_x, &FigureCurve::x, 0)),
        y_(axis(style.log_y, &FigureCurve::y, 0.05)) {}

  std::string svg() {
    out_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + at(style_.width) + "cm\" height=\"" +
           at(style_.height) + "cm\" viewBox=\"0 0 " + at(width_) + " " + at(height_) + "\" font-family=\"" +
           (style_.serif ? "'Times New Roman', 'Liberation Serif', 'DejaVu Serif', serif"
                         : "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif") +
           "\" font-size=\"" + at(style_.font) + "\" fill=\"#000000\">\n";
    double top = em(0.6);
    if (!style_.title.empty()) {
      top += em(1.2);
      text(width_ / 2, top - em(0.2), "middle", style_.title, "font-weight=\"bold\"");
    }
    top = legend(top);
    const bool titled = std::ranges::any_of(panels_, [](const FigurePanel& panel) { return !panel.title.empty(); });
    if (titled) top += em(1.4);
    const double bottom = height_ - em(style_.x_label.empty() ? 1.9 : 3.3);
    const std::vector<FigureAxis::Tick> rows = y_.ticks(std::max(2.0, (bottom - top) / em(2.6)));
    std::size_t widest = 0;
    for (const FigureAxis::Tick& tick : rows) widest = std::max(widest, letters(tick.text));
    const double left = em(1.1) + em(0.56) * static_cast<double>(widest) + (style_.y_label.empty() ? 0 : em(1.5));
    const double gap = em(1.6), count = static_cast<double>(panels_.size());
    const double wide = (width_ - left - em(1.4) - gap * (count - 1)) / count;
    if (wide < em(4) || bottom - top < em(3)) {
      usage_error("no room to draw in " + at(style_.width) + "x" + at(style_.height) + " cm: expected a larger --size" +
                  (count > 1 ? ", or fewer folders side by side" : ""));
    }
    for (std::size_t p = 0; p < panels_.size(); ++p) {
      panel(panels_[p], {left + static_cast<double>(p) * (wide + gap), top, wide, bottom - top}, rows, p == 0);
    }
    if (!style_.x_label.empty()) text((left + width_ - em(1.4)) / 2, height_ - em(0.7), "middle", style_.x_label);
    if (!style_.y_label.empty()) {
      const double middle = (top + bottom) / 2;
      text(em(1.2), middle, "middle", style_.y_label,
           "transform=\"rotate(-90 " + at(em(1.2)) + " " + at(middle) + ")\"");
    }
    return out_ + "</svg>\n";
  }

 private:
  struct Box {
    double x, y, width, height;
  };

  double em(double count) const { return count * style_.font; }

  FigureAxis axis(bool log, std::vector<double> FigureCurve::*numbers, double margin) const {
    FigureRange range;
    for (const FigurePanel& panel : panels_) {
      for (const FigureCurve& curve : panel.curves) {
        for (const double x : curve.*numbers) {
          if (std::isfinite(x) && (!log || x > 0)) range.take(log ? std::log10(x) : x);
        }
      }
    }
    if (range.low > range.high) {
      usage_error(log ? "nothing above zero to draw on a logarithmic axis" : "no finite number to draw");
    }
    return {log, range.low, range.high, margin};
  }

  void text(double x, double y, const char* anchor, const std::string& words, const std::string& more = "") {
    out_ += "<text x=\"" + at(x) + "\" y=\"" + at(y) + "\" text-anchor=\"" + anchor + "\"" +
            (more.empty() ? "" : " " + more) + ">" + figure_text(words) + "</text>\n";
  }
  void line(double x1, double y1, double x2, double y2, const std::string& look) {
    out_ += "<line x1=\"" + at(x1) + "\" y1=\"" + at(y1) + "\" x2=\"" + at(x2) + "\" y2=\"" + at(y2) + "\" " + look +
            "/>\n";
  }

  /// How the k-th curve is drawn.
  std::string stroke(std::size_t k) const {
    const FigureStroke& one = kStrokes[k % kStrokes.size()];
    // Each time round a line half as thick again.
    const double width = 1.1 * (1 + 0.5 * static_cast<double>(k / kStrokes.size()));
    std::string dashes;
    for (const int length : one.dashes) {
      if (length > 0) dashes += (dashes.empty() ? "" : " ") + at(length * width);
    }
    return "fill=\"none\" stroke=\"" + std::string(style_.grey ? one.grey : one.colour) + "\" stroke-width=\"" +
           at(width) + "\"" + (dashes.empty() ? "" : " stroke-dasharray=\"" + dashes + "\"");
  }

  /// In lines from `top` down; where they end. Labels that several panels share stand once.
  double legend(double top) {
    std::vector<std::string> labels;
    for (const FigurePanel& panel : panels_) {
      for (std::size_t k = 0; k < panel.curves.size(); ++k) {
        if (k >= labels.size()) labels.push_back(panel.curves[k].label);
      }
    }
    if (std::ranges::all_of(labels, &std::string::empty)) return top + em(0.4);
    const double margin = em(1), sample = em(2.6);
    double x = margin, y = top + em(0.9);
    for (std::size_t k = 0; k < labels.size(); ++k) {
      const double wide = sample + em(0.5) + em(0.56) * static_cast<double>(letters(labels[k])) + em(1.2);
      if (x > margin && x + wide > width_ - em(0.4)) {
        x = margin;
        y += em(1.35);
      }
      line(x, y - em(0.3), x + sample, y - em(0.3), stroke(k));
      text(x + sample + em(0.5), y, "start", labels[k]);
      x += wide;
    }
    return y + em(0.8);
  }

  void panel(const FigurePanel& panel, const Box& box, const std::vector<FigureAxis::Tick>& rows, bool first) {
    const double bottom = box.y + box.height, right = box.x + box.width, tick = em(0.35);
    const std::string thin = "stroke=\"#000000\" stroke-width=\"0.6\"",
                      grid = "stroke=\"#d8d8d8\" stroke-width=\"0.4\"";
    if (!panel.title.empty()) text(box.x + box.width / 2, box.y - em(0.5), "middle", panel.title);
    const auto inside = [](double part) { return part > -1e-9 && part < 1 + 1e-9; };
    for (const FigureAxis::Tick& row : rows) {
      const double part = y_.part_of_tick(row), y = bottom - part * box.height;
      if (!inside(part)) continue;
      line(box.x, y, right, y, grid);
      line(box.x - tick, y, box.x, y, thin);
      if (first) text(box.x - tick - em(0.25), y + em(0.33), "end", row.text);
    }
    std::vector<FigureAxis::Tick> columns = x_.ticks(std::max(1.0, box.width / em(4)));
    for (const FigureAxis::Tick& column : columns) {
      const double part = x_.part_of_tick(column), x = box.x + part * box.width;
      if (!inside(part)) continue;
      line(x, box.y, x, bottom, grid);
      line(x, bottom, x, bottom + tick, thin);
      text(x, bottom + tick + em(0.95), "middle", column.text);
    }
    out_ += "<rect x=\"" + at(box.x) + "\" y=\"" + at(box.y) + "\" width=\"" + at(box.width) + "\" height=\"" +
            at(box.height) + "\" fill=\"none\" " + thin + "/>\n";
    for (std::size_t k = 0; k < panel.curves.size(); ++k) curve(panel.curves[k], box, k);
  }

  void curve(const FigureCurve& curve, const Box& box, std::size_t k) {
    std::string points;
    std::size_t count = 0;
    const auto end = [&] {
      if (count == 1) {  // a point that stands alone is drawn as a dot
        const std::size_t comma = points.find(',');
        out_ += "<circle cx=\"" + points.substr(0, comma) + "\" cy=\"" + points.substr(comma + 1) +
                "\" r=\"1.2\" fill=\"" +
                (style_.grey ? kStrokes[k % kStrokes.size()].grey : kStrokes[k % kStrokes.size()].colour) + "\"/>\n";
      } else if (count > 1) {
        out_ += "<polyline points=\"" + points + "\" " + stroke(k) + " stroke-linejoin=\"round\"/>\n";
      }
      points.clear();
      count = 0;
    };
    for (const std::size_t i : drawn_points(curve.y)) {
      if (!x_.has(curve.x[i]) || !y_.has(curve.y[i])) {
        end();
        continue;
      }
      points += (count++ ? " " : "") + at(box.x + x_.part(curve.x[i]) * box.width) + "," +
                at(box.y + (1 - y_.part(curve.y[i])) * box.height);
    }
    end();
  }

  const std::vector<FigurePanel>& panels_;
  const FigureStyle& style_;
  double width_, height_;
  FigureAxis x_, y_;
  std::string out_;
};

}  // namespace

std::string figure_svg(const std::vector<FigurePanel>& panels, const FigureStyle& style) {
  return Figure(panels, style).svg();
}

}  // namespace backdrive::app
