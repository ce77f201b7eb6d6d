// Tests of F5: network partitions. The kernel drops packets in a network
// namespace of this process. The tests are skipped if it is not permitted to
// create one.

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "async/check.h"
#include "async/testing/nightly.h"
#include "async/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rpc/identity/worker_info.h"
#include "rpc/testing/raw_client.h"
#include "tests/faults/faults_test_fixture.h"
#include "tests/faults/worker_functions.h"
#include "tests/faults/worker_process.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::IsOkAndHolds;

// User ids by which firewall rules distinguish workers.
constexpr int kUserOfA = 65534;
constexpr int kUserOfB = 65533;

// Limit on the time from the end of a partition until all workers agree.
constexpr absl::Duration kConvergence = absl::Seconds(10);

// The reason why a namespace is not available; null if it is. Set by main.
const char* g_unable = nullptr;

// From the package nftables (bazel/debian_packages.txt), outside of a test's
// PATH.
constexpr char kNft[] = "/usr/sbin/nft";

bool Nft(const std::string& command) {
  return std::system(absl::StrCat(kNft, " '", command, "'").c_str()) == 0;
}

class PartitionTest : public FaultsTest {
 protected:
  // Without shared memory, since only packets are dropped.
  PartitionTest() : FaultsTest(/*same_host=*/false) {}

  void SetUp() override {
    if (g_unable != nullptr) GTEST_SKIP() << "PartitionTest " << g_unable;
    FaultsTest::SetUp();
    ASSERT_TRUE(Nft("add table inet cut"));
    ASSERT_TRUE(
        Nft("add chain inet cut out { type filter hook output priority 0; }"));
    ASSERT_TRUE(
        Nft("add chain inet cut in { type filter hook input priority 0; }"));
    // Incoming packets on loopback do not have a user yet, so the rules match
    // the ports from which "a" and "b" have sent.
    RecordPorts("ports_of_a", kUserOfA);
    RecordPorts("ports_of_b", kUserOfB);
    a_ = &Start("a", 1, [](WorkerProcessOptions& o) { o.uid = kUserOfA; });
    b_ = &Start("b", 2, [](WorkerProcessOptions& o) { o.uid = kUserOfB; });
    ASSERT_TRUE(a_->AwaitReady());
    ASSERT_TRUE(b_->AwaitReady());
    ASSERT_THAT(driver().Sync("a", kPush, "b"), IsOk());
    ASSERT_THAT(driver().Sync("b", kApply, -1), IsOk());
  }

  void TearDown() override {
    if (g_unable != nullptr) return;
    FaultsTest::TearDown();
    EXPECT_TRUE(Nft("delete table inet cut"));
  }

  // Adds the ports from which processes of `user` send to the new set `set`.
  static void RecordPorts(const std::string& set, int user) {
    ASSERT_TRUE(Nft(absl::StrCat("add set inet cut ", set,
                                 " { type inet_service; flags dynamic; "
                                 "size 65535; }")));
    ASSERT_TRUE(Nft(absl::StrCat("add rule inet cut out meta skuid ", user,
                                 " update @", set, " { tcp sport }")));
  }

  // Drops packets on arrival, as a network would: the sender of a packet that
  // is dropped while it leaves is told, and does not count it as sent.
  static void Drop(const std::string& match) {
    ASSERT_TRUE(Nft(absl::StrCat("add rule inet cut in ", match, " drop")));
  }
  // Rules that match packets by sender or receiver.
  static std::string FromA() { return "tcp sport @ports_of_a"; }
  static std::string FromB() { return "tcp sport @ports_of_b"; }
  static std::string ToA() { return "tcp dport @ports_of_a"; }
  static void Heal() { ASSERT_TRUE(Nft("flush chain inet cut in")); }

  static std::string PortOf(const WorkerProcess& worker) {
    return worker.address().substr(worker.address().rfind(':') + 1);
  }

  // The reply of `worker` to a call by a non-member.
  static absl::Status CallRaw(const WorkerProcess& worker,
                              const std::string& name) {
    uint64_t incarnation = 0;
    EXPECT_TRUE(absl::SimpleHexAtoi(worker.incarnation(), &incarnation));
    return rpc::RawClient(rpc::RawClient::GrpcOptions{})
        .Call(worker.address(),
              {.job = "faults",
               .source = "raw",
               .source_rank = rpc::WorkerId(),
               .destination = name,
               .destination_incarnation = rpc::Incarnation{incarnation},
               .autograd = std::nullopt},
              rpc::RawClient::kCallPath,
              rpc::RawClient::FunctionCall(kApply, -2))
        .status();
  }

  // Returns when `worker` has read that it was declared lost.
  static void AwaitFenced(const WorkerProcess& worker, const std::string& name,
                          absl::Time deadline) {
    absl::Status refused;
    do {
      refused = CallRaw(worker, name);
      ASSERT_LT(absl::Now(), deadline) << refused;
    } while (!absl::IsFailedPrecondition(refused));
  }

  // Partitions "a" from all others by dropping the packets that `dropped`
  // matches. Checks both sides during the partition and after its end.
  void ExpectMinorityLosesAndIsFenced(const std::vector<std::string>& dropped);

