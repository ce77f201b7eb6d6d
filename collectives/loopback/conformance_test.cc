#include "collectives/testing/conformance.h"

#include "collectives/loopback/backend.h"
#include "gtest/gtest.h"

namespace hawser::collectives {

INSTANTIATE_TEST_SUITE_P(
    Loopback, ConformanceTest,
    testing::ValuesIn(ConformanceParams(MakeLoopbackBackends)),
    ConformanceName);

}  // namespace hawser::collectives
