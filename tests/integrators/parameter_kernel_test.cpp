// Parameters into constants and back, a thread per world: against each other, by duals, and with faults planted.
#include "integrators/featherstone/link_parameters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "autodiff/tape/model_constants_buffer.h"
#include "engine/exact_sum.h"
#include "models/fields.h"
#include "tests/support/models.h"

namespace backdrive {
namespace {

using namespace featherstone;

constexpr int kWorlds = 5;

/// Which parameters have values of their own in each world.
enum class Spread { none, some, all };

Model varied_tree(std::uint64_t seed, Spread spread) {
  test::TreeOptions options;
  options.links = 1 + static_cast<int>(seed % 9);
  options.forces = options.shapes = true;
  Model model = test::random_tree(seed, options);
  test::Random random(seed + 100);
  int count = 0;
  for (const Field& field : fields()) {
    Parameter& p = field.of(model);
    for (int i = 0; i < p.items(); ++i) p.requires_grad(i, true);
    if (spread == Spread::none || (spread == Spread::some && count++ % 2 == 0)) continue;
    p.spread(kWorlds);
    for (int w = 0; w < kWorlds; ++w) {
      for (int i = 0; i < p.items(); ++i) {
        for (int c = 0; c < p.components(); ++c) p.at(i, c, w) *= 1 + random.symmetric(0.05);
      }
    }
  }
  // Axes and quaternions stay what they must be.
  for (Parameter* p : {&model.joints.axis, &model.joints.frame.orientation, &model.shapes.frame.orientation}) {
    for (int w = 0; w < p->worlds(); ++w) {
      for (int i = 0; i < p->items(); ++i) {
        double squares = 0;
        for (int c = 0; c < p->components(); ++c) squares += p->at(i, c, w) * p->at(i, c, w);
        for (int c = 0; c < p->components(); ++c) p->at(i, c, w) /= std::sqrt(squares);
      }
    }
  }
  return model;
}

/// How many rows the constants have, and how many their cotangents.
int constant_rows(const Model& model) {
  return static_cast<int>(model.topology.links.size()) * (kLinkConstants<double> + 9) + 3;
}
int bar_rows(const Model& model) {
  return static_cast<int>(model.topology.links.size()) * kLinkGradients<double> + 3;
}

template <class T>
std::vector<T> random_rows(std::uint64_t seed, int rows, int stride) {
  test::Random random(seed);
  std::vector<T> numbers(static_cast<std::size_t>(rows) * stride);
  for (T& x : numbers) x = static_cast<T>(random.symmetric(1));
  return numbers;
}

// ---- constants ------------------------------------------------------------------------------------------------------

/// Threads run in any order, and read one block such as a device would hold.
template <class T>
void expect_same_columns(const Model& model) {
  Memory memory;
  const Buffer<T> want = constants_buffer<T>(model, nullptr, kWorlds, memory);
  const bool uniform = model.parameter_worlds() == 1;
  std::vector<double> block(flat_size(model));
  write_flat(model, block.data());
  const int rows = constant_rows(model), stride = row_stride<T>(kWorlds);
  std::vector<T> got(static_cast<std::size_t>(rows) * stride);
  const featherstone::ConstantsOfWorld<T> fill{
      {structure_of(model), flat_view(model, block.data()), got.data(), stride, kWorlds}};
  for (int w = stride - 1; w >= 0; --w) fill(w);
  for (int row = 0; row < rows; ++row) {
    for (int w = 0; w < stride; ++w) {
      const T expected = uniform ? want(0, row) : want(row, std::min(w, kWorlds - 1));
      ASSERT_EQ(got[static_cast<std::size_t>(row) * stride + w], expected) << "row " << row << " world " << w;
    }
  }
}

TEST(ParameterKernel, AnyThreadOrderAndOneBlockGiveTheSameConstants) {
  for (std::uint64_t seed = 0; seed < 18; ++seed) {
    for (const Spread spread : {Spread::none, Spread::some, Spread::all}) {
      const Model model = varied_tree(seed, spread);
      SCOPED_TRACE(seed);
      expect_same_columns<double>(model);
      expect_same_columns<float>(model);
    }
  }
}

// ---- the adjoint ----------------------------------------------------------------------------------------------------

/// θ̇ of M exp(θ).
Vec3<double> tangent_of(const Mat3<Dual<double>>& m) {
  const auto entry = [](const Vec3<Dual<double>>& a, const Vec3<Dual<double>>& b) {
    return a.x.value * b.x.dot + a.y.value * b.y.dot + a.z.value * b.z.dot;
  };
  return {entry(m.cz, m.cy), entry(m.cx, m.cz), entry(m.cy, m.cx)};
}

/// A sum of products and of their magnitudes, which sets the scale of its rounding.
struct Product {
  double value = 0, magnitude = 0;

