#include "autodiff/tape/tape.h"

#include <atomic>
#include <set>

#include "engine/buffer_kernels.h"
#include "engine/dual.h"
#include "engine/error.h"
#include "engine/launch.h"

namespace backdrive {
namespace {

std::atomic<std::size_t> live_nodes{0};
std::atomic<std::size_t> all_backwards{0};

/// Zeros for the gradient of each parameter, per world where the parameter is.
Parameters gradient_shape(const Model& model) {
  Parameters shape;
  for (const Field& field : fields()) {
    const Parameter& values = field.in(model);
    Parameter& gradient = field.of(shape) = values.zeros(field.tangents, values.worlds());
    for (int i = 0; i < values.items(); ++i) gradient.requires_grad(i, values.requires_grad(i));
  }
  return shape;
}

bool asks(const Model& model, const Field& field, int item) {
  const Parameter& values = field.in(model);
  return item < values.items() && values.requires_grad(item);
}

/// Adds what another recording asks for; its model must have the same shape.
void add_requests(const Model& model, Parameters& shape) {
  for (const Field& field : fields()) {
    const Parameter& values = field.in(model);
    Parameter& gradient = field.of(shape);
    if (values.items() != gradient.items() || values.worlds() != gradient.worlds()) {
      usage_error("two models on one tape ask for gradients and differ in " + std::string(field.leaf) + ": " +
                  std::to_string(gradient.items()) + " items in " + std::to_string(gradient.worlds()) + " worlds and " +
                  std::to_string(values.items()) + " in " + std::to_string(values.worlds()) +
                  "; expected one model, or a tape each");
    }
    for (int i = 0; i < values.items(); ++i) {
      if (values.requires_grad(i)) gradient.requires_grad(i, true);
    }
  }
}

std::string shape_of(int rows, int worlds) {
  return std::to_string(rows) + " x " + std::to_string(worlds);
}

template <class T>
void check_same_shape(const char* what, const Buffer<T>& given, const Buffer<T>& target) {
  if (given.rows() == target.rows() && given.worlds() == target.worlds()) return;
  usage_error(std::string(what) + " of shape " + shape_of(given.rows(), given.worlds()) + " for a buffer of shape " +
              shape_of(target.rows(), target.worlds()));
}

}  // namespace

template <class T>
void add_into(Buffer<T>& to, const Buffer<T>& from) {
  const std::size_t stride = to.stride();
  if (DeviceBackend* const backend = to.backend()) {
    launch_on_device(*backend, to.worlds(), AddInto<T>{to.write_address(), from.address(), to.rows(), stride});
    return;
  }
  T* const a = to.write();
  const T* const b = from.row(0);
  for (std::size_t i = 0; i < to.rows() * stride; ++i) a[i] += b[i];
}

WindowCounts WindowTally::total() const {
  WindowCounts counts{all, 0};
  for (const Buffer<int>& buffer : clipped) {
    const Buffer<int> here = on_host(buffer);
    for (int w = 0; w < here.worlds(); ++w) counts.clipped += here(0, w);
  }
  return counts;
}

TapeCounters tape_counters() {
  return {live_nodes.load(), all_backwards.load()};
}

template <class T>
void Seeds<T>::add(const Buffer<T>& target, const Buffer<T>& cotangent, const Components& components) {
  check_same_shape("seed", cotangent, target);
  entries_.push_back({target, cotangent, components});
}

template <class T>
const Buffer<T>& Gradients<T>::of(const Buffer<T>& input) const {
  const auto found = buffers_.find(input.id());
  if (found == buffers_.end()) {
    usage_error("no gradient of this buffer: it is no input of the tape that was walked");
  }
  if (policy_ == Disconnected::error && !is_connected(input)) {
    usage_error(
        "no gradient of this buffer: the loss does not depend on it; expected one that it depends on, or "
        "Disconnected::zero");
  }
  return found->second;
}

template <class T>
const Parameters& Gradients<T>::parameters() const {
  if (!of_worlds_.empty()) {
    usage_error("gradients of parameters with values for every world lie with the worlds; expected of_worlds()");
  }
  return parameters_;
}

template <class T>
bool Gradients<T>::is_connected(const Buffer<T>& input) const {
  return reached_.contains(input.id());
}

template <class T>
int Gradients<T>::stopped_worlds() const {
  int count = 0;
  for (const auto& [worlds, status] : status_) count += status.count_stopped();
  return count;
}

template <class T>
bool Gradients<T>::has(const Buffer<T>& input) const {
  return buffers_.contains(input.id());
}

template <class T>
Buffer<T>& Cotangents<T>::of(const Buffer<T>& buffer) {
  const auto found = bars_.find(buffer.id());
  if (found == bars_.end()) {
    return bars_.emplace(buffer.id(), Buffer<T>(memory_, buffer.rows(), buffer.worlds())).first->second;
  }
  Buffer<T>& bar = found->second;
  if (bar.shared()) bar = bar.clone(memory_);  // whoever else holds it must not see what is added
  return bar;
}

template <class T>
void Cotangents<T>::add(const Buffer<T>& buffer, Buffer<T> contribution) {
  check_same_shape("cotangent", contribution, buffer);
  if (contribution.shared()) contribution = contribution.clone(memory_);  // its other holders may change it
  lend(buffer, std::move(contribution));
}

template <class T>
void Cotangents<T>::lend(const Buffer<T>& buffer, Buffer<T> contribution) {
  const auto [at, first] = bars_.try_emplace(buffer.id(), contribution);
  if (first) return;
  // Two numbers add up to the same bits in either order: into whichever of the two nobody else holds.
  if (at->second.shared() && !contribution.shared()) std::swap(at->second, contribution);
  add_into(of(buffer), contribution);
}

template <class T>
Buffer<double>& Cotangents<T>::of_parameters(const std::shared_ptr<const WorldParameters>& parameters) {
  if (parameters_ && parameters_ != parameters) {
    usage_error("two sets of parameters with values for every world on one tape; expected one, or a tape each");
  }
  if (!parameters_) of_parameters_ = parameters->gradient(memory_);
  parameters_ = parameters;
  return of_parameters_;
}

template <class T>
const WorldStatuses& Cotangents<T>::status(int worlds) {
  return status_.try_emplace(worlds, worlds, memory_).first->second;
}

template <class T>
const Buffer<T>* Cotangents<T>::find(const Buffer<T>& buffer) const {
  const auto found = bars_.find(buffer.id());
  return found == bars_.end() ? nullptr : &found->second;
}

/// What a tape owns until its backward.
template <class T>
struct Tape<T>::Recording : Pooled {
  ~Recording() { live_nodes -= nodes.size(); }
  PoolVector<std::unique_ptr<Node>> nodes;

