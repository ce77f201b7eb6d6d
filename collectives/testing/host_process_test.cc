// Groups of processes, of which some are killed or stopped.

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "collectives/make_group.h"
#include "collectives/process_group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/file/store.h"
#include "tensor/tensor.h"

namespace hawser::collectives {
namespace {

using ::testing::HasSubstr;

constexpr int kSize = 3;
// Long enough for several segments.
constexpr int64_t kLength = 600'000;

using Operation = std::function<absl::Status(ProcessGroup&)>;

struct Case {
  const char* name;
  Operation run;
};

std::vector<Tensor> Vectors() {
  std::vector<Tensor> tensors;
  for (int i = 0; i < kSize; ++i) {
    tensors.push_back(Tensor::Zeros({kLength / kSize}));
  }
  return tensors;
}

const std::vector<Case>& Cases() {
  static const auto* const cases = new std::vector<Case>{
      {"barrier", [](ProcessGroup& group) { return group.Barrier(); }},
      {"broadcast",
       [](ProcessGroup& group) {
         return group.Broadcast(Tensor::Zeros({kLength}), 1);
       }},
      {"all_reduce",
       [](ProcessGroup& group) {
         return group.AllReduce(Tensor::Zeros({kLength}));
       }},
      {"short_all_reduce",
       [](ProcessGroup& group) {
         return group.AllReduce(Tensor::Zeros({16}));
       }},
      {"reduce",
       [](ProcessGroup& group) {
         return group.Reduce(Tensor::Zeros({kLength}), 0);
       }},
      {"all_gather",
       [](ProcessGroup& group) {
         return group.AllGather(Tensor::Zeros({kLength / kSize}), Vectors());
       }},
      {"gather",
       [](ProcessGroup& group) {
         return group.Gather(
             Tensor::Zeros({kLength / kSize}),
             group.rank() == 2 ? Vectors() : std::vector<Tensor>(), 2);
       }},
      {"scatter",
       [](ProcessGroup& group) {
         return group.Scatter(
             group.rank() == 1 ? Vectors() : std::vector<Tensor>(),
             Tensor::Zeros({kLength / kSize}), 1);
       }},
      {"reduce_scatter",
       [](ProcessGroup& group) {
         return group.ReduceScatter(Vectors(),
                                    Tensor::Zeros({kLength / kSize}));
       }},
      {"all_to_all",
       [](ProcessGroup& group) {
         return group.AllToAll(Vectors(), Vectors());
       }},
      {"messages",
       [](ProcessGroup& group) {
         // Around the ring.
         const Work sent = group.SendAsync(Tensor::Zeros({kLength}),
                                           (group.rank() + 1) % kSize);
         absl::Status received = group.Receive(
             Tensor::Zeros({kLength}), (group.rank() + kSize - 1) % kSize);
         if (!received.ok()) return received;
         return absl::Status(sent.Wait());
       }},
  };
  return *cases;
}

// The program of a rank: runs the operation until it fails, then makes a group
// of the survivors. Writes one line to standard output for each event.
class Rank {
 public:
  Rank(int rank, int output, std::string directory)
      : rank_(rank), output_(output), directory_(std::move(directory)) {}

  [[noreturn]] void Run(const Operation& operation, absl::Duration timeout) {
    Say("begins");
    {
      const auto group = Make("first", rank_, kSize, timeout);
      absl::Status status = operation(*group);
      Say(status.ok() ? "works" : std::string(status.message()));
      while (status.ok()) status = operation(*group);
      Say(absl::StrCat("failed: ", std::string(status.message())));
      status = operation(*group);
      Say(absl::StrCat("refused: ", std::string(status.message())));
    }
    // Ranks 0 and 1 of the new group.
    const auto again = Make("second", rank_ == 2 ? 1 : 0, 2, absl::Seconds(60));
    Tensor sum = Tensor::Full({1000}, rank_);
    const absl::Status status = again->AllReduce(sum);
    Say(status.ok() ? absl::StrCat("again: ", sum.data<float>()[0])
                    : std::string(status.message()));
    _exit(0);
  }

