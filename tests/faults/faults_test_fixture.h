// Fixture of fault tests: a job whose store and first worker, the driver, are
// in the test's process.

#ifndef HAWSER_TESTS_FAULTS_FAULTS_TEST_FIXTURE_H_
#define HAWSER_TESTS_FAULTS_FAULTS_TEST_FIXTURE_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "async/future.h"
#include "async/mutex.h"
#include "async/testing/nightly.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/agent_options.h"
#include "rpc/errors/error_detail.h"
#include "rpc/functions/function_registry.h"
#include "rpc/grpc/transport.h"
#include "rpc/membership/member_event.h"
#include "store/grpc/server.h"
#include "store/open_store.h"
#include "tests/faults/worker_functions.h"
#include "tests/faults/worker_process.h"

namespace hawser::tests {

// Tolerances on documented delays, which hold for an idle machine: kSlack for
// the maximum, kSlackOfMost for percentiles. kLiveness are the limits after
// which workers are lost. Nightly versions run on an otherwise idle machine. In
// the others the system may stall a process for seconds; such a process must
// not be lost.
inline const absl::Duration kSlack =
    async::NightlyOr(absl::Milliseconds(200), absl::Seconds(30));
inline const absl::Duration kSlackOfMost =
    async::NightlyOr(absl::ZeroDuration(), kSlack);
inline const rpc::LivenessOptions kLiveness = async::NightlyOr(
    rpc::LivenessOptions(),
    rpc::LivenessOptions{.silent_limit = absl::Seconds(8),
                         .unreachable_limit = absl::Seconds(8)});

// The documented time after which a silent worker is lost.
inline const absl::Duration kDetection =
    kLiveness.silent_limit + kLiveness.heartbeat_interval;

// True if the detail of the error names the worker `name`, of any incarnation,
// and has this `maybe_applied`.
inline bool IsAt(const absl::Status& status, const std::string& name,
                 bool maybe_applied) {
  const auto detail = rpc::GetErrorDetail(status);
  return detail.has_value() && detail->worker == name &&
         detail->maybe_applied == maybe_applied;
}

class FaultsTest : public testing::Test {
 protected:
  // `same_host`: if workers may use shared memory. `liveness`: the driver's
  // limits.
  explicit FaultsTest(bool same_host = true,
                      const rpc::LivenessOptions& liveness = kLiveness)
      : same_host_(same_host), liveness_(liveness) {}

  void SetUp() override {
    auto server = store::StoreServer::Start({});
    ASSERT_THAT(server, async::IsOk());
    server_ = *std::move(server);
    auto store = store::OpenStore(store_url());
    ASSERT_THAT(store, async::IsOk());
    store_ = *std::move(store);
    rpc::AgentOptions options;
    options.name = "driver";
    options.rank = 0;
    options.job = "faults";
    options.store = store_.get();
    options.transport = std::make_unique<rpc::GrpcTransport>(
        rpc::GrpcTransportOptions{.same_host = same_host_});
    options.registry = &registry_;
    options.liveness = liveness_;
    auto driver = rpc::Agent::Start(std::move(options));
    ASSERT_THAT(driver, async::IsOk());
    driver_ = *std::move(driver);
    driver_->WatchMembers([this](const rpc::MemberEvent& event) {
      async::MutexLock lock(&mutex_);
      events_.push_back(event);
      changed_.NotifyAll();
    });
  }

  void TearDown() override {
    driver_.reset();
    workers_.clear();
  }

  std::string store_url() const {
    return absl::StrCat("tcp://", server_->address());
  }
  rpc::Agent& driver() { return *driver_; }

  // Starts a worker process and does not wait until it has joined.
  using Change = std::function<void(WorkerProcessOptions& options)>;
  WorkerProcess& Start(const std::string& name, int rank,
                       const Change& change = nullptr) {
    WorkerProcessOptions options;
    options.store = store_url();
    options.name = name;
    options.rank = rank;
    options.same_host = same_host_;
    options.liveness = liveness_;
    if (change != nullptr) change(options);
    workers_.push_back(std::make_unique<WorkerProcess>(options));
    return *workers_.back();
  }

  // Waits for an event about the worker `name` and removes it from the received
  // events. Earlier events count. False after `limit`.
  bool AwaitEvent(rpc::MemberEvent::Kind kind, const std::string& name,
                  absl::Duration limit) {
    const async::MonotonicTime deadline =
        async::AddDelay(std::chrono::steady_clock::now(), limit);
    async::MutexLock lock(&mutex_);
    while (true) {
      for (auto it = events_.begin(); it != events_.end(); ++it) {
        if (it->kind != kind || it->worker.name != name) continue;
        events_.erase(it);
        return true;
      }
      if (!changed_.WaitUntil(&mutex_, deadline)) return false;
    }
  }

  // The received leaves and losses that AwaitEvent has not removed.
  std::string OtherEvents() {
    std::string text;
    async::MutexLock lock(&mutex_);
    for (const rpc::MemberEvent& event : events_) {
      if (event.kind == rpc::MemberEvent::Kind::kJoined) continue;
      absl::StrAppend(&text, rpc::ToString(event.worker),
                      event.kind == rpc::MemberEvent::Kind::kLeft
                          ? " left\n"
                          : absl::StrCat(" was lost: ", event.reason, "\n"));
    }
    return text;
  }

  // Returns when `worker` has begun `count` calls that do not end at once.
  void AwaitBegun(const std::string& worker, int64_t count) {
    while (true) {
      auto census = driver_->Sync(worker, kCensus);
      ASSERT_THAT(census, async::IsOk());
      if ((*census)["begun"] >= count) return;
    }
  }

  // Returns when `worker` has declared `lost` lost.
  void AwaitLostAt(const std::string& worker, const WorkerProcess& lost) {
    uint64_t incarnation = 0;
    ASSERT_TRUE(absl::SimpleHexAtoi(lost.incarnation(), &incarnation));
    const absl::Time deadline = absl::Now() + absl::Seconds(60);
    while (true) {
      const absl::StatusOr<bool> knows =
          driver_->Sync(worker, kTakesForLost, incarnation);
      ASSERT_THAT(knows, async::IsOk());
      if (*knows) return;
      ASSERT_LT(absl::Now(), deadline);
    }
  }

  // Keeps a fault active for `duration`.
  static void Last(absl::Duration duration) {
    const async::Promise<void> never;
    (void)never.future().WaitFor(duration);
  }

  bool same_host() const { return same_host_; }

 private:
  const bool same_host_;
  const rpc::LivenessOptions liveness_;
  async::Mutex mutex_;
  async::CondVar changed_;
  std::vector<rpc::MemberEvent> events_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<store::StoreServer> server_;
  std::unique_ptr<store::Store> store_;
  rpc::FunctionRegistry registry_;
  std::unique_ptr<rpc::Agent> driver_;
  std::vector<std::unique_ptr<WorkerProcess>> workers_;
};

// Fixture with two variants: sockets only, and shared memory, which is the
// default between processes of one machine.
class BothWaysFaultsTest : public FaultsTest,
                           public testing::WithParamInterface<bool> {
 protected:
  explicit BothWaysFaultsTest(const rpc::LivenessOptions& liveness = kLiveness)
      : FaultsTest(/*same_host=*/GetParam(), liveness) {}
};

inline std::string WayName(const testing::TestParamInfo<bool>& same_host) {
  return same_host.param ? "SameHost" : "Socket";
}

}  // namespace hawser::tests

#endif  // HAWSER_TESTS_FAULTS_FAULTS_TEST_FIXTURE_H_
