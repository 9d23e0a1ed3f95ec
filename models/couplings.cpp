#include "models/couplings.h"

#include "models/builder.h"

namespace backdrive {
namespace {

bool is_joint(const Model& model, int joint) {
  return joint >= 0 && joint < static_cast<int>(model.joint_names.size());
}

}  // namespace

void check_couplings(ModelMistakes& mistakes, const Model& model, const std::vector<bool>& driven) {
  std::vector<int> last(model.joint_names.size(), -1);
  std::vector<bool> has_term(model.coupling_names.size(), false);
  for (const auto& [coupling, joint] : model.coupling_terms) {
    const std::string path = "couplings/" + model.coupling_names[coupling] + "/ratios";
    has_term[coupling] = true;
    if (!is_joint(model, joint)) {
      mistakes.add(path, "joint index " + std::to_string(joint) + ", expected one of the " +
                             std::to_string(model.joint_names.size()) + " joints");
      continue;
    }
    const std::string own = path + "/" + model.joint_names[joint];
    if (!has_one_degree(model.joint_types[joint])) {
      mistakes.add(own, "a " + std::string(to_string(model.joint_types[joint])) +
                            " joint, expected a revolute or prismatic one");
    }
    if (last[joint] == coupling) mistakes.add(own, "the joint for the second time, expected it once");
    last[joint] = coupling;
  }
  for (std::size_t c = 0; c < has_term.size(); ++c) {
    const std::string path = "couplings/" + model.coupling_names[c];
    if (!has_term[c]) mistakes.add(path + "/ratios", "no joint, expected at least one");
    if (driven[c] && model.coupling_holds[c]) {
      mistakes.add(path + "/drive", "a drive of a coupling that is held, expected `hold: false`");
    }
    if (model.find_joint(model.coupling_names[c]) >= 0) {
      mistakes.add(path, "name '" + model.coupling_names[c] + "'" +
                             " of a joint, expected another: controls of both are named by it");
    }
  }
}

void number_couplings(Model& model, const std::vector<bool>& driven) {
  Topology& t = model.topology;
  for (std::size_t c = 0; c < model.coupling_names.size(); ++c) {
    Coupling coupling;
    coupling.first_term = static_cast<int>(t.coupling_terms.size());
    for (const auto& [of, joint] : model.coupling_terms) {
      if (of != static_cast<int>(c) || !is_joint(model, joint)) continue;
      const int link = model.link_of_joint(joint);
      t.coupling_terms.push_back({joint, link, t.links[link].q, t.links[link].v});
    }
    coupling.term_count = static_cast<int>(t.coupling_terms.size()) - coupling.first_term;
    coupling.holds = model.coupling_holds[c];
    if (!coupling.holds) coupling.effort = t.nu++;
    if (driven[c]) {
      coupling.target = t.nu;
      t.nu += 2;
    }
    t.couplings.push_back(coupling);
  }
}

}  // namespace backdrive
