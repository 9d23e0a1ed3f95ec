#!/usr/bin/env python3
"""Holds `simctl dynamics` against Pinocchio on URDF files: a row a robot, as docs/robots.md has them.

    python3 -m venv build/oracles && build/oracles/bin/pip install pin example-robot-data
    build/oracles/bin/python tests/reference/compare_robots.py build/release/apps/simctl [FILE.urdf...]

Without files: all of the wheel example-robot-data. For each, 20 random states (positions within the limits, or ±3 where
there are none; any orientation of a floating base; velocities, accelerations and efforts within ±1 rad/s and the like):
the largest difference of forward and inverse dynamics and mass matrix, with the base fixed and floating, and, with the
base fixed, of the derivatives of q̈ by (q, q̇, τ); each over the largest number there, derivatives over at
least 1e-6 of the largest of ∂q̈/∂τ. Both sides round: what depends on M⁻¹ may differ by some times 1e-16 of its condition number,
which the last column has. Exit code 1: a difference above 1e-9 and above n times 1e-16 of that, n degrees of freedom.
"""
import json
import pathlib
import sys
import tempfile

import numpy
import pinocchio

from oracle import dynamics, relative

STATES = 20
QUANTITIES = "forward_dynamics,inverse_dynamics,mass_matrix,dynamics_derivatives"


def joints_of(model, data):
    """Of each row of ours, but for those of the base: its joint in Pinocchio."""
    rows = []
    for name in data["velocity_rows"]:
        joint = name.split("/")[0]
        if joint == "base":
            continue
        if not model.existJointName(joint):
            raise RuntimeError(f"Pinocchio has no joint {joint}")
        rows.append(model.joints[model.getJointId(joint)])
    return rows


def random_position(joint, model, random):
    if joint.nq == 2:  # without limits, as cosine and sine
        return random.uniform(-3, 3)
    low, high = model.lowerPositionLimit[joint.idx_q], model.upperPositionLimit[joint.idx_q]
    if not (numpy.isfinite(low) and numpy.isfinite(high)) or high - low > 6:
        low, high = -3, 3
    return random.uniform(low, high)


def symmetric(upper):
    return numpy.triu(upper) + numpy.triu(upper, 1).T


def ask(program, robot, states, quantities, *arguments):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(states, file)
        file.flush()
        return dynamics(program, robot, "--set", "model/collision=false", "--quantity", quantities, "--states", file.name,
                      *arguments)["states"]


class Robot:
    """A robot in Pinocchio, and its joints in the order of simctl's rows."""

    def __init__(self, program, file, floating):
        root = [pinocchio.JointModelFreeFlyer()] if floating else []
        self.model = pinocchio.buildModelFromUrdf(str(file), *root)
        self.data = self.model.createData()
        base = ["--set", "model/base=floating"] if floating else []
        rows = dynamics(program, file, "--set", "model/collision=false", "--quantity", "energy", *base)
        self.joints = [joint for joint in joints_of(self.model, rows) if joint.nv == 1]
        if len(self.joints) + 6 * floating != self.model.nv:
            raise RuntimeError("joints of several degrees of freedom")
        self.order = [joint.idx_v for joint in self.joints]

    def random_state(self, random):
        """Ours by joint, and the numbers q, q̇, q̈, τ of each."""
        numbers = [numpy.array([random_position(joint, self.model, random) for joint in self.joints])]
        numbers += [random.uniform(-1, 1, len(self.joints)) for _ in range(3)]
        keys = ["position", "velocity", "acceleration", "effort"]
        state = {self.model.names[joint.id]: {key: values[i] for key, values in zip(keys, numbers)}
                 for i, joint in enumerate(self.joints)}
        return state, numbers

    def arrange(self, numbers):
        """The vectors of Pinocchio; a floating base is left at zero."""
        Q, vectors = pinocchio.neutral(self.model), [numpy.zeros(self.model.nv) for _ in range(3)]
        for i, joint in enumerate(self.joints):
            if joint.nq == 2:
                Q[joint.idx_q:joint.idx_q + 2] = numpy.cos(numbers[0][i]), numpy.sin(numbers[0][i])
            else:
                Q[joint.idx_q] = numbers[0][i]
            for vector, values in zip(vectors, numbers[1:]):
                vector[joint.idx_v] = values[i]
        return Q, *vectors


