"""one quadruped case: k eps alpha seconds"""
import sys; from robots import *
k, eps, al, T = map(float, sys.argv[1:5]); r = run_quad(quad(), (k, 1e-3, al, .8, eps), 240, T, drop=.3, v0=.7)
print("quad k %g eps %g alpha %g: max|qd| %.1f, |v_d| after %g s %.1e, foot load ratios %s, cone %.7f" % (k, eps, al, r['maxv'], T, r['vd'], np.round(r['ft']/(.8*r['fn']), 3), r['cone']))
