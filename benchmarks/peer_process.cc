#include "benchmarks/peer_process.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "async/status_macros.h"

namespace hawser::benchmarks {
namespace {

// Ends a run whose peer hangs.
constexpr absl::Duration kReplyTimeout = absl::Minutes(10);

}  // namespace

PeerProcess::PeerProcess(std::unique_ptr<ChildProcess> child,
                         std::string advice, WhenIdle when_idle)
    : child_(std::move(child)),
      advice_(std::move(advice)),
      when_idle_(when_idle) {}

absl::StatusOr<std::unique_ptr<PeerProcess>> PeerProcess::Start(
    const std::vector<std::string>& command, const std::string& advice,
    WhenIdle when_idle) {
  ASSIGN_OR_RETURN(auto child, ChildProcess::Start(command));
  std::unique_ptr<PeerProcess> peer(
      new PeerProcess(std::move(child), advice, when_idle));
  const absl::StatusOr<std::string> first =
      peer->child_->Receive(absl::Now() + kReplyTimeout);
  if (!first.ok() || !absl::StartsWith(*first, "ready")) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the peer ", absl::StrJoin(command, " "), " did not start; ", advice));
  }
  peer->description_ = first->substr(std::min<size_t>(first->size(), 6));
  peer->SignalIfStopped(SIGSTOP);
  return peer;
}

void PeerProcess::SignalIfStopped(int signal) const {
  if (when_idle_ == WhenIdle::kStopped) kill(-child_->pid(), signal);
}

absl::Status PeerProcess::WithAdvice(const absl::Status& status) const {
  return absl::Status(status.code(),
                      absl::StrCat("peer: ", status.message(), "; ", advice_));
}

absl::StatusOr<std::string> PeerProcess::Ask(const std::string& request) {
  SignalIfStopped(SIGCONT);
  const absl::Status sent = child_->Send(request);
  if (!sent.ok()) return WithAdvice(sent);
  absl::StatusOr<std::string> reply =
      child_->Receive(absl::Now() + kReplyTimeout);
  SignalIfStopped(SIGSTOP);
  if (!reply.ok()) return WithAdvice(reply.status());
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
