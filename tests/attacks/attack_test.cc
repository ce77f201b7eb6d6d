// Attacks on a store and a worker with 2 GiB of memory, which serve others
// meanwhile.
//
// The nightly form requires an otherwise idle machine: it compares times.

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "async/testing/nightly.h"
#include "async/testing/status_matchers.h"
#include "gtest/gtest.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/agent_options.h"
#include "rpc/functions/function_registry.h"
#include "rpc/grpc/transport.h"
#include "store/open_store.h"
#include "store/store.h"
#include "tests/faults/delays.h"
#include "tests/faults/reporting_process.h"
#include "tests/faults/worker_functions.h"
#include "tests/faults/worker_process.h"

namespace hawser::tests {
namespace {

using ::hawser::async::IsOk;

constexpr size_t kMaxDataBytes = size_t{2} << 30;
// Of each phase: before, during and after an attack.
const absl::Duration kPhase =
    async::NightlyOr(absl::Seconds(10), absl::Seconds(1));
// Memory beyond that of before which the heap may keep for later use. The short
// attacks may end before the server notices them.
const int64_t kKeptBytes =
    async::NightlyOr(int64_t{256} << 20, int64_t{1} << 30);
constexpr absl::Duration kCallInterval = absl::Milliseconds(2);

struct Attack {
  const char* name;
  bool on_store;
};

std::ostream& operator<<(std::ostream& os, const Attack& attack) {
  return os << attack.name << (attack.on_store ? "_store" : "_worker");
}

int64_t FromStatus(pid_t pid, const std::string& name) {
  std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
  std::string word;
  while (status >> word && word != name) {
  }
  int64_t kibibytes = -1;
  status >> kibibytes;
  return kibibytes << 10;
}

// The processor time that a process has used.
absl::Duration ProcessorTime(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string line;
  std::getline(file, line);
  // The name in parentheses may have blanks.
  const std::vector<std::string> fields =
      absl::StrSplit(line.substr(line.rfind(')') + 2), ' ');
  int64_t user = 0;
  int64_t system = 0;
  EXPECT_TRUE(absl::SimpleAtoi(fields[11], &user) &&
              absl::SimpleAtoi(fields[12], &system));
  return absl::Seconds(1) * (user + system) / sysconf(_SC_CLK_TCK);
}

class AttackTest : public testing::TestWithParam<Attack> {
 protected:
  void SetUp() override {
    store_victim_ = std::make_unique<ReportingProcess>(
        "tests/soak/soak_worker",
        std::vector<std::string>{"--store=tcp://127.0.0.1:0", "--name=host",
                                 "--rank=0"},
        kMaxDataBytes);
    const std::vector<std::string> words =
        absl::StrSplit(store_victim_->ReadLine().value_or(""), ' ');
    ASSERT_EQ(words.size(), 3u);
    ASSERT_EQ(words[0], "ready");
    master_ = words[2];
    const std::string url = absl::StrCat("tcp://", master_);
    worker_victim_ = std::make_unique<WorkerProcess>(
        WorkerProcessOptions{.store = url,
                             .name = "victim",
                             .rank = 1,
                             .same_host = false,
                             .max_data_bytes = kMaxDataBytes});
    ASSERT_TRUE(worker_victim_->AwaitReady());
    auto store = store::OpenStore(url);
    ASSERT_THAT(store, IsOk());
    store_ = *std::move(store);
    ASSERT_THAT(store_->Set("key", "value"), IsOk());
    rpc::AgentOptions options;
    options.name = "driver";
    options.rank = 0;
    options.job = "faults";
    options.store = store_.get();
    options.transport = std::make_unique<rpc::GrpcTransport>(
        rpc::GrpcTransportOptions{.same_host = false});
    options.registry = &registry_;
    auto driver = rpc::Agent::Start(std::move(options));
    ASSERT_THAT(driver, IsOk());
    driver_ = *std::move(driver);
  }

  ReportingProcess& victim() {
    return GetParam().on_store ? *store_victim_ : *worker_victim_;
  }

