// A job of threads, for tests.

#ifndef HAWSER_LAUNCH_JOB_TESTING_JOB_TEST_FIXTURE_H_
#define HAWSER_LAUNCH_JOB_TESTING_JOB_TEST_FIXTURE_H_

#include <functional>
#include <future>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "launch/job/job_member.h"
#include "launch/job/job_options.h"
#include "rpc/agent/service.h"
#include "rpc/functions/function_registry.h"
#include "store/grpc/server.h"

namespace hawser::launch {

// A job of a server and two trainers, each in a thread of this process.
class JobTest : public ::testing::Test {
 protected:
  using Work = std::function<absl::Status(JobMember& member)>;
  using Services = std::vector<std::unique_ptr<rpc::Service>>;

  void SetUp() override {
    auto started = store::StoreServer::Start({});
    ASSERT_THAT(started, async::IsOk());
    store_ = *std::move(started);
  }

  // Runs `work` as this process, and returns the outcome of leaving.
  std::future<absl::Status> Run(const std::string& role, int index, Work work) {
    JobOptions options;
    options.roles = {{"server", 1}, {"trainer", 2}};
    options.role = role;
    options.index = index;
    options.master = "tcp://" + store_->address();
    options.external_store = true;
    options.silent_limit = absl::Seconds(20);
    rpc::FunctionRegistry* const registry =
        role == "server" ? &registry_ : nullptr;
    return std::async(std::launch::async,
                      [this, options, work, registry]() -> absl::Status {
                        absl::StatusOr<std::unique_ptr<JobMember>> member =
                            JobMember::Join(options, services(), registry);
                        if (!member.ok()) return member.status();
                        return (*member)->Leave(work(**member));
                      });
  }

  // Of each process.
  virtual Services services() const { return {}; }

  static void ExpectAllOk(
      std::initializer_list<std::future<absl::Status>*> processes) {
    for (std::future<absl::Status>* process : processes) {
      EXPECT_THAT(process->get(), async::IsOk());
    }
  }

  static absl::Status WaitForEnd(JobMember& member) {
    return member.WaitForEnd();
  }

  std::unique_ptr<store::StoreServer> store_;
  // Of the server.
  rpc::FunctionRegistry registry_;
};

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_JOB_TESTING_JOB_TEST_FIXTURE_H_
