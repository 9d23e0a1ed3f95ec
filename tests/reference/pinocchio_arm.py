"""Writes pinocchio_arm.json: dynamics of two trees as Pinocchio computes them, for our tests.

The first tree is the arm of scenes/arm_reach.yaml, the second a random one with branches and
sliding joints. Only rigid-body dynamics: armature counts, damping and limits do not. How to run it
and what is in the file: README.md.
"""

import json
import pathlib

import numpy as np
import pinocchio
import yaml
from velocity_terms import middle_share

HERE = pathlib.Path(__file__).resolve().parent
SCENE = "scenes/arm_reach.yaml"
SEED = 20250321
GRAVITY = np.array([0.0, 0.0, -9.81])
STATES = 8
STEPS = 20
TIME_STEP = 0.005


# --- What is simulated: a list of links, each a body with the joint that carries it --------------


def links_of_scene(path):
    model = yaml.safe_load(path.read_text())["model"]
    links = []
    for name, joint in model["joints"].items():
        body = model["bodies"][joint["child"]]
        frame = joint.get("frame", {})
        links.append(
            {
                "joint": name,
                "type": joint["type"],
                "parent": joint.get("parent", "world"),
                "child": joint["child"],
                "position": frame.get("position", [0, 0, 0]),
                "orientation": frame.get("orientation", [0, 0, 0, 1]),
                "axis": joint.get("axis", [0, 0, 1]),
                "armature": joint.get("armature", 0),
                "mass": body["mass"],
                "com": body["com"],
                "inertia": body["inertia"],
            }
        )
    return links


def unit(vector):
    return vector / np.linalg.norm(vector)


def random_inertia(rng, mass):
    """That of a solid box with sides of 10-40 cm, turned, about its centre of mass."""
    squares = rng.uniform(0.1, 0.4, 3) ** 2
    turn = pinocchio.Quaternion(unit(rng.normal(size=4))).toRotationMatrix()
    full = turn @ np.diag(mass / 12 * (squares.sum() - squares)) @ turn.T
    return [full[0, 0], full[1, 1], full[2, 2], full[0, 1], full[0, 2], full[1, 2]]


def random_tree(rng):
    # Depth first, as Pinocchio's derivatives need it: a parent is the link before or its ancestor.
    parents = [-1, 0, 1, 2, 1, 4, 5, 5, 0, 8, 9, 8]
    prismatic = {2, 4, 9}
    links = []
    for i, parent in enumerate(parents):
        axis = np.eye(3)[i % 3] if i % 4 == 0 else unit(rng.normal(size=3))
        mass = rng.uniform(0.5, 3)
        links.append(
            {
                "joint": f"joint{i + 1}",
                "type": "prismatic" if i in prismatic else "revolute",
                "parent": "world" if parent < 0 else f"link{parent + 1}",
                "child": f"link{i + 1}",
                "position": rng.uniform(-0.3, 0.3, 3).tolist(),
                "orientation": unit(rng.normal(size=4)).tolist(),
                "axis": axis.tolist(),
                "armature": 0 if i % 3 == 0 else rng.uniform(0.01, 0.1),
                "mass": mass,
                "com": rng.uniform(-0.1, 0.1, 3).tolist(),
                "inertia": random_inertia(rng, mass),
            }
        )
    return links


def build(links):
    """The Pinocchio model, with a frame for each body."""
    model = pinocchio.Model()
    model.gravity.linear = GRAVITY
    # Pinocchio merges a fixed joint into the moving joint above it; so, for each body: the moving
    # joint that carries it, and its place in that joint's frame.
    carrier = {"world": (0, pinocchio.SE3.Identity())}
    for link in links:
        x, y, z, w = unit(np.array(link["orientation"], float))
        frame = pinocchio.SE3(pinocchio.Quaternion(w, x, y, z), np.array(link["position"], float))
        joint, offset = carrier[link["parent"]]
        offset = offset * frame
        if link["type"] != "fixed":
            kind = {
                "revolute": pinocchio.JointModelRevoluteUnaligned,
                "prismatic": pinocchio.JointModelPrismaticUnaligned,
            }[link["type"]]
            axis = unit(np.array(link["axis"], float))
            joint = model.addJoint(joint, kind(axis), offset, link["joint"])
            offset = pinocchio.SE3.Identity()
            armature = model.armature.copy()
            armature[model.joints[joint].idx_v] = link["armature"]
            model.armature = armature
        xx, yy, zz, xy, xz, yz = link["inertia"]
        about_com = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], float)
        inertia = pinocchio.Inertia(link["mass"], np.array(link["com"], float), about_com)
        model.appendBodyToJoint(joint, inertia, offset)
        frame_type = pinocchio.FrameType.BODY
        model.addFrame(pinocchio.Frame(link["child"], joint, 0, offset, frame_type))
        carrier[link["child"]] = (joint, offset)
    return model


# --- Reference values ----------------------------------------------------------------------------


