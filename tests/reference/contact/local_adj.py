"""Hand-written adjoints of the two local stages (numbers L1.. of recipe.md)."""
import numpy as np
from law import *
from local import *
import local
def law_full(d0, d1, dt, k, w, al):
    P = path(d0, d1, w); z = 1 + al*(d1 - d0)/dt; h, hs = hc(z); h2 = np.where(abs(z) < 0.5, 1.0, 0.0)
    return P, h, hs, h2, k*P['f']*h, k*(P['f1']*h + P['f']*hs*al/dt)
def adj_normal(X, d0, d1, dt, k, w, al, fb, kb):
    """-> d0, d1, k, w, alpha bars of f (fb) and kappa = df/dd1 (kb)"""
    P, h, hs, h2, f, kap = X
    Fb = k*(fb*h + kb*hs*al/dt); F1b = k*kb*h
    zb = k*(fb*P['f']*hs + kb*(P['f1']*hs + P['f']*h2*al/dt))
    return (Fb*P['f0'] + F1b*P['f01'] - zb*al/dt, Fb*P['f1'] + F1b*P['f11'] + zb*al/dt, (fb*f + kb*kap)/k,
            Fb*P['fw'] + F1b*P['f1w'], zb*(d1 - d0)/dt + kb*k*P['f']*hs/dt)
def adj_tang(n, x, ub):
    """u = x - n (n.x): -> xb, nb"""
    return tang(ub, n), -(dot(n, x)[..., None]*ub + dot(n, ub)[..., None]*x)
V = lambda s: s[..., None]
def _model(d0, n, a, b, th, dt):
    k, w, al, mu, eps = th
    sa, sb = dot(n, a), dot(n, b); d10 = d0 - dt*sb; dr = d0 - .5*dt*(sa + sb)
    Xr = law_full(d0, dr, dt, k, w, al); X0 = law_full(d0, d10, dt, k, w, al); kap = .5*(Xr[5] + X0[5]); h = .5*dt*(sa - sb)
    x0, xr = 1.5*b - .5*a, .5*(a + b); u0, ur = tang(x0, n), tang(xr, n); nu = np.sqrt(dot(ur, ur) + eps*eps)
    return d10, dr, Xr, X0, kap, h, Xr[4] + kap*h, x0, xr, u0, ur, nu, mu*Xr[4]/nu
def adj_A(d0, n, a, b, th, dt, rb, Knb, Ktb):
    m = _model(d0, n, a, b, th, dt); u0, c, rn = m[9], m[12], m[6]
    return _common(m, d0, n, a, b, th, dt, V(dt*rn)*rb, dt*dot(n, rb), 0*d0, 0*d0, .5*dt*dt*Knb, dt*(Ktb - dot(u0, rb)), -V(dt*c)*rb, 0*d0)
def _common(m, d0, n, a, b, th, dt, nb, rnb, frb, f0b, kb, cb, u0b, d10b):
    """cotangents of rn, fr, f0, kap, c, u0, d10 -> those of d0, n, a, b, theta"""
    k, w, al, mu, eps = th; d10, dr, Xr, X0, kap, h, rn, x0, xr, u0, ur, nu, c = m
    kb = kb + h*rnb; frb = frb + rnb; sab = .5*dt*kap*rnb; sbb = -sab                      # (L5)
    frb = frb + cb*mu/nu; mub = cb*Xr[4]/nu; nub = -cb*c/nu; urb = V(nub/nu)*ur; epsb = nub*eps/nu
    x0b, n1 = adj_tang(n, x0, u0b); xrb, n2 = adj_tang(n, xr, urb); nb = nb + n1 + n2
    r_ = adj_normal(Xr, d0, dr, dt, k, w, al, frb, .5*kb); z_ = adj_normal(X0, d0, d10, dt, k, w, al, f0b, .5*kb)
    drb = r_[1]; d10b = d10b + z_[1]
    sab = sab - .5*dt*drb; sbb = sbb - .5*dt*drb - dt*d10b
    return [r_[0] + z_[0] + drb + d10b, nb + V(sab)*a + V(sbb)*b, -.5*x0b + .5*xrb + V(sab)*n, 1.5*x0b + .5*xrb + V(sbb)*n,
            [r_[2] + z_[2], r_[3] + z_[3], r_[4] + z_[4], mub, epsb]]