  void add(double a, double b) {
    value += a * b;
    magnitude += std::abs(a * b);
  }
  void add(const Vec3<double>& a, const Vec3<double>& b) {
    add(a.x, b.x);
    add(a.y, b.y);
    add(a.z, b.z);
  }
  void add(const Vec3<double>& a, const Vec3<Dual<double>>& b) { add(a, Vec3<double>{b.x.dot, b.y.dot, b.z.dot}); }
};

/// ⟨bar, the dots of one link's constants⟩.
void add_link(Product& to, const LinkGradient<double>& bar, const LinkConstants<Dual<double>>& c,
              const Mat3<Dual<double>>& A) {
  to.add(bar.rotation, tangent_of(c.rotation));
  to.add(bar.alignment, tangent_of(A));
  to.add(bar.translation, c.translation);
  to.add(bar.mass, c.mass.dot), to.add(bar.lift, c.lift.dot);
  to.add(bar.com, c.com);
  const double* inertia_bar = &bar.inertia.xx;
  const Dual<double>* inertia = &c.inertia.xx;
  for (int k = 0; k < 6; ++k) to.add(inertia_bar[k], inertia[k].dot);
#define BACKDRIVE_ADD(at, name, ...) to.add(bar.efforts.at name, c.efforts.at name.dot);
  BACKDRIVE_EFFORT_PARAMETERS(BACKDRIVE_ADD)
#undef BACKDRIVE_ADD
}

struct AdjointCase {
  Model model;
  Parameters direction;
  std::vector<double> bar;  ///< [row][kWorlds]

