// Ranks that are processes, one of which dies or stops during collectives.

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "collectives/gloo/backend.h"
#include "collectives/process_group.h"
#include "gtest/gtest.h"
#include "store/file/store.h"
#include "store/prefix_store.h"
#include "store/store.h"
#include "tensor/tensor.h"

namespace hawser::collectives {
namespace {

constexpr int kSize = 4;
constexpr int kVictim = 2;
constexpr int kCallsBefore = 20;
// Ends a process that hangs.
constexpr unsigned kHangSeconds = 25;
constexpr int64_t kLength = 400'000;

using Operation = std::function<absl::Status(ProcessGroup&)>;

struct NamedOperation {
  const char* name;
  Operation run;
};

absl::Status SendAround(ProcessGroup& group) {
  const int size = group.size();
  const Tensor mine = Tensor::Zeros({kLength});
  const Tensor theirs = Tensor::Zeros({kLength});
  const Work sent = group.SendAsync(mine, (group.rank() + 1) % size);
  const absl::Status received =
      group.Receive(theirs, (group.rank() + size - 1) % size);
  const absl::Status status = sent.Wait();
  return received.ok() ? status : received;
}

const NamedOperation kOperations[] = {
    {"Barrier", [](ProcessGroup& group) { return group.Barrier(); }},
    {"Broadcast",
     [](ProcessGroup& group) {
       return group.Broadcast(Tensor::Zeros({kLength}), 0);
     }},
    {"AllReduce",
     [](ProcessGroup& group) {
       return group.AllReduce(Tensor::Zeros({kLength}));
     }},
    {"AllGather",
     [](ProcessGroup& group) {
       return group.AllGather(Tensor::Zeros({kLength}),
                              Tensor::Zeros({group.size(), kLength}));
     }},
    {"ReduceScatter",
     [](ProcessGroup& group) {
       return group.ReduceScatter(Tensor::Zeros({group.size(), kLength}),
                                  Tensor::Zeros({kLength}));
     }},
    {"AllToAll",
     [](ProcessGroup& group) {
       return group.AllToAll(Tensor::Zeros({group.size(), kLength}),
                             Tensor::Zeros({group.size(), kLength}));
     }},
    {"SendAndReceive", SendAround},
};

std::unique_ptr<ProcessGroup> Join(const std::shared_ptr<store::Store>& job,
                                   const char* prefix, int rank, int size,
                                   absl::Duration timeout, int per_machine) {
  store::PrefixStore store(prefix, job);
  auto backend = MakeGlooBackend(
      store, rank, size, absl::Seconds(20),
      {.machine = absl::StrCat("machine ", rank / per_machine)});
  if (!backend.ok()) {
    std::fprintf(stderr, "%s\n", backend.status().ToString().c_str());
    std::_Exit(2);
  }
  return std::make_unique<ProcessGroup>(
      *std::move(backend), rank, size, ProcessGroupOptions{.timeout = timeout});
}

// The process of a rank. Returns its exit code.
int RunRank(const std::string& path, int rank, const Operation& operation,
            int signal_number, absl::Duration timeout, int per_machine) {
  alarm(kHangSeconds);
  auto file = store::FileStore::Open({.path = path});
  if (!file.ok()) return 7;
  const std::shared_ptr<store::Store> job = *std::move(file);
  auto group = Join(job, "first", rank, kSize, timeout, per_machine);
  std::atomic<int> num_calls = 0;
  std::thread end;
  if (rank == kVictim) {
    end = std::thread([&num_calls, signal_number] {
      while (num_calls < kCallsBefore) num_calls.wait(num_calls.load());
      kill(getpid(), signal_number);
    });
  }
  absl::Status status;
  while (status.ok()) {
    ++num_calls;
    num_calls.notify_all();
    status = operation(*group);
  }
  const std::string text = status.ToString();
  std::fprintf(stderr, "rank %d after %d calls: %s\n", rank, num_calls.load(),
               text.c_str());
  if (!absl::StrContains(text, "rank 2 has died") &&
      !absl::StrContains(text, "rank 2 (process ") &&
      !absl::StrContains(text, "rank 2 did not take part") &&
      !absl::StrContains(text, "rank 2 has sent no message") &&
      !absl::StrContains(text, "rank 2 has not") &&
      !absl::StrContains(text, "rank 2 does not react")) {
    return 3;
  }
  if (!absl::IsFailedPrecondition(operation(*group))) return 4;
  group.reset();
  group = Join(job, "second", rank < kVictim ? rank : rank - 1, kSize - 1,
               absl::Seconds(20), per_machine);
  const Tensor sum = Tensor::Full({5}, 1);
  if (!group->AllReduce(sum).ok()) return 5;
  return sum.ToVector<float>()[4] == kSize - 1 ? 0 : 6;
}

// The operation, whether the rank dies, and the number of ranks on a machine.
using Param = std::tuple<size_t, bool, int>;

class FailureTest : public testing::TestWithParam<Param> {};

TEST_P(FailureTest, OthersNameTheRankAndGoOnWithoutIt) {
  const NamedOperation& operation = kOperations[std::get<0>(GetParam())];
  const bool dies = std::get<1>(GetParam());
  const int per_machine = std::get<2>(GetParam());
  std::string directory = testing::TempDir() + "/gloo_failure_XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  std::vector<pid_t> children;
  for (int rank = 0; rank < kSize; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      // A death is noticed long before the timeout. The timeouts differ, so
      // that the first rank to give up asks the others, and these find its
      // connections closed and wait to hear why.
      const absl::Duration timeout =
          dies ? absl::Minutes(10)
               : absl::Seconds(3) + rank * absl::Milliseconds(200);
      std::_Exit(RunRank(directory + "/store", rank, operation.run,
                         dies ? SIGKILL : SIGSTOP, timeout, per_machine));
    }
    children.push_back(child);
  }
  for (int rank = 0; rank < kSize; ++rank) {
    if (rank == kVictim) continue;
    int status = 0;
    const pid_t child = children[static_cast<size_t>(rank)];
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0)
        << "rank " << rank << ": " << status;
  }
  kill(children[kVictim], SIGKILL);
  EXPECT_EQ(waitpid(children[kVictim], nullptr, 0), children[kVictim]);
  std::filesystem::remove_all(directory);
}

std::string NameOf(const testing::TestParamInfo<Param>& info) {
  return absl::StrCat(kOperations[std::get<0>(info.param)].name,
                      std::get<1>(info.param) ? "Dies" : "Stops",
                      std::get<2>(info.param), "PerMachine");
}

INSTANTIATE_TEST_SUITE_P(
    Gloo, FailureTest,
    testing::Combine(testing::Range(size_t{0}, std::size(kOperations)),
                     testing::Bool(), testing::Values(1, 2, 3)),
    NameOf);

}  // namespace
}  // namespace hawser::collectives
