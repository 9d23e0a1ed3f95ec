// What a GPU thread runs for its world, called here on the host, against the pack kernels: the same source with another
// working set. Sums are taken in the same order but for the contraction to fused multiply-adds, which the compiler
// chooses for each: a few units in the last place of the largest number of a buffer, grown by what the motion
// amplifies.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "autodiff/tape/recorded.h"
#include "tests/integrators/device_table.h"
#include "tests/integrators/mutant_kernels.h"
#include "tests/support/gradient_case.h"
#include "tests/support/models.h"

namespace backdrive {
namespace {

/// Lanes of the widest pack and some: the last group of a pack kernel has padding.
constexpr int kWorlds = 19;

template <class T>
double tolerance(const std::string& name) {
  const bool gradient = name.find("_bar") != std::string::npos;
  return std::is_same_v<T, double> ? 1e-12 : (gradient ? 1e-4 : 1e-5);
}

struct Setting {
  int steps = 4;
  bool parameters = true;
  int parts = 1;  ///< launches that the rollout and its adjoint are cut into
  WindowArguments<double> window{};
  int stopping_world = -1;  ///< given a control that no number can hold
};

template <class T>
Buffer<T> random_rows(int rows, test::Random& random) {
  Buffer<T> buffer(rows, kWorlds);
  for (int r = 0; r < rows; ++r) {
    for (int w = 0; w < kWorlds; ++w) buffer.set(r, w, T(random.symmetric(1)));
  }
  return buffer;
}

/// All that the four kernels put out for one batch.
template <class T>
struct Outcome {
  Buffer<T> q, qd, q_end, qd_end, reported, reported_end, ways, ways_end, poses;
  Buffer<T> q0_bar, qd0_bar, reported0_bar, ways0_bar, control_bar, constants_bar, pose_q_bar, pose_qd_bar,
      pose_constants_bar;
  WorldStatuses status = WorldStatuses(kWorlds);
  std::vector<int> clipped = std::vector<int>(kWorlds);
};

template <class T>
class AllKernels {
 public:
  AllKernels(const Model& model, const Setting& setting, const KernelTable<T>& table)
      : model_(model),
        t_(model.topology),
        s_(setting),
        table_(table),
        groups_((kWorlds + table.lanes - 1) / table.lanes),
        kernel_model_(model, nullptr, kWorlds, default_memory()),
        batch_(test::random_batch<T>(model, setting.steps, test::first_worlds(kWorlds), 21)),
        scratch_(default_memory().allocate(table.scratch_bytes(launch(0, setting.steps)))) {
    if (s_.stopping_world >= 0) {
      batch_.control.u.set(t_.nu * (s_.steps / 2), s_.stopping_world, std::numeric_limits<T>::infinity());
    }
  }

  Outcome<T> operator()() {
    rollout();
    rollout_adjoint();
    poses();
    return std::move(out_);
  }

 private:
  Launch<T> launch(int first, int steps) const { return launch_of(kernel_model_, 0.01, steps, batch_.state.q, first); }
  int begin_of(int part) const { return s_.steps * part / s_.parts; }
  bool touches() const { return !t_.contact_pairs.empty(); }
  int parameter_rows() const { return gradient_rows_of<T>(model_, true); }

  void rollout() {
    const Control<T>& control = batch_.control;
    out_.q = Buffer<T>((s_.steps + 1) * t_.nq, kWorlds);
    out_.qd = Buffer<T>((s_.steps + 1) * t_.nv, kWorlds);
    out_.reported = Buffer<T>((s_.steps + 1) * t_.nv, kWorlds);
    out_.reported_end = Buffer<T>(t_.nv, kWorlds);
    out_.ways = Buffer<T>((s_.steps + 1) * t_.way_count, kWorlds);
    out_.ways_end = Buffer<T>(t_.way_count, kWorlds);
    touched_ = Buffer<T>(s_.steps, kWorlds);
    out_.q_end = batch_.state.q.clone(default_memory());
    out_.qd_end = batch_.state.qd.clone(default_memory());
    for (int part = 0; part < s_.parts; ++part) {
      const int first = begin_of(part), steps = begin_of(part + 1) - first;
      T *q = out_.q_end.write(), *qd = out_.qd_end.write();
      RolloutArguments<T> a{
          launch(first, steps),         q, qd, control.u.row(first * t_.nu), out_.q.write(first * t_.nq),
          out_.qd.write(first * t_.nv), q, qd, out_.status.write_address()};
      if (touches()) {
        a.reported = out_.reported.write(first * t_.nv), a.reported_end = out_.reported_end.write();
        a.touched = touched_.write(first);
        if (part > 0) a.reported0 = a.reported_end;
      }
      if (t_.way_count > 0) {
        a.ways = out_.ways.write(first * t_.way_count), a.ways_end = out_.ways_end.write();
        if (part > 0) a.ways0 = a.ways_end;
      }
      table_.rollout(a, 0, groups_, scratch_.get());
    }
  }

