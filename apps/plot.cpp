// simctl plot: columns of result folders as line plots for papers.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <set>

#include "apps/atomic_output.h"
#include "apps/browser.h"
#include "apps/console.h"
#include "apps/figure.h"
#include "apps/options.h"
#include "apps/plotted_columns.h"
#include "apps/result_motion.h"
#include "engine/error.h"

namespace backdrive::app {
namespace {

constexpr std::size_t kMostCurves = 36;  ///< more are not told apart
constexpr double kPlotPixelsPerCm = 96 / 2.54;

struct PlotArguments : Options {
  std::vector<std::string> folders, quantities;
  std::string over, size = "12x8", font = "sans", title;
  double font_size = 9, dots_per_inch = 300;
  bool log_x = false, log_y = false, grey = false, beside = false;
};

struct PlotSize {
  double width = 0, height = 0;  ///< cm
};
bool read_plot_size(const std::string& text, PlotSize& size) {
  int used = 0;
  const bool read = std::sscanf(text.c_str(), "%9lfx%9lf%n", &size.width, &size.height, &used) == 2 &&
                    used == static_cast<int>(text.size()) &&
                    text.find_first_not_of("0123456789.x") == std::string::npos;
  const auto good = [](double x) { return x >= 2 && x <= 200; };
  return read && good(size.width) && good(size.height);
}

/// "slider/position (m)"
std::string with_unit(const std::string& name, const std::string& unit) {
  return unit.empty() ? name : name.empty() ? unit : name + " (" + unit + ")";
}

std::string after_last(const std::string& text, char c) {
  return text.substr(text.rfind(c) + 1);
}

/// Everything that is drawn, and how the axes are called.
class PlotFigure {
 public:
  explicit PlotFigure(const PlotArguments& options) : options_(options), names_(names_of_folders(options.folders)) {
    for (const std::string& folder : options.folders) {
      folders_.push_back(plotted_columns(folder, options.quantities, options.over));
      const PlottedColumns& one = folders_.back();
      if (one.over != folders_[0].over || one.over_unit != folders_[0].over_unit) {
        usage_error(folder + ": its plot is over " + with_unit(one.over, one.over_unit) + ", that of " +
                    options.folders[0] + " over " + with_unit(folders_[0].over, folders_[0].over_unit) +
                    ": expected one axis for all");
      }
      for (const PlottedColumns::Quantity& q : one.quantities) {
        if (quantities_.insert(q.name).second) order_.push_back({q.name, q.unit});
        units_.insert(q.unit);
      }
    }
    style_.x_label = with_unit(folders_[0].over, folders_[0].over_unit);
    name_y();
    options_.beside ? put_beside() : put_over();
    std::size_t most = 0;
    for (const FigurePanel& panel : panels_) most = std::max(most, panel.curves.size());
    if (most > kMostCurves) {
      usage_error(std::to_string(most) + " curves in one plot: expected at most " + std::to_string(kMostCurves) +
                  "; a narrower --quantity would do");
    }
  }

  std::string svg(const PlotSize& size) {
    style_.width = size.width;
    style_.height = size.height;
    style_.font = options_.font_size;
    style_.serif = options_.font == "serif";
    style_.grey = options_.grey;
    style_.log_x = options_.log_x;
    style_.log_y = options_.log_y;
    style_.title = options_.title;
    return figure_svg(panels_, style_);
  }
  nlohmann::json curves() const {
    nlohmann::json result = nlohmann::json::array();
    for (std::size_t k = 0; k < folders_.size(); ++k) {
      for (const PlottedColumns::Quantity& q : folders_[k].quantities) {
        for (const FigureCurve& curve : q.curves) {
          result.push_back({{"folder", options_.folders[k]},
                            {"quantity", q.name},
                            {"unit", q.unit},
                            {"where", curve.label},
                            {"points", curve.x.size()}});
        }
      }
    }
    return result;
  }

 private:
  struct Named {
    std::string name, unit;
  };

  /// What all quantities have in common: the name, the last part of it, or at least the unit.
  void name_y() {
    const std::string unit = units_.size() == 1 ? *units_.begin() : "";
    std::set<std::string> last;
    for (const Named& one : order_) last.insert(after_last(one.name, '/'));
    const std::string name = order_.size() == 1 ? order_[0].name : last.size() == 1 ? *last.begin() : "";
    style_.y_label = with_unit(name, unit);
  }
  std::string label(const Named& quantity, const std::string& where, const std::string& folder) const {
    std::string words = folder;
    const auto add = [&](const std::string& text) {
      if (!text.empty()) words += (words.empty() ? "" : ": ") + text;
    };
    if (order_.size() > 1) add(units_.size() > 1 ? with_unit(quantity.name, quantity.unit) : quantity.name);
    add(where);
    return words;
  }

