// simulation/substeps: the motion of a shorter time step, controls and tables of the longer one.
#include <cmath>
#include <map>

#include "tests/apps/simctl_process.h"

namespace backdrive::test {
namespace {

constexpr int kSubsteps = 5;

/// A ball of 10 g that an arm pushes along and drops; its floor is as stiff as substeps of 1 ms bear.
const std::string kModel = R"(
model:
  bodies:
    arm: {mass: 1, com: [0, 0, -0.3], inertia: [0.05, 0.05, 0.01]}
    ball: {shapes: [{name: ball, density: 2000, geometry: {type: sphere, scale: [1 cm]}}]}
  joints:
    hinge: {type: revolute, child: arm, axis: [0, 1, 0], friction: 0.1, drive: {stiffness: 20, damping: 1}}
    flight: {type: free, child: ball}
  shapes: {floor: {body: world, geometry: {type: plane}, material: {stiffness: 3000}}}
initial_state: {flight: {position: [1, 0, 0.02], velocity: [0.3, 0, 0]}}
)";
const std::string kLoss = R"(
  loss:
    terminal: [{joint: hinge, position: 0.5}, {body: ball, position: [1.1, 0, none]}]
    running: [{joint: hinge, effort: 0, weight: 0.01, from: 0.01}]
)";

class SimctlSubstepsTest : public SimctlTest {
 protected:
  using Table = std::map<std::string, std::vector<double>>;

  static Table table(const std::string& csv) {
    const Rows rows = parse_csv(csv);
    Table table;
    for (std::size_t c = 0; c < rows[0].size(); ++c) {
      for (std::size_t r = 1; r < rows.size(); ++r) {
        const std::string& cell = rows[r][c];
        // Names of shapes are no numbers.
        const bool is_number = !cell.empty() && cell.find_first_not_of("+-.0123456789einfa") == std::string::npos;
        table[rows[0][c]].push_back(is_number ? number(cell) : NAN);
      }
    }
    return table;
  }

  /// Twelve steps of 5 ms with a control for each, in substeps; and the same written out in 60 steps of 1 ms.
  std::string coarse() const {
    return write("coarse.yaml", "simulation: {time_step: 5 ms, steps: 12, substeps: 5}\ncontrols: {hinge: {effort: [" +
                                    controls(1) + "]}}\n" + kModel +
                                    "optimize:\n  variables: [{control: hinge, knots: 12}, {initial_state: flight, "
                                    "quantity: velocity}, {parameter: shapes/ball/material/friction}]" +
                                    kLoss);
  }
  std::string fine() const {
    return write("fine.yaml", "simulation: {time_step: 1 ms, steps: 60}\ncontrols: {hinge: {effort: [" +
                                  controls(kSubsteps) + "]}}\n" + kModel +
                                  "optimize:\n  variables: [{control: hinge, knots: 12, interpolation: hold}, "
                                  "{initial_state: flight, quantity: velocity}, {parameter: "
                                  "shapes/ball/material/friction}]" +
                                  kLoss);
  }

 private:
  static std::string controls(int times) {
    std::string list;
    for (int k = 0; k < 12; ++k) {
      for (int n = 0; n < times; ++n) list += (list.empty() ? "" : ", ") + std::to_string(k % 3 - 0.5 * (k % 2));
    }
    return list;
  }
};

TEST_F(SimctlSubstepsTest, TheMotionIsThatOfTheShorterStep) {
  ASSERT_EQ(simctl({"run", coarse(), "--output", "coarse", "--quiet"}).exit, 0);
  ASSERT_EQ(simctl({"run", fine(), "--output", "fine", "--quiet"}).exit, 0);
  const Table coarse = table(read(path("coarse/trajectory.csv"))), fine = table(read(path("fine/trajectory.csv")));
  ASSERT_EQ(coarse.at("time").size(), 13u);
  ASSERT_EQ(fine.at("time").size(), 61u);
  for (const auto& [name, numbers] : fine) {
    for (std::size_t row = 0; row < 13; ++row) {
      const double given = coarse.at(name)[row];
      double expected = numbers[row * kSubsteps];
      if (name == "hinge/effort") {  // the mean over the step
        if (row == 12) continue;
        expected = 0;
        for (int k = 0; k < kSubsteps; ++k) expected += numbers[row * kSubsteps + k] / kSubsteps;
        EXPECT_NEAR(given, expected, 1e-12) << row;
      } else if (!std::isnan(expected)) {
        EXPECT_NEAR(given, expected, 4e-16 * std::abs(expected)) << name << " " << row;  // 12 · 5 ms or 60 · 1 ms
      }
    }
  }
}

