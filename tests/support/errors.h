#pragma once
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>

#include "engine/error.h"

namespace backdrive::test {

/// Runs `action` and expects an Error of kind usage whose message has all the words.
template <class Action>
void expect_usage_error(Action&& action, std::initializer_list<const char*> words) {
  try {
    action();
    ADD_FAILURE() << "no error was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage) << error.what();
    for (const char* word : words) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what() << "\nlacks: " << word;
    }
  }
}

}  // namespace backdrive::test
