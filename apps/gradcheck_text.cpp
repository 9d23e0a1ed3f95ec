#include "apps/gradcheck_text.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <map>
#include <set>

#include "apps/console.h"
#include "apps/table.h"
#include "models/coordinates.h"

namespace backdrive::app {
namespace {

nlohmann::json row_json(const GradientCheckRow& r, const std::string& place) {
  nlohmann::json row = {{"place", place},
                        {"name", r.name},
                        {"unit", r.unit},
                        {"checked", r.count},
                        {"numbers", r.total},
                        {"worst_index", r.worst},
                        {"adjoint", r.adjoint},
                        {"differences",
                         {{"value", r.differences},
                          {"step", r.step},
                          {"error", r.differences_error},
                          {"tolerance", r.differences_tolerance}}},
                        {"dual", {{"value", r.dual}, {"error", r.dual_error}, {"tolerance", r.dual_tolerance}}},
                        {"tolerance_source", r.tolerance_source},
                        {"note", r.note},
                        {"used", r.used},
                        {"zero", r.zero},
                        {"rough", r.rough},
                        {"parted", r.parted},
                        {"unresolved", r.unresolved},
                        {"undecided", r.undecided},
                        {"gradient", r.gradient},
                        {"passed", r.passed}};
  if (const Float32Check& f = r.float32; f.done) {
    row["float32"] = {{"worst_index", f.worst},     {"adjoint", f.adjoint},       {"dual", f.dual},
                      {"error", f.error},           {"resolution", f.resolution}, {"tolerance", f.tolerance},
                      {"unresolved", f.unresolved}, {"passed", f.passed}};
  }
  if (const MacroscopicSlope& m = r.macroscopic; m.done) {
    row["over_distance"] = {{"worst_index", m.worst},
                            {"distance", m.distance},
                            {"slope", m.slope},
                            {"derivative", m.derivative},
                            {"parts", m.parts}};
  }
  return row;
}

nlohmann::json state_json(const Problem& problem) {
  nlohmann::json position = nlohmann::json::object(), velocity = nlohmann::json::object();
  const Topology& t = problem.model.topology;
  const std::vector<std::string> positions = position_names(problem.model), rates = velocity_names(problem.model);
  for (int k = 0; k < t.joint_nq; ++k) position[positions[k]] = problem.initial_position[k];
  for (int k = 0; k < t.joint_nv; ++k) velocity[rates[k]] = problem.initial_velocity[k];
  return {{"position", position}, {"velocity", velocity}};
}

/// Rows that no motion can depend on, or that are zero all round, say nothing new one by one.
bool is_plain_zero(const GradientCheckRow& row) {
  return row.passed && (!row.used || row.zero) && !row.macroscopic.parts;
}

void print_zeros(const GradientCheck& check) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (const GradientCheckRow& row : check.rows) {
    if (is_plain_zero(row)) by_reason[row.note.empty() ? "zero" : row.note].push_back(row.name);
  }
  for (const auto& [reason, names] : by_reason) {
    std::cout << '\n'
              << count(static_cast<long long>(names.size()), "row") << " with gradient zero (" << reason << "): ";
    for (size_t i = 0; i < names.size() && i < 4; ++i) std::cout << (i > 0 ? ", " : "") << names[i];
    std::cout << (names.size() > 4 ? ", ... (--all shows each)\n" : "\n");
  }
}

std::string per(const std::string& distance, const std::string& unit) {
  return unit.empty() || unit == "1" ? distance : distance + " " + unit;
}

template <class Shown>
void print_rows(const GradientCheck& check, Shown shown) {
  const Table::Align left = Table::Align::left;
  Table table({{"gradient of", left},
               {"per", left},
               {"checked"},
               {"worst at"},
               {"adjoint"},
               {"dual"},
               {"tolerance"},
               {"differences"},
               {"tolerance"},
               {"float32"},
               {"tolerance"},
               {"over"},
               {"slope there"},
               {"", left},
               {"", left}});
  for (const GradientCheckRow& r : check.rows) {
    if (!shown(r)) continue;
    const Float32Check& f = r.float32;
    const MacroscopicSlope& m = r.macroscopic;
    const bool taken = !std::isnan(r.differences) || !r.passed;
    std::string note = r.note;
    if (m.parts) note += std::string(note.empty() ? "" : "; ") + "parts from " + number(m.derivative);
    table.add({r.name, r.unit, std::to_string(r.count) + "/" + std::to_string(r.total), std::to_string(r.worst),
               number(r.adjoint), number(r.dual), number(r.dual_tolerance), taken ? number(r.differences) : "",
               taken ? number(r.differences_tolerance) : "", f.done ? number(f.adjoint) : "",
               f.done ? number(f.tolerance) : "", m.done ? per(number(m.distance), r.unit) : "",
               m.done ? number(m.slope) : "", r.passed ? green("pass") : red("FAIL"), note});
  }
  if (!table.empty()) std::cout << table.text() << '\n';
}

void print_places(const std::vector<CheckedPlace>& places) {
  Table table({{"place", Table::Align::left},
               {"loss"},
               {"numbers"},
               {"failed"},
               {"zero"},
               {"undecided"},
               {"unresolved"},
               {"in float32"},
               {"rough"},
               {"parted"},
               {"other slope"},
               {"s"},
               {"", Table::Align::left}});
  for (const CheckedPlace& p : places) {
    const GradientCheck& c = p.check;
    const auto failed = std::ranges::count_if(c.rows, [](const GradientCheckRow& r) { return !r.passed; });
    table.add({p.place.name, number(c.loss), std::to_string(c.numbers), std::to_string(failed),
               std::to_string(c.zero_rows), std::to_string(c.undecided_rows), std::to_string(c.unresolved_rows),
               std::to_string(c.float32_unresolved_rows), std::to_string(c.rough_rows), std::to_string(c.parted_rows),
               std::to_string(c.macroscopic_rows), number(c.seconds), p.place.words});
  }
  std::cout << '\n' << table.text();
}

void tell(int rows, const char* what) {
  if (rows > 0) std::cout << count(rows, "row") << what << '\n';
}

void print_counts(const std::vector<CheckedPlace>& places) {
  GradientCheck sum;
  for (const CheckedPlace& p : places) {
    sum.unresolved_rows += p.check.unresolved_rows;
    sum.undecided_rows += p.check.undecided_rows;
    sum.float32_unresolved_rows += p.check.float32_unresolved_rows;
    sum.rough_rows += p.check.rough_rows;
    sum.parted_rows += p.check.parted_rows;
    sum.macroscopic_rows += p.check.macroscopic_rows;
    sum.step_defect = std::max(sum.step_defect, p.check.step_defect);
  }
  const std::vector<std::string> zeros = zero_everywhere(places);
  if (!zeros.empty()) {
    std::cout << count(static_cast<long long>(zeros.size()), "row")
              << " zero at every place, which says little (--at, --seed, --states and the scene's own values choose "
                 "others): ";
    for (size_t i = 0; i < zeros.size() && i < 4; ++i) std::cout << (i > 0 ? ", " : "") << zeros[i];
    std::cout << (zeros.size() > 4 ? ", ...\n" : "\n");
  }
  if (sum.step_defect > 0) {
    std::cout << "steps in dual numbers end up to " << number(sum.step_defect)
              << " from the same steps in float64, as each solves contact to its own limits: where adjoint and dual "
                 "part, that is how they were held to each other\n";
  }
  tell(sum.undecided_rows,
       " undecided: rounding moves what adjoint and dual numbers are compared in by more than a tenth of the gradient; "
       "a "
       "shorter run is less sensitive");
  tell(sum.unresolved_rows,
       " whose differences resolve no more than a tenth of the gradient: there the dual numbers alone count");
  tell(sum.float32_unresolved_rows, " of which float32 resolves no more than a tenth: use float64 for these");
  tell(sum.rough_rows,
       " without a difference to compare with: the motion is rough or chaotic there (contacts that come and go, a long "
       "run); adjoint and dual agree");
  tell(sum.parted_rows,
       " where adjoint and dual agree and the loss goes on otherwise over the distance of the differences");
  tell(sum.macroscopic_rows,
       " where the loss's slope over a distance that a user moves (--distance) is another than its derivative: an "
       "optimiser that goes so far will not find what the gradient says");
}

}  // namespace

