#pragma once
// How links look: <visual> of URDF.
#include <array>
#include <map>
#include <string>

#include "scenes/robots/robot.h"
#include "scenes/robots/urdf_values.h"

namespace backdrive::scene {

class UrdfVisuals {
 public:
  /// All outlive it. Knows the robot's materials from then on.
  UrdfVisuals(const XmlElement& robot, const RobotFiles& files, const Sources& sources, RobotParts& parts);

  /// One of a link, which stands at `frame` in that body of the scene. What cannot be drawn is noted, not refused: it
  /// moves nothing.
  void add(const XmlElement& link, const XmlElement& visual, const std::string& body, const Pose& frame);

 private:
  using Colour = std::array<double, 4>;

  void learn_materials(const XmlElement& element);
  void read(const XmlElement& link, const XmlElement& element, Visual& visual) const;
  void read_form(const XmlElement& link, const XmlElement& form, Visual& visual) const;

  const RobotFiles& files_;
  const Sources& sources_;
  RobotParts& parts_;
  UrdfValues values_;
  std::map<std::string, Colour, std::less<>> colours_;  ///< by the material's name
};

}  // namespace backdrive::scene
