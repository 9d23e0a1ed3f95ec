#include "tests/autodiff/program_machine.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "models/builder.h"
#include "models/parameter_list.h"
#include "tests/autodiff/program_custom.h"
#include "tests/autodiff/program_model.h"
#include "tests/support/policy.h"

namespace backdrive::test {
namespace {

constexpr double kTimeStep = 0.01;
constexpr int kMostTapes = 4;

plain::Numbers numbers_of(const Buffer<double>& buffer) {
  plain::Numbers numbers;
  for (int r = 0; r < buffer.rows(); ++r) {
    for (int w = 0; w < buffer.worlds(); ++w) numbers.push_back(buffer(r, w));
  }
  return numbers;
}

/// Some parameters of a new model differ from world to world.
void spread_some(Model& model, int worlds, Random& random) {
  if (random.chance(0.5)) return;
  for (Parameter* p : {&model.bodies.mass, &model.joints.damping, &model.gravity, &model.joints.frame.position}) {
    if (random.chance(0.5)) continue;
    p->spread(worlds);
    for (int w = 0; w < worlds; ++w) {
      for (int i = 0; i < p->items(); ++i) p->at(i, 0, w) *= 1 + 0.1 * w;
    }
  }
  validate(model);
}

}  // namespace

ProgramMachine::ProgramMachine(const Program& program, plain::Fault fault, Memory& memory)
    : program_(program), memory_(memory), reference_(fault) {
  Random random(program.dice);
  model_ = std::make_unique<Model>(program_model(program.joints, program.dice, 0));
  spread_some(*model_, program.worlds, random);
  set_requires_grad(*model_, random.chance(0.5) ? "*" : random_path(*model_, random), true);
  options_.time_step = kTimeStep;
  for (int k = 0; k < 2; ++k) {
    const int q = new_leaf(random, program.joints, 0.3, "q"), qd = new_leaf(random, program.joints, 1, "q̇");
    states_.emplace_back(q, qd);
  }
}

void ProgramMachine::execute(const Command& command) {
  Random random(command.dice);
  switch (command.kind) {
    case CommandKind::new_tape:
      return new_tape();
    case CommandKind::record:
      return record(random);
    case CommandKind::step:
      return step(random);
    case CommandKind::custom:
      return custom(random);
    case CommandKind::switch_grad:
      return switch_grad(random);
    case CommandKind::replace:
      return replace(random);
    case CommandKind::detach:
      return detach(random);
    case CommandKind::drop:
      return drop(random);
    case CommandKind::move:
      return move(random);
    case CommandKind::backward:
      return backward(pick_tape(random), random);
    case CommandKind::use_spent:
      for (const auto& tape : tapes_) {
        if (tape->spent) use_spent(*tape);
      }
  }
}

void ProgramMachine::finish() {
  Random random(program_.dice + 1);
  for (const auto& tape : tapes_) {
    if (!tape->spent && !tape->ops.empty()) backward(*tape, random);
  }
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    if (!buffers_[s].empty() && numbers_of(buffers_[s]) != slots_[s].numbers) {
      throw std::runtime_error("somebody wrote to #" + std::to_string(s));
    }
  }
}

// ---- choosing -------------------------------------------------------------------------------------------------------

int ProgramMachine::pick_slot(Random& random, int rows) {
  std::vector<int> fitting;
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    if (!buffers_[s].empty() && (rows == 0 || slots_[s].rows == rows)) fitting.push_back(static_cast<int>(s));
  }
  if (fitting.empty()) return -1;
  // Rather a late one: long chains of operations.
  const double u = random.uniform(0, 1);
  return fitting[fitting.size() - 1 - static_cast<std::size_t>(u * u * static_cast<double>(fitting.size()))];
}

int ProgramMachine::pick_any_slot(Random& random) {
  return pick_slot(random, 0);
}

std::pair<int, int> ProgramMachine::pick_state(Random& random) {
  const double u = random.uniform(0, 1);
  const auto state =
      states_[states_.size() - 1 - static_cast<std::size_t>(u * u * static_cast<double>(states_.size()))];
  const bool there = !buffers_[state.first].empty() && !buffers_[state.second].empty();
  if (there && random.chance(0.8)) return state;
  // Anything of the right shape, one for both too.
  const int q = pick_slot(random, program_.joints), qd = pick_slot(random, program_.joints);
  if (q >= 0 && qd >= 0) return {q, qd};
  return {new_leaf(random, program_.joints, 0.3, "q"), new_leaf(random, program_.joints, 1, "q̇")};
}

ProgramMachine::RecordedTape& ProgramMachine::pick_tape(Random& random) {
  std::vector<RecordedTape*> live;
  for (const auto& tape : tapes_) {
    if (!tape->spent) live.push_back(tape.get());
  }
  if (live.empty()) {
    new_tape();
    return *tapes_.back();
  }
  return *live[random.index(static_cast<int>(live.size()))];
}

