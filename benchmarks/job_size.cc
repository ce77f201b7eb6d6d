// Benchmark of the cost of a job that does nothing, by its number of workers,
// all on this machine.
//
//   ./bazelw run -c opt //benchmarks:job_size -- --quick
//
//   workers_N       N workers, each in a process of its own, with default
//                   options and a world size; rank 0 serves the store. They
//                   start, each calls rank 0 once, and all are idle for a time.
//                   Then all except rank 0 leave and so wait for rank 0, for
//                   the same time, until it leaves too.
//   pairs_N         N workers, each of which calls every other one several
//                   times, all at once, while other threads occupy all
//                   processors
//   fan_in_8_16MiB  bytes per second of tensors of 16 MiB that 8 workers send
//                   to rank 0 at once, one in flight each, compared with those
//                   that one worker sends while the others are idle. Turns
//                   alternate, and the ratio is computed for each pair of turns
//
// A case of N workers prints one line of JSON:
//   start_s  from the request to all processes to join the job until the last
//            one has joined
//   running, leaving  the two idle times, each with
//     worker_cpu, worker_cpu_max  processor time per second that a worker other
//                   than rank 0 uses, median and maximum
//     rank0_cpu     the same of rank 0, with the store
//     rank0_cpu_per_worker  (rank0_cpu - that of 2 workers) / (N - 2)
//     store_calls_per_s_per_worker  calls that the store receives, from all
//                   workers, divided by N
//   worker_pss_bytes, rank0_pss_bytes  memory after the first idle time:
//            proportional set size, median of the workers, and of rank 0
//   leave_s  from the request to rank 0 to leave until all have left
//   pairs_s  of pairs_N: from the request to call until all calls have returned
//   lost     the largest number of workers that one worker declared lost. If it
//            is not 0, the case fails
// A case that fails prints its "error" and the fields measured before. The
// other cases still run, and then the run fails.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "async/status_macros.h"
#include "benchmarks/job_processes.h"
#include "benchmarks/job_worker.h"
#include "benchmarks/measurement.h"
#include "benchmarks/process_usage.h"
#include "nlohmann/json.hpp"

ABSL_FLAG(bool, quick, false, "Idle for 10 instead of 60 seconds.");
ABSL_FLAG(int, idle_seconds, 0,
          "Length of each of the two idle times of a case. 0: 60, or 10 with "
          "--quick.");
ABSL_FLAG(std::vector<std::string>, workers,
          std::vector<std::string>({"2", "16", "32", "64", "128"}),
          "Numbers of workers, from 2 on.");
ABSL_FLAG(std::vector<std::string>, pairs, std::vector<std::string>({"65"}),
          "Numbers of workers that all call each other, from 2 on.");
ABSL_FLAG(std::string, only, "",
          "Run only cases whose names begin with this text.");
ABSL_FLAG(int, rank, -1, "Internal: the rank of this worker process.");
ABSL_FLAG(int, num_workers, 0, "Internal: JobPlan::num_workers.");
ABSL_FLAG(std::string, master, "", "Internal: JobPlan::master.");

namespace hawser::benchmarks {
namespace {

// Longer than the timeouts of the workers themselves, whose errors say more.
constexpr absl::Duration kStartTimeout = absl::Minutes(6);
constexpr absl::Duration kLeaveTimeout = absl::Minutes(6);
constexpr absl::Duration kRequestTimeout = absl::Minutes(2);
constexpr absl::Duration kPairsTimeout = absl::Minutes(10);
constexpr absl::Duration kLossTimeout = absl::Seconds(20);
// Between the begin of an idle time and its measurement, so that the work that
// preceded it has ended.
constexpr absl::Duration kSettlingTime = absl::Seconds(2);

// The usage of one idle time.
struct IdleUsage {
  double worker_cpu = 0;
  double worker_cpu_max = 0;
  double rank0_cpu = 0;
  double store_calls_per_worker = 0;
};

absl::StatusOr<std::vector<absl::Duration>> CpuTimes(const JobProcesses& job) {
  std::vector<absl::Duration> times;
  for (const int rank : job.RanksFrom(0)) {
    ASSIGN_OR_RETURN(const absl::Duration time, CpuTimeOf(job.pid(rank)));
    times.push_back(time);
  }
  return times;
}

absl::StatusOr<int64_t> StoreCalls(JobProcesses& job) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> calls,
                   job.Ask({0}, "store_calls", kRequestTimeout));
  return calls.front();
}