def compare_fixed(program, file):
    """Degrees of freedom, the largest differences of six quantities, and the largest condition number of M."""
    robot = Robot(program, file, False)
    model, data, random = robot.model, robot.data, numpy.random.default_rng(1)
    pairs = [robot.random_state(random) for _ in range(STATES)]
    ours = ask(program, file, [state for state, _ in pairs], QUANTITIES)
    worst, condition, pick = numpy.zeros(6), 1.0, numpy.ix_(robot.order, robot.order)
    for own, (_, numbers) in zip(ours, pairs):
        Q, V, A, T = robot.arrange(numbers)
        forward = pinocchio.aba(model, data, Q, V, T)[robot.order]
        inverse = pinocchio.rnea(model, data, Q, V, A)[robot.order]
        M = symmetric(pinocchio.crba(model, data, Q))[pick]
        by_q, by_v, by_tau = pinocchio.computeABADerivatives(model, data, Q, V, T)[:3]
        by_tau = symmetric(by_tau)
        least = 1e-6 * abs(by_tau).max(initial=1e-290)
        derivatives = own["dynamics_derivatives"]
        condition = max(condition, numpy.linalg.cond(M)) if M.size else condition
        worst = numpy.maximum(worst, [relative(own["forward_dynamics"], forward),
                                      relative(own["inverse_dynamics"], inverse),
                                      relative(own["mass_matrix"], M),
                                      relative(derivatives["position"], by_q[pick], least),
                                      relative(derivatives["velocity"], by_v[pick], least),
                                      relative(derivatives["effort"], by_tau[pick])])
    return model.nv, worst, condition


def compare_floating(program, file):
    """Differences of q̈, τ and M. Pinocchio has the base's linear parts first, in its own axes, and accelerations as
    those of a field: v̇ of the origin is R (a + ω × v)."""
    robot = Robot(program, file, True)
    model, data, random = robot.model, robot.data, numpy.random.default_rng(2)
    base = model.joints[1]
    pairs = []
    for _ in range(STATES):
        state, numbers = robot.random_state(random)
        quaternion = random.normal(size=4)
        quaternion /= numpy.linalg.norm(quaternion)
        place, vectors = random.uniform(-1, 1, 3), [random.uniform(-1, 1, 6) for _ in range(3)]
        state["base"] = {"orientation": list(quaternion), "position": list(place)}
        for (turn, slide), vector in zip([("angular_velocity", "velocity"), ("angular_acceleration", "acceleration"),
                                          ("torque", "force")], vectors):
            state["base"].update({turn: list(vector[:3]), slide: list(vector[3:])})
        pairs.append((state, numbers, quaternion, place, vectors))
    ours = ask(program, file, [pair[0] for pair in pairs], "forward_dynamics,inverse_dynamics,mass_matrix",
               "--set", "model/base=floating")
    worst = numpy.zeros(3)
    for own, (_, numbers, quaternion, place, (velocity, acceleration, effort)) in zip(ours, pairs):
        Q, V, A, T = robot.arrange(numbers)
        R = pinocchio.Quaternion(quaternion).matrix()
        Q[base.idx_q:base.idx_q + 7] = numpy.concatenate([place, quaternion])
        turned = [numpy.concatenate([R.T @ x[3:], R.T @ x[:3]]) for x in (velocity, acceleration, effort)]
        turned[1][:3] -= numpy.cross(turned[0][3:], turned[0][:3])
        for vector, values in zip((V, A, T), turned):
            vector[base.idx_v:base.idx_v + 6] = values
        forward = pinocchio.aba(model, data, Q, V, T)
        inverse = pinocchio.rnea(model, data, Q, V, A)
        M = symmetric(pinocchio.crba(model, data, Q))
        to_ours = numpy.eye(model.nv)  # of Pinocchio's velocities
        to_ours[:6, :6] = 0
        to_ours[:3, 3:6] = to_ours[3:6, :3] = R
        forward[:3] += numpy.cross(turned[0][3:], turned[0][:3])
        inverse, forward = to_ours @ inverse, to_ours @ forward
        M = to_ours @ M @ to_ours.T
        pick = list(range(6)) + robot.order
        worst = numpy.maximum(worst, [relative(own["forward_dynamics"], forward[pick]),
                                      relative(own["inverse_dynamics"], inverse[pick]),
                                      relative(own["mass_matrix"], M[numpy.ix_(pick, pick)])])
    return worst


def has_world_root(file):
    return pinocchio.buildModelFromUrdf(str(file)).frames[1].name == "world"


def main():
    program, files = sys.argv[1], [pathlib.Path(name) for name in sys.argv[2:]]
    if not files:
        root = pathlib.Path(pinocchio.__file__)
        while not (root / "cmeel.prefix").exists() and root != root.parent:
            root = root.parent
        files = sorted((root / "cmeel.prefix/share/example-robot-data/robots").rglob("*.urdf"))
    print("| robot | degrees of freedom | q̈, τ, M | ∂q̈/∂(q, q̇, τ) | floating: q̈, τ, M | cond M |")
    print("|" + " --- |" * 6)
    failed = False
    for file in files:
        name = f"{file.parent.parent.name}/{file.stem}".replace("_description", "")
        try:
            degrees, worst, condition = compare_fixed(program, file)
            # What is called world does not float.
            floating = [] if has_world_root(file) else list(compare_floating(program, file))
            failed = failed or max([*worst, *floating]) > max(1e-9, degrees * 1e-16 * condition)
            cells = [f"{max(part):.0e}" if part else "" for part in (list(worst[:3]), list(worst[3:]), floating)]
            print(f"| {name} | {degrees} | " + " | ".join(cells) + f" | {condition:.0e} |", flush=True)
        except (RuntimeError, ValueError) as error:
            print(f"| {name} | not compared: {str(error).split('/')[-1]} |" + " |" * 4, flush=True)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
