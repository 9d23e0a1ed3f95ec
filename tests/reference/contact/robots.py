"""Quadruped (12 hinges, 4 spherical feet, 50 g shanks), pendulum against a wall, inner contact with a mass ratio."""
import numpy as np, sys, time
import local
from core import *
from tree import Tree, expm
H = 1e-30
def quad(shank=0.05, base=8.0, kp=200., kd=4.):
    par, t, ax, m, com, J = [-1], [np.zeros(3)], [None], [base], [np.zeros(3)], [np.diag([.05, .1, .12])*base/8]
    sph = []
    for sx in (1, -1):
        for sy in (1, -1):
            b = len(par)
            par += [0, b, b+1]; t += [np.array([.2*sx, .08*sy, 0]), np.array([0, .06*sy, 0]), np.array([0, 0, -.2])]
            ax += [np.array([1., 0, 0]), np.array([0, 1., 0]), np.array([0, 1., 0])]
            m += [.3, .5, shank]; com += [np.zeros(3), np.array([0, 0, -.05]), np.array([0, 0, -.1])]
            J += [np.eye(3)*3e-4, np.diag([2e-3, 2e-3, 3e-4]), np.diag([shank*.0033]*2 + [shank*1e-4])]
            sph.append((b+2, np.array([0, 0, -.2]), .02))
    T = Tree(par, t, ax, m, com, J, pd=(kp, kd)); T.spheres = sph; T.pairs = [('w', i, (0, 0, 1.)) for i in range(4)]
    T.target = np.tile([0., .7, -1.4], 4); return T
def run_quad(T, th, sps, secs, v0=0., z0=None, push=0., drop=0.0, log=True, dtype=float):
    dt = 1/sps; q = (np.eye(3), np.array([0, 0, .02 + .4*np.cos(.7) + drop - 1e-3]), T.target.copy()); qd = np.zeros(T.nv); qd[3] = v0
    thv = [np.full(4, x) for x in th]; rs = np.full(4, .02); worst = 0; maxv = 0; hist = []
    for i in range(int(secs*sps)):
        q, qd, vd, k = T.forward(q, qd, thv, rs, dt, q[1].copy(), keep=True)
        fn = (k['f']*k['n']).sum(-1); ft = np.linalg.norm(k['f'] - fn[:, None]*k['n'], axis=-1)
        worst = max(worst, np.max(np.where(fn > 0, ft/(th[3]*fn + 1e-300), 0))); maxv = max(maxv, np.abs(qd).max())
        if i % (sps) == 0: hist.append((np.abs(vd).max(), q[1].copy()))
        if not np.isfinite(maxv): break
    feet = np.array([k['p'][l] + k['R'][l] @ o for l, o, _ in T.spheres]) + k['O']
    return dict(vd=np.abs(vd).max(), qd=np.abs(qd).max(), maxv=maxv, cone=worst, x=q[1], hist=hist, feet=feet, depth=k['d0'], fn=fn, ft=ft)
def test_quad():
    for name, kw, th in (("default", {}, (3e4, 1e-3, 1., .8, 1e-4)), ("shank 5 g", dict(shank=.005), (3e4, 1e-3, 1., .8, 1e-4)), ("k=3e5", {}, (3e5, 1e-3, 1., .8, 1e-4)),
                         ("eps 1e-6", {}, (3e4, 1e-3, 1., .8, 1e-6)), ("alpha 0", {}, (3e4, 1e-3, 0., .8, 1e-4))):
        for drop, v0 in ((.3, .7),):
            t0 = time.time(); r = run_quad(quad(**kw), th, 240, 4, drop=drop, v0=v0)
            print("quad %-12s drop %.1f v %.1f: max|qd| %.1f, |drift| after 4 s %.1e (state qd %.1e), cone %.6f, depth %s mm, base z %.4f  [%.0f s]" % (name, drop, v0, r['maxv'], r['vd'], r['qd'], r['cone'], np.round(1e3*r['depth'], 2), r['x'][2], time.time()-t0), flush=True)
