// Gradients against central differences, to 1e-6: a route that shares nothing with the adjoint or with dual numbers,
// only less exact. Each tolerance is computed from the differences themselves.
#include <gtest/gtest.h>

#include <cmath>

#include "models/builder.h"
#include "models/parameter_list.h"
#include "tests/support/gradient_case.h"
#include "tests/support/models.h"

namespace backdrive {
namespace {

using test::CaseGradient;
using test::Direction;
using test::GradientCase;

/// Step of the differences, in units of what is varied: rounding errs by about 1e-16 f / h, truncation by h² f‴ / 6;
/// equal near the cube root of 1e-16.
constexpr double kStep = 1e-5;

void add(Buffer<double>& to, const Buffer<double>& v, double s) {
  for (int r = 0; r < to.rows(); ++r) {
    for (int w = 0; w < to.worlds(); ++w) to.write(r)[w] += s * v(r, w);
  }
}

/// R(q) ← R(q) exp(θ).
void turn(Parameter& orientation, int item, const double* theta) {
  const double angle = std::sqrt(theta[0] * theta[0] + theta[1] * theta[1] + theta[2] * theta[2]);
  if (angle == 0) return;
  const double s = std::sin(angle / 2) / angle;
  const double x = s * theta[0], y = s * theta[1], z = s * theta[2], w = std::cos(angle / 2);
  const auto q = [&](int k) { return orientation(item, k); };
  const double a = q(0), b = q(1), c = q(2), d = q(3);
  const double product[4] = {d * x + a * w + b * z - c * y, d * y - a * z + b * w + c * x,
                             d * z + a * y - b * x + c * w, d * w - a * x - b * y - c * z};
  for (int k = 0; k < 4; ++k) orientation.at(item, k) = product[k];
}

/// The case at its inputs plus s·v, on the manifold: rotations by exp(s θ), axes renormalised.
GradientCase moved(const GradientCase& c, const Direction& v, double s) {
  GradientCase to = c;
  to.batch.state.q = c.batch.state.q.clone(default_memory());
  to.batch.state.qd = c.batch.state.qd.clone(default_memory());
  to.batch.control.u = c.batch.control.u.clone(default_memory());
  add(to.batch.state.q, v.q0, s);
  add(to.batch.state.qd, v.qd0, s);
  add(to.batch.control.u, v.control, s);
  for (const Field& field : fields()) {
    Parameter& p = field.of(to.model);
    const Parameter& d = field.in(v.parameters);
    for (int i = 0; i < p.items(); ++i) {
      if (field.components != field.tangents) {
        const double theta[3] = {s * d(i, 0), s * d(i, 1), s * d(i, 2)};
        turn(p, i, theta);
        continue;
      }
      for (int k = 0; k < p.components(); ++k) {
        if (std::isfinite(p(i, k))) p.at(i, k) += s * d(i, k);
      }
    }
  }
  Parameter& axis = to.model.joints.axis;
  for (int i = 0; i < axis.items(); ++i) {
    const double length = std::hypot(axis(i, 0), axis(i, 1), axis(i, 2));
    for (int k = 0; k < 3; ++k) axis.at(i, k) /= length;
  }
  return to;
}

/// The usual size of a block's numbers, in which steps and errors are measured: an inertia of 0.01 kg·m² cannot be
/// moved by 1e-5 for a small difference, a density of 500 kg/m³ can.
double size_of(const Model& model, const std::string& block) {
  double squares = 0;
  int count = 0;
  for (const Field& field : fields()) {
    if (test::block_of(field) != block || field.unit == "1") continue;
    const Parameter& p = field.in(model);
    for (int i = 0; i < p.items(); ++i) {
      for (int k = 0; k < p.components(); ++k) {
        if (!std::isfinite(p(i, k)) || p(i, k) == 0) continue;
        squares += p(i, k) * p(i, k);
        ++count;
      }
    }
  }
  return count > 0 ? std::sqrt(squares / count) : 1;
}

double difference(const GradientCase& c, const Direction& v, double h) {
  return (test::value_of_case<double>(moved(c, v, h)) - test::value_of_case<double>(moved(c, v, -h))) / (2 * h);
}

/// Limits, friction and drives, but no effort limits: where a drive saturates the force jumps, and a difference across
/// the jump says nothing. (Limits are C¹: their kink costs at most h times the jump of f″ in the steps that h carries
/// across it.)
GradientCase smooth_case(std::uint64_t seed, bool contact) {
  test::TreeOptions options;
  options.links = 7;
  options.forces = options.shapes = true;
  options.contact = contact;
  Model model = test::random_tree(seed, options);
  for (int j = 0; j < model.joints.drive.effort_limit.items(); ++j) {
    model.joints.drive.effort_limit.set(j, 0, std::numeric_limits<double>::infinity());
  }
  test::require_all(model);
  return test::make_case(std::move(model), 12, 0.01, 1, seed);
}

/// A block of inputs, of bodies that touch or of bodies that do not.
struct Subject {
  bool contact;
  std::string block;
};
void PrintTo(const Subject& s, std::ostream* out) {
  *out << s.block << (s.contact ? ", with contact" : "");
}

class Differences : public testing::TestWithParam<Subject> {};

TEST_P(Differences, AgreeWithTheAdjoint) {
  const auto& [contact, block] = GetParam();
  for (const std::uint64_t seed : {3, 9}) {
    const GradientCase c = smooth_case(seed, contact);
    const CaseGradient gradient = test::gradient_by_tape<double>(c);
    const Direction v = test::random_direction(c, block, seed + 40);
    // Where contact lets go, its force bends the more sharply the more it dissipates, as cores do.
    const double size = size_of(c.model, block), h = (contact ? 0.5 : 1) * kStep * size;
    const test::Product exact = test::reverse_product(gradient, v);
    const double fine = difference(c, v, h), coarse = difference(c, v, 2 * h);
    // D(h) = f′ + h² f‴/6 + …, so D(2h) − D(h) is three times the truncation of D(h). f is a sum of some hundred terms,
    // each with the rounding of twelve steps, of which the difference divides by h.
    const double truncation = std::abs(coarse - fine) / 3;
    double magnitude = 0;
    for (const Buffer<double>* b : {&c.q_bar, &c.qd_bar, &c.pose_bar}) magnitude += std::sqrt(b->rows());
    const double rounding = 2.2e-16 * 12 * magnitude / h;
    const double tolerance = 2 * truncation + rounding;
    EXPECT_LT(tolerance * size, 1e-6 * (1 + exact.magnitude * size))
        << "the differences themselves are no better, seed " << seed;
    EXPECT_NEAR(exact.value, fine, tolerance) << "seed " << seed;
    EXPECT_GT(std::abs(exact.value), 100 * tolerance) << "nothing to compare, seed " << seed;
    EXPECT_NE(exact.value, fine) << "equal to the bit: is one computed from the other?";
  }
}

std::vector<Subject> differentiable_blocks() {
  std::vector<Subject> subjects;
  for (const bool contact : {false, true}) {
    const Model model = smooth_case(3, contact).model;
    for (const std::string& block : test::block_names()) {
      if (test::block_is_live(model, block) && block != "joints/drive/effort_limit")
        subjects.push_back({contact, block});
    }
  }
  return subjects;
}
INSTANTIATE_TEST_SUITE_P(Blocks, Differences, testing::ValuesIn(differentiable_blocks()), [](const auto& info) {
  std::string name = info.param.block + (info.param.contact ? "_with_contact" : "");
  for (char& ch : name) {
    if (ch == '/') ch = '_';
  }
  return name;
});

}  // namespace
}  // namespace backdrive