TEST_F(SimctlSubstepsTest, ForcesAreMeansOfWhatActed) {
  ASSERT_EQ(simctl({"run", coarse(), "--output", "coarse", "--quiet"}).exit, 0);
  ASSERT_EQ(simctl({"run", fine(), "--output", "fine", "--quiet"}).exit, 0);
  const Table coarse = table(read(path("coarse/contacts.csv"))), fine = table(read(path("fine/contacts.csv")));
  // One pair touches: a row for each step in which it does.
  for (std::size_t row = 1; row < coarse.at("step").size(); ++row) {
    EXPECT_LT(coarse.at("step")[row - 1], coarse.at("step")[row]);
  }
  ASSERT_GT(coarse.at("step").size(), 2u);
  ASSERT_GT(fine.at("step").size(), coarse.at("step").size());
  for (const char* const force : {"force/x", "force/z"}) {
    double few = 0, many = 0;
    for (const double x : coarse.at(force)) few += x * 5e-3;
    for (const double x : fine.at(force)) many += x * 1e-3;
    EXPECT_NEAR(few, many, 1e-13) << force;
    EXPECT_GT(std::abs(many), 1e-4);
  }
  double deepest = 0, expected = 0;
  for (const double x : coarse.at("depth")) deepest = std::max(deepest, x);
  for (const double x : fine.at("depth")) expected = std::max(expected, x);
  EXPECT_EQ(deepest, expected);
}

// Sums of control cotangents are made in another order: 1e-12 of the largest.
TEST_F(SimctlSubstepsTest, GradientsAreThoseOfTheShorterStep) {
  const auto coarse = simctl({"gradient", this->coarse(), "--json", "--quiet"}).json();
  const auto fine = simctl({"gradient", this->fine(), "--json", "--quiet"}).json();
  EXPECT_EQ(coarse.at("loss"), fine.at("loss"));
  const auto &few = coarse.at("rows"), &many = fine.at("rows");
  ASSERT_EQ(few.size(), many.size());
  std::size_t others = 0;
  for (std::size_t k = 0; k < few.size(); ++k) {
    EXPECT_NEAR(few[k].at("gradient"), many[k].at("gradient"), 1e-12) << few[k].dump();
    others += few[k].at("gradient") != 0;
  }
  EXPECT_GE(others, 14u);
  const Outcome check = simctl({"gradcheck", "coarse.yaml", "--quiet"});
  EXPECT_EQ(check.exit, 0) << check.out << check.err;
}

// What is found is written for each step, and read back to the same loss.
TEST_F(SimctlSubstepsTest, ResultsRunAgain) {
  const Outcome found = simctl({"optimize", coarse(), "--output", "found", "--json", "--quiet", "--set",
                                "optimize/iterations=5", "--set", "optimize/variables/0={control: hinge}"});
  ASSERT_EQ(found.exit, 0) << found.err;
  const Outcome again = simctl({"run", "found/result.yaml", "--json", "--quiet"});
  ASSERT_EQ(again.exit, 0) << again.err;
  EXPECT_EQ(again.json().at("loss"), found.json().at("loss"));
  EXPECT_EQ(again.json().at("steps"), 12);
}

TEST_F(SimctlSubstepsTest, ItsNumberIsChecked) {
  for (const char* const bad : {"0", "-2", "1.5", "10001", "many"}) {
    const Outcome o = simctl({"validate", coarse(), "--set", std::string("simulation/substeps=") + bad});
    EXPECT_EQ(o.exit, 3) << bad;
    EXPECT_NE(o.err.find("simulation/substeps"), std::string::npos) << o.err;
  }
  const Outcome o =
      simctl({"validate", coarse(), "--set", "simulation/steps=1000000", "--set", "simulation/substeps=11"});
  EXPECT_EQ(o.exit, 3);
  EXPECT_NE(o.err.find("at most 10000000 substeps; 1000000 steps have 11000000"), std::string::npos) << o.err;
  const Outcome knots = simctl({"validate", coarse(), "--set", "optimize/variables/0/knots=13"});
  EXPECT_EQ(knots.exit, 3);
  EXPECT_NE(knots.err.find("at most as many knots as steps, which are 12"), std::string::npos) << knots.err;
}

}  // namespace
}  // namespace backdrive::test
