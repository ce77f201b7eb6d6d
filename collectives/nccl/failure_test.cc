// Calls of NCCL in their order, and each way in which they fail, with a fake.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "async/testing/status_matchers.h"
#include "collectives/host/backend.h"
#include "collectives/loopback/backend.h"
#include "collectives/nccl/backend.h"
#include "collectives/nccl/device_messages.h"
#include "collectives/nccl/reduction.h"
#include "collectives/nccl/testing/fake_library.h"
#include "collectives/p2p_op.h"
#include "collectives/process_group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "store/file/store.h"
#include "store/hash/store.h"
#include "tensor/device.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace hawser::collectives {
namespace {

using ::hawser::async::IsOk;
using ::hawser::async::StatusIs;
using tensor::DType;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kCode = [](absl::StatusCode code, const std::string& text) {
  return StatusIs(code, HasSubstr(text));
};

// Ranks that are threads.
class NcclFailureTest : public testing::Test {
 protected:
  ~NcclFailureTest() override {
    EXPECT_EQ(machine_->NumCommunicators(), 0) << "a communicator has leaked";
  }

  FakeNcclMachine& machine() { return *machine_; }

  // Connects all ranks, each in a thread that then runs `body`.
  void RunRanks(
      int size,
      const std::function<void(int, absl::StatusOr<std::unique_ptr<Backend>>)>&
          body,
      const NcclConfig& config = {}, tensor::Device device = tensor::kCpu) {
    store::HashStore store;
    std::vector<std::unique_ptr<Backend>> controls = MakeLoopbackBackends(size);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        body(rank, MakeNcclBackend(
                       store, rank, size, absl::Seconds(20),
                       machine_->MakeLibrary(rank, device),
                       std::move(controls[static_cast<size_t>(rank)]), config));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  // The same with groups, which must have come about.
  void RunGroups(int size, const std::function<void(ProcessGroup&)>& body,
                 absl::Duration timeout = absl::Seconds(20),
                 tensor::Device device = tensor::kCpu) {
    RunGroups(
        size, body, [=](int) { return timeout; }, device);
  }
  // With a timeout for each rank.
  void RunGroups(int size, const std::function<void(ProcessGroup&)>& body,
                 const std::function<absl::Duration(int)>& timeout,
                 tensor::Device device = tensor::kCpu) {
    RunRanks(
        size,
        [&](int rank, absl::StatusOr<std::unique_ptr<Backend>> backend) {
          ASSERT_THAT(backend, IsOk());
          ProcessGroup group(*std::move(backend), rank, size,
                             {.timeout = timeout(rank)});
          body(group);
        },
        {}, device);
  }

  // The calls after those that connect.
  std::vector<std::string> CallsOfOperations(int rank) const {
    std::vector<std::string> calls = machine_->Calls(rank);
    const auto connected =
        std::find(calls.begin(), calls.end(), "cudaEventRecord");
    if (connected == calls.end()) return {"not connected"};
    return {connected + 1, calls.end()};
  }

 private:
  const std::shared_ptr<FakeNcclMachine> machine_ =
      std::make_shared<FakeNcclMachine>();
};

TEST_F(NcclFailureTest, AnIdThenACommunicatorThenOperations) {
  RunGroups(2, [](ProcessGroup& group) {
    ASSERT_THAT(group.AllReduce({Tensor::Zeros({4}), Tensor::Zeros({0}),
                                 Tensor::Zeros({5})}),
                IsOk());
  });
  for (const int rank : {0, 1}) {
    std::vector<std::string> calls = machine().Calls(rank);
    if (rank == 0) {
      const auto id = std::find(calls.begin(), calls.end(), "ncclGetUniqueId");
      ASSERT_NE(id, calls.end());
      calls.erase(id);
    }
    EXPECT_THAT(
        calls,
        ElementsAre("cudaEventRecord of the device", "ncclCommInitRankConfig",
                    "cudaStreamWaitEvent", "ncclGroupStart", "ncclGroupEnd",
                    "cudaEventRecord", "cudaEventRecord of the device",
                    "cudaStreamWaitEvent", "ncclGroupStart", "ncclAllReduce",
                    "ncclAllReduce", "ncclGroupEnd", "cudaEventRecord",
                    "ncclCommFinalize", "ncclCommDestroy"));
    EXPECT_EQ(machine().NumThreads(rank), 1);
  }
}

TEST_F(NcclFailureTest, ListsBehindEachOtherTakeOneCall) {
  RunGroups(2, [](ProcessGroup& group) {
    const Tensor input = Tensor::Full({2, 3}, 1);
    const Tensor row = Tensor::Zeros({3});
    ASSERT_THAT(group.AllGather(row, Tensor::Zeros({2, 3})), IsOk());
    ASSERT_THAT(group.ReduceScatter(input, row), IsOk());
    ASSERT_THAT(group.AllGather(row, {Tensor::Zeros({3}), Tensor::Zeros({3})}),
                IsOk());
    ASSERT_THAT(
        group.ReduceScatter({Tensor::Zeros({3}), Tensor::Zeros({3})}, row),
        IsOk());
  });
  std::vector<std::string> calls;
  for (const std::string& call : CallsOfOperations(0)) {
    if (call.starts_with("nccl")) calls.push_back(call);
  }
  EXPECT_THAT(
      calls,
      ElementsAre("ncclGroupStart", "ncclAllGather", "ncclGroupEnd",
                  "ncclGroupStart", "ncclReduceScatter", "ncclGroupEnd",
                  "ncclGroupStart", "ncclBroadcast", "ncclBroadcast",
                  "ncclGroupEnd", "ncclGroupStart", "ncclReduce", "ncclReduce",
                  "ncclGroupEnd", "ncclCommFinalize", "ncclCommDestroy"));
}

TEST_F(NcclFailureTest, AllToAllIsOneGroupOfSendsAndReceives) {
  RunGroups(3, [](ProcessGroup& group) {
    ASSERT_THAT(group.AllToAll(Tensor::Zeros({3, 2}), Tensor::Zeros({3, 2})),
                IsOk());
  });
  EXPECT_THAT(
      CallsOfOperations(1),
      ElementsAre("cudaEventRecord of the device", "cudaStreamWaitEvent",
                  "ncclGroupStart", "cudaMemcpyAsync", "ncclSend", "ncclSend",
                  "ncclRecv", "ncclRecv", "ncclGroupEnd", "cudaEventRecord",
                  "ncclCommFinalize", "ncclCommDestroy"));
}

TEST_F(NcclFailureTest, AnAsynchronousOperationMarksItsOperandsAtTheCall) {
  RunGroups(1, [this](ProcessGroup& group) {
    absl::Notification blocked;
    // Holds the background back.
    const Work first = group.RunInOrder([&] {
      blocked.WaitForNotification();
      return absl::OkStatus();
    });
    const size_t before = machine().Calls(0).size();
    const Work second = group.AllReduceAsync(Tensor::Zeros({4}));
    EXPECT_EQ(machine().Calls(0).size(), before + 1);
    EXPECT_EQ(machine().Calls(0).back(), "cudaEventRecord of the device");
    blocked.Notify();
    EXPECT_THAT(second.Wait(), IsOk());
    const std::vector<std::string> calls = machine().Calls(0);
    // No other mark was made.
    EXPECT_EQ(calls[before + 1], "cudaStreamWaitEvent");
    EXPECT_THAT(first.Wait(), IsOk());
  });
}

TEST_F(NcclFailureTest, ACopyOfOperandsIsMadeBeforeTheMark) {
  RunGroups(1, [this](ProcessGroup& group) {
    absl::Notification blocked;
    const Work first = group.RunInOrder([&] {
      blocked.WaitForNotification();
      return absl::OkStatus();
    });
    const size_t before = machine().Calls(0).size();
    const Tensor column = *Tensor::Zeros({4, 2}).Select(1, 0);
    const Work second = group.AllReduceAsync(column);
    EXPECT_EQ(machine().Calls(0).size(), before);
    blocked.Notify();
    EXPECT_THAT(second.Wait(), IsOk());
    EXPECT_THAT(first.Wait(), IsOk());
  });
}

TEST_F(NcclFailureTest, OptionsReachNccl) {
  RunRanks(
      2,
      [](int /*rank*/, const absl::StatusOr<std::unique_ptr<Backend>>& made) {
        ASSERT_THAT(made, IsOk());
      },
      {.blocking = true, .min_ctas = 2, .max_ctas = 8});
  for (const int rank : {0, 1}) {
    const std::vector<NcclConfig> configs = machine().Configs(rank);
    ASSERT_EQ(configs.size(), 1u);
    EXPECT_TRUE(configs[0].blocking);
    EXPECT_EQ(configs[0].min_ctas, 2);
    EXPECT_EQ(configs[0].max_ctas, 8);
    EXPECT_FALSE(configs[0].cga_cluster_size.has_value());
  }
}

TEST_F(NcclFailureTest, TensorsOfTheCpuGoOverTheControlGroup) {
  RunGroups(
      2,
      [](ProcessGroup& group) {
        const Tensor data = Tensor::Full({3}, 1);
        ASSERT_THAT(group.AllReduce(data), IsOk());
        EXPECT_EQ(data.ToVector<float>(), std::vector<float>({2, 2, 2}));
        ASSERT_THAT(group.Barrier(), IsOk());
      },
      absl::Seconds(20), tensor::Cuda(0));
  EXPECT_THAT(CallsOfOperations(0),
              ElementsAre("ncclCommFinalize", "ncclCommDestroy"));
}

TEST_F(NcclFailureTest, ServesItsOwnDeviceAndTheCpu) {
  RunRanks(
      1,
      [](int /*rank*/, const absl::StatusOr<std::unique_ptr<Backend>>& made) {
        ASSERT_THAT(made, IsOk());
        EXPECT_EQ((*made)->ForDevice(tensor::Cuda(1)), made->get());
        EXPECT_EQ((*made)->ForDevice(tensor::Cuda(0)), nullptr);
        EXPECT_EQ((*made)->ForDevice(tensor::kCpu)->name(), "loopback");
      },
      {}, tensor::Cuda(1));
}

TEST_F(NcclFailureTest, ARankThatCannotConnectEndsTheOthers) {
  machine().FailNext(2, "ncclCommInitRankConfig",
                     absl::InvalidArgumentError("duplicate GPU"));
  RunRanks(3, [](int rank,
                 const absl::StatusOr<std::unique_ptr<Backend>>& made) {
    if (rank == 2) {
      EXPECT_THAT(made.status(),
                  kCode(absl::StatusCode::kInvalidArgument, "duplicate GPU"));
    } else {
      EXPECT_THAT(made.status(), StatusIs(absl::StatusCode::kAborted,
                                          AllOf(HasSubstr("rank 2"),
                                                HasSubstr("duplicate GPU"))));
    }
  });
}

TEST_F(NcclFailureTest, ARankWithoutAnIdEndsTheOthers) {
  machine().FailNext(0, "ncclGetUniqueId",
                     absl::UnavailableError("no interface"));
  RunRanks(3, [](int rank,
                 const absl::StatusOr<std::unique_ptr<Backend>>& made) {
    EXPECT_THAT(made.status(),
                StatusIs(rank == 0 ? absl::StatusCode::kUnavailable
                                   : absl::StatusCode::kAborted,
                         HasSubstr("no interface")));
    if (rank != 0) {
      EXPECT_THAT(made.status(), kCode(absl::StatusCode::kAborted, "rank 0"));
    }
  });
}

TEST_F(NcclFailureTest, ARankWithoutALibraryEndsTheOthers) {
  for (const int without : {0, 1}) {
    store::HashStore store;
    std::vector<std::unique_ptr<Backend>> controls = MakeLoopbackBackends(2);
    std::vector<absl::Status> statuses(2);
    std::vector<std::thread> threads;
    for (int rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        const auto index = static_cast<size_t>(rank);
        absl::StatusOr<std::unique_ptr<NcclLibrary>> library =
            absl::FailedPreconditionError("no GPU");
        if (rank != without) library = machine().MakeLibrary(rank);
        statuses[index] =
            MakeNcclBackend(store, rank, 2, absl::Seconds(20),
                            std::move(library), std::move(controls[index]))
                .status();
      });
    }
    for (std::thread& thread : threads) thread.join();
    const auto index = static_cast<size_t>(without);
    EXPECT_THAT(statuses[index],
                kCode(absl::StatusCode::kFailedPrecondition, "no GPU"));
    EXPECT_THAT(statuses[1 - index],
                StatusIs(absl::StatusCode::kAborted,
                         AllOf(HasSubstr(absl::StrCat("rank ", without)),
                               HasSubstr("no GPU"))));
  }
}

