"""As stiff_candidates.py, with the final force by j local Newton steps from the linear-implicit force f1 (effective inverse mass read off the predictor: n.e/(dt f1))."""
import numpy as np
from core import *
def step(v, y, m, g, dt, p, how):
    vs = v - g * dt; d0 = -y
    d10 = d0 - dt * vs; f0, kp = normal(d0, d10, dt, p); K = 0.5 * dt * dt * kp
    e = dt * f0 / (m + K); f1 = f0 - 0.5 * dt * kp * e
    if how[0] == 'S':
        d1 = d10 - 0.5 * dt * e; G1, _ = normal(d0, d1, dt, p)
        f = f0 * f1 / (f1 + f0 - G1 + 1e-30); return vs, dt * f / m
    F1 = f1 * f1 / (f1 + 1e-3 * f0 + 1e-30)
    f = F1; q = 0.5 * dt * e / (F1 + 1e-30)
    for _ in range(int(how)):
        G, kp = normal(d0, d10 - q * f, dt, p)
        f = f + (G - f) / (1 + kp * q)
    return vs, dt * f / m
if __name__ == "__main__":
  dt = 1 / 240; g = 9.81
  for how in ('0', '1', '2', '3', 'S'):
    s = "%-4s" % how
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
