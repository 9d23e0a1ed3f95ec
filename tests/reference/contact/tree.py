"""A tree of links (free base + hinges), dense forward (complex-step safe) and the hand-written adjoint of the step with contact.
Spatial vectors about O = root at the start of the step (fixed during the variation), angular first."""
import numpy as np, sys
import local
from law import *
H = 1e-30
def hat(w): return np.array([[0*w[0], -w[2], w[1]], [w[2], 0*w[0], -w[0]], [-w[1], w[0], 0*w[0]]])
def expm(w):
    t2 = w @ w; t = np.sqrt(t2 + 1e-40); W = hat(w)
    return np.eye(3) + np.sin(t)/t*W + (0.5 - t2/24 if abs(re(t)) < 1e-4 else (1-np.cos(t))/t2)*W@W
def Jl(w):
    t2 = w @ w; t = np.sqrt(t2 + 1e-40); W = hat(w)
    return np.eye(3) + (0.5 if abs(t) < 1e-4 else (1-np.cos(t))/t2)*W + (1/6. if abs(t) < 1e-4 else (t-np.sin(t))/(t2*t))*W@W
def cx(a, b): return np.array([a[1]*b[2]-a[2]*b[1], a[2]*b[0]-a[0]*b[2], a[0]*b[1]-a[1]*b[0]])
def cm(a, b): return np.concatenate([cx(a[:3], b[:3]), cx(a[:3], b[3:]) + cx(a[3:], b[:3])])
def cf(a, f): return np.concatenate([cx(a[:3], f[:3]) + cx(a[3:], f[3:]), cx(a[:3], f[3:])])
def wr(x, f): return np.concatenate([cx(x, f), f])
def at(Y, x): return Y[3:] + cx(Y[:3], x)
def inertia(m, c, Jc):
    I = np.zeros((6, 6), np.result_type(m, c, Jc, float)); C = hat(c)
    I[:3, :3] = Jc - m * C @ C; I[:3, 3:] = m * C; I[3:, :3] = -m * C; I[3:, 3:] = m * np.eye(3); return I