// Each function that enqueues.
class FailedCallTest : public NcclFailureTest,
                       public testing::WithParamInterface<std::string> {};

TEST_P(FailedCallTest, EndsTheGroupOnAllRanksByName) {
  RunGroups(2, [this](ProcessGroup& group) {
    ASSERT_THAT(group.Barrier(), IsOk());
    if (group.rank() == 1) {
      machine().FailNext(1, GetParam(),
                         absl::InvalidArgumentError("unhandled cuda error"));
    }
    const Tensor data = Tensor::Zeros({8});
    const absl::Status status = group.AllReduce(data);
    if (group.rank() == 1) {
      EXPECT_THAT(status,
                  kCode(absl::StatusCode::kInternal, "unhandled cuda error"));
    } else {
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kAborted,
                                   AllOf(HasSubstr("rank 1"),
                                         HasSubstr("unhandled cuda error"))));
    }
    EXPECT_THAT(group.AllReduce(data),
                StatusIs(absl::StatusCode::kFailedPrecondition));
  });
  const std::vector<std::string> calls = machine().Calls(1);
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "ncclCommAbort"), 1);
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "ncclCommDestroy"), 0);
  // A group of calls is always ended.
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "ncclGroupStart"),
            std::count(calls.begin(), calls.end(), "ncclGroupEnd"));
}

