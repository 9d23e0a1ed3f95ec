#!/usr/bin/env python3
"""World-steps per second of MuJoCo Warp on the arm of gpu_benchmark: seven hinges, no contact, 64k worlds, a graph of
steps. Runs where mujoco_warp is installed; scripts/gpu-check calls it in the same run as our own figures."""
import time

import mujoco
import mujoco_warp as mjw
import warp as wp

LINKS, WORLDS, STEPS = 7, 65536, 100


def arm():
    """The chain of benchmarks/robots.cpp as MJCF."""
    axes = ["1 0 0", "0 1 0", "0 0 1"]
    xml = ""
    for i in reversed(range(LINKS)):
        xml = (f'<body pos="0.02 0.01 0.2"><joint type="hinge" axis="{axes[i % 3]}" damping="0.1" armature="0.01"/>'
               '<inertial pos="0.01 -0.02 0.1" mass="1.5" fullinertia="0.02 0.025 0.01 0.001 0.002 -0.001"/>'
               f'{xml}</body>')
    return f'<mujoco><option timestep="{1 / 240}"/><worldbody>{xml}</worldbody></mujoco>'


model = mujoco.MjModel.from_xml_string(arm())
data = mujoco.MjData(model)
warp_model = mjw.put_model(model)
warp_data = mjw.put_data(model, data, nworld=WORLDS)
mjw.step(warp_model, warp_data)
with wp.ScopedCapture() as capture:
    for _ in range(STEPS):
        mjw.step(warp_model, warp_data)
best = float("inf")
for _ in range(5):
    wp.synchronize()
    begin = time.perf_counter()
    wp.capture_launch(capture.graph)
    wp.synchronize()
    best = min(best, time.perf_counter() - begin)
print(f"MuJoCo Warp {mjw.__version__ if hasattr(mjw, '__version__') else ''}: 7-joint arm, {WORLDS} worlds, float32, "
      f"forward: {WORLDS * STEPS / best:.3g} world-steps/s")