  void put_over() {
    FigurePanel panel;
    for (std::size_t k = 0; k < folders_.size(); ++k) {
      for (const PlottedColumns::Quantity& q : folders_[k].quantities) {
        for (FigureCurve curve : q.curves) {
          curve.label = label({q.name, q.unit}, curve.label, folders_.size() > 1 ? names_[k] : "");
          panel.curves.push_back(std::move(curve));
        }
      }
    }
    panels_ = {std::move(panel)};
  }

  /// A panel for each folder. The k-th curve is the same quantity in all of them, empty where a folder has it not.
  void put_beside() {
    std::vector<std::string> labels;
    for (const Named& one : order_) {
      for (const PlottedColumns& folder : folders_) {
        for (const PlottedColumns::Quantity& q : folder.quantities) {
          for (const FigureCurve& curve : q.curves) {
            if (q.name != one.name) continue;
            const std::string words = label(one, curve.label, "");
            if (std::ranges::find(labels, words) == labels.end()) labels.push_back(words);
          }
        }
      }
    }
    for (std::size_t k = 0; k < folders_.size(); ++k) {
      FigurePanel panel{names_[k], {}};
      for (const std::string& words : labels) panel.curves.push_back({words, {}, {}});
      for (const PlottedColumns::Quantity& q : folders_[k].quantities) {
        for (const FigureCurve& curve : q.curves) {
          const std::string words = label({q.name, q.unit}, curve.label, "");
          FigureCurve& to = panel.curves[std::ranges::find(labels, words) - labels.begin()];
          to.x = curve.x;
          to.y = curve.y;
        }
      }
      panels_.push_back(std::move(panel));
    }
  }

