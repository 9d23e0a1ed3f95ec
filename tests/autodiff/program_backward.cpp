// The backward of a program's tape, and its comparison with the reference.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>

#include "engine/error.h"
#include "models/parameter_list.h"
#include "tests/autodiff/program_custom.h"
#include "tests/autodiff/program_machine.h"

namespace backdrive::test {
namespace {

// Both sides round in each of some hundred operations of a step, and a program chains some tens of steps: errors of
// some hundreds of ε of the largest number that was added up. Smoothed friction bends within kFrictionVelocity and
// limits within kLimitRamp, which makes 100 ε of an error of ε in a velocity of 1: together some 1e4 ε. In 9000
// programs the largest error was 2.4e3 ε; planted faults are of the order of 1.
constexpr double kTolerance = 2e4 * std::numeric_limits<double>::epsilon();
// The same for a block whose own terms vanish (a turned sphere), where the library's terms cancel instead.
constexpr double kOfTheWhole = 1e-3;

/// All bytes of a buffer with its padding.
std::vector<double> bytes_of(const Buffer<double>& buffer) {
  return {buffer.row(0), buffer.row(0) + static_cast<std::ptrdiff_t>(buffer.rows()) * buffer.stride()};
}

double largest(const plain::Numbers& numbers) {
  double result = 0;
  for (const double x : numbers) result = std::max(result, std::abs(x));
  return result;
}

/// Whether the action is refused as wrong use.
template <class Action>
bool refused(Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.kind() == ErrorKind::usage;
  }
  return false;
}

}  // namespace

Seeds<double> ProgramMachine::random_seeds(const RecordedTape& tape, Random& random, plain::Question& question) {
  std::set<int> known;
  for (const plain::Op& op : tape.ops) {
    for (const std::vector<int>* list : {&op.in, &op.out}) known.insert(list->begin(), list->end());
  }
  Seeds<double> seeds;
  const auto add = [&](int slot) {
    Buffer<double> cotangent(memory_, slots_[slot].rows, worlds());
    for (int r = 0; r < cotangent.rows(); ++r) {
      for (int w = 0; w < worlds(); ++w) cotangent.set(r, w, random.symmetric(1));
    }
    if (random.chance(0.1)) cotangent = buffers_[slot];  // a seed may be the very buffer it is a seed of
    seeds.add(buffers_[slot], cotangent);
    plain::Numbers numbers;
    for (int r = 0; r < cotangent.rows(); ++r) {
      for (int w = 0; w < worlds(); ++w) numbers.push_back(cotangent(r, w));
    }
    question.seeds.push_back({slot, std::move(numbers)});
    story_ << (question.seeds.size() > 1 ? ", #" : " #") << slot;
  };
  for (const int slot : known) {
    if (slot < 0 || buffers_[slot].empty()) continue;
    if (random.chance(0.4)) add(slot);
    if (random.chance(0.1)) add(slot);
  }
  story_ << "\n";
  return seeds;
}

void ProgramMachine::backward(RecordedTape& tape, Random& random) {
  plain::Question question{&slots_, tape.ops, {}, worlds(), options_.time_step, snapshot()};
  story_ << "backward of " << name(tape) << " with seeds of";
  const Seeds<double> seeds = random_seeds(tape, random, question);
  std::vector<std::pair<std::uint64_t, std::vector<double>>> before;
  for (const auto& entry : seeds.entries()) before.emplace_back(entry.cotangent.version(), bytes_of(entry.cotangent));
  const plain::Answer want = reference_.answer(question);
  if (want.refused) {
    if (!refused([&] { gradients_of(std::move(tape.tape), seeds); })) {
      throw std::runtime_error("models of different shape on one tape were not refused");
    }
    ++counts_.refusals;
  } else {
    compare(gradients_of(std::move(tape.tape), seeds), want, tape);
    ++counts_.backwards;
  }
  tape.spent = true;
  for (std::size_t k = 0; k < before.size(); ++k) {
    const Buffer<double>& seed = seeds.entries()[k].cotangent;
    const std::vector<double> now = bytes_of(seed);
    if (seed.version() != before[k].first ||
        std::memcmp(now.data(), before[k].second.data(), now.size() * sizeof(double)) != 0) {
      throw std::runtime_error("a seed was written to");
    }
  }
  use_spent(tape);
}

