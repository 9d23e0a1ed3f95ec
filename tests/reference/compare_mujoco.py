#!/usr/bin/env python3
"""Holds `simctl` against MuJoCo on MJCF files: a row a model, as docs/robots.md has them.

    python3 -m venv build/oracles && build/oracles/bin/pip install mujoco
    build/oracles/bin/pip download --no-deps -d build/oracles/wheels gymnasium dm-control   # and unzip them there
    build/oracles/bin/python tests/reference/compare_mujoco.py build/release/apps/simctl FILE.xml...

For each, 20 random states (positions within the limits, or ±1.5; any orientation of free and ball joints; velocities,
accelerations and efforts within ±1 rad/s and the like): the largest differences of forward and inverse dynamics and the
mass matrix, each over the largest number there; and, at five states with no control, of what springs, dampers and
actuators of joints do (`simctl run`, one step of 1e-15 s), over the largest of these or 1 N·m. What simctl says that it
does not take over is switched off in MuJoCo, too: actuators that are on no joint or have a state, springs of free joints;
and tendons, which --tendons compares. Exit code 1: a difference above 1e-9, of the dynamics also above
n times 1e-15 of the condition number of M, n degrees of freedom: both sides round.

With --steps: 1,000 steps of models of hinges and slides alone, all in MuJoCo's units, without contact, limits, dry
friction and drives, which the two programs treat by laws of their own; MuJoCo by its `Euler` with implicit damping. The
largest difference of positions, and that of MuJoCo with itself, started 1e-15 aside: what chaos makes of rounding.

With --tendons: models of hinges and slides alone that have fixed tendons, their springs, dampers and actuators included:
accelerations of a step of 1/240 s from five states, without contact, limits and dry friction, over the largest. Those
expected are of the step that docs/theory.md has, (9) and (14), with MuJoCo's mass matrix, forces, tendon lengths and
Jacobians in it. Exit code 1: a difference above 1e-9.

With --rest: 8 s of falling onto the floor and lying there, without control: the sum of the floor's normal forces at the
end over the weight, and the deepest contact, by simctl and by MuJoCo; and by how much the centre of mass is higher once
MuJoCo has gone on for 5 s from the pose in which simctl's lies, with friction that hardly creeps (elliptic cones,
impratio 100). Exit code 1: forces are off by more than 0.5 %, that height by more than 2 mm, or a contact is deeper than
10 mm. Where a fall ends is chaotic, so that attitudes at rest are others.
"""
import json
import pathlib
import sys
import tempfile

import mujoco
import numpy

from oracle import dynamics, relative, simctl
from velocity_terms import middle_share

STATES = 20
SLIDE, HINGE, BALL, FREE = map(int, (mujoco.mjtJoint.mjJNT_SLIDE, mujoco.mjtJoint.mjJNT_HINGE,
                                     mujoco.mjtJoint.mjJNT_BALL, mujoco.mjtJoint.mjJNT_FREE))


def rotation(quaternion):
    matrix = numpy.zeros(9)
    mujoco.mju_quat2Mat(matrix, quaternion)
    return matrix.reshape(3, 3)


