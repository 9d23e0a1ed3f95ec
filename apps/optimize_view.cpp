#include "apps/optimize_view.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "apps/json_text.h"
#include "apps/report_page.h"
#include "apps/shown_motion.h"
#include "apps/web_server.h"

namespace backdrive::app {
namespace {

using Json = nlohmann::json;
using ViewClock = std::chrono::steady_clock;

constexpr std::size_t kMostViewRows = 2048;       ///< of the loss's curve
constexpr double kPerSecondWhileOptimising = 60;  ///< frames
constexpr std::size_t kMostWhileOptimising = 1200;
constexpr std::chrono::seconds kLooks{2};  ///< after a question somebody is taken to look
constexpr std::chrono::seconds kLastLook{2};
constexpr std::chrono::milliseconds kBetweenMotions{200};

}  // namespace

struct OptimizeView::Impl {
  struct CurveRow {
    int iteration;
    double loss, gradient_norm;
  };

  const Problem problem;
  ExecutionOptions how;
  WebServer server;
  std::mutex mutex;  ///< guards all below
  std::condition_variable changed;
  OptimizeProgress progress;
  std::vector<CurveRow> curve;
  std::vector<double> x;                ///< the best so far, scaled
  std::uint64_t wanted = 0, shown = 0;  ///< which x is the last, and which `motion` is of
  Json motion;
  bool done = false, told = false;
  std::atomic<bool> ending = false;
  ViewClock::time_point asked{};
  std::jthread painter, waiter;

  Impl(const Scene& scene, const ExecutionOptions& h, int port) : problem(scene.problem), how(h), server(port) {
    // Beside the optimisation, whatever that runs on.
    how.threads = 1;
    how.devices = {Device{}};
    put_view_page(server);
    Json about{{"name", scene.name}, {"description", scene.description}, {"optimising", true}};
    server.on_get("scene", [text = text_of(about)](const std::string&, const WebAnswer& answer) {
      answer({200, text});
    });
    server.on_get("progress", [this](const std::string& query, const WebAnswer& answer) {
      answer({200, tell(query)});
    });
    painter = std::jthread([this] { paint(); });
    waiter = std::jthread([this] { server.run(false); });
  }

  ~Impl() {
    {
      const std::lock_guard lock(mutex);
      ending = true;
    }
    changed.notify_all();
    server.stop();
  }

  /// query: the number of the motion that the page has.
  std::string tell(const std::string& query) {
    const std::uint64_t has = std::strtoull(query.c_str(), nullptr, 10);
    const std::lock_guard lock(mutex);
    asked = ViewClock::now();
    changed.notify_all();
    Json answer = Json::object();
    if (!curve.empty()) {
      Json rows = Json::array();
      for (const CurveRow& row : curve) {
        rows.push_back({row.iteration, finite_or_null(row.loss), finite_or_null(row.gradient_norm)});
      }
      answer = {{"iteration", progress.iteration},
                {"iterations", progress.iterations},
                {"loss", finite_or_null(progress.best_loss)},
                {"gradient_norm", finite_or_null(progress.gradient_norm)},
                {"running", progress.running},
                {"history", rows}};
    }
    if (shown > 0 && has != shown) answer.update(motion);
    if (done && shown == wanted && has == shown) {
      answer["done"] = told = true;
      changed.notify_all();
    }
    return text_of(answer);
  }

  bool is_watched() const { return asked != ViewClock::time_point{} && ViewClock::now() - asked < kLooks; }

  void paint() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [this] { return ending || (shown != wanted && is_watched()); });
      if (ending) return;
      const std::vector<double> now = x;
      const std::uint64_t number = wanted;
      lock.unlock();
      Json fresh = motion_at(now, number);
      lock.lock();
      motion = std::move(fresh);
      shown = number;
      if (!done) changed.wait_for(lock, kBetweenMotions, [this] { return ending || done; });
    }
  }

  Json motion_at(const std::vector<double>& numbers, std::uint64_t number) const {
    try {
      const Problem at = with_values(problem, numbers);
      const SimulationResult result = simulate(at, how, {}, [this](int) { return !ending; });
      const ShownMotion shown = shown_motion(at, result, kPerSecondWhileOptimising, kMostWhileOptimising);
      return {{"number", number},
              {"motion", to_json(shown, at.model)},
              {"looks", {{"bodies", bodies_json(at.model)}, {"shapes", shapes_json(at.model)}}}};
    } catch (const std::exception& error) {
      return {{"number", number}, {"error", error.what()}};
    }
  }

  /// With the mutex held.
  void take(std::span<const double> numbers) {
    if (std::ranges::equal(numbers, x)) return;
    x.assign(numbers.begin(), numbers.end());
    ++wanted;
  }
};

OptimizeView::OptimizeView(const Scene& scene, const ExecutionOptions& how, int port)
    : impl_(std::make_unique<Impl>(scene, how, port)) {}
OptimizeView::~OptimizeView() = default;

const std::string& OptimizeView::address() const {
  return impl_->server.address();
}

void OptimizeView::update(const OptimizeProgress& progress) {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->progress = progress;
    impl_->progress.best_x = {};
    std::vector<Impl::CurveRow>& curve = impl_->curve;
    if (!curve.empty() && curve.back().iteration == progress.iteration) curve.pop_back();
    curve.push_back({progress.iteration, progress.best_loss, progress.gradient_norm});
    if (curve.size() > kMostViewRows) {
      for (std::size_t k = 0; 2 * k < curve.size(); ++k) curve[k] = curve[2 * k];
      curve.resize((curve.size() + 1) / 2);
    }
    impl_->take(progress.best_x);
  }
  impl_->changed.notify_all();
}

void OptimizeView::finish(const OptimizeResult& result) {
  std::unique_lock lock(impl_->mutex);
  impl_->take(result.starts[result.best].x);
  impl_->done = true;
  impl_->changed.notify_all();
  if (!impl_->is_watched() || !impl_->changed.wait_for(lock, kLastLook, [this] { return impl_->told; })) return;
  lock.unlock();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // the answer is on its way
}

}  // namespace backdrive::app