def test_pendulum():
    # rod (m=1, l=1, com at l/2) as a hinge; tip strikes a vertical wall at angle 0: depth = l sin(th); gravity; exact truth by fine steps
    def sim(th0, sps, T=0.9, plain=False, alpha=0.):
        dt = 1/sps; th, w = th0 + 0j, 0*th0 + 0j; I = 1/3.
        par = tuple(np.full(th0.shape, z) for z in (1e4/1., 1e-3, alpha, 0., 1e-4))
        for _ in range(int(round(T*sps))):
            ws = w - dt*9.81*.5*np.sin(th)/I
            tang_ = np.stack([np.cos(th), 0*th, np.sin(th)], -1)          # velocity of the tip per w
            n = np.zeros(th.shape + (3,)); n[..., 0] = -1; d0 = np.sin(th)
            a, b = tang_*w[:, None], tang_*ws[:, None]
            if plain: dv = dt*(tang_*n).sum(-1)*par[0]*ramp(pos(d0), par[1])/I; vd = ws + dv
            else:
                r, Kn, Kt = local.stageA(d0, n, a, b, par, dt); jn = (tang_*n).sum(-1)
                e1 = (r*tang_).sum(-1)/(I + Kn*jn*jn)
                f = local.stageB(d0, n, a, b, tang_*e1[:, None], par, dt); dv = dt*(f*tang_).sum(-1)/I; vd = ws + .5*dv
            th = th + dt*vd; w = ws + dv
        return th
    x0 = -(0.5 + np.arange(24)/24*.02)
    ref = sim(x0 + 1j*H, 61440 // 4); ref = ref.imag/H
    for plain in (True, False):
        print("pendulum at a wall, d(angle)/d(angle0), %s:" % ("plain force" if plain else "recipe"), "  ".join("%d: %.1e" % (s, np.max(abs(sim(x0 + 1j*H, s, plain=plain).imag/H - ref))) for s in (240, 480, 960, 1920)), flush=True)
def test_ratio():
    # two free balls head-on, masses 10 and 0.05, k=3e4; gravity-free; speed after, against the exact elastic one; theta = 2 or by mass, local Newton
    for alpha in (0., 1.):
      for name, wt in (("theta 2", lambda m1, m2: (2., 2.)), ("by mass", lambda m1, m2: (1+m1/m2, 1+m2/m1))):
        for m1, m2 in ((1., 1.), (10., .05), (.05, 10.)):
            dt = 1/240; ph = (np.arange(40)+.5)/40*dt; x1, x2 = -ph - .001, 0*ph; v1, v2 = 1. + 0*ph, 0*ph; par = tuple(np.full(40, z) for z in (3e4, 1e-3, alpha, 0., 1e-4)); t1, t2 = wt(m1, m2); hi = 0
            for _ in range(240):
                n = np.zeros((40, 3)); n[:, 0] = -1; z = lambda u: np.stack([u, 0*u, 0*u], -1)
                d0 = x1 - x2; rel = z(v1 - v2)
                r, Kn, Kt = local.stageA(d0, n, rel, rel, par, dt)
                e1, e2 = r[:, 0]/(m1 + t1*Kn), -r[:, 0]/(m2 + t2*Kn)
                f = local.stageB(d0, n, rel, rel, z(e1 - e2), par, dt)[:, 0]
                a1, a2 = dt*f/m1, -dt*f/m2
                x1, x2 = x1 + dt*(v1 + .5*a1), x2 + dt*(v2 + .5*a2); v1, v2 = v1 + a1, v2 + a2
                hi = max(hi, np.max(.5*m1*v1**2 + .5*m2*v2**2)/(.5*m1))
            print("inner contact %s, m %g/%g, alpha %g: relative speed after %s..%s, largest energy/initial %.3f" % (name, m1, m2, alpha, np.round((v2-v1).min(), 4), np.round((v2-v1).max(), 4), hi))
if __name__ == "__main__":
    for t in sys.argv[1:]: globals()['test_' + t]()
