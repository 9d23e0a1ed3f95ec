#!/usr/bin/env python3
"""Values of MuJoCo for mujoco_parts.xml, a model that has every part that simctl reads, for mujoco_tendons.xml and for
scenes/walker.xml: writes mujoco_parts.json beside itself (README.md there).

    build/oracles/bin/python tests/reference/mujoco_parts.py

(build/oracles: see compare_mujoco.py.) Checks M q̈ + bias = τ before it writes. Numbers have 15 digits, more than the
tests ask for.
"""
import json
import pathlib

import mujoco
import numpy
from compare_mujoco import BALL, HINGE, SLIDE, Robot

HERE = pathlib.Path(__file__).parent
STATES = 3


def numbers(values):
    return [float(f"{x:.15g}") for x in numpy.asarray(values)]


def rounded(value):
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return numbers(value) if isinstance(value, (list, tuple)) else float(value)


def efforts_of(robot):
    """Of springs, dampers and actuators, at the state of the last forward(), by joint."""
    acting, efforts = robot.acting(), {}
    for joint, name in enumerate(robot.names):
        first, kind = robot.model.jnt_dofadr[joint], robot.model.jnt_type[joint]
        if kind in (SLIDE, HINGE):
            efforts[name] = float(acting[first])
        elif kind == BALL:
            efforts[name] = numbers(acting[first:first + 3])
    return efforts


def model(file):
    robot = Robot(None, file)
    robot.model.opt.disableflags = int(mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    random = numpy.random.default_rng(11)
    states, expected = [], []
    for _ in range(STATES):
        state, q, v, a, tau, to_ours = robot.random_state(random)
        M, bias = robot.forward(q, v)
        M, bias = to_ours @ M @ to_ours.T, to_ours @ bias
        forward = numpy.linalg.solve(M, tau - bias)
        assert abs(M @ forward + bias - tau).max() < 1e-10 * abs(M).max()
        states.append(rounded(state))
        expected.append({"forward_dynamics": numbers(forward), "inverse_dynamics": numbers(M @ a + bias),
                         "mass_matrix": [numbers(row) for row in M], "efforts": rounded(efforts_of(robot))})
        if robot.model.nkey:
            robot.data.ctrl[:] = robot.model.key_ctrl[0]
            robot.forward(q, v)
            expected[-1]["efforts_of_key"] = rounded(efforts_of(robot))
            robot.data.ctrl[:] = 0
    bodies = range(1, robot.model.nbody)
    return {"states": states, "expected": expected,
            "inverse_masses": rounded({robot.model.body(body).name: robot.model.body_invweight0[body, 0]
                                       for body in bodies if robot.model.body(body).name}),
            "inverse_inertias": rounded({name: robot.model.dof_invweight0[robot.model.jnt_dofadr[joint]]
                                         for joint, name in enumerate(robot.names)})}


def steps(file, count):
    """Positions by joint after steps by MuJoCo's `Euler`, which treats damping implicitly, with our velocity terms, from
    speeds of 0.2."""
    robot = Robot(None, file)
    robot.model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
    robot.data.qvel[:] = 0.2
    for _ in range(count):
        robot.step()
    q = robot.data.qpos - robot.model.qpos0
    return {"count": count, "positions": {name: float(q[joint]) for joint, name in enumerate(robot.names)}}


def tendons(file, time_step):
    """Velocities by joint after a step with fixed tendons (compare_mujoco.py says of which kind)."""
    robot = Robot(None, file)
    robot.take_tendons_in()
    random, states, expected = numpy.random.default_rng(12), [], []
    for _ in range(STATES):
        state, q, v, *_ = robot.random_state(random)
        after = v + time_step * robot.accelerations_of_step(q, v, time_step)
        states.append(rounded({name: {key: values[key] for key in ("position", "velocity")}
                               for name, values in state.items()}))
        expected.append(rounded(dict(zip(robot.names, map(float, after)))))
    return {"time_step": time_step, "states": states, "velocities": expected}


def main():
    walker = HERE.parent.parent / "scenes" / "walker.xml"
    content = {"mujoco": mujoco.__version__,
               "parts": model(HERE / "mujoco_parts.xml"),
               "walker": model(walker),
               "tendons": tendons(HERE / "mujoco_tendons.xml", 1 / 256),
               "walker_steps": steps(walker, 300)}
    (HERE / "mujoco_parts.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
