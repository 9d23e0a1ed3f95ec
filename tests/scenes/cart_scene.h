#pragma once
// A cart with a pole, of which several tests of scenes say something else.
#include <string>

namespace backdrive::test {

inline const std::string kCartScene = R"(name: test
simulation: {time_step: 10 ms, duration: 0.5}
model:
  gravity: [0, 0, -9.8]
  bodies:
    cart: {mass: 2, shapes: [{name: hull, geometry: {type: box, scale: [10 cm, 0.2, 0.3]}, density: 10}]}
    pole:
      mass: 100 g
      com: [0, 0, 50 cm]
      inertia: [0.01, 0.01, 0.001, 0, 0, 0]
      shapes:
        - {geometry: {type: capsule, scale: [0.1, 0.2]}, frame: {orientation: {axis: [0, 2, 0], angle: 90 deg}}}
        - {geometry: {type: sphere, scale: 3 cm}, material: {friction: 0.5}}
    tip: {}
  joints:
    slider: {type: prismatic, parent: world, child: cart, axis: [1, 0, 0], limit: {lower: -2, upper: 200 cm}}
    hinge:
      type: revolute
      parent: cart
      child: pole
      axis: [0, 1, 0]
      damping: 0.01
      drive: {stiffness: 10, damping: 1, effort_limit: 5}
    weld: {type: fixed, parent: pole, child: tip, frame: {position: [0, 0, 1], orientation: {rpy: [0, 0, 90 deg]}}}
  shapes:
    floor: {body: world, geometry: {type: plane}}
initial_state:
  hinge: {position: 180 deg, velocity: 60 rpm}
controls:
  slider: [1, 2 kN, 3]
  hinge: {effort: 0.5, target_position: {values: [0, 90 deg], hold: true}}
requires_grad: [bodies/*/mass, joints/hinge/damping]
optimize:
  variables:
    - {control: slider, knots: 5, bounds: [-20, 20], initial: {random: 1}, scale: 2}
    - {control: hinge, channel: target_position, interpolation: hold, initial: 10 deg}
    - {initial_state: hinge, quantity: velocity, bounds: [-1, none]}
    - {parameter: joints/*/damping, bounds: [0.1, 3], initial: 1}
    - {parameter: bodies/pole/com/2}
  loss:
    terminal:
      - {joint: hinge, position: 0, velocity: 0, weight: {position: 100, velocity: 5}}
      - {joint: slider, position: 10 cm}
      - {body: tip, position: [0, 0, 1], orientation: [0, 0, 0, 1], point: [0, 0, 0.1], weight: 3}
    running:
      - {control: slider, weight: 1e-4}
      - {control: hinge, channel: target_position, target: 180 deg}
      - {control: hinge, channel: target_position}
  method: adam
  iterations: 10
  goal: 1e-3
)";

}  // namespace backdrive::test
