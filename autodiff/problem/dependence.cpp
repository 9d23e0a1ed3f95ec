#include "autodiff/problem/dependence.h"

#include <algorithm>

namespace backdrive {

LinkDependence loss_dependence(const Problem& problem) {
  const Model& model = problem.model;
  LinkDependence links(model.topology.links.size());
  for (const LossTerm& term : problem.loss) {
    if (term.is_control()) continue;
    if (term.is_contact()) {
      const Topology& t = model.topology;
      links.move_tree_of(t, t.contact_shapes[t.contact_pairs[term.index].a].root);
      continue;
    }
    const auto read = [&](int link) {
      links.move_tree_of(model.topology, link);
      if (term.is_of_body()) links.pose(model.topology, link);
    };
    read(term.is_of_body() ? model.link_of_body(term.index) : model.link_of_joint(term.index));
    if (term.quantity == LossQuantity::distance && term.other >= 0) read(model.link_of_body(term.other));
  }
  return links;
}

const char* disconnected_reason(const Problem& problem, const LinkDependence& links, const Variable& variable) {
  const Model& model = problem.model;
  if (variable.kind == VariableKind::parameter) {
    const FieldSelection& s = variable.parameter;
    if (const char* foreign = foreign_reason(model, *s.field, s.item)) return foreign;
    const int link = link_of_item(model, *s.field, s.item);
    // What unused_reason() would say may be changed by other variables: the motion is what is asked about here.
    if (links.moves(link)) return nullptr;
    return disconnected_reason(model, links, *s.field, s.item);
  }
  const int link =
      variable.is_control() ? link_of_controlled(model, variable.joint) : model.link_of_joint(variable.joint);
  if (!variable.is_control() && model.joint_loops[variable.joint]) {
    return "a joint that closes a loop begins where others put its bodies";
  }
  const bool place =
      variable.kind == VariableKind::initial_position && model.joint_types[variable.joint] == JointType::free;
  if (place && links.moved[link] && !links.posed[link] && !touches_beyond(model.topology, link))
    return "no motion depends on where a free joint's child is";
  if (links.moved[link]) return nullptr;
  const auto reads_it = [&](const LossTerm& term) {
    return variable.is_control() && term.is_control() && term.index == variable.joint &&
           term.channel == variable.channel && term.component == variable.component;
  };
  if (std::any_of(problem.loss.begin(), problem.loss.end(), reads_it)) return nullptr;
  return links.reason_unmoved();
}

}  // namespace backdrive
