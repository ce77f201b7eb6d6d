// Numbers that a user gives a test in its environment.

#ifndef HAWSER_TESTS_SOAK_ENVIRONMENT_NUMBER_H_
#define HAWSER_TESTS_SOAK_ENVIRONMENT_NUMBER_H_

#include <cstdint>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "gtest/gtest.h"

namespace hawser::tests {

// The value of the variable `name`, or `otherwise` if it is not set. Fails the
// test, naming the variable, if the value is not a number.
inline uint64_t EnvironmentNumber(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  uint64_t number = otherwise;
  if (text != nullptr) {
    EXPECT_TRUE(absl::SimpleAtoi(text, &number)) << name << "=" << text;
  }
  return number;
}

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_SOAK_ENVIRONMENT_NUMBER_H_