class Tree:  # link 0 free; others: parent, t (parent axes), axis (child axes = parent axes at 0), m, com, J
    def __init__(s, parent, t, axis, m, com, J, pd=(0., 0.), arm=0.):
        s.parent, s.t, s.axis, s.m, s.com, s.J = parent, t, axis, np.asarray(m, float), com, J
        s.n = len(parent); s.nv = 5 + s.n; s.kp, s.kd = pd; s.arm = arm; s.target = np.zeros(s.n - 1)
        s.g = np.array([0, 0, -9.81]); s.spheres = []; s.pairs = []
        # spheres: (link, offset, r); contacts: ('w', sphere, nz) or ('p', sphere_i, sphere_j)
    def kin(s, q, O):
        R0, p0, th = q; R = [R0]; p = [p0 - O]
        for i in range(1, s.n):
            pa = s.parent[i]; p.append(p[pa] + R[pa] @ s.t[i]); R.append(R[pa] @ expm(s.axis[i] * th[i-1]))
        S = [np.vstack([np.hstack([np.eye(3), np.zeros((3, 3))]), np.hstack([hat(p[0]), np.eye(3)])])]
        for i in range(1, s.n):
            z = R[i] @ s.axis[i]; S.append(np.concatenate([z, cx(p[i], z)])[:, None])
        I = [inertia(s.m[i], p[i] + R[i] @ s.com[i], R[i] @ s.J[i] @ R[i].T) for i in range(s.n)]
        return R, p, S, I
    def sl(s, i): return slice(0, 6) if i == 0 else slice(5 + i, 6 + i)
    def motion(s, S, y):
        Y = []
        for i in range(s.n): Y.append((Y[s.parent[i]] if i else 0) + S[i] @ y[s.sl(i)])
        return Y
    def jac(s, S):
        B = np.zeros((s.n, 6, s.nv), S[0].dtype if S[1].dtype == float else complex)
        for i in range(s.n):
            if i: B[i] = B[s.parent[i]]
            B[i][:, s.sl(i)] += S[i]
        return B
    def scene(s, R, p, O, rs):
        """contacts: d0, n, and the point x with the links i, j (-1 world); theta weights"""
        out = []
        y = [p[l] + R[l] @ o for (l, o, _) in s.spheres]
        for c in s.pairs:
            if c[0] == 'w':
                i = c[1]; n = np.asarray(c[2], float); out.append((rs[i] - n @ (y[i] + O), n, y[i] - rs[i] * n, s.spheres[i][0], -1, 1., 0.))
            else:
                i, j = c[1:]; e = y[i] - y[j]; L = np.sqrt(e @ e); n = e / L; d = rs[i] + rs[j] - L
                out.append((d, n, y[j] + n * (rs[j] - 0.5 * d), (li := s.spheres[i][0]), (lj := s.spheres[j][0]), 1 + s.m[li]/s.m[lj], 1 + s.m[lj]/s.m[li]))
        return out, y
    def forward(s, q, qd, th, rs, dt, O, u=0., keep=False, contact=True):
        R, p, S, I = s.kin(q, O); v = s.motion(S, qd); B = s.jac(S)
        a = []
        for i in range(s.n):
            if i == 0: a.append(np.concatenate([0*qd[:3], cx(qd[3:6], qd[:3]) - s.g]))
            else: a.append(a[s.parent[i]] + cm(v[i], S[i][:, 0] * qd[5+i]))
        M = sum(B[i].T @ I[i] @ B[i] for i in range(s.n)); h = sum(B[i].T @ (I[i] @ a[i] + cf(v[i], I[i] @ v[i])) for i in range(s.n))
        inc = np.concatenate([np.zeros(6), s.arm + dt*s.kd + dt*dt*s.kp + np.zeros(s.n-1)])
        tau = u + np.concatenate([np.zeros(6), s.kp*(s.target - q[2] - dt*qd[6:]) - s.kd*qd[6:]])
        Mt = M + np.diag(inc); qdd = np.linalg.solve(Mt, tau - h); vs = qd + dt*qdd
        dv = 0*vs; r = None
        if contact and s.pairs:
            C, y = s.scene(R, p, O, rs); nc = len(C)
            Ji = np.array([at_m(B[c[3]], c[2]) for c in C]); Jj = np.array([at_m(B[c[4]], c[2]) if c[4] >= 0 else 0*Ji[0] for c in C]); Jr = Ji - Jj
            d0 = np.array([c[0] for c in C]); n = np.array([c[1] for c in C]); ti = np.array([c[5] for c in C]); tj = np.array([c[6] for c in C])
            av, bv = Jr @ qd, Jr @ vs
            r, Kn, Kt = local.stageA(d0, n, av, bv, th, dt)
            nn = n[:, :, None]*n[:, None, :]; K = Kn[:, None, None]*nn + Kt[:, None, None]*(np.eye(3) - nn)
            A = Mt + np.einsum('c,cik,cij,cjl->kl', ti, Ji, K, Ji) + np.einsum('c,cik,cij,cjl->kl', tj, Jj, K, Jj)
            dv1 = np.linalg.solve(A, np.einsum('cik,ci->k', Jr, r)); e = Jr @ dv1
            f = local.stageB(d0, n, av, bv, e, th, dt)
            dv = np.linalg.solve(Mt, dt*np.einsum('cik,ci->k', Jr, f))
        vd = vs + 0.5*dv
        q1 = (expm(dt*vd[:3]) @ q[0], q[1] + dt*vd[3:6], q[2] + dt*vd[6:]); qd1 = vs + dv
        if not keep: return q1, qd1, vd
        return q1, qd1, vd, locals()
    def adjoint(s, k, qb, qdb, vdb, dt):
        """cotangents qb (6+n-1: left tangent, translation, angles), qdb of q+, qd+ and vdb of the reported drift velocity."""
        S, I, v, a, R, p, qd, vs, qdd, dv, Mt = (k[x] for x in ('S','I','v','a','R','p','qd','vs','qdd','dv','Mt'))
        B = k['B']; N = s.n; out = {}
        vd = k['vd']; phi = dt*vd[:3]
        vdb = vdb + dt*np.concatenate([Jl(phi).T @ qb[:3], qb[3:]])                       # (A1)
        qbar = np.concatenate([expm(phi).T @ qb[:3], qb[3:]])
        vsb = qdb + vdb; dvb = qdb + 0.5*vdb                                                # (A2)
        w = np.linalg.solve(Mt, dvb)                                                        # (A3) solve 1
        nv = s.nv; G = {x: [np.zeros(6) for _ in range(N)] for x in ('v', 'vs', 'dv1', 'dv', 'w', 'w1')}; Z = [np.zeros(6) for _ in range(N)]
        w1 = np.zeros(nv); qdbar = np.zeros(nv); 
        if s.pairs:
            C, d0, n, av, bv, e, f, r, Kn, Kt, dv1, Jr, th, rs, y, ti, tj, A = (k[x] for x in ('C','d0','n','av','bv','e','f','r','Kn','Kt','dv1','Jr','th','rs','y','ti','tj','A'))
            fb = dt*(Jr @ w)                                                                # (A4)
            d0b, nb, ab, bb, eb, thb = vjp_B(d0, n, av, bv, e, th, dt, fb)                  # (A5) local
            w1 = np.linalg.solve(A, np.einsum('cik,ci->k', Jr, eb))                         # (A6) solve 2
            rb = Jr @ w1
            W = s.motion(S, w); W1 = s.motion(S, w1); V = v; VS = s.motion(S, vs); D1 = s.motion(S, dv1)
            Knb, Ktb = np.zeros(len(C)), np.zeros(len(C)); mth = np.zeros(N); nbK = np.zeros((len(C), 3)); 
            for c, (dd, nn_, x, i, j, t1, t2) in enumerate(C):
                for l, t in ((i, t1), (j, t2)):
                    if l < 0: continue
                    pw, pe = at(W1[l], x), at(D1[l], x)
                    Knb[c] -= t*(nn_ @ pw)*(nn_ @ pe); Ktb[c] -= t*(pw @ pe - (nn_ @ pw)*(nn_ @ pe))
                    if j >= 0:                                                                # theta = 1 + m_l/m_other
                        o_ = j if l == i else i; tb = -(Kn[c]*(nn_ @ pw)*(nn_ @ pe) + Kt[c]*(pw @ pe - (nn_ @ pw)*(nn_ @ pe)))
                        mth[l] += tb/s.m[o_]; mth[o_] -= tb*s.m[l]/s.m[o_]**2
                    nbK[c] -= t*(Kn[c] - Kt[c])*((nn_ @ pe)*pw + (nn_ @ pw)*pe)             # (A7)
            d0b2, nb2, ab2, bb2, thb2 = vjp_A(d0, n, av, bv, th, dt, rb, Knb, Ktb)          # (A8) local
            d0b = d0b + d0b2; nb = nb + nb2 + nbK; ab = ab + ab2; bb = bb + bb2; out['th'] = [p_ + q_ for p_, q_ in zip(thb, thb2)]
            vsb = vsb + np.einsum('cik,ci->k', Jr, bb)                                      # (A9)
        ws = np.linalg.solve(Mt, vsb); Wt = dt*ws                                           # (A10) solve 3
        qdbar = qdbar + vsb
        Ws = s.motion(S, Wt)
        # local wrenches; sign: everything below accumulates -(cotangent) as in (7),(8)
        rsb = np.zeros(len(s.spheres))
        if s.pairs:
            for c, (dd, nn_, x, i, j, t1, t2) in enumerate(C):
                xb = np.zeros(3)
                K = Kn[c]*np.outer(nn_, nn_) + Kt[c]*(np.eye(3) - np.outer(nn_, nn_))
                Xl = {i: np.zeros(3)}; 
                for l, sg, t in ((i, 1., t1), (j, -1., t2)):
                    if l < 0: continue
                    pw, pe = at(W1[l], x), at(D1[l], x)
                    pairs = (('v', V, sg*ab[c]), ('vs', VS, sg*bb[c]), ('dv1', D1, sg*eb[c] - t*(K @ pw)), ('w', W, sg*dt*f[c]), ('w1', W1, sg*r[c] - t*(K @ pe)))
                    for nm, Y, cot in pairs:
                        G[nm][l] -= wr(x, cot); xb += cx(cot, Y[l][:3])                      # (A11)
                # pose of x, n, d0
                if j < 0:
                    si = s.pairs[c][1]; ri = rs[si]
                    yb = xb - nn_*d0b[c]; rsb[si] += d0b[c] - nn_ @ xb                       # x = y - r n, d0 = r - n.y
                    Z[i] -= wr(y[si], yb)
                else:
                    si, sj = s.pairs[c][1:]; ee = y[si]-y[sj]; L = np.sqrt(ee @ ee); bq = rs[sj] - 0.5*dd
                    pb = d0b[c] - 0.5*(nn_ @ xb); nbar = nb[c] + bq*xb
                    eb_ = (nbar - nn_*(nn_ @ nbar))/L - nn_*pb
                    Z[i] -= wr(y[si], eb_); Z[j] -= wr(y[sj], xb - eb_)
                    rsb[si] += pb; rsb[sj] += pb + nn_ @ xb
        out['rs'] = rsb
        # (7): +d(phi), phi = Wt.(M qdd + h - tau) + w1.M dv1 + w.M dv
        mb = np.zeros(N); A_ = [None]*N; F_ = [None]*N; D = s.motion(S, qdd)
        at_ = [a[i] + D[i] for i in range(N)]
        DV = s.motion(S, dv); W = s.motion(S, w); W1 = s.motion(S, w1); D1 = s.motion(S, k['dv1']) if s.pairs else DV
        for i in range(N):
            d, ai, vi, Ii = Ws[i], at_[i], v[i], I[i]
            F_[i] = Ii @ ai + cf(vi, Ii @ vi); A_[i] = Ii @ d
            G['v'][i] += Ii @ cm(d, vi) - cf(d, Ii @ vi)
            Z[i] += -cf(d, Ii @ ai) - cf(ai, Ii @ d) - cf(cm(d, vi), Ii @ vi) - cf(vi, Ii @ cm(d, vi))
            for x, X, y_, Y in (('w', W, 'dv', DV), ('w1', W1, 'dv1', D1)):
                if not s.pairs: continue
                G[x][i] += Ii @ Y[i]; G[y_][i] += Ii @ X[i]                                   # (A12)
                Z[i] += -cf(X[i], Ii @ Y[i]) - cf(Y[i], Ii @ X[i])
            # mass: -(d,a)-(d x v, v) at the com, link-fixed com
            cpt = p[i] + R[i] @ s.com[i]
            mb[i] = -(at(d, cpt) @ at(ai, cpt) + at(cm(d, vi), cpt) @ at(vi, cpt))
            if s.pairs: mb[i] -= at(W[i], cpt) @ at(DV[i], cpt) + at(W1[i], cpt) @ at(D1[i], cpt)
        out['m'] = mb + (mth if s.pairs else 0)
        gens = (('vs', vs), ('dv1', k['dv1']), ('dv', dv), ('w', w), ('w1', w1)) if s.pairs else ()
        for i in range(N-1, -1, -1):                                                        # (8), extended
            if i:
                Sq = S[i][:, 0]; sl = 5+i
                G['v'][i] = G['v'][i] + cf(Sq*qd[sl], A_[i]); t = G['v'][i] - cf(v[i], A_[i])
                Sb = F_[i]*Wt[sl] + A_[i]*qdd[sl] + t*qd[sl]
                for nm, y_ in gens: Sb = Sb + G[nm][i]*y_[sl]
                Z[i] = Z[i] + cf(Sq, Sb); qdbar[sl] -= Sq @ t; qbar[sl] -= Sq @ Z[i]
                pa = s.parent[i]
                F_[pa] = F_[pa] + F_[i]; A_[pa] = A_[pa] + A_[i]; Z[pa] = Z[pa] + Z[i]
                for nm in G: G[nm][pa] = G[nm][pa] + G[nm][i]
            else:
                om, pd = qd[:3], qd[3:6]; Al = A_[0][3:]
                qdbar[:6] -= G['v'][0] + np.concatenate([cx(Al, pd), cx(om, Al)])
                Y = cx(Wt[:3], F_[0][3:]) + cx(qdd[:3], Al) + cx(om, G['v'][0][3:])
                for nm, y_ in gens: Y = Y + cx(y_[:3], G[nm][0][3:])
                qbar[:3] -= Z[0][:3]; qbar[3:6] -= Z[0][3:] + Y
        # implicit drives: tau depends on q, qd with slope; increments constant here
        qbar[6:] -= s.kp*Wt[6:]; qdbar[6:] -= (dt*s.kp + s.kd)*Wt[6:]
        out['q'] = qbar; out['qd'] = qdbar; out['u'] = Wt
        return out
