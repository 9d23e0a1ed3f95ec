// Steps whose contact cannot be solved: they are told of, and feed nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "autodiff/problem/loss.h"
#include "autodiff/tape/rollout.h"
#include "scenes/scene.h"

namespace backdrive {
namespace {

/// Things of a centimetre on steep terrain at 120/s: a tetrahedron of 0.1 g, squeezed at 60 rad/s between two of 5 g.
constexpr const char* kScene = R"(
simulation: {duration: 0.4 s, time_step: 8.3333333333333332e-3, integrator: semi_implicit}
model:
  bodies:
    b0:
      shapes:
        - frame: {position: [0, 0, 0], orientation: {rpy: [0.9045, 0.8179, -1.626]}}
          density: 3009
          geometry:
            type: mesh
            vertices:
              - [0.002987, 0.004839, -0.004832]
              - [0.007712, -0.002254, 0.002044]
              - [-0.001621, -0.006395, -0.004686]
              - [0.000949, 0.005836, -0.00567]
    b1:
      shapes:
        - frame: {position: [-0.002721, -0.005113, -0.003057], orientation: {rpy: [-0.8002, 0.5272, 1.147]}}
          density: 2132
          geometry: {type: cylinder, scale: [0.008513, 0.0076155]}
        - frame: {position: [-0.002901, -0.003221, -0.002395], orientation: {rpy: [1.524, 1.187, -0.6621]}}
          density: 7939
          geometry: {type: capsule, scale: [0.0038037, 0.0069764]}
        - frame: {position: [-0.001608, 0.004822, 0.001931], orientation: {rpy: [0.9345, 0.2267, -0.7335]}}
          density: 5052
          geometry: {type: cylinder, scale: [0.0028634, 0.0067837]}
    b2:
      shapes:
        - frame: {position: [-0.000398, -0.000488, 0.005732], orientation: {rpy: [2.841, 0.1019, 1.106]}}
          density: 6542
          geometry: {type: sphere, scale: [0.0066939]}
        - frame: {position: [-0.007961, 0.008188, -0.00123], orientation: {rpy: [1.107, 0.3783, -2.357]}}
          density: 505.3
          geometry: {type: cylinder, scale: [0.0050255, 0.0086786]}
        - frame: {position: [-0.007328, -0.003155, -0.005829], orientation: {rpy: [-2.895, 0.2516, 0.05789]}}
          density: 4746
          geometry: {type: ellipsoid, scale: [0.0043707, 0.0035303, 0.0064731]}
  joints:
    j0: {type: free, child: b0}
    j1: {type: free, child: b1}
    j2: {type: free, child: b2}
  shapes:
    floor: {body: world, geometry: {type: plane}}
    terrain:
      body: world
      geometry:
        type: height_field
        scale: [0.3271, 0.3271, 0.04906]
        heights:
          - [0.547, 0.577, 0.871, 0.107, 0.038, 0.514]
          - [0.348, 0.533, 0.192, 0.453, 0.984, 0.434]
          - [0.936, 0.25, 0.597, 0.158, 0.232, 0.775]
          - [0.656, 0.708, 0.066, 0.005, 0.364, 0.271]
          - [0.273, 0.595, 0.217, 0.344, 0.094, 0.609]
          - [0.38, 0.853, 0.582, 0.774, 0.547, 0.694]
initial_state:
  j0:
    position: [0.0051058, 0.001205, 0.12214]
    orientation: {rpy: [-0.3997, -0.1528, 2.466]}
    velocity: [0.273055, -0.254758, 0.324452]
    angular_velocity: [17.522811, 11.567609, 13.390551]
  j1:
    position: [-0.0020135, -0.0037338, 0.16364]
    orientation: {rpy: [2.566, -1.099, -2.149]}
    velocity: [0.140985, 0.243673, -0.33972]
    angular_velocity: [7.539349, 1.367466, -4.951773]
  j2:
    position: [0.0038166, -0.0075103, 0.21291]
    orientation: {rpy: [1.561, 1.243, -1.302]}
    velocity: [0.001653, 0.341037, -0.338417]
    angular_velocity: [-7.216589, 7.674824, -3.84983]
)";

// In float32, on a processor with AVX2, the step at 0.21 s is not solved within 200 of Newton's steps: what they had
// come to was no number, at which the world stopped.
TEST(UnsolvedContact, WorldsGoOnAndGainNothing) {
  const Problem problem = parse_scene(kScene, "squeezed.yaml", ".").problem;
  RolloutOptions options;
  options.time_step = problem.simulation.time_step;
  options.steps = problem.simulation.steps;
  const State<float> start =
      place_bodies<float>(nullptr, problem.model, initial_state<float>(problem, 1, default_memory()), options);
  const auto trajectory = rollout(problem.model, start, Control<float>(problem.model, options.steps, 1), options);
  const WorldStatus& status = (*trajectory.status)[0];
  std::printf("first step that was not solved: %d\n", status.unsolved_step);
  EXPECT_FALSE(status.stopped()) << "in step " << status.stopped_step;
  const Topology& t = problem.model.topology;
  for (int step = 0; step <= options.steps; ++step) {
    for (int body = 0; body < 3; ++body) {
      // From 0.2 m up they come to 2 m/s; what one gives the other, by a collision, is at most twice that.
      for (int k = 3; k < 6; ++k) {
        EXPECT_LT(std::abs(trajectory.velocity()(step * t.nv + t.body_v(body) + k, 0)), 4) << "step " << step;
      }
    }
  }
}

}  // namespace
}  // namespace backdrive
