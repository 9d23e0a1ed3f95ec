#pragma once
// The numbers that have gradients (parameter_table.h), and how they nest. The nesting is a template: of Parameters,
// which own their numbers, it is what users write to; of ParameterValues and ParameterSlots, which point at them, it is
// what kernels read and write on the host and on devices.
#include <cstddef>
#include <type_traits>

#include "engine/generation.h"
#include "engine/pool_containers.h"
#include "models/parameter_table.h"

namespace backdrive {

/// Numbers of one kind in somebody else's memory, of the host or of a device. X is double, or const double to read
/// only.
template <class X>
struct ParameterNumbers {
  X* first = nullptr;  ///< null: there are none
  int items = 0;
  int components;
  int world_stride = 0;  ///< numbers from one world to the next; 0: all worlds share the values
  int stride = 1;        ///< numbers from one component or item to the next

  BACKDRIVE_HD explicit ParameterNumbers(int components = 1) : components(components) {}
  BACKDRIVE_HD explicit operator bool() const { return first != nullptr; }
  BACKDRIVE_HD X& operator()(int item, int component = 0, int world = 0) const {
    return first[static_cast<std::size_t>(world) * world_stride +
                 (static_cast<std::size_t>(item) * components + component) * stride];
  }
};
using ParameterValues = ParameterNumbers<const double>;
using ParameterSlots = ParameterNumbers<double>;

/// Numbers of one kind, one row of `components` per item (body, joint, shape, coupling, term), the same for all worlds
/// or one set per world. A gradient with respect to a Parameter is a Parameter of the same shape. Copies share nothing.
class Parameter {
 public:
  explicit Parameter(int components = 1, double fill = 0) : components_(components), fill_(fill) {}

  /// 0 in what was moved from.
  int items() const { return static_cast<int>(requires_grad_.size()); }
  int components() const { return components_; }
  /// 1 when uniform (all worlds share the values).
  int worlds() const { return worlds_; }
  bool uniform() const { return worlds_ == 1; }

  /// Value for a world; a uniform parameter has the same one for every world. O(1).
  double operator()(int item, int component = 0, int world = 0) const {
    return values_[index(item, component, worlds_ == 1 ? 0 : world)];
  }
  double& at(int item, int component = 0, int world = 0) { return values_[index(item, component, world)]; }
  /// The same value in every world.
  void set(int item, int component, double value) {
    for (int w = 0; w < worlds_; ++w) at(item, component, w) = value;
  }
  /// Appends or removes items; new ones hold the fill value and ask for no gradient.
  void resize(int items);
  /// Gives each of `worlds` worlds its own copy of the values (of the first world's when it already had some).
  void spread(int worlds);
  /// Zeros in the same shape, `components` wide when that is not the same (orientations: 4 values, 3 tangents).
  Parameter zeros(int components, int worlds) const;

  /// Whether a recording made from now on computes this item's gradient.
  bool requires_grad(int item) const { return requires_grad_[item]; }
  void requires_grad(int item, bool on) { requires_grad_[item] = on; }
  bool any_requires_grad() const;

  /// Where its numbers lie, for kernels: good until the storage goes, as generation() tells.
  ParameterValues values() const { return numbers_at<ParameterValues>(values_.data()); }
  ParameterSlots slots() { return numbers_at<ParameterSlots>(values_.data()); }

  /// For views (models/views.h): those made before a resize, a spread, an assignment, a move or the end are stale.
  /// Writing values and switching requires_grad leaves them good.
  const Generation& generation() const { return generation_; }

 private:
  size_t index(int item, int component, int world) const {
    return (static_cast<size_t>(world) * requires_grad_.size() + item) * components_ + component;
  }
  template <class Numbers, class X>
  Numbers numbers_at(X* first) const {
    Numbers result(components_);
    result.first = first;
    result.items = items();
    result.world_stride = uniform() ? 0 : items() * components_;
    return result;
  }
  int components_;
  int worlds_ = 1;
  double fill_;
  PoolVector<double> values_;  // [world][item][component]
  PoolVector<bool> requires_grad_;
  [[no_unique_address]] Generation generation_;
};

// Nests of the parameters that parameter_table.h lists.
#define BACKDRIVE_MEMBER(at, name, begins, ...) P name{std::integral_constant<int, components_of(begins)>::value};
#define BACKDRIVE_NEST(type, member, parameters, what, X) \
  template <class P>                                      \
  struct type##ParametersOf {                             \
    parameters(BACKDRIVE_MEMBER, )                        \
  };                                                      \
  using type##Parameters = type##ParametersOf<Parameter>;