absl::StatusOr<IdleUsage> MeasureIdle(JobProcesses& job, absl::Duration idle) {
  absl::SleepFor(kSettlingTime);
  ASSIGN_OR_RETURN(const int64_t calls_before, StoreCalls(job));
  ASSIGN_OR_RETURN(const std::vector<absl::Duration> before, CpuTimes(job));
  const absl::Time start = absl::Now();
  absl::SleepFor(idle);
  ASSIGN_OR_RETURN(const std::vector<absl::Duration> after, CpuTimes(job));
  const absl::Duration elapsed = absl::Now() - start;
  ASSIGN_OR_RETURN(const int64_t calls_after, StoreCalls(job));
  std::vector<double> cpu;
  for (size_t i = 0; i < after.size(); ++i) {
    cpu.push_back(absl::FDivDuration(after[i] - before[i], elapsed));
  }
  const std::vector<double> others(cpu.begin() + 1, cpu.end());
  return IdleUsage{
      .worker_cpu = Median(others),
      .worker_cpu_max = *std::max_element(others.begin(), others.end()),
      .rank0_cpu = cpu.front(),
      .store_calls_per_worker =
          static_cast<double>(calls_after - calls_before) /
          absl::ToDoubleSeconds(elapsed) / job.num_workers()};
}

// The measured values of a case of N workers. Empty: the case failed before.
struct JobUsage {
  int num_workers = 0;
  absl::Duration idle = {};
  std::optional<absl::Duration> start = {};
  std::optional<IdleUsage> running = {};
  std::optional<IdleUsage> leaving = {};
  double worker_bytes = 0;
  double rank0_bytes = 0;
  std::optional<absl::Duration> leave = {};
  std::optional<int64_t> num_lost = {};
};

absl::Status MeasureMemory(const JobProcesses& job, JobUsage& usage) {
  std::vector<double> bytes;
  for (const int rank : job.RanksFrom(0)) {
    ASSIGN_OR_RETURN(const int64_t of_rank, ProportionalBytesOf(job.pid(rank)));
    bytes.push_back(static_cast<double>(of_rank));
  }
  usage.rank0_bytes = bytes.front();
  usage.worker_bytes = Median({bytes.begin() + 1, bytes.end()});
  return absl::OkStatus();
}

// Measures until an error.
absl::Status MeasureJob(JobProcesses& job, JobUsage& usage) {
  const std::vector<int> all = job.RanksFrom(0);
  const std::vector<int> others = job.RanksFrom(1);
  absl::Time start = absl::Now();
  RETURN_IF_ERROR(job.Ask(all, "join", kStartTimeout).status());
  usage.start = absl::Now() - start;
  RETURN_IF_ERROR(job.Ask(others, "call", kRequestTimeout).status());
  ASSIGN_OR_RETURN(usage.running, MeasureIdle(job, usage.idle));
  RETURN_IF_ERROR(MeasureMemory(job, usage));

  RETURN_IF_ERROR(job.Send(others, "leave"));
  ASSIGN_OR_RETURN(const IdleUsage leaving, MeasureIdle(job, usage.idle));
  // Otherwise some workers were not waiting all the time.
  RETURN_IF_ERROR(job.CheckPending(others, "leave"));
  usage.leaving = leaving;
  start = absl::Now();
  RETURN_IF_ERROR(job.Send({0}, "leave"));
  RETURN_IF_ERROR(job.Receive(all, kLeaveTimeout).status());
  usage.leave = absl::Now() - start;
  return absl::OkStatus();
}

absl::StatusOr<int64_t> NumLost(JobProcesses& job) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> lost,
                   job.Ask(job.RanksFrom(0), "lost", kLossTimeout));
  return *std::max_element(lost.begin(), lost.end());
}

// Runs the case. Workers are also asked for the losses if it failed, unless
// they do not reply.
absl::Status RunJob(JobUsage& usage) {
  ASSIGN_OR_RETURN(const auto job, JobProcesses::Start(usage.num_workers));
  const absl::Status measured = MeasureJob(*job, usage);
  const absl::StatusOr<int64_t> lost = NumLost(*job);
  if (lost.ok()) usage.num_lost = *lost;
  RETURN_IF_ERROR(measured);
  RETURN_IF_ERROR(lost.status());
  if (*usage.num_lost == 0) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(*usage.num_lost, " workers were declared lost"));
}

nlohmann::ordered_json ToJson(const IdleUsage& usage, int num_workers,
                              const std::optional<IdleUsage>& of_two) {
  nlohmann::ordered_json json;
  json["worker_cpu"] = usage.worker_cpu;
  json["worker_cpu_max"] = usage.worker_cpu_max;
  json["rank0_cpu"] = usage.rank0_cpu;
  if (of_two.has_value() && num_workers > 2) {
    json["rank0_cpu_per_worker"] =
        (usage.rank0_cpu - of_two->rank0_cpu) / (num_workers - 2);
  }
  json["store_calls_per_s_per_worker"] = usage.store_calls_per_worker;
  return json;
}