  /// Of the model that asks for gradients, or of any when none does.
  Parameters gradient_shape() const {
    Parameters shape;
    const Model* asking = nullptr;
    for (const auto& node : nodes) {
      const Model* model = node->model();
      if (!model) continue;
      if (!asking && any_requires_grad(*model)) {
        asking = model;
        shape = backdrive::gradient_shape(*model);
      } else if (asking && any_requires_grad(*model)) {
        add_requests(*model, shape);
      } else if (!asking && shape.gravity.items() == 0) {
        shape = backdrive::gradient_shape(*model);
      }
    }
    return shape;
  }

  /// By number of worlds, where each world first stopped.
  void collect_status(PoolMap<int, WorldStatuses>& all, Memory& memory) const {
    for (const auto& node : nodes) {
      if (!node->status) continue;
      const std::size_t worlds = node->status->size();
      all.try_emplace(static_cast<int>(worlds), worlds, memory).first->second.merge(*node->status);
    }
  }

  /// What the seeds reach: of each node its links, in the order of the nodes.
  PoolVector<LinkDependence> trace(const Seeds<T>& seeds, Reach& reach) const {
    for (const auto& entry : seeds.entries()) reach.read(entry.target.id(), entry.components);
    PoolVector<LinkDependence> links(nodes.size(), LinkDependence(0));
    for (size_t i = nodes.size(); i-- > 0;) links[i] = nodes[i]->trace(reach);
    return links;
  }

  /// Parameters that ask for a gradient and cannot have one from any node that they ask.
  std::vector<DisconnectedPath> disconnected(const Parameters& asked, const PoolVector<LinkDependence>& links) const {
    std::vector<DisconnectedPath> found;
    for (const Field& field : fields()) {
      const Parameter& parameter = field.in(asked);
      for (int item = 0; item < parameter.items(); ++item) {
        if (!parameter.requires_grad(item)) continue;
        const Model* asking = nullptr;
        const char* why = nullptr;
        for (size_t i = 0; i < nodes.size(); ++i) {
          const Model* const model = nodes[i]->model();
          if (!model || !asks(*model, field, item)) continue;
          asking = model;
          why = disconnected_reason(*model, links[i], field, item);
          if (!why) break;
        }
        if (why) found.push_back({path_of(*asking, {&field, item, -1}), why});
      }
    }
    return found;
  }

