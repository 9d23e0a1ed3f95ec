#include "autodiff/tape/mass_motion.h"

#include <numeric>

#include "autodiff/tape/recorded.h"
#include "engine/error.h"
#include "integrators/featherstone/link_constants.h"

namespace backdrive {
namespace {

using featherstone::LinkConstants;
using featherstone::LinkGradient;

/// What of a state is asked for: a part of the rows of SystemMotion.
struct Asked {
  const char* name;
  int first, count;
};
constexpr Asked kCenter{"center_of_mass", 0, 6}, kMomentum{"momentum", 6, 6}, kEnergy{"energy", 12, 2};

/// Of all bodies together, and cotangents of that.
template <class T>
struct SystemMotion {
  Vec3<T> center, velocity;  ///< of the centre of mass
  Vec3<T> linear, angular;   ///< momentum, about the centre of mass
  T kinetic, potential;
};

template <class T>
Vec3<T> no_vector() {
  return {T(0), T(0), T(0)};
}
template <class T>
Vec3<T> at_rows(const Buffer<T>& buffer, int row, int world) {
  return {buffer(row, world), buffer(row + 1, world), buffer(row + 2, world)};
}
template <class T>
void add_rows(const Vec3<T>& v, Buffer<T>& buffer, int row, int world) {
  const T numbers[] = {v.x, v.y, v.z};
  for (int k = 0; k < 3; ++k) buffer.write(row + k)[world] += numbers[k];
}

/// The constants of one world, as kernels read them: those that all worlds share lie in one row (constants_buffer()).
template <class T>
struct ConstantsOfWorld {
  const Buffer<T>& all;
  int world;

  T operator()(int k) const { return all.rows() == 1 ? all(0, k) : all(k, world); }
  Vec3<T> vector(int k) const { return {(*this)(k), (*this)(k + 1), (*this)(k + 2)}; }
};

/// One body with mass, in the internal axes of its link (integrators/featherstone/link_constants.h), but for what is in
/// those of the world.
template <class T>
struct Moving {
  LinkConstants<T> link;
  Mat3<T> alignment, axes;  ///< of the internal axes in the link's, and in the world's
  Vec3<T> lever, place;     ///< from the link's origin to the com, and that; world axes, as all below
  Vec3<T> velocity, omega;  ///< of the com
  Vec3<T> spin;             ///< J ω

  Moving(const Topology& t, const Buffer<T>& constants, const Buffer<T>& motions, int body, int i, int world) {
    const ConstantsOfWorld<T> own{constants, world};
    T* const numbers = numbers_of<T>(&link);
    for (int k = 0; k < featherstone::kLinkConstants<T>; ++k) numbers[k] = own(i * featherstone::kLinkConstants<T> + k);
    const int at = featherstone::alignment_row<T>(static_cast<int>(t.links.size())) + 9 * i;
    alignment = {own.vector(at), own.vector(at + 3), own.vector(at + 6)};
    const int row = body * kMotionRows;
    const auto vector = [&](int first) { return at_rows(motions, row + first, world); };
    const Mat3<T> user{vector(3), vector(6), vector(9)};
    axes = {user * alignment.cx, user * alignment.cy, user * alignment.cz};
    lever = axes * link.com;
    place = vector(0) + lever;
    omega = vector(15);
    velocity = vector(12) + cross(omega, lever);
    spin = axes * (link.inertia * transposed_times(axes, omega));
  }
};

/// m += a bᵀ
template <class T>
void add_product(Mat3<T>& m, const Vec3<T>& a, const Vec3<T>& b) {
  m.cx += a * b.x, m.cy += a * b.y, m.cz += a * b.z;
}

template <class T>
struct MassCall {
  const Topology& topology;
  const Buffer<T>&constants, &motions, &qd;

