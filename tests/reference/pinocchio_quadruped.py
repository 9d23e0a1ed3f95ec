"""Writes pinocchio_quadruped.json: dynamics of a quadruped with a floating base and a tail on a ball joint, as
Pinocchio computes them, in our conventions. How to run it and what is in the file: README.md.

Ours: q of the base is its orientation (x, y, z, w) and the position of its origin, its velocity [omega; p_dot] in world
axes; a ball's velocity stands in the child's axes. Pinocchio's base has q = (position, orientation) and its velocity is
that of the origin and the angular one in the base's own axes; its ball is ours.
"""

import json
import pathlib

import numpy as np
import pinocchio
from pinocchio_arm import random_inertia, symmetric, text, unit
from velocity_terms import middle_share

HERE = pathlib.Path(__file__).resolve().parent
SEED = 20261122
GRAVITY = np.array([0.0, 0.0, -9.81])
STATES = 6
STEPS = 20
TIME_STEP = 0.005


def quadruped(rng):
    def link(joint, kind, parent, child, position, axis, mass):
        return {
            "joint": joint, "type": kind, "parent": parent, "child": child, "position": list(position),
            "orientation": unit(np.array([0.05, -0.1, 0.2, 1]) if kind == "ball" else np.array([0, 0, 0, 1.0])).tolist(),
            "axis": list(axis), "armature": 0 if kind in ("free", "ball") else 0.01, "mass": mass,
            "com": rng.uniform(-0.03, 0.03, 3).tolist(), "inertia": random_inertia(rng, mass),
        }

    links = [link("base", "free", "world", "trunk", (0, 0, 0), (0, 0, 1), 7.0)]
    for name, x, y in (("FL", 0.2, 0.1), ("FR", 0.2, -0.1), ("RL", -0.2, 0.1), ("RR", -0.2, -0.1)):
        side = 1 if y > 0 else -1
        links += [
            link(f"{name}_abduction", "revolute", "trunk", f"{name}_hip", (x, y, 0), (1, 0, 0), 0.6),
            link(f"{name}_thigh", "revolute", f"{name}_hip", f"{name}_upper", (0, 0.08 * side, 0), (0, 1, 0), 0.9),
            link(f"{name}_knee", "revolute", f"{name}_upper", f"{name}_lower", (0, 0, -0.2), (0, 1, 0), 0.2),
        ]
    links.append(link("tail", "ball", "trunk", "tail", (-0.25, 0, 0.05), (0, 0, 1), 0.4))
    return links


def build(links):
    model = pinocchio.Model()
    model.gravity.linear = GRAVITY
    ids = {"world": 0}
    for link in links:
        x, y, z, w = link["orientation"]
        frame = pinocchio.SE3(pinocchio.Quaternion(w, x, y, z), np.array(link["position"], float))
        kind = {"free": pinocchio.JointModelFreeFlyer, "ball": pinocchio.JointModelSpherical}.get(link["type"])
        joint_model = kind() if kind else pinocchio.JointModelRevoluteUnaligned(np.array(link["axis"], float))
        joint = model.addJoint(ids[link["parent"]], joint_model, frame, link["joint"])
        armature = model.armature.copy()
        first, count = model.joints[joint].idx_v, model.joints[joint].nv
        armature[first : first + count] = link["armature"]
        model.armature = armature
        xx, yy, zz, xy, xz, yz = link["inertia"]
        about_com = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], float)
        model.appendBodyToJoint(joint, pinocchio.Inertia(link["mass"], np.array(link["com"], float), about_com), pinocchio.SE3.Identity())
        frame_type = pinocchio.FrameType.BODY
        model.addFrame(pinocchio.Frame(link["child"], joint, 0, pinocchio.SE3.Identity(), frame_type))
        ids[link["child"]] = joint
    return model


# --- Between our numbers and theirs. The base stands first in all of them. -----------------------


def rotation(q):
    x, y, z, w = q[:4]
    return pinocchio.Quaternion(w, x, y, z).toRotationMatrix()


def their_q(q):
    return np.concatenate([q[4:7], q[:4], q[7:]])


def to_theirs(q):
    """T with v_theirs = T v_ours at a configuration."""
    T = np.eye(len(q) - 2)
    T[:6, :6] = 0
    T[:3, 3:6] = T[3:6, :3] = rotation(q).T
    return T


def our_qdd(model, data, q, qd, tau):
    """a_theirs = T a_ours + T_dot qd: the linear half of theirs turns with the base."""
    T = to_theirs(q)
    v = T @ qd
    a = pinocchio.aba(model, data, their_q(q), v, np.linalg.solve(T.T, tau)).copy()
    a[:3] += np.cross(v[3:6], v[:3])
    return np.linalg.solve(T, a)


def symmetric_matrix(inertia):
    xx, yy, zz, xy, xz, yz = inertia
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], float)


def couple_beyond(J, w, held, h, shift=np.zeros(3)):
    """What a step's couple of a body that turns with w + shift is beyond that of w: docs/theory.md, (12) and (24), all in
    the body's axes; and what the body loses of w by itself up to the step's middle."""

    def start(w):
        return np.cross(w, J @ w) + J @ np.cross(w, held)

    late = w + shift
    G = pinocchio.skew(late) @ J - pinocchio.skew(J @ late) - J @ pinocchio.skew(held)
    u = np.linalg.solve(J + h / 2 * G, start(late))
    return J @ u - start(w), h / 2 * u


