#include "benchmarks/robots.h"

#include <string>

#include "models/builder.h"

namespace backdrive::benchmarks {
namespace {

Model revolute_tree(const std::vector<int>& parents) {
  ModelBuilder builder;
  const Numbers3 axes[3] = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  for (size_t i = 0; i < parents.size(); ++i) {
    const std::string number = std::to_string(i);
    const int body = builder.add_body(
        "link" + number,
        {.mass = 1.5, .com = {0.01, -0.02, 0.1}, .inertia = {0.02, 0.025, 0.01, 0.001, 0.002, -0.001}});
    JointOptions options;
    options.frame.position = {0.02, 0.01, 0.2};
    options.axis = axes[i % 3];
    options.damping = 0.1;
    options.armature = 0.01;
    builder.add_joint("joint" + number, JointType::revolute, parents[i], body, options);
  }
  return builder.build();
}

/// A trunk of six links, at some of which limbs begin.
Model trunk_with_limbs(const std::vector<int>& roots, int limb) {
  std::vector<int> parents;
  for (int i = 0; i < 6; ++i) parents.push_back(i - 1);
  for (const int root : roots) {
    parents.push_back(root);
    for (int i = 1; i < limb; ++i) parents.push_back(static_cast<int>(parents.size()) - 1);
  }
  return revolute_tree(parents);
}

}  // namespace

Model chain(int links) {
  std::vector<int> parents;
  for (int i = 0; i < links; ++i) parents.push_back(i - 1);
  return revolute_tree(parents);
}

Model tree18() {
  return trunk_with_limbs({5, 5, 5, 5}, 3);
}

Model tree30() {
  return trunk_with_limbs({1, 3, 5, 5}, 6);
}

}  // namespace backdrive::benchmarks