  template <class Visit>
  void each_body(int world, const Visit& visit) const {
    for (std::size_t i = 0; i < topology.links.size(); ++i) {
      const int body = topology.links[i].body;
      if (body >= 0) visit(Moving<T>(topology, constants, motions, body, static_cast<int>(i), world), body, i);
    }
  }
  Vec3<T> gravity(int world) const {
    return ConstantsOfWorld<T>{constants, world}.vector(
        featherstone::gravity_row<T>(static_cast<int>(topology.links.size())));
  }
  /// Of a link's joint.
  T armature(int link, int world) const {
    LinkConstants<T> c;
    const auto offset = static_cast<int>(&c.efforts.armature - numbers_of<T>(&c));
    return ConstantsOfWorld<T>{constants, world}(link * featherstone::kLinkConstants<T> + offset);
  }
  /// Σ of the squares of a joint's velocities.
  T squares(const Link& link, int world) const {
    T sum = T(0);
    for (int k = 0; k < joint_size(link.type).nv; ++k) sum += qd(link.v + k, world) * qd(link.v + k, world);
    return sum;
  }

  SystemMotion<T> motion(int world, T& mass) const {
    mass = T(0);
    SystemMotion<T> s{no_vector<T>(), no_vector<T>(), no_vector<T>(), no_vector<T>(), T(0), T(0)};
    const Vec3<T> g = gravity(world);
    each_body(world, [&](const Moving<T>& b, int, std::size_t) {
      const T m = b.link.mass;
      mass += m;
      s.center += b.place * m;
      s.linear += b.velocity * m;
      s.angular += cross(b.place, b.velocity * m) + b.spin;
      s.kinetic += T(0.5) * (m * dot(b.velocity, b.velocity) + dot(b.omega, b.spin));
      s.potential -= m * (T(1) - b.link.lift) * dot(g, b.place);
    });
    for (std::size_t i = 0; i < topology.links.size(); ++i) {
      s.kinetic += T(0.5) * armature(static_cast<int>(i), world) * squares(topology.links[i], world);
    }
    s.center = s.center * (T(1) / mass);
    s.velocity = s.linear * (T(1) / mass);
    s.angular -= cross(s.center, s.linear);
    return s;
  }
};

/// Where cotangents go, added: buffers of all worlds; constants: empty where nobody asked.
template <class T>
struct MassBars {
  Buffer<T>&motions, &qd, &constants;
};

/// Adjoint of MassCall::motion in one world.
template <class T>
class MassAdjoint {
 public:
  MassAdjoint(const MassCall<T>& call, int world, const SystemMotion<T>& bar, const MassBars<T>& to)
      : call_(call), world_(world), bar_(bar), to_(to) {
    T mass;
    const SystemMotion<T> s = call.motion(world, mass);
    // angular = Σ (x × m u + J ω) − center × linear, linear = Σ m u, center = Σ m x / Σ m
    const Vec3<T> center = bar.center - cross(s.linear, bar.angular);
    per_velocity_ = bar.linear + bar.velocity * (T(1) / mass) - cross(bar.angular, s.center);
    per_place_ = center * (T(1) / mass);
    per_mass_ = -(dot(center, s.center) + dot(bar.velocity, s.velocity)) * (T(1) / mass);
  }

  void run() {
    call_.each_body(world_, [&](const Moving<T>& b, int body, std::size_t link) { add_body(b, body, link); });
    for (std::size_t i = 0; i < call_.topology.links.size(); ++i) add_joint(static_cast<int>(i));
    if (to_.constants.empty()) return;
    const int links = static_cast<int>(call_.topology.links.size());
    add_rows(gravity_bar_, to_.constants, featherstone::gravity_gradient_row<T>(links), world_);
  }

