#pragma once
#include <limits>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/error.h"
#include "models/model.h"
#include "models/model_error.h"

namespace backdrive {

// What bodies, joints and shapes begin with (parameter_table.h).
#define BACKDRIVE_OPTION(at, name, begins, ...) std::decay_t<decltype(begins)> name = begins;
#define BACKDRIVE_NEST(type, member, parameters, what, X) \
  struct type##Options {                                  \
    parameters(BACKDRIVE_OPTION, )                        \
  };
#define BACKDRIVE_NEST_MEMBER(type, member, parameters, what, X) type##Options member = {};

struct Frame {
  BACKDRIVE_FRAME_PARAMETERS(BACKDRIVE_OPTION, , "")
};

struct BodyOptions {
  BACKDRIVE_BODY_PARAMETERS(BACKDRIVE_OPTION, )
  bool unphysical_inertia = false;  ///< may be one that no rigid body has (Model::unphysical_inertias)
};

BACKDRIVE_EFFORT_NESTS(BACKDRIVE_NEST, )

struct AttachmentOptions {
  BACKDRIVE_ATTACHMENT_PARAMETERS(BACKDRIVE_OPTION, )
};

struct JointOptions {
  Frame frame = {};
  /// Closes a loop: the child hangs on another joint already. What places it then is child_frame.
  bool loop = false;
  Frame child_frame = {};
  /// s from the start of a rollout: when a fixed joint that closes a loop, a grip, lets go.
  double release = std::numeric_limits<double>::infinity();
  BACKDRIVE_AXIS_PARAMETERS(BACKDRIVE_OPTION, )
  BACKDRIVE_RESISTANCE_PARAMETERS(BACKDRIVE_OPTION, )
  /// The child may turn by a good part of a radian in a step: its gyroscopic couple is that of the whole step, which
  /// keeps its energy bounded (docs/theory.md, (12)), as that of free and ball joints always is. Of featherstone.
  bool spins = false;
  /// A joint with a drive gets control channels for its target position and velocity.
  bool driven = false;
  BACKDRIVE_EFFORT_NESTS(BACKDRIVE_NEST_MEMBER, )
  AttachmentOptions attachment = {};
};

struct ShapeOptions {
  GeometryType type = GeometryType::sphere;
  BACKDRIVE_GEOMETRY_PARAMETERS(BACKDRIVE_OPTION, )
  Frame frame = {};
  BACKDRIVE_DENSITY_PARAMETERS(BACKDRIVE_OPTION, )
  BACKDRIVE_MATERIAL_PARAMETERS(BACKDRIVE_OPTION, )
  CollisionFilter filter = {};
  std::shared_ptr<const ConvexMesh> mesh = nullptr;           ///< of a mesh, whose scale is mostly {1, 1, 1}
  std::shared_ptr<const HeightField> height_field = nullptr;  ///< of a height field; its spacings do not count
};

/// A joint of a coupling, and what its position is multiplied with.
struct CouplingRatio {
  JointIndex joint;
  double ratio;
};

/// s = Σ ratio·position + offset of revolute and prismatic joints, on which acts what acts on a joint, its spring
/// implicitly, too.
struct CouplingOptions {
  std::vector<CouplingRatio> ratios = {};
  BACKDRIVE_OFFSET_PARAMETERS(BACKDRIVE_OPTION, )
  /// Holds s at zero, exactly: then nothing else acts on it.
  bool hold = false;
  BACKDRIVE_RESISTANCE_PARAMETERS(BACKDRIVE_OPTION, )
  bool driven = false;  ///< as of a joint
  BACKDRIVE_EFFORT_NESTS(BACKDRIVE_NEST_MEMBER, )
};

struct WorldOptions {
  BACKDRIVE_WORLD_PARAMETERS(BACKDRIVE_OPTION, )
};

#undef BACKDRIVE_OPTION
#undef BACKDRIVE_NEST
#undef BACKDRIVE_NEST_MEMBER

/// Makes axes and quaternions unit vectors, zeroes unused scale components, then checks the values of all worlds and
/// refreshes the links' features. build() calls it, and every recording of a model whose numbers changed (snapshot).
/// Throws ModelError with all that is wrong, of several worlds in the first such world. O((bodies + joints + shapes +
/// couplings³) · worlds).
void validate(Model& model);

/// What of a model is not known, since what says it is wrong: nothing is said of what hangs on it.
struct UnknownParts {
  bool tree = false;     ///< which body hangs on which
  bool inertia = false;  ///< what moves
};
/// The same, which adds what is wrong; refreshes the features where nothing is.
void validate(Model& model, ModelMistakes& mistakes, const UnknownParts& unknown = {});

/// The model as a recording takes it, whoever wrote what since it was built and by whatever way: what is derived from
/// numbers and from requires_grad (refresh_features) is derived anew, and numbers that are not those that were last
/// found good are checked. `checked`: somebody else has seen to that. Throws ModelError. O(numbers), and validate's
/// cost where they changed.
Model snapshot(const Model& model, const Parameters* direction = nullptr, bool checked = false);

/// Collects bodies, joints, shapes and couplings in any order; names must be unique within their kind and joined
/// without `/`.
class ModelBuilder {
 public:
  static constexpr BodyIndex world = -1;

  void set_gravity(const Numbers3& gravity) { world_.gravity = gravity; }
  void set_integrator(Integrator integrator) { model_.topology.integrator = integrator; }
  BodyIndex add_body(const std::string& name, const BodyOptions& options);
  JointIndex add_joint(const std::string& name, JointType type, BodyIndex parent, BodyIndex child,
                       const JointOptions& options = {});
  ShapeIndex add_shape(const std::string& name, BodyIndex body, const ShapeOptions& options);
  CouplingIndex add_coupling(const std::string& name, const CouplingOptions& options);
  /// No shapes of the two bodies (one may be the world) touch, but for included pairs.
  void exclude_contacts(BodyIndex body_a, BodyIndex body_b) { model_.excluded_contacts.push_back({body_a, body_b}); }
  /// The two shapes do not touch each other.
  void exclude_shapes(ShapeIndex shape_a, ShapeIndex shape_b) { model_.excluded_shapes.push_back({shape_a, shape_b}); }
  /// The two shapes may touch whatever their filters, the joints and exclude_contacts say.
  void include_contact(ShapeIndex shape_a, ShapeIndex shape_b) {
    model_.included_contacts.push_back({shape_a, shape_b});
  }

  /// Checks everything and orders the tree. Throws ModelError: a body without or with two joints (but for those that
  /// close loops), a circle of joints that does not hang on the world, negative mass, an inertia no body can have, a
  /// joint that moves no inertia, a zero axis, non-finite numbers, a mesh shape without a mesh, included contacts that
  /// cannot be, a coupling of joints that have no single position, what the integrator cannot do: loops with
  /// featherstone, bodies without inertia and couplings with semi_implicit.
  Model build() const;
  /// The same, which adds what is wrong and goes on behind it: what comes back has all names, types and numbers, and
  /// components in the right order. Where there is no tree, each joint stands on the world, and nothing touches.
  Model build(ModelMistakes& mistakes, const UnknownParts& unknown = {}) const;

 private:
  Model model_;
  std::vector<bool> driven_, coupling_driven_, spins_;
  WorldOptions world_;
};

}  // namespace backdrive