#define BACKDRIVE_NEST_MEMBER(type, member, parameters, what, X) type##ParametersOf<P> member;

/// The gradient of an orientation, a unit quaternion, is 3 numbers θ in R exp(θ).
template <class P>
struct FrameParametersOf {
  BACKDRIVE_FRAME_PARAMETERS(BACKDRIVE_MEMBER, , "")
};

template <class P>
struct BodyParametersOf {
  BACKDRIVE_BODY_PARAMETERS(BACKDRIVE_MEMBER, )
};

BACKDRIVE_EFFORT_NESTS(BACKDRIVE_NEST, )

/// Springs and dampers that hold, in maximal coordinates, what a joint does not let go.
template <class P>
struct AttachmentParametersOf {
  BACKDRIVE_ATTACHMENT_PARAMETERS(BACKDRIVE_MEMBER, )
};

template <class P>
struct JointParametersOf {
  FrameParametersOf<P> frame;  ///< joint in the parent link's frame; the child link's frame at position zero
  /// Of a joint that closes a loop: where it sits on its child, which other joints place. Of others no shift, no turn.
  FrameParametersOf<P> child_frame;
  BACKDRIVE_AXIS_PARAMETERS(BACKDRIVE_MEMBER, )
  BACKDRIVE_RESISTANCE_PARAMETERS(BACKDRIVE_MEMBER, )
  BACKDRIVE_EFFORT_NESTS(BACKDRIVE_NEST_MEMBER, )
  AttachmentParametersOf<P> attachment;
};

template <class P>
struct GeometryParametersOf {
  BACKDRIVE_GEOMETRY_PARAMETERS(BACKDRIVE_MEMBER, )
};

template <class P>
struct MaterialParametersOf {
  BACKDRIVE_MATERIAL_PARAMETERS(BACKDRIVE_MEMBER, )
};

template <class P>
struct ShapeParametersOf {
  FrameParametersOf<P> frame;  ///< shape in its body's link frame
  GeometryParametersOf<P> geometry;
  MaterialParametersOf<P> material;
  BACKDRIVE_DENSITY_PARAMETERS(BACKDRIVE_MEMBER, )
};

template <class P>
struct CouplingParametersOf {
  BACKDRIVE_RATIO_PARAMETERS(BACKDRIVE_MEMBER, )  ///< an item for each term of Model::coupling_terms
  BACKDRIVE_OFFSET_PARAMETERS(BACKDRIVE_MEMBER, )
  BACKDRIVE_RESISTANCE_PARAMETERS(BACKDRIVE_MEMBER, )
  BACKDRIVE_EFFORT_NESTS(BACKDRIVE_NEST_MEMBER, )
};

/// Every differentiable number of a model; also the shape of a gradient or a direction in parameter space.
template <class P>
struct ParametersOf {
  BodyParametersOf<P> bodies;
  JointParametersOf<P> joints;
  ShapeParametersOf<P> shapes;
  CouplingParametersOf<P> couplings;
  BACKDRIVE_WORLD_PARAMETERS(BACKDRIVE_MEMBER, )  ///< one item
};

#undef BACKDRIVE_MEMBER
#undef BACKDRIVE_NEST
#undef BACKDRIVE_NEST_MEMBER

using FrameParameters = FrameParametersOf<Parameter>;
using BodyParameters = BodyParametersOf<Parameter>;
using AttachmentParameters = AttachmentParametersOf<Parameter>;
using JointParameters = JointParametersOf<Parameter>;
using GeometryParameters = GeometryParametersOf<Parameter>;
using MaterialParameters = MaterialParametersOf<Parameter>;
using ShapeParameters = ShapeParametersOf<Parameter>;
using CouplingParameters = CouplingParametersOf<Parameter>;
using Parameters = ParametersOf<Parameter>;

/// What kernels read parameters from: orientations are quaternions; in a direction they are three tangents.
using ParametersView = ParametersOf<ParameterValues>;
/// What kernels add gradients to: orientations have three tangents. A parameter without slots is left out.
using GradientSlots = ParametersOf<ParameterSlots>;

}  // namespace backdrive
