// Transports for parameterised tests of agents.

#ifndef HAWSER_RPC_TESTING_TRANSPORT_TEST_PARAM_H_
#define HAWSER_RPC_TESTING_TRANSPORT_TEST_PARAM_H_

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "rpc/grpc/transport.h"
#include "rpc/testing/agent_test_fixture.h"

namespace hawser::rpc {

// kGrpc uses only sockets; kSameHost also uses shared memory.
enum class TransportParam { kInproc, kGrpc, kSameHost };

// Under ThreadSanitizer, the system's gRPC is excluded, since it is not
// instrumented.
inline constexpr TransportParam kTransportParams[] = {
    TransportParam::kInproc,
#ifndef __SANITIZE_THREAD__
    TransportParam::kGrpc,
    TransportParam::kSameHost,
#endif
};

inline TestJob::MakeTransport MakeTransportFactory(TransportParam param) {
  if (param == TransportParam::kInproc) return nullptr;
  return [param] {
    return std::make_unique<GrpcTransport>(
        GrpcTransportOptions{.same_host = param == TransportParam::kSameHost});
  };
}

inline std::string ToString(TransportParam param) {
  switch (param) {
    case TransportParam::kInproc:
      return "Inproc";
    case TransportParam::kGrpc:
      return "Grpc";
    case TransportParam::kSameHost:
      return "SameHost";
  }
  return "";
}

inline auto TransportParamName() {
  return [](const testing::TestParamInfo<TransportParam>& info) {
    return ToString(info.param);
  };
}

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TESTING_TRANSPORT_TEST_PARAM_H_
