"""Closed forms 3-6 on point bodies (exact truth), all phases at once, complex-step derivatives."""
import numpy as np, sys
from core import *
def plain(M, vs, qd, J, n, d0, dt, p, law='ramp', kv=0.0):
    b = np.einsum('...cij,...j->...ci', J, vs)
    a = np.einsum('...cij,...j->...ci', J, qd)
    r = pos(d0) if law == 'lin' else ramp(d0, p.w)
    rate = -dot(n, a)
    f = p.k * r + (kv * rate * (re(d0) > 0) if kv else p.k * r * p.alpha * rate)
    f = pos(f)
    dv = np.linalg.solve(M, dt * np.einsum('...cij,...ci->...j', J, f[..., None] * n)[..., None])[..., 0]
    return dv, dict(f=f)

def bounce(y0, v0, T, sps, p, m, g=0.0, step=contact, **kw):
    """ball (its lowest point) over a plane: (batch,) -> height, velocity at T"""
    dt = 1.0 / sps; N = int(round(T * sps)); B = y0.shape[0]
    M = np.zeros((B, 1, 1), complex); M[:, 0, 0] = m
    J = np.zeros((B, 1, 3, 1), complex); J[:, 0, 2, 0] = 1
    n = np.zeros((B, 1, 3)); n[..., 2] = 1
    y = y0.astype(complex); v = (v0 + 0 * y).astype(complex); E = []
    for _ in range(N):
        vs = v - dt * g
        dv, _ = step(M, vs[:, None], v[:, None], J, n, -y[:, None], dt, p, **kw)
        dv = dv[:, 0]
        if step is contact: y = y + dt * (vs + 0.5 * dv)
        else: y = y + dt * (vs + dv)
        v = vs + dv
        E.append(0.5 * m * np.real(v)**2 )
    return y, v, E
H = 1e-30
def row(name, f): print("%-46s" % name, "  ".join("%10.2e" % f(s) for s in (240, 480, 960, 1920)), flush=True)
def phases(sps, n=40): return (np.arange(n) + 0.5) / n / sps
if __name__ == "__main__":
    m = 1.0
    def e_dy0(sps, p, v=-1.0, **kw):
        y0 = 0.3 + abs(v) * phases(sps)
        y, _, _ = bounce(y0 + 1j * H, v, 0.6, sps, p, m, **kw); return np.max(abs(y.imag / H + 1))
    print("bounce |dh/dy0+1|, v=1, k/m=1e4, worst of 40 phases; steps/s 240 480 960 1920")
    lin = params(k=1e4, w=1e-9, alpha=0.); rmp = params(k=1e4, w=2e-3, alpha=0.)
    w1 = params(k=1e4, w=1e-3, alpha=0.)
    row("plain, linear", lambda s: e_dy0(s, lin, step=plain, law='lin'))
    row("plain, ramp 2mm", lambda s: e_dy0(s, rmp, step=plain))
    for k in (1, 2, 3):
        row("(ii) linear force only, linear law, k=%d" % k, lambda s: e_dy0(s, lin, passes=k, final='linear'))
        row("(ii) linear force only, ramp 2mm,  k=%d" % k, lambda s: e_dy0(s, rmp, passes=k, final='linear'))
        row("(iii) + law, linear law, k=%d" % k, lambda s: e_dy0(s, lin, passes=k))
        row("(iii) + law, ramp 2 mm,  k=%d" % k, lambda s: e_dy0(s, rmp, passes=k))
        row("(iii) + law, ramp 1 mm,  k=%d" % k, lambda s: e_dy0(s, w1, passes=k))
        row("(i) exact inverse mass, ramp 2 mm, k=%d" % k, lambda s: e_dy0(s, rmp, passes=k, winv=1.0))
        row("(i) inverse mass 2x, ramp 2 mm, k=%d" % k, lambda s: e_dy0(s, rmp, passes=k, winv=2.0))
    # dissipation: truth = -e' with e' from fine integration: derivative of h wrt y0 is v_out/v_in
    ref = {}
    def e_diss(sps, p, v=-1.0, **kw):
        if p.alpha not in ref:
            yf, vf, _ = bounce(np.array([0.3]), v, 0.6, 15360, p, m, passes=2); ref[p.alpha] = np.real(vf[0])
        y0 = 0.3 + abs(v) * phases(sps)
        y, vv, _ = bounce(y0 + 1j * H, v, 0.6, sps, p, m, **kw)
        return np.max(abs(y.imag / H - ref[p.alpha] / v))
    for al in (0.1, 0.5, 1.0):
        p = params(k=1e4, w=2e-3, alpha=al)
        for k in (1, 2):
            row("HC alpha=%g ramp 2 mm, k=%d" % (al, k), lambda s: e_diss(s, p, passes=k))
        print("     restitution", -ref[al] / -1.0)
    def e_kv(sps, v=-1.0):
        p = params(k=1e4, w=2e-3, alpha=0.); kv = 20.0
        if 'kv' not in ref:
            yf, vf, _ = bounce(np.array([0.3]), v, 0.6, 30720, p, m, step=plain, kv=kv); ref['kv'] = np.real(vf[0])
        y, vv, _ = bounce(0.3 + abs(v) * phases(sps) + 1j * H, v, 0.6, sps, p, m, step=plain, kv=kv)
        return np.max(abs(y.imag / H - ref['kv'] / v))
    row("Kelvin-Voigt 20 Ns/m, plain, ramp 2 mm", e_kv)
    print("energy: relative error of speed^2 between contacts, 10 s of bouncing (g=9.81, drop 0.3 m), worst of 8 phases; k/m=1e4, 3e4, 1e5")
    for k in (1, 2, 3):
        for km in (1e4, 3e4, 1e5):
            for w in (2e-3, 1e-3):
                p = params(k=km, w=w, alpha=0.)
                dt = 1 / 240; y0 = 0.3 + 2.4 * phases(240, 8)
                # energy at apex-free: use E = 1/2 (v centred)^2 + g y with y>0 -> compare when no contact
                B = 8; worst = 0
                y = y0.astype(complex); v = np.zeros(B, complex)
                M = np.ones((B, 1, 1), complex); J = np.zeros((B, 1, 3, 1), complex); J[:, 0, 2, 0] = 1
                n = np.zeros((B, 1, 3)); n[..., 2] = 1
                E0 = 9.81 * y0 - 9.81**2 * dt * dt / 8
                for _ in range(2400):
                    vs = v - dt * 9.81
                    # discrete invariant of symplectic Euler in free fall: 1/2 vc^2 + g y, vc = v - g dt/2
                    vc = v - 0.5 * dt * 9.81
                    E = 0.5 * vc**2 + 9.81 * y
                    if _ == 0: E0 = E
                    free = np.real(y) > 0.02
                    worst = max(worst, np.max(np.where(free, abs(E / E0 - 1), 0)))
                    dv, _d = contact(M, vs[:, None], v[:, None], J, n, -y[:, None], dt, p, passes=k)
                    dv = dv[:, 0]; y = y + dt * (vs + 0.5 * dv); v = vs + dv
                print("  k=%d k/m=%g w=%g  worst %.2e" % (k, km, w, worst), flush=True)