  const PlotArguments& options_;
  const std::vector<std::string> names_;
  std::vector<PlottedColumns> folders_;
  std::set<std::string> quantities_, units_;
  std::vector<Named> order_;
  std::vector<FigurePanel> panels_;
  FigureStyle style_;
};

/// A page that is the picture and nothing else.
std::string plot_page(const std::string& svg, const PlotSize& size) {
  const std::string width = exact(size.width) + "cm", height = exact(size.height) + "cm";
  return "<!doctype html><html><head><meta charset=\"utf-8\"><style>@page { size: " + width + " " + height +
         "; margin: 0 } html, body { margin: 0; background: #ffffff } svg { display: block }</style></head><body>" +
         svg + "</body></html>";
}

/// Dates in a PDF say when it was made; these are the same every time, as is all else.
std::string without_dates(std::string pdf) {
  for (const char* const key : {"/CreationDate (D:", "/ModDate (D:"}) {
    for (std::size_t at = pdf.find(key); at != std::string::npos; at = pdf.find(key, at + 1)) {
      for (std::size_t k = at + std::string_view(key).size(); k < pdf.size() && pdf[k] != ')'; ++k) {
        if (pdf[k] >= '0' && pdf[k] <= '9') pdf[k] = k - at == std::string_view(key).size() ? '2' : '0';
      }
    }
  }
  return pdf;
}

/// The bytes of the picture as the ending of the file's name has it.
std::string drawn(const std::string& svg, const PlotSize& size, const PlotArguments& options,
                  const std::string& ending) {
  if (ending == ".svg") return svg;
  const int width = static_cast<int>(std::ceil(size.width * kPlotPixelsPerCm));
  const int height = static_cast<int>(std::ceil(size.height * kPlotPixelsPerCm));
  Browser browser(width, height);
  const std::filesystem::path page = browser.folder() / "plot.html";
  std::ofstream(page, std::ios::binary) << plot_page(svg, size);
  if (ending == ".pdf") {
    browser.open(file_address(page));
    const nlohmann::json said = browser.call("Page.printToPDF", {{"preferCSSPageSize", true},
                                                                 {"printBackground", true},
                                                                 {"marginTop", 0},
                                                                 {"marginBottom", 0},
                                                                 {"marginLeft", 0},
                                                                 {"marginRight", 0}});
    return without_dates(from_base64(said.at("data").get<std::string>()));
  }
  browser.call(
      "Emulation.setDeviceMetricsOverride",
      {{"width", width}, {"height", height}, {"deviceScaleFactor", options.dots_per_inch / 96}, {"mobile", false}});
  browser.open(file_address(page));
  return from_base64(browser.call("Page.captureScreenshot", {{"format", "png"}}).at("data").get<std::string>());
}

int run_plot(const PlotArguments& options) {
  const std::string ending =
      options.output == "-" ? ".svg" : std::filesystem::path(options.output).extension().string();
  if (ending != ".svg" && ending != ".pdf" && ending != ".png") {
    usage_error("--output '" + options.output +
                "': expected a name that ends in .svg, .pdf or .png, or - for SVG on stdout");
  }
  PlotSize size;
  read_plot_size(options.size, size);
  PlotFigure figure(options);
  const std::string bytes = drawn(figure.svg(size), size, options, ending);
  if (options.output == "-") {
    if (options.json) usage_error("--output - and --json both want stdout");
    std::cout << bytes;
    finish_stdout();
    return kDone;
  }
  OutputFile file(options.output, options.force);
  file.stream() << bytes;
  file.commit();
  if (options.json) {
    print_json({{"plot", options.output},
                {"bytes", bytes.size()},
                {"curves", figure.curves()},
                {"exit_code", static_cast<int>(kDone)}});
  } else {
    std::cout << "plot: " << options.output << "   (" << count(static_cast<long long>(figure.curves().size()), "curve")
              << ")\n";
  }
  return kDone;
}

void add_look(CLI::App& command, PlotArguments& options) {
  command.add_flag("--log", options.log_y, "logarithmic upwards");
  command.add_flag("--log-over", options.log_x, "logarithmic along the other axis");
  command.add_option("--size", options.size, "of the picture, cm")
      ->check(CLI::Validator(
          [](std::string& text) {
            PlotSize size;
            return read_plot_size(text, size) ? "" : "'" + text + "', expected WIDTHxHEIGHT in cm, 2 to 200, as 8.5x6";
          },
          ""))
      ->type_name("WxH")
      ->capture_default_str();
  command.add_option("--font", options.font, "letters with serifs, or without")
      ->check(one_of({"sans", "serif"}))
      ->type_name("NAME")
      ->capture_default_str();
  command.add_option("--font-size", options.font_size, "pt")
      ->check(number_between(2, 72))
      ->type_name("N")
      ->capture_default_str();
  command.add_flag("--grey", options.grey, "no colours; curves differ in dashes and lightness either way");
  command.add_option("--title", options.title, "above it [none: the caption says it]")->type_name("TEXT");
  command.add_option("--dpi", options.dots_per_inch, "of a PNG: dots an inch")
      ->check(number_between(30, 1200))
      ->type_name("N")
      ->capture_default_str();
}

}  // namespace

void add_plot(CLI::App& app, Invocation& invocation) {
  CLI::App* const command = app.add_subcommand(
      "plot",
      "Draw columns of result folders as a line plot for a paper: SVG, PDF or PNG.\n"
      "Quantities are columns of trajectory.csv, history.csv or sweep.csv; units come of the scene. Curves differ\n"
      "in dashes and lightness, so that they are told apart in print. The same files give the same bytes.\n"
      "PDF and PNG need the Debian package chromium.");
  static PlotArguments options;
  command->add_option("results", options.folders, "result folders, or files .csv of them")
      ->type_name(kAnyPath)
      ->required()
      ->expected(1, 64);
  command
      ->add_option("-q,--quantity", options.quantities,
                   "columns by name, with commas between; * and ? as in file names: '*/position'")
      ->delimiter(',')
      ->type_name("COLUMN")
      ->expected(1)
      ->take_all()
      ->required();
  command->add_option("-o,--output", options.output, "file to write: .svg, .pdf or .png; -: SVG to stdout")
      ->type_name(kAnyPath)
      ->required();
  command
      ->add_option("--over", options.over,
                   "column along the other axis [time, iteration, or the first parameter that was swept]")
      ->type_name("COLUMN");
  command->add_flag("--beside", options.beside, "several folders side by side, in place of one over the other");
  add_look(*command, options);
  command->add_flag("--force", options.force, "replace an existing file");
  add_json_and_quiet(*command, options);
  finish_command(*command, invocation, options,
                 "  simctl plot results/cartpole_swingup-1 --quantity '*/position' -o positions.svg\n"
                 "  simctl plot results/a results/b --quantity loss --log --size 8.5x6 --font serif -o loss.pdf\n"
                 "  simctl plot results/a results/b --beside --quantity hinge/position,hinge/effort -o both.png\n"
                 "  simctl plot results/arm-sweep-1 --quantity loss --log -o sweep.svg",
                 [] { return run_plot(options); });
}

}  // namespace backdrive::app