 private:
  std::unique_ptr<ProcessGroup> Make(const std::string& name, int rank,
                                     int size, absl::Duration timeout) {
    auto store = store::FileStore::Open(
        {.path = absl::StrCat(directory_, "/", name), .num_members = size});
    if (!store.ok()) Die(store.status());
    auto group = MakeProcessGroup(
        **store, {.rank = rank,
                  .size = size,
                  .group = {.name = name, .timeout = timeout}});
    if (!group.ok()) Die(group.status());
    return *std::move(group);
  }
  [[noreturn]] void Die(const absl::Status& status) {
    Say(std::string(status.message()));
    _exit(1);
  }
  void Say(const std::string& text) {
    const std::string line = absl::StrCat(text, "\n");
    if (write(output_, line.data(), line.size()) < 0) _exit(1);
  }

  const int rank_;
  const int output_;
  const std::string directory_;
};

// Processes of which rank 1 will fail.
class HostProcessTest : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    directory_ = absl::StrCat(testing::TempDir(), "/host_process_test_",
                              GetParam(), "_", getpid());
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override {
    for (const pid_t pid : pids_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
    for (FILE* output : outputs_) std::fclose(output);
    std::filesystem::remove_all(directory_);
  }

  void Start(absl::Duration timeout) {
    for (int rank = 0; rank < kSize; ++rank) {
      int ends[2];
      ASSERT_EQ(pipe(ends), 0);
      const pid_t pid = fork();
      ASSERT_GE(pid, 0);
      if (pid == 0) {
        Rank(rank, ends[1], directory_).Run(Cases()[GetParam()].run, timeout);
      }
      close(ends[1]);
      pids_.push_back(pid);
      outputs_.push_back(fdopen(ends[0], "r"));
    }
  }
  // The next line of a rank; empty if it has ended.
  std::string Line(int rank) {
    char line[2000];
    if (std::fgets(line, sizeof(line), outputs_[static_cast<size_t>(rank)]) ==
        nullptr) {
      return "";
    }
    std::string text(line);
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }
  void ExpectSurvivorsGoOn() {
    for (const int rank : {0, 2}) {
      EXPECT_THAT(Line(rank), HasSubstr("refused: process group \"first\" "
                                        "cannot be used any more"));
      EXPECT_EQ(Line(rank), "again: 2");
    }
  }

  std::vector<pid_t> pids_;

 private:
  std::string directory_;
  std::vector<FILE*> outputs_;
};

TEST_P(HostProcessTest, ADeadRankIsNamed) {
  // Only its death ends the operations.
  Start(absl::Hours(1));
  for (int rank = 0; rank < kSize; ++rank) {
    ASSERT_EQ(Line(rank), "begins");
    ASSERT_EQ(Line(rank), "works");
  }
  ASSERT_EQ(kill(pids_[1], SIGKILL), 0);
  ASSERT_EQ(waitpid(pids_[1], nullptr, 0), pids_[1]);
  const auto begin = std::chrono::steady_clock::now();
  for (const int rank : {0, 2}) {
    const std::string line = Line(rank);
    EXPECT_THAT(line, HasSubstr("failed: "));
    EXPECT_THAT(line, HasSubstr("rank 1 (process "));
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
  ExpectSurvivorsGoOn();
}

TEST_P(HostProcessTest, AStoppedRankIsNamed) {
  Start(absl::Seconds(1));
  for (int rank = 0; rank < kSize; ++rank) {
    ASSERT_EQ(Line(rank), "begins");
    ASSERT_EQ(Line(rank), "works");
  }
  ASSERT_EQ(kill(pids_[1], SIGSTOP), 0);
  for (const int rank : {0, 2}) {
    const std::string line = Line(rank);
    EXPECT_THAT(line, HasSubstr("failed: "));
    EXPECT_THAT(line, HasSubstr("rank"));
    EXPECT_TRUE(absl::StrContains(line, "rank 1") ||
                absl::StrContains(line, "has ended the group"))
        << line;
  }
  ExpectSurvivorsGoOn();
  // It finds the group ended.
  ASSERT_EQ(kill(pids_[1], SIGCONT), 0);
  EXPECT_THAT(Line(1), HasSubstr("has ended the group: "));
}

std::string CaseName(const testing::TestParamInfo<size_t>& info) {
  return Cases()[info.param].name;
}

INSTANTIATE_TEST_SUITE_P(All, HostProcessTest,
                         testing::Range(size_t{0}, Cases().size()), CaseName);

}  // namespace
}  // namespace hawser::collectives