  std::unique_ptr<ReportingProcess> StartAttacker() {
    std::vector<std::string> arguments = {
        absl::StrCat("--attack=", GetParam().name),
        absl::StrCat("--address=", GetParam().on_store
                                       ? master_
                                       : worker_victim_->address())};
    if (!GetParam().on_store) {
      uint64_t incarnation = 0;
      EXPECT_TRUE(
          absl::SimpleHexAtoi(worker_victim_->incarnation(), &incarnation));
      arguments.insert(arguments.end(), {"--worker=victim", "--rank=1",
                                         "--member=driver", "--member_rank=0"});
      arguments.push_back(absl::StrCat("--incarnation=", incarnation));
    }
    return std::make_unique<ReportingProcess>("tests/attacks/attacker",
                                              arguments);
  }

  // Calls of a well-behaved peer of the victim; none may fail.
  void CallFor(absl::Duration time, Delays& delays) {
    const absl::Time end = absl::Now() + time;
    while (absl::Now() < end && !HasFailure()) {
      const absl::Time start = absl::Now();
      if (GetParam().on_store) {
        EXPECT_THAT(store_->Get("key"), IsOk());
      } else {
        EXPECT_THAT(driver_->Sync("victim", kApply, 1), IsOk());
      }
      delays.Add(absl::Now() - start);
      // Not a wait for anything: the calls have a fixed rate.
      std::this_thread::sleep_until(absl::ToChronoTime(start + kCallInterval));
    }
  }

 private:
  std::unique_ptr<ReportingProcess> store_victim_;
  std::string master_;
  std::unique_ptr<WorkerProcess> worker_victim_;
  std::unique_ptr<store::Store> store_;
  rpc::FunctionRegistry registry_;
  std::unique_ptr<rpc::Agent> driver_;
};

TEST_P(AttackTest, OthersAreServed) {
  const pid_t pid = victim().pid();
  Delays before;
  CallFor(kPhase, before);
  const int64_t memory_before = FromStatus(pid, "VmRSS:");
  const absl::Duration processor_before = ProcessorTime(pid);
  Delays during;
  std::unique_ptr<ReportingProcess> attacker = StartAttacker();
  ASSERT_EQ(attacker->ReadLine(), "attacking");
  CallFor(kPhase, during);
  const double processor =
      absl::FDivDuration(ProcessorTime(pid) - processor_before, kPhase);
  attacker.reset();
  // Memory comes back.
  const absl::Time ended = absl::Now();
  Delays after;
  while (FromStatus(pid, "VmRSS:") > memory_before + kKeptBytes) {
    CallFor(absl::Milliseconds(100), after);
    ASSERT_LT(absl::Now() - ended, absl::Seconds(30))
        << "the victim has " << FromStatus(pid, "VmRSS:") << " bytes";
  }
  RecordProperty("recovery", absl::FormatDuration(absl::Now() - ended));
  RecordProperty("peak_MiB", absl::StrCat(FromStatus(pid, "VmHWM:") >> 20));
  RecordProperty("cores", absl::StrCat(processor));
  before.Record("before");
  during.Record("during");
  EXPECT_EQ(victim().Wait(absl::ZeroDuration()), -1) << "the victim has ended";
  if (async::IsNightly()) {
    EXPECT_LE(during.Percentile(99), 3 * before.Percentile(99));
  }
}

INSTANTIATE_TEST_SUITE_P(Attacks, AttackTest,
                         testing::Values(Attack{"endless_headers", true},
                                         Attack{"endless_headers", false},
                                         Attack{"forged_senders", false},
                                         Attack{"header_bombs", true},
                                         Attack{"header_bombs", false},
                                         Attack{"open_calls", true},
                                         Attack{"open_calls", false},
                                         Attack{"planted_references", false},
                                         Attack{"repeated_waits", true},
                                         Attack{"unread_replies", true},
                                         Attack{"unread_replies", false}),
                         testing::PrintToStringParamName());

}  // namespace
}  // namespace hawser::tests
