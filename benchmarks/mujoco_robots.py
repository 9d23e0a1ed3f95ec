"""World-steps per second of robots by their MJCF files, in MuJoCo's `rollout` (one thread) and by `simctl bench` (one thread), in turn.

    build/oracles/bin/python benchmarks/mujoco_robots.py build/release/apps/simctl FILE.xml...

(build/oracles: tests/reference/compare_mujoco.py.) Both sides take 50 steps of the file's length in 16 worlds that start alike, MuJoCo by
its `implicitfast`, which treats dampers implicitly as ours. Without contact: no constraint of MuJoCo's acts, no limit either, while ours
do. With it: what the file says, from where it falls onto its floor; both start from where our motion of 1 s ends. Least times of some
rounds, of MuJoCo the processor's, which other work on the machine does not lengthen;
ours are a few milliseconds long, which mostly go undisturbed.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import time

import mujoco
import mujoco.rollout
import numpy

WORLDS, STEPS, ROUNDS = 16, 50, 8
SLIDE, HINGE, BALL, FREE = map(int, (mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_HINGE,
                                     mujoco.mjtJoint.mjJNT_BALL, mujoco.mjtJoint.mjJNT_FREE))


def simctl(program, *arguments):
    return json.loads(subprocess.run([program, *map(str, arguments), "--json", "--quiet"], check=True, text=True,
                                     capture_output=True).stdout)


def mujoco_seconds(model, data):
    """Of a world-step, from the state in `data`."""
    state = numpy.empty(mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS))
    mujoco.mj_getState(model, data, state, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    states, scratch = numpy.tile(state, (WORLDS, 1)), mujoco.MjData(model)
    begin = time.process_time()
    mujoco.rollout.rollout(model, scratch, states, nstep=STEPS)
    return (time.process_time() - begin) / (WORLDS * STEPS)


def our_seconds(program, scene, folder):
    rows = simctl(program, "bench", scene, "--robot-path", folder, "--worlds", WORLDS, "--threads", 1, "--repeat", 8)["measurements"]
    return {row["precision"]: row["forward"]["nanoseconds_per_world_step"] * 1e-9 for row in rows}


def fallen(model, seconds):
    data = mujoco.MjData(model)
    for _ in range(round(seconds / model.opt.timestep)):
        mujoco.mj_step(model, data)
    return data


def initial_state(model, data):
    """As scenes have it. Names are those of simctl for joints without any."""
    state = {}
    for joint in range(model.njnt):
        at, dof, kind = model.jnt_qposadr[joint], model.jnt_dofadr[joint], model.jnt_type[joint]
        body = model.body(model.jnt_bodyid[joint]).name
        name = model.joint(joint).name or body + ("_free" if kind == FREE else "_joint")
        if kind in (SLIDE, HINGE):
            state[name] = {"position": float(data.qpos[at] - model.qpos0[at]), "velocity": float(data.qvel[dof])}
            continue
        state[name] = {}
        if kind == FREE:
            state[name]["position"] = [float(x) for x in data.qpos[at:at + 3]]
            at += 3
        w, x, y, z = map(float, data.qpos[at:at + 4])
        state[name]["orientation"] = [x, y, z, w]
    return state


def compare(program, file, touching):
    model = mujoco.MjModel.from_xml_path(str(file))
    model.opt.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    data = fallen(model, 1) if touching else mujoco.MjData(model)
    if not touching:
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    scene = {"model": {"file": file.name, "collision": touching},
             "simulation": {"time_step": model.opt.timestep, "steps": STEPS},
             "initial_state": initial_state(model, data)}
    theirs, ours = numpy.inf, {"float32": numpy.inf, "float64": numpy.inf}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "scene.yaml"
        path.write_text(json.dumps(scene))
        for _ in range(ROUNDS):
            theirs = min(theirs, mujoco_seconds(model, data))
            for precision, seconds in our_seconds(program, path, file.parent).items():
                ours[precision] = min(ours[precision], seconds)
    return theirs, ours, data.ncon


def main():
    program, *files = sys.argv[1:]
    print(f"MuJoCo {mujoco.__version__}")
    print("| model, degrees of freedom | contacts | MuJoCo, world-steps/s | float32, times as fast | float64 |")
    print("| --- | --- | --- | --- | --- |")
    for name in files:
        file = pathlib.Path(name).resolve()
        for touching in (False, True):
            try:
                theirs, ours, contacts = compare(program, file, touching)
            except subprocess.CalledProcessError as error:
                print(f"| {file.stem} | not compared: {error.stderr.strip().splitlines()[-1]} | | | |", flush=True)
                continue
            dof = mujoco.MjModel.from_xml_path(str(file)).nv
            print(f"| {file.stem}, {dof} | {contacts if touching else 'none'} | {1 / theirs:,.0f} | "
                  f"{theirs / ours['float32']:.1f} | {theirs / ours['float64']:.1f} |", flush=True)


if __name__ == "__main__":
    main()
