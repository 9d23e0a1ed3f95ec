#pragma once
// A tape is a value: it records what happens once, and is spent by the one backward that it allows. Gradients come back
// as a fresh value, so that there is nothing to zero and nothing that could accumulate. No part of the model, of a
// state or of a seed is ever written by a backward.
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "autodiff/tape/activity.h"
#include "autodiff/tape/buffers.h"
#include "autodiff/tape/world_parameters.h"
#include "models/parameter_list.h"

namespace backdrive {

/// Cotangents of buffers that a loss reads: d loss / d target, one row per row of the target. Read only. Of a state's
/// quaternions in tangent rows: models/coordinates.h, whose to_tangent_components makes them of four free numbers'.
template <class T>
class Seeds {
 public:
  /// Adds a cotangent; several for one target add up. Shapes must agree. `components`: which numbers of each state in
  /// the target the loss reads, the others being zero for good.
  void add(const Buffer<T>& target, const Buffer<T>& cotangent,
           const Components& components = Components::everything());

  struct Entry {
    Buffer<T> target, cotangent;
    Components components;
  };
  const PoolVector<Entry>& entries() const { return entries_; }

 private:
  PoolVector<Entry> entries_;
};

/// What a backward does about gradients that were asked for and that the loss cannot depend on.
enum class Disconnected {
  error,  ///< throws, naming the first of them and why
  zero,   ///< gives zeros, and lists them in Gradients::disconnected()
};
struct DisconnectedPath {
  std::string path, why;
};

struct WindowCounts {
  std::int64_t all = 0;
  std::int64_t clipped = 0;
};

/// The same before it is counted: how many windows were clipped in each world may lie on a device.
struct WindowTally {
  std::int64_t all = 0;
  PoolVector<Buffer<int>> clipped;

  /// Waits for the device.
  WindowCounts total() const;
};

/// Gradients of one backward: of every buffer nothing on the tape produced (initial states, controls, inputs of custom
/// operations), and of the parameters that asked for one when they were recorded. In worlds that stopped they are NaN;
/// sums over worlds leave those worlds out.
template <class T>
class Gradients {
 public:
  /// d loss / d buffer, of the buffer's shape; of a state's quaternions in tangent rows (models/coordinates.h). Throws
  /// Error (usage) when the buffer is no input of the tape, and, unless zeros were asked for, when the loss cannot
  /// depend on it.
  const Buffer<T>& of(const Buffer<T>& input) const;
  bool has(const Buffer<T>& input) const;
  /// Whether the loss can depend on an input of the tape.
  bool is_connected(const Buffer<T>& input) const;
  /// Parameters that asked for a gradient and got a zero because the loss cannot depend on them.
  const std::vector<DisconnectedPath>& disconnected() const { return disconnected_; }
  /// Same nesting as the model's; orientations have 3 components. A uniform parameter has the sum over worlds, in an
  /// order that leaves no trace in the bits; a per-world one has a number per world. Zero where none was asked for.
  /// Throws Error (usage) where they are of_worlds().
  const Parameters& parameters() const;
  /// Of rollouts with RolloutOptions::parameters, [number][world] in rows as WorldParameters::gradient_row() says,
  /// where the worlds were computed; empty: nobody asked for any.
  const Buffer<double>& of_worlds() const { return of_worlds_; }
  /// Duals only: derivative of parameters() along the direction the tape was given.
  const Parameters& parameters_dot() const { return parameters_dot_; }
  int stopped_worlds() const;
  /// Of all rollouts and worlds of the tape: gradient windows, and those whose contribution was scaled down.
  WindowCounts windows() const { return windows_.total(); }
  const WindowTally& window_tally() const { return windows_; }

