// One worker's access to an InprocNetwork.

#ifndef HAWSER_RPC_INPROC_TRANSPORT_H_
#define HAWSER_RPC_INPROC_TRANSPORT_H_

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "async/clock.h"
#include "rpc/inproc/network.h"
#include "rpc/inproc/network_state.h"
#include "rpc/transport/transport.h"

namespace hawser::rpc {

// Created by InprocNetwork::NewTransport.
class InprocTransport final : public Transport {
 public:
  InprocTransport(std::shared_ptr<InprocNetwork::State> network,
                  async::Clock& clock);
  ~InprocTransport() override;

  absl::StatusOr<std::string> Listen(
      std::string_view address, std::vector<TransportMethod> methods) override;
  absl::StatusOr<std::shared_ptr<Connection>> Connect(
      const ConnectionTarget& target) override;
  void Probe(const std::string& address, absl::Duration timeout,
             absl::AnyInvocable<void(absl::Status) &&> done) override;
  void Shutdown() override;

 private:
  const std::shared_ptr<InprocNetwork::State> network_;
  const std::shared_ptr<internal::InprocNode> node_;
  // Whether connections reject calls; shared with them.
  const std::shared_ptr<std::atomic<bool>> stopped_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_INPROC_TRANSPORT_H_
