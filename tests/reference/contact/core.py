"""The contact step on dense matrices, batched: M (...,nv,nv), J (...,nc,3,nv) [velocity of the point in touch, world axes],
n (...,nc,3) outward normal (pushes along +n), d0 (...,nc) depth. Returns dv and a dict. Complex-step safe."""
import numpy as np
from law import *

class P(dict):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__
def params(k=3e4, w=1e-3, alpha=1.0, mu=0.8, eps=1e-4, delta=0.05): return P(k=k, w=w, alpha=alpha, mu=mu, eps=eps, delta=delta)

def normal(d0, d1, dt, p):
    q = path(d0, d1, p.w)
    h, hs = hc(1 + p.alpha * (d1 - d0) / dt)
    f = p.k * q['f'] * h
    return f, p.k * (q['f1'] * h + q['f'] * hs * p.alpha / dt)

def dot(a, b): return (a * b).sum(-1)
def tang(v, n): return v - n * dot(v, n)[..., None]
def mv(A, x): return np.einsum('...ij,...j->...i', A, x)

def contact(M, vs, qd, J, n, d0, dt, p, passes=1, final='law', boost=True, gamma=1.0, kscale=1.0, winv=None, uref='c'):
    a = np.einsum('...cij,...j->...ci', J, qd); b = np.einsum('...cij,...j->...ci', J, vs)
    JT = lambda f: np.einsum('...cij,...ci->...j', J, f)
    n2 = np.einsum('...i,...j->...ij', n, n); T2 = np.eye(3) - n2
    u0 = tang(1.5 * b - 0.5 * a, n)                    # centred velocity at the end of the step, without contact
    ur = tang(0.5 * (a + b), n) if uref == 'c' else (tang(a, n) if uref == 'a' else tang(b, n))  # centred at its start
    nu = lambda v: norm(v, (p.eps * p.eps + 0 * d0))
    e = np.zeros_like(b)
    if winv is not None:                               # variant (i): frozen inverse mass per contact (normal, tangent)
        for _ in range(passes + 1):
            d1 = d0 - dt * dot(n, b + 0.5 * e); f, kp = normal(d0, d1, dt, p)
            fn = -dot(e, n) * 0
            break
        # normal: f = 0 start, `passes`+1 Newton steps on the scalar equation with inverse mass winv
        F = 0 * d0
        for _ in range(passes + 1):
            d1 = d0 - dt * (dot(n, b) + 0.5 * dt * winv * F); f, kp = normal(d0, d1, dt, p)
            F = F + (f - F) / (1 + 0.5 * dt * dt * winv * kp)
        lam = nu(u0) / (dt * winv); s, _ = sat(lam / (p.mu * F + 1e-30), p.delta)
        f = F[..., None] * n - (p.mu * F * s / nu(u0))[..., None] * u0
        dv = np.linalg.solve(M, dt * JT(f)[..., None])[..., 0]
        return dv, dict(f=f, fn=F, ft=-(p.mu * F * s / nu(u0))[..., None] * u0)
    for it in range(passes):
        d1 = d0 - dt * dot(n, b + 0.5 * e)
        f, kp = normal(d0, d1, dt, p)
        u1 = u0 + tang(e, n)
        F = p.mu * f
        c = gamma * F / nu(ur if it == 0 else u1)
        Kn = 0.5 * dt * dt * kp * kscale; Kt = dt * c * kscale
        K = Kn[..., None, None] * n2 + Kt[..., None, None] * T2
        A = M + np.einsum('...cik,...cij,...cjl->...kl', J, K, J)
        r = dt * ((f + 0.5 * dt * kp * dot(n, e))[..., None] * n - c[..., None] * u0)
        if kscale != 1.0: r = r + (kscale-1) * np.einsum('...ij,...j->...i', K / kscale, e)
        dv = np.linalg.solve(A, JT(r)[..., None])[..., 0]
        e = np.einsum('...cij,...j->...ci', J, dv)
    d1 = d0 - dt * dot(n, b + 0.5 * e)
    u1 = u0 + tang(e, n)
    if final == 'linear':
        ft = -c[..., None] * u1; fn = f + kp * (d1 - (d0 - dt * dot(n, b))) if passes == 1 else f
        return dv, dict(f=fn[..., None] * n + ft, fn=fn, ft=ft)
    fn, _ = normal(d0, d1, dt, p)
    F = p.mu * fn
    lam = c[..., None] * u1
    if boost: lam = lam * (1 + nu(u1) / np.sqrt(dot(u1 - u0, u1 - u0) + p.eps ** 2))[..., None]
    tiny = 1e-30
    l = np.sqrt(dot(lam, lam) + tiny)
    s, _ = sat(l / (F + tiny), p.delta)
    ft = -(F * s / l)[..., None] * lam
    f = fn[..., None] * n + ft
    dv = np.linalg.solve(M, dt * JT(f)[..., None])[..., 0]
    return dv, dict(f=f, fn=fn, ft=ft, c=c, u1=u1)

import local
def contact2(M, vs, qd, J, n, d0, dt, p, **kw):
    """the recipe: predictor with all contacts implicit, then local Newton steps, then one solve with M"""
    a = np.einsum('...cij,...j->...ci', J, qd); b = np.einsum('...cij,...j->...ci', J, vs)
    JT = lambda f: np.einsum('...cij,...ci->...j', J, f)
    th = tuple(np.broadcast_to(np.asarray(x), d0.shape) for x in (p.k, p.w, p.alpha, p.mu, p.eps))
    r, Kn, Kt = local.stageA(d0, n, a, b, th, dt)
    n2 = np.einsum('...i,...j->...ij', n, n)
    K = Kn[..., None, None] * n2 + Kt[..., None, None] * (np.eye(3, dtype=n.dtype) - n2)
    dv1 = np.linalg.solve(M + np.einsum('...cik,...cij,...cjl->...kl', J, K, J), JT(r)[..., None])[..., 0]
    e = np.einsum('...cij,...j->...ci', J, dv1)
    f = local.stageB(d0, n, a, b, e, th, dt, **kw)
    dv = np.linalg.solve(M, dt * JT(f)[..., None])[..., 0]
    fn = dot(f, n)
    return dv, dict(f=f, fn=fn, ft=f - fn[..., None] * n)
