"""Two balls, sliding, and free rigid bodies (sphere, box with 4 or 8 corners) on planes and slopes. nv = 6 per body: [w; v of the com], world axes."""
import numpy as np, sys
from core import *
H = 1e-30
def hat(w):
    z = 0 * w[..., 0]
    return np.stack([np.stack([z, -w[..., 2], w[..., 1]], -1), np.stack([w[..., 2], z, -w[..., 0]], -1), np.stack([-w[..., 1], w[..., 0], z], -1)], -2)
def expm(w):
    t2 = (w * w).sum(-1)[..., None, None]; t = np.sqrt(t2 + 1e-40); Wm = hat(w)
    return np.eye(3) + np.sin(t) / t * Wm + np.where(re(t) < 1e-4, 0.5 - t2 / 24, (1 - np.cos(t)) / (t * t)) * Wm @ Wm

class Body:
    """batch of single bodies against a plane through the origin with normal nz; pts: contact points in body axes with radius rad"""
    def __init__(s, B, m, I, pts, rad, nz=(0, 0, 1.), g=9.81, dtype=complex):
        s.m, s.I, s.pts, s.rad = m, np.diag(I).astype(dtype), np.asarray(pts, float), rad
        s.nz = np.asarray(nz, float); s.g = np.array([0, 0, -g]); s.B = B
        s.R = np.tile(np.eye(3, dtype=dtype), (B, 1, 1)); s.x = np.zeros((B, 3), dtype); s.qd = np.zeros((B, 6), dtype); s.dtype = dtype
    def scene(s):
        r = np.einsum('bij,cj->bci', s.R, s.pts)
        y = s.x[:, None] + r
        d0 = s.rad - (y * s.nz).sum(-1)
        arm = r - (s.rad * s.nz)
        J = np.zeros(r.shape[:2] + (3, 6), s.dtype)
        J[..., :3] = -hat(arm); J[..., 3:] = np.eye(3)
        n = np.broadcast_to(s.nz, r.shape)
        return J, n, d0
    def step(s, dt, p, **kw):
        Iw = s.R @ s.I @ np.swapaxes(s.R, -1, -2)
        M = np.zeros((s.B, 6, 6), s.dtype); M[:, :3, :3] = Iw
        for k in range(3): M[:, 3 + k, 3 + k] = s.m
        w = s.qd[:, :3]
        acc = np.zeros_like(s.qd); acc[:, 3:] = s.g
        acc[:, :3] = -np.linalg.solve(Iw, np.cross(w, mv(Iw, w))[..., None])[..., 0]
        vs = s.qd + dt * acc
        J, n, d0 = s.scene()
        dv, o = kw.pop('fn', contact2)(M, vs, s.qd, J, n, d0, dt, p, **kw)
        vd = vs + 0.5 * dv; s.vd = vd; s.o = o; s.d0 = d0
        s.R = expm(dt * vd[:, :3]) @ s.R; s.x = s.x + dt * vd[:, 3:]
        s.qd = vs + dv
    def energy(s):
        w = s.qd[:, :3]; Iw = s.R @ s.I @ np.swapaxes(s.R, -1, -2)
        return np.real(0.5 * s.m * (s.qd[:, 3:]**2).sum(-1) + 0.5 * (w * mv(Iw, w)).sum(-1) - s.m * (s.x * s.g).sum(-1))
def box(m, h): return [m / 3 * (h[1]**2 + h[2]**2), m / 3 * (h[0]**2 + h[2]**2), m / 3 * (h[0]**2 + h[1]**2)]
def corners(h, eight=False): return [[sx * h[0], sy * h[1], sz * h[2]] for sz in ((-1, 1) if eight else (-1,)) for sx in (-1, 1) for sy in (-1, 1)]

