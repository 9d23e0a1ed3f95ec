#include "autodiff/tape.h"

#include <atomic>
#include <set>

#include "engine/dual.h"
#include "engine/error.h"

namespace backdrive {
namespace {

std::atomic<std::size_t> live_nodes{0};
std::atomic<std::size_t> all_backwards{0};

template <class T>
void add_into(Buffer<T>& to, const Buffer<T>& from) {
  for (int r = 0; r < to.rows(); ++r) {
    T* a = to.write(r);
    const T* b = from.row(r);
    for (int w = 0; w < to.stride(); ++w) a[w] += b[w];
  }
}

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

std::string shape_of(int rows, int worlds) {
  return std::to_string(rows) + " x " + std::to_string(worlds);
}

}  // namespace

TapeCounters tape_counters() { return {live_nodes.load(), all_backwards.load()}; }

template <class T>
void Seeds<T>::add(const Buffer<T>& target, const Buffer<T>& cotangent) {
  if (target.rows() != cotangent.rows() || target.worlds() != cotangent.worlds()) {
    usage_error("seed of shape " + shape_of(cotangent.rows(), cotangent.worlds()) +
                " for a buffer of shape " + shape_of(target.rows(), target.worlds()));
  }
  entries_.push_back({target, cotangent});
}

template <class T>
const Buffer<T>& Gradients<T>::of(const Buffer<T>& input) const {
  const auto found = buffers_.find(input.id());
  if (found == buffers_.end()) {
    usage_error("no gradient of this buffer: it is no input of the tape that was walked");
  }
  return found->second;
}

template <class T>
bool Gradients<T>::has(const Buffer<T>& input) const {
  return buffers_.contains(input.id());
}

template <class T>
Buffer<T>& Cotangents<T>::of(const Buffer<T>& buffer) {
  const auto found = bars_.find(buffer.id());
  if (found != bars_.end()) return found->second;
  return bars_.emplace(buffer.id(), Buffer<T>(memory_, buffer.rows(), buffer.worlds()))
      .first->second;
}

template <class T>
void Cotangents<T>::add(const Buffer<T>& buffer, Buffer<T> contribution) {
  const auto found = bars_.find(buffer.id());
  if (found == bars_.end()) {
    bars_.emplace(buffer.id(), std::move(contribution));
  } else {
    add_into(found->second, contribution);
  }
}

template <class T>
const Buffer<T>* Cotangents<T>::find(const Buffer<T>& buffer) const {
  const auto found = bars_.find(buffer.id());
  return found == bars_.end() ? nullptr : &found->second;
}

/// What a tape owns until its backward.
template <class T>
struct Tape<T>::Recording {
  ~Recording() { live_nodes -= nodes.size(); }
  std::vector<std::unique_ptr<Node>> nodes;

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
};

}  // namespace

template <class T>
Tape<T>::Tape(Memory memory) : memory_(std::move(memory)), recording_(new Recording) {}
template <class T>
Tape<T>::~Tape() = default;
template <class T>
Tape<T>::Tape(Tape&&) noexcept = default;
template <class T>
Tape<T>& Tape<T>::operator=(Tape&&) noexcept = default;

template <class T>
std::size_t Tape<T>::nodes() const {
  return recording_ ? recording_->nodes.size() : 0;
}

template <class T>
void Tape<T>::push(std::unique_ptr<Node> node) {
  if (!recording_) usage_error("this tape is spent or was moved from; record on a fresh one");
  recording_->nodes.push_back(std::move(node));
  ++live_nodes;
}

template <class T>
void Tape<T>::record(CustomOperation<T> operation) {
  if (!operation.adjoint) usage_error("a custom operation needs an adjoint");
  auto node = std::make_unique<CustomNode<T>>();
  for (const Buffer<T>& b : operation.inputs) node->inputs.emplace_back(b, b.version());
  for (const Buffer<T>& b : operation.outputs) node->outputs.emplace_back(b, b.version());
  node->adjoint = std::move(operation.adjoint);
  push(std::move(node));
}

template <class T>
Gradients<T> Tape<T>::backward(const Seeds<T>& seeds) && {
  if (!recording_) {
    usage_error("this tape is spent or was moved from: one tape, one backward; record again");
  }
  // Taken out first: the tape is spent however this ends.
  const std::unique_ptr<Recording> recording = std::move(recording_);
  recording->check_versions();
  std::set<std::uint64_t> known, produced;
  const Model* model = nullptr;
  for (const auto& node : recording->nodes) {
    for (const auto& [buffer, version] : node->inputs) known.insert(buffer.id());
    for (const auto& [buffer, version] : node->outputs) {
      known.insert(buffer.id());
      produced.insert(buffer.id());
    }
    if (!model) model = node->model();
  }
  Cotangents<T> bars(memory_);
  for (const auto& entry : seeds.entries()) {
    if (!known.contains(entry.target.id())) {
      usage_error("a seed is for a buffer that this tape did not record");
    }
    add_into(bars.of(entry.target), entry.cotangent);
  }
  Gradients<T> result;
  if (model) {
    result.parameters_ = gradient_shape(*model);
    if constexpr (std::is_same_v<T, Dual<double>>) result.parameters_dot_ = result.parameters_;
  }
  for (size_t i = recording->nodes.size(); i-- > 0;) {
    Node& node = *recording->nodes[i];
    node.backward(bars, result.parameters_, result.parameters_dot_);
    if (node.status) {
      for (const WorldStatus& s : *node.status) result.stopped_worlds_ += s.stopped();
    }
  }
  for (const auto& node : recording->nodes) {
    for (const auto& [buffer, version] : node->inputs) {
      if (!produced.contains(buffer.id())) {
        result.buffers_.insert_or_assign(buffer.id(), bars.of(buffer));
      }
    }
  }
  ++all_backwards;
  return result;
}

#define BACKDRIVE_INSTANTIATE(T) \
  template class Seeds<T>;       \
  template class Gradients<T>;   \
  template class Cotangents<T>;  \
  template class Tape<T>;
BACKDRIVE_INSTANTIATE(float)
BACKDRIVE_INSTANTIATE(double)
BACKDRIVE_INSTANTIATE(Dual<double>)

}  // namespace backdrive
