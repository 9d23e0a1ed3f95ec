#!/usr/bin/env python3
"""Holds contact of `simctl` against MuJoCo's on the same scenes: prints the table of docs/contact.md.

    python3 -m venv build/oracles && build/oracles/bin/pip install mujoco
    build/oracles/bin/python tests/reference/compare_contact.py build/release/apps/simctl

Bodies of 500 kg/m³ at the default material of either side, friction 0.5 (MuJoCo: elliptic cones, its default solver and
solref), 240 steps a second. Where a body falls is given: how far it sinks in at rest. Where it slides: how far it gets,
beside v²/2μg. Where it tumbles, which is chaotic: on which of its sides 60 throws end, how far off that, and how fast
the fastest still is: round bodies roll on. Exit code 1: a body that sinks in by more than 3 mm, or not at all, a
stopping distance that is off by more than 1 % and 5 mm (it starts on top of the floor, and sinks in first), or a rod
that does not lie.
"""
import csv
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import mujoco
import numpy

RATE, GRAVITY, FRICTION, DENSITY = 240, 9.81, 0.5, 500
SIZES = {"box": lambda r: [r, 0.7 * r, 0.4 * r], "sphere": lambda r: [r], "capsule": lambda r: [0.3 * r, 0.7 * r],
         "cylinder": lambda r: [0.6 * r, 0.4 * r], "rod": lambda r: [0.1 * r, r]}
VOLUMES = {"box": 8 * 0.28, "sphere": 4 / 3 * math.pi, "capsule": math.pi * 0.09 * (1.4 + 0.4),
           "cylinder": math.pi * 0.36 * 0.8, "rod": math.pi * 0.01 * 2}
TYPES = {"rod": "cylinder"}


def size_of(shape, mass):
    return (mass / DENSITY / VOLUMES[shape]) ** (1 / 3)


def quaternion(turn):
    """w, x, y, z of rpy about the fixed axes x, y, z in turn."""
    result = numpy.array([1.0, 0, 0, 0])
    for axis, angle in enumerate(turn):
        q = numpy.zeros(4)
        q[0], q[1 + axis] = math.cos(angle / 2), math.sin(angle / 2)
        product = numpy.zeros(4)
        mujoco.mju_mulQuat(product, q, result)
        result = product
    return result


def scene(shape, size, start, seconds):
    """As YAML, which JSON is."""
    return json.dumps({
        "simulation": {"duration": seconds, "time_step": 1 / RATE},
        "model": {
            "bodies": {"thing": {"shapes": [{"density": DENSITY, "material": {"friction": FRICTION},
                                             "geometry": {"type": TYPES.get(shape, shape),
                                                          "scale": SIZES[shape](size)}}]}},
            "joints": {"flight": {"type": "free", "child": "thing"}},
            "shapes": {"floor": {"body": "world", "geometry": {"type": "plane"}, "material": {"friction": FRICTION}}}},
        "initial_state": {"flight": {"position": list(start["position"]), "orientation": {"rpy": list(start["turn"])},
                                     "velocity": list(start["velocity"]), "angular_velocity": list(start["spin"])}}})


