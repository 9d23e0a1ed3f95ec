#pragma once
// Bodies of any size, mass and shape thrown, slid, rolled, tipped and piled on a floor at the default material: whether
// they gain energy, and whether gradients are the slopes that one measures over a distance. The tests hold a sample of
// it, benchmarks/contact_trust.cpp prints the whole.
#include "tests/support/contact_experiments.h"
#include "tests/support/random.h"

namespace backdrive::test {

enum class Thing { sphere, capsule, box, cylinder, rod, disc, mesh, two_links, egg, lens };
constexpr Thing kThings[] = {Thing::sphere, Thing::capsule, Thing::box,       Thing::cylinder, Thing::rod,
                             Thing::disc,   Thing::mesh,    Thing::two_links, Thing::egg,      Thing::lens};
const char* name_of(Thing thing);

/// What is thrown, and in what steps.
struct Throw {
  Thing thing = Thing::box;
  double mass = 1;    ///< kg, of each body
  double size = 0.1;  ///< largest half length, m
  double rate = 240;  ///< steps per second
  Integrator integrator = Integrator::featherstone;
};

/// Of a throw: what it stands out by, how fast it is, whether it turns. Three bodies fall on one another in a pile, of
/// which all are alike, and in a mixed one, of which none but the first is what it says.
enum class Motion { drop, toss, slide, roll, tip, pile, mixed };
/// Those whose gradients are compared.
constexpr Motion kMotions[] = {Motion::drop, Motion::toss, Motion::slide, Motion::roll, Motion::tip, Motion::pile};
const char* name_of(Motion motion);

/// `worlds` random ones of a kind, above or on the plane z = 0.
Experiment thrown(const Throw& what, Motion motion, int worlds, double seconds, std::uint64_t seed);
/// Of the tables of docs/contact.md, so that a test can hold a row of them.
std::uint64_t table_seed(const Throw& what);

/// `worlds` of an experiment's starts from `first` on, placed, in other numbers.
template <class T>
State<T> start_of(const Experiment& experiment, int first, int worlds);
/// One of so many free bodies, with its principal moments, about the origin of its frame.
struct FreeBody {
  double mass;
  Numbers3 inertia;
  int number = 0, of = 1;
};
/// After a step, with the velocity that is reported.
template <class T>
double kinetic_energy(const Trajectory<T>& t, const FreeBody& body, int step, int world);

/// What becomes of one world's energy.
struct ThrownEnergy {
  double largest;  ///< sum of the kinetic energy and that of weight, over that at the start
  bool is_solved;  ///< contact of every step was
};
/// Of each world, of free bodies, not of two links.
template <class T>
std::vector<ThrownEnergy> largest_energy(const Experiment& experiment);
/// The largest of that sum in the last third of the time less the largest in the second, over that at the start. With a
/// floor in the way energy waits in its spring for a while: it is not to grow for longer.
std::vector<double> energy_growth(const Experiment& experiment);

/// ∂x(T)/∂v of one world: by the adjoint, and by differences over ± near and ± far.
struct Slope {
  double adjoint, near, far;

  double scale() const { return std::max(std::abs(near), std::abs(far)) + 1e-3; }
  /// Whether there is a slope at all: both differences say the same to 5 %.
  bool defined() const { return std::abs(near - far) <= 0.05 * scale(); }
  double error() const { return std::abs(adjoint - 0.5 * (near + far)) / scale(); }
  /// Whether there is one, and the adjoint is another by 5 %, or no number.
  bool is_off() const { return defined() && !(error() <= 0.05); }
};
std::vector<Slope> slopes(const Experiment& experiment, double near = 1e-3, double far = 1e-2);

/// Whether `simctl gradient` and `optimize` say of one world's that it cannot be trusted.
bool is_doubted(const Experiment& experiment, int world);

}  // namespace backdrive::test
