// Worker process of the fault tests.
//
// Reports on standard output, one line each:
//   ready ADDRESS INCARNATION   the worker has joined
//   refused CODE MESSAGE        it could not join; exits with 3
//   pushed COUNT CODE MESSAGE   kPush has ended
//   applied ID ...              the ledger, when the worker exits
// On SIGTERM the worker leaves the job; on a second one it stops at once. The
// exit code is 0 if it has left.

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/future.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "launch/termination_signals.h"
#include "rpc/agent/agent.h"
#include "rpc/agent/current_call.h"
#include "rpc/agent/service_host.h"
#include "rpc/functions/function_registry.h"
#include "rpc/grpc/transport.h"
#include "rpc/identity/worker_info.h"
#include "rpc/transport/cancellation.h"
#include "rref/rref_service.h"
#include "store/open_store.h"
#include "tests/faults/process_counts.h"
#include "tests/faults/worker_functions.h"

ABSL_FLAG(std::string, store, "", "URL of the job's store.");
ABSL_FLAG(std::string, name, "", "Name of the worker.");
ABSL_FLAG(int, rank, 0, "Rank of the worker.");
ABSL_FLAG(std::string, job, "faults", "Name of the job.");
ABSL_FLAG(std::string, bind, "127.0.0.1:0", "Address to listen on.");
ABSL_FLAG(std::string, advertise, "", "Address for other workers.");
ABSL_FLAG(bool, same_host, true, "Permit shared memory.");
ABSL_FLAG(int, uid, 0, "User id to change to; 0: do not change it.");
ABSL_FLAG(absl::Duration, silent_limit, absl::Seconds(3),
          "LivenessOptions::silent_limit.");
ABSL_FLAG(absl::Duration, unreachable_limit, absl::Milliseconds(1500),
          "LivenessOptions::unreachable_limit.");

namespace hawser::tests {
namespace {

class FaultWorker {
 public:
  ~FaultWorker() {
    if (pusher_.joinable()) pusher_.join();
  }

  absl::Status Register(rpc::FunctionRegistry& registry);

  std::vector<int64_t> ledger() {
    async::MutexLock lock(&mutex_);
    return ledger_;
  }

  static void Report(const std::string& line) {
    // One write, so that lines of several threads do not interleave.
    std::cout << line + "\n" << std::flush;
  }

 private:
  int64_t Apply(int64_t id) {
    async::MutexLock lock(&mutex_);
    ledger_.push_back(id);
    return static_cast<int64_t>(ledger_.size());
  }

  async::Future<int64_t> ApplySlowly(int64_t id, int64_t milliseconds) {
    ++num_begun_;
    async::Promise<int64_t> promise;
    async::Future<int64_t> applied = promise.future();
    rpc::CurrentCall::Get()->agent().host().clock().CallAfter(
        absl::Milliseconds(milliseconds),
        [promise = std::move(promise), count = Apply(id)]() mutable {
          promise.Set(count);
        });
    return applied;
  }

  async::Future<void> ApplyAndWait(int64_t id) {
    Apply(id);
    async::Promise<void> promise;
    async::Future<void> cancelled = promise.future();
    {
      async::MutexLock lock(&mutex_);
      waiting_.push_back(std::move(promise));
    }
    ++num_begun_;
    return cancelled;
  }

  async::Future<void> Hold(int64_t id) {
    auto promise = std::make_shared<async::Promise<void>>();
    async::Future<void> held = promise->future();
    rpc::Cancellation::Registration registration =
        rpc::CurrentCall::Get()->cancellation().OnCancel([this, promise, id] {
          const int64_t now =
              std::chrono::steady_clock::now().time_since_epoch().count();
          std::vector<async::Promise<void>> waiting;
          {
            async::MutexLock lock(&mutex_);
            cancelled_.emplace_back(id, now);
            waiting.swap(waiting_);
          }
          promise->Set(absl::CancelledError("the caller gave up"));
          for (async::Promise<void>& other : waiting) {
            other.Set(absl::OkStatus());
          }
        });
    ++num_begun_;
    return std::move(held).Then([kept = std::move(registration)](
                                    absl::Status status) { return status; });
  }

  absl::Status Push(const std::string& to) {
    rpc::Agent& agent = rpc::CurrentCall::Get()->agent();
    RETURN_IF_ERROR(agent.Sync(to, kApply, 0));
    pusher_ = std::thread([&agent, to] {
      int64_t count = 1;
      absl::Status status;
      // A worker may be stopped for longer than the default timeout.
      const rpc::CallOptions options = {.timeout = rpc::kNoTimeout};
      const auto apply = [&] {
        status = agent.Sync(to, options, kApply, count).status();
        return status.ok();
      };
      while (apply() || (absl::IsUnavailable(status) && apply())) ++count;
      Report(absl::StrCat("pushed ", count, " ",
                          absl::StatusCodeToString(status.code()), " ",
                          status.message()));
    });
    return absl::OkStatus();
  }

