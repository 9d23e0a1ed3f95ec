#pragma once
// How geoms of MuJoCo models look.
#include <array>
#include <map>
#include <optional>
#include <string>

#include "scenes/robots/mjcf_model.h"

namespace backdrive::scene {

class MjcfLooks : MjcfReading {
 public:
  explicit MjcfLooks(const MjcfReading& reading) : MjcfReading(reading) {}

  /// A <material> of <asset>.
  void learn_material(const XmlElement& asset);
  /// As MuJoCo draws it: in its own colour, its material's, or half grey, where its group is one of the first three.
  void colour(MjcfGeom& geom);
  /// Of a geom whose mesh nothing but looks depends on, so that it may be missing.
  void find_mesh(MjcfGeom& geom, const XmlElement& mesh);

 private:
  using Colour = std::array<double, 4>;
  /// Empty, and noted, where it is no colour.
  std::optional<Colour> colour_of(const XmlElement& element);

  std::map<std::string, Colour, std::less<>> colours_;  ///< by material
};

}  // namespace backdrive::scene
