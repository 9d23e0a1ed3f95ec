#include "scenes/robots/mjcf_pairs.h"

#include <algorithm>

namespace backdrive::scene {
namespace {

bool is_flat(const MjcfGeom& geom) {
  return geom.type == "plane" || geom.type == "hfield";
}

/// With the value of a key, whether or not it has one; null: without.
void put(const NodePtr& map, const std::string& key, const NodePtr& value, Place place) {
  const auto known = std::ranges::find(map->map, key, &Entry::key);
  if (known != map->map.end() && value) {
    known->value = value;
  } else if (known != map->map.end()) {
    map->map.erase(known);
  } else if (value) {
    set_key(map, key, value, place);
  }
}

/// Of a map of numbers.
std::string text_of(const Node& numbers) {
  std::string text;
  for (const Entry& entry : numbers.map) text += entry.key + ":" + entry.value->text + ",";
  return text;
}

}  // namespace

MjcfShape* MjcfPairs::shape_named(const XmlElement& pair, const char* key) const {
  const XmlAttribute& name = values_.attribute(pair, key, "the name of a geom");
  const auto found = shapes_.find(name.value);
  if (found != shapes_.end()) return &found->second;
  if (!model_.geom_names.contains(name.value)) {
    const std::vector<std::string> known(model_.geom_names.begin(), model_.geom_names.end());
    refuse_name(pair, name, "the name of a geom", known, model_);
  }
  return nullptr;  // left away
}

const std::string& MjcfPairs::like(MjcfShape& shape, const NodePtr& material, double margin) {
  std::string& name = shape.with_material[text_of(*material) + shortest(margin)];
  if (!name.empty()) return name;
  const Place place = material->place;
  const bool is_first = shape.with_material.size() == 1 && !shape.touches;
  const NodePtr node = is_first ? shape.node : deep_copy(*shape.node);
  put(node, "material", material, place);
  put(node->find("geometry"), "margin", margin > 0 ? scalar_of(margin, place) : nullptr, place);
  put(node, "collision", make_scalar("none", place), place);
  name = is_first ? shape.name : unique(names_, shape.geom->name + "_pair");
  if (is_first) return name;
  if (shape.listed) {
    put(node, "name", make_scalar(name, place, true), place);
    shape.listed->list.push_back(node);
  } else {
    set_key(parts_.shapes, name, node, place);
  }
  return name;
}

void MjcfPairs::add(const XmlElement& given) {
  const XmlElement element = document_.with_defaults(given, "pair", "");
  MjcfShape* a = nullptr;
  const bool has_first = mistakes_.attempt([&] { a = shape_named(element, "geom1"); });
  MjcfShape* const b = shape_named(element, "geom2");
  if (!has_first || !a || !b) return;
  static const Names known{"name",   "class",  "geom1", "geom2",  "condim",
                           "solref", "solimp", "gap",   "margin", "friction"};
  tell_rest(element, known);
  if (is_flat(*a->geom) && is_flat(*b->geom)) {
    return parts_.note(given.place, "<pair> of " + a->geom->type + " and " + b->geom->type + ": they do not touch");
  }
  const std::array<double, 5> friction = materials_.pair_friction(element);
  if (friction[0] != friction[1] || friction[3] != friction[4]) {
    parts_.note(element.attribute("friction")->place,
                "<pair friction=...> of two directions that differ (numbers that are not given are MuJoCo's own): "
                "their mean is taken");
  }
  const double margin = values_.number_or(element, "margin", 0);
  // Margins of two shapes add up.
  const bool first_moves = model_.bodies[a->body].moves;
  const std::string first = like(*a, materials_.pair_material(a->body, element), first_moves ? margin : 0),
                    second = like(*b, materials_.pair_material(b->body, element), first_moves ? 0 : margin);
  parts_.include->list.push_back(list_of_names({first, second}, given.place));
  const bool meet = a->touches && b->touches &&
                    MjcfMaterials::meet(MjcfMaterials::filter_of(*a->geom), MjcfMaterials::filter_of(*b->geom));
  if (meet) parts_.exclude_shapes->list.push_back(list_of_names({a->name, b->name}, given.place));
}

}  // namespace backdrive::scene
