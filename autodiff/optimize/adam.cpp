#include "autodiff/optimize/adam.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "autodiff/optimize/adam_kernels.h"
#include "engine/kernel_array.h"
#include "engine/launch.h"
#include "engine/parallel.h"

namespace backdrive {
namespace {

/// Shares of the worlds that are summed up side by side.
constexpr int kShares = 256;

/// The starts of one device: column k of every table is start ids_[k].
class AdamBatch {
 public:
  AdamBatch(Search& search, BatchObjective& objective, std::span<const int> starts)
      : search_(search),
        objective_(objective),
        memory_(objective.memory()),
        staging_(Memory::pinned(memory_.device())),
        lower_(search.bounds().lower, memory_),
        upper_(search.bounds().upper, memory_),
        ids_(starts.begin(), starts.end()),
        running_(static_cast<int>(starts.size())) {
    summaries_ = memory_.allocate(kShares * sizeof(AdamSummary));
    summary_ = staging_.allocate(sizeof(AdamSummary));
    resize(columns());
    Buffer<double> x(staging_, objective.numbers(), columns()), scalars(staging_, kScalars, columns());
    double *const rows = x.write(), *const rate = scalars.write(kRate), *const best = scalars.write(kBestLoss);
    for (int k = 0; k < columns(); ++k) {
      const std::vector<double>& start = search.start(ids_[k]).x;
      for (int i = 0; i < x.rows(); ++i) rows[static_cast<std::size_t>(i) * x.stride() + k] = start[i];
      rate[k] = search.options().learning_rate;
      best[k] = std::numeric_limits<double>::infinity();
    }
    vectors_[kX].copy_from(x);
    vectors_[kBestX].copy_from(x);
    scalars_.copy_from(scalars);
    if (DeviceBackend* const backend = memory_.backend()) backend->synchronize();  // x and scalars go
  }

  int columns() const { return static_cast<int>(ids_.size()); }
  int running() const { return running_; }

  /// One iteration. On a device it returns at once.
  void post(int evaluation) {
    if (running_ == 0) return;
    objective_.evaluate(vectors_[kX], loss_, gradient_);
    DeviceBackend* const backend = memory_.backend();
    const AdamState state = state_now();
    const OptimizeOptions& o = search_.options();
    for_each_index(backend, 1, columns(),
                   AdamStep{state,
                            {lower_.data(), upper_.data(), o.tolerance, o.iterations},
                            loss_.address(),
                            gradient_.address(),
                            objective_.status().address(),
                            evaluation});
    auto* const summaries = reinterpret_cast<AdamSummary*>(summaries_.get());
    const int shares = std::min(kShares, columns());
    for_each_index(backend, 1, shares, SummarizeShare{state, columns(), shares, summaries});
    for_each_index(backend, 1, 1, SummarizeAll{summaries, shares});
    if (backend) {
      backend->download(summary_.get(), summaries, sizeof(AdamSummary));
    } else {
      std::copy_n(summaries_.get(), sizeof(AdamSummary), summary_.get());
    }
  }

  /// Waits for the iteration and tells the search of it.
  void collect() {
    if (running_ == 0) return;
    if (DeviceBackend* const backend = memory_.backend()) backend->synchronize();
    const AdamSummary& s = *reinterpret_cast<const AdamSummary*>(summary_.get());
    search_.count(running_, objective_.windows(), s.best_loss);
    running_ = s.running;
    StartResult& best = search_.start(ids_[s.best_world]);
    best.loss = s.best_loss;
    best.gradient_norm = s.best_norm;
    // Where the goal was reached, what this iteration would have moved on to is of no interest.
    best.iterations = s.best_iterations - (s.best_running && search_.goal_reached());
  }

  /// Hands the results of all starts to the search; `evaluation` was the last one.
  void finish(int evaluation) {
    const Buffer<int> counts = counts_.clone(staging_);
    std::vector<int> all(columns());
    std::iota(all.begin(), all.end(), 0);
    hand_over(all, counts, evaluation);
  }

  /// Takes the starts that have stopped out of the batch when there are enough of them.
  void compact(int evaluation) {
    const bool worthwhile = memory_.backend() ? 2 * running_ <= columns() : running_ < columns();
    if (!worthwhile || running_ == 0) return;
    const Buffer<int> counts = counts_.clone(staging_);
    std::vector<int> stopped, kept;
    for (int k = 0; k < columns(); ++k) {
      const bool running = counts(kOutcome, k) == static_cast<int>(AdamOutcome::running);
      (running ? kept : stopped).push_back(k);
    }
    hand_over(stopped, counts, evaluation);
    const KernelArray<int> kept_table(kept, memory_);
    const auto old_vectors = vectors_;
    const Buffer<double> old_scalars = scalars_;
    const Buffer<int> old_counts = counts_;
    const WorldStatuses old_status = best_status_;
    std::vector<int> ids;
    for (const int k : kept) ids.push_back(ids_[k]);
    ids_ = std::move(ids);
    resize(columns());
    for (int v = 0; v < kVectors; ++v) gather(old_vectors[v], vectors_[v], kept_table.data());
    gather(old_scalars, scalars_, kept_table.data());
    gather(old_counts, counts_, kept_table.data());
    for_each_index(
        memory_.backend(), 1, columns(),
        GatherColumns<WorldStatus>{old_status.address(), best_status_.write_address(), kept_table.data(), 1, 0, 0});
  }

