// A server of tables that logs its pushes, and stops in the middle of one.
//
//   table_server_program NAME STORE_URL DIRECTORY STAGE PUSHES
//
// At STAGE of push number PUSHES it prints "stopped", and waits for SIGUSR1
// before this push goes on. Ends after SIGTERM.

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "async/status_macros.h"
#include "launch/termination_signals.h"
#include "launch/worker.h"
#include "launch/worker_options.h"
#include "ps/storage/disk/rocksdb_storage.h"
#include "ps/storage/push_log.h"
#include "ps/storage/push_observer.h"
#include "ps/table_service.h"

namespace hawser::tests {
namespace {

// Stops the thread at a stage of one push.
class Stopping {
 public:
  // Call before the first thread: the others inherit the signal mask.
  Stopping(ps::PushStage stage, int pushes) : stage_(stage), left_(pushes) {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  }

  void Observe(ps::PushStage stage) {
    if (stage != stage_ || --left_ != 0) return;
    std::cerr << "stopped" << std::endl;
    int signal = 0;
    sigwait(&signals_, &signal);
  }

 private:
  const ps::PushStage stage_;
  sigset_t signals_;
  std::atomic<int> left_;
};

absl::Status Serve(char** arguments) {
  const std::map<std::string, ps::PushStage> stages = {
      {"received", ps::PushStage::kReceived},
      {"decoded", ps::PushStage::kDecoded},
      {"logged", ps::PushStage::kLogged},
      {"applied", ps::PushStage::kApplied},
      {"replying", ps::PushStage::kReplying}};
  const launch::TerminationSignals signals;
  const auto stage = stages.find(arguments[4]);
  if (stage == stages.end()) {
    return absl::InvalidArgumentError("no such stage");
  }
  Stopping stopping(stage->second, std::atoi(arguments[5]));
  launch::WorkerOptions options;
  options.identity = {.name = arguments[1], .rank = 1};
  options.meeting_place.url = arguments[2];
  // Takes the name of the killed server soon.
  options.limits.liveness.unreachable_limit = absl::Milliseconds(300);
  options.services.push_back(
      std::make_unique<ps::TableService>(ps::TableServiceOptions{
          .snapshot_directory = arguments[3],
          .logging = ps::PushLogging::kWrite,
          .disk = std::make_shared<ps::RocksDbStorage>(
              absl::StrCat(arguments[3], "/.disk")),
          .push_observer = [&](ps::PushStage at) { stopping.Observe(at); }}));
  ASSIGN_OR_RETURN(const std::unique_ptr<launch::Worker> worker,
                   launch::Worker::Start(std::move(options)));
  std::cerr << "serving" << std::endl;
  return signals.Serve(
      [&](bool graceful) { return worker->Shutdown(graceful); });
}

}  // namespace
}  // namespace hawser::tests

int main(int argc, char** argv) {
  if (argc != 6) {
    std::cerr << "table_server_program NAME STORE_URL DIRECTORY STAGE PUSHES\n";
    return 2;
  }
  const absl::Status status = hawser::tests::Serve(argv);
  if (status.ok()) return 0;
  std::cerr << status << std::endl;
  return 1;
}