INSTANTIATE_TEST_SUITE_P(All, FailedCallTest,
                         testing::Values("cudaStreamWaitEvent", "ncclAllReduce",
                                         "ncclGroupEnd"),
                         [](const auto& test) { return test.param; });

TEST_F(NcclFailureTest, AnAsynchronousErrorEndsTheGroup) {
  RunGroups(2, [this](ProcessGroup& group) {
    ASSERT_THAT(group.Barrier(), IsOk());
    const Tensor data = Tensor::Zeros({8});
    if (group.rank() == 0) {
      // While the operation waits for rank 1, which does not call it.
      machine().SetAsyncErrorAfter(
          0, "cudaEventRecord",
          absl::UnavailableError("ncclRemoteError: connection closed"));
      EXPECT_THAT(group.AllReduce(data),
                  kCode(absl::StatusCode::kUnavailable, "ncclRemoteError"));
      return;
    }
    const absl::Status status = group.Receive(data, 0);
    EXPECT_THAT(status, AnyOf(StatusIs(absl::StatusCode::kAborted),
                              StatusIs(absl::StatusCode::kUnavailable)));
    EXPECT_THAT(std::string(status.message()), HasSubstr("ncclRemoteError"));
  });
}

TEST_F(NcclFailureTest, AllRanksLateAreNotBlamed) {
  RunGroups(
      2,
      [this](ProcessGroup& group) {
        ASSERT_THAT(group.Barrier(), IsOk());
        if (group.rank() == 0) machine().StopDevice(1);
        ASSERT_THAT(group.Barrier(), IsOk());
        const absl::Status status = group.AllReduce(Tensor::Zeros({8}));
        EXPECT_THAT(
            status,
            AnyOf(StatusIs(absl::StatusCode::kDeadlineExceeded,
                           HasSubstr("though all ranks have called it")),
                  StatusIs(absl::StatusCode::kAborted,
                           HasSubstr("though all ranks have called it"))));
      },
      absl::Milliseconds(200));
  for (const int rank : {0, 1}) {
    const std::vector<std::string> calls = machine().Calls(rank);
    EXPECT_EQ(calls.back(), "ncclCommAbort");
  }
}

