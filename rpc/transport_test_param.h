// The transports that tests of agents run over.

#ifndef HAWSER_RPC_TRANSPORT_TEST_PARAM_H_
#define HAWSER_RPC_TRANSPORT_TEST_PARAM_H_

#include <string>

#include "gtest/gtest.h"
#include "rpc/agent_test_fixture.h"

namespace hawser::rpc {

enum class TransportParam { kInproc };

inline constexpr TransportParam kTransportParams[] = {TransportParam::kInproc};

inline TestJob::MakeTransport MakeTransportFactory(TransportParam) {
  return nullptr;
}

inline auto TransportParamName() {
  return [](const testing::TestParamInfo<TransportParam>&) {
    return std::string("Inproc");
  };
}

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TRANSPORT_TEST_PARAM_H_
