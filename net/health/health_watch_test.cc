#include "net/health/health_watch.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "net/health/health.h"

namespace hawser::net {
namespace {

using ::grpc::health::v1::HealthCheckResponse;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Records the writes: statuses, and the negated status code of Finish.
class KeptWatch final : public HealthWatch {
 public:
  using HealthWatch::HealthWatch;

  std::vector<int> TakeSent() { return std::exchange(sent_, {}); }

 private:
  void Write(ServingStatus status) override { sent_.push_back(status); }
  void Finish(const grpc::Status& status) override {
    sent_.push_back(-static_cast<int>(status.error_code()));
  }

  std::vector<int> sent_;
};

class HealthWatchTest : public testing::Test {
 protected:
  const std::shared_ptr<Health> health_ =
      std::make_shared<Health>(std::vector<std::string>{"a.Service"});
  const std::shared_ptr<KeptWatch> watch_ =
      std::make_shared<KeptWatch>(health_);
};

TEST_F(HealthWatchTest, SendsNotServingBeforeItEnds) {
  watch_->Begin("a.Service");
  EXPECT_THAT(watch_->TakeSent(),
              ElementsAre(HealthCheckResponse::NOT_SERVING));
  watch_->OnWritten(true);
  health_->SetServing(true);
  EXPECT_THAT(watch_->TakeSent(), ElementsAre(HealthCheckResponse::SERVING));
  watch_->OnWritten(true);
  health_->Close();
  EXPECT_THAT(watch_->TakeSent(),
              ElementsAre(HealthCheckResponse::NOT_SERVING));
  watch_->OnWritten(true);
  EXPECT_THAT(watch_->TakeSent(), ElementsAre(-grpc::StatusCode::UNAVAILABLE));
}

TEST_F(HealthWatchTest, SkipsOutdatedStatuses) {
  watch_->Begin("a.Service");
  EXPECT_THAT(watch_->TakeSent(),
              ElementsAre(HealthCheckResponse::NOT_SERVING));
  health_->SetServing(true);
  health_->Close();
  EXPECT_THAT(watch_->TakeSent(), IsEmpty());
  watch_->OnWritten(true);
  EXPECT_THAT(watch_->TakeSent(), ElementsAre(-grpc::StatusCode::UNAVAILABLE));
}

}  // namespace
}  // namespace hawser::net
