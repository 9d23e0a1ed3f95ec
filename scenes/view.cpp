#include <cmath>

#include "scenes/reader.h"

namespace backdrive::scene {

const Schema& View::option() const {
  if (node_) {
    if (const Schema* fitting = resolve(*schema_, *node_)) return *fitting;
    return *schema_;
  }
  // An absent map is read for the defaults of its keys.
  for (const SchemaPtr& option : schema_->options) {
    if (option->kind == SchemaKind::map) return *option;
  }
  return *schema_;
}

View View::operator[](std::string_view name) const {
  if (node_) read();
  const Schema& map = option();
  const Key* key = map.key(name);
  if (!key && node_ && node_->find(name)) Mistakes::leave_off();  // as an unknown key it has been told
  if (!key) usage_error("the schema of " + path_ + " has no key " + std::string(name));
  NodePtr child = node_ ? node_->find(name) : nullptr;
  if (!child) child = default_node(*key);
  std::string path = path_.empty() ? std::string(name) : path_ + "/" + std::string(name);
  return View(*sources_, std::move(child), *key->schema, std::move(path));
}

std::vector<View> View::items() const {
  std::vector<View> views;
  if (!node_) return views;
  for (size_t i = 0; i < read().list.size(); ++i) {
    views.emplace_back(*sources_, node_->list[i], *option().entry, path_ + "/" + std::to_string(i));
  }
  return views;
}

std::vector<View> View::items_or_itself() const {
  if (kind() == NodeKind::scalar) return {*this};
  return items();
}

std::vector<View::Named> View::entries() const {
  std::vector<Named> views;
  if (!node_) return views;
  for (const Entry& entry : read().map) {
    View value(*sources_, entry.value, *option().entry, path_ + "/" + entry.key);
    views.push_back({entry.key, std::move(value), entry.place});
  }
  return views;
}

double View::number(Dimension dimension, const JointType* joint) const {
  return read_quantity(*node_, option(), dimension, joint, *sources_, path_);
}

double View::number_at(std::size_t i, Dimension dimension, JointType joint) const {
  if (read().kind == NodeKind::scalar) return number(dimension, &joint);
  return read_quantity(*node_->list[i], option(), dimension, &joint, *sources_, path_ + "/" + std::to_string(i));
}

std::vector<double> View::numbers(Dimension dimension, const JointType* joint) const {
  if (read().kind == NodeKind::scalar) return {number(dimension, joint)};
  std::vector<double> values;
  values.reserve(node_->list.size());
  for (size_t i = 0; i < node_->list.size(); ++i) {
    values.push_back(
        read_quantity(*node_->list[i], option(), dimension, joint, *sources_, path_ + "/" + std::to_string(i)));
  }
  return values;
}

const Node& View::read() const {
  if (node_->told) Mistakes::leave_off();
  return *node_;
}

void View::refuse(const std::string& expected, const std::string& hint) const {
  if (node_ && is_told(*node_)) Mistakes::leave_off();
  const std::string what = !node_ || node_->kind == NodeKind::null ? "no value" : "value '" + excerpt(*node_) + "'";
  fail(*sources_, node_ ? node_->place : Place{}, path_, what, expected, hint);
}

}  // namespace backdrive::scene