TEST_F(NcclFailureTest, ARankThatIsLateIsNamedAlone) {
  RunGroups(
      3,
      [](ProcessGroup& group) {
        ASSERT_THAT(group.Barrier(), IsOk());
        if (group.rank() == 1) {
          // Ends when the others have ended the group.
          Tensor none = Tensor::Zeros({1});
          EXPECT_THAT(group.Receive(none, 0), Not(IsOk()));
          return;
        }
        EXPECT_THAT(
            group.AllReduce(Tensor::Zeros({8})),
            AnyOf(StatusIs(absl::StatusCode::kDeadlineExceeded,
                           HasSubstr("rank 1 has not taken part in time")),
                  StatusIs(absl::StatusCode::kAborted,
                           HasSubstr("rank 1 has not taken part in time"))));
      },
      [](int rank) {
        return rank == 1 ? absl::Hours(1) : absl::Milliseconds(300);
      });
}

TEST_F(NcclFailureTest, ARankThatLeavesEndsTheOthers) {
  const auto begin = std::chrono::steady_clock::now();
  RunGroups(3, [](ProcessGroup& group) {
    ASSERT_THAT(group.AllReduce(Tensor::Zeros({8})), IsOk());
    if (group.rank() == 1) return;
    EXPECT_THAT(group.AllReduce(Tensor::Zeros({8})),
                AnyOf(StatusIs(absl::StatusCode::kUnavailable,
                               HasSubstr("rank 1 has left the group")),
                      StatusIs(absl::StatusCode::kAborted,
                               HasSubstr("rank 1 has left the group"))));
  });
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
}