  std::atomic<int64_t> num_begun_{0};
  async::Mutex mutex_;
  std::vector<int64_t> ledger_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::pair<int64_t, int64_t>> cancelled_ ABSL_GUARDED_BY(mutex_);
  // Replies to kApplyAndWait.
  std::vector<async::Promise<void>> waiting_ ABSL_GUARDED_BY(mutex_);
  std::thread pusher_;
};

absl::Status FaultWorker::Register(rpc::FunctionRegistry& registry) {
  RETURN_IF_ERROR(
      registry.Register(kApply, [this](int64_t id) { return Apply(id); }));
  RETURN_IF_ERROR(
      registry.Register(kApplySlowly, [this](int64_t id, int64_t milliseconds) {
        return ApplySlowly(id, milliseconds);
      }));
  RETURN_IF_ERROR(registry.Register(
      kApplyAndWait, [this](int64_t id) { return ApplyAndWait(id); }));
  RETURN_IF_ERROR(registry.Register(kLedger, [this] { return ledger(); }));
  RETURN_IF_ERROR(
      registry.Register(kHold, [this](int64_t id) { return Hold(id); }));
  RETURN_IF_ERROR(registry.Register(kCancelled, [this] {
    async::MutexLock lock(&mutex_);
    return std::exchange(cancelled_, {});
  }));
  RETURN_IF_ERROR(registry.Register(
      kPush, [this](const std::string& to) { return Push(to); }));
  RETURN_IF_ERROR(
      registry.Register(kRelay, [](const std::string& to, int64_t id) {
        return rpc::CurrentCall::Get()->agent().Sync(to, kApply, id);
      }));
  RETURN_IF_ERROR(registry.Register(kTakesForLost, [](uint64_t incarnation) {
    rpc::WorkerInfo worker;
    worker.incarnation = rpc::Incarnation(incarnation);
    return rpc::CurrentCall::Get()->agent().IsLost(worker);
  }));
  RETURN_IF_ERROR(
      registry.Register(kThrow, [] { throw std::runtime_error("poison"); }));
  RETURN_IF_ERROR(registry.Register(
      kHuge, [](int64_t bytes) { return std::string(bytes, 'x'); }));
  RETURN_IF_ERROR(registry.Register(kSpin, [] {
    while (!rpc::CurrentCall::Get()->cancelled()) {
    }
  }));
  return registry.Register(kCensus, [this] {
    return std::map<std::string, int64_t>{
        {"descriptors", CountDescriptors()},
        {"threads", CountThreads()},
        {"begun", num_begun_},
        {"calls", rpc::CurrentCall::Get()->agent().num_server_calls() - 1}};
  });
}

int Refused(const absl::Status& status) {
  FaultWorker::Report(absl::StrCat("refused ",
                                   absl::StatusCodeToString(status.code()), " ",
                                   status.message()));
  return 3;
}

int Run() {
  if (const int uid = absl::GetFlag(FLAGS_uid);
      uid != 0 && setuid(static_cast<uid_t>(uid)) != 0) {
    return Refused(absl::PermissionDeniedError("cannot change the user id"));
  }
  const launch::TerminationSignals signals;
  auto store = store::OpenStore(absl::GetFlag(FLAGS_store));
  if (!store.ok()) return Refused(store.status());
  FaultWorker worker;
  rpc::FunctionRegistry registry;
  if (absl::Status status = worker.Register(registry); !status.ok()) {
    return Refused(status);
  }
  rpc::AgentOptions options;
  options.name = absl::GetFlag(FLAGS_name);
  options.rank = absl::GetFlag(FLAGS_rank);
  options.job = absl::GetFlag(FLAGS_job);
  options.store = store->get();
  options.transport = std::make_unique<rpc::GrpcTransport>(
      rpc::GrpcTransportOptions{.max_message_bytes = kMaxMessageBytes,
                                .same_host = absl::GetFlag(FLAGS_same_host)});
  options.bind_address = absl::GetFlag(FLAGS_bind);
  options.advertise_address = absl::GetFlag(FLAGS_advertise);
  options.registry = &registry;
  options.services.push_back(std::make_unique<rref::RRefService>());
  options.num_threads = 4;
  options.liveness = {
      .silent_limit = absl::GetFlag(FLAGS_silent_limit),
      .unreachable_limit = absl::GetFlag(FLAGS_unreachable_limit)};
  auto agent = rpc::Agent::Start(std::move(options));
  if (!agent.ok()) return Refused(agent.status());
  FaultWorker::Report(
      absl::StrCat("ready ", (*agent)->info().address, " ",
                   rpc::ToString((*agent)->info().incarnation)));
  const absl::Status status = signals.Serve(
      [&](bool graceful) { return (*agent)->Shutdown(graceful); });
  FaultWorker::Report(
      absl::StrCat("applied ", absl::StrJoin(worker.ledger(), " ")));
  if (status.ok()) return 0;
  std::cerr << status << std::endl;
  return 1;
}

}  // namespace
}  // namespace hawser::tests

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  return hawser::tests::Run();
}
