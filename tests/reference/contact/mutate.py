"""Deliberate bugs in the adjoint and the error each makes (largest over the columns of tree.py adjoint)."""
import re, sys, io, contextlib
src = open('tree.py').read()
M = [("none", "zz", "zz"),
 ("K's dependence on n (A7) dropped", "nbK[c] -= t*(Kn[c]", "nbK[c] -= 0*t*(Kn[c]"),
 ("coefficients of K frozen (Knb, Ktb = 0)", "d0b2, nb2, ab2, bb2, thb2 = vjp_A(d0, n, av, bv, th, dt, rb, Knb, Ktb)", "d0b2, nb2, ab2, bb2, thb2 = vjp_A(d0, n, av, bv, th, dt, rb, 0*Knb, 0*Ktb)"),
 ("predictor frozen (eb = 0)", "d0b, nb, ab, bb, eb, thb = vjp_B", "eb0 = 0*e; d0b, nb, ab, bb, eb, thb = vjp_B"),
 ("old velocity a not a cotangent", "('v', V, sg*ab[c])", "('v', V, 0*sg*ab[c])"),
 ("(A9) b = J vs dropped in vs", "vsb = vsb + np.einsum('cik,ci->k', Jr, bb)", "vsb = vsb + 0"),
 ("(A12) mass terms of w, w1 dropped", "G[x][i] += Ii @ Y[i]; G[y_][i] += Ii @ X[i]", "pass"),
 ("K e in the wrenches on w1, dv1 dropped", "- t*(K @ pw)", "- 0*t*(K @ pw)"),
 ("pose of a sphere pulled back at x", "Z[i] -= wr(y[si], yb)", "Z[i] -= wr(x, yb)"),
 ("theta not differentiated", "mth[l] += tb/s.m[o_]; mth[o_] -= tb*s.m[l]/s.m[o_]**2", "pass"),
 ("seed of the drift in v+ whole, not half", "dvb = qdb + 0.5*vdb", "dvb = qdb + vdb")]
src = src.replace("range(12)", "range(3)")
for name, a, b in M:
    assert name == "none" or a in src, name
    code = src.replace(a, b)
    if "predictor frozen" in name: code = code.replace("        w1 = np.linalg.solve(A", "            eb = 0*eb\n            w1 = np.linalg.solve(A", 1) if False else code.replace("np.einsum('cik,ci->k', Jr, eb)", "0*np.einsum('cik,ci->k', Jr, eb)").replace("sg*eb[c] -", "0*sg*eb[c] -")
    out = io.StringIO()
    with contextlib.redirect_stdout(out): exec(compile(code, 'm', 'exec'), {'__name__': '__main__', '__file__': 'm'})
    v = [(float(x), n) for n, x in re.findall(r"(\w+) (\d\.\de[+-]\d+)", out.getvalue())]
    print("%-45s worst %.1e in %s" % ((name,) + max(v)), flush=True)
