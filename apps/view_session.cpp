#include "apps/view_session.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "apps/json_text.h"
#include "apps/machine_memory.h"
#include "apps/options.h"
#include "apps/shown_motion.h"
#include "apps/view_sliders.h"

namespace backdrive::app {
namespace {

using Json = nlohmann::json;

constexpr double kViewFramesPerSecond = 60;
constexpr std::size_t kMostViewFrames = 3600;

}  // namespace

struct ViewSession::Impl {
  struct Job {
    ViewRequest request;
    std::function<void(std::string)> done;
  };

  const Scene scene;
  const ExecutionOptions how;
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Job> next;
  bool ending = false, computing = false;
  std::atomic<bool> outdated = false;  ///< what is computed
  std::jthread worker;

  Impl(Scene s, const ExecutionOptions& h) : scene(std::move(s)), how(h) {
    worker = std::jthread([this] { work(); });
  }

  void work() {
    std::unique_lock lock(mutex);
    for (;;) {
      computing = false;
      changed.notify_all();
      changed.wait(lock, [this] { return ending || next; });
      if (ending) return;
      const Job job = std::move(*next);
      next.reset();
      computing = true;
      outdated = false;
      lock.unlock();
      const std::string text = answer(job.request);
      job.done(outdated ? text_of({{"superseded", true}}) : text);
      lock.lock();
    }
  }

  std::string answer(const ViewRequest& request) {
    try {
      const MovedProblem moved = move_numbers(scene.problem, request.values);
      return text_of(request.wanted == ViewRequest::Wanted::motion ? motion(moved.problem, request.shapes)
                                                                   : gradient(moved));
    } catch (const std::bad_alloc&) {
      return text_of({{"error", "out of memory: expected a motion that fits"}});
    } catch (const std::exception& error) {
      return text_of({{"error", error.what()}});
    }
  }

  Json motion(const Problem& problem, const std::string& shapes) {
    check_motion_fits(problem);
    const SimulationResult result = simulate(problem, how, {}, [this](int) { return !outdated; });
    Json answer{
        {"motion", to_json(shown_motion(problem, result, kViewFramesPerSecond, kMostViewFrames), problem.model)},
        {"seconds", result.seconds},
        {"steps", result.steps}};
    const Json looks{{"bodies", bodies_json(problem.model)}, {"shapes", shapes_json(problem.model)}};
    const std::string known = std::to_string(std::hash<std::string>{}(text_of(looks)));
    if (known != shapes) answer["looks"] = looks;
    answer["shapes"] = known;
    if (result.status.stopped()) answer["error"] = describe_stop(problem, 0, result.status);
    if (result.term_names.empty()) return answer;
    answer["loss"] = finite_or_null(result.loss);
    Json terms = Json::array();
    for (std::size_t i = 0; i < result.terms.size(); ++i) {
      terms.push_back({result.term_names[i], finite_or_null(result.terms[i])});
    }
    answer["terms"] = terms;
    if (!std::isfinite(result.loss)) answer["error"] = "the loss is not finite";
    return answer;
  }

  Json gradient(const MovedProblem& moved) const {
    if (scene.problem.loss.empty()) return {{"gradient", Json::object()}};
    const SliderGradient slopes = slider_gradient(moved, how);
    Json gradient = Json::object(), why = Json::object();
    for (std::size_t k = 0; k < moved.numbers.size(); ++k) {
      gradient[moved.numbers[k].first] = finite_or_null(slopes.gradient[k]);
      if (!slopes.why[k].empty()) why[moved.numbers[k].first] = slopes.why[k];
    }
    return {{"gradient", gradient}, {"why", why}};
  }

  /// What waits goes; what is simulated stops.
  void supersede(bool end) {
    std::optional<Job> waiting;
    {
      const std::lock_guard lock(mutex);
      waiting.swap(next);
      outdated = true;
      ending = ending || end;
    }
    changed.notify_all();
    if (waiting) waiting->done(text_of({{"superseded", true}}));
  }
};

ViewSession::ViewSession(Scene scene, const ExecutionOptions& how)
    : impl_(std::make_unique<Impl>(std::move(scene), how)) {}

ViewSession::~ViewSession() {
  impl_->supersede(true);
}

std::string ViewSession::scene_text() const {
  const Scene& scene = impl_->scene;
  Json sliders = Json::array();
  for (const Slider& s : sliders_of(scene.problem)) {
    sliders.push_back({{"path", s.path},
                       {"value", finite_or_null(s.value)},
                       {"unit", s.unit},
                       {"words", s.words},
                       {"lower", s.lower},
                       {"upper", s.upper},
                       {"position", s.is_position}});
  }
  return text_of({{"name", scene.name},
                  {"description", scene.description},
                  {"loss", !scene.problem.loss.empty()},
                  {"most", ViewRequest::kMostValues},
                  {"sliders", sliders}});
}

void ViewSession::ask(ViewRequest request, std::function<void(std::string)> done) {
  impl_->supersede(false);
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->next = Impl::Job{std::move(request), std::move(done)};
  }
  impl_->changed.notify_all();
}

bool ViewSession::is_idle_after_stop() {
  impl_->supersede(true);
  std::unique_lock lock(impl_->mutex);
  return impl_->changed.wait_for(lock, std::chrono::milliseconds(200), [this] { return !impl_->computing; });
}

}  // namespace backdrive::app
