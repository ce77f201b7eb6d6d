#include "net/server/connection_handover.h"

#include <sys/resource.h>
#include <unistd.h>

#include <utility>

namespace hawser::net {
namespace {

// Lowers the priority of this thread to that of nice 10: it gets a tenth of a
// core that others want too.
void LowerPriority() {
  constexpr int kNice = 10;
  const auto thread = static_cast<id_t>(gettid());
  if (getpriority(PRIO_PROCESS, thread) >= kNice) return;
  // Everyone may do this.
  setpriority(PRIO_PROCESS, thread, kNice);
}

}  // namespace

ConnectionHandover::ConnectionHandover(
    absl::AnyInvocable<void(const Connection&) const> pass)
    : pass_(std::move(pass)) {
  async::MutexLock lock(&mutex_);
  threads_.emplace_back([this] { Run(); });
}

ConnectionHandover::~ConnectionHandover() {
  Stop();
  std::vector<std::thread> threads;
  {
    async::MutexLock lock(&mutex_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
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

void ConnectionHandover::Relieve() {
  async::MutexLock lock(&mutex_);
  const bool same = std::exchange(seen_taken_, num_taken_) == num_taken_;
  if (!same || waiting_.empty() || threads_.size() == kMaxThreads) return;
  threads_.emplace_back([this] { Run(); });
}

void ConnectionHandover::Stop() {
  async::MutexLock lock(&mutex_);
  stopped_ = true;
  for (const Connection& connection : waiting_) close(connection.fd);
  waiting_.clear();
  changed_.NotifyAll();
}

void ConnectionHandover::Run() {
  LowerPriority();
  while (true) {
    Connection connection;
    {
      async::MutexLock lock(&mutex_);
      while (waiting_.empty() && !stopped_) changed_.Wait(&mutex_);
      if (stopped_) return;
      connection = waiting_.front();
      waiting_.pop_front();
      ++num_taken_;
    }
    pass_(connection);
  }
}

}  // namespace hawser::net