bool all_passed(const std::vector<CheckedPlace>& places) {
  return std::ranges::all_of(places, [](const CheckedPlace& p) { return p.check.passed; });
}

std::vector<std::string> zero_everywhere(const std::vector<CheckedPlace>& places) {
  std::vector<std::string> names;
  for (std::size_t i = 0; !places.empty() && i < places[0].check.rows.size(); ++i) {
    const auto zero = [i](const CheckedPlace& p) { return p.check.rows[i].used && p.check.rows[i].zero; };
    if (std::ranges::all_of(places, zero)) names.push_back(places[0].check.rows[i].name);
  }
  return names;
}

nlohmann::json gradcheck_json(const Scene& scene, const std::vector<CheckedPlace>& places) {
  nlohmann::json rows = nlohmann::json::array(), at = nlohmann::json::array();
  nlohmann::json object = {{"scene", scene.name}, {"passed", all_passed(places)}};
  const std::vector<std::pair<const char*, int GradientCheck::*>> counts = {
      {"numbers", &GradientCheck::numbers},
      {"zero_rows", &GradientCheck::zero_rows},
      {"unresolved_rows", &GradientCheck::unresolved_rows},
      {"undecided_rows", &GradientCheck::undecided_rows},
      {"float32_unresolved_rows", &GradientCheck::float32_unresolved_rows},
      {"rough_rows", &GradientCheck::rough_rows},
      {"parted_rows", &GradientCheck::parted_rows},
      {"macroscopic_rows", &GradientCheck::macroscopic_rows}};
  for (const auto& [name, member] : counts) object[name] = 0;
  double seconds = 0;
  for (const CheckedPlace& p : places) {
    nlohmann::json place = {{"place", p.place.name},
                            {"words", p.place.words},
                            {"loss", p.check.loss},
                            {"passed", p.check.passed},
                            {"seconds", p.check.seconds},
                            {"state", state_json(p.place.problem)},
                            {"step_defect", p.check.step_defect}};
    for (const auto& [name, member] : counts) {
      place[name] = p.check.*member;
      object[name] = object[name].get<int>() + p.check.*member;
    }
    at.push_back(std::move(place));
    for (const GradientCheckRow& r : p.check.rows) rows.push_back(row_json(r, p.place.name));
    seconds += p.check.seconds;
  }
  object["zero_everywhere"] = zero_everywhere(places);
  object["seconds"] = seconds;
  object["places"] = std::move(at);
  object["rows"] = std::move(rows);
  return object;
}

