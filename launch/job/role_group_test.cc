#include "launch/job/role_group.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "async/testing/status_matchers.h"
#include "collectives/agent/group_service.h"
#include "collectives/process_group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "launch/job/job_member.h"
#include "launch/job/testing/job_test_fixture.h"
#include "tensor/tensor.h"

namespace hawser::launch {
namespace {

using async::IsOk;
using async::StatusIs;
using ::testing::HasSubstr;

class RoleGroupTest : public JobTest {
 protected:
  Services services() const override {
    Services services;
    services.push_back(std::make_unique<collectives::GroupService>());
    return services;
  }
};

TEST_F(RoleGroupTest, ProcessesOfARoleFormAGroup) {
  const auto work = [](JobMember& member) -> absl::Status {
    auto group = MakeRoleGroup(member);
    if (!group.ok()) return group.status();
    EXPECT_EQ((*group)->rank(), member.options().index);
    tensor::Tensor sum = tensor::Tensor::Full({2}, (*group)->rank() + 1);
    EXPECT_THAT((*group)->AllReduce(sum), IsOk());
    EXPECT_EQ(sum.ToVector<float>(), std::vector<float>(2, 3));
    return member.options().index == 0 ? member.EndJob() : member.WaitForEnd();
  };
  auto server = Run("server", 0, WaitForEnd);
  auto second = Run("trainer", 1, work);
  auto first = Run("trainer", 0, work);
  ExpectAllOk({&first, &second, &server});
}

// A process that waits for one that leaves gets the cause.
TEST_F(RoleGroupTest, AGroupEndsWithTheErrorOfTheJob) {
  const auto work = [](JobMember& member) -> absl::Status {
    auto group = MakeRoleGroup(member);
    if (!group.ok()) return group.status();
    if (member.options().index == 1) {
      return absl::DataLossError("the data are damaged");
    }
    const absl::Status status = (*group)->Barrier();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                                 HasSubstr("the data are damaged")));
    return status;
  };
  auto server = Run("server", 0, WaitForEnd);
  auto second = Run("trainer", 1, work);
  auto first = Run("trainer", 0, work);
  EXPECT_THAT(second.get(), StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_THAT(first.get(), StatusIs(absl::StatusCode::kUnavailable,
                                    HasSubstr("the data are damaged")));
  EXPECT_THAT(server.get(), StatusIs(absl::StatusCode::kUnavailable));
}

using RoleGroupWithoutServiceTest = JobTest;

TEST_F(RoleGroupWithoutServiceTest, NamesTheServiceThatIsMissing) {
  auto server = Run("server", 0, WaitForEnd);
  auto second = Run("trainer", 1, WaitForEnd);
  auto first = Run("trainer", 0, [](JobMember& member) {
    EXPECT_THAT(MakeRoleGroup(member).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition,
                         HasSubstr("collectives::GroupService")));
    return member.EndJob();
  });
  ExpectAllOk({&first, &second, &server});
}

}  // namespace
}  // namespace hawser::launch