std::string ProgramMachine::name(const RecordedTape& tape) const {
  for (std::size_t k = 0; k < tapes_.size(); ++k) {
    if (tapes_[k].get() == &tape) return "tape " + std::to_string(k);
  }
  return "no tape";
}

int ProgramMachine::add_slot(const Buffer<double>& buffer, const std::string& what) {
  slots_.push_back({buffer.rows(), numbers_of(buffer), -1});
  buffers_.push_back(buffer);
  story_ << "#" << slots_.size() - 1 << " = " << what << "\n";
  return static_cast<int>(slots_.size()) - 1;
}

int ProgramMachine::new_leaf(Random& random, int rows, double bound, const char* what) {
  Buffer<double> buffer(memory_, rows, worlds());
  for (int r = 0; r < rows; ++r) {
    for (int w = 0; w < worlds(); ++w) buffer.set(r, w, random.symmetric(bound));
  }
  return add_slot(buffer, what);
}

void ProgramMachine::keep(RecordedTape& tape, plain::Op op) {
  made_.insert(op.out.begin(), op.out.end());
  tape.ops.push_back(std::move(op));
}

State<double> ProgramMachine::state(std::pair<int, int> slots) const {
  State<double> result;
  result.q = buffers_[slots.first];
  result.qd = buffers_[slots.second];
  return result;
}

std::shared_ptr<const plain::Model> ProgramMachine::snapshot() const {
  return std::make_shared<const plain::Model>(plain::snapshot(*model_));
}

// ---- recording ------------------------------------------------------------------------------------------------------

void ProgramMachine::new_tape() {
  const auto live = std::count_if(tapes_.begin(), tapes_.end(), [](const auto& t) { return !t->spent; });
  if (live >= kMostTapes) return;
  tapes_.push_back(std::make_unique<RecordedTape>(RecordedTape{Tape<double>(memory_), {}}));
  story_ << "new tape " << tapes_.size() - 1 << "\n";
}

void ProgramMachine::record(Random& random) {
  RecordedTape& tape = pick_tape(random);
  RolloutOptions options = options_;
  options.steps = 1 + random.index(6);
  const auto [q, qd] = pick_state(random);
  plain::Op op{plain::OpKind::rollout, {q, qd}, {}, options.steps, 1, snapshot()};
  Control<double> control;
  if (random.chance(0.75)) {
    const int rows = options.steps * model_->topology.nu;
    int u = random.chance(0.5) ? pick_slot(random, rows) : -1;
    if (u < 0) u = new_leaf(random, rows, 1, "controls");
    op.in.push_back(u);
    control.u = buffers_[u];
  }
  const std::string what = "of a rollout of " + std::to_string(options.steps) + " steps from #" + std::to_string(q) +
                           ", #" + std::to_string(qd) +
                           (op.in.size() > 2 ? " under #" + std::to_string(op.in[2]) : "") + " on " + name(tape);
  const Trajectory<double> t = rollout(tape.tape, *model_, state({q, qd}), control, options);
  if (t.any_stopped()) throw std::runtime_error("a world stopped: the models are to be tame");
  op.out = {add_slot(t.final.q, "final q " + what), add_slot(t.final.qd, "final q̇ " + what),
            add_slot(t.q, "all q " + what), add_slot(t.qd, "all q̇ " + what)};
  states_.emplace_back(op.out[0], op.out[1]);
  keep(tape, std::move(op));
}

void ProgramMachine::step(Random& random) {
  RecordedTape& tape = pick_tape(random);
  const int n = program_.joints, rows = model_->topology.nu * (2 * n + 1);
  const auto [q, qd] = pick_state(random);
  int gains = random.chance(0.6) ? pick_slot(random, rows) : -1;
  if (gains < 0) gains = new_leaf(random, rows, 0.5, "gains");
  const Control<double> control = apply_policy(&tape.tape, *model_, buffers_[gains], state({q, qd}));
  const std::string from = "#" + std::to_string(q) + ", #" + std::to_string(qd);
  const int u = add_slot(control.u, "policy #" + std::to_string(gains) + " of " + from + " on " + name(tape));
  keep(tape, {plain::OpKind::policy, {gains, q, qd}, {u}});
  plain::Op op{plain::OpKind::rollout, {q, qd, u}, {}, 1, 1, snapshot()};
  const State<double> next = backdrive::step(tape.tape, *model_, state({q, qd}), control, options_);
  const std::string what = " after a step from " + from + " under #" + std::to_string(u) + " on " + name(tape);
  op.out = {add_slot(next.q, "q" + what), add_slot(next.qd, "q̇" + what), -1, -1};
  states_.emplace_back(op.out[0], op.out[1]);
  keep(tape, std::move(op));
}