def two_balls(x1, x2, v1, m1, m2, r, k, sps, alpha=0., T=1.0, inner='split', **kw):
    """exact joint solve ('coupled'), or the predictor that gives each body its own block ('split' by mass, 'two': factor 2)"""
    dt = 1 / sps; N = int(round(T * sps)); B = x1.shape[0]
    p = params(k=k, w=kw.pop('w', 1e-3), alpha=alpha)
    x1, x2, v1 = [np.asarray(z, complex) + np.zeros(B) for z in (x1, x2, v1)]; v2 = 0 * x1
    for _ in range(N):
        d0 = 2 * r - (x2 - x1)
        if inner == 'coupled':
            M = np.zeros((B, 2, 2), complex); M[:, 0, 0] = m1; M[:, 1, 1] = m2
            J = np.zeros((B, 1, 3, 2), complex); J[:, 0, 0, 0] = 1; J[:, 0, 0, 1] = -1
            n = np.zeros((B, 1, 3)); n[..., 0] = -1
            v = np.stack([v1, v2], -1)
            dv, _o = contact(M, v, v, J, n, d0[:, None], dt, p, **kw); dv1, dv2 = dv[:, 0], dv[:, 1]
        else:
            th1, th2 = (1 + m1 / m2, 1 + m2 / m1) if inner == 'split' else (2, 2)
            e1 = e2 = 0 * x1
            for it in range(kw.get('passes', 1)):
                d1 = d0 + dt * (v1 + .5 * e1 - v2 - .5 * e2)
                f, kp = normal(d0, d1, dt, p); K = 0.5 * dt * dt * kp
                # (m_i + th_i K) de_i = dt f_i - (m_i e_i)
                e1, e2 = e1 + (-dt * f - m1 * e1) / (m1 + th1 * K), e2 + (dt * f - m2 * e2) / (m2 + th2 * K)
            d1 = d0 + dt * (v1 + .5 * e1 - v2 - .5 * e2)
            f, _k = normal(d0, d1, dt, p); dv1, dv2 = -dt * f / m1, dt * f / m2
        x1 = x1 + dt * (v1 + 0.5 * dv1); x2 = x2 + dt * (v2 + 0.5 * dv2); v1 = v1 + dv1; v2 = v2 + dv2
    return x2

def test_two():
    print("two balls, k/m=1e4, 480/s, worst over 40 phases: |d/d(x1,x2,v1) - (1,0,0.9889)| (k is the pair's stiffness)")
    for inner in ('coupled', 'split', 'two'):
        for passes in (1, 2):
            for sps in (240, 480, 960):
                ph = phases_x(sps)
                out = []
                for which in range(3):
                    a = [0.0 + ph, 0.52 + 0 * ph, 1 + 0 * ph]; a[which] = a[which] + 1j * H
                    out.append(two_balls(a[0], a[1], a[2], 1., 1., 0.1, 1e4, sps, inner=inner, passes=passes, w=1e-3))
                g = [z.imag / H for z in out]
                # truth for x1 shifted by ph is the same (1,0,1-pi/sqrt(2k/m)/2...)
                print("  %-8s passes %d  %4d/s  " % (inner, passes, sps), "  ".join("%.1e" % np.max(abs(gi - t)) for gi, t in zip(g, (1, 0, 0.9889))), " x_f err %.1e" % np.max(abs(np.real(out[0]) - (1.2 + np.real(0 * ph) + ph)) ))
    print("m = 2, 1, alpha chosen for e=0.7: only consistency of split against coupled at 480/s")
    for inner in ('coupled', 'split', 'two'):
        ph = phases_x(480); a = [0.0 + ph + 1j * H, 0.52 + 0 * ph, 1 + 0 * ph]
        z = two_balls(a[0], a[1], a[2], 2., 1., 0.1, 1e4, 480, alpha=0.55, inner=inner)
        print("  ", inner, np.min(z.imag / H), np.max(z.imag / H), np.mean(np.real(z)))
def phases_x(sps, n=40): return -(np.arange(n) + 0.5) / n / sps

def slide(v0, mu, sps, T, g=9.81, rest=True, k=3e4, **kw):
    dt = 1 / sps; B = v0.shape[0]
    p = params(k=k, mu=(mu + np.zeros(B))[:, None], alpha=1.0, eps=kw.pop('eps', 1e-4))
    b = Body(B, 1.0, [1, 1, 1], [[0, 0, 0.]], 0.0, g=g)
    dstar = g / k + 0.5 * p.w
    b.x[:, 2] = -dstar; b.qd[:, 5] = 0.5 * g * dt; b.qd[:, 3] = v0
    # a point body that cannot turn: huge inertia
    b.I = b.I * 1e9
    for _ in range(int(T * sps)): b.step(dt, p, **dict(kw))
    return b.x[:, 0], b
def test_slide():
    print("sliding to a stop, mu=0.5, g=9.81, v=2 (+ one step's worth of speed over 40 phases), relative errors of x, dx/dv, dx/dmu; then speed left 0.2 s after the stop")
    for name, kw in (("recipe (boost 1/2)", {}), ("boost 1", dict(boost=1.)), ("boost 0", dict(boost=0.)), ("eps 1e-3", dict(eps=1e-3))):
        for sps in (240, 480, 960):
            mu, g = 0.5, 9.81
            v = 2.0 + (np.arange(40) + .5) / 40 * mu * g / sps
            T = 2.2 / (mu * g) + 0.2
            x, b = slide(v + 1j * H, mu, sps, T, **kw)
            x2, _ = slide(v + 0j, mu + 1j * H, sps, T, **kw)
            xr = np.real(x)
            print("  %-22s %4d/s  x %.1e  dx/dv %.1e  dx/dmu %.1e   left %.1e" % (name, sps, np.max(abs(xr / (v * v / 2 / mu / g) - 1)), np.max(abs(x.imag / H / (v / mu / g) - 1)),
                np.max(abs(x2.imag / H / (-v * v / 2 / mu**2 / g) - 1)), np.max(abs(np.real(b.vd[:, 3])))), flush=True)
