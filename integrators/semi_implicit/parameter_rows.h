#pragma once
// Parameters into the rows that these kernels read and back (rollout/constants.h), body by body and joint
// by joint.
#include "integrators/contact/shape_parameters.h"
#include "integrators/semi_implicit/properties.h"
#include "models/coordinates.h"

namespace backdrive::semi_implicit {

/// Rows of the constants of a world: BodyConstants per body, JointConstants per joint, 3 of gravity, ShapeConstants per
/// contact shape.
template <class C>
constexpr int joint_row(int bodies) {
  return bodies * kNumbers<C, BodyConstants<C>>;
}
template <class C>
constexpr int gravity_row(int bodies, int joints) {
  return joint_row<C>(bodies) + joints * kNumbers<C, JointConstants<C>>;
}
template <class C>
constexpr int shape_row(int bodies, int joints) {
  return gravity_row<C>(bodies, joints) + 3;
}
template <class C>
constexpr int constant_rows(int bodies, int joints, int shapes) {
  return shape_row<C>(bodies, joints) + shapes * kShapeConstants<C>;
}
/// Rows of their cotangents: BodyGradient per body, JointGradient per joint, 3 of gravity, and, where there is contact,
/// ShapeGradient per contact shape.
template <class C>
constexpr int joint_gradient_row(int bodies) {
  return bodies * kNumbers<C, BodyGradient<C>>;
}
template <class C>
constexpr int gravity_gradient_row(int bodies, int joints) {
  return joint_gradient_row<C>(bodies) + joints * kNumbers<C, JointGradient<C>>;
}
template <class C>
constexpr int shape_gradient_row(int bodies, int joints) {
  return gravity_gradient_row<C>(bodies, joints) + 3;
}
template <class C>
constexpr int gradient_rows(int bodies, int joints, int shapes = 0) {
  return shape_gradient_row<C>(bodies, joints) + shapes * kShapeGradients<C>;
}

/// Walks an attachment's numbers: visit(number of Attachment, which parameter).
template <class Visit>
BACKDRIVE_HD inline void each_attachment_scalar(Visit&& visit) {
#define BACKDRIVE_SCALAR(name) \
  visit(                       \
      [](auto& c) -> auto& { return c.name; }, BACKDRIVE_PICK(joints.attachment.name))
  BACKDRIVE_SCALAR(stiffness);
  BACKDRIVE_SCALAR(damping);
  BACKDRIVE_SCALAR(angular_stiffness);
  BACKDRIVE_SCALAR(angular_damping);
#undef BACKDRIVE_SCALAR
}

/// An orientation, and of duals its derivative along the direction's three tangents.
template <class C, class Pick>
BACKDRIVE_HD Quaternion<C> read_orientation(const ParameterReader<C>& read, Pick pick, int item) {
  const ParameterValues& o = pick(read.values);
  const auto at = [&](int c) { return o(item, c, read.world); };
  const Quaternion<double> q{{at(0), at(1), at(2)}, at(3)};
  if constexpr (std::is_same_v<C, double>) {
    return q;
  } else {
    Quaternion<double> dot{zero3<double>(), 0};
    if (read.direction) {
      dot = quaternion_rate(TurnSide::right, q, vector_of(pick(*read.direction), item, read.world));
    }
    return {{{q.v.x, dot.v.x}, {q.v.y, dot.v.y}, {q.v.z, dot.v.z}}, {q.w, dot.w}};
  }
}

template <class C>
BACKDRIVE_HD JointProperties<C> joint_properties(const ParameterReader<C>& read, int joint) {
  JointProperties<C> p;
  p.parent = {read.vector(BACKDRIVE_PICK(joints.frame.position), joint),
              read_orientation(read, BACKDRIVE_PICK(joints.frame.orientation), joint)};
  p.child = {read.vector(BACKDRIVE_PICK(joints.child_frame.position), joint),
             read_orientation(read, BACKDRIVE_PICK(joints.child_frame.orientation), joint)};
  p.axis = read.vector(BACKDRIVE_PICK(joints.axis), joint);
  p.efforts = joint_efforts(read, joint);
  each_attachment_scalar([&](auto number, auto pick) { number(p.attach) = read.number(pick, joint); });
  return p;
}

/// Writes the constants of one world.
template <class T>
struct ConstantsOfWorld {
  WorldConstants<T> to;