def at_m(B, x): return B[3:] - hat(x) @ B[:3]
def vjp_B(*z):
    import local_adj; return local_adj.adj_B(*z)
def vjp_A(*z):
    import local_adj; return local_adj.adj_A(*z)
def vjp_B_cs(d0, n, a, b, e, th, dt, fb):
    g = lambda *z: (local.stageB(z[0], z[1], z[2], z[3], z[4], z[5:], dt)*fb).sum(-1)
    return _vjp(g, [d0, n, a, b, e] + list(th), 5)
def vjp_A_cs(d0, n, a, b, th, dt, rb, Knb, Ktb):
    def g(*z):
        r, Kn, Kt = local.stageA(z[0], z[1], z[2], z[3], z[4:], dt); return (r*rb).sum(-1) + Kn*Knb + Kt*Ktb
    return _vjp(g, [d0, n, a, b] + list(th), 4)
def _vjp(g, args, m):  # local cotangents, exact, by complex steps (each contact by itself)
    args = [np.asarray(x, complex) for x in args]; out = []
    for i, x in enumerate(args):
        o = np.zeros(x.shape)
        for c in range(3 if x.ndim == 2 else 1):
            z = list(args); zz = x.copy()
            if x.ndim == 2: zz[:, c] += 1j*H
            else: zz += 1j*H
            z[i] = zz; val = g(*z).imag/H
            if x.ndim == 2: o[:, c] = val
            else: o = val
        out.append(o)
    return out[:m] + [out[m:]]

