#include "ps/client/table_client.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ps/client/bytes_under_way.h"
#include "ps/route/table_moves.h"
#include "ps/table_route.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/host_handle.h"
#include "rpc/agent/service_host.h"

namespace hawser::ps {

TableClient::TableClient(rpc::ServiceHost& host, int64_t max_bytes_under_way)
    : host_(host),
      bytes_under_way_(std::make_shared<BytesUnderWay>(max_bytes_under_way)),
      moves_(std::make_shared<TableMoves>(
          host, [&host](std::vector<TableVersion> tables) {
            return WhenTablesMove(*host.store(), host.agent()->job(),
                                  std::move(tables));
          })) {}

absl::StatusOr<HeldBytes> TableClient::HoldBytes(int64_t bytes) {
  absl::Duration timeout;
  {
    const rpc::HostHandle::Use host = host_.Acquire();
    if (host) timeout = host->default_timeout();
  }
  return HeldBytes::Begin(bytes_under_way_, bytes, timeout);
}

absl::Status TableClient::WasShutDown() {
  return absl::FailedPreconditionError("the worker was shut down");
}

void TableClient::Stop() {
  moves_->Stop();
  host_.Revoke();
}

}  // namespace hawser::ps
