"""Friction of a body on several points, after its symmetry is broken: a box on a slope that turns by 1 mrad/s, with a share
of the cone in use, and a box that slides to a stop. Variants of (C5a)-(C6):

  once     one predictor; its friction times g = 1 + y, y = 1/2 v1/(ve + 1/2 v1)
  flat     the same with g = 1 + y^3 (10 - 15 y + 6 y^2): sticking contacts keep to the predictor
  none     the same with g = 1
  twice    once, but the predictor is solved again with c = mu fn/sqrt(|u1|^2 + eps^2) of its first solution
  recipe   the predictor is solved again with g times that c, and its friction is the force

    python several_points.py [variant ...]
"""
import sys

import numpy as np

import local
from bodies import Body, box, corners
from core import *
from law import *

H = [.15, .1, .05]
DELTA = .02
LIFT = dict(once=lambda y: y, twice=lambda y: y, recipe=lambda y: 0*y, flat=lambda y: y**3*(10 - 15*y + 6*y*y), none=lambda y: 0*y)


def tangential(x, n): return x - n*dot(x, n)[..., None]


def forces(d0, n, a, b, e, th, dt, c, lift):
    mu, eps = th[3], th[4]
    fn = dot(local.stageB(d0, n, a, b, e, th, dt), n)
    et = tangential(e, n); u1 = tangential(1.5*b - 0.5*a, n) + et
    nu1 = np.sqrt(dot(u1, u1) + 1e-30); ne = np.sqrt(dot(et, et) + eps*eps)
    lam = (c*(1 + lift(.5*nu1/(ne + .5*nu1))))[..., None]*u1
    l = np.sqrt(dot(lam, lam) + 1e-30); F = mu*fn
    return fn, -(F*local.sat(l/(F + 1e-30), DELTA)[0]/l)[..., None]*lam, u1


def contact(variant):
    def step(M, vs, qd, J, n, d0, dt, p, **kw):
        a = np.einsum('...cij,...j->...ci', J, qd); b = np.einsum('...cij,...j->...ci', J, vs)
        th = tuple(np.broadcast_to(np.asarray(x), d0.shape) for x in (p.k, p.w, p.alpha, p.mu, p.eps))
        r, Kn, Kt = local.stageA(d0, n, a, b, th, dt)
        nn = np.einsum('...i,...j->...ij', n, n); rn = dot(r, n); u0 = tangential(1.5*b - 0.5*a, n)
        def predicted(c):
            K = Kn[..., None, None]*nn + (dt*c)[..., None, None]*(np.eye(3) - nn)
            A = M + np.einsum('...cik,...cij,...cjl->...kl', J, K, J)
            r = rn[..., None]*n - (dt*c)[..., None]*u0
            return np.einsum('...cij,...j->...ci', J, np.linalg.solve(A, np.einsum('...cij,...ci->...j', J, r)[..., None])[..., 0])
        c = Kt/dt; e = predicted(c)
        if variant in ('twice', 'recipe'):
            fn, _, u1 = forces(d0, n, a, b, e, th, dt, c, LIFT['none'])
            nu1 = np.sqrt(dot(u1, u1) + p.eps**2); et = tangential(e, n); ne = np.sqrt(dot(et, et) + p.eps**2)
            g = 1 + .5*nu1/(ne + .5*nu1) if variant == 'recipe' else 1
            c = p.mu*np.maximum(fn, 0)*g/nu1; e = predicted(c)
        fn, ft, _ = forces(d0, n, a, b, e, th, dt, c, LIFT[variant])
        f = fn[..., None]*n + ft
        return np.linalg.solve(M, dt*np.einsum('...cij,...ci->...j', J, f)[..., None])[..., 0], dict(f=f, fn=fn, ft=ft)
    return step


def slope(variant, load, eps, rate=240):
    mu = .8; angle = np.arctan(load*mu); b = Body(1, 10., box(10., H), corners(H), 0., dtype=float)
    b.g = np.array([9.81*np.sin(angle), 0, -9.81*np.cos(angle)]); b.x[:, 2] = H[2] - 1.3e-3; b.qd[0, 2] = 1e-3
    for _ in range(2*rate): b.step(1/rate, params(mu=mu, eps=eps, k=3e4), fn=contact(variant))
    return b.qd[0, 2], b.vd[0, 3]


def slide(variant, speed, mu=.5, rate=480):
    x = []
    for v in (speed - 1e-4, speed + 1e-4):
        b = Body(1, 10., box(10., H), corners(H), 0., dtype=float); b.x[:, 2] = H[2] - 1.3e-3
        b.qd[0] = [0, 0, 0, v, 0, .5*9.81/rate]
        for _ in range(int(.8*rate)): b.step(1/rate, params(mu=mu, eps=1e-4, k=3e4), fn=contact(variant))
        x.append(b.x[0, 0])
    return (x[1] - x[0])/2e-4/(speed/mu/9.81) - 1


for variant in sys.argv[1:] or LIFT:
    print("%-6s slides to a stop: dx/dv wrong by %.2e at worst" % (variant, max(abs(slide(variant, v)) for v in (1.95, 1.98, 2., 2.02, 2.05))))
    for load in (.8, .9, .95, .965):
        for eps in (1e-4, 1e-6):
            print("       load %.3f, eps %.0e: state's turn %9.1e rad/s, creep %.1e m/s" % ((load, eps) + slope(variant, load, eps)))
