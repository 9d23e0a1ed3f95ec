// Numbers with units.
#include "scenes/units.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace backdrive::scene {
namespace {

double value(std::string_view text) {
  Quantity quantity;
  const QuantityError error = parse_quantity(text, quantity);
  EXPECT_EQ(error.expected, "") << text;
  return quantity.value;
}

QuantityError refused(std::string_view text) {
  Quantity quantity;
  QuantityError error = parse_quantity(text, quantity);
  EXPECT_NE(error.expected, "") << text;
  return error;
}

bool fits(std::string_view text, Dimension dimension, JointType joint) {
  Quantity quantity;
  EXPECT_EQ(parse_quantity(text, quantity).expected, "") << text;
  return unit_fits(quantity, dimension, &joint);
}

TEST(Units, ReadsNumbersExactly) {
  EXPECT_EQ(value("0.1"), 0.1);
  EXPECT_EQ(value("-1.5e-3"), -1.5e-3);
  EXPECT_EQ(value("+2."), 2.0);
  EXPECT_EQ(value(".5"), 0.5);
  EXPECT_EQ(value("0"), 0.0);
  EXPECT_EQ(value("2.2250738585072014e-308"), 2.2250738585072014e-308);
  EXPECT_TRUE(std::signbit(value("-0")));
}

TEST(Units, ConvertsToSi) {
  EXPECT_EQ(value("5 ms"), 0.005);
  EXPECT_EQ(value("5ms"), 0.005);
  EXPECT_EQ(value("20 cm"), 0.2);
  EXPECT_EQ(value("250 g"), 0.25);
  EXPECT_EQ(value("180 deg"), std::numbers::pi);
  EXPECT_DOUBLE_EQ(value("60 rpm"), 2 * std::numbers::pi);
  EXPECT_EQ(value("2.5 N*m/rad"), 2.5);
  EXPECT_EQ(value("2.5 N·m·s/rad"), 2.5);
  EXPECT_DOUBLE_EQ(value("1 g/cm^3"), 1000.0);
  EXPECT_DOUBLE_EQ(value("1 kg·m²"), 1.0);
  EXPECT_EQ(value("9.81 m/s^2"), 9.81);
  EXPECT_EQ(value("3 mNm"), 0.003);
}

TEST(Units, RefusesWhatIsNoDecimalNumber) {
  for (const char* text : {"",
                           "x",
                           "-",
                           ".",
                           "1e",
                           "1 2",
                           "1,5",
                           "0x10",
                           "0b1",
                           "0o7",
                           "1_000",
                           "--1",
                           "1.2.3",
                           "1 m^4",
                           "1 m m",
                           "1 /s",
                           "1 m//s",
                           "1 N/m*s",
                           "1 m*m*m*m*m*m*m*m*m",
                           "nan",
                           ".inf",
                           "-.inf",
                           "1e999",
                           "1e308 km",
                           "010",
                           "-01.5",
                           "00"}) {
    refused(text);
  }
  EXPECT_NE(refused("010").expected.find("write 10"), std::string::npos);
  EXPECT_NE(refused("00").expected.find("write 0"), std::string::npos);
  EXPECT_EQ(refused("1 degr").hint, "deg");
}

TEST(Units, DependOnTheJoint) {
  using enum JointType;
  EXPECT_TRUE(fits("1 deg", Dimension::joint_position, revolute));
  EXPECT_FALSE(fits("1 deg", Dimension::joint_position, prismatic));
  EXPECT_TRUE(fits("1 cm", Dimension::joint_position, prismatic));
  EXPECT_TRUE(fits("1 N*m", Dimension::joint_effort, revolute));
  EXPECT_FALSE(fits("1 N", Dimension::joint_effort, revolute));
  EXPECT_TRUE(fits("1 N", Dimension::joint_effort, prismatic));
  EXPECT_TRUE(fits("1 N*m", Dimension::joint_stiffness, revolute));
  EXPECT_TRUE(fits("1 N*m/rad", Dimension::joint_stiffness, revolute));
  EXPECT_TRUE(fits("1 kg", Dimension::joint_inertia, prismatic));
  EXPECT_TRUE(fits("1", Dimension::joint_inertia, prismatic));
  EXPECT_FALSE(fits("1 rad", Dimension::none, revolute));
}

}  // namespace
}  // namespace backdrive::scene
