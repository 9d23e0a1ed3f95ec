
#include <gtest/gtest.h>
#include "tests/support/gradient_case.h"
#include "tests/support/models.h"
#include "autodiff/tape/rollout.h"
namespace backdrive { namespace {
TEST(Tmp, Look) {
  for (int links : {6,7,8,9,10,11}) for (int couplings : {0,1,2,3}) for (int steps : {1,2,4,8}) {
  test::TreeOptions options;
  options.rotations = options.contact = true; options.links = links; options.forces = options.shapes = true; options.couplings = couplings;
  Model model = test::random_tree(31 + links, options);
  test::require_all(model);
  const test::GradientCase c = test::make_case(model, steps, 0.01, 2, 3);
  const auto t = rollout(c.model, c.batch.state, c.batch.control, c.options);
  double vmax=0; for (int r=0;r<t.qd.rows();++r) for (int w=0;w<2;++w) vmax=std::max(vmax,std::abs(t.qd(r,w)));
  const auto e = test::worst(test::compare_blocks(c, test::gradient_by_tape<double>(c), 11));
  printf("links %d couplings %d steps %d: %g %s vmax %g unsolved %d %d stopped %d\n", links, couplings, steps, e.error, e.block.c_str(), vmax, (*t.status)[0].unsolved_step, (*t.status)[1].unsolved_step, (*t.status)[0].stopped_step);
  }
}
}}