void PrintUsage(const char* phase, const IdleUsage& usage) {
  std::fprintf(stderr,
               "  %-8s worker %.4f of a core (at most %.4f), rank 0 %.4f, %.2f "
               "store calls/s per worker\n",
               phase, usage.worker_cpu, usage.worker_cpu_max, usage.rank0_cpu,
               usage.store_calls_per_worker);
}

void PrintLine(const std::string& name, const nlohmann::ordered_json& fields) {
  nlohmann::ordered_json line;
  line["bench"] = "job_size";
  line["case"] = name;
  line.update(fields);
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

// Prints the fields that were measured. `of_two` is the usage of the case of 2
// workers, empty if it did not run.
void Report(const std::string& name, const JobUsage& usage,
            const JobUsage& of_two, const absl::Status& status) {
  nlohmann::ordered_json line;
  line["workers"] = usage.num_workers;
  line["idle_s"] = absl::ToDoubleSeconds(usage.idle);
  std::fprintf(stderr, "%s:\n", name.c_str());
  if (usage.start.has_value()) {
    line["start_s"] = absl::ToDoubleSeconds(*usage.start);
    std::fprintf(stderr, "  started in %.1f s\n",
                 absl::ToDoubleSeconds(*usage.start));
  }
  if (usage.running.has_value()) {
    PrintUsage("running", *usage.running);
    line["running"] = ToJson(*usage.running, usage.num_workers, of_two.running);
  }
  if (usage.leaving.has_value()) {
    PrintUsage("leaving", *usage.leaving);
    line["leaving"] = ToJson(*usage.leaving, usage.num_workers, of_two.leaving);
  }
  if (usage.worker_bytes > 0) {
    line["worker_pss_bytes"] = usage.worker_bytes;
    line["rank0_pss_bytes"] = usage.rank0_bytes;
    std::fprintf(stderr, "  memory of a worker %.1f MB, of rank 0 %.1f MB\n",
                 usage.worker_bytes / 1e6, usage.rank0_bytes / 1e6);
  }
  if (usage.leave.has_value()) {
    line["leave_s"] = absl::ToDoubleSeconds(*usage.leave);
    std::fprintf(stderr, "  left in %.1f s\n",
                 absl::ToDoubleSeconds(*usage.leave));
  }
  if (usage.num_lost.has_value()) line["lost"] = *usage.num_lost;
  if (!status.ok()) line["error"] = status.ToString();
  PrintLine(name, line);
}

// Threads that occupy all processors of this machine during their lifetime.
class BusyMachine {
 public:
  BusyMachine() {
    const unsigned count = 2 * std::thread::hardware_concurrency();
    for (unsigned i = 0; i < count; ++i) {
      threads_.emplace_back([this] {
        while (!stop_.load(std::memory_order_relaxed)) {
        }
      });
    }
  }
  ~BusyMachine() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }
  BusyMachine(const BusyMachine&) = delete;
  BusyMachine& operator=(const BusyMachine&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

constexpr int kPairRounds = 20;

// Calls between all pairs on a busy machine. Prints its line.
absl::Status MeasurePairs(const std::string& name, int num_workers) {
  nlohmann::ordered_json line = {{"workers", num_workers}};
  const auto measure = [&]() -> absl::Status {
    ASSIGN_OR_RETURN(const auto job, JobProcesses::Start(num_workers));
    const std::vector<int> all = job->RanksFrom(0);
    RETURN_IF_ERROR(job->Ask(all, "join", kStartTimeout).status());
    absl::Status called;
    {
      const BusyMachine busy;
      const absl::Time start = absl::Now();
      called =
          job->Ask(all, absl::StrCat("call_all ", kPairRounds), kPairsTimeout)
              .status();
      line["pairs_s"] = absl::ToDoubleSeconds(absl::Now() - start);
    }
    ASSIGN_OR_RETURN(const int64_t num_lost, NumLost(*job));
    line["lost"] = num_lost;
    RETURN_IF_ERROR(called);
    if (num_lost > 0) {
      return absl::InternalError(
          absl::StrCat(num_lost, " workers were declared lost"));
    }
    RETURN_IF_ERROR(job->Send(all, "leave"));
    return job->Receive(all, kLeaveTimeout).status();
  };
  const absl::Status status = measure();
  if (!status.ok()) line["error"] = status.ToString();
  PrintLine(name, line);
  return status;
}

constexpr int kSenders = 8;
constexpr int64_t kSentMib = 16;

// Bytes per second that `ranks` send to rank 0, `tensors` in total.
absl::StatusOr<double> SendToFirst(JobProcesses& job,
                                   const std::vector<int>& ranks,
                                   int64_t tensors) {
  const int64_t each = tensors / static_cast<int64_t>(ranks.size());
  const absl::Time start = absl::Now();
  RETURN_IF_ERROR(job.Ask(ranks, absl::StrCat("send ", each, " ", kSentMib),
                          kRequestTimeout)
                      .status());
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  return static_cast<double>(each) * static_cast<double>(ranks.size()) *
         static_cast<double>(kSentMib << 20) / seconds;
}

absl::Status MeasureFanIn(const std::string& name) {
  ASSIGN_OR_RETURN(const auto job, JobProcesses::Start(kSenders + 1));
  RETURN_IF_ERROR(job->Ask(job->RanksFrom(0), "join", kStartTimeout).status());
  const std::vector<int> senders = job->RanksFrom(1);
  Measurement measurement{.bench = "job_size",
                          .case_name = name,
                          .unit = "bytes/s",
                          .peer = "one_pair"};
  // Connects and warms up.
  RETURN_IF_ERROR(SendToFirst(*job, senders, 4 * kSenders).status());
  const bool quick = absl::GetFlag(FLAGS_quick);
  const int64_t tensors = 16 * kSenders;
  for (int turn = 0; turn < (quick ? 9 : 25); ++turn) {
    ASSIGN_OR_RETURN(const double value, SendToFirst(*job, senders, tensors));
    ASSIGN_OR_RETURN(const double pair, SendToFirst(*job, {1}, tensors));
    measurement.values.push_back(value);
    measurement.peer_values.push_back(pair);
  }
  benchmarks::Report(measurement);
  RETURN_IF_ERROR(job->Send(job->RanksFrom(0), "leave"));
  return job->Receive(job->RanksFrom(0), kLeaveTimeout).status();
}

bool IsChosen(const std::string& name) {
  return absl::StartsWith(name, absl::GetFlag(FLAGS_only));
}

absl::Status Run() {
  const int idle_seconds = absl::GetFlag(FLAGS_idle_seconds);
  const absl::Duration idle =
      idle_seconds > 0 ? absl::Seconds(idle_seconds)
                       : absl::Seconds(absl::GetFlag(FLAGS_quick) ? 10 : 60);
  JobUsage of_two;
  std::vector<std::string> failed;
  for (const std::string& text : absl::GetFlag(FLAGS_workers)) {
    JobUsage usage = {.idle = idle};
    if (!absl::SimpleAtoi(text, &usage.num_workers) || usage.num_workers < 2) {
      return absl::InvalidArgumentError("--workers has '" + text +
                                        "': a job needs 2 workers or more");
    }
    const std::string name = absl::StrCat("workers_", usage.num_workers);
    if (!IsChosen(name)) continue;
    const absl::Status status = RunJob(usage);
    if (usage.num_workers == 2) of_two = usage;
    Report(name, usage, of_two, status);
    if (!status.ok()) failed.push_back(name);
  }
  for (const std::string& text : absl::GetFlag(FLAGS_pairs)) {
    int num_workers = 0;
    if (!absl::SimpleAtoi(text, &num_workers) || num_workers < 2) {
      return absl::InvalidArgumentError("--pairs has '" + text +
                                        "': a job needs 2 workers or more");
    }
    const std::string name = absl::StrCat("pairs_", num_workers);
    if (!IsChosen(name)) continue;
    if (!MeasurePairs(name, num_workers).ok()) failed.push_back(name);
  }
  const std::string fan_in =
      absl::StrCat("fan_in_", kSenders, "_", kSentMib, "MiB");
  if (IsChosen(fan_in)) {
    const absl::Status status = MeasureFanIn(fan_in);
    if (!status.ok()) {
      PrintLine(fan_in, {{"error", status.ToString()}});
      failed.push_back(fan_in);
    }
  }
  if (failed.empty()) return absl::OkStatus();
  return absl::AbortedError("cases failed: " + absl::StrJoin(failed, ", "));
}

}  // namespace
}  // namespace hawser::benchmarks

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage(
      "Measures the cost of idle jobs by their number of workers.");
  absl::ParseCommandLine(argc, argv);
  const int rank = absl::GetFlag(FLAGS_rank);
  if (rank >= 0) {
    return hawser::benchmarks::RunJobWorker(
        {.num_workers = absl::GetFlag(FLAGS_num_workers),
         .master = absl::GetFlag(FLAGS_master)},
        rank);
  }
  const absl::Status status = hawser::benchmarks::Run();
  if (!status.ok()) {
    std::fprintf(stderr, "job_size: %s\n",
                 std::string(status.message()).c_str());
    return 1;
  }
  return 0;
}