  void rollout_adjoint() {
    test::Random random(5);
    const Buffer<T> q_bar = random_rows<T>((s_.steps + 1) * t_.nq, random);
    const Buffer<T> qd_bar = random_rows<T>((s_.steps + 1) * t_.nv, random);
    const Buffer<T> q_end_bar = random_rows<T>(t_.nq, random), qd_end_bar = random_rows<T>(t_.nv, random);
    const Buffer<T> reported_bar = random_rows<T>((s_.steps + 1) * t_.nv, random);
    const Buffer<T> reported_end_bar = random_rows<T>(t_.nv, random);
    out_.q0_bar = Buffer<T>(t_.nq, kWorlds);
    out_.qd0_bar = Buffer<T>(t_.nv, kWorlds);
    out_.reported0_bar = Buffer<T>(t_.nv, kWorlds);
    const Buffer<T> ways_end_bar = random_rows<T>(t_.way_count, random);
    out_.ways0_bar = Buffer<T>(t_.way_count, kWorlds);
    out_.control_bar = Buffer<T>(s_.steps * t_.nu, kWorlds);
    out_.constants_bar = Buffer<T>(parameter_rows(), kWorlds);
    for (int part = s_.parts; part-- > 0;) {
      const int first = begin_of(part), steps = begin_of(part + 1) - first;
      RolloutAdjointArguments<T> a{launch(first, steps),
                                   out_.q.row(first * t_.nq),
                                   out_.qd.row(first * t_.nv),
                                   batch_.control.u.row(first * t_.nu),
                                   out_.status.address(),
                                   q_bar.row(first * t_.nq),
                                   qd_bar.row(first * t_.nv),
                                   q_end_bar.row(0),
                                   qd_end_bar.row(0),
                                   out_.q0_bar.write(),
                                   out_.qd0_bar.write(),
                                   out_.control_bar.write(first * t_.nu),
                                   s_.parameters ? out_.constants_bar.write() : nullptr,
                                   part + 1 < s_.parts,
                                   {s_.window.steps, s_.window.cut, T(s_.window.clip), out_.clipped.data()}};
      if (touches()) {
        a.reported = out_.reported.row(first * t_.nv), a.reported0_bar = out_.reported0_bar.write();
        a.touched = touched_.row(first);
        a.reported_bar = reported_bar.row(first * t_.nv), a.reported_end_bar = reported_end_bar.row(0);
      }
      if (t_.way_count > 0) {
        a.ways = out_.ways.row(first * t_.way_count), a.ways0_bar = out_.ways0_bar.write();
        a.ways_end_bar = ways_end_bar.row(0);
      }
      table_.rollout_adjoint(a, 0, groups_, scratch_.get());
    }
  }