def random_tree(rng, n=6):
    parent = [-1] + [int(rng.integers(0, i)) for i in range(1, n)]
    ax = [None] + [(lambda z: z/np.linalg.norm(z))(rng.normal(size=3)) for _ in range(n-1)]
    J = []
    for _ in range(n):
        X = rng.normal(size=(3, 3)); J.append(0.01*(X @ X.T + np.eye(3)))
    T = Tree(parent, [np.zeros(3)] + [0.3*rng.normal(size=3) for _ in range(n-1)], ax, rng.uniform(.3, 3, n), [0.1*rng.normal(size=3) for _ in range(n)], J, pd=(20., 1.), arm=0.01)
    T.target = rng.normal(size=n-1)
    return T
def test_adjoint():
    worst = {}
    for seed in range(12):
        rng = np.random.default_rng(seed); T = random_tree(rng, 7); dt = 1/240
        q = (expm(rng.normal(size=3)), rng.normal(size=3), rng.normal(size=6)); qd = rng.normal(size=T.nv); O = q[1].copy()
        R, p, S, I = T.kin(q, O)
        rs = rng.uniform(.05, .1, 6); T.spheres = [(int(rng.integers(0, 7)), 0.2*rng.normal(size=3), 0) for _ in range(6)]
        y = [p[l] + R[l] @ o for (l, o, _) in T.spheres]
        for c in range(4):                       # four planes that just touch, at random depths about the ramp
            nz = rng.normal(size=3); nz /= np.linalg.norm(nz); T.pairs.append(('w', c, nz))
        tgt = [rng.uniform(-.5e-3, 2.5e-3) for _ in range(4)]
        for i, j in ((3, 4), (5, 0), (4, 1)): T.pairs.append(('p', i, j))
        # shift depths: planes through an offset, pair radii kept but distance measured with an added constant
        base = T.scene(R, p, O, rs)[0]; off = np.array([ (tgt[c] if c < 4 else rng.uniform(-.5e-3, 2.5e-3)) - base[c][0] for c in range(7)])
        orig = T.scene
        def scene(R, p, O, rs, orig=orig, off=off):
            C, y = orig(R, p, O, rs); return [(c[0] + off[k],) + c[1:] for k, c in enumerate(C)], y
        T.scene = scene
        # the point between two spheres uses the unshifted depth; the adjoint must do the same
        th0 = [rng.uniform(.5, 2, 7)*x for x in (3e4, 1e-3, 1., .8, 1e-2 if seed % 2 else 1e-4)]
        qd1b, vdb = rng.normal(size=T.nv), rng.normal(size=T.nv); qb = rng.normal(size=T.nv)*50
        q1, qd1, vd, k = T.forward(q, qd, th0, rs, dt, O, keep=True)
        k['C'] = [(c[0] - (off[m] if c[4] >= 0 else 0),) + c[1:] for m, c in enumerate(k['C'])]
        g = T.adjoint(k, qb, qd1b, vdb, dt)
        R1 = q1[0]
        def loss(q, qd, th, rs, m=None, u=0.):
            if m is not None: T.m = m
            a, b, c = T.forward(q, qd, th, rs, dt, O, u=u)
            dR = a[0] @ R1.T; left = np.array([dR[2, 1]-dR[1, 2], dR[0, 2]-dR[2, 0], dR[1, 0]-dR[0, 1]])/2
            return (qb[:3] @ left + qb[3:6] @ a[1] + qb[6:] @ a[2] + qd1b @ b + vdb @ c).imag/H
        def chk(nm, got, fun, n):
            ref = np.array([fun(np.eye(n)[i]*1j*H) for i in range(n)]); er = np.max(abs(ref-got))/(1+np.max(abs(ref))); worst[nm] = max(worst.get(nm, 0), er)
        chk('q', g['q'], lambda x: loss((expm(x[:3]) @ q[0], q[1]+x[3:6], q[2]+x[6:]), qd, th0, rs), T.nv)
        chk('qd', g['qd'], lambda x: loss(q, qd+x, th0, rs), T.nv)
        chk('u', g['u'], lambda x: loss(q, qd, th0, rs, u=x), T.nv)
        for t, nm in enumerate(('stiffness', 'width', 'dissipation', 'friction', 'eps')):
            chk(nm, g['th'][t], lambda x: loss(q, qd, [z + (x*th0[t] if i == t else 0) for i, z in enumerate(th0)], rs)/1., 7) if False else chk(nm, g['th'][t]*th0[t], lambda x: loss(q, qd, [z + (x*th0[t] if i == t else 0) for i, z in enumerate(th0)], rs), 7)
        chk('radius', g['rs'], lambda x: loss(q, qd, th0, rs+x), 6)
        m0 = T.m.copy(); chk('mass', g['m'], lambda x: loss(q, qd, th0, rs, m=m0+x), 7); T.m = m0
        touching = int((k['d0'] > 0).sum())
    print("adjoint against complex step, 12 random trees of 7 links, 4 world + 3 inner contacts; error max|d|/(1+max|g|):")
    print("  " + "  ".join("%s %.1e" % x for x in worst.items()))
if __name__ == "__main__":
    for t in (sys.argv[1:] or ["adjoint"]): globals()['test_' + t]()