void ProgramMachine::custom(Random& random) {
  RecordedTape& tape = pick_tape(random);
  const int a = pick_any_slot(random), b = pick_slot(random, slots_[a].rows);
  using enum plain::OpKind;
  plain::OpKind kind = std::array{product, sum, sine, scaled}[random.index(4)];
  double size = 0;
  for (const double x : slots_[a].numbers) size = std::max(size, std::abs(x));
  for (const double x : slots_[b].numbers) size = std::max(size, std::abs(x));
  if (size > 2) kind = sine;  // what comes of it may drive a model, which is to stay tame
  plain::Op op{kind, {a}, {}, 0, random.symmetric(1)};
  if (kind == product || kind == sum) op.in.push_back(b);
  static const char* const names[] = {"product", "sum", "sine", "multiple"};
  const Buffer<double> y = custom_operation(tape.tape, kind, buffers_[a], buffers_[op.in.back()], op.factor);
  op.out = {add_slot(y, std::string(names[static_cast<int>(kind) - static_cast<int>(product)]) + " of #" +
                            std::to_string(a) + ", #" + std::to_string(op.in.back()) + " on " + name(tape))};
  if (slots_[a].rows == program_.joints) states_.emplace_back(op.out[0], random.chance(0.5) ? op.out[0] : a);
  keep(tape, std::move(op));
}

void ProgramMachine::detach(Random& random) {
  const auto copy = [&](int from) {
    const int to = add_slot(detached(buffers_[from], memory_), "detached #" + std::to_string(from));
    slots_[to].detached_from = from;
    return to;
  };
  if (random.chance(0.6)) {
    const auto [q, qd] = pick_state(random);
    const int copied = copy(q);
    states_.emplace_back(copied, random.chance(0.5) ? copy(qd) : qd);
  } else {
    copy(pick_any_slot(random));
  }
}

// ---- what happens to the model and the tapes in between -------------------------------------------------------------

void ProgramMachine::switch_grad(Random& random) {
  const std::string path = random_path(*model_, random);
  const bool on = random.chance(0.5);
  set_requires_grad(*model_, path, on);
  story_ << "requires_grad of " << path << (on ? " on" : " off") << "\n";
}

void ProgramMachine::replace(Random& random) {
  const std::uint64_t values = 1 + random.index(1000);
  const Model other = program_model(program_.joints, program_.dice, values);
  const auto table = fields();
  const Field& field = table[random.index(static_cast<int>(table.size()))];
  Parameter& own = field.of(*model_);
  switch (random.index(5)) {
    case 0:
      story_ << "new values of " << field.leaf << "\n";
      for (int i = 0; i < own.items(); ++i) {
        for (int c = 0; c < own.components(); ++c) own.set(i, c, field.in(other)(i, c));
      }
      break;
    case 1:  // uniform from here on, and nobody asks for it
      story_ << "a new Parameter for " << field.leaf << "\n";
      own = field.in(other);
      break;
    case 2:
      story_ << "new bodies and shapes\n";
      model_->bodies = other.bodies;
      model_->shapes = other.shapes;
      break;
    case 3:
      story_ << "a new model\n";
      model_.reset();
      model_ = std::make_unique<Model>(other);
      spread_some(*model_, worlds(), random);
      set_requires_grad(*model_, random_path(*model_, random), true);
      break;
    case 4:
      story_ << field.leaf << " for each world\n";
      own.spread(worlds());
      break;
  }
  validate(*model_);
}

void ProgramMachine::drop(Random& random) {
  if (random.chance(0.5)) {
    const int slot = pick_any_slot(random);
    story_ << "drop the handle of #" << slot << "\n";
    buffers_[slot] = Buffer<double>();
    if (pick_any_slot(random) < 0) states_.emplace_back(pick_state(random));
    return;
  }
  RecordedTape& tape = pick_tape(random);
  story_ << "drop " << name(tape) << "\n";
  { const Tape<double> gone = std::move(tape.tape); }
  tape.tape = Tape<double>(memory_);
  tape.ops.clear();
}

void ProgramMachine::move(Random& random) {
  RecordedTape& from = pick_tape(random);
  RecordedTape& to = pick_tape(random);
  if (&from == &to || random.chance(0.5)) {
    Tape<double> other = std::move(from.tape);
    use_spent(from);
    from.tape = std::move(other);
    story_ << "move " << name(from) << "\n";
    return;
  }
  to.tape = std::move(from.tape);
  to.ops = std::move(from.ops);
  from.ops.clear();
  from.spent = true;
  story_ << "move " << name(from) << " over " << name(to) << "\n";
  use_spent(from);
}

}  // namespace backdrive::test
