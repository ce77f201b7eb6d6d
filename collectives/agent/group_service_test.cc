#include "collectives/agent/group_service.h"

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/testing/status_matchers.h"
#include "collectives/process_group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/testing/agent_test_fixture.h"
#include "tensor/tensor.h"

namespace hawser::collectives {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using Group = absl::StatusOr<std::shared_ptr<ProcessGroup>>;

class GroupServiceTest : public testing::Test {
 protected:
  void SetUp() override {
    job_.StartAll(4, [](int, rpc::AgentOptions& options) {
      options.services.push_back(std::make_unique<GroupService>());
    });
  }
  GroupService& service(int worker) {
    return *job_.agent(worker).service<GroupService>();
  }
  // On workers 0 to size - 1.
  std::vector<std::shared_ptr<ProcessGroup>> MakeGroups(int size) {
    std::vector<std::string> workers;
    for (int i = 0; i < size; ++i) workers.push_back("w" + std::to_string(i));
    std::vector<std::future<Group>> making;
    for (int i = 0; i < size; ++i) {
      making.push_back(std::async(std::launch::async, [&, i] {
        return service(i).MakeGroup(workers);
      }));
    }
    std::vector<std::shared_ptr<ProcessGroup>> groups;
    for (auto& each : making) {
      Group group = each.get();
      EXPECT_THAT(group, IsOk());
      groups.push_back(group.ok() ? *group : nullptr);
    }
    return groups;
  }

  rpc::TestJob job_;
};

TEST_F(GroupServiceTest, WorkersFormAGroup) {
  const auto groups = MakeGroups(3);
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      EXPECT_EQ(groups[static_cast<size_t>(i)]->rank(), i);
      Tensor sum = Tensor::Full({2}, i);
      EXPECT_THAT(groups[static_cast<size_t>(i)]->AllReduce(sum), IsOk());
      EXPECT_EQ(sum.ToVector<float>(), std::vector<float>(2, 3));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Its process lives, as that of a worker which is cut off: the news comes to
// one rank, and that ends the others.
TEST_F(GroupServiceTest, ALostWorkerEndsItsGroups) {
  const auto groups = MakeGroups(3);
  std::vector<std::future<absl::Status>> waiting;
  for (int i = 0; i < 2; ++i) {
    waiting.push_back(std::async(std::launch::async, [&, i] {
      return groups[static_cast<size_t>(i)]->Barrier();
    }));
  }
  rpc::WorkerInfo lost;
  lost.name = "w2";
  service(0).OnWorkerLost(lost, absl::UnavailableError("silent"));
  for (auto& each : waiting) {
    // A barrier that begins later is refused for the same reason.
    const absl::Status status = each.get();
    EXPECT_TRUE(absl::IsUnavailable(status) ||
                absl::IsFailedPrecondition(status));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("worker 'w2' of the group was lost: silent"));
  }
  EXPECT_THAT(groups[0]->Barrier(),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST_F(GroupServiceTest, AWorkerThatStopsSaysSo) {
  const auto groups = MakeGroups(3);
  auto waiting =
      std::async(std::launch::async, [&] { return groups[0]->Barrier(); });
  job_.owned(2).reset();
  const absl::Status status = waiting.get();
  EXPECT_THAT(std::string(status.message()),
              AnyOf(HasSubstr("rank 2 has ended the group: the worker of this "
                              "rank stops"),
                    HasSubstr("worker 'w2' of the group was lost")));
}

TEST_F(GroupServiceTest, OtherGroupsGoOn) {
  const auto groups = MakeGroups(2);
  job_.owned(3).reset();
  auto other =
      std::async(std::launch::async, [&] { return groups[1]->Barrier(); });
  EXPECT_THAT(groups[0]->Barrier(), IsOk());
  EXPECT_THAT(other.get(), IsOk());
}

TEST_F(GroupServiceTest, WrongWorkersAreRefused) {
  const auto refused = StatusIs(absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(service(0).MakeGroup({"w1", "w2"}), refused);
  EXPECT_THAT(service(0).MakeGroup({"w0", "w1", "w1"}), refused);
  GroupService alone;
  EXPECT_THAT(alone.MakeGroup({"w0"}),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

}  // namespace
}  // namespace hawser::collectives