def adj_B(d0, n, a, b, e, th, dt, fvb):
    k, w, al, mu, eps = th; beta = 0.5
    m = _model(d0, n, a, b, th, dt); d10, dr, Xr, X0, kap, h, rn, x0, xr, u0, ur, nu, c = m
    ne = dot(n, e); f1 = pos(rn - .5*dt*kap*ne); D = f1 + TAU*(Xr[4] + X0[4]) + 1e-30; F1 = f1*f1/D; d11 = d10 - .5*dt*ne
    p = pos(ne); Q = (p + VEPS)*(F1 + 1e-30); q = .5*dt*p*p/Q
    f = F1; trace = []
    for _ in range(STEPS):
        x = d11 - q*(f - f1); Xx = law_full(d0, x, dt, k, w, al); Nn = 1/(1 + Xx[5]*q); trace.append((f, x, Xx, Nn)); f = f + (Xx[4] - f)*Nn
    fraw = f; f = pos(f)
    et = tang(e, n); u1 = u0 + et
    nu1 = np.sqrt(dot(u1, u1) + 1e-30); net = np.sqrt(dot(et, et) + eps*eps); den = net + beta*nu1; g = 1 + beta*nu1/den
    lam = V(c*g)*u1; l = np.sqrt(dot(lam, lam) + 1e-30); F = mu*f; xx = l/(F + 1e-30); s, sp = sat(xx, DELTA); psi = F*s/l
    # reverse
    nb = V(f)*fvb; fb = dot(n, fvb); psib = -dot(lam, fvb); lamb = -V(psi)*fvb
    y = s - xx*sp
    Fb = psib*y/l; lb = -psib*F*y/(l*l); lamb = lamb + V(lb/l)*lam
    fb = fb + mu*Fb; mub = f*Fb
    cgb = dot(lamb, u1); u1b = V(c*g)*lamb; cb = cgb*g; gb = cgb*c
    nu1b = gb*beta*net/(den*den); netb = -gb*beta*nu1/(den*den); epsb = netb*eps/net
    u1b = u1b + V(nu1b/nu1)*u1; etb = u1b + V(netb/net)*et; u0b = u1b
    fb = np.where(fraw > 0, fb, 0*fb); d0b = 0*d0; d11b = 0*d0; qb = 0*d0; F1b = 0*d0; f1b = 0*d0; kb_, wb_, alb_ = 0*d0, 0*d0, 0*d0
    for fk, x, Xx, Nn in reversed(trace):
        Nb = fb*(Xx[4] - fk); kapb = -Nb*Nn*Nn*q; qb = qb - Nb*Nn*Nn*Xx[5]
        z0, z1, zk, zw, za = adj_normal(Xx, d0, x, dt, k, w, al, fb*Nn, kapb)
        d0b = d0b + z0; kb_ = kb_ + zk; wb_ = wb_ + zw; alb_ = alb_ + za
        d11b = d11b + z1; qb = qb - z1*(fk - f1); f1b = f1b + q*z1; fb = fb*(1 - Nn) - q*z1
    F1b = F1b + fb
    pb = qb*q*np.where(p > 0, 2/np.maximum(p, 1e-300) - 1/(p + VEPS), 0.); F1b = F1b - qb*q/(F1 + 1e-30)
    f1b = f1b + F1b*(2*f1/D - F1/D); sb_ = -F1b*F1/D*TAU
    rnb = np.where(f1 > 0, f1b, 0*f1b); kapb = -.5*dt*ne*rnb
    neb = -.5*dt*kap*rnb - .5*dt*d11b + np.where(ne > 0, pb, 0*pb)
    eb, n3 = adj_tang(n, e, etb); nb = nb + n3 + V(neb)*e; eb = eb + V(neb)*n
    o = _common(m, d0, n, a, b, th, dt, nb, rnb, sb_, sb_, kapb, cb, u0b, d11b)
    o[0] = o[0] + d0b
    t = o[4]; t[0] = t[0] + kb_; t[1] = t[1] + wb_; t[2] = t[2] + alb_; t[3] = t[3] + mub; t[4] = t[4] + epsb
    return o[0], o[1], o[2], o[3], eb, t