def ours(simctl, shape, size, start, seconds):
    """Position, quaternion (w, x, y, z) and speed at the end."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "scene.yaml"
        path.write_text(scene(shape, size, start, seconds))
        text = subprocess.run([simctl, "run", path, "--quiet", "--output", "-"], check=True, capture_output=True,
                              text=True).stdout
    rows = list(csv.reader(text.splitlines()))
    last = dict(zip(rows[0], rows[-1]))
    of = lambda *parts: [float(last[f"flight/{p}"]) for p in parts]
    return (of("position/x", "position/y", "position/z"),
            of("orientation/w", "orientation/x", "orientation/y", "orientation/z"),
            max(map(abs, of("velocity/x", "velocity/y", "velocity/z"))))


def mujocos(shape, size, start, seconds):
    kind = TYPES.get(shape, shape)
    model = mujoco.MjModel.from_xml_string(f"""<mujoco><option timestep="{1 / RATE}" cone="elliptic" gravity="0 0 -{GRAVITY}"/>
      <worldbody><geom type="plane" size="50 50 1" friction="{FRICTION}"/><body><freejoint/>
        <geom type="{kind}" size="{' '.join(map(str, SIZES[shape](size)))}" density="{DENSITY}" friction="{FRICTION}"/>
      </body></worldbody></mujoco>""")
    data = mujoco.MjData(model)
    data.qpos[:] = [*start["position"], *quaternion(start["turn"])]
    rotation = numpy.zeros(9)
    mujoco.mju_quat2Mat(rotation, data.qpos[3:7])
    data.qvel[:3] = start["velocity"]
    data.qvel[3:] = rotation.reshape(3, 3).T @ numpy.array(start["spin"])  # MuJoCo's is in the body's axes
    for _ in range(round(seconds * RATE)):
        mujoco.mj_step(model, data)
    return list(data.qpos[:3]), list(data.qpos[3:7]), max(map(abs, data.qvel[:3]))


def upright(orientation):
    rotation = numpy.zeros(9)
    mujoco.mju_quat2Mat(rotation, numpy.array(orientation))
    return rotation.reshape(3, 3)[2]  # the world's z in the body's axes


def still(height, velocity=(0, 0, 0), turn=(0, 0, 0), spin=(0, 0, 0)):
    return {"position": (0, 0, height), "velocity": velocity, "turn": turn, "spin": spin}


def main():
    simctl, failed = sys.argv[1], False
    sides = (lambda *a: ours(simctl, *a)), mujocos
    print("| how far it sinks in at rest, mm | Backdrive | MuJoCo |\n| --- | --- | --- |")
    for shape in ("sphere", "box", "cylinder"):
        for mass in (0.01, 1, 100):
            size = size_of(shape, mass)
            half = SIZES[shape](size)[-1]
            ends = [run(shape, size, still(half), 3) for run in sides]
            print(f"| {shape} of {mass:g} kg | " + " | ".join(f"{1e3 * (half - e[0][2]):.2f}" for e in ends) + " |")
            failed = failed or not 0 < half - ends[0][0][2] < 3e-3
    print("\n| how far it slides, over v²/2μg | Backdrive | MuJoCo |\n| --- | --- | --- |")
    for mass in (0.01, 1, 100):
        for speed in (0.5, 2, 5):
            size = size_of("box", mass)
            start = still(SIZES["box"](size)[2], (speed, 0, 0))
            ends = [run("box", size, start, 3) for run in sides]
            truth = speed**2 / (2 * FRICTION * GRAVITY)
            print(f"| box of {mass:g} kg, {speed:g} m/s | " + " | ".join(f"{e[0][0] / truth:.4f}" for e in ends) + " |")
            failed = failed or abs(ends[0][0][0] - truth) > 0.01 * truth + 5e-3
    print("\n| of 60 throws, on x, y, z or between | Backdrive | MuJoCo |\n| --- | --- | --- |")
    for shape in ("rod", "box", "cylinder"):
        for mass in (0.01, 1):
            size, random = size_of(shape, mass), numpy.random.default_rng(1)
            words = []
            throws = [still(1.5 * size + 0.2, tuple(random.uniform(-1, 1, 3)), tuple(random.uniform(-3, 3, 3)),
                            tuple(random.uniform(-3, 3, 3))) for _ in range(60)]
            for run in sides:
                sides_down, tilts, speeds = [0, 0, 0], [], []
                for start in throws:
                    _, orientation, speed = run(shape, size, start, 6)
                    up = numpy.abs(upright(orientation))
                    if shape != "box":  # which side of a round one is down does not matter
                        up = numpy.array([math.hypot(up[0], up[1]), 0, up[2]])
                    sides_down[int(up.argmax())] += 1
                    tilts.append(math.degrees(math.acos(min(1, up.max()))))
                    speeds.append(speed)
                words.append(f"{', '.join(map(str, sides_down))}; {max(tilts):.1g}° off; {max(speeds):.1g} m/s")
                failed = failed or (run is sides[0] and shape == "rod" and sides_down[2] > 0)
            print(f"| {shape} of {mass:g} kg | {words[0]} | {words[1]} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