void print_gradcheck(const Scene& scene, const std::vector<CheckedPlace>& places, bool all) {
  std::string tolerances;
  std::set<std::string> seen;  // not zero at a place before
  int numbers = 0;
  double seconds = 0;
  std::size_t failed = 0, rows = 0;
  for (std::size_t k = 0; k < places.size(); ++k) {
    const CheckedPlace& p = places[k];
    std::cout << (k > 0 ? "\n" : "") << scene.name << " at " << p.place.name
              << (p.place.words.empty() ? "" : " (" + p.place.words + ")") << ": loss " << exact(p.check.loss)
              << "\n\n";
    print_rows(p.check, [&](const GradientCheckRow& r) {
      return all || !r.passed || (!is_plain_zero(r) && !seen.contains(r.name));
    });
    if (!all && k == 0) print_zeros(p.check);
    for (const GradientCheckRow& r : p.check.rows) {
      if (!is_plain_zero(r)) seen.insert(r.name);
      failed += !r.passed;
      if (tolerances.empty()) tolerances = r.tolerance_source;
    }
    if (!p.check.passed && p.place.name != "scene") {
      std::string word = p.place.name;
      std::ranges::replace(word, ' ', ':');
      std::cout << "here alone: the same command with --at " << word << '\n';
    }
    rows += p.check.rows.size();
    numbers += p.check.numbers;
    seconds += p.check.seconds;
  }
  if (!tolerances.empty()) std::cout << "\ntolerances of " << tolerances << '\n';
  print_places(places);
  std::cout << '\n'
            << count(numbers, "number") << " checked in " << number(seconds) << " s: "
            << (failed == 0
                    ? green("all pass")
                    : red(count(static_cast<long long>(failed), "row") + " of " + std::to_string(rows) + " failed"))
            << '\n';
  print_counts(places);
}

}  // namespace backdrive::app
