#include "models/structure.h"

#include <limits>
#include <unordered_map>

#include "models/builder.h"

namespace backdrive {

std::string quoted(const std::string& name) {
  return "'" + name + "'";
}

namespace {

void check_names_of(ModelMistakes& mistakes, const std::string& group, const std::string& item,
                    const std::vector<std::string>& names) {
  std::unordered_map<std::string, size_t> seen;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    const std::string at = group + "/" + name;
    if (name.empty()) {
      mistakes.add(group + "/" + std::to_string(i), "empty name, expected a " + item + "'s name");
      continue;
    }
    const size_t bad = name.find_first_of("/*");
    if (bad != std::string::npos) {
      mistakes.add(at, "name " + quoted(name) + " contains '" + name[bad] + "', expected a name without '/' and '*'");
    }
    if (item == "body" && name == "world") {
      mistakes.add(at, "name 'world' stands for the world itself, expected another name");
    }
    if (!seen.emplace(name, i).second) {
      mistakes.add(at, "two of the " + group + " are named " + quoted(name) + ", expected unique names");
    }
  }
}

/// Throws unless a body index names a body or the world (when that is allowed).
void check_body_index(const Model& model, const std::string& path, int body, bool world_too) {
  const int bodies = static_cast<int>(model.body_names.size());
  if ((body >= 0 && body < bodies) || (world_too && body == ModelBuilder::world)) return;
  const std::string given = body == ModelBuilder::world ? "the world" : "body index " + std::to_string(body);
  throw ModelError(
      path, given + ", expected one of the " + std::to_string(bodies) + " bodies" + (world_too ? " or the world" : ""));
}

/// Planes and terrain do not move.
void check_ground(const Model& model, const std::string& path, GeometryType type, int body) {
  if (body == ModelBuilder::world || (type != GeometryType::plane && type != GeometryType::height_field)) return;
  const std::string name = type == GeometryType::plane ? "plane" : "height field";
  throw ModelError(path + "/geometry/type", (name == "plane" ? "an infinite plane" : "a height field") +
                                                std::string(" on body ") + quoted(model.body_names[body]) +
                                                ", expected a " + name + " on the world or another type");
}

void check_mesh(const Model& model, const std::string& path, size_t shape) {
  const GeometryType type = model.shape_types[shape];
  if (model.shape_meshes[shape] >= 0) return;
  if (type == GeometryType::mesh) throw ModelError(path + "/geometry", "no mesh, expected one in the shape's options");
  if (type == GeometryType::height_field) {
    throw ModelError(path + "/geometry", "no height field, expected one in the shape's options");
  }
}

/// What a joint that closes a loop must be, and what only such a joint has.
void check_loop(const Model& model, size_t joint) {
  const std::string path = "joints/" + model.joint_names[joint];
  if (!model.joint_loops[joint]) {
    const FrameParameters& frame = model.joints.child_frame;
    const int j = static_cast<int>(joint);
    const auto moves = [&](const Parameter& p, int c) { return p(j, c) != 0; };
    bool at_origin = true;
    for (int c = 0; c < 3; ++c) at_origin = at_origin && !moves(frame.position, c) && !moves(frame.orientation, c);
    if (at_origin) return;
    throw ModelError(path + "/child_frame",
                     "a frame on the child of a joint of the tree, expected it of a joint that closes a loop (loop: "
                     "true); others put the child's own frame where they are");
  }
  const int parent = model.joint_parents[joint], child = model.joint_children[joint];
  if (model.topology.integrator != Integrator::semi_implicit) {
    throw ModelError(path + "/loop", "a loop with the integrator featherstone, expected integrator semi_implicit");
  }
  if (model.joint_types[joint] == JointType::free) {
    throw ModelError(path + "/type", "a loop closed by a free joint, which holds nothing; expected another type");
  }
  if (parent == child) {
    throw ModelError(path + "/parent",
                     "body " + quoted(model.body_names[child]) + " joined to itself, expected another body");
  }
}

/// What lets go: its child has to have another joint by which it moves on, and no effort may be left to act.
void check_release(const Model& model, size_t joint) {
  const double at = model.joint_releases[joint];
  if (at == std::numeric_limits<double>::infinity()) return;
  const std::string path = "joints/" + model.joint_names[joint] + "/release";
  if (!(at > 0)) throw ModelError(path + "/at", "a release at " + std::to_string(at) + " s, expected a time > 0");
  if (model.topology.integrator != Integrator::semi_implicit) {
    throw ModelError(path, "a release with the integrator featherstone, expected integrator semi_implicit");
  }
  if (!model.joint_loops[joint] || model.joint_types[joint] != JointType::fixed) {
    throw ModelError(path,
                     std::string("a release of a ") + to_string(model.joint_types[joint]) + " joint" +
                         (model.joint_loops[joint] ? "" : " of the tree") +
                         ", expected a fixed joint that closes a loop (loop: true), beside the joint, of type free for "
                         "one, by which its child moves on");
  }
}

void check_joint(const Model& model, size_t j, bool driven) {
  const std::string path = "joints/" + model.joint_names[j];
  check_body_index(model, path + "/parent", model.joint_parents[j], true);
  check_body_index(model, path + "/child", model.joint_children[j], false);
  const JointType type = model.joint_types[j];
  if (driven && !may_be_driven(type)) {
    throw ModelError(path + "/drive",
                     "a drive on a " + std::string(to_string(type)) + " joint, expected one of another type");
  }
  check_loop(model, j);
  check_release(model, j);
  if (type == JointType::free && model.joint_parents[j] != ModelBuilder::world) {
    throw ModelError(path + "/parent", "body " + quoted(model.body_names[model.joint_parents[j]]) +
                                           " of a free joint, expected the world");
  }
}

}  // namespace