def free_turn_efforts(links, model, data, q, qd, h, shifts=(np.zeros(3), np.zeros(3))):
    """That of the base and of the tail on its ball joint, as efforts in our coordinates, and what both lose."""
    base, tail = links[0], links[-1]
    R = rotation(q)
    v = to_theirs(q) @ qd
    pinocchio.forwardKinematics(model, data, their_q(q), v)
    efforts = np.zeros(len(qd))
    couple, base_lost = couple_beyond(symmetric_matrix(base["inertia"]), R.T @ qd[:3], np.zeros(3), h, shifts[0])
    efforts[:3] = R @ couple
    joint = model.njoints - 1
    w = data.v[joint].angular
    carrier = data.liMi[joint].rotation.T @ data.v[model.parents[joint]].angular
    com = np.array(tail["com"])
    J = symmetric_matrix(tail["inertia"]) + tail["mass"] * (com @ com * np.eye(3) - np.outer(com, com))
    couple, tail_lost = couple_beyond(J, w, -carrier, h, shifts[1])
    efforts[-3:] += couple
    efforts[:3] += data.oMi[joint].rotation @ couple
    return efforts, (base_lost, tail_lost)


def tangent_step(model, q, change):
    """q moved by a tangent of ours: exp(theta) R of the base, R exp(theta) of the tail (the last joint)."""
    result = q.copy()
    turn = pinocchio.Quaternion(pinocchio.exp3(change[:3]))
    x, y, z, w = q[:4]
    result[:4] = (turn * pinocchio.Quaternion(w, x, y, z)).coeffs()
    result[4:7] += change[3:6]
    result[7:-4] += change[6:-3]
    x, y, z, w = q[-4:]
    result[-4:] = (pinocchio.Quaternion(w, x, y, z) * pinocchio.Quaternion(pinocchio.exp3(change[-3:]))).coeffs()
    return result


def derivative(f, n):
    """Central differences, extrapolated once: h^4 of the fifth derivative and 1e-16/h of rounding, about 1e-12."""

    def central(h):
        return np.array([(f(h * e) - f(-h * e)) / (2 * h) for e in np.eye(n)]).T

    return (4 * central(5e-4) - central(1e-3)) / 3


def random_state(model, rng):
    q = rng.uniform(-1.2, 1.2, model.nq)
    q[:4], q[-4:] = unit(rng.normal(size=4)), unit(rng.normal(size=4))
    return q, rng.uniform(-2, 2, model.nv)


def reference_state(model, rng):
    data = model.createData()
    q, qd = random_state(model, rng)
    tau = rng.uniform(-5, 5, model.nv)
    T = to_theirs(q)
    mass_matrix = T.T @ symmetric(pinocchio.crba(model, data, their_q(q))) @ T
    qdd = our_qdd(model, data, q, qd, tau)
    pinocchio.framesForwardKinematics(model, data, their_q(q))
    pose = data.oMf[model.getFrameId("RR_lower")]
    # Another route: the work of the forces is the change of energy, q̇·τ = d/dt(kinetic + potential).
    def energy(at, velocity):
        kinetic = pinocchio.computeKineticEnergy(model, data, their_q(at), to_theirs(at) @ velocity)
        armature = 0.5 * np.sum(model.armature * velocity**2)
        return kinetic + armature + pinocchio.computePotentialEnergy(model, data, their_q(at))

    h = 1e-5
    power = (energy(tangent_step(model, q, h * qd), qd + h * qdd) - energy(tangent_step(model, q, -h * qd), qd - h * qdd)) / (2 * h)
    assert abs(power - qd @ tau) < 1e-6 * (1 + abs(power)), (power, qd @ tau)
    return {
        "q": q, "qd": qd, "tau": tau, "qdd": qdd, "M": mass_matrix,
        "qdd_q": derivative(lambda d: our_qdd(model, data, tangent_step(model, q, d), qd, tau), model.nv),
        "qdd_qd": derivative(lambda d: our_qdd(model, data, q, qd + d, tau), model.nv),
        "position": pose.translation.copy(), "rotation": pose.rotation.copy(),
    }


def reference_rollout(links, model, rng):
    data = model.createData()
    q, qd = random_state(model, rng)
    tau = rng.uniform(-1, 1, model.nv)
    states_q, states_qd = [q], [qd]
    for _ in range(STEPS):
        share = middle_share([qd[:3] @ qd[:3], *qd[6:-3] ** 2, qd[-3:] @ qd[-3:]], TIME_STEP)
        couples, lost = free_turn_efforts(links, model, data, q, qd, TIME_STEP)
        z = qd + TIME_STEP / 2 * share * our_qdd(model, data, q, qd, tau - couples)
        couples, _ = free_turn_efforts(links, model, data, q, z, TIME_STEP, [share * x for x in lost])
        qd = qd + TIME_STEP * our_qdd(model, data, q, z, tau - couples)
        q = tangent_step(model, q, TIME_STEP * qd)
        states_q.append(q)
        states_qd.append(qd)
    return {"tau": tau, "q": states_q, "qd": states_qd}


def main():
    rng = np.random.default_rng(SEED)
    links = quadruped(rng)
    model = build(links)
    content = {
        "pin": pinocchio.__version__, "seed": SEED, "gravity": GRAVITY, "time_step": TIME_STEP, "links": links,
        "pose_body": "RR_lower", "states": [reference_state(model, rng) for _ in range(STATES)],
        "rollout": reference_rollout(links, model, rng),
    }
    (HERE / "pinocchio_quadruped.json").write_text(text(content) + "\n")


if __name__ == "__main__":
    main()
