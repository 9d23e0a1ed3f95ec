#include "scenes/robots/mjcf_looks.h"

#include "engine/error.h"
#include "scenes/robots/mjcf_mesh.h"

namespace backdrive::scene {

std::optional<MjcfLooks::Colour> MjcfLooks::colour_of(const XmlElement& element) {
  const XmlAttribute* const rgba = element.attribute("rgba");
  if (!rgba) return {};
  try {
    return shown_colour(values_.numbers<4>(element, *rgba));
  } catch (const Error&) {
    parts_.note(rgba->place, "<" + element.name + " rgba=...> that is no four numbers", false);
    return {};
  }
}

void MjcfLooks::learn_material(const XmlElement& asset) {
  const XmlElement material = document_.with_defaults(asset, "material", "");
  const Colour white{1, 1, 1, 1};
  colours_.try_emplace(text_or(material, "name", ""), colour_of(material).value_or(white));
}

void MjcfLooks::colour(MjcfGeom& geom) {
  if (!geom.visual) return;
  const Colour grey{0.5, 0.5, 0.5, 1};
  const auto material = colours_.find(text_or(geom.element, "material", ""));
  const Colour colour = colour_of(geom.element).value_or(material == colours_.end() ? grey : material->second);
  const int group = values_.whole_or(geom.element, "group", 0);
  if (group < 0 || group > 2 || !(colour[3] > 0)) return geom.visual.reset();
  geom.visual->colour = colour;
  geom.visual->place = sources_.name(geom.element.place);
}

void MjcfLooks::find_mesh(MjcfGeom& geom, const XmlElement& mesh) {
  try {
    geom.visual = mjcf_mesh_visual(document_.with_defaults(mesh, "mesh", ""), document_, files_, sources_);
  } catch (const Error&) {
    parts_.note(geom.element.place, "<geom> whose mesh is not found", false);
  }
}

}  // namespace backdrive::scene