TEST_F(NcclFailureTest, MessagesOfTheLeavingAreReceived) {
  RunGroups(3, [](ProcessGroup& group) {
    ASSERT_THAT(group.Barrier(), IsOk());
    if (group.rank() == 2) return;
    // The others go on without it.
    Tensor data = Tensor::Full({1000}, group.rank() + 1);
    if (group.rank() == 0) {
      EXPECT_THAT(group.Send(data, 1, 7), IsOk());
    } else {
      EXPECT_THAT(group.Receive(data, 0, 7), IsOk());
      EXPECT_EQ(data.ToVector<float>()[999], 1);
    }
  });
}

TEST_F(NcclFailureTest, AMessageWithoutACounterpartIsNamed) {
  for (const int waits : {0, 1}) {
    RunGroups(
        2,
        [&](ProcessGroup& group) {
          const bool sends = group.rank() == 0;
          const Tensor data = Tensor::Zeros({10});
          const Work work = sends ? group.SendAsync(data, 1, 3)
                                  : group.ReceiveAsync(data, 0, 4);
          const char* const text =
              waits == 0 ? "rank 1 has not received the message of 40 bytes "
                           "with tag 3 in time"
                         : "rank 0 has not sent a message of 40 bytes with tag "
                           "4 in time";
          // The other rank has no timeout.
          EXPECT_THAT(
              work.Wait(),
              kCode(group.rank() == waits ? absl::StatusCode::kDeadlineExceeded
                                          : absl::StatusCode::kAborted,
                    text));
        },
        [&](int rank) {
          return rank == waits ? absl::Milliseconds(200) : absl::Hours(1);
        });
  }
}

TEST_F(NcclFailureTest, AFailedSendEndsTheReceive) {
  RunGroups(2, [this](ProcessGroup& group) {
    ASSERT_THAT(group.Barrier(), IsOk());
    Tensor data = Tensor::Zeros({10});
    if (group.rank() == 0) {
      machine().FailNext(0, "ncclSend", absl::InternalError("broken link"));
      EXPECT_THAT(group.Send(data, 1),
                  kCode(absl::StatusCode::kInternal, "broken link"));
    } else {
      EXPECT_THAT(
          group.Receive(data, 0),
          StatusIs(absl::StatusCode::kAborted,
                   AllOf(HasSubstr("rank 0"), HasSubstr("broken link"))));
    }
  });
}

