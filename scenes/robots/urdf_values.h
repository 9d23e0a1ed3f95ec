#pragma once
#include "scenes/robots/xml_values.h"

namespace backdrive::scene {

/// What elements of URDF share.
class UrdfValues : public XmlValues {
 public:
  using XmlValues::XmlValues;

  struct Origin {
    Numbers3 position{0, 0, 0}, rpy{0, 0, 0};
    Place place;
    Pose pose() const { return {position, turn_of_rpy(rpy)}; }
    bool is_identity() const { return is_zero(position) && is_zero(rpy); }
  };
  /// The child `origin` of an element; where there is none, no offset and no turn.
  Origin origin(const XmlElement& element) const {
    Origin origin;
    origin.place = element.place;
    const XmlElement* const child = element.child("origin");
    if (!child) return origin;
    origin.place = child->place;
    if (const XmlAttribute* const xyz = child->attribute("xyz")) origin.position = numbers<3>(element, *xyz);
    if (const XmlAttribute* const rpy = child->attribute("rpy")) origin.rpy = numbers<3>(element, *rpy);
    return origin;
  }
};

}  // namespace backdrive::scene
