import numpy as np, sys
from robots import *
T = quad(); th = (3e4, 1e-3, float(sys.argv[1]), .8, 1e-4)
dt = 1/240; q = (np.eye(3), np.array([0, 0, .02+.4*np.cos(.7)-1e-3]), T.target.copy()); qd = np.zeros(T.nv)
thv = [np.full(4, x) for x in th]; rs = np.full(4, .02)
for i in range(720):
    q, qd, vd, k = T.forward(q, qd, thv, rs, dt, q[1].copy(), keep=True)
    if i % 120 == 119 or i > 714:
        fn = (k['f']*k['n']).sum(-1); print(i, "vd base", np.abs(vd[:6]).max(), "joint", np.round(vd[6:9], 6), "fn", np.round(fn, 3), "d0 mm", np.round(1e3*k['d0'], 3), "foot vt", np.abs((k['Jr']@vd)[:, :2]).max(), flush=True)
