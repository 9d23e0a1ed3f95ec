"""The two local stages of a contact (per contact, batched over leading axes). theta = (k, w, alpha, mu, eps) arrays.
a, b, e: velocity of the point in touch (i minus j) with qd, vs, dv1. n pushes i. Complex-step safe."""
import numpy as np
from law import *
TAU, VEPS, DELTA, STEPS = 1e-3, 1e-5, 0.05, 2
def dot(a, b): return (a * b).sum(-1)
def tang(v, n): return v - n * dot(v, n)[..., None]
def normal(d0, d1, dt, k, w, al):
    q = path(d0, d1, w); h, hs = hc(1 + al * (d1 - d0) / dt)
    return k * q['f'] * h, k * (q['f1'] * h + q['f'] * hs * al / dt)
def stageA(d0, n, a, b, th, dt):
    k, w, al, mu, eps = th
    d10 = d0 - dt * dot(n, b)
    f0, kap = normal(d0, d10, dt, k, w, al)
    u0 = tang(1.5 * b - 0.5 * a, n); ur = tang(0.5 * (a + b), n)
    c = mu * f0 / np.sqrt(dot(ur, ur) + eps * eps)
    r = dt * (f0[..., None] * n - c[..., None] * u0)
    return r, 0.5 * dt * dt * kap, dt * c
def stageB(d0, n, a, b, e, th, dt, steps=None, boost=0.5, tau=TAU, veps=VEPS, delta=DELTA):
    k, w, al, mu, eps = th
    d10 = d0 - dt * dot(n, b); ne = dot(n, e)
    f0, kap = normal(d0, d10, dt, k, w, al)
    f1 = pos(f0 - 0.5 * dt * kap * ne)                   # linear-implicit force
    F1 = f1 * f1 / (f1 + tau * f0 + 1e-30)
    d11 = d10 - 0.5 * dt * ne
    nep = pos(ne); q = 0.5 * dt * nep * nep / ((nep + veps) * (F1 + 1e-30))
    f = F1
    for _ in range(STEPS if steps is None else steps):
        G, kp = normal(d0, d11 - q * (f - F1), dt, k, w, al)
        f = f + (G - f) / (1 + kp * q)
    f = pos(f)
    u0 = tang(1.5 * b - 0.5 * a, n); ur = tang(0.5 * (a + b), n); et = tang(e, n); u1 = u0 + et
    c = mu * f0 / np.sqrt(dot(ur, ur) + eps * eps)
    nu1 = np.sqrt(dot(u1, u1) + 1e-30); net = np.sqrt(dot(et, et) + eps * eps)
    lam = (c * (1 + boost * nu1 / (net + boost * nu1)))[..., None] * u1
    l = np.sqrt(dot(lam, lam) + 1e-30); F = mu * f
    s, _ = sat(l / (F + 1e-30), delta)
    return f[..., None] * n - (F * s / l)[..., None] * lam
