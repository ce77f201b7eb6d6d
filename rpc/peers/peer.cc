#include "rpc/peers/peer.h"

#include <utility>

#include "async/status_macros.h"

namespace hawser::rpc {

absl::StatusOr<std::shared_ptr<Connection>> Peer::connection() {
  async::MutexLock lock(&mutex_);
  RETURN_IF_ERROR(lost_status_);
  if (connection_ == nullptr) {
    ASSIGN_OR_RETURN(connection_, transport_->Connect({.address = info_.address,
                                                       .worker = info_.name,
                                                       .roles = info_.roles}));
    // From here on replies are expected.
    last_answered_.store(last_heard_.load(std::memory_order_relaxed),
                         std::memory_order_relaxed);
    connected_.store(true, std::memory_order_release);
  }
  return connection_;
}

absl::StatusOr<std::shared_ptr<Connection>> Peer::heartbeat_connection() {
  if (left()) {
    async::MutexLock lock(&mutex_);
    if (connection_ != nullptr) return connection_;
  }
  return connection();
}

bool Peer::MarkLost(const absl::Status& status) {
  std::shared_ptr<Connection> connection;
  {
    async::MutexLock lock(&mutex_);
    if (!lost_status_.ok()) return false;
    lost_status_ = status;
    connection = std::move(connection_);
  }
  lost_.store(true, std::memory_order_release);
  if (connection != nullptr) connection->Close(status);
  return true;
}

bool Peer::MarkLeft(const absl::Status& status) {
  {
    async::MutexLock lock(&mutex_);
    if (!lost_status_.ok()) return false;
    lost_status_ = status;
  }
  left_.store(true, std::memory_order_release);
  lost_.store(true, std::memory_order_release);
  return true;
}

void Peer::Disconnect() {
  std::shared_ptr<Connection> connection;
  async::MutexLock lock(&mutex_);
  connection.swap(connection_);
}

}  // namespace hawser::rpc