  /// O((bodies + joints) · shapes).
  BACKDRIVE_HD void operator()(int world) const {
    using C = Exact<T>;
    const ModelStructure& model = to.structure;
    const ParameterReader<C> read = to.reader(world);
    for (int body = 0; body < model.body_count; ++body) {
      const MassProperties<C> m = body_mass(model, read, body);
      const C lift = read.number(BACKDRIVE_PICK(bodies.gravity_compensation), body);
      to.write(world, body * kNumbers<C, BodyConstants<C>>, body_constants<C>({m.mass, m.com, m.inertia, lift}));
    }
    for (int joint = 0; joint < model.joint_count; ++joint) {
      to.write(world, joint_row<C>(model.body_count) + joint * kNumbers<C, JointConstants<C>>,
               joint_constants(model.joint_types[joint], joint_properties(read, joint)));
    }
    to.write(world, gravity_row<C>(model.body_count, model.joint_count), read.vector(BACKDRIVE_PICK(gravity), 0));
    for (int k = 0; k < model.contact_shape_count; ++k) {
      to.write(world, shape_row<C>(model.body_count, model.joint_count) + k * kShapeConstants<C>,
               contact::shape_constants(model, read, model.contact_shapes[k], identity3<C>()));
    }
  }
};

/// Adjoint of ConstantsOfWorld.
template <class T>
struct ParameterGradientOfWorld {
  WorldGradient<T> to;

  using C = Exact<T>;

  /// O((bodies + joints) · shapes).
  BACKDRIVE_HD void operator()(int world) const {
    const ModelStructure& model = to.structure;
    const ParameterReader<C> read = to.reader(world);
    const auto bar_of_shape = [&](int k) {
      const int row = shape_gradient_row<C>(model.body_count, model.joint_count) + k * kShapeGradients<C>;
      return to.template read<ShapeGradient<C>>(world, row);
    };
    for (int i = 0; i < model.link_count; ++i) {
      const int body = model.links[i].body;
      if (body < 0 || model.links[i].loop_child >= 0) continue;
      auto bar = to.template read<BodyGradient<C>>(world, body * kNumbers<C, BodyGradient<C>>);
      if (to.shapes) bar.mass += contact::auto_mass_bar(model, read, i, bar_of_shape);
      to.add_body(read, body, body_mass(model, read, body), {bar.mass, bar.com, bar.inertia});
      to.add(BACKDRIVE_PICK(bodies.gravity_compensation), body, 0, world, bar.lift);
    }
    for (int i = 0; i < model.link_count; ++i) {
      if (model.links[i].first) add_joint(read, model.links[i].joint, model.links[i].loop_child >= 0);
    }
    to.add(BACKDRIVE_PICK(gravity), 0, world,
           to.template read<Vec3<C>>(world, gravity_gradient_row<C>(model.body_count, model.joint_count)));
    for (int k = 0; to.shapes && k < model.contact_shape_count; ++k) {
      contact::add_shape(to, world, model.contact_shapes[k].shape, identity3<C>(), bar_of_shape(k));
    }
  }

 private:
  BACKDRIVE_HD void add_joint(const ParameterReader<C>& read, int joint, bool loop) const {
    const int world = read.world;
    const auto bar = to.template read<JointGradient<C>>(
        world, joint_gradient_row<C>(to.structure.body_count) + joint * kNumbers<C, JointGradient<C>>);
    JointPropertiesBar<C> own;
    adj_joint_constants(to.structure.joint_types[joint], joint_properties(read, joint), bar, own);
    to.add(BACKDRIVE_PICK(joints.frame.position), joint, world, own.parent.position);
    to.add(BACKDRIVE_PICK(joints.frame.orientation), joint, world, own.parent.orientation);
    if (loop) {  // joints of the tree sit where their child's frame is
      to.add(BACKDRIVE_PICK(joints.child_frame.position), joint, world, own.child.position);
      to.add(BACKDRIVE_PICK(joints.child_frame.orientation), joint, world, own.child.orientation);
    }
    to.add(BACKDRIVE_PICK(joints.axis), joint, world, own.axis);
    to.add_efforts(read, joint, own.efforts);
    each_attachment_scalar([&](auto number, auto pick) { to.add(pick, joint, 0, world, number(own.attach)); });
  }
};

/// What runs on devices, a thread per world (ConstantsOfWorld also for the padding).
#define BACKDRIVE_SEMI_IMPLICIT_PARAMETER_FUNCTORS(X)          \
  X(backdrive::semi_implicit::ConstantsOfWorld<float>)         \
  X(backdrive::semi_implicit::ConstantsOfWorld<double>)        \
  X(backdrive::semi_implicit::ParameterGradientOfWorld<float>) \
  X(backdrive::semi_implicit::ParameterGradientOfWorld<double>)

}  // namespace backdrive::semi_implicit
