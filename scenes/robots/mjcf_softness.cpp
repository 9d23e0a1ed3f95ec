#include "scenes/robots/mjcf_softness.h"

#include <algorithm>
#include <cmath>

namespace backdrive::scene {
namespace {

constexpr double kLeastImpedance = 1e-4, kMostImpedance = 0.9999;  // MuJoCo's mjMINIMP and mjMAXIMP
constexpr double kTiny = 1e-15;                                    // and mjMINVAL

}  // namespace

MjcfSoftness::MjcfSoftness(const XmlValues& values, const XmlElement& element, const char* reference,
                           const char* impedance, double time_step)
    : reference_{0.02, 1}, impedance_{0.9, 0.95, 0.001, 0.5, 2} {
  if (const XmlAttribute* const given = element.attribute(reference)) {
    std::ranges::copy(values.list(element, *given, 1, 2), reference_.begin());
    is_replaced_ = (reference_[0] > 0) != (reference_[1] > 0);
    if (is_replaced_) reference_ = {0.02, 1};
    is_direct_ = !(reference_[0] > 0);
    reference_ = {std::abs(reference_[0]), std::abs(reference_[1])};
  }
  if (!is_direct_) reference_[0] = std::max(reference_[0], 2 * time_step);
  if (const XmlAttribute* const given = element.attribute(impedance)) {
    std::ranges::copy(values.list(element, *given, 1, 5), impedance_.begin());
  }
  auto& [least, greatest, width, middle, power] = impedance_;
  for (double* const share : {&least, &greatest, &middle}) {
    *share = std::clamp(*share, kLeastImpedance, kMostImpedance);
  }
  width = std::max(width, 0.0);
  power = std::max(power, 1.0);
}

MjcfSoftness MjcfSoftness::mixed(const MjcfSoftness& a, const MjcfSoftness& b, double share) {
  MjcfSoftness mean = a;
  for (int i = 0; i < 5; ++i) mean.impedance_[i] = share * a.impedance_[i] + (1 - share) * b.impedance_[i];
  if (a.is_direct_ == b.is_direct_) {
    for (int i = 0; i < 2; ++i) mean.reference_[i] = share * a.reference_[i] + (1 - share) * b.reference_[i];
    return mean;
  }
  // Of two that are not said alike MuJoCo takes the lesser numbers: those below zero.
  const MjcfSoftness& direct = a.is_direct_ ? a : b;
  mean.reference_ = direct.reference_;
  mean.is_direct_ = true;
  return mean;
}

double MjcfSoftness::spring() const {
  const double most = impedance_[1];
  if (is_direct_) return reference_[0] / (most * most);
  const double root = most * reference_[0] * reference_[1];
  return 1 / std::max(kTiny, root * root);
}

double MjcfSoftness::damper() const {
  return is_direct_ ? reference_[1] / impedance_[1] : 2 / std::max(kTiny, impedance_[1] * reference_[0]);
}

double MjcfSoftness::impedance(double violation) const {
  const auto& [least, greatest, width, middle, power] = impedance_;
  if (least == greatest || width <= kTiny) return 0.5 * (least + greatest);
  const double x = violation / width;
  if (x >= 1) return greatest;
  const double y = x <= middle ? std::pow(x, power) / std::pow(middle, power - 1)
                               : 1 - std::pow(1 - x, power) / std::pow(1 - middle, power - 1);
  return least + y * (greatest - least);
}

double MjcfSoftness::acceleration(double violation) const {
  const double d = impedance(violation);
  return spring() * d * d * violation / (1 - d);
}

double MjcfSoftness::damping(double violation) const {
  const double d = impedance(violation);
  return damper() * d / (1 - d);
}

double MjcfSoftness::violation(double wanted) const {
  // Between where the impedance would be greatest and least everywhere.
  double low = 0, high = wanted / (spring() * kLeastImpedance * kLeastImpedance);
  for (int i = 0; i < 200; ++i) {
    const double middle = 0.5 * (low + high);
    (acceleration(middle) < wanted ? low : high) = middle;
  }
  return high;
}

MjcfSpring contact_spring(const MjcfSoftness& softness, double acceleration) {
  constexpr double aside = 1e-3;  // relative
  const double depth = softness.violation(acceleration);
  const double power = (softness.acceleration(depth * (1 + aside)) - softness.acceleration(depth * (1 - aside))) /
                       (2 * aside * acceleration);
  // x − w/2 grows by a power of 1/(1 − w/2x), which is 2 where the width ends. A ramp of no width is none.
  const double width = depth * std::clamp(2 * (1 - 1 / std::max(power, 1.0)), 0.1, 1.0);
  return {acceleration / (depth - 0.5 * width), width};
}

}  // namespace backdrive::scene
