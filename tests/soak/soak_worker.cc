// One process of the soak job.
//
// Reports on standard output, one line each:
//   ready INCARNATION MASTER     the worker has joined; "host:port" of the
//   store
//                                that rank 0 serves
//   lost NAME INCARNATION TIME   the worker was told of a loss
//   unreachable NAME TIME        a call of `probe` failed, and named the worker
//   failed TEXT                  the error of a step that a death may explain
//   wrong TEXT                   an error or a result that no death explains
//   progress STEPS FAILED        numbers of steps of a trainer, twice a second
//   census NAME=NUMBER ...       the answer to `census`
//   fenced                       the worker was declared lost; exits with 3
// Times are nanoseconds of the machine's monotonic clock.
//
// Takes commands on standard input, one line each:
//   pause, resume   ends the load and drops everything; starts it again
//   census          asks for counters
//   probe NAME      calls NAME until that fails
//   leave           leaves the job and exits with 0
//   stop            stops without leaving and exits with 0
// The end of the input is `stop`.

#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "async/status_macros.h"
#include "launch/worker.h"
#include "rpc/agent/agent.h"
#include "rpc/errors/error_detail.h"
#include "rpc/functions/function_registry.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/member_event.h"
#include "telemetry/process_memory.h"
#include "tests/faults/process_counts.h"
#include "tests/soak/functions.h"
#include "tests/soak/load.h"

ABSL_FLAG(std::string, store, "", "URL of the job's store.");
ABSL_FLAG(std::string, name, "", "Name of the worker.");
ABSL_FLAG(int, rank, 0, "Rank of the worker; 0 serves the store.");
ABSL_FLAG(uint64_t, seed, 1, "Seed of the load.");
ABSL_FLAG(absl::Duration, interval, absl::ZeroDuration(),
          "Time from one step of the load to the next; 0: no load.");

namespace hawser::tests {
namespace {

constexpr absl::Duration kProgressInterval = absl::Milliseconds(500);

int64_t NowNanoseconds() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

void Report(const std::string& line) {
  // One write, so that lines of several threads do not interleave.
  std::cout << line + "\n" << std::flush;
}

void ReportCensus(const rpc::Agent& agent) {
  std::string line =
      absl::StrCat("census process.descriptors=", CountDescriptors(),
                   " process.threads=", CountThreads(),
                   " process.resident_kib=", telemetry::ResidentBytes() >> 10);
  for (const auto& [name, number] : agent.DebugInfo()) {
    if (!absl::StartsWith(name, "peer.")) {
      absl::StrAppend(&line, " ", name, "=", number);
    }
  }
  Report(line);
}

// Calls `name` until that fails because the worker cannot be reached.
void Probe(rpc::Agent& agent, const std::string& name) {
  while (true) {
    const auto sum = agent.Sync(name, kSum, Tensor::Ones({1}));
    if (sum.ok()) continue;
    const auto detail = rpc::GetErrorDetail(sum.status());
    const bool names_it = detail.has_value() && detail->worker == name;
    Report(absl::IsUnavailable(sum.status()) && names_it
               ? absl::StrCat("unreachable ", name, " ", NowNanoseconds())
               : absl::StrCat("wrong ", sum.status().ToString()));
    return;
  }
}

// The next command; "" if none came within `limit`.
class Commands {
 public:
  std::string Next(absl::Duration limit) {
    pollfd wanted{STDIN_FILENO, POLLIN, 0};
    while (true) {
      if (const size_t end = unread_.find('\n'); end != std::string::npos) {
        std::string line = unread_.substr(0, end);
        unread_.erase(0, end + 1);
        return line;
      }
      if (poll(&wanted, 1,
               static_cast<int>(absl::ToInt64Milliseconds(limit))) != 1) {
        return "";
      }
      char bytes[256];
      const ssize_t count = read(STDIN_FILENO, bytes, sizeof(bytes));
      if (count <= 0) return "stop";
      unread_.append(bytes, count);
    }
  }

 private:
  std::string unread_;
};

absl::Status Serve(launch::Worker& worker, Functions& functions) {
  rpc::Agent& agent = worker.agent();
  agent.WatchMembers([](const rpc::MemberEvent& event) {
    if (event.kind != rpc::MemberEvent::Kind::kLost) return;
    Report(absl::StrCat("lost ", event.worker.name, " ",
                        rpc::ToString(event.worker.incarnation), " ",
                        NowNanoseconds()));
  });
  std::unique_ptr<Load> load;
  if (const auto interval = absl::GetFlag(FLAGS_interval);
      interval > absl::ZeroDuration()) {
    load = std::make_unique<Load>(
        &agent, absl::GetFlag(FLAGS_seed), interval,
        [](const std::string& text) { Report(absl::StrCat("failed ", text)); },
        [](const std::string& text) { Report(absl::StrCat("wrong ", text)); });
  }
  Report(absl::StrCat("ready ", rpc::ToString(agent.info().incarnation), " ",
                      worker.master()));
  Commands commands;
  while (true) {
    const std::string command = commands.Next(kProgressInterval);
    if (load != nullptr) {
      Report(absl::StrCat("progress ", load->num_steps(), " ",
                          load->num_failed()));
    }
    if (agent.DebugInfo()["agent.declared_lost"] == "1") {
      Report("fenced");
      std::_Exit(3);
    }
    if (command == "pause") {
      if (load != nullptr) load->Pause();
      functions.SetKeep(false);
    } else if (command == "resume") {
      functions.SetKeep(true);
      if (load != nullptr) load->Resume();
    } else if (command == "census") {
      ReportCensus(agent);
    } else if (absl::StartsWith(command, "probe ")) {
      Probe(agent, command.substr(6));
    } else if (command == "leave" || command == "stop") {
      load.reset();
      functions.SetKeep(false);
      return worker.Shutdown(/*graceful=*/command == "leave");
    }
  }
}

absl::Status Run() {
  Functions functions;
  rpc::FunctionRegistry registry;
  RETURN_IF_ERROR(functions.Register(registry));
  ASSIGN_OR_RETURN(const auto worker,
                   launch::Worker::Start(
                       {.identity = {.name = absl::GetFlag(FLAGS_name),
                                     .rank = absl::GetFlag(FLAGS_rank),
                                     .job = "soak"},
                        .meeting_place = {.url = absl::GetFlag(FLAGS_store)},
                        .registry = &registry}));
  return Serve(*worker, functions);
}

}  // namespace
}  // namespace hawser::tests

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = hawser::tests::Run();
  if (status.ok()) return 0;
  hawser::tests::Report(absl::StrCat("wrong ", status.ToString()));
  return 1;
}
