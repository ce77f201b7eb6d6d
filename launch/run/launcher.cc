#include "launch/run/launcher.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "launch/run/attempt.h"
#include "launch/run/job_failure.h"
#include "launch/run/log_directory.h"
#include "launch/run/meeting_store.h"
#include "launch/run/node.h"
#include "launch/run/node_processes.h"
#include "launch/run/port_reservation.h"
#include "launch/run/process_plan.h"
#include "launch/run/session.h"
#include "launch/supervisor.h"
#include "store/endpoint.h"
#include "store/store_url.h"

namespace hawser::launch {
namespace {

// Time that node 0 gives the others to read the end of the job.
constexpr absl::Duration kLeaveTimeout = absl::Seconds(10);

std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') {
    return "localhost";
  }
  return name.data();
}

// Stops the processes of an attempt when its outcome is known, and wakes the
// main thread. Thread-safe.
class OutcomeSignal {
 public:
  OutcomeSignal() : main_(pthread_self()) {}

  // The attempt's on_outcome.
  void Notify() {
    {
      async::MutexLock lock(&mutex_);
      known_ = true;
      if (processes_ != nullptr) processes_->Stop();
    }
    pthread_kill(main_, SIGCHLD);
  }
  // Processes that shall end with the attempt; null: none.
  void SetProcesses(NodeProcesses* processes) {
    async::MutexLock lock(&mutex_);
    processes_ = processes;
    if (known_ && processes_ != nullptr) processes_->Stop();
  }

 private:
  const pthread_t main_;
  async::Mutex mutex_;
  bool known_ ABSL_GUARDED_BY(mutex_) = false;
  NodeProcesses* processes_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

// One launcher; its methods are the steps of RunProgram.
class Launcher {
 public:
  Launcher(const RunOptions& options, Console* console, LauncherTimes times)
      : options_(options),
        console_(console),
        times_(times),
        host_(HostName()) {}

  absl::StatusOr<int> Run() {
    Supervisor::BlockSignals();
    absl::StatusOr<int> exit_code = Meet();
    // Interrupted before there were processes.
    if (!exit_code.ok() && signal_ != 0) return 128 + signal_;
    return exit_code;
  }

 private:
  // Whether a signal has come that stops the job.
  bool Interrupted() {
    if (signal_ == 0)
      signal_ = Supervisor::AwaitStopSignal(absl::ZeroDuration());
    return signal_ != 0;
  }

  absl::StatusOr<int> Meet() {
    if (!options_.redirects.empty() || !options_.tee.empty()) {
      ASSIGN_OR_RETURN(
          logs_, LogDirectory::Create(options_.log_directory, options_.run_id));
      console_->Say(absl::StrCat("logs are in ", logs_->path()));
    }
    const auto interrupted = [this] { return Interrupted(); };
    ASSIGN_OR_RETURN(
        const MeetingStore meeting,
        OpenMeetingStore(options_, times_.join_timeout, interrupted));
    ASSIGN_OR_RETURN(
        session_,
        Session::Join(meeting.store,
                      {.run_id = options_.run_id,
                       .node_rank = options_.node_rank,
                       .self = {.host = host_,
                                .roles = options_.roles,
                                .num_nodes = options_.num_nodes,
                                .max_restarts = options_.max_restarts},
                       .join_timeout = times_.join_timeout,
                       .lease_lifetime = times_.lease_lifetime,
                       .interrupted = interrupted}));
    absl::StatusOr<int> exit_code = RunAttempts();
    session_->Leave(kLeaveTimeout);
    session_.reset();
    return exit_code;
  }

  absl::StatusOr<int> RunAttempts() {
    // The port stays reserved while the processes run, and until the next
    // attempt has its own, which is another one thereby.
    std::optional<PortReservation> reservation;
    for (int number = 0;; ++number) {
      OutcomeSignal signal;
      Attempt attempt(session_.get(), number, [&signal] { signal.Notify(); });
      const absl::Status run = RunAttempt(number, attempt, signal, reservation);
      // The job cannot go on here, so it cannot go on anywhere.
      if (!run.ok()) attempt.ReportFailure(FinalFailure(run));
      const std::optional<AttemptOutcome> outcome = attempt.outcome();
      if (!outcome.has_value()) {
        return absl::InternalError("an attempt has ended without an outcome");
      }
      if (!outcome->failure.has_value()) return 0;
      const JobFailure& failure = *outcome->failure;
      // An error before there were processes is that of the command.
      if (!run.ok() && number == 0 && signal_ == 0 &&
          failure.description == run.message()) {
        return run;
      }
      Report(failure);
      if (!failure.may_restart || number >= options_.max_restarts) {
        return failure.exit_code;
      }
      const absl::Status stopped =
          attempt.AwaitAllStopped(times_.lease_lifetime + times_.notice_period +
                                  2 * options_.kill_delay);
      if (!stopped.ok()) {
        if (signal_ != 0) return 128 + signal_;
        console_->Say(absl::StrCat("does not restart: ", stopped.message()));
        return failure.exit_code;
      }
      console_->Say(absl::StrCat("restarts all processes: restart ", number + 1,
                                 " of at most ", options_.max_restarts));
    }
  }

