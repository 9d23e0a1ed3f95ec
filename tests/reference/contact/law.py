"""Contact law: ramp potential averaged over a straight path of depth, Hunt-Crossley factor, force-space friction.
Everything is branch-free, batch-friendly and complex-step safe (comparisons look at real parts)."""
import numpy as np
re = np.real
def clamp(x, lo, hi):
    return np.where(re(x) < re(lo), lo, np.where(re(x) > re(hi), hi, x))
def pos(x): return np.where(re(x) > 0, x, 0 * x)
def norm(x, eps2=0.0):  # last axis
    return np.sqrt((x * x).sum(-1) + eps2)

def ramp(d, w):            # Phi'/k
    c = clamp(d, 0 * w, w); return c * (d - 0.5 * c) / w if False else np.where(re(d) < re(w), c * c / (2 * w), d - 0.5 * w)

def path(d0, d1, w, tiny=1e-30):
    """Average of the ramp over [d0,d1] and its exact partials, in units of k. Returns f, f_d0, f_d1, f_w,
    and second partials f_00, f_01, f_11 (needed by the adjoint of the predictor)."""
    up = re(d1) >= re(d0)
    lo = np.where(up, d0, d1); hi = np.where(up, d1, d0)
    L = hi - lo + tiny
    o = clamp(-lo / L, 0 * L, 1 + 0 * L)              # part of the path that is outside
    b = clamp((hi - w) / L, 0 * L, 1 + 0 * L)         # part beyond the ramp
    a = 1 - o - b
    c0 = clamp(lo, 0 * w, w); c1 = clamp(hi, 0 * w, w)
    e0 = pos(lo - w); e1 = pos(hi - w)
    f = a * (c0 * c0 + c0 * c1 + c1 * c1) / (6 * w) + b * 0.5 * (w + e0 + e1)
    g0 = c0 / w; g1 = c1 / w
    s = 1 - b
    Hh = a * (o * (g0 + g1) / 2 + a * (g0 / 6 + g1 / 3)) + b * (1 - b / 2)     # int sigma f'
    I = a * (g0 + g1) / 2 + b                                                    # int f'
    Hl = I - Hh
    fw = -a * (g0 * g0 + g0 * g1 + g1 * g1) / 6 - b / 2                          # int df/dw: -(d/w)^2/2 | -1/2
    q2 = a * (s * s + s * o + o * o) / (3 * w)                                   # int sigma^2 f''
    q1 = a * (s + o) / (2 * w)                                                   # int sigma f''
    q0 = a / w
    hh, hl, ll = q2, q1 - q2, q0 - 2 * q1 + q2
    rh = a * (o * (g0 + g1) / 2 + a * (g0 / 6 + g1 / 3)); rl = a * (g0 + g1) / 2 - rh   # ramp's part of Hh, Hl
    return dict(f=f, f0=np.where(up, Hl, Hh), f1=np.where(up, Hh, Hl), fw=fw,
                f00=np.where(up, ll, hh), f01=hl, f11=np.where(up, hh, ll), f1w=np.where(up, -rh, -rl) / w)

def hc(z):
    """Hunt-Crossley factor: z for z >= 1/2, (z+1/2)^2/2 between, 0 below -1/2. C1."""
    y = clamp(z + 0.5, 0 * z, 1 + 0 * z)
    return np.where(re(z) > 0.5, z, 0.5 * y * y), y

def sat(x, delta):
    """min(x,1) made C1 over [1-delta,1+delta]; value and slope; x >= 0."""
    t = clamp(x - (1 - delta), 0 * x, 2 * delta + 0 * x)
    return clamp(x, 0 * x, 1 + delta + 0 * x) - t * t / (4 * delta), 1 - t / (2 * delta)

if __name__ == "__main__":
    rng = np.random.default_rng(0)
    w = 1e-3; d0 = rng.uniform(-2e-3, 3e-3, 20000); D = rng.choice([1, -1], 20000) * 10 ** rng.uniform(-12, -2.5, 20000)
    from fractions import Fraction as Fr
    def R(d):
        d = Fr(d); W = Fr(w)
        return Fr(0) if d < 0 else (d**3 / (6 * W) if d < W else (d - W / 2)**2 / 2 + W * W / 24)
    p = path(d0, d0 + D, w); err = 0
    for i in range(0, 20000, 20):
        a, b = float(d0[i]), float(d0[i] + D[i])
        ex = float((R(b) - R(a)) / (Fr(b) - Fr(a))); err = max(err, abs(p['f'][i] - ex) / (ex + 1e-9))
    print("f64 average, worst relative error", err)
    f32 = lambda x: np.asarray(x, np.float32)
    e32 = 0; naive = 0
    a32 = f32(d0); b32 = f32(d0 + D); p32 = path(a32, b32, f32(w), np.float32(1e-30))
    def Rn(d): return np.where(d < 0, f32(0), np.where(d < f32(w), d**3 / (6 * f32(w)), (d - f32(w) / 2)**2 / 2 + f32(w)**2 / 24))
    nv = (Rn(b32) - Rn(a32)) / (b32 - a32 + np.float32(1e-30))
    for i in range(0, 20000, 20):
        a, b = float(a32[i]), float(b32[i])
        if a == b: continue
        wf = float(f32(w)); W = Fr(wf)
        Rr = lambda d: Fr(0) if d < 0 else (Fr(d)**3 / (6 * W) if Fr(d) < W else (Fr(d) - W / 2)**2 / 2 + W * W / 24)
        ex = float((Rr(b) - Rr(a)) / (Fr(b) - Fr(a)))
        e32 = max(e32, abs(p32['f'][i] - ex) / 1e-3); naive = max(naive, abs(float(nv[i]) - ex) / 1e-3)
    print("f32 average, worst error / w: pieces %.2e   naive quotient %.2e" % (e32, naive), p32['f'].dtype)
    h = 1e-30
    for nm, i in (("f0", 0), ("f1", 1), ("fw", 2)):
        args = [d0 + 0j, d0 + D + 0j, w + 0 * d0 + 0j]; args[i] = args[i] + 1j * h
        # complex step through quotient is exact except exponentially short paths; compare at |D|>1e-6
        m = abs(D) > 1e-6
        print(nm, np.max(abs(path(*args)['f'].imag / h - p[nm])[m]))
    for nm, base, i in (("f00", "f0", 0), ("f01", "f0", 1), ("f11", "f1", 1)):
        args = [d0 + 0j, d0 + D + 0j, w + 0 * d0 + 0j]; args[i] = args[i] + 1j * h
        m = abs(D) > 1e-6
        print(nm, np.max(abs(path(*args)[base].imag / h - p[nm])[m]) * w)
