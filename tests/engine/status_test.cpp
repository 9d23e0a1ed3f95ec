// What becomes of worlds' statuses where pieces of a rollout are put together.
#include "engine/status.h"

#include <gtest/gtest.h>

namespace backdrive {
namespace {

TEST(WorldStatus, MergingKeepsTheFirstOfEach) {
  WorldStatuses first(3), second(3);
  first.write_address()[0].unsolved_step = 5;
  first.write_address()[1] = {.stopped_step = 7, .joint = 2};
  second.write_address()[0] = {.stopped_step = 9, .joint = 1, .unsolved_step = 8};
  second.write_address()[1].unsolved_step = 3;
  second.write_address()[2].unsolved_step = 4;
  first.merge(second);
  EXPECT_EQ(first[0].stopped_step, 9);
  EXPECT_EQ(first[0].unsolved_step, 5);
  EXPECT_EQ(first[1].stopped_step, 7);
  EXPECT_EQ(first[1].joint, 2);
  EXPECT_EQ(first[1].unsolved_step, 3);
  EXPECT_EQ(first[2].unsolved_step, 4);
  EXPECT_EQ(first.count_stopped(), 2);
}

}  // namespace
}  // namespace backdrive
