#include "scenes/robots/mjcf_materials.h"

#include <algorithm>
#include <cmath>

#include "models/model.h"

namespace backdrive::scene {
namespace {

/// Where contacts are fitted: m/s². A force gives a limb more acceleration than the robot that lies on it, so that what
/// rests loads its contacts with more than the weight of what they stop. Limits of slides are fitted there, too.
constexpr double kWeight = 1.5 * 9.81;
/// Those of hinges where they hold a pendulum of 10 cm level: rad/s².
constexpr double kLevel = 98.1;
/// A contact takes this many steps at least, a limit that is hit hard half of them; what the file asks to be harder is
/// softer here.
constexpr double kContactSteps = 4;
double most_rate(double time_step, double steps) {
  const double most = M_PI / (steps * time_step);
  return most * most;
}

bool is_a_number_above_zero(double x) {
  return std::isfinite(x) && x > 0;
}

}  // namespace

MjcfSoftness MjcfMaterials::softness(const XmlElement& element, const char* reference, const char* impedance) {
  const MjcfSoftness result(values_, element, reference, impedance, time_step_);
  if (result.is_replaced()) {
    parts_.note(element.attribute(reference)->place, "<" + element.name + " " + reference +
                                                         "=...> of one number above 0 and one that is not: MuJoCo's "
                                                         "own are taken, as there");
  }
  return result;
}

void MjcfMaterials::find_grounds() {
  if (std::exchange(has_grounds_, true)) return;
  int order = 0;
  for (const MjcfBody& body : model_.bodies) {
    if (body.moves) continue;
    for (const MjcfGeom& geom : body.geoms) {
      if (geom.geometry) grounds_.try_emplace(filter_of(geom), order++, &geom);
    }
  }
}

MjcfSoftness MjcfMaterials::mixed_softness(const MjcfGeom& geom) {
  find_grounds();
  const std::pair<int, const MjcfGeom*>* first = nullptr;
  for (const auto& [filter, ground] : grounds_) {
    if (meet(filter, filter_of(geom)) && (!first || ground.first < first->first)) first = &ground;
  }
  const MjcfSoftness own = softness(geom);
  if (!first) return own;
  const MjcfGeom& ground = *first->second;
  const auto priority = [&](const MjcfGeom& of) { return values_.whole_or(of.element, "priority", 0); };
  if (priority(geom) != priority(ground)) return priority(geom) > priority(ground) ? own : softness(ground);
  const double a = values_.number_or(geom.element, "solmix", 1), b = values_.number_or(ground.element, "solmix", 1);
  return MjcfSoftness::mixed(own, softness(ground), a + b > 0 ? std::clamp(a / (a + b), 0.0, 1.0) : 0.5);
}

NodePtr MjcfMaterials::material(int body, const MjcfGeom& geom) {
  std::array<double, 3> friction{1, 0.005, 0.0001};
  const XmlAttribute* const given = geom.element.attribute("friction");
  if (given) std::ranges::copy(values_.list(geom.element, *given, 1, 3), friction.begin());
  // Between a body and what stands there is one spring, the body's, and the mean of the widths of both.
  return material(body, geom.element, friction, model_.bodies[body].moves ? mixed_softness(geom) : softness(geom));
}

std::array<double, 5> MjcfMaterials::pair_friction(const XmlElement& pair) const {
  std::array<double, 5> friction{1, 1, 0.005, 0.0001, 0.0001};
  const XmlAttribute* const given = pair.attribute("friction");
  if (given) std::ranges::copy(values_.list(pair, *given, 1, 5), friction.begin());
  return friction;
}

NodePtr MjcfMaterials::pair_material(int body, const XmlElement& pair) {
  const auto [along, across, turn, roll, pitch] = pair_friction(pair);
  return material(body, pair, {0.5 * (along + across), turn, 0.5 * (roll + pitch)}, softness(pair, "solref", "solimp"));
}

NodePtr MjcfMaterials::material(int body, const XmlElement& element, const std::array<double, 3>& friction,
                                const MjcfSoftness& law) {
  const XmlAttribute* const given = element.attribute("friction");
  const int directions = values_.whole_or(element, "condim", 3);
  const Place place = given ? given->place : element.place;
  NodePtr material = make_map(place);
  set_key(material, "friction", scalar_of(directions >= 3 ? friction[0] : 0, place), place);
  if (directions >= 4) set_key(material, "torsional_friction", scalar_of(friction[1], place), place);
  if (directions >= 6) set_key(material, "rolling_friction", scalar_of(friction[2], place), place);

  const XmlAttribute* const softened =
      element.attribute("solref") ? element.attribute("solref") : element.attribute("solimp");
  const Place soft = softened ? softened->place : element.place;
  const MjcfSpring spring = contact_spring(law, kWeight);
  if (!is_a_number_above_zero(spring.rate) || !is_a_number_above_zero(spring.width)) return material;
  const double inverse_mass = model_.bodies[body].inverse_mass;
  const double stiffness = std::min(spring.rate, most_rate(time_step_, kContactSteps)) / inverse_mass;
  const bool moves = model_.bodies[body].moves;
  if (moves && is_a_number_above_zero(stiffness)) set_key(material, "stiffness", scalar_of(stiffness, soft), soft);
  set_key(material, "width", scalar_of(spring.width, soft), soft);
  return material;
}

void MjcfMaterials::add_limit_law(const MjcfJoint& joint, const NodePtr& limit) {
  const XmlElement& element = joint.element;
  const MjcfSoftness law = softness(element, "solreflimit", "solimplimit");
  const double held = joint.type == "prismatic" ? kWeight : kLevel, theirs = law.violation(held);
  // Limits set in over a fixed width (docs/theory.md, (9)): the spring that holds as much there.
  const double ramp = theirs < kLimitRamp ? theirs * theirs / (2 * kLimitRamp) : theirs - kLimitRamp / 2;
  const double rate = std::min(held / ramp, most_rate(time_step_, kContactSteps / 2));
  const double ours = held / rate < kLimitRamp / 2 ? std::sqrt(2 * kLimitRamp * held / rate) : kLimitRamp;
  const double damping = law.damping(theirs) * kLimitRamp / ours;
  const double inertia = 1 / joint.inverse_inertia;
  if (!is_a_number_above_zero(rate * inertia) || !std::isfinite(damping * inertia)) return;
  const XmlAttribute* const given =
      element.attribute("solreflimit") ? element.attribute("solreflimit") : element.attribute("range");
  const Place place = given ? given->place : element.place;
  set_key(limit, "stiffness", scalar_of(rate * inertia, place), place);
  set_key(limit, "damping", scalar_of(damping * inertia, place), place);
}

}  // namespace backdrive::scene
