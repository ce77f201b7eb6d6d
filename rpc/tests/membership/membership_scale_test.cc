// Cost and delays of the membership protocol in large jobs, on the real code.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/testing/manual_executor.h"
#include "async/testing/nightly.h"
#include "async/testing/simulated_clock.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/member_event.h"
#include "rpc/membership/membership.h"
#include "rpc/membership/membership_log.h"
#include "rpc/testing/simulated_store_link.h"
#include "store/hash/store.h"

namespace hawser::rpc {
namespace {

using ::hawser::async::IsOk;

// The views of all workers of a job grow with the square of its size. In a
// large one only every tenth worker has a view; the others just renew their
// leases, so that no worker but the next two after one with a view may die.
const int kSize = async::NightlyOr(10'000, 1000);
const int kWithoutView = async::NightlyOr(9, 0);

// A job whose workers share a store, a clock and a thread.
class Job {
 public:
  explicit Job(int size) : workers_(size) {
    for (int rank = 0; rank < size; ++rank) Join(rank);
    // All have heard of all, and may declare others lost.
    Advance(absl::Seconds(5));
  }
  ~Job() { workers_.clear(); }

  void Advance(absl::Duration time) {
    constexpr absl::Duration kStep = absl::Milliseconds(50);
    for (absl::Duration t; t < time; t += kStep) {
      clock_.AdvanceBy(kStep);
      executor_.RunAll();
    }
  }

  void Kill(int rank) { workers_[rank].reset(); }

  // Number of living workers with a view.
  int64_t num_views() const {
    return std::count_if(
        workers_.begin(), workers_.end(), [](const auto& worker) {
          return worker != nullptr && worker->membership != nullptr;
        });
  }

  // Calls to the store of workers with a view.
  int64_t num_messages() const { return num_messages_; }

  // Smallest number of members, and of losses, that a living worker knows.
  int64_t FewestJoins() const { return Fewest(&Worker::num_joined); }
  int64_t FewestLosses() const { return Fewest(&Worker::num_lost); }
  int64_t MostLosses() const {
    int64_t most = 0;
    for (const auto& worker : workers_) {
      if (worker == nullptr || worker->membership == nullptr) continue;
      most = std::max(most, worker->num_lost);
    }
    return most;
  }

  // Time until each living worker knows of `losses`; more than `limit` if it
  // does not within it.
  absl::Duration TimeUntilAllKnow(int64_t losses, absl::Duration limit) {
    const async::MonotonicTime start = clock_.Now();
    while (FewestLosses() < losses &&
           async::TimeBetween(start, clock_.Now()) <= limit) {
      Advance(absl::Milliseconds(50));
    }
    return async::TimeBetween(start, clock_.Now());
  }

 private:
  struct Worker {
    int64_t num_joined = 0;
    int64_t num_lost = 0;
    std::unique_ptr<SimulatedStoreLink> link;
    std::unique_ptr<MembershipLog> log;
    std::unique_ptr<Membership> membership;
  };

  void Join(int rank) {
    workers_[rank] = std::make_unique<Worker>();
    Worker& worker = *workers_[rank];
    const WorkerInfo self = {
        .name = absl::StrCat("w", rank),
        .id = WorkerId(rank),
        .incarnation = Incarnation{1000 + static_cast<uint64_t>(rank)},
        .address = "inproc:1"};
    const LivenessOptions liveness;
    if (kWithoutView > 0 && rank % (1 + kWithoutView) != 0) {
      ASSERT_THAT(log_.Renew(self.incarnation, 0, liveness.silent_limit),
                  IsOk());
      ASSERT_THAT(log_.Append(JoinedEvent(self)), IsOk());
      RenewFromNowOn(rank, self.incarnation);
      return;
    }
    // Once on the way to the store, and once on the way back.
    worker.link = std::make_unique<SimulatedStoreLink>(
        &store_, SimulatedStoreLink::Hooks{.on_way = [this] {
          ++num_ways_;
          num_messages_ = num_ways_ / 2;
        }});
    worker.log = std::make_unique<MembershipLog>(worker.link.get(), "job");
    ASSERT_THAT(worker.log->Renew(self.incarnation, 0, liveness.silent_limit),
                IsOk());
    ASSERT_THAT(worker.log->Append(JoinedEvent(self)), IsOk());
    worker.membership = std::make_unique<Membership>(
        Membership::Options{.self = self,
                            .liveness = liveness,
                            .clock = &clock_,
                            .executor = &executor_,
                            .log = worker.log.get()},
        [&worker](const MemberEvent& event) {
          if (event.kind == MemberEvent::Kind::kJoined) ++worker.num_joined;
          if (event.kind == MemberEvent::Kind::kLost) ++worker.num_lost;
        });
    worker.membership->Start();
    executor_.RunAll();
  }

  // For a worker without a view.
  void RenewFromNowOn(int rank, Incarnation incarnation) {
    clock_.CallAfter(LivenessOptions().heartbeat_interval, [this, rank,
                                                            incarnation] {
      if (workers_[rank] == nullptr) return;
      EXPECT_THAT(log_.Renew(incarnation, 1, LivenessOptions().silent_limit),
                  IsOk());
      RenewFromNowOn(rank, incarnation);
    });
  }

  int64_t Fewest(int64_t Worker::*count) const {
    int64_t fewest = INT64_MAX;
    for (const auto& worker : workers_) {
      if (worker == nullptr || worker->membership == nullptr) continue;
      fewest = std::min(fewest, (*worker).*count);
    }
    return fewest;
  }

  int64_t num_ways_ = 0;
  int64_t num_messages_ = 0;
  async::ManualExecutor executor_;
  async::SimulatedClock clock_;
  store::HashStore store_{{.clock = &clock_}};
  MembershipLog log_{&store_, "job"};
  std::vector<std::unique_ptr<Worker>> workers_;
};

double MessagesPerWorkerAndSecond(int size) {
  Job job(size);
  EXPECT_EQ(job.FewestJoins(), size);
  const int64_t before = job.num_messages();
  job.Advance(absl::Seconds(20));
  EXPECT_EQ(job.MostLosses(), 0);
  return static_cast<double>(job.num_messages() - before) /
         static_cast<double>(job.num_views()) / 20;
}

TEST(MembershipScaleTest, MessagesPerWorkerDoNotGrowWithTheJob) {
  const double small = MessagesPerWorkerAndSecond(kSize / 100);
  EXPECT_NEAR(small, 2, 0.2);
  EXPECT_NEAR(MessagesPerWorkerAndSecond(kSize) / small, 1, 0.1);
}

TEST(MembershipScaleTest, LossOfOneIsKnownToAllInTime) {
  constexpr absl::Duration kLimit = absl::Milliseconds(3500);
  Job job(kSize);
  // After one with a view.
  job.Kill(kSize / 2 + 1);
  EXPECT_LE(job.TimeUntilAllKnow(1, kLimit), kLimit);
  job.Advance(absl::Seconds(10));
  EXPECT_EQ(job.MostLosses(), 1);
}

TEST(MembershipScaleTest, LossOfOneInTenIsKnownToAllInTime) {
  constexpr absl::Duration kLimit = absl::Seconds(10);
  Job job(kSize);
  int64_t dead = 0;
  for (int rank = 0; rank < kSize; ++rank) {
    // Pairs of neighbours.
    if (rank % 20 != 1 && rank % 20 != 2) continue;
    job.Kill(rank);
    ++dead;
  }
  // More that lie side by side, where all have a view.
  for (int rank = kSize / 2 + 3; kWithoutView == 0 && rank < kSize / 2 + 20;
       ++rank) {
    job.Kill(rank);
    ++dead;
  }
  EXPECT_LE(job.TimeUntilAllKnow(dead, kLimit), kLimit);
  job.Advance(absl::Seconds(10));
  EXPECT_EQ(job.MostLosses(), dead);
}

}  // namespace
}  // namespace hawser::rpc
