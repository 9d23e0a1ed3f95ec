// Controls and records of motions from CSV files inside the scene's folder.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string_view>

#include "scenes/csv_cells.h"
#include "scenes/inside_file.h"
#include "scenes/reader.h"
#include "scenes/schema_make.h"

namespace backdrive::scene {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostColumns = 100'000;

std::size_t cells_of(std::string_view row) {
  std::string storage;
  std::size_t cells = 0;
  for (; row.data(); ++cells) next_cell(row, storage);
  return cells;
}

/// A cell is named by its row and its number among the row's cells.
[[noreturn]] void refuse_cell(const Sources& sources, int row, size_t column, std::string_view value,
                              const std::string& expected, const std::string& hint = {}) {
  fail(sources, {0, row, static_cast<int>(column) + 1}, "", "value '" + excerpt(value) + "'", expected, hint);
}

}  // namespace

/// A CSV file: a header, and rows with as many cells. Empty lines are passed over. Cells are looked up in the text: of
/// large files a few columns are asked for.
class Table {
 public:
  Table(const fs::path& directory, const View& file, Mistakes& mistakes)
      : sources_{(directory / file.text()).string(), {}} {
    text_ = InsideFile(directory, file, kMaxBytes).bytes();
    std::string_view rest = text_;
    if (rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);  // as spreadsheets begin UTF-8
    header_text_ = next_line(rest);
    // Thirty times the room of their commas.
    if (const std::size_t columns = cells_of(header_text_); columns > kMostColumns) {
      refuse_cell(sources_, 1, kMostColumns, header_text_, "at most " + std::to_string(kMostColumns) + " columns");
    }
    std::string storage;
    for (std::string_view row = header_text_; row.data();) header_.emplace_back(next_cell(row, storage));
    for (int line = 2; rest.data(); ++line) {
      const std::string_view row = next_line(rest);
      if (row.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      const std::size_t cells = cells_of(row);
      const bool is_row = mistakes.attempt([&] {
        if (cells == header_.size()) return void(rows_.push_back({line, row}));
        refuse_cell(sources_, line, cells - 1, row, std::to_string(header_.size()) + " cells, as in the header");
      });
      is_whole_ = is_row && is_whole_;
    }
    if (rows_.empty() && is_whole_) refuse_cell(sources_, 2, 0, "", "at least one row");
  }

  std::size_t rows() const { return rows_.size(); }
  /// read(row) of every row; goes on behind what is wrong in one, and leaves off at the end where anything was.
  template <class Read>
  void each_row(Mistakes& mistakes, const Read& read) const {
    Parts parts(mistakes);
    for (std::size_t row = 0; row < rows(); ++row) parts.read([&] { read(row); });
    parts.need_all();
    if (!is_whole_) Mistakes::leave_off();
  }
  bool has(const std::string& name) const { return std::ranges::find(header_, name) != header_.end(); }
  std::size_t column(const std::string& name) const {
    const auto found = std::ranges::find(header_, name);
    if (found == header_.end()) {
      refuse_cell(sources_, 1, 0, header_text_, "a column '" + name + "'", nearest_name(name, header_));
    }
    return static_cast<std::size_t>(found - header_.begin());
  }
  double number(std::size_t row, std::size_t column, Dimension dimension, const JointType* joint = nullptr) const {
    static const SchemaPtr any = scene::number(Dimension::none);
    const NodePtr value = make_scalar(cell(row, column), {0, rows_[row].line, static_cast<int>(column) + 1});
    return read_quantity(*value, *any, dimension, joint, sources_, header_[column]);
  }
  [[noreturn]] void refuse(std::size_t row, std::size_t column, const std::string& expected) const {
    refuse_cell(sources_, rows_[row].line, column, cell(row, column), expected);
  }

 private:
  struct Row {
    int line;
    std::string_view text;
  };

  /// `text` becomes what follows, data() null at its end.
  static std::string_view next_line(std::string_view& text) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text = end == std::string_view::npos || end + 1 == text.size() ? std::string_view() : text.substr(end + 1);
    return line;
  }
  std::string cell(std::size_t row, std::size_t column) const {
    std::string storage;
    std::string_view rest = rows_[row].text;
    for (std::size_t c = 0; c < column; ++c) next_cell(rest, storage);
    return std::string(next_cell(rest, storage));
  }

  Sources sources_;
  bool is_whole_ = true;
  std::string text_;
  std::string_view header_text_;
  std::vector<std::string> header_;
  std::vector<Row> rows_;
};