void check_names(ModelMistakes& mistakes, const Model& model) {
  check_names_of(mistakes, "bodies", "body", model.body_names);
  check_names_of(mistakes, "joints", "joint", model.joint_names);
  check_names_of(mistakes, "shapes", "shape", model.shape_names);
  check_names_of(mistakes, "couplings", "coupling", model.coupling_names);
}

void check_references(ModelMistakes& mistakes, const Model& model, const std::vector<bool>& driven) {
  for (size_t j = 0; j < model.joint_names.size(); ++j) mistakes.attempt([&] { check_joint(model, j, driven[j]); });
  for (size_t s = 0; s < model.shape_names.size(); ++s) {
    mistakes.attempt([&] {
      const std::string path = "shapes/" + model.shape_names[s];
      const int body = model.shape_bodies[s];
      check_body_index(model, path + "/body", body, true);
      check_ground(model, path, model.shape_types[s], body);
      check_mesh(model, path, s);
    });
  }
}

void check_contacts(ModelMistakes& mistakes, const Model& model) {
  const int shapes = static_cast<int>(model.shape_names.size());
  for (size_t k = 0; k < model.excluded_contacts.size(); ++k) {
    mistakes.attempt([&] {
      const std::string path = "contacts/exclude/" + std::to_string(k);
      const auto [a, b] = model.excluded_contacts[k];
      for (const int body : {a, b}) check_body_index(model, path, body, true);
      if (a != b) return;
      const std::string name = a == ModelBuilder::world ? "the world" : "body " + quoted(model.body_names[a]);
      throw ModelError(path, name + " with itself, expected two bodies (shapes of one never touch)");
    });
  }
  const auto check_shapes = [&](const char* key, const PoolVector<ShapePair>& pairs) {
    for (size_t k = 0; k < pairs.size(); ++k) {
      const auto [a, b] = pairs[k];
      for (const int shape : {a, b}) {
        if (shape >= 0 && shape < shapes) continue;
        mistakes.add(
            "contacts/" + std::string(key) + "/" + std::to_string(k),
            "shape index " + std::to_string(shape) + ", expected one of the " + std::to_string(shapes) + " shapes");
      }
    }
  };
  check_shapes("exclude_shapes", model.excluded_shapes);
  check_shapes("include", model.included_contacts);
}

}  // namespace backdrive