  WorkerProcess* a_ = nullptr;
  WorkerProcess* b_ = nullptr;
};

void PartitionTest::ExpectMinorityLosesAndIsFenced(
    const std::vector<std::string>& dropped) {
  const absl::Time cut = absl::Now();
  for (const std::string& packets : dropped) Drop(packets);
  EXPECT_TRUE(
      AwaitEvent(rpc::MemberEvent::Kind::kLost, "a", kDetection + kSlack));
  const absl::Status status = driver().Sync("a", kApply, 1).status();
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  // The calls of "a" end too.
  const std::string pushed = a_->ReadLine().value_or("nothing");
  EXPECT_TRUE(absl::StartsWith(pushed, "pushed ")) << pushed;
  EXPECT_LT(absl::Now() - cut, kDetection + 2 * kSlack);
  AwaitLostAt("b", *a_);
  const absl::StatusOr<std::vector<int64_t>> ledger =
      driver().Sync("b", kLedger);
  ASSERT_THAT(ledger, IsOk());

  Heal();
  // "a" declared "b" and the driver lost, which has no effect.
  AwaitFenced(*a_, "a", absl::Now() + kConvergence + kSlack);
  EXPECT_FALSE(
      AwaitEvent(rpc::MemberEvent::Kind::kLost, "b", absl::Milliseconds(1500)));
  EXPECT_THAT(driver().Sync("b", kLedger), IsOkAndHolds(*ledger));
  ASSERT_TRUE(Start("a", 1).AwaitReady());
  EXPECT_THAT(driver().Sync("a", kRelay, "b", 5), IsOk());
}

TEST_F(PartitionTest, F5PartitionedWorkerIsDeclaredLostAndFenced) {
  ExpectMinorityLosesAndIsFenced({FromA(), ToA()});
}

TEST_F(PartitionTest, F5WorkerThatOnlyReceivesIsFenced) {
  ExpectMinorityLosesAndIsFenced({FromA()});
}

TEST_F(PartitionTest, F5WorkerThatOnlySendsIsFenced) {
  ExpectMinorityLosesAndIsFenced({ToA()});
}

// "a" and "b" reach the store and the driver, but not each other.
TEST_F(PartitionTest, F5OneOfTwoThatReportEachOtherSurvives) {
  const rpc::WorkerInfo a = *driver().FindWorker("a");
  const rpc::WorkerInfo b = *driver().FindWorker("b");
  Drop(absl::StrCat(FromA(), " tcp dport ", PortOf(*b_)));
  Drop(absl::StrCat(FromB(), " tcp dport ", PortOf(*a_)));
  const absl::Time cut = absl::Now();
  while (!driver().IsLost(a) && !driver().IsLost(b)) {
    ASSERT_LT(absl::Now() - cut, kDetection + 2 * kSlack);
    Last(absl::Milliseconds(10));
  }
  Heal();
  const absl::Time deadline = absl::Now() + absl::Seconds(2) + kSlack;
  Last(absl::Seconds(2));
  EXPECT_NE(driver().IsLost(a), driver().IsLost(b));
  const bool a_stays = driver().IsLost(b);
  EXPECT_THAT(driver().Sync(a_stays ? a : b, kApply, 1), IsOk());
  AwaitFenced(a_stays ? *b_ : *a_, a_stays ? "b" : "a", deadline);
}

// The partitions are shorter than the lease.
TEST_F(PartitionTest, F5FlappingNetworkLosesNoWorker) {
  const int kFlaps = async::NightlyOr(60, 3);
  for (int i = 0; i < kFlaps; ++i) {
    Drop(FromA());
    Last(absl::Milliseconds(700));
    Heal();
    Last(absl::Milliseconds(700));
  }
  EXPECT_FALSE(driver().IsLost(*driver().FindWorker("a")));
  EXPECT_THAT(driver().Sync("a", kApply, 1), IsOk());
  // The pushes continued, each once and in order.
  const absl::StatusOr<std::vector<int64_t>> ledger =
      driver().Sync("b", kLedger);
  ASSERT_THAT(ledger, IsOk());
  int64_t expected = 0;
  for (int64_t id : *ledger) {
    if (id < 0) continue;
    EXPECT_EQ(id, expected++);
  }
  EXPECT_GT(expected, 0);
}

// Moves this process to a network namespace with a loopback interface. Returns
// null, or the reason why it failed.
const char* EnterNetworkNamespace() {
  if (geteuid() != 0) return "a network namespace requires root";
  HAWSER_CHECK(access(kNft, X_OK) == 0)
      << "cannot run " << kNft << ": apt-get install nftables";
  if (unshare(CLONE_NEWNET) != 0) return "cannot create a network namespace";
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  const bool up = ioctl(fd, SIOCSIFFLAGS, &request) == 0;
  close(fd);
  if (!up) return "cannot bring up the loopback interface";
  return Nft("add table inet probe") ? nullptr : "cannot use nft";
}

}  // namespace
}  // namespace hawser::tests

int main(int argc, char** argv) {
  // Before threads start, since existing threads would stay outside.
  hawser::tests::g_unable = hawser::tests::EnterNetworkNamespace();
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
