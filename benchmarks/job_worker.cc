#include "benchmarks/job_worker.h"

#include <atomic>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "async/status_macros.h"
#include "launch/worker.h"
#include "rpc/agent/agent.h"
#include "rpc/functions/function.h"
#include "rpc/functions/function_registry.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/member_event.h"
#include "tensor/tensor.h"

namespace hawser::benchmarks {
namespace {

inline constexpr rpc::Function<int64_t(int64_t)> kEcho{"bench.Echo"};
inline constexpr rpc::Function<int64_t(Tensor)> kSink{"bench.Sink"};
constexpr char kFirst[] = "worker0";
constexpr int64_t kMiB = 1 << 20;

class JobWorker {
 public:
  JobWorker(const JobPlan& plan, int rank) : plan_(plan), rank_(rank) {}

  // Returns the number that is part of the reply.
  absl::StatusOr<int64_t> Serve(const std::string& line) {
    std::istringstream words(line);
    std::string request;
    words >> request;
    if (request == "join") return Join();
    if (worker_ == nullptr) return absl::FailedPreconditionError("not joined");
    rpc::Agent& agent = worker_->agent();
    if (request == "call") return agent.Sync(kFirst, kEcho, int64_t{rank_});
    if (request == "lost") return NumLost();
    if (request == "store_calls") return Counter("store.calls");
    if (request == "leave") {
      RETURN_IF_ERROR(worker_->Shutdown());
      return 0;
    }
    int64_t rounds = 0;
    if (request == "call_all" && words >> rounds) return CallAll(rounds);
    int64_t calls = 0, mib = 0;
    if (request == "send" && words >> calls >> mib) return Send(calls, mib);
    return absl::InvalidArgumentError("unknown request: " + line);
  }

 private:
  absl::StatusOr<int64_t> Join() {
    RETURN_IF_ERROR(registry_.Register(kEcho, [](int64_t x) { return x; }));
    RETURN_IF_ERROR(registry_.Register(
        kSink, [](const Tensor& tensor) { return tensor.byte_size(); }));
    ASSIGN_OR_RETURN(
        worker_,
        launch::Worker::Start(
            {.identity = {.rank = rank_, .world_size = plan_.num_workers},
             .meeting_place = {.url = "tcp://" + plan_.master},
             .registry = &registry_}));
    const rpc::Incarnation self = worker_->agent().info().incarnation;
    worker_->agent().WatchMembers([this, self](const rpc::MemberEvent& event) {
      if (event.kind == rpc::MemberEvent::Kind::kLost &&
          event.worker.incarnation != self) {
        ++num_lost_;
      }
    });
    return 0;
  }

  absl::StatusOr<int64_t> CallAll(int64_t rounds) {
    for (int64_t round = 0; round < rounds; ++round) {
      // In another order at each worker.
      for (int i = 1; i < plan_.num_workers; ++i) {
        const rpc::WorkerId to((rank_ + i) % plan_.num_workers);
        RETURN_IF_ERROR(
            worker_->agent().Sync(to, kEcho, int64_t{rank_}).status());
      }
    }
    return rounds;
  }

  absl::StatusOr<int64_t> Send(int64_t calls, int64_t mib) {
    if (tensor_.byte_size() != mib * kMiB) {
      tensor_ = Tensor::Ones({mib * kMiB / 4});
    }
    for (int64_t i = 0; i < calls; ++i) {
      RETURN_IF_ERROR(worker_->agent().Sync(kFirst, kSink, tensor_).status());
    }
    return calls;
  }

  absl::StatusOr<int64_t> NumLost() const {
    ASSIGN_OR_RETURN(const int64_t self, Counter("agent.declared_lost"));
    return num_lost_.load() + self;
  }

  absl::StatusOr<int64_t> Counter(const std::string& name) const {
    const std::map<std::string, std::string> counters =
        worker_->agent().DebugInfo();
    const auto found = counters.find(name);
    int64_t value = 0;
    if (found == counters.end() || !absl::SimpleAtoi(found->second, &value)) {
      return absl::NotFoundError("this worker does not have the counter " +
                                 name);
    }
    return value;
  }

  const JobPlan plan_;
  const int rank_;
  rpc::FunctionRegistry registry_;
  // Workers whose loss this one has seen, without itself.
  std::atomic<int64_t> num_lost_{0};
  std::unique_ptr<launch::Worker> worker_;
  Tensor tensor_ = Tensor::Ones({1});
};

}  // namespace

int RunJobWorker(const JobPlan& plan, int rank) {
  JobWorker worker(plan, rank);
  for (std::string line; std::getline(std::cin, line);) {
    const absl::StatusOr<int64_t> result = worker.Serve(line);
    // A reply is one line, even if the message has several.
    std::cout << line << ": "
              << (result.ok() ? absl::StrCat("ok ", *result)
                              : absl::StrReplaceAll(
                                    "error " + result.status().ToString(),
                                    {{"\n", " "}}))
              << std::endl;
  }
  return 0;
}

}  // namespace hawser::benchmarks