 private:
  void add_body(const Moving<T>& b, int body, std::size_t link) {
    const T m = b.link.mass, falls = T(1) - b.link.lift;
    const Vec3<T> g = call_.gravity(world_);
    const Vec3<T> place = (per_place_ + cross(b.velocity, bar_.angular) - g * (falls * bar_.potential)) * m;
    const Vec3<T> velocity = (per_velocity_ + cross(bar_.angular, b.place) + b.velocity * bar_.kinetic) * m;
    const Vec3<T> lever = place + cross(velocity, b.omega);
    // L̄·R J Rᵀ ω + ½ K̄ ω·R J Rᵀ ω
    const Vec3<T> own = transposed_times(b.axes, b.omega), seen = transposed_times(b.axes, bar_.angular);
    const Vec3<T> own_bar = b.link.inertia * (seen + own * bar_.kinetic), seen_bar = b.link.inertia * own;
    Mat3<T> axes{no_vector<T>(), no_vector<T>(), no_vector<T>()};
    add_product(axes, lever, b.link.com);
    add_product(axes, b.omega, own_bar);
    add_product(axes, bar_.angular, seen_bar);
    const int row = body * kMotionRows;
    add_rows(place, to_.motions, row, world_);
    const Mat3<T>& A = b.alignment;
    const Vec3<T> user[3] = {axes.cx * A.cx.x + axes.cy * A.cy.x + axes.cz * A.cz.x,
                             axes.cx * A.cx.y + axes.cy * A.cy.y + axes.cz * A.cz.y,
                             axes.cx * A.cx.z + axes.cy * A.cy.z + axes.cz * A.cz.z};
    for (int k = 0; k < 3; ++k) add_rows(user[k], to_.motions, row + 3 + 3 * k, world_);
    add_rows(velocity, to_.motions, row + 12, world_);
    add_rows(b.axes * own_bar + cross(b.lever, velocity), to_.motions, row + 15, world_);
    const T weight = dot(g, b.place) * bar_.potential;
    gravity_bar_ -= b.place * (m * falls * bar_.potential);
    if (to_.constants.empty()) return;
    LinkGradient<T> gradient{};
    gradient.mass = per_mass_ + dot(per_place_, b.place) + dot(per_velocity_, b.velocity) +
                    dot(bar_.angular, cross(b.place, b.velocity)) +
                    T(0.5) * bar_.kinetic * dot(b.velocity, b.velocity) - falls * weight;
    gradient.lift = m * weight;
    gradient.com = transposed_times(b.axes, lever);
    const Vec3<T> x = seen + own * (T(0.5) * bar_.kinetic);
    gradient.inertia = {x.x * own.x,
                        x.y * own.y,
                        x.z * own.z,
                        x.x * own.y + x.y * own.x,
                        x.x * own.z + x.z * own.x,
                        x.y * own.z + x.z * own.y};
    const Vec3<T> columns[3] = {transposed_times(b.axes, axes.cx), transposed_times(b.axes, axes.cy),
                                transposed_times(b.axes, axes.cz)};
    gradient.alignment = {columns[1].z - columns[2].y, columns[2].x - columns[0].z, columns[0].y - columns[1].x};
    add(gradient, static_cast<int>(link));
  }

  void add_joint(int i) {
    const Link& link = call_.topology.links[i];
    const T armature = call_.armature(i, world_);
    for (int k = 0; k < joint_size(link.type).nv; ++k) {
      to_.qd.write(link.v + k)[world_] += bar_.kinetic * armature * call_.qd(link.v + k, world_);
    }
    if (to_.constants.empty()) return;
    LinkGradient<T> gradient{};
    gradient.efforts.armature = T(0.5) * bar_.kinetic * call_.squares(link, world_);
    add(gradient, i);
  }

  void add(LinkGradient<T>& gradient, int link) {
    const T* const numbers = numbers_of<T>(&gradient);
    for (int k = 0; k < featherstone::kLinkGradients<T>; ++k) {
      to_.constants.write(link * featherstone::kLinkGradients<T> + k)[world_] += numbers[k];
    }
  }

  const MassCall<T>& call_;
  int world_;
  const SystemMotion<T>& bar_;
  const MassBars<T>& to_;
  Vec3<T> per_velocity_, per_place_;  ///< cotangents of Σ m u and Σ m x
  T per_mass_;                        ///< of Σ m
  Vec3<T> gravity_bar_ = no_vector<T>();
};

template <class T>
struct MassNode final : Tape<T>::Node {
  MassNode(Recorded<T> r, const Asked& a, Buffer<T> m, Buffer<T> v)
      : recorded(std::move(r)), asked(a), motions(std::move(m)), qd(std::move(v)) {
    for (const Buffer<T>* b : {&motions, &qd}) this->inputs.emplace_back(*b, b->version());
  }
  const Model* model() const override { return recorded.model.get(); }
  MassCall<T> call() const { return {recorded.model->topology, recorded.kernel_model.constants, motions, qd}; }

