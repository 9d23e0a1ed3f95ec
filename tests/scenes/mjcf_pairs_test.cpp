// <pair> of MJCF files: two geoms that touch whatever their bits say, by friction, stiffness and margin of the pair.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scenes/scene.h"
#include "tests/scenes/mjcf_folder.h"

namespace backdrive {
namespace {

class MjcfPairs : public MjcfFolder {
 protected:
  /// Two balls "a" and "b" of 2 kg over the floor "f", and what is said of pairs.
  Scene balls(const std::string& geoms, const std::string& pairs, const std::string& rest = "") const {
    const auto ball = [&](const std::string& name) {
      return "<body><freejoint/><geom name=\"" + name + "\" size=\"0.1\" mass=\"2\" " + geoms + "/></body>";
    };
    return model(rest + "<worldbody><geom name=\"f\" type=\"plane\" size=\"1 1 1\" " + geoms + "/>" + ball("a") +
                 ball("b") + "</worldbody><contact>" + pairs + "</contact>");
  }
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  static Pairs touching(const Model& model) {
    Pairs names;
    for (const ContactPair& pair : model.topology.contact_pairs) {
      names.emplace_back(model.shape_names[model.topology.contact_shapes[pair.a].shape],
                         model.shape_names[model.topology.contact_shapes[pair.b].shape]);
    }
    return names;
  }
};

const std::string kNoBits = "contype=\"0\" conaffinity=\"0\"";

TEST_F(MjcfPairs, HaveTheMaterialOfGeomsThatSayTheSame) {
  const std::string soft = "solref=\"0.05 0.8\" solimp=\"0.7 0.9 0.004\"";
  const std::string friction = "friction=\"0.5 0.02 0.003\" condim=\"6\"";
  const Model said = balls(soft + " " + friction, "").problem.model;
  const Model paired =
      balls(kNoBits, "<pair geom1=\"f\" geom2=\"a\" friction=\"0.5 0.5 0.02 0.003 0.003\" condim=\"6\" " + soft + "/>")
          .problem.model;
  EXPECT_EQ(touching(paired), (Pairs{{"a", "f"}}));
  for (const char* const name : {"f", "a"}) {
    const int one = said.find_shape(name), other = paired.find_shape(name);
    const auto same = [&](const auto& parameter_of) {
      EXPECT_EQ(parameter_of(said)(one), parameter_of(paired)(other)) << name;
    };
    same([](const Model& m) { return m.shapes.material.stiffness; });
    same([](const Model& m) { return m.shapes.material.width; });
    same([](const Model& m) { return m.shapes.material.friction; });
    same([](const Model& m) { return m.shapes.material.torsional_friction; });
    same([](const Model& m) { return m.shapes.material.rolling_friction; });
  }
  EXPECT_EQ(paired.shapes.material.friction(paired.find_shape("a")), 0.5);
}

/// Numbers that a pair does not give are those of its class or MuJoCo's own, not those of its geoms.
TEST_F(MjcfPairs, TakeNothingFromTheirGeoms) {
  const std::string geoms = kNoBits + " friction=\"0.2\" condim=\"1\" solref=\"0.3 1\" margin=\"0.05\"";
  const auto friction = [&](const std::string& pair, const std::string& rest = "") {
    const Model m = balls(geoms, "<pair geom1=\"f\" geom2=\"a\" " + pair + "/>", rest).problem.model;
    EXPECT_EQ(m.shapes.geometry.margin(m.find_shape("a")), 0);
    return m.shapes.material.friction(m.find_shape("a"));
  };
  EXPECT_EQ(friction(""), 1);
  EXPECT_EQ(friction("condim=\"1\""), 0);
  EXPECT_EQ(friction("", "<default><pair friction=\"0.75 0.75\"/></default>"), 0.75);
  EXPECT_EQ(
      friction("class=\"ice\"", "<default><default class=\"ice\"><pair friction=\"0.25 0.25\"/></default></default>"),
      0.25);
}

TEST_F(MjcfPairs, GeomsThatTouchOthersTooHaveCopies) {
  const std::string pair = "<pair geom1=\"f\" geom2=\"a\" friction=\"0.5 0.5\" margin=\"0.01\" gap=\"0.01\"/>";
  const Model m = balls("friction=\"0.75\"", pair).problem.model;
  EXPECT_EQ(touching(m), (Pairs{{"a", "b"}, {"a_pair", "f_pair"}, {"b", "f"}}));
  EXPECT_EQ(m.shapes.material.friction(m.find_shape("a")), 0.75);
  for (const char* const name : {"a_pair", "f_pair"}) EXPECT_EQ(m.shapes.material.friction(m.find_shape(name)), 0.5);
  EXPECT_EQ(m.shape_bodies[m.find_shape("a_pair")], m.shape_bodies[m.find_shape("a")]);
  // Margins of two shapes add up.
  EXPECT_EQ(m.shapes.geometry.margin(m.find_shape("a_pair")), 0.01);
  EXPECT_EQ(m.shapes.geometry.margin(m.find_shape("f_pair")), 0);
  // Those that touch by pairs alone need none, nor do others for a pair that says the same.
  const std::string other = "<pair geom1=\"f\" geom2=\"b\" friction=\"0.5 0.5\" margin=\"0.01\"/>";
  EXPECT_EQ(touching(balls(kNoBits, pair + other).problem.model), (Pairs{{"a", "f"}, {"b", "f"}}));
  const std::string third = "<pair geom1=\"f\" geom2=\"b\" friction=\"0.25 0.25\"/>";
  EXPECT_EQ(touching(balls(kNoBits, pair + third).problem.model), (Pairs{{"a", "f"}, {"b", "f_pair"}}));
}

TEST_F(MjcfPairs, TellWhatTheyDoNotHave) {
  const std::string ends = "geom1=\"f\" geom2=\"a\" ";
  const auto told = [&](const std::string& attributes) {
    return notes(balls(kNoBits, "<pair " + ends + attributes + "/>"));
  };
  EXPECT_EQ(told("friction=\"0.5 0.5\" condim=\"4\" margin=\"0.01\" gap=\"0.02\""), "");
  EXPECT_TRUE(contains(told("friction=\"0.5\""), "! ")) << "MuJoCo's second number is 1";
  EXPECT_TRUE(contains(told("solreffriction=\"0.1 1\""), "<pair solreffriction=...>"));
  const std::string walls =
      "<worldbody><geom name=\"a\" type=\"plane\" size=\"1 1 1\"/><geom name=\"b\" type=\"plane\" size=\"1 1 1\"/>"
      "<body><freejoint/><geom size=\"1\"/></body></worldbody><contact><pair geom1=\"a\" geom2=\"b\"/></contact>";
  EXPECT_TRUE(contains(notes(model(walls)), "<pair> of plane and plane: they do not touch"));
  EXPECT_TRUE(
      touching(balls(kNoBits, "<pair " + ends + "/>", "<option><flag contact=\"disable\"/></option>").problem.model)
          .empty());
  EXPECT_TRUE(
      contains(refused("<worldbody><body><freejoint/><geom name=\"ball\" size=\"1\"/></body></worldbody><contact>"
                       "<pair geom1=\"bell\" geom2=\"ball\"/></contact>"),
               "the name of a geom; did you mean 'ball'?"));
}

}  // namespace
}  // namespace backdrive