  LinkGradient<double>& link_bar(std::vector<double>& column, int i) const {
    return reinterpret_cast<LinkGradient<double>*>(column.data())[i];
  }
  std::vector<double> column(int world) const {
    std::vector<double> numbers(static_cast<std::size_t>(bar_rows(model)));
    for (std::size_t r = 0; r < numbers.size(); ++r) numbers[r] = bar[r * kWorlds + world];
    return numbers;
  }
};

/// Directions that keep axes on the sphere, and leave the effort limits that are not there alone.
void make_direction(AdjointCase& c, test::Random& random) {
  c.direction = zero_parameters(c.model, kWorlds);
  for (const Field& field : fields()) {
    Parameter& d = field.of(c.direction);
    for (int w = 0; w < kWorlds; ++w) {
      for (int i = 0; i < d.items(); ++i) {
        for (int k = 0; k < d.components(); ++k) d.at(i, k, field.in(c.model).uniform() ? 0 : w) = random.symmetric(1);
      }
    }
    // What all worlds share moves in all of them alike.
    if (field.in(c.model).uniform()) d.spread(kWorlds);
  }
  for (int w = 0; w < kWorlds; ++w) {
    for (int j = 0; j < c.model.joints.axis.items(); ++j) {
      const Vec3<double> a = vector_of(c.model.joints.axis, j, w), d = vector_of(c.direction.joints.axis, j, w);
      const Vec3<double> across = d - a * dot(a, d);
      const double numbers[] = {across.x, across.y, across.z};
      for (int k = 0; k < 3; ++k) c.direction.joints.axis.at(j, k, w) = numbers[k];
      if (std::isinf(c.model.joints.drive.effort_limit(j, 0, w))) c.direction.joints.drive.effort_limit.at(j, 0, w) = 0;
    }
  }
}

/// What a turn of link i's internal axes about its joint's axis changes. No loss depends on it, and the adjoint leaves
/// it out.
double gauge_slope(const AdjointCase& c, std::vector<double>& column, int world, int i) {
  const ParametersView view = view_of(c.model);
  const ModelStructure structure = structure_of(c.model);
  const LinkReader<Dual<double>> link{structure, {view, nullptr, world}};
  const auto turned = [&](int j) {
    const Mat3<Dual<double>> A = link.alignment(j);
    const Dual<double> o(0), e(0, 1), one(1);
    return j == i ? A * Mat3<Dual<double>>{{one, e, o}, {-e, one, o}, {o, o, one}} : A;
  };
  Product slope;
  for (int j = 0; j < structure.link_count; ++j) {
    const int parent = structure.links[j].parent;
    if (j != i && parent != i) continue;
    const auto mass = body_mass(structure, link.read, structure.links[j].body);
    add_link(slope, c.link_bar(column, j), link.constants(j, turned(j), turned(parent), mass), turned(j));
  }
  return slope.value;
}

AdjointCase make_adjoint_case(std::uint64_t seed, Spread spread) {
  AdjointCase c{varied_tree(seed, spread), {}, {}};
  test::Random random(seed + 1000);
  make_direction(c, random);
  c.bar = random_rows<double>(seed + 2000, bar_rows(c.model), kWorlds);
  const int alignment_z = kLinkGradients<double> - 1;
  for (int w = 0; w < kWorlds; ++w) {
    std::vector<double> column = c.column(w);
    for (int i = 0; i < static_cast<int>(c.model.topology.links.size()); ++i) {
      if (c.model.topology.links[i].type == JointType::fixed) continue;
      const double slope = gauge_slope(c, column, w, i);
      c.bar[static_cast<std::size_t>(i * kLinkGradients<double> + alignment_z) * kWorlds + w] -= slope;
    }
  }
  return c;
}

/// ⟨w, J v⟩ by dual numbers.
Product forward_product(const AdjointCase& c) {
  using D = Dual<double>;
  const int links = static_cast<int>(c.model.topology.links.size());
  const ParametersView view = view_of(c.model), direction = view_of(c.direction);
  const int rows = constant_rows(c.model);
  std::vector<D> columns(static_cast<std::size_t>(rows) * kWorlds), numbers(static_cast<std::size_t>(rows));
  const featherstone::ConstantsOfWorld<D> fill{
      {structure_of(c.model), view, columns.data(), kWorlds, kWorlds, &direction}};
  Product product;
  for (int w = 0; w < kWorlds; ++w) {
    fill(w);
    for (int r = 0; r < rows; ++r) numbers[r] = columns[static_cast<std::size_t>(r) * kWorlds + w];
    const auto* constants = reinterpret_cast<const LinkConstants<D>*>(numbers.data());
    const auto* alignment = reinterpret_cast<const Mat3<D>*>(numbers.data() + links * kLinkConstants<D>);
    std::vector<double> column = c.column(w);
    for (int i = 0; i < links; ++i) add_link(product, c.link_bar(column, i), constants[i], alignment[i]);
    for (int k = 0; k < 3; ++k) product.add(column[column.size() - 3 + k], numbers[numbers.size() - 3 + k].dot);
  }
  return product;
}

/// ⟨Jᵀ w, v⟩ by the kernel: of the structure given, and with the parameters of world w + shift.
Product reverse_product(const AdjointCase& c, const ModelStructure& structure, int shift = 0) {
  Parameters gradient = zero_parameters(c.model, kWorlds);
  ParametersView view = view_of(c.model);
  for (const Field& field : fields()) field.of(view).first += shift * field.of(view).world_stride;
  const featherstone::ParameterGradientOfWorld<double> add{
      {structure, view, c.bar.data(), kWorlds, slots_of(gradient)}};
  for (int w = 0; w < kWorlds - shift; ++w) add(w);
  Product product;
  for (const Field& field : fields()) {
    const Parameter& g = field.in(gradient);
    for (int w = 0; w < kWorlds; ++w) {
      for (int i = 0; i < g.items(); ++i) {
        for (int k = 0; k < g.components(); ++k) product.add(g(i, k, w), field.in(c.direction)(i, k, w));
      }
    }
  }
  return product;
}

double adjoint_error(const AdjointCase& c, const ModelStructure& structure, int shift = 0) {
  const Product forward = forward_product(c), reverse = reverse_product(c, structure, shift);
  return std::abs(forward.value - reverse.value) / std::max(forward.magnitude, reverse.magnitude);
}

TEST(ParameterKernel, AdjointIsTheTransposeOfTheDerivative) {
  for (std::uint64_t seed = 0; seed < 36; ++seed) {
    for (const Spread spread : {Spread::none, Spread::some, Spread::all}) {
      const AdjointCase c = make_adjoint_case(seed, spread);
      EXPECT_LT(adjoint_error(c, structure_of(c.model)), 1e-14) << seed;
    }
  }
}

TEST(ParameterKernel, AWrongAdjointIsNoticed) {
  const AdjointCase c = make_adjoint_case(8, Spread::all);
  ModelStructure structure = structure_of(c.model);
  ASSERT_LT(adjoint_error(c, structure), 1e-14);
  constexpr double notable = 1e-4;
  EXPECT_GT(adjoint_error(c, structure, 1), notable) << "parameters of another world";
  PoolVector<Link> links = c.model.topology.links;
  structure.links = links.data();
  const auto branch = std::find_if(links.begin(), links.end(), [](const Link& l) { return !l.leaf; });
  branch->leaf = true;
  EXPECT_GT(adjoint_error(c, structure), notable) << "an axis without what its children's joints receive";
  branch->leaf = false;
  const auto child = std::find_if(links.begin(), links.end(), [](const Link& l) { return l.parent >= 0; });
  const int parent = child->parent;
  child->parent = -1;
  EXPECT_GT(adjoint_error(c, structure), notable) << "a joint's frame in the world's axes";
  child->parent = parent;
  structure.shape_count = 0;
  EXPECT_GT(adjoint_error(c, structure), notable) << "bodies without their shapes";
}

// ---- blocks of gradients --------------------------------------------------------------------------------------------

/// Worlds in any order, into one block, whose rows are summed: against each world's own gradient of everything.
template <class T>
void expect_block_sums(const Model& model, std::uint64_t seed) {
  const int rows = bar_rows(model), stride = row_stride<T>(kWorlds);
  const std::vector<T> bar = random_rows<T>(seed, rows, stride);
  Parameters each = zero_parameters(model, kWorlds), got;
  featherstone::ParameterGradientOfWorld<T> add{
      {structure_of(model), view_of(model), bar.data(), stride, slots_of(each)}};
  for (int w = 0; w < kWorlds; ++w) add(w);
  for (const Field& field : fields()) {
    field.of(got) = field.in(model).zeros(field.tangents, field.in(model).worlds());
  }
  WorldStatuses status(kWorlds);
  status.write_address()[2].stopped_step = 7;
  const GradientBlock layout(model, got, kWorlds);
  std::vector<double> block(layout.numbers()), sums;
  add.to.slots = layout.slots(block.data());
  for (int w = kWorlds - 1; w >= 0; --w) add(w);
  for (int r = 0; r < layout.rows(); ++r) {
    const double* row = block.data() + layout.first_row() + static_cast<std::size_t>(r) * layout.stride();
    sums.push_back(order_independent_sum(Summands<double>{row, kWorlds, 1, status.address()}));
  }
  layout.add_to(got, block.data(), sums.data());
  for (const Field& field : fields()) {
    const Parameter& g = field.in(got);
    for (int i = 0; i < g.items(); ++i) {
      for (int k = 0; k < g.components(); ++k) {
        std::array<double, kWorlds> numbers;
        for (int w = 0; w < kWorlds; ++w) numbers[w] = field.in(each)(i, k, w);
        const double sum = order_independent_sum(Summands<double>{numbers.data(), kWorlds, 1, status.address()});
        for (int w = 0; w < kWorlds; ++w) {
          ASSERT_EQ(g(i, k, w), g.uniform() ? sum : numbers[w]) << field.leaf << " " << i << " " << k << " " << w;
        }
      }
    }
  }
}

TEST(ParameterKernel, OneBlockHoldsTheGradientsOfAllWorlds) {
  for (std::uint64_t seed = 0; seed < 9; ++seed) {
    for (const Spread spread : {Spread::some, Spread::all}) {
      SCOPED_TRACE(seed);
      const Model model = varied_tree(seed, spread);
      expect_block_sums<double>(model, seed);
      expect_block_sums<float>(model, seed);
    }
  }
}

}  // namespace
}  // namespace backdrive
