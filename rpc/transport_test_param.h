// The transports that tests of agents run over.

#ifndef HAWSER_RPC_TRANSPORT_TEST_PARAM_H_
#define HAWSER_RPC_TRANSPORT_TEST_PARAM_H_

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "rpc/agent_test_fixture.h"
#include "rpc/grpc/transport.h"

namespace hawser::rpc {

enum class TransportParam { kInproc, kGrpc };

// Where ThreadSanitizer watches, the system's gRPC, which is not instrumented,
// is left out.
inline constexpr TransportParam kTransportParams[] = {
    TransportParam::kInproc,
#ifndef __SANITIZE_THREAD__
    TransportParam::kGrpc,
#endif
};

inline TestJob::MakeTransport MakeTransportFactory(TransportParam param) {
  if (param == TransportParam::kInproc) return nullptr;
  return [] { return std::make_unique<GrpcTransport>(); };
}

inline auto TransportParamName() {
  return [](const testing::TestParamInfo<TransportParam>& info) {
    return std::string(info.param == TransportParam::kInproc ? "Inproc"
                                                             : "Grpc");
  };
}

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_TRANSPORT_TEST_PARAM_H_
