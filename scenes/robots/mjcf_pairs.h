#pragma once
// Pairs of geoms that touch whatever their bits say, with materials of their own.
#include <map>
#include <string>

#include "scenes/robots/mjcf_materials.h"

namespace backdrive::scene {

/// What a geom with a name has become.
struct MjcfShape {
  int body;
  const MjcfGeom* geom;
  std::string name;      ///< of the shape, in the scene
  NodePtr node, listed;  ///< the shape, and the list of its body's; of the world's shapes no list
  bool touches;          ///< what its bits let it
  std::map<std::string, std::string> with_material;  ///< names of the shapes that it has become, by what they are like
};

/// By the names in the file.
using MjcfShapes = std::map<std::string, MjcfShape, std::less<>>;

class MjcfPairs : MjcfReading {
 public:
  /// `names` are those of shapes. Keeps references.
  MjcfPairs(const MjcfReading& reading, const MjcfModel& model, MjcfMaterials& materials, MjcfShapes& shapes,
            Names& names)
      : MjcfReading(reading), model_(model), materials_(materials), shapes_(shapes), names_(names) {}

  /// Of a <pair>. A geom whose bits let it touch nothing gets the material of its pair, others, and those of pairs that
  /// differ, copies that touch each other alone. Notes what is left out. Throws Error (input).
  void add(const XmlElement& given);

 private:
  MjcfShape* shape_named(const XmlElement& pair, const char* key) const;
  const std::string& like(MjcfShape& shape, const NodePtr& material, double margin);

  const MjcfModel& model_;
  MjcfMaterials& materials_;
  MjcfShapes& shapes_;
  Names& names_;
};

}  // namespace backdrive::scene
