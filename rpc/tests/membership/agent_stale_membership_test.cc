// A worker that finds another in the store after it has read that it is lost.

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/agent_options.h"
#include "rpc/agent/service.h"
#include "rpc/agent/service_host.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/member_event.h"
#include "rpc/membership/membership_log.h"
#include "rpc/membership/worker_directory.h"
#include "rpc/testing/agent_test_fixture.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;

// Knows its host from before the agent has started.
class HostFinder final : public Service {
 public:
  explicit HostFinder(std::atomic<ServiceHost*>* host) : host_(*host) {}

  std::string_view name() const override { return "finder"; }
  absl::Status Start(ServiceHost& host) override {
    host_ = &host;
    return absl::OkStatus();
  }

 private:
  std::atomic<ServiceHost*>& host_;
};

TEST(AgentStaleMembershipTest,
     OneThatWasLostBeforeItWasAddedGivesItsNameToTheNext) {
  TestJob job;
  async::SimulatedClock clock;
  std::atomic<ServiceHost*> starting{nullptr};
  absl::Notification joined;
  const WorkerInfo other = {.name = "w1",
                            .id = WorkerId(1),
                            .incarnation = Incarnation{1001},
                            .address = ""};
  // It was there and has gone.
  AgentOptions options = job.Options(0, 2);
  MembershipLog log(&job.store(), options.job);
  WorkerDirectory directory(&job.store(), options.job);
  ASSERT_THAT(log.Append(JoinedEvent(other)), IsOk());
  ASSERT_THAT(log.Append(LostEvent(other.incarnation, Incarnation{1002}, "")),
              IsOk());

  const std::string job_name = options.job;
  options.store = &job.store();
  options.clock = &clock;
  options.services.push_back(std::make_unique<HostFinder>(&starting));
  auto starts = std::async(std::launch::async,
                           [&] { return Agent::Start(std::move(options)); });
  while (starting.load() == nullptr || !starting.load()->IsLost(other)) {
    std::this_thread::yield();
  }
  // Its record is read when the agent knows already that it is lost.
  ASSERT_THAT(job.store().Set(absl::StrCat("rpc/", job_name, "/start/1/",
                                           ToString(other.incarnation)),
                              "arrived"),
              IsOk());
  ASSERT_THAT(directory.Register(other, {}), IsOk());
  const absl::StatusOr<std::unique_ptr<Agent>> agent = starts.get();
  ASSERT_THAT(agent, IsOk());
  EXPECT_TRUE((*agent)->IsLost(other));

  const WorkerInfo next = {.name = "w1",
                           .id = WorkerId(1),
                           .incarnation = Incarnation{1003},
                           .address = ""};
  (*agent)->WatchMembers([&](const MemberEvent& event) {
    if (event.worker.incarnation == next.incarnation) joined.Notify();
  });
  ASSERT_THAT(log.Append(JoinedEvent(next)), IsOk());
  // The event may arrive after a pause, which begins at any moment.
  while (!joined.WaitForNotificationWithTimeout(absl::Milliseconds(1))) {
    clock.AdvanceBy(AgentOptions().liveness.heartbeat_interval);
  }
  const std::vector<WorkerInfo> workers = (*agent)->workers();
  ASSERT_EQ(workers.size(), 2u);
  EXPECT_EQ(workers[1].incarnation, next.incarnation);
  EXPECT_THAT((*agent)->Shutdown(/*graceful=*/false), IsOk());
}

}  // namespace
}  // namespace hawser::rpc
