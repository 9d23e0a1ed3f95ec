#pragma once
// What of geoms and joints of MuJoCo becomes the material of shapes and the law of limits.
#include <map>

#include "scenes/robots/mjcf_softness.h"

namespace backdrive::scene {

class MjcfMaterials : MjcfReading {
 public:
  /// `time_step` of the file, s. Keeps references.
  MjcfMaterials(const MjcfReading& reading, const MjcfModel& model, double time_step)
      : MjcfReading(reading), model_(model), time_step_(time_step) {}

  /// Bits of contype and conaffinity.
  using Filter = std::pair<int, int>;
  static bool meet(const Filter& a, const Filter& b) { return (a.first & b.second) != 0 || (b.first & a.second) != 0; }
  static Filter filter_of(const MjcfGeom& geom) { return {geom.contact_type, geom.contact_affinity}; }

  /// Of a geom of the model, by the index of its body. Notes what is left out. Throws Error (input).
  NodePtr material(int body, const MjcfGeom& geom);
  /// Of one of the two geoms of a <pair>, by the index of its body.
  NodePtr pair_material(int body, const XmlElement& pair);
  /// Of a <pair>: along two directions, about the normal, about two directions.
  std::array<double, 5> pair_friction(const XmlElement& pair) const;
  /// Adds spring and damper to the limit of a joint.
  void add_limit_law(const MjcfJoint& joint, const NodePtr& limit);

 private:
  MjcfSoftness softness(const XmlElement& element, const char* reference, const char* impedance);
  MjcfSoftness softness(const MjcfGeom& geom) { return softness(geom.element, "solref", "solimp"); }
  /// With what of the world it touches.
  MjcfSoftness mixed_softness(const MjcfGeom& geom);
  void find_grounds();
  NodePtr material(int body, const XmlElement& element, const std::array<double, 3>& friction, const MjcfSoftness& law);

  const MjcfModel& model_;
  double time_step_;
  bool has_grounds_ = false;
  std::map<Filter, std::pair<int, const MjcfGeom*>> grounds_;  ///< the first geom that stands, of each filter
};

}  // namespace backdrive::scene
