#include "benchmarks/peer_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "async/status_macros.h"

namespace hawser::benchmarks {

PeerProcess::PeerProcess(pid_t pid, std::FILE* to, std::FILE* from,
                         std::string advice, WhenIdle when_idle)
    : pid_(pid),
      to_(to),
      from_(from),
      advice_(std::move(advice)),
      when_idle_(when_idle) {}

absl::StatusOr<std::unique_ptr<PeerProcess>> PeerProcess::Start(
    const std::vector<std::string>& command, const std::string& advice,
    WhenIdle when_idle) {
  // A write to a dead peer must fail instead of ending this process.
  signal(SIGPIPE, SIG_IGN);
  int request[2], reply[2];
  if (pipe2(request, O_CLOEXEC) != 0 || pipe2(reply, O_CLOEXEC) != 0) {
    return absl::ErrnoToStatus(errno, "cannot create pipes to a peer");
  }
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& argument : command) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    dup2(request[0], STDIN_FILENO);
    dup2(reply[1], STDOUT_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(request[0]);
  close(reply[1]);
  if (pid < 0) {
    close(request[1]);
    close(reply[0]);
    return absl::ErrnoToStatus(errno, "cannot start a peer");
  }
  // Called in parent and child, since either may run first. This one fails if
  // the child has already run exec.
  (void)setpgid(pid, pid);
  std::unique_ptr<PeerProcess> peer(new PeerProcess(
      pid, fdopen(request[1], "w"), fdopen(reply[0], "r"), advice, when_idle));
  const absl::StatusOr<std::string> first = peer->ReadLine();
  if (!first.ok() || !absl::StartsWith(*first, "ready")) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the peer ", absl::StrJoin(command, " "), " did not start; ", advice));
  }
  peer->description_ = first->substr(std::min<size_t>(first->size(), 6));
  peer->SignalIfStopped(SIGSTOP);
  return peer;
}

PeerProcess::~PeerProcess() {
  std::fclose(to_);
  std::fclose(from_);
  kill(-pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void PeerProcess::SignalIfStopped(int signal) const {
  if (when_idle_ == WhenIdle::kStopped) kill(-pid_, signal);
}

absl::StatusOr<std::string> PeerProcess::ReadLine() {
  std::string line;
  for (int c; (c = std::fgetc(from_)) != '\n';) {
    if (c == EOF) {
      return absl::UnavailableError(
          absl::StrCat("the peer process ended; ", advice_));
    }
    line += static_cast<char>(c);
  }
  return line;
}

absl::StatusOr<std::string> PeerProcess::Ask(const std::string& request) {
  SignalIfStopped(SIGCONT);
  if (std::fprintf(to_, "%s\n", request.c_str()) < 0 || std::fflush(to_) != 0) {
    return absl::UnavailableError(
        absl::StrCat("the peer process ended; ", advice_));
  }
  absl::StatusOr<std::string> reply = ReadLine();
  SignalIfStopped(SIGSTOP);
  return reply;
}

absl::StatusOr<double> PeerProcess::AskNumber(const std::string& request) {
  ASSIGN_OR_RETURN(const std::string reply, Ask(request));
  double number = 0;
  // The negated comparison also rejects NaN.
  if (!absl::SimpleAtod(reply, &number) || !(number > 0)) {
    return absl::InternalError(absl::StrCat("the peer replied \"", reply,
                                            "\" to \"", request,
                                            "\", not a positive number"));
  }
  return number;
}

}  // namespace hawser::benchmarks
