// Random programs of {record, step, custom operation, switch, replace, detach, drop, move, backward} against a
// reference that computes every gradient again from scratch, without tape and without adjoint.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "tests/autodiff/program.h"
#include "tests/support/sanitized.h"

namespace backdrive::test {
namespace {

using plain::Fault;

constexpr int kPrograms = 600;

// rapidcheck draws lengths by its size parameter, which grows from test to test; all else is drawn at full size.
rc::Gen<Command> any_command() {
  using enum CommandKind;
  return rc::gen::resize(
      rc::kNominalSize,
      rc::gen::build<Command>(rc::gen::set(&Command::kind, rc::gen::weightedElement<CommandKind>({{2, new_tape},
                                                                                                  {5, record},
                                                                                                  {4, step},
                                                                                                  {6, custom},
                                                                                                  {4, switch_grad},
                                                                                                  {4, replace},
                                                                                                  {2, detach},
                                                                                                  {1, drop},
                                                                                                  {1, move},
                                                                                                  {4, backward},
                                                                                                  {1, use_spent}})),
                              rc::gen::set(&Command::dice, rc::gen::arbitrary<std::uint16_t>())));
}

rc::Gen<Program> any_program() {
  return rc::gen::build<Program>(
      rc::gen::set(&Program::joints, rc::gen::element(1, 2, 3)),
      rc::gen::set(&Program::worlds, rc::gen::element(1, 2, 3)),
      rc::gen::set(&Program::dice, rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<std::uint16_t>())),
      rc::gen::set(&Program::commands, rc::gen::scale(0.3, rc::gen::container<std::vector<Command>>(any_command()))));
}

/// The same programs in every run; RC_PARAMS="seed=7 max_success=10000" asks for others, or more.
rc::detail::Configuration configuration() {
  rc::detail::Configuration defaults;
  defaults.testParams.seed = 20260801;
  // They grow to full length however many there are.
  defaults.testParams.maxSuccess = kSanitized ? kPrograms / 12 : kPrograms;
  const char* asked = std::getenv("RC_PARAMS");
  return rc::detail::configFromString(asked ? asked : "", defaults);
}

rc::detail::TestResult check(const char* id, Fault fault, ProgramCounts& counts) {
  const rc::detail::Configuration configured = configuration();
  rc::detail::TestParams params = configured.testParams;
  if (fault != Fault::none) {  // one program is enough, however long
    params.maxSuccess = std::max(params.maxSuccess, kPrograms);
    params.disableShrinking = true;
  }
  const auto property = [fault, &counts] {
    const ProgramCounts own = run_program(*any_program(), fault);
    counts.backwards += own.backwards;
    counts.refusals += own.refusals;
    counts.foreign_inputs += own.foreign_inputs;
    counts.worst = std::max(counts.worst, own.worst);
  };
  struct Silent final : rc::detail::TestListener {
    void onTestCaseFinished(const rc::detail::CaseDescription&) override {}
    void onShrinkTried(const rc::detail::CaseDescription&, bool) override {}
    void onTestFinished(const rc::detail::TestMetadata&, const rc::detail::TestResult&) override {}
  } silent;
  return rc::detail::checkTestable(property, rc::detail::TestMetadata{id, id}, params, silent, configured.reproduce);
}

// A library that computes other gradients than the reference, writes to a seed, walks a spent tape, or leaves nodes or
// memory behind, is falsified by a program that rapidcheck makes as short as it can.
TEST(SeedsPrograms, AgreeWithTheReference) {
  ProgramCounts counts;
  const rc::detail::TestResult result = check("SeedsPrograms", Fault::none, counts);
  if (!result.is<rc::detail::SuccessResult>()) {
    std::ostringstream text;
    rc::detail::printResultMessage(result, text);
    FAIL() << text.str();
  }
  // Programs that never look at a gradient would agree too.
  const int programs = result.get<rc::detail::SuccessResult>().numSuccess;
  EXPECT_GT(counts.backwards, programs / 2);
  if (programs >= kPrograms) {
    EXPECT_GT(counts.foreign_inputs, 0);
    EXPECT_GT(counts.refusals, 0);
  }
  RecordProperty("backwards", counts.backwards);
  RecordProperty("refusals", counts.refusals);
  RecordProperty("foreign_inputs", counts.foreign_inputs);
  RecordProperty("worst_error_in_tolerances", std::to_string(counts.worst));
}

struct Planted {
  Fault fault;
  const char* name;
};
void PrintTo(const Planted& planted, std::ostream* out) {
  *out << planted.name;
}

class SeedsProgramFaults : public testing::TestWithParam<Planted> {};

// The property can fail: each planted mistake is found by one of the same programs.
TEST_P(SeedsProgramFaults, AreFound) {
  ProgramCounts counts;
  const rc::detail::TestResult result = check(GetParam().name, GetParam().fault, counts);
  ASSERT_TRUE(result.is<rc::detail::FailureResult>());
  const auto& failure = result.get<rc::detail::FailureResult>();
  EXPECT_NE(failure.description.find("differs"), std::string::npos) << failure.description;
  RecordProperty("programs", failure.numSuccess + 1);
}

INSTANTIATE_TEST_SUITE_P(Planted, SeedsProgramFaults,
                         testing::Values(Planted{Fault::accumulated_twice, "AccumulatedTwice"},
                                         Planted{Fault::flows_through_detach, "FlowsThroughDetach"},
                                         Planted{Fault::switch_at_backward, "SwitchAtBackward"},
                                         Planted{Fault::values_at_backward, "ValuesAtBackward"},
                                         Planted{Fault::last_use_only, "LastUseOnly"},
                                         Planted{Fault::last_seed_only, "LastSeedOnly"},
                                         Planted{Fault::one_world_only, "OneWorldOnly"}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace backdrive::test