  void check_versions() const {
    for (const auto& node : nodes) {
      for (const auto* list : {&node->inputs, &node->outputs}) {
        for (const auto& [buffer, version] : *list) {
          if (buffer.version() != version) {
            usage_error(
                "a recorded buffer was written to between record and backward; "
                "its gradient would be that of other numbers");
          }
        }
      }
    }
  }
};

namespace {

/// A custom operation as a node.
template <class T>
struct CustomNode final : Tape<T>::Node {
  std::function<void(Cotangents<T>&)> adjoint;
  void backward(Cotangents<T>& bars, Parameters&, Parameters&) override { adjoint(bars); }
  LinkDependence trace(Reach& reach) const override {
    bool read = false;
    for (const auto& [buffer, version] : this->outputs) read = read || reach.of(buffer.id());
    for (const auto& [buffer, version] : this->inputs) {
      if (read) reach.read(buffer.id(), Components::everything());
    }
    return LinkDependence(0);
  }
};

}  // namespace

template <class T>
Tape<T>::Tape(Memory memory) : memory_(std::move(memory)), recording_(new Recording) {}
template <class T>
Tape<T>::~Tape() = default;
// The memory is shared, not taken away: what was moved from must still be able to say so.
template <class T>
Tape<T>::Tape(Tape&& other) noexcept : memory_(other.memory_), recording_(std::move(other.recording_)) {}
template <class T>
Tape<T>& Tape<T>::operator=(Tape&& other) noexcept {
  memory_ = other.memory_;
  recording_ = std::move(other.recording_);
  return *this;
}

template <class T>
std::size_t Tape<T>::nodes() const {
  return recording_ ? recording_->nodes.size() : 0;
}

template <class T>
void Tape<T>::check_recording() const {
  if (!recording_) usage_error("this tape is spent or was moved from; record on a fresh one");
}

template <class T>
void Tape<T>::push(std::unique_ptr<Node> node) {
  check_recording();
  recording_->nodes.push_back(std::move(node));
  ++live_nodes;
}

template <class T>
void Tape<T>::record(CustomOperation<T> operation) {
  check_recording();
  if (!operation.adjoint) usage_error("a custom operation needs an adjoint");
  auto node = std::make_unique<CustomNode<T>>();
  for (const Buffer<T>& b : operation.inputs) node->inputs.emplace_back(b, b.version());
  for (const Buffer<T>& b : operation.outputs) node->outputs.emplace_back(b, b.version());
  node->adjoint = std::move(operation.adjoint);
  push(std::move(node));
}

template <class T>
Gradients<T> Tape<T>::backward(const Seeds<T>& seeds, Disconnected policy) && {
  if (!recording_) {
    usage_error("this tape is spent or was moved from: one tape, one backward; record again");
  }
  // Taken out first: the tape is spent however this ends.
  const std::unique_ptr<Recording> recording = std::move(recording_);
  recording->check_versions();
  PoolSet<std::uint64_t> known, produced;
  for (const auto& node : recording->nodes) {
    for (const auto& [buffer, version] : node->inputs) known.insert(buffer.id());
    for (const auto& [buffer, version] : node->outputs) {
      if (!known.insert(buffer.id()).second) {
        usage_error(
            "an operation puts out a buffer that it or an earlier one on this tape reads or puts out; "
            "expected a buffer of its own");
      }
      produced.insert(buffer.id());
    }
  }
  Cotangents<T> bars(memory_);
  for (const auto& entry : seeds.entries()) {
    if (!known.contains(entry.target.id())) {
      usage_error("a seed is for a buffer that this tape did not record");
    }
    bars.lend(entry.target, entry.cotangent);
  }
  Gradients<T> result;
  result.parameters_ = recording->gradient_shape();
  result.policy_ = policy;
  Reach reach;
  result.disconnected_ = recording->disconnected(result.parameters_, recording->trace(seeds, reach));
  if (policy == Disconnected::error && !result.disconnected_.empty()) {
    const DisconnectedPath& first = result.disconnected_.front();
    const std::size_t others = result.disconnected_.size() - 1;
    usage_error("no gradient of " + first.path + ": " + first.why +
                (others > 0 ? " (and " + std::to_string(others) + " other parameters have none)" : "") +
                "; expected requires_grad off, or Disconnected::zero");
  }
  if constexpr (std::is_same_v<T, Dual<double>>) result.parameters_dot_ = result.parameters_;
  recording->collect_status(bars.status_, memory_);
  for (size_t i = recording->nodes.size(); i-- > 0;) {
    recording->nodes[i]->backward(bars, result.parameters_, result.parameters_dot_);
  }
  result.of_worlds_ = bars.of_parameters_;
  result.windows_ = bars.windows_;
  result.status_ = bars.status_;
  for (const auto& node : recording->nodes) {
    for (const auto& [buffer, version] : node->inputs) {
      if (!produced.contains(buffer.id())) {
        result.buffers_.insert_or_assign(buffer.id(), bars.of(buffer));
        if (reach.of(buffer.id())) result.reached_.insert(buffer.id());
      }
    }
  }
  ++all_backwards;
  return result;
}

#define BACKDRIVE_INSTANTIATE(T)                           \
  template void add_into<T>(Buffer<T>&, const Buffer<T>&); \
  template class Seeds<T>;                                 \
  template class Gradients<T>;                             \
  template class Cotangents<T>;                            \
  template class Tape<T>;
BACKDRIVE_INSTANTIATE(float)
BACKDRIVE_INSTANTIATE(double)
BACKDRIVE_INSTANTIATE(Dual<double>)
#undef BACKDRIVE_INSTANTIATE

}  // namespace backdrive