void ProgramMachine::use_spent(RecordedTape& tape) {
  const Buffer<double> a(memory_, 1, 1), b(memory_, 1, 1);
  const State<double> start(*model_, worlds(), memory_);
  const bool all = tape.tape.nodes() == 0 && refused([&] { gradients_of(std::move(tape.tape), Seeds<double>()); }) &&
                   refused([&] { rollout<double>(tape.tape, *model_, start, {}, options_); }) && refused([&] {
                     tape.tape.record({{a}, {b}, [](Cotangents<double>&) {}});
                   }) &&
                   refused([&] { tape.tape.check_recording(); });
  if (!all) throw std::runtime_error(name(tape) + " is spent or was moved from, and still works");
}

// ---- comparison -----------------------------------------------------------------------------------------------------

void ProgramMachine::compare_number(const std::string& what, double got, double want, double scale) {
  const double error = std::abs(got - want), tolerance = kTolerance * scale;
  if (error <= tolerance) {
    if (error > 0) counts_.worst = std::max(counts_.worst, error / tolerance);
    return;
  }
  std::ostringstream text;
  text.precision(17);
  text << what << " differs: " << got << ", by the reference " << want << ", tolerance " << tolerance;
  throw std::runtime_error(text.str());
}

void ProgramMachine::compare(const Gradients<double>& got, const plain::Answer& want, const RecordedTape& tape) {
  const auto compare_all = [&](const std::string& what, const plain::Numbers& a, const plain::Numbers& b,
                               double scale) {
    if (a.size() != b.size()) throw std::runtime_error(what + " has another shape");
    for (std::size_t i = 0; i < a.size(); ++i) compare_number(what, a[i], b[i], scale);
  };
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    if (want.values[s].empty()) continue;
    compare_all("value of #" + std::to_string(s), slots_[s].numbers, want.values[s], largest(want.values[s]));
  }
  double whole = 0;
  for (const auto& [slot, block] : want.buffers) whole = std::max(whole, largest(block.magnitudes));
  for (const auto& field : want.fields) whole = std::max(whole, largest(field.block.magnitudes));
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    if (buffers_[s].empty()) continue;
    const std::string what = "gradient of #" + std::to_string(s);
    const auto block = want.buffers.find(static_cast<int>(s));
    if (got.has(buffers_[s]) != (block != want.buffers.end())) {
      throw std::runtime_error(what + (got.has(buffers_[s]) ? " is there, but no input of " : " is missing for ") +
                               name(tape));
    }
    if (block == want.buffers.end()) continue;
    counts_.foreign_inputs += made_.contains(static_cast<int>(s));
    const Buffer<double>& gradient = got.of(buffers_[s]);
    plain::Numbers numbers;
    for (int r = 0; r < gradient.rows(); ++r) {
      for (int w = 0; w < gradient.worlds(); ++w) numbers.push_back(gradient(r, w));
    }
    compare_all(what, numbers, block->second.values, largest(block->second.magnitudes) + kOfTheWhole * whole);
  }
  compare_fields(got.parameters(), want, whole);
  if (got.stopped_worlds() != 0) throw std::runtime_error("worlds stopped: the models are to be tame");
}

void ProgramMachine::compare_fields(const Parameters& got, const plain::Answer& want, double whole) {
  const auto table = fields();
  for (std::size_t f = 0; f < table.size(); ++f) {
    const Parameter& gradient = table[f].in(got);
    const std::string what = "gradient of " + std::string(table[f].leaf);
    if (want.fields.empty()) {
      if (gradient.items() != 0) throw std::runtime_error(what + ": there is no model on the tape");
      continue;
    }
    const plain::FieldGradient& wanted = want.fields[f];
    if (gradient.items() != wanted.items || gradient.components() != wanted.tangents ||
        gradient.worlds() != wanted.worlds) {
      throw std::runtime_error(what + " has another shape");
    }
    const double scale = largest(wanted.block.magnitudes) + kOfTheWhole * whole;
    std::size_t at = 0;
    for (int w = 0; w < wanted.worlds; ++w) {
      for (int i = 0; i < wanted.items; ++i) {
        if (gradient.requires_grad(i) != wanted.asked[i]) throw std::runtime_error(what + " differs in who asked");
        for (int t = 0; t < wanted.tangents; ++t) {
          // What was not asked for is zero to the bit.
          compare_number(what, gradient(i, t, w), wanted.block.values[at++], wanted.asked[i] ? scale : 0);
        }
      }
    }
  }
}

}  // namespace backdrive::test