  LinkDependence trace(Reach& reach) const override {
    const Topology& t = recorded.model->topology;
    LinkDependence own(t.links.size());
    if (!reach.of(result.id())) return own;
    for (std::size_t i = 0; i < t.links.size(); ++i) own.move_tree_of(t, static_cast<int>(i));
    reach.read(motions.id(), Components::everything());
    reach.read(qd.id(), Components::everything());
    return own;
  }

  void backward(Cotangents<T>& bars, Parameters& gradient, Parameters& gradient_dot) override {
    const Buffer<T>* const bar = bars.find(result);
    if (!bar) return;
    Buffer<T> constants_bar = recorded.constants_bar(bars.memory(), qd.worlds());
    if (!constants_bar.empty()) constants_bar.fill(T(0));
    const MassCall<T> own = call();
    for (int w = 0; w < qd.worlds(); ++w) {
      SystemMotion<T> of{};
      for (int k = 0; k < asked.count; ++k) numbers_of<T>(&of)[asked.first + k] = (*bar)(k, w);
      MassAdjoint<T>(own, w, of, {bars.of(motions), bars.of(qd), constants_bar}).run();
    }
    recorded.add_gradient(constants_bar, bars, gradient, gradient_dot);
  }

  Recorded<T> recorded;
  Asked asked;
  Buffer<T> motions, qd, result;
};

template <class T>
Buffer<T> motion_of_masses(const Asked& asked, Tape<T>* tape, const Model& model, const State<T>& state,
                           Memory& memory) {
  if (tape) tape->check_recording();
  if (model.topology.has_bodies()) {
    usage_error(std::string(asked.name) + ": a model in maximal coordinates; expected the integrator featherstone");
  }
  const RolloutOptions options;
  check_rollout(model, state, Control<T>(), options);
  if (state.q.backend()) {
    usage_error(std::string(asked.name) + ": numbers on a device; expected them in the host's memory");
  }
  Memory& own = tape ? tape->memory() : memory;
  std::vector<int> bodies(model.body_names.size());
  std::iota(bodies.begin(), bodies.end(), 0);
  const Buffer<T> motions = body_motions<T>(tape, model, state, bodies, options, own);
  const int worlds = state.q.worlds();
  auto node = std::make_unique<MassNode<T>>(Recorded<T>(model, options, worlds, own), asked, motions, state.qd);
  node->result = Buffer<T>(own, asked.count, worlds);
  for (int w = 0; w < worlds; ++w) {
    T mass;
    SystemMotion<T> s = node->call().motion(w, mass);
    if (!(mass > T(0))) usage_error(std::string(asked.name) + ": a model without mass");
    for (int k = 0; k < asked.count; ++k) node->result.set(k, w, numbers_of<T>(&s)[asked.first + k]);
  }
  node->outputs.emplace_back(node->result, node->result.version());
  const Buffer<T> result = node->result;
  if (tape) tape->push(std::move(node));
  return result;
}

}  // namespace

template <class T>
Buffer<T> center_of_mass(std::type_identity_t<Tape<T>*> tape, const Model& model, const State<T>& state,
                         Memory& memory) {
  return motion_of_masses<T>(kCenter, tape, model, state, memory);
}

template <class T>
Buffer<T> momentum(std::type_identity_t<Tape<T>*> tape, const Model& model, const State<T>& state, Memory& memory) {
  return motion_of_masses<T>(kMomentum, tape, model, state, memory);
}

template <class T>
Buffer<T> energy(std::type_identity_t<Tape<T>*> tape, const Model& model, const State<T>& state, Memory& memory) {
  return motion_of_masses<T>(kEnergy, tape, model, state, memory);
}

#define BACKDRIVE_INSTANTIATE(T)                                                          \
  template Buffer<T> center_of_mass<T>(Tape<T>*, const Model&, const State<T>&, Memory&); \
  template Buffer<T> momentum<T>(Tape<T>*, const Model&, const State<T>&, Memory&);       \
  template Buffer<T> energy<T>(Tape<T>*, const Model&, const State<T>&, Memory&);
BACKDRIVE_INSTANTIATE(float)
BACKDRIVE_INSTANTIATE(double)
#undef BACKDRIVE_INSTANTIATE

}  // namespace backdrive