 private:
  template <class>
  friend class Tape;
  PoolMap<std::uint64_t, Buffer<T>> buffers_;
  PoolSet<std::uint64_t> reached_;
  std::vector<DisconnectedPath> disconnected_;
  Disconnected policy_ = Disconnected::error;
  Parameters parameters_, parameters_dot_;
  Buffer<double> of_worlds_;
  PoolMap<int, WorldStatuses> status_;  ///< by number of worlds
  WindowTally windows_;
};

/// Running cotangents while a tape is walked backwards; what a custom operation's adjoint works on.
template <class T>
class Cotangents {
 public:
  explicit Cotangents(Memory& memory) : memory_(memory) {}
  /// The cotangent of a buffer, zeros at first; to be added to. Nobody else holds it.
  Buffer<T>& of(const Buffer<T>& buffer);
  /// Adds a contribution of the buffer's shape. One that nobody else holds is kept as it is when it is the first.
  void add(const Buffer<T>& buffer, Buffer<T> contribution);
  /// Null when nothing has reached the buffer.
  const Buffer<T>* find(const Buffer<T>& buffer) const;
  /// How each of `worlds` worlds fared on the whole tape: one that stopped in any of its operations has no gradient in
  /// all.
  const WorldStatuses& status(int worlds);
  /// The gradient of parameters with values for every world, zeros at first; to be added to.
  Buffer<double>& of_parameters(const std::shared_ptr<const WorldParameters>& parameters);
  Memory& memory() { return memory_; }
  /// Notes gradient windows, and beside them how many were clipped in each world; empty: none.
  void count(const WindowCounts& windows, Buffer<int> clipped) {
    windows_.all += windows.all;
    if (!clipped.empty()) windows_.clipped.push_back(std::move(clipped));
  }

 private:
  template <class>
  friend class Tape;
  /// The same without a copy, of one that others hold, read only, and leave alone until this object is gone.
  void lend(const Buffer<T>& buffer, Buffer<T> contribution);

  Memory& memory_;
  PoolMap<std::uint64_t, Buffer<T>> bars_;
  std::shared_ptr<const WorldParameters> parameters_;
  Buffer<double> of_parameters_;
  PoolMap<int, WorldStatuses> status_;  ///< by number of worlds
  WindowTally windows_;
};

/// One operation of the user's own: what it read, what it made, and the adjoint, which reads cotangents of the outputs
/// and adds to those of the inputs.
template <class T>
struct CustomOperation {
  std::vector<Buffer<T>> inputs, outputs;
  std::function<void(Cotangents<T>&)> adjoint;
};

/// to += from, of one shape.
template <class T>
void add_into(Buffer<T>& to, const Buffer<T>& from);

struct TapeCounters {
  std::size_t nodes = 0;      ///< on tapes alive now
  std::size_t backwards = 0;  ///< all so far
};
TapeCounters tape_counters();

template <class T>
class Tape {
 public:
  explicit Tape(Memory memory = default_memory());
  ~Tape();
  Tape(Tape&&) noexcept;
  Tape& operator=(Tape&&) noexcept;

  /// Spends the tape. Throws Error (usage) on a spent or moved-from tape, on seeds of a buffer that this tape did not
  /// record, when a recorded buffer was written to since or put out twice, when models that ask for gradients differ in
  /// shape, and, unless `policy` is zero, when a parameter asks for a gradient that the loss cannot depend on.
  Gradients<T> backward(const Seeds<T>& seeds, Disconnected policy = Disconnected::error) &&;

  void record(CustomOperation<T> operation);
  std::size_t nodes() const;
  /// Throws Error (usage) when the tape is spent or was moved from.
  void check_recording() const;
  Memory& memory() { return memory_; }

  /// For the operations of this library: a node knows its buffers and its adjoint.
  struct Node : Pooled {
    virtual ~Node() = default;
    virtual void backward(Cotangents<T>& bars, Parameters& gradient, Parameters& gradient_dot) = 0;
    /// Adds the inputs that the outputs that are read depend on; returns what of the model's links is read on the way.
    virtual LinkDependence trace(Reach& reach) const = 0;
    /// The model whose parameters this node has gradients for, as it was when recorded.
    virtual const Model* model() const { return nullptr; }
    PoolVector<std::pair<Buffer<T>, std::uint64_t>> inputs;  ///< with the version that was read
    PoolVector<std::pair<Buffer<T>, std::uint64_t>> outputs;
    std::shared_ptr<WorldStatuses> status;
  };
  void push(std::unique_ptr<Node> node);

 private:
  struct Recording;
  Memory memory_;
  std::unique_ptr<Recording> recording_;  ///< null once spent
};

}  // namespace backdrive
