// Prints a hash of the bits of every scene's motion, loss and gradients, for each precision and integrator: what a
// change that must not move a bit is held to. With one compiler and one instruction set (BACKDRIVE_ISA) the lines of
// two builds are the same or a bit differs; other compilers contract other sums.
//
//   scene_hashes scenes/*.yaml > before;  ...;  scene_hashes scenes/*.yaml | diff before -
//
// --without PART leaves out gradients of parameters whose path has that part: those that the other build does not know.
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "autodiff/problem/loss.h"
#include "engine/error.h"
#include "integrators/kernels.h"
#include "models/parameter_list.h"
#include "scenes/scene.h"

namespace backdrive::benchmarks {
namespace {

/// A pack of the widest lanes and some: the last group has padding.
constexpr int kWorlds = 19;
constexpr int kMostSteps = 240;

std::string left_out;

/// FNV-1a, 64 bits.
class Hash {
 public:
  void add(const void* bytes, std::size_t count) {
    const auto* at = static_cast<const unsigned char*>(bytes);
    for (std::size_t k = 0; k < count; ++k) value_ = (value_ ^ at[k]) * 1099511628211ull;
  }
  template <class T>
  void add(const Buffer<T>& buffer) {
    for (int row = 0; row < buffer.rows(); ++row) add(buffer.row(row), sizeof(T) * buffer.worlds());
  }
  void add(const Parameters& parameters) {
    for (const Field& field : fields()) {
      if (!left_out.empty() && field.leaf.find(left_out) != std::string_view::npos) continue;
      const Parameter& p = field.in(parameters);
      for (int w = 0; w < p.worlds(); ++w) {
        for (int i = 0; i < p.items(); ++i) {
          for (int k = 0; k < p.components(); ++k) {
            const double x = p(i, k, w);
            add(&x, sizeof x);
          }
        }
      }
    }
  }
  unsigned long long value() const { return value_; }

 private:
  unsigned long long value_ = 14695981039346656037ull;
};

template <class T>
std::string hashes_of(const Problem& problem) {
  RolloutOptions options;
  options.time_step = problem.simulation.time_step;
  options.steps = problem.simulation.steps;
  options.keep_contact = true;
  State<T> state = initial_state<T>(problem, kWorlds);
  const Control<T> control = initial_control<T>(problem, kWorlds);
  // Worlds that differ, so that every lane counts.
  for (int r = 0; r < state.qd.rows(); ++r) {
    for (int w = 0; w < kWorlds; ++w) state.qd.set(r, w, state.qd.row(r)[w] + T(0.01) * T((r + 3 * w) % 7 - 3));
  }
  Tape<T> tape;
  const State<T> start = place_bodies(&tape, problem.model, state, options);
  const Trajectory<T> trajectory = rollout(tape, problem.model, start, control, options);
  Hash forward, backward;
  forward.add(trajectory.q), forward.add(trajectory.velocity()), forward.add(trajectory.contact);
  const LossResult<T> loss = evaluate_loss<T>(problem, trajectory, control, options, &tape);
  forward.add(loss.terms);
  Seeds<T> seeds = loss.seeds;
  // Every state counts a little, whatever the loss reads.
  for (const Buffer<T>& target : {trajectory.q, trajectory.velocity()}) {
    Buffer<T> small(tape.memory(), target.rows(), target.worlds());
    small.fill(T(1e-3));
    seeds.add(target, small);
  }
  const Gradients<T> gradients = std::move(tape).backward(seeds, Disconnected::zero);
  for (const Buffer<T>& input : {state.q, state.qd, control.u}) {
    if (input.rows() > 0 && gradients.has(input)) backward.add(gradients.of(input));
  }
  backward.add(gradients.parameters());
  char line[80];
  std::snprintf(line, sizeof line, "motion %016llx gradient %016llx stopped %d", forward.value(), backward.value(),
                gradients.stopped_worlds());
  return line;
}

void print_hashes(const std::string& path, const char* integrator) {
  const std::vector<Override> overrides{{"simulation/integrator", integrator}};
  const char* const precisions[] = {"float32", "float64"};
  for (const char* precision : precisions) {
    std::string line;
    try {
      Scene scene = load_scene(path, overrides);
      Problem& problem = scene.problem;
      if (problem.simulation.steps > kMostSteps) problem.simulation.steps = kMostSteps;
      for (const char* all : {"bodies", "joints", "gravity", "shapes"}) {
        if (std::strcmp(all, "shapes") == 0 && problem.model.shape_names.empty()) continue;
        set_requires_grad(problem.model, all, true);
      }
      line = std::strcmp(precision, "float32") == 0 ? hashes_of<float>(problem) : hashes_of<double>(problem);
    } catch (const Error& error) {
      line = std::string("refused: ") + error.what();
    }
    std::printf("%s %s %s %s %s\n", path.c_str(), integrator, to_string(kernel_isa()), precision, line.c_str());
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace backdrive::benchmarks

int main(int count, char** paths) {
  if (count < 2) {
    std::fprintf(stderr, "usage: scene_hashes [--without PART] SCENE...\n");
    return 2;
  }
  for (int k = 1; k < count; ++k) {
    if (std::strcmp(paths[k], "--without") == 0 && k + 1 < count) {
      backdrive::benchmarks::left_out = paths[++k];
      continue;
    }
    for (const char* integrator : {"featherstone", "semi_implicit"}) {
      backdrive::benchmarks::print_hashes(paths[k], integrator);
    }
  }
}
