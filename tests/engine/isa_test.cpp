#include "engine/isa.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "engine/error.h"

namespace backdrive {
namespace {

/// Sets BACKDRIVE_ISA for a scope.
class Environment {
 public:
  explicit Environment(const char* value) {
    if (const char* old = std::getenv("BACKDRIVE_ISA")) old_ = old;
    value ? setenv("BACKDRIVE_ISA", value, 1) : unsetenv("BACKDRIVE_ISA");
  }
  ~Environment() { old_ ? setenv("BACKDRIVE_ISA", old_->c_str(), 1) : unsetenv("BACKDRIVE_ISA"); }

 private:
  std::optional<std::string> old_;
};

TEST(Isa, LevelsAreNested) {
  EXPECT_TRUE(supports(Isa::v2));
  if (supports(Isa::v4)) {
    EXPECT_TRUE(supports(Isa::v3));
  }
  const Environment none(nullptr);
  EXPECT_TRUE(supports(best_isa()));
}

TEST(Isa, EnvironmentChooses) {
  for (Isa isa : {Isa::v2, Isa::v3, Isa::v4}) {
    const Environment asked(to_string(isa));
    if (supports(isa)) {
      EXPECT_EQ(best_isa(), isa);
    } else {
      EXPECT_THROW(best_isa(), Error);
    }
  }
  const Environment as_results_say_it(("x86-64-" + std::string(to_string(Isa::v2))).c_str());
  EXPECT_EQ(best_isa(), Isa::v2);
  const Environment empty("");
  EXPECT_NO_THROW(best_isa());
}

// In a process of its own, since a choice stays.
TEST(IsaDeathTest, ACallChooses) {
  const auto choose = [] {
    const Environment asked("v9");
    choose_isa(Isa::v2);
    std::exit(best_isa() == Isa::v2 ? 0 : 1);
  };
  EXPECT_EXIT(choose(), testing::ExitedWithCode(0), "");
  if (!supports(Isa::v4)) {
    EXPECT_THROW(choose_isa(Isa::v4), Error);
  }
}

TEST(Isa, OtherWordsAreRefused) {
  const Environment asked("avx2");
  try {
    best_isa();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(error.what()).find("avx2"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("v2, v3 or v4"), std::string::npos);
  }
}

}  // namespace
}  // namespace backdrive
