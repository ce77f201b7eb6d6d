#include "launch/run/attempt.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "store/store.h"

namespace hawser::launch {
namespace {

constexpr char kSuccess[] = "success";
// Time between two checks of the other nodes, in lifetimes of a lease.
constexpr double kCheckInterval = 1.0 / 3;

}  // namespace

Attempt::Attempt(Session* session, int number, std::function<void()> on_outcome)
    : session_(session),
      number_(number),
      on_outcome_(std::move(on_outcome)),
      thread_([this] { Run(); }) {}

Attempt::~Attempt() {
  {
    async::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  const auto change = [this] {
    async::MutexLock lock(&mutex_);
    return change_;
  }();
  if (change.valid()) change.Cancel();
  thread_.join();
}

std::string Attempt::Key(const std::string& name) const {
  return session_->Key(absl::StrCat("attempt/", number_, "/", name));
}

std::vector<std::string> Attempt::KeysOfNodes(const std::string& name) const {
  std::vector<std::string> keys;
  for (size_t i = 0; i < session_->nodes().size(); ++i) {
    keys.push_back(Key(absl::StrCat(name, "/", i)));
  }
  return keys;
}

absl::Status Attempt::SetMaster(const store::Endpoint& master) {
  return session_->store().Set(Key("master"), ToString(master),
                               session_->lease_lifetime());
}

absl::StatusOr<store::Endpoint> Attempt::GetMaster() {
  ASSIGN_OR_RETURN(
      const std::string text,
      session_->Await(Key("master"), absl::InfiniteDuration(),
                      "the address of rank 0", [this]() -> absl::Status {
                        if (!outcome().has_value()) return absl::OkStatus();
                        return absl::AbortedError("the attempt has ended");
                      }));
  return store::ParseEndpoint(text);
}

void Attempt::ReportFailure(const JobFailure& failure) {
  Decide(ToText(failure), {failure}, session_->lease_lifetime());
}

void Attempt::ReportSuccess() {
  const std::vector<std::string> keys = KeysOfNodes("succeeded");
  store::Store& store = session_->store();
  const absl::Status set =
      store.Set(keys[static_cast<size_t>(session_->node_rank())], kSuccess,
                session_->lease_lifetime());
  if (!set.ok()) {
    Take({JobFailure{.description = std::string(set.message())}});
    return;
  }
  // The last node sees the keys of all; several nodes may.
  const absl::StatusOr<bool> all =
      store.Check(keys, session_->lease_lifetime());
  if (all.ok() && *all) Decide(kSuccess, {}, session_->lease_lifetime());
}

void Attempt::Decide(const std::string& text, const AttemptOutcome& outcome,
                     absl::Duration timeout) {
  const absl::StatusOr<store::CompareAndSetResult> decided =
      session_->store().CompareAndSet(Key("outcome"), "", text, timeout);
  if (decided.ok()) {
    Take(decided->value);
  } else {
    Take(outcome);
  }
}

void Attempt::Take(const std::string& text) {
  if (text == kSuccess) return Take(AttemptOutcome());
  absl::StatusOr<JobFailure> failure = ParseJobFailure(text);
  if (failure.ok()) return Take({*std::move(failure)});
  Take({JobFailure{.description = std::string(failure.status().message())}});
}

void Attempt::Take(AttemptOutcome outcome) {
  {
    async::MutexLock lock(&mutex_);
    if (outcome_.has_value()) return;
    outcome_ = std::move(outcome);
  }
  on_outcome_();
}

std::optional<AttemptOutcome> Attempt::outcome() const {
  async::MutexLock lock(&mutex_);
  return outcome_;
}

void Attempt::Run() {
  while (Watch()) {
  }
}

bool Attempt::Watch() {
  auto change =
      session_->store().WhenChanged({store::WatchedKey{Key("outcome"), ""}});
  bool ended = false;
  {
    async::MutexLock lock(&mutex_);
    ended = outcome_.has_value() || stopped_;
    if (!ended) change_ = change;
  }
  if (ended) {
    // The watch would stay in the store.
    change.Cancel();
    return false;
  }
  const absl::StatusOr<std::vector<std::string>> values =
      change.WaitFor(session_->lease_lifetime() * kCheckInterval);
  change.Cancel();
  {
    async::MutexLock lock(&mutex_);
    if (outcome_.has_value() || stopped_) return false;
  }
  if (values.ok()) {
    Take(values->front());
    return false;
  }
  const absl::Status nodes = session_->CheckNodes();
  if (nodes.ok()) return true;
  // The store may be lost with the node.
  const JobFailure lost{.description = std::string(nodes.message())};
  Decide(ToText(lost), {lost}, session_->lease_lifetime() * kCheckInterval);
  return false;
}

absl::Status Attempt::AwaitAllStopped(absl::Duration timeout) {
  const std::vector<std::string> keys = KeysOfNodes("stopped");
  RETURN_IF_ERROR(
      session_->store().Set(keys[static_cast<size_t>(session_->node_rank())],
                            "stopped", session_->lease_lifetime()));
  for (size_t i = 0; i < keys.size(); ++i) {
    RETURN_IF_ERROR(session_->Await(
        keys[i], timeout,
        absl::StrCat("the processes of ", session_->NameOf(i), " to end"),
        [this] { return session_->CheckNodes(); }));
  }
  return absl::OkStatus();
}

}  // namespace hawser::launch
