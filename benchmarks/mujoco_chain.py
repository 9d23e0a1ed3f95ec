"""A chain of 20 links that is thrown onto a floor: how much more energy than at its start it ever has, in MuJoCo and here.

    build/oracles/bin/python benchmarks/mujoco_chain.py build/release/apps/simctl

(build/oracles: tests/reference/compare_mujoco.py.) Links of 10 cm are capsules of 2 cm, hinged crosswise. The first throw is on
one end, which whips; others start sloping. Nothing drives them, so that any factor above 1 is the integrator's. Ours is what `simctl run` tells.
"""
import functools
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import mujoco
import numpy

LINKS, SECONDS = 20, 2
RATES = (240, 1000)


def throws():
    yield 1.5, (1, 0.5, 0), (1, 2, 3), 1.5
    draw = random.Random(1)
    for _ in range(4):
        pitch = draw.uniform(0.9, 1.5)
        yield (pitch, [draw.uniform(-1, 1) for _ in range(3)], [draw.uniform(-2, 2) for _ in range(3)],
               0.3 + 0.14 * LINKS * numpy.cos(pitch))


def scene(throw):
    pitch, velocity, turn, height = throw
    return f"""
simulation: {{duration: {SECONDS} s}}
model:
  bodies:
    link$(i):
      repeat: {{i: 0..{LINKS - 1}}}
      shapes: [{{density: 1000, geometry: {{type: capsule, scale: [2 cm, 5 cm]}}, frame: {{position: [0, 0, -0.07]}}}}]
  joints:
    joint0: {{type: free, child: link0}}
    joint$(i):
      repeat: {{i: 1..{LINKS - 1}}}
      type: revolute
      axis: [$(i % 2), $(1 - i % 2), 0]
      parent: link$(i - 1)
      child: link$(i)
      frame: {{position: [0, 0, -0.14]}}
  shapes: {{floor: {{body: world, geometry: {{type: plane}}}}}}
initial_state:
  joint0: {{position: [0, 0, {height}], orientation: {{rpy: [{pitch}, 0, 0]}}, velocity: {list(velocity)}, angular_velocity: {list(turn)}}}
"""


def our_factor(program, folder, throw, integrator, rate):
    path = pathlib.Path(folder) / "chain.yaml"
    path.write_text(scene(throw))
    told = subprocess.run([program, "run", path, "--set", f"simulation/time_step={1 / rate}", "--set",
                           f"simulation/integrator={integrator}", "--output", path.parent / "out", "--force"],
                          text=True, capture_output=True).stderr
    grown = re.search(r"energy grows ([0-9.e+]+)-fold", told)
    return float(grown[1]) if grown else 1.0


def mujoco_factor(throw, integrator, rate):
    pitch, velocity, turn, height = throw
    bodies = ""
    for i in reversed(range(LINKS)):
        at = f'pos="0 0 {height}" euler="{pitch} 0 0"' if i == 0 else 'pos="0 0 -0.14"'
        kind = "<freejoint/>" if i == 0 else f'<joint type="hinge" axis="{i % 2} {1 - i % 2} 0"/>'
        bodies = (f'<body {at}>{kind}<geom type="capsule" size="0.02 0.05" pos="0 0 -0.07" density="1000"/>'
                  f"{bodies}</body>")
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><compiler angle="radian"/><option timestep="{1 / rate}" integrator="{integrator}"><flag energy="enable"/>'
        f'</option><worldbody><geom type="plane" size="10 10 1"/>{bodies}</worldbody></mujoco>')
    data = mujoco.MjData(model)
    data.qvel[:6] = [*velocity, *turn]
    mujoco.mj_forward(model, data)
    start = most = sum(data.energy)
    for _ in range(SECONDS * rate):
        mujoco.mj_step(model, data)
        if data.warning[mujoco.mjtWarning.mjWARN_BADQACC].number or not numpy.isfinite(sum(data.energy)):
            return numpy.inf  # it says so, and starts anew
        most = max(most, sum(data.energy))
    return most / start


def main(program):
    mujoco.set_mju_user_warning(lambda message: None)
    print(f"MuJoCo {mujoco.__version__}; energy over that at the start, at most; the throw on one end, and the worst of four others")
    print("| integrator | " + " | ".join(f"{r}/s" for r in RATES) + " |\n| --- |" + " --- |" * len(RATES))
    with tempfile.TemporaryDirectory() as folder:
        ours = functools.partial(our_factor, program, folder)
        sides = [(f"MuJoCo {name}", mujoco_factor, name) for name in ("Euler", "implicitfast", "implicit", "RK4")]
        sides += [(name, ours, name) for name in ("featherstone", "semi_implicit")]
        for label, factor, integrator in sides:
            cells = []
            for rate in RATES:
                first, *others = [factor(throw, integrator, rate) for throw in throws()]
                cells.append(f"{first:.3g}, {max(others):.3g}")
            print(f"| {label} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
