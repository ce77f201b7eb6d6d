// The headers of system_headers.h and those of GoogleTest.
#ifndef HAWSER_BAZEL_PRECOMPILED_TEST_HEADERS_H_
#define HAWSER_BAZEL_PRECOMPILED_TEST_HEADERS_H_

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "system_headers.h"

#pragma hawser instantiate_templates

#endif  // HAWSER_BAZEL_PRECOMPILED_TEST_HEADERS_H_