  void poses() {
    test::Random random(6);
    const int n = static_cast<int>(t_.links.size());
    const std::vector<int> links{n / 2, 0, n - 1};
    const int states = s_.steps + 1, count = static_cast<int>(links.size());
    const Buffer<T> pose_bar = random_rows<T>(states * count * kMotionRows, random);
    out_.poses = Buffer<T>(states * count * kMotionRows, kWorlds);
    out_.pose_q_bar = Buffer<T>(states * t_.nq, kWorlds);
    out_.pose_qd_bar = Buffer<T>(states * t_.nv, kWorlds);
    out_.pose_constants_bar = Buffer<T>(parameter_rows(), kWorlds);
    T* const constants_bar = s_.parameters ? out_.pose_constants_bar.write() : nullptr;
    PoseArguments<T> a{launch(0, states), out_.q.row(0),           links.data(), count, out_.poses.write(),
                       pose_bar.row(0),   out_.pose_q_bar.write(), constants_bar};
    a.qd = out_.qd.row(0), a.qd_bar = out_.pose_qd_bar.write();
    table_.poses(a, 0, groups_, scratch_.get());
    table_.poses_adjoint(a, 0, groups_, scratch_.get());
    if (!s_.parameters) return;
    a.resume = true;  // once more, on top of what the first left
    table_.poses_adjoint(a, 0, groups_, scratch_.get());
  }

