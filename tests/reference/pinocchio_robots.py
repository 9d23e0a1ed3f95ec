#!/usr/bin/env python3
"""Values of Pinocchio for the robots of scenes/*.urdf: writes pinocchio_robots.json beside itself (README.md there).

    build/oracles/bin/python tests/reference/pinocchio_robots.py

(build/oracles: see compare_robots.py.) The base is fixed; rows are the joints in the order of the file. Checks M q̈ + h =
τ and M ∂q̈/∂τ = 1 before it writes. Numbers have 15 digits, more than the tests ask for.
"""
import json
import pathlib
import xml.etree.ElementTree

import numpy
import pinocchio

HERE = pathlib.Path(__file__).parent
ROBOTS = ["arm", "quadruped", "humanoid"]
STATES = 2


def symmetric(upper):
    return numpy.triu(upper) + numpy.triu(upper, 1).T


def numbers(values):
    return [float(f"{x:.15g}") for x in values]


def robot(name):
    file = HERE.parent.parent / "scenes" / f"{name}.urdf"
    model = pinocchio.buildModelFromUrdf(str(file))
    data = model.createData()
    moving = [joint.get("name") for joint in xml.etree.ElementTree.parse(file).getroot().iter("joint")
              if joint.get("type") not in (None, "fixed")]
    joints = [model.joints[model.getJointId(joint)] for joint in moving]
    order = [joint.idx_v for joint in joints]
    pick = numpy.ix_(order, order)
    random = numpy.random.default_rng(7)
    states = []
    for _ in range(STATES):
        q, qd, qdd, tau = (random.uniform(-1, 1, model.nv) for _ in range(4))
        Q, V, A, T = pinocchio.neutral(model), *(numpy.zeros(model.nv) for _ in range(3))
        for i, joint in enumerate(joints):
            if joint.nq == 2:
                Q[joint.idx_q:joint.idx_q + 2] = numpy.cos(q[i]), numpy.sin(q[i])
            else:
                Q[joint.idx_q] = q[i]
            V[joint.idx_v], A[joint.idx_v], T[joint.idx_v] = qd[i], qdd[i], tau[i]
        M = symmetric(pinocchio.crba(model, data, Q))
        forward = pinocchio.aba(model, data, Q, V, T)
        inverse = pinocchio.rnea(model, data, Q, V, A)
        bias = pinocchio.rnea(model, data, Q, V, numpy.zeros(model.nv))
        by_q, by_v, by_tau = pinocchio.computeABADerivatives(model, data, Q, V, T)[:3]
        assert abs(M @ forward + bias - T).max() < 1e-9 * abs(bias).max()
        assert abs(M @ symmetric(by_tau) - numpy.eye(model.nv)).max() < 1e-8
        states.append({"q": numbers(q), "qd": numbers(qd), "tau": numbers(tau), "qdd": numbers(forward[order]),
                       "rnea_qdd": numbers(qdd), "rnea_tau": numbers(inverse[order]),
                       "M": [numbers(row) for row in M[pick]],
                       "qdd_q": [numbers(row) for row in by_q[pick]],
                       "qdd_qd": [numbers(row) for row in by_v[pick]]})
    return {"name": name, "joints": moving, "states": states}


(HERE / "pinocchio_robots.json").write_text(
    json.dumps({"pin": pinocchio.__version__, "robots": [robot(name) for name in ROBOTS]}, separators=(",", ":")) + "\n")
