#pragma once
// The numbers that have gradients, and how they nest. The nesting is a template: of Parameters, which own their
// numbers, it is what users write to; of ParameterValues and ParameterSlots, which point at them, it is what kernels
// read and write on the host and on devices.
#include <cstddef>

#include "engine/generation.h"
#include "engine/pool_containers.h"
#include "engine/real.h"

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

/// Numbers of one kind, one row of `components` per item (body, joint or shape), the same for all worlds or one set per
/// world. A gradient with respect to a Parameter is a Parameter of the same shape. Copies share nothing.
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

template <class P>
struct FrameParametersOf {
  P position{3};     ///< m
  P orientation{4};  ///< unit quaternion (x, y, z, w); gradients are 3 numbers θ in R exp(θ)
};

template <class P>
struct BodyParametersOf {
  P mass{1};     ///< kg, beside what shapes with a density add
  P com{3};      ///< m, link axes, from the link origin
  P inertia{6};  ///< kg·m², link axes, about the com
};

/// Soft limits: beyond them a spring of C¹ onset and a damper that acts only there.
template <class P>
struct LimitParametersOf {
  P lower{1};      ///< rad or m; −inf: none
  P upper{1};      ///< rad or m; +inf: none
  P stiffness{1};  ///< N·m/rad or N/m
  P damping{1};    ///< N·m·s/rad or N·s/m
};

/// Position and velocity servo, treated implicitly: stiffness·(target − q⁺) + damping·(target velocity − q̇⁺).
template <class P>
struct DriveParametersOf {
  P stiffness{1};     ///< N·m/rad or N/m
  P damping{1};       ///< N·m·s/rad or N·s/m
  P effort_limit{1};  ///< N·m or N, bounds drive + commanded effort; +inf: none
};

/// Springs and dampers with which the semi-implicit integrator holds what a joint does not let go.
template <class P>
struct AttachmentParametersOf {
  P stiffness{1};          ///< N/m
  P damping{1};            ///< N·s/m
  P angular_stiffness{1};  ///< N·m/rad
  P angular_damping{1};    ///< N·m·s/rad
};

template <class P>
struct JointParametersOf {
  FrameParametersOf<P> frame;  ///< joint in the parent link's frame; the child link's frame at position zero
  /// Of a joint that closes a loop: where it sits on its child, which other joints place. Of others no shift, no turn.
  FrameParametersOf<P> child_frame;
  P axis{3};      ///< unit vector in the joint frame
  P armature{1};  ///< kg·m² or kg, reflected inertia of the actuator
  P damping{1};   ///< N·m·s/rad or N·s/m, viscous, implicit
  P friction{1};  ///< N·m or N, Coulomb level of μ q̇/√(q̇² + kFrictionVelocity²), implicit
  LimitParametersOf<P> limit;
  DriveParametersOf<P> drive;
  AttachmentParametersOf<P> attachment;
};

template <class P>
struct GeometryParametersOf {
  P scale{3};   ///< m; meaning per GeometryType
  P margin{1};  ///< m
};

template <class P>
struct MaterialParametersOf {
  P stiffness{1};           ///< N/m
  P width{1};               ///< m, of the ramp on which the spring sets in
  P dissipation{1};         ///< s/m
  P friction{1};            ///< 1
  P creep{1};               ///< m/s
  P torsional_friction{1};  ///< m, of turns about the normal
  P rolling_friction{1};    ///< m, of turns about tangents
};

template <class P>
struct ShapeParametersOf {
  FrameParametersOf<P> frame;  ///< shape in its body's link frame
  GeometryParametersOf<P> geometry;
  MaterialParametersOf<P> material;
  P density{1};  ///< kg/m³; 0: the shape adds no mass
};

/// Every differentiable number of a model; also the shape of a gradient or a direction in parameter space.
template <class P>
struct ParametersOf {
  BodyParametersOf<P> bodies;
  JointParametersOf<P> joints;
  ShapeParametersOf<P> shapes;
  P gravity{3};  ///< m/s², world axes; one item
};

using FrameParameters = FrameParametersOf<Parameter>;
using BodyParameters = BodyParametersOf<Parameter>;
using LimitParameters = LimitParametersOf<Parameter>;
using DriveParameters = DriveParametersOf<Parameter>;
using AttachmentParameters = AttachmentParametersOf<Parameter>;
using JointParameters = JointParametersOf<Parameter>;
using GeometryParameters = GeometryParametersOf<Parameter>;
using MaterialParameters = MaterialParametersOf<Parameter>;
using ShapeParameters = ShapeParametersOf<Parameter>;
using Parameters = ParametersOf<Parameter>;

/// What kernels read parameters from: orientations are quaternions; in a direction they are three tangents.
using ParametersView = ParametersOf<ParameterValues>;
/// What kernels add gradients to: orientations have three tangents. A parameter without slots is left out.
using GradientSlots = ParametersOf<ParameterSlots>;

}  // namespace backdrive