def reference_state(model, pose_body, rng):
    data = model.createData()
    q = rng.uniform(-1.5, 1.5, model.nv)
    qd = rng.uniform(-2, 2, model.nv)
    tau = rng.uniform(-5, 5, model.nv)
    qdd_given = rng.uniform(-10, 10, model.nv)

    qdd = pinocchio.aba(model, data, q, qd, tau).copy()
    tau_of_given = pinocchio.rnea(model, data, q, qd, qdd_given).copy()
    mass_matrix = symmetric(pinocchio.crba(model, data, q))
    derivatives = pinocchio.computeABADerivatives(model, data, q, qd, tau)
    qdd_q, qdd_qd, minv = (matrix.copy() for matrix in derivatives)
    pinocchio.framesForwardKinematics(model, data, q)
    pose = data.oMf[model.getFrameId(pose_body)]

    state = {
        "q": q,
        "qd": qd,
        "tau": tau,
        "qdd": qdd,
        "rnea_qdd": qdd_given,
        "rnea_tau": tau_of_given,
        "M": mass_matrix,
        "qdd_q": qdd_q,
        "qdd_qd": qdd_qd,
        "Minv": symmetric(minv),
        "position": pose.translation.copy(),
        "rotation": pose.rotation.copy(),
    }
    check(model, state)
    return state


def symmetric(matrix):
    """Pinocchio fills upper triangles only."""
    upper = np.triu(matrix)
    return upper + np.triu(matrix, 1).T


def check(model, state):
    """The values among themselves, by other routes than the one each came by."""
    data = model.createData()
    q, qd, tau, qdd, mass_matrix = (state[key] for key in ("q", "qd", "tau", "qdd", "M"))

    def close(name, a, b, tolerance):
        error = np.abs(a - b).max() / (1 + np.abs(b).max())
        assert error < tolerance, f"{name}: error {error:.1e}"

    bias = pinocchio.nonLinearEffects(model, data, q, qd)
    close("M qdd + bias = tau", mass_matrix @ qdd + bias, tau, 1e-12)
    close("M a + bias = rnea(a)", mass_matrix @ state["rnea_qdd"] + bias, state["rnea_tau"], 1e-12)
    close("M Minv = 1", mass_matrix @ state["Minv"], np.eye(model.nv), 1e-12)

    step = 1e-6  # central differences: good to about 1e-9 of the largest entry

    def difference(qdd_of):
        rows = [qdd_of(d) - qdd_of(-d) for d in step * np.eye(model.nv)]
        return np.array(rows).T / (2 * step)

    by_q = difference(lambda d: pinocchio.aba(model, data, q + d, qd, tau).copy())
    by_qd = difference(lambda d: pinocchio.aba(model, data, q, qd + d, tau).copy())
    close("qdd_q", by_q, state["qdd_q"], 1e-7)
    close("qdd_qd", by_qd, state["qdd_qd"], 1e-7)


def reference_rollout(model, rng):
    """Semi-implicit Euler under constant tau: qd += dt qdd(q, qd, tau), then q += dt qd, but with the velocity terms of
    the step's middle, z = qd + dt/2 mu qdd, in place of those of qd: docs/theory.md, (24)."""
    data = model.createData()
    q = rng.uniform(-1, 1, model.nv)
    qd = rng.uniform(-0.5, 0.5, model.nv)
    tau = rng.uniform(-2, 2, model.nv)
    states_q, states_qd = [q], [qd]
    turning = [joint.idx_v for joint in model.joints if joint.shortname().startswith("JointModelR")]
    for _ in range(STEPS):
        share = middle_share(qd[turning] ** 2, TIME_STEP)
        z = qd + TIME_STEP / 2 * share * pinocchio.aba(model, data, q, qd, tau)
        qd = qd + TIME_STEP * pinocchio.aba(model, data, q, z, tau)
        q = q + TIME_STEP * qd
        states_q.append(q)
        states_qd.append(qd)
    return {"tau": tau, "q": states_q, "qd": states_qd}


def reference(name, links, pose_body, rng, **more):
    model = build(links)
    return {
        "name": name,
        **more,
        "links": links,
        "joints": list(model.names)[1:],
        "pose_body": pose_body,
        "states": [reference_state(model, pose_body, rng) for _ in range(STATES)],
        "rollout": reference_rollout(model, rng),
    }


# --- The file ------------------------------------------------------------------------------------


def text(value, indent=""):
    """JSON, a row of numbers a line. Floats as repr writes them: they read back bit by bit."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    inner = indent + " "
    if isinstance(value, dict):
        rows = [f"{inner}{json.dumps(key)}: {text(item, inner)}" for key, item in value.items()]
        return "{\n" + ",\n".join(rows) + f"\n{indent}}}"
    if isinstance(value, list) and value and not isinstance(value[0], (int, float, str)):
        return "[\n" + ",\n".join(inner + text(item, inner) for item in value) + f"\n{indent}]"
    return json.dumps(value, allow_nan=False)


def main():
    rng = np.random.default_rng(SEED)
    content = {
        "pin": pinocchio.__version__,
        "seed": SEED,
        "gravity": GRAVITY,
        "time_step": TIME_STEP,
        "models": [
            reference("arm", links_of_scene(HERE.parents[1] / SCENE), "tool", rng, scene=SCENE),
            reference("tree", random_tree(rng), "link7", rng),
        ],
    }
    (HERE / "pinocchio_arm.json").write_text(text(content) + "\n")


if __name__ == "__main__":
    main()