namespace {

void check_evenly_spaced(const Table& table, std::size_t column) {
  const std::size_t n = table.rows();
  if (n < 2) return;
  const double first = table.number(0, column, Dimension::time), last = table.number(n - 1, column, Dimension::time);
  const double step = (last - first) / static_cast<double>(n - 1);
  for (std::size_t i = 0; i < n; ++i) {
    const double expected = first + step * static_cast<double>(i), time = table.number(i, column, Dimension::time);
    if (!(step > 0) || std::abs(time - expected) > 1e-3 * step) {
      table.refuse(i, column, "times that are evenly spaced");
    }
  }
}

/// The numbers of a record's rows and where they stand, in a file or in the scene.
struct RecordRows {
  std::size_t count;
  std::function<double(std::size_t row)> time;
  std::function<double(std::size_t row, std::size_t component)> value;
  std::function<void(std::size_t row, const std::string&expected)> refuse_time, refuse_value;  ///< throw
};

void add_row(const RecordRows& rows, std::size_t row, std::size_t components, bool turns, MotionRecord& record) {
  const double time = rows.time(row);
  if (!record.times.empty() && !(time > record.times.back())) {
    rows.refuse_time(row, "a time after that of the row before");
  }
  std::array<double, 4> value{};
  for (std::size_t c = 0; c < components; ++c) value[c] = rows.value(row, c);
  if (turns && !make_unit(value)) rows.refuse_value(row, "a unit quaternion (x, y, z, w)");
  record.times.push_back(time);
  record.values.push_back(value);
}

/// Columns of a quantity: `<owner>/<quantity>` or, of several components, `<owner>/<quantity>/x` and so on; of the
/// first owner that has any.
std::vector<std::size_t> record_columns(const Table& table, const RecordedQuantity& what) {
  const auto name = [&](const std::string& owner, std::size_t c) {
    const std::string axis = what.components == 1 ? what.axis : std::string(1, "xyzw"[c]);
    return owner + "/" + what.quantity + (axis.empty() ? "" : "/" + axis);
  };
  const auto found =
      std::ranges::find_if(what.owners, [&](const std::string& owner) { return table.has(name(owner, 0)); });
  const std::string& owner = found == what.owners.end() ? what.owners.front() : *found;
  std::vector<std::size_t> columns;
  for (std::size_t c = 0; c < what.components; ++c) columns.push_back(table.column(name(owner, c)));
  return columns;
}

MotionRecord file_record(const Table& table, const RecordedQuantity& what, Mistakes& mistakes) {
  const std::size_t time = table.column("time");
  const std::vector<std::size_t> columns = record_columns(table, what);
  const RecordRows rows{
      table.rows(), [&](std::size_t row) { return table.number(row, time, Dimension::time); },
      [&](std::size_t row, std::size_t c) { return table.number(row, columns[c], what.dimension, what.joint); },
      [&](std::size_t row, const std::string& expected) { table.refuse(row, time, expected); },
      [&](std::size_t row, const std::string& expected) { table.refuse(row, columns[0], expected); }};
  MotionRecord record;
  table.each_row(mistakes, [&](std::size_t row) { add_row(rows, row, what.components, what.turns, record); });
  return record;
}

MotionRecord listed_record(const View& view, const RecordedQuantity& what) {
  const std::vector<double> times = view["times"].numbers();
  const View values = view["values"];
  std::vector<View> rows;
  std::vector<std::vector<double>> numbers;
  const bool several = what.components > 1 || what.parts > 1;
  if (several != values.is_rows()) {
    values.refuse(several ? "a list of rows of " + std::to_string(std::max(what.components, what.parts)) + " numbers"
                          : "a list of numbers");
  }
  if (what.parts > 1) {
    rows = values.items();
    for (const View& row : rows) {
      if (row.node()->list.size() != what.parts) row.refuse(std::to_string(what.parts) + " numbers");
      numbers.push_back({row.number_at(what.part, what.dimension, *what.joint)});
    }
  } else if (what.components == 1) {
    for (const double x : values.numbers(what.dimension, what.joint)) numbers.push_back({x});
  } else {
    rows = values.items();
    for (const View& row : rows) numbers.push_back(row.numbers());
  }
  if (numbers.size() != times.size()) {
    values.refuse("a row for each of the " + std::to_string(times.size()) + " times");
  }
  const RecordRows all{times.size(), [&](std::size_t row) { return times[row]; },
                       [&](std::size_t row, std::size_t c) { return numbers[row][c]; },
                       [&](std::size_t, const std::string&) { view["times"].refuse("times that increase"); },
                       [&](std::size_t row, const std::string& expected) { rows[row].refuse(expected); }};
  MotionRecord record;
  for (std::size_t row = 0; row < all.count; ++row) add_row(all, row, what.components, what.turns, record);
  return record;
}

}  // namespace

const Table& ProblemReader::table_of(const View& file) const {
  if (!table_ || table_file_ != file.text()) {
    table_.reset();
    table_ = std::make_shared<Table>(directory_, file, mistakes_);
    table_file_ = file.text();
  }
  return *table_;
}

std::vector<double> ProblemReader::read_column(const View& file, std::span<const std::string> names,
                                               Dimension dimension, const JointType* joint) const {
  const Table& table = table_of(file);
  const auto found = std::ranges::find_if(names, [&](const std::string& name) { return table.has(name); });
  const std::size_t column = table.column(found == names.end() ? names.back() : *found);
  std::vector<double> values;
  table.each_row(mistakes_, [&](std::size_t row) { values.push_back(table.number(row, column, dimension, joint)); });
  if (table.has("time")) check_evenly_spaced(table, table.column("time"));
  return values;
}

MotionRecord ProblemReader::read_record(const View& view, const RecordedQuantity& what) const {
  return view.given("file") ? file_record(table_of(view["file"]), what, mistakes_) : listed_record(view, what);
}

}  // namespace backdrive::scene