  // Returns when the outcome of the attempt is known and the processes of this
  // node have ended. An error means that they could not be started.
  absl::Status RunAttempt(int number, Attempt& attempt, OutcomeSignal& signal,
                          std::optional<PortReservation>& reservation) {
    ASSIGN_OR_RETURN(const std::optional<store::Endpoint> master,
                     FindMaster(attempt, reservation));
    // The outcome came first.
    if (!master.has_value()) return absl::OkStatus();
    NodeProcessesContext context;
    context.attempt = {.master = *master,
                       .restart_count = number,
                       .max_restarts = options_.max_restarts,
                       .run_id = options_.run_id};
    context.host = host_;
    context.logs = logs_.has_value() ? &*logs_ : nullptr;
    context.console = console_;
    context.notice_period = times_.notice_period;
    context.on_failure = [&attempt](const JobFailure& failure) {
      attempt.ReportFailure(failure);
    };
    auto processes = NodeProcesses::Start(
        options_, PlanProcesses(session_->nodes(), session_->node_rank()),
        std::move(context));
    if (!processes.ok()) {
      attempt.ReportFailure(NodeProcesses::FailureOfStart(processes.status()));
      return absl::OkStatus();
    }
    signal.SetProcesses(processes->get());
    const absl::Status ended = (*processes)->Wait();
    signal.SetProcesses(nullptr);
    if (const int stop = (*processes)->stop_signal(); stop != 0) signal_ = stop;
    if (ended.ok()) attempt.ReportSuccess();
    AwaitOutcome(attempt);
    return absl::OkStatus();
  }

  // Waits for the other nodes, or for a signal.
  void AwaitOutcome(Attempt& attempt) {
    while (!attempt.outcome().has_value()) {
      if (signal_ == 0) {
        signal_ = Supervisor::AwaitStopSignal(absl::Milliseconds(500));
      }
      if (signal_ != 0) attempt.ReportFailure(StoppedBySignal());
    }
  }

  // Where the processes find rank 0; nullopt if the attempt has ended.
  absl::StatusOr<std::optional<store::Endpoint>> FindMaster(
      Attempt& attempt, std::optional<PortReservation>& reservation) {
    if (session_->node_rank() != 0) {
      const absl::StatusOr<store::Endpoint> master = attempt.GetMaster();
      if (absl::IsAborted(master.status())) return std::nullopt;
      RETURN_IF_ERROR(master.status());
      return *master;
    }
    store::Endpoint master{MasterHost(), options_.master_port.value_or(0)};
    ASSIGN_OR_RETURN(reservation,
                     PortReservation::Take(master.host, master.port));
    master.port = reservation->port();
    RETURN_IF_ERROR(attempt.SetMaster(master));
    return master;
  }

  std::string MasterHost() const {
    if (!options_.master_address.empty()) return options_.master_address;
    if (options_.num_nodes == 1) return "127.0.0.1";
    return options_.rendezvous->scheme == store::StoreUrl::Scheme::kTcp
               ? options_.rendezvous->endpoint.host
               : host_;
  }

  JobFailure StoppedBySignal() const {
    return {
        .exit_code = 128 + signal_,
        .description = absl::StrCat(
            "the launcher of ",
            session_->NameOf(static_cast<size_t>(session_->node_rank())),
            " was stopped by signal ", signal_, " (", strsignal(signal_), ")")};
  }

  JobFailure FinalFailure(const absl::Status& status) const {
    if (signal_ != 0) return StoppedBySignal();
    return {.exit_code = 1, .description = std::string(status.message())};
  }

  void Report(const JobFailure& failure) {
    console_->Say(
        failure.last_lines.empty()
            ? failure.description
            : absl::StrCat(failure.description, "; its last lines of output:"),
        failure.last_lines);
  }

  const RunOptions& options_;
  Console* const console_;
  const LauncherTimes times_;
  const std::string host_;
  std::optional<LogDirectory> logs_;
  std::unique_ptr<Session> session_;
  // The signal that stopped this launcher; 0: none.
  int signal_ = 0;
};

}  // namespace

absl::StatusOr<int> RunProgram(const RunOptions& options, Console* console,
                               const LauncherTimes& times) {
  return Launcher(options, console, times).Run();
}

}  // namespace hawser::launch
