#include "scenes/robots/urdf_visual.h"

#include <cmath>
#include <utility>

#include "engine/error.h"

namespace backdrive::scene {

UrdfVisuals::UrdfVisuals(const XmlElement& robot, const RobotFiles& files, const Sources& sources, RobotParts& parts)
    : files_(files), sources_(sources), parts_(parts), values_(sources) {
  for (const XmlElement& element : robot.children) {
    if (element.name == "material") learn_materials(element);
    if (element.name != "link") continue;
    // A name may be used before it is explained, in whatever link.
    for (const XmlElement& visual : element.children) {
      const XmlElement* const material = visual.name == "visual" ? visual.child("material") : nullptr;
      if (material) learn_materials(*material);
    }
  }
}

void UrdfVisuals::learn_materials(const XmlElement& element) {
  const XmlAttribute* const name = element.attribute("name");
  const XmlElement* const colour = element.child("color");
  const XmlAttribute* const rgba = colour ? colour->attribute("rgba") : nullptr;
  if (!name || !rgba) return;
  try {
    colours_.try_emplace(name->value, shown_colour(values_.numbers<4>(element, *rgba)));
  } catch (const Error&) {
    parts_.note(rgba->place, "<color> that is no four numbers", false);
  }
}

void UrdfVisuals::add(const XmlElement& link, const XmlElement& element, const std::string& body, const Pose& frame) {
  Visual visual;
  visual.body = body;
  visual.place = sources_.name(element.place);
  try {
    read(link, element, visual);
    visual.pose = frame * visual.pose;
  } catch (const Error&) {
    const XmlElement* const geometry = element.child("geometry");
    const bool mesh = geometry && geometry->child("mesh");
    parts_.note(element.place, mesh ? "<visual> whose mesh is not found" : "<visual> that is not known", false);
    visual.type = GeometryType::mesh;  // of no file: what touches is drawn in place of it
    visual.file.clear();
  }
  parts_.visuals.push_back(std::move(visual));
}

void UrdfVisuals::read(const XmlElement& link, const XmlElement& element, Visual& visual) const {
  const XmlElement* const geometry = element.child("geometry");
  if (!geometry || geometry->children.empty()) values_.missing(element, "an element <geometry>");
  visual.pose = values_.origin(element).pose();
  if (const XmlElement* const material = element.child("material")) {
    const XmlElement* const colour = material->child("color");
    const XmlAttribute* const rgba = colour ? colour->attribute("rgba") : nullptr;
    const auto known = colours_.find(text_or(*material, "name", ""));
    if (rgba) {
      visual.colour = shown_colour(values_.numbers<4>(link, *rgba));
    } else if (known != colours_.end()) {
      visual.colour = known->second;
    }
  }
  read_form(link, geometry->children[0], visual);
}

void UrdfVisuals::read_form(const XmlElement& link, const XmlElement& form, Visual& visual) const {
  if (form.name == "box") {
    visual.type = GeometryType::box;
    visual.scale = values_.numbers<3>(link, values_.attribute(form, "size", "three lengths in m"));
    for (double& side : visual.scale) side = std::abs(side) / 2;
  } else if (form.name == "sphere") {
    visual.type = GeometryType::sphere;
    visual.scale = {values_.length(form, "radius"), 0, 0};
  } else if (form.name == "cylinder" || form.name == "capsule") {
    visual.type = form.name == "cylinder" ? GeometryType::cylinder : GeometryType::capsule;
    visual.scale = {values_.length(form, "radius"), values_.length(form, "length") / 2, 0};
  } else if (form.name == "mesh") {
    visual.type = GeometryType::mesh;
    const XmlAttribute& name = values_.attribute(form, "filename", "of an OBJ, STL or COLLADA file");
    visual.file = files_.find(name.value, sources_, name.place, title(link) + ": mesh");
    if (const XmlAttribute* const scale = form.attribute("scale")) visual.scale = values_.numbers<3>(link, *scale);
  } else {
    values_.missing(form, "one of <box>, <sphere>, <cylinder>, <capsule> and <mesh>");
  }
}

}  // namespace backdrive::scene