  const Model& model_;
  const Topology& t_;
  const Setting& s_;
  const KernelTable<T>& table_;
  int groups_;
  KernelModel<T> kernel_model_;
  test::Batch<T> batch_;
  std::shared_ptr<std::byte> scratch_;
  Outcome<T> out_;
  Buffer<T> touched_;
};

/// Largest difference over the largest number, of all rows of all worlds; infinite where only one is finite.
template <class T>
double relative_error(const Buffer<T>& a, const Buffer<T>& b) {
  double size = 0, difference = 0;
  for (int r = 0; r < a.rows(); ++r) {
    for (int w = 0; w < a.worlds(); ++w) {
      const double x = a(r, w), y = b(r, w);
      if (std::isfinite(x) != std::isfinite(y)) return HUGE_VAL;
      if (!std::isfinite(x)) continue;
      size = std::max(size, std::abs(x));
      difference = std::max(difference, std::abs(x - y));
    }
  }
  return size > 0 ? difference / size : difference;
}

template <class T>
double size_of(const Buffer<T>& buffer) {
  double size = 0;
  for (int r = 0; r < buffer.rows(); ++r) {
    for (int w = 0; w < buffer.worlds(); ++w) size = std::max(size, std::abs(double(buffer(r, w))));
  }
  return size;
}

struct NamedError {
  const char* name;
  double error;
};

template <class T>
std::vector<NamedError> errors_between(const Outcome<T>& a, const Outcome<T>& b) {
  std::vector<NamedError> errors;
  const auto compare = [&](const char* name, Buffer<T> Outcome<T>::*member) {
    errors.push_back({name, relative_error(a.*member, b.*member)});
  };
  compare("q", &Outcome<T>::q);
  compare("qd", &Outcome<T>::qd);
  compare("q_end", &Outcome<T>::q_end);
  compare("qd_end", &Outcome<T>::qd_end);
  compare("reported", &Outcome<T>::reported);
  compare("reported_end", &Outcome<T>::reported_end);
  compare("ways", &Outcome<T>::ways);
  compare("ways_end", &Outcome<T>::ways_end);
  compare("poses", &Outcome<T>::poses);
  compare("q0_bar", &Outcome<T>::q0_bar);
  compare("qd0_bar", &Outcome<T>::qd0_bar);
  compare("reported0_bar", &Outcome<T>::reported0_bar);
  compare("ways0_bar", &Outcome<T>::ways0_bar);
  compare("control_bar", &Outcome<T>::control_bar);
  compare("constants_bar", &Outcome<T>::constants_bar);
  compare("pose_q_bar", &Outcome<T>::pose_q_bar);
  compare("pose_qd_bar", &Outcome<T>::pose_qd_bar);
  compare("pose_constants_bar", &Outcome<T>::pose_constants_bar);
  return errors;
}

Model tree(int links, bool branched = true, bool rotations = false, bool contact = false, int couplings = 0) {
  test::TreeOptions options;
  options.rotations = rotations;
  options.contact = contact;
  options.couplings = couplings;
  options.links = links;
  options.branched = branched;
  options.forces = options.shapes = true;
  Model model = test::random_tree(31 + static_cast<std::uint64_t>(links), options);
  test::require_all(model);
  return model;
}

/// Masses, gravity and placements of their own in every world.
Model per_world(Model model) {
  for (Parameter* p : {&model.bodies.mass, &model.joints.damping, &model.joints.frame.position, &model.gravity}) {
    p->spread(kWorlds);
    for (int w = 0; w < kWorlds; ++w) {
      for (int i = 0; i < p->items(); ++i) p->at(i, 0, w) += 0.01 * w;
    }
  }
  return model;
}

template <class T>
class DeviceKernels : public testing::Test {
 protected:
  /// Expects both to agree and returns what the device's put out.
  Outcome<T> expect_agreement(const Model& model, const Setting& setting = {}, double looser = 1) {
    static const KernelTable<T> table = featherstone::make_device_table<T>();
    const Outcome<T> packs = AllKernels<T>(model, setting, kernels<T>())();
    Outcome<T> device = AllKernels<T>(model, setting, table)();
    for (const NamedError& e : errors_between(packs, device)) {
      EXPECT_LE(e.error, looser * tolerance<T>(e.name)) << e.name << " of " << model.topology.links.size() << " links";
    }
    for (int w = 0; w < kWorlds; ++w) {
      EXPECT_EQ(packs.status[w].stopped_step, device.status[w].stopped_step) << "world " << w;
      EXPECT_EQ(packs.status[w].joint, device.status[w].joint) << "world " << w;
    }
    EXPECT_EQ(packs.clipped, device.clipped);
    return device;
  }
  static void expect_gradients(const Outcome<T>& o) {
    for (const Buffer<T>* b : {&o.q0_bar, &o.qd0_bar, &o.control_bar, &o.constants_bar, &o.pose_q_bar}) {
      EXPECT_GT(size_of(*b), 1e-3);
    }
  }
};

using Numbers = testing::Types<float, double>;
struct NumberNames {
  template <class T>
  static std::string GetName(int) {
    return std::is_same_v<T, float> ? "float32" : "float64";
  }
};
TYPED_TEST_SUITE(DeviceKernels, Numbers, NumberNames);

TYPED_TEST(DeviceKernels, AgreeOnTreesOfEveryBucket) {
  for (const int links : {1, 3, 8, 9, 16, 30, 64, 80}) {
    const Model model = tree(links);
    int bucket = -1;
    featherstone::visit_bucket(view_of(model.topology), [&](int n) { bucket = n; });
    EXPECT_TRUE(bucket >= links || (bucket == featherstone::kAnyLinks && links >= 64)) << links;
    this->expect_gradients(this->expect_agreement(model));
  }
}

TYPED_TEST(DeviceKernels, AgreeOnChains) {
  for (const int links : {7, 14}) this->expect_gradients(this->expect_agreement(tree(links, false)));
  Model arm = test::chain(7);
  test::require_all(arm);
  this->expect_agreement(arm);
}

TYPED_TEST(DeviceKernels, AgreeOnBallsAndFreeRoots) {
  for (const int links : {1, 5, 24}) this->expect_gradients(this->expect_agreement(tree(links, true, true)));
}

TYPED_TEST(DeviceKernels, AgreeOnContact) {
  // Of shapes that lie in one another float32 solves for impulses to 1e-3 (SolveLimits::trusted), by as many steps as
  // rounding says, which is another with each compiler.
  const double looser = std::is_same_v<TypeParam, float> ? 10 : 1;
  for (const int links : {1, 7, 20}) {
    this->expect_gradients(this->expect_agreement(tree(links, true, true, true), {}, looser));
  }
  Setting setting;
  setting.parameters = false;
  setting.parts = 3;
  this->expect_agreement(tree(7, true, true, true), setting, looser);
}

TYPED_TEST(DeviceKernels, AgreeOnCouplings) {
  // They begin away from where they are held, at 10 rad/s and more after a step, and are as stiff as the links.
  const double looser = 10;
  for (const int links : {3, 8, 30}) {
    const Model model = tree(links, true, false, false, 3);
    featherstone::visit_bucket(view_of(model.topology), [&](int n) { EXPECT_EQ(n, featherstone::kAnyLinks); });
    this->expect_gradients(this->expect_agreement(model, {}, looser));
  }
  // As in AgreeOnContact, of links that are as far from where they are held.
  const double touching = std::is_same_v<TypeParam, float> ? 100 : looser;
  this->expect_gradients(this->expect_agreement(tree(9, true, true, true, 3), {}, touching));
  Setting setting;
  setting.parameters = false;
  setting.parts = 3;
  this->expect_agreement(tree(9, true, true, true, 3), setting, touching);
  this->expect_agreement(per_world(tree(8, true, false, false, 3)), {}, looser);
}

TYPED_TEST(DeviceKernels, AgreeWithParametersPerWorld) {
  for (const int links : {8, 20, 70}) this->expect_gradients(this->expect_agreement(per_world(tree(links))));
}

TYPED_TEST(DeviceKernels, AgreeWithoutGradientsOfParameters) {
  Setting setting;
  setting.parameters = false;
  for (const int links : {8, 20, 70}) {
    const Outcome<TypeParam> o = this->expect_agreement(tree(links), setting);
    EXPECT_GT(size_of(o.control_bar), 1e-3);
    EXPECT_EQ(size_of(o.constants_bar), 0);
  }
}

TYPED_TEST(DeviceKernels, AgreeOnWindows) {
  for (const bool cut : {false, true}) {
    for (const double clip : {0.0, 2.0}) {
      for (const int parts : {1, 3}) {
        Setting setting;
        setting.steps = 6;
        setting.parts = parts;
        setting.window = {2, cut, clip, nullptr};
        const Outcome<TypeParam> o = this->expect_agreement(tree(8), setting);
        int clipped = 0;
        for (const int c : o.clipped) clipped += c;
        EXPECT_EQ(clipped > 0, clip > 0);
      }
    }
  }
}

TYPED_TEST(DeviceKernels, AgreeWhenResumed) {
  for (const int links : {8, 70}) {
    Setting setting;
    setting.parts = 3;
    this->expect_gradients(this->expect_agreement(tree(links), setting));
  }
}

TYPED_TEST(DeviceKernels, StopTheSameWorlds) {
  for (const int parts : {1, 2}) {
    Setting setting;
    setting.steps = 6;
    setting.parts = parts;
    setting.stopping_world = 17;
    const Outcome<TypeParam> o = this->expect_agreement(tree(12), setting);
    EXPECT_EQ(o.status[17].stopped_step, 3);
    EXPECT_EQ(o.status[16].stopped_step, -1);
    EXPECT_TRUE(std::isnan(o.q0_bar(0, 17)));
    EXPECT_TRUE(std::isnan(o.constants_bar(0, 17)));
    EXPECT_FALSE(std::isnan(o.q0_bar(0, 16)));
    EXPECT_TRUE(std::isfinite(o.q_end(0, 17)));
  }
}

/// The same comparison notices a fault that is planted in the functors alone.
TEST(DeviceKernelsMutants, AreCaught) {
  const Model model = tree(8);
  const Setting setting;
  const Outcome<double> packs = AllKernels<double>(model, setting, kernels<double>())();
  const auto worst = [&](Fault fault) {
    const test::Planted planted(fault);
    const Outcome<double> device = AllKernels<double>(model, setting, test::mutant_device_table())();
    double error = 0;
    for (const NamedError& e : errors_between(packs, device)) error = std::max(error, e.error);
    return error;
  };
  EXPECT_LE(worst(Fault::none), 1e-12);
  for (const Fault fault : {Fault::force_turn, Fault::velocity_carry, Fault::com_in_world_axes, Fault::pose_lever,
                            Fault::drift_transport}) {
    EXPECT_GT(worst(fault), 1e-4) << test::kFaults[static_cast<int>(fault) - 1].name;
  }
}

/// And the adjoint of a functor is that of its rollout, by dual numbers through the pack kernels' source.
TEST(DeviceKernelsGradient, IsTheTransposeOfTheDerivative) {
  static const KernelTable<double> table = featherstone::make_device_table<double>();
  for (const Model& model : {tree(7), tree(20), tree(8, true, true, true), tree(9, true, true, true, 3)}) {
    const test::GradientCase c = test::make_case(model, 8, 0.01, 2, 3);
    for (const test::BlockError& e : test::compare_blocks(c, test::gradient_by_kernels(c, table), 11)) {
      EXPECT_LT(e.error, 1e-12) << e.block;
    }
  }
}

}  // namespace
}  // namespace backdrive