def test_bodies():
    dt = 1 / 240; h = [.15, .1, .05]
    for ne, eight in ((4, False), (8, True)):
        for deg_over in (-1.0, 1.0):
            mu = 0.8; ang = np.arctan(mu) + np.deg2rad(deg_over); c_, s_ = np.cos(ang), np.sin(ang)
            p = params(mu=mu); b = Body(1, 10.0, box(10., h), corners(h, eight), 0.0, dtype=float)
            b.g = np.array([9.81 * s_, 0, -9.81 * c_]); b.x[:, 2] = h[2] - 1e-3
            worst = 0; x1 = None
            for i in range(2400):
                b.step(dt, p)
                worst = max(worst, np.max(np.where(b.o['fn'] > 0, np.linalg.norm(b.o['ft'], axis=-1) / (mu * b.o['fn'] + 1e-300), 0)))
                if i == 480: x1 = b.x.copy()
            print("box 10 kg %d corners, slope atan(mu) %+g deg: drift velocity at the end %s, moved in 8 s %.2e m (free slide %.2e), cone max %.6f" % (ne, deg_over, b.vd[0, [3, 5]], (b.x - x1)[0, 0], .5 * 9.81 * (s_ - mu * c_) * 64 + 9.81 * (s_ - mu * c_) * 2 * 8, worst), flush=True)
    p = params(); b = Body(1, 10.0, box(10., h), corners(h), 0.0, dtype=float); b.x[:, 2] = h[2] + .05
    b.qd[0] = [1, 2, 3, .5, .2, 0]; worst = 0; E = []
    for i in range(14400):
        b.step(dt, p); E.append(b.energy()[0])
        if i == 2400: x0 = b.x.copy()
        if i in (480, 960, 2400): print("   thrown box at %d s: |drift velocity| %.1e |w| %.1e  depth %.2e" % (i / 240, np.linalg.norm(b.vd[0, 3:]), np.linalg.norm(b.vd[0, :3]), b.d0.max()))
    print("   60 s: |vd| %.1e moved since 10 s %.1e, state qd z %.4f (g dt/2 = %.4f); largest rise of energy in a step %.1e J" % (np.abs(b.vd).max(), np.linalg.norm(b.x - x0), b.qd[0, 5], 9.81 / 480, np.max(np.diff(E))), flush=True)
    # sliding box: tipping, spinning; redundancy 4 against 8 corners
    for mu, v, w in ((0.3, 2.0, 0.), (0.8, 3., 0.), (0.5, 1.0, 10.)):
        out = []
        for sps in (240, 960):
            b = Body(1, 10.0, box(10., h), corners(h), 0.0, dtype=float); b.x[:, 2] = h[2] - 1.3e-3; b.qd[0] = [0, 0, w, v, 0, .5 * 9.81 / sps]
            for i in range(int(1.5 * sps)): b.step(1 / sps, params(mu=mu))
            out.append((b.x[0, 0], np.arctan2(b.R[0, 1, 0], b.R[0, 0, 0])))
        print("   box slide mu %.1f v %g spin %g: x, yaw at 240/s %s, at 960/s %s; Coulomb point %.4f" % (mu, v, w, np.round(out[0], 4), np.round(out[1], 4), v * v / 2 / mu / 9.81), flush=True)
    # sphere: sliding to rolling, 5/7 v
    b = Body(1, 1., [.4 * .01] * 3, [[0, 0, 0.]], .1, dtype=float); b.x[:, 2] = .1 - 9.81 / 3e4 - 5e-4; b.qd[0, 3] = 2.; b.qd[0, 5] = .5 * 9.81 * dt
    for i in range(480): b.step(dt, params(mu=.5))
    print("   sphere sliding to rolling: v %.6f (5/7*2 = %.6f), slip %.1e" % (b.vd[0, 3], 10 / 7, b.vd[0, 3] - b.vd[0, 1] * .1 ))
if __name__ == "__main__":
    for t in sys.argv[1:]: globals()['test_' + t]()