class Robot:
    """A model in MuJoCo, and its joints in the order of simctl's rows."""

    def __init__(self, program, file, scale=1.0):
        self.program, self.file, self.scale = program, file, scale
        self.model = model = mujoco.MjModel.from_xml_path(str(file))
        model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT | mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
        model.opt.enableflags = 0
        self.fixed = [t for t in range(model.ntendon)
                      if model.wrap_type[model.tendon_adr[t]] == mujoco.mjtWrap.mjWRAP_JOINT]
        self.tendons = [numpy.array(of[self.fixed]) for of in
                        (model.tendon_stiffness, model.tendon_damping, model.tendon_armature)]
        self.actuators = numpy.array(model.actuator_gainprm), numpy.array(model.actuator_biasprm)
        self.leave_out()
        self.data = mujoco.MjData(model)
        self.names = [model.joint(joint).name for joint in range(model.njnt)]
        if program:
            self.take_names()

    def take_names(self):
        """Those that simctl gives joints, which not all files do."""
        program, file, model = self.program, self.file, self.model
        rows = dynamics(program, file, "--quantity", "energy", "--set", "model/collision=false")["velocity_rows"]
        self.names = list(dict.fromkeys(row.split("/")[0] for row in rows))
        sizes = [sum(row.split("/")[0] == name for row in rows) for name in self.names]
        if sizes != [{SLIDE: 1, HINGE: 1, BALL: 3, FREE: 6}[int(kind)] for kind in model.jnt_type]:
            raise RuntimeError("other joints than MuJoCo has")
        for joint, name in enumerate(self.names):
            own = model.joint(joint).name.replace("/", "_")
            if own and own != name:
                raise RuntimeError(f"joint {name} where MuJoCo has {own}")

    def leave_out(self, but_tendons=False):
        model = self.model
        for i in range(model.nu):
            if but_tendons and model.actuator_trntype[i] == mujoco.mjtTrn.mjTRN_TENDON and \
                    model.actuator_trnid[i, 0] in self.fixed and \
                    model.actuator_dyntype[i] == int(mujoco.mjtDyn.mjDYN_NONE):
                continue
            on_joint = int(model.actuator_trntype[i]) in (int(mujoco.mjtTrn.mjTRN_JOINT),
                                                          int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
            one = on_joint and model.jnt_type[model.actuator_trnid[i, 0]] in (SLIDE, HINGE)
            plain = (model.actuator_dyntype[i] == int(mujoco.mjtDyn.mjDYN_NONE) and
                     int(model.actuator_gaintype[i]) in (int(mujoco.mjtGain.mjGAIN_FIXED),
                                                         int(mujoco.mjtGain.mjGAIN_AFFINE)) and
                     int(model.actuator_biastype[i]) in (int(mujoco.mjtBias.mjBIAS_NONE),
                                                         int(mujoco.mjtBias.mjBIAS_AFFINE)))
            if not (one and plain):
                model.actuator_gainprm[i] = model.actuator_biasprm[i] = 0
        model.tendon_stiffness[:] = model.tendon_damping[:] = model.tendon_armature[:] = 0
        for joint in range(model.njnt):
            if model.jnt_type[joint] == FREE:
                model.jnt_stiffness[joint] = 0

    def random_position(self, joint, random):
        low, high = self.model.jnt_range[joint] if self.model.jnt_limited[joint] else (-1.5, 1.5)
        if high - low > 6:
            low, high = -1.5, 1.5
        return random.uniform(low, high) * self.scale

    def random_state(self, random):
        """Ours by joint; and MuJoCo's q, q̇, and our q̈, τ, with the matrix from MuJoCo's velocities to ours."""
        model = self.model
        q, v = numpy.zeros(model.nq), self.scale * random.uniform(-1, 1, model.nv)
        a, tau = random.uniform(-1, 1, model.nv), random.uniform(-1, 1, model.nv)
        to_ours, state = numpy.eye(model.nv), {}
        for joint, name in enumerate(self.names):
            at_q, at_v, kind = model.jnt_qposadr[joint], model.jnt_dofadr[joint], model.jnt_type[joint]
            if kind in (SLIDE, HINGE):
                q[at_q] = self.random_position(joint, random)
                state[name] = {"position": q[at_q] - model.qpos0[at_q], "velocity": v[at_v], "acceleration": a[at_v],
                               "effort": tau[at_v]}
                continue
            quaternion = random.normal(size=4)
            quaternion /= numpy.linalg.norm(quaternion)
            orientation = list(quaternion[[1, 2, 3, 0]])
            if kind == BALL:
                q[at_q:at_q + 4] = quaternion
                rows = slice(at_v, at_v + 3)
                state[name] = {"orientation": orientation, "angular_velocity": list(v[rows]),
                               "angular_acceleration": list(a[rows]), "torque": list(tau[rows])}
                continue
            q[at_q:at_q + 3] = random.uniform(-1, 1, 3)
            q[at_q + 3:at_q + 7] = quaternion
            # MuJoCo: velocity of the origin in world axes, then turns about the body's own.
            turn, slide = slice(at_v, at_v + 3), slice(at_v + 3, at_v + 6)
            to_ours[at_v:at_v + 6, at_v:at_v + 6] = 0
            to_ours[turn, slide] = rotation(quaternion)
            to_ours[slide, turn] = numpy.eye(3)
            own = to_ours[at_v:at_v + 6, at_v:at_v + 6] @ v[at_v:at_v + 6]
            state[name] = {"position": list(q[at_q:at_q + 3]), "orientation": orientation,
                           "angular_velocity": list(own[:3]), "velocity": list(own[3:]),
                           "angular_acceleration": list(a[turn]), "acceleration": list(a[slide]),
                           "torque": list(tau[turn]), "force": list(tau[slide])}
        return state, q, v, a, tau, to_ours

    def forward(self, q, v):
        """M and what M q̈ + bias = τ has beside it, in MuJoCo's velocities."""
        self.data.qpos[:], self.data.qvel[:] = q, v
        mujoco.mj_forward(self.model, self.data)
        M = numpy.zeros((self.model.nv, self.model.nv))
        mujoco.mj_fullM(self.model, self.data, M)
        return M, self.data.qfrc_bias - self.data.qfrc_gravcomp

    def acting(self):
        """What springs, dampers and actuators do, at the state of the last forward()."""
        return self.data.qfrc_passive - self.data.qfrc_gravcomp + self.data.qfrc_actuator

    def compare_dynamics(self):
        random = numpy.random.default_rng(1)
        states = [self.random_state(random) for _ in range(STATES)]
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump([state[0] for state in states], file)
            file.flush()
            ours = dynamics(self.program, self.file, "--set", "model/collision=false", "--quantity",
                            "forward_dynamics,inverse_dynamics,mass_matrix", "--states", file.name)["states"]
        worst, condition = numpy.zeros(3), 1.0
        for own, (_, q, v, a, tau, to_ours) in zip(ours, states):
            M, bias = self.forward(q, v)
            M, bias = to_ours @ M @ to_ours.T, to_ours @ bias
            condition = max(condition, numpy.linalg.cond(M))
            worst = numpy.maximum(worst, [relative(own["forward_dynamics"], numpy.linalg.solve(M, tau - bias)),
                                          relative(own["inverse_dynamics"], M @ a + bias),
                                          relative(own["mass_matrix"], M)])
        return worst, condition

    def run(self, state, rest, joints=None):
        """Columns of the trajectory from a state, by name; `rest` and `joints` are keys of the scene and its model."""
        keys = ("position", "orientation", "velocity", "angular_velocity")
        initial = {name: {key: value for key, value in values.items() if key in keys} for name, values in state.items()}
        model = {"file": str(self.file), "collision": False, "joints": joints or {}}
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "scene.yaml"
            path.write_text(json.dumps({"model": model, "initial_state": initial, **rest}))
            return self.columns("trajectory", path, "--robot-path", self.file.parent)

    def columns(self, table, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            simctl(self.program, "run", *arguments, "--quiet", "--output", pathlib.Path(folder) / "out")
            lines = (pathlib.Path(folder) / f"out/{table}.csv").read_text().splitlines()
        rows = [line.split(",") for line in lines]
        return {name: [row[i] for row in rows[1:]] for i, name in enumerate(rows[0])}

    def compare_efforts(self):
        random, worst = numpy.random.default_rng(2), 0.0
        if not any(kind in (SLIDE, HINGE) for kind in self.model.jnt_type):
            return worst
        for _ in range(5):
            state, q, v, *_ = self.random_state(random)
            self.forward(q, v)
            theirs = self.acting()
            columns = self.run(state, {"simulation": {"time_step": 1e-15, "steps": 1}, "record": {"efforts": ["*"]}})
            rows, own = [], []
            for joint, name in enumerate(self.names):
                if self.model.jnt_type[joint] in (SLIDE, HINGE):
                    rows.append(theirs[self.model.jnt_dofadr[joint]])
                    # A drive within its limit: what its actuator's own limit leaves of it.
                    own.append(sum(float(columns[name + part][0])
                                   for part in ("/effort", "/effort/spring", "/effort/damping")))
            worst = max(worst, relative(own, rows, 1.0))
        return worst

    def take_tendons_in(self):
        model = self.model
        model.actuator_gainprm[:], model.actuator_biasprm[:] = self.actuators
        self.leave_out(but_tendons=True)
        model.tendon_stiffness[self.fixed], model.tendon_damping[self.fixed], model.tendon_armature[self.fixed] = \
            self.tendons

    def accelerations_of_step(self, q, v, time_step):
        """Of a step of docs/theory.md, dampers and drives of joints and all of tendons implicit, without controls."""
        model, data = self.model, self.data
        M, bias = self.forward(q, v)
        force = self.acting() - bias
        M += time_step * numpy.diag(model.dof_damping)
        rows = numpy.zeros((model.ntendon, model.nv))
        for t in range(model.ntendon):
            for wrap in range(model.tendon_adr[t], model.tendon_adr[t] + model.tendon_num[t]):
                if t in self.fixed:
                    rows[t, model.jnt_dofadr[model.wrap_objid[wrap]]] += model.wrap_prm[wrap]
        pulls = [(rows[t], model.tendon_stiffness[t], model.tendon_damping[t]) for t in self.fixed]
        for i in range(model.nu):
            if model.actuator_trntype[i] == mujoco.mjtTrn.mjTRN_TENDON:
                row = rows[model.actuator_trnid[i, 0]]
            else:
                row = numpy.zeros(model.nv)
                row[model.jnt_dofadr[model.actuator_trnid[i, 0]]] = 1
            pulls.append((row * model.actuator_gear[i, 0], -model.actuator_biasprm[i, 1], -model.actuator_biasprm[i, 2]))
        for row, stiffness, damping in pulls:
            M += numpy.outer(row, row) * time_step * (damping + time_step * stiffness)
            force -= row * (time_step * stiffness * (row @ v))
        middle = self.rates_of_middle(v, numpy.linalg.solve(M, force), time_step)
        return numpy.linalg.solve(M, force + bias - self.forward(q, middle)[1])

    def rates_of_middle(self, v, first, time_step):
        """z of docs/theory.md, (24), of the accelerations of a first solve, for trees of hinges and slides of which none
        whips."""
        model, share = self.model, numpy.zeros(self.model.nv)
        roots = model.body_rootid[model.dof_bodyid]
        for root in set(roots):
            own = numpy.flatnonzero(roots == root)
            hinges = [dof for dof in own if model.jnt_type[model.dof_jntid[dof]] == HINGE]
            share[own] = middle_share(v[hinges] ** 2, time_step) if len(own) > 1 else 0
        return v + time_step / 2 * share * first

    def step(self):
        """MuJoCo's step, but with the velocity terms of docs/theory.md, (24): by efforts that are what they have less than
        those of the start."""
        model, data = self.model, self.data
        q, v = data.qpos.copy(), data.qvel.copy()
        mujoco.mj_step(model, data)
        middle = self.rates_of_middle(v, (data.qvel - v) / model.opt.timestep, model.opt.timestep)
        less = -self.forward(q, middle)[1].copy()
        less += self.forward(q, v)[1]
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, v, less
        mujoco.mj_step(model, data)
        data.qfrc_applied[:] = 0

    def compare_tendons(self):
        self.take_tendons_in()
        self.model.actuator_forcelimited[:] = 0
        random, worst, time_step = numpy.random.default_rng(4), 0.0, 1 / 240
        free = {name: {"limit": {"lower": -1e6, "upper": 1e6}, "friction": 0} for name in self.names}
        for _ in range(5):
            state, q, v, *_ = self.random_state(random)
            expected = self.accelerations_of_step(q, v, time_step)
            columns = self.run(state, {"simulation": {"time_step": time_step, "steps": 1}}, free)
            after = [float(columns[f"{name}/velocity"][-1]) for name in self.names]
            worst = max(worst, relative((numpy.array(after) - v) / time_step, expected))
        return worst

    def compare_rest(self):
        model, data = self.model, self.data
        self.take_tendons_in()
        model.opt.disableflags = 0
        steps = round(8 / model.opt.timestep)
        weight = model.body_mass.sum() * abs(model.opt.gravity[2])
        length = ("--set", f"simulation/time_step={model.opt.timestep}", "--set", f"simulation/steps={steps}")
        contacts = self.columns("contacts", self.file, *length)
        end = {name: float(column[-1]) for name, column in self.columns("trajectory", self.file, *length).items()
               if column[-1]}
        last = [i for i, step in enumerate(contacts["step"]) if step == contacts["step"][-1]]
        ours = (sum(abs(float(contacts["force/z"][i])) for i in last), max(float(contacts["depth"][i]) for i in last))
        for _ in range(steps):
            mujoco.mj_step(model, data)
        force, theirs, depth = numpy.zeros(6), 0.0, 0.0
        for i in range(data.ncon):
            mujoco.mj_contactForce(model, data, i, force)
            if 0 in model.geom_bodyid[data.contact[i].geom]:
                theirs += force[0] * abs(data.contact[i].frame[2])
                depth = max(depth, -data.contact[i].dist)
        settled = self.settled(end, round(5 / model.opt.timestep))
        return ours[0] / weight, ours[1], theirs / weight, depth, settled

    def settled(self, columns, steps):
        """What MuJoCo changes the height of the centre of mass by, m, in steps from a pose of simctl's at rest; NaN: it
        does not come to rest."""
        model, data = self.model, self.data
        model.opt.cone, model.opt.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 100
        mujoco.mj_resetData(model, data)
        for joint, name in enumerate(self.names):
            at, kind = model.jnt_qposadr[joint], model.jnt_type[joint]
            if kind in (SLIDE, HINGE):
                data.qpos[at] = model.qpos0[at] + columns[f"{name}/position"]
                continue
            if kind == FREE:
                data.qpos[at:at + 3] = [columns[f"{name}/position/{axis}"] for axis in "xyz"]
                at += 3
            data.qpos[at:at + 4] = [columns[f"{name}/orientation/{axis}"] for axis in "wxyz"]
        mujoco.mj_fwdPosition(model, data)
        height = float(data.subtree_com[0][2])
        for _ in range(steps):
            mujoco.mj_step(model, data)
        return float(data.subtree_com[0][2]) - height if abs(data.qvel).max() < 0.1 else float("nan")

    def compare_steps(self):
        model, data = self.model, self.data
        model.actuator_gainprm[:] = model.actuator_biasprm[:] = 0
        model.opt.integrator = mujoco.mjtIntegrator.mjINT_EULER
        state, q, v, *_ = self.random_state(numpy.random.default_rng(3))
        free = {name: {"limit": {"lower": -1e6, "upper": 1e6}, "friction": 0,
                       "drive": {"stiffness": 0, "damping": 0}} for name in self.names}
        columns = self.run(state, {"simulation": {"time_step": model.opt.timestep, "steps": 1000}}, free)
        ends = [float(columns[f"{name}/position"][-1]) for name in self.names]
        results = []
        for aside in (0, 1e-15):
            data.qpos[:], data.qvel[:] = q + aside, v
            for _ in range(1000):
                self.step()
            results.append(data.qpos - model.qpos0)
        return relative(ends, results[0], 1.0), relative(results[1], results[0], 1.0)


def main():
    modes = {"--steps": "| model | positions after 1,000 steps | MuJoCo, started 1e-15 aside |",
             "--rest": "| model | normal force over weight | deepest, mm | MuJoCo: normal force over weight | deepest, mm | "
                       "MuJoCo from there: higher, mm |",
             "--tendons": "| model | tendons | accelerations |",
             "": "| model | degrees of freedom | q̈, τ, M | springs, dampers, actuators | cond M |"}
    mode = next((argument for argument in sys.argv if argument in modes), "")
    program, *files = [argument for argument in sys.argv[1:] if argument != mode]
    columns = modes[mode].count("|") - 1
    print(modes[mode])
    print("|" + " --- |" * columns)
    failed = False
    for file in (pathlib.Path(name).resolve() for name in files):
        name = f"{file.parent.name if file.parent.name != 'assets' else file.parent.parent.name}/{file.stem}"
        try:
            robot = Robot(program, file, 0.3 if mode == "--steps" else 1.0)
            if mode == "--steps":
                if all(kind in (SLIDE, HINGE) for kind in robot.model.jnt_type):
                    ours, chaos = robot.compare_steps()
                    failed = failed or ours > max(1e-6, 100 * chaos)
                    print(f"| {name} | {ours:.0e} | {chaos:.0e} |", flush=True)
                continue
            if mode == "--tendons":
                if robot.fixed and all(kind in (SLIDE, HINGE) for kind in robot.model.jnt_type):
                    ours = robot.compare_tendons()
                    failed = failed or ours > 1e-9
                    print(f"| {name} | {len(robot.fixed)} | {ours:.0e} |", flush=True)
                continue
            if mode == "--rest":
                ours, depth, theirs, their_depth, higher = robot.compare_rest()
                failed = failed or abs(ours - 1) > 5e-3 or depth > 0.01 or abs(higher) > 2e-3
                print(f"| {name} | {ours:.4f} | {1e3 * depth:.2f} | {theirs:.4f} | {1e3 * their_depth:.2f} | "
                      f"{1e3 * higher:.1f} |", flush=True)
                continue
            worst, condition = robot.compare_dynamics()
            efforts = robot.compare_efforts()
            failed = failed or max(worst) > max(1e-9, robot.model.nv * 1e-15 * condition) or efforts > 1e-9
            print(f"| {name} | {robot.model.nv} | {max(worst):.0e} | {efforts:.0e} | {condition:.0e} |", flush=True)
        except (RuntimeError, ValueError) as error:
            reason = " ".join(str(error).replace(str(file.parent), "").split())
            print(f"| {name} | not compared: {reason} |" + " |" * (columns - 2), flush=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