 private:
  enum { kX, kM, kV, kFiniteX, kFiniteGradient, kBestX, kVectors };
  enum { kRate, kBestLoss, kBestNorm, kScalars };
  enum { kUpdates, kHalvings, kIterations, kHasFinite, kOutcome, kOutcomeWhen, kCounts };

  void resize(int worlds) {
    for (Buffer<double>& v : vectors_) v = Buffer<double>(memory_, objective_.numbers(), worlds);
    scalars_ = Buffer<double>(memory_, kScalars, worlds);
    counts_ = Buffer<int>(memory_, kCounts, worlds);
    best_status_ = WorldStatuses(worlds, memory_);
    loss_ = Buffer<double>(memory_, 1, worlds);
    gradient_ = Buffer<double>(memory_, objective_.numbers(), worlds);
  }

  template <class X>
  void gather(const Buffer<X>& from, Buffer<X>& to, const int* kept) {
    for_each_index(memory_.backend(), 1, to.worlds(),
                   GatherColumns<X>{from.address(), to.write_address(), kept, to.rows(),
                                    static_cast<std::size_t>(from.stride()), static_cast<std::size_t>(to.stride())});
  }

  AdamState state_now() {
    const auto vector = [&](int which) { return vectors_[which].write_address(); };
    const auto scalar = [&](int which) { return scalars_.write_address(which); };
    const auto count = [&](int which) { return counts_.write_address(which); };
    return {objective_.numbers(),
            static_cast<std::size_t>(gradient_.stride()),
            vector(kX),
            vector(kM),
            vector(kV),
            vector(kFiniteX),
            vector(kFiniteGradient),
            vector(kBestX),
            scalar(kRate),
            scalar(kBestLoss),
            scalar(kBestNorm),
            count(kUpdates),
            count(kHalvings),
            count(kIterations),
            count(kHasFinite),
            count(kOutcome),
            count(kOutcomeWhen),
            best_status_.write_address()};
  }

  /// Why a start stopped. One that reached the goal, or would have gone on when another did, stops by that.
  StopReason reason(int outcome, int when, int evaluation, double loss) const {
    const bool stopped = outcome != static_cast<int>(AdamOutcome::running);
    if (search_.goal_reached() && (!stopped || when == evaluation)) {
      return loss <= search_.options().goal ? StopReason::goal : StopReason::goal_elsewhere;
    }
    switch (static_cast<AdamOutcome>(outcome)) {
      case AdamOutcome::running:
        break;
      case AdamOutcome::tolerance:
        return StopReason::tolerance;
      case AdamOutcome::iterations:
        return StopReason::iterations;
      case AdamOutcome::non_finite:
        return StopReason::non_finite;
    }
    return StopReason::interrupted;
  }

  void hand_over(const std::vector<int>& which, const Buffer<int>& counts, int evaluation) {
    const Buffer<double> x = vectors_[kBestX].clone(staging_), scalars = scalars_.clone(staging_);
    for (const int k : which) {
      StartResult& result = search_.start(ids_[k]);
      for (int i = 0; i < x.rows(); ++i) result.x[i] = x(i, k);
      result.loss = scalars(kBestLoss, k);
      result.gradient_norm = scalars(kBestNorm, k);
      result.status = best_status_[k];
      const bool running = counts(kOutcome, k) == static_cast<int>(AdamOutcome::running);
      result.iterations = counts(kIterations, k) - (running && search_.goal_reached());
      result.stopped_by = reason(counts(kOutcome, k), counts(kOutcomeWhen, k), evaluation, result.loss);
    }
  }

  Search& search_;
  BatchObjective& objective_;
  Memory memory_, staging_;
  KernelArray<double> lower_, upper_;
  std::vector<int> ids_;
  int running_;
  std::array<Buffer<double>, kVectors> vectors_;
  Buffer<double> scalars_, loss_, gradient_;
  Buffer<int> counts_;
  WorldStatuses best_status_;
  std::shared_ptr<std::byte> summaries_, summary_;
};

}  // namespace

void run_adam(Search& search, std::span<const int> starts) {
  const int count = static_cast<int>(starts.size()), parts = static_cast<int>(search.objectives().size());
  std::vector<AdamBatch> batches;
  for (int part = 0; part < parts; ++part) {
    const Range own = share(count, parts, part);
    batches.emplace_back(search, *search.objectives()[part], starts.subspan(own.begin, own.size()));
  }
  int others = -count;  // starts that still run and belong to other batches
  for (int k = 0; k < search.starts(); ++k) others += search.is_running(k);
  int evaluation = 0;
  for (int running = count; running > 0; ++evaluation) {
    search.begin_evaluation(running);
    try {
      for (AdamBatch& batch : batches) batch.post(evaluation);
    } catch (const SearchInterrupted&) {
      break;
    }
    for (AdamBatch& batch : batches) batch.collect();
    running = 0;
    for (const AdamBatch& batch : batches) running += search.goal_reached() ? 0 : batch.running();
    if (!search.report(others + running) || running == 0) break;
    for (AdamBatch& batch : batches) batch.compact(evaluation);
  }
  for (AdamBatch& batch : batches) batch.finish(evaluation);
}

}  // namespace backdrive
