// Values that several parts of a scene have.
#include <algorithm>
#include <array>
#include <cmath>

#include "scenes/pose.h"
#include "scenes/reader.h"

namespace backdrive::scene {
namespace {

Numbers3 three_numbers(const View& view) {
  const std::vector<double> values = view.numbers();
  return {values[0], values[1], values[2]};
}

}  // namespace

void refuse_name(const View& name, const std::string& expected, std::string_view kind,
                 const std::vector<std::string>& known, const Mistakes& mistakes) {
  if (mistakes.names_lost(kind)) Mistakes::leave_off();
  name.refuse(expected, nearest_name(name.text().substr(0, 200), known));
}

bool make_unit(std::array<double, 4>& q) {
  const double norm = std::hypot(std::hypot(q[0], q[1]), std::hypot(q[2], q[3]));
  if (!(std::abs(norm - 1) < 1e-2)) return false;
  const double scale = std::abs(norm - 1) < 1e-14 ? 1 : 1 / norm;
  for (double& x : q) x *= scale;
  return true;
}

std::array<double, 4> read_orientation(const View& view) {
  if (view.kind() == NodeKind::list) {
    const std::vector<double> q = view.numbers();
    std::array<double, 4> unit{q[0], q[1], q[2], q[3]};
    if (!make_unit(unit)) view.refuse("a unit quaternion (x, y, z, w)");
    return unit;
  }
  if (view.given("axis")) {
    Numbers3 axis = three_numbers(view["axis"]);
    const double norm = std::hypot(axis[0], axis[1], axis[2]);
    if (!(norm > 0) || !std::isfinite(norm)) view["axis"].refuse("an axis that is not zero");
    for (double& x : axis) x /= norm;
    return turn_about(axis, view["angle"].number());
  }
  return turn_of_rpy(three_numbers(view["rpy"]));
}

Dimension dimension_of(const Field& field) {
  const Schema* schema = scene_schema().key("model")->schema.get();
  std::string path(field.leaf);
  if (field.group == FieldGroup::bodies) schema = schema->key("bodies")->schema->entry.get();
  if (field.group == FieldGroup::joints) schema = schema->key("joints")->schema->entry.get();
  if (field.group == FieldGroup::shapes) schema = schema->key("shapes")->schema->entry.get();
  if (field.group == FieldGroup::couplings || field.group == FieldGroup::terms) {
    schema = schema->key("couplings")->schema->entry.get();
  }
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const Key* key = schema->key(path.substr(begin, end - begin));
    if (!key) return Dimension::none;
    schema = key->schema.get();
    begin = end + 1;
  }
  return schema->kind == SchemaKind::choice ? schema->options[0]->dimension : schema->dimension;
}

}  // namespace backdrive::scene
