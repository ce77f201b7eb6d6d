#include "net/server/connection_handover.h"

#include <unistd.h>

#include <utility>

namespace hawser::net {

ConnectionHandover::ConnectionHandover(
    absl::AnyInvocable<void(const Connection&)> pass)
    : pass_(std::move(pass)), thread_([this] { Run(); }) {}

ConnectionHandover::~ConnectionHandover() {
  Stop();
  thread_.join();
}

void ConnectionHandover::Add(const Connection& connection) {
  async::MutexLock lock(&mutex_);
  if (stopped_) {
    close(connection.fd);
    return;
  }
  waiting_.push_back(connection);
  changed_.NotifyAll();
}

void ConnectionHandover::Stop() {
  async::MutexLock lock(&mutex_);
  stopped_ = true;
  for (const Connection& connection : waiting_) close(connection.fd);
  waiting_.clear();
  changed_.NotifyAll();
}

void ConnectionHandover::Run() {
  while (true) {
    Connection connection;
    {
      async::MutexLock lock(&mutex_);
      while (waiting_.empty() && !stopped_) changed_.Wait(&mutex_);
      if (stopped_) return;
      connection = waiting_.front();
      waiting_.pop_front();
    }
    pass_(connection);
  }
}

}  // namespace hawser::net
