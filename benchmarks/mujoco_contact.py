"""The quadruped of contact_benchmark in MuJoCo's `rollout` (its default solver, one thread), beside Backdrive's figures.

    pip install mujoco && python benchmarks/mujoco_contact.py build/bench/benchmarks/contact_benchmark
"""
import json
import subprocess
import sys
import time

import mujoco
import mujoco.rollout
import numpy as np

STEPS, WORLDS, RATE = 240, 64, 240
HEIGHT, HIP, KNEE = 0.325, 0.7, -1.4


def inertial(mass, half, z=0.0):
    x, y, w = (mass / 3 * (half[1] ** 2 + half[2] ** 2), mass / 3 * (half[0] ** 2 + half[2] ** 2),
               mass / 3 * (half[0] ** 2 + half[1] ** 2))
    return f'<inertial mass="{mass}" pos="0 0 {z}" diaginertia="{x} {y} {w}"/>'


def leg(k):
    x, y = (0.2 if k < 2 else -0.2), (0.1 if k % 2 == 0 else -0.1)
    hinge = 'type="hinge" armature="0.01" damping="2.1"'
    return f"""<body pos="{x} {y} 0"><joint name="hip{k}" axis="1 0 0" {hinge}/>{inertial(0.4, (0.03, 0.03, 0.03))}
      <body><joint name="thigh{k}" axis="0 1 0" {hinge}/>{inertial(0.4, (0.02, 0.02, 0.1), -0.1)}
        <body pos="0 0 -0.2"><joint name="shank{k}" axis="0 1 0" {hinge}/>{inertial(0.1, (0.01, 0.01, 0.1), -0.1)}
          <geom type="sphere" size="0.02" pos="0 0 -0.2" contype="1" conaffinity="0" friction="0.8"/>
        </body></body></body>"""


def model():
    joints = [f"{part}{k}" for k in range(4) for part in ("hip", "thigh", "shank")]
    drives = "".join(f'<position joint="{j}" kp="60"/>' for j in joints)
    return mujoco.MjModel.from_xml_string(f"""<mujoco><option timestep="{1 / RATE}" integrator="implicitfast"/>
      <worldbody><geom type="plane" size="10 10 1" contype="0" conaffinity="1" friction="0.8"/>
      <body pos="0 0 {HEIGHT}"><freejoint/>{inertial(8, (0.2, 0.1, 0.05))}
        <geom type="box" size="0.2 0.1 0.05" contype="1" conaffinity="0"/>{"".join(leg(k) for k in range(4))}
      </body></worldbody><actuator>{drives}</actuator></mujoco>""")


def mujoco_rate():
    m = model()
    d = mujoco.MjData(m)
    posture = np.tile([0, HIP, KNEE], 4)
    states = []
    for w in range(WORLDS):
        d.qpos[:] = np.concatenate([[0, 0, HEIGHT + 0.0002 * w, 1, 0, 0, 0], posture])
        d.qvel[:] = 0
        state = np.empty(mujoco.mj_stateSize(m, mujoco.mjtState.mjSTATE_FULLPHYSICS))
        mujoco.mj_getState(m, d, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        states.append(state)
    control = np.tile(posture, (WORLDS, STEPS, 1))
    best = 0.0
    for _ in range(5):
        begin = time.perf_counter()
        mujoco.rollout.rollout(m, d, np.array(states), control)
        best = max(best, WORLDS * STEPS / (time.perf_counter() - begin))
    mujoco.mj_setState(m, d, states[0], mujoco.mjtState.mjSTATE_FULLPHYSICS)
    d.ctrl[:] = posture
    for _ in range(STEPS):
        mujoco.mj_step(m, d)
    return best, d.ncon, d.qpos[2]


def ours(program):
    out = subprocess.run([program, "--benchmark_format=json", "--benchmark_repetitions=5"], check=True,
                         capture_output=True, text=True).stdout
    best = {}
    for run in json.loads(out[out.index("{"):])["benchmarks"]:
        if run.get("run_type") == "iteration":
            best[run["name"]] = max(best.get(run["name"], 0), run["items_per_second"])
    return best


def main():
    rate, contacts, height = mujoco_rate()
    print(f"MuJoCo {mujoco.__version__}: {rate:,.0f} world-steps/s, {contacts} contacts, trunk at {height:.3f} m")
    figures = ours(sys.argv[1])
    for name, figure in figures.items():
        print(f"{name:35} {figure:12,.0f} world-steps/s {figure / rate:7.1f} x MuJoCo")
    for kind in ("float32", "float64"):
        forward, gradient = figures[f"standing/{kind}/forward"], figures[f"standing/{kind}/gradient"]
        air, bare = figures[f"in_the_air/{kind}/forward"], figures[f"without_shapes/{kind}/forward"]
        print(f"{kind}: forward + gradient costs {forward / gradient:.2f} x forward; shapes that touch nothing cost "
              f"{(bare / air - 1) * 100:.0f} % of a step")


if __name__ == "__main__":
    main()