TEST_F(NcclFailureTest, AFailedSendEndsItsBatch) {
  RunGroups(2, [this](ProcessGroup& group) {
    ASSERT_THAT(group.Barrier(), IsOk());
    const Tensor data = Tensor::Zeros({10});
    if (group.rank() == 0) {
      machine().FailNext(0, "ncclSend", absl::InternalError("broken link"));
      // The send ends the group, and so the receive; the error is of the one
      // that has ended first.
      EXPECT_THAT(group.BatchSendReceive({P2pOp::Receive(Tensor::Zeros({1}), 1),
                                          P2pOp::Send(data, 1)}),
                  StatusIs(absl::StatusCode::kInternal,
                           AllOf(AnyOf(HasSubstr("receive from rank 1"),
                                       HasSubstr("send to rank 1")),
                                 HasSubstr("broken link"))));
    } else {
      EXPECT_THAT(group.BatchSendReceive({P2pOp::Receive(data, 0)}),
                  kCode(absl::StatusCode::kAborted, "broken link"));
    }
  });
}

TEST_F(NcclFailureTest, TagsHaveABound) {
  RunGroups(1, [this](ProcessGroup& group) {
    const Tensor data = Tensor::Zeros({1});
    const uint32_t tag = DeviceMessages::kMaxTag + 1;
    const auto refused =
        kCode(absl::StatusCode::kInvalidArgument, "1073741823");
    const size_t before = machine().Calls(0).size();
    EXPECT_THAT(group.Send(data, 0, tag), refused);
    EXPECT_THAT(group.BatchSendReceive(
                    {P2pOp::Send(data, 0), P2pOp::Receive(data, 0, tag)}),
                refused);
    EXPECT_EQ(machine().Calls(0).size(), before);
  });
}

TEST_F(NcclFailureTest, DestructionEndsWhatIsUnderWay) {
  RunGroups(2, [](ProcessGroup& group) {
    ASSERT_THAT(group.Barrier(), IsOk());
    if (group.rank() == 1) return;
    (void)group.AllReduceAsync(Tensor::Zeros({8}));
    (void)group.SendAsync(Tensor::Zeros({8}), 1);
  });
}

TEST(NcclReductionTest, BitwiseOperationsAreNamed) {
  for (const ReduceOp op :
       {ReduceOp::kBitAnd, ReduceOp::kBitOr, ReduceOp::kBitXor}) {
    EXPECT_THAT(CheckNcclReduction({.dtype = DType::kI32, .op = op}),
                StatusIs(absl::StatusCode::kUnimplemented,
                         HasSubstr(absl::StrCat(
                             "i32 by ", std::string(ReduceOpName(op))))));
  }
}

// Ranks that are processes, each with a device of its own which never finishes.
TEST(NcclProcessTest, AKilledRankIsNamed) {
  const std::string directory =
      absl::StrCat(testing::TempDir(), "/nccl_process_test_", getpid());
  const auto make = [&](int rank) {
    auto store = store::FileStore::Open({.path = directory, .num_members = 2});
    EXPECT_THAT(store, IsOk());
    auto control = MakeHostBackend(**store, rank, 2, absl::Seconds(20));
    EXPECT_THAT(control, IsOk());
    return *std::move(control);
  };
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto control = make(1);
    pause();
    _exit(0);
  }
  const auto machine = std::make_shared<FakeNcclMachine>();
  store::HashStore ids;
  std::unique_ptr<Backend> control = make(0);
  ASSERT_EQ(kill(child, SIGKILL), 0);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_THAT(MakeNcclBackend(ids, 0, 2, absl::Hours(1),
                              machine->MakeLibrary(0), std::move(control))
                  .status(),
              kCode(absl::StatusCode::kUnavailable, "rank 1 (process "));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
  EXPECT_EQ(machine->NumCommunicators(), 0);
}

}  // namespace
}  // namespace hawser::collectives
