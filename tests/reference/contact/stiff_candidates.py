"""Stiff and light: ball on a plane, scalar form. passes 1 + law; 2 + law; chord (second correction with the first one's factors) + law; linear only."""
import numpy as np
from core import *
def step(v, y, m, g, dt, p, how):
    vs = v - g * dt; d0 = -y; e = 0 * y
    d1 = d0 - dt * vs; f, kp = normal(d0, d1, dt, p); K = 0.5 * dt * dt * kp
    e = dt * f / (m + K)
    if how == 'linear': e = np.maximum(e, 0); return vs, e
    if how == '2':
        d1 = d0 - dt * (vs + 0.5 * e); f, kp = normal(d0, d1, dt, p); K = 0.5 * dt * dt * kp
        e = e + (dt * f - m * e) / (m + K)
    if how in ('chord', 'chord2'):
        for _ in range(1 if how == 'chord' else 2):
            d1 = d0 - dt * (vs + 0.5 * e); f, _k = normal(d0, d1, dt, p)
            e = e + (dt * f - m * e) / (m + K)
    d1 = d0 - dt * (vs + 0.5 * e); f, _k = normal(d0, d1, dt, p)
    return vs, dt * f / m
dt = 1 / 240; g = 9.81
print("undamped: worst energy error between contacts over 10 s; alpha=1: speed |drift| after 10 s, worst of 16 phases; k/m")
for how in ('linear', '1', 'chord', 'chord2', '2'):
    s = "%-8s" % how
    for km in (1e4, 3e4, 1e5, 3e5, 1e6, 1e7):
        for al in (0., 1.):
            p = params(k=km, w=1e-3, alpha=al); y = 0.3 + 2.4 * (np.arange(16) + .5) / 16 / 240; v = 0 * y; worst = 0
            E0 = .5 * (v - .5 * dt * g)**2 + g * y
            for _ in range(2400):
                E = .5 * (v - .5 * dt * g)**2 + g * y
                if al == 0: worst = max(worst, np.max(np.where(y > .02, abs(E / E0 - 1), 0)))
                vs, e = step(v, y, 1., g, dt, p, how); y = y + dt * (vs + .5 * e); v = vs + e
            if al: worst = np.max(abs(vs + .5 * e))
            s += " %s%.0e:%8.1e" % ("E" if al == 0 else "v", km, worst)
    print(s, flush=True)
