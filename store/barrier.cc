#include "store/barrier.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "async/status_macros.h"
#include "store/collect_values.h"

namespace hawser::store {
namespace {

using Values = std::vector<std::string>;

constexpr char kDone[] = "done";

// An empty value would count as an absent key.
std::string Encode(std::string_view payload) {
  return absl::StrCat("+", absl::string_view(payload.data(), payload.size()));
}

// Removes the first byte, which Encode added.
std::string Decode(const std::string& value) {
  return value.empty() ? "" : value.substr(1);
}

// Returns a future of `decode(values)` whose Cancel cancels `values`.
template <class T, class F>
async::Future<T> Decoded(const async::Future<Values>& values, F decode) {
  auto promise = std::make_shared<async::Promise<T>>();
  async::Future<T> decoded = promise->future();
  promise->OnCancel([values] { values.Cancel(); });
  values.OnReady([promise, decode](const absl::StatusOr<Values>& result) {
    if (result.ok()) {
      promise->Set(decode(*result));
    } else {
      promise->Set(result.status());
    }
  });
  return decoded;
}

}  // namespace

Barrier::Barrier(Store* store, std::string_view prefix,
                 absl::Duration call_timeout)
    : store_(store), prefix_(prefix), call_timeout_(call_timeout) {}

std::string Barrier::KeyOf(std::string_view participant) const {
  return absl::StrCat(
      prefix_, "/", absl::string_view(participant.data(), participant.size()));
}

absl::Status Barrier::Arrive(const Participant& self,
                             std::string_view payload) {
  return store_->Set(KeyOf(self.id), Encode(payload), call_timeout_);
}

async::Future<std::vector<std::string>> Barrier::WhenAllArrived(
    std::span<const Participant> participants) {
  Values keys;
  keys.reserve(participants.size());
  for (const Participant& participant : participants) {
    keys.push_back(KeyOf(participant.id));
  }
  return Decoded<Values>(CollectValues(store_, std::move(keys)),
                         [](const Values& values) {
                           Values payloads;
                           payloads.reserve(values.size());
                           for (const std::string& value : values) {
                             payloads.push_back(Decode(value));
                           }
                           return payloads;
                         });
}

absl::Status Barrier::Complete(std::string_view result) {
  return store_->Set(KeyOf(kDone), Encode(result), call_timeout_);
}

async::Future<std::string> Barrier::WhenComplete() {
  return Decoded<std::string>(
      CollectValues(store_, {KeyOf(kDone)}),
      [](const Values& values) { return Decode(values.front()); });
}

absl::StatusOr<bool> Barrier::IsComplete() {
  const std::string key = KeyOf(kDone);
  return store_->Check({&key, 1}, call_timeout_);
}

absl::StatusOr<std::vector<std::string>> Barrier::Missing(
    std::span<const Participant> participants) {
  std::vector<std::string> missing;
  for (const Participant& participant : participants) {
    const std::string key = KeyOf(participant.id);
    ASSIGN_OR_RETURN(const bool present,
                     store_->Check({&key, 1}, absl::ZeroDuration()));
    if (!present) missing.push_back(participant.label);
  }
  return missing;
}

absl::Status Barrier::CheckAllArrived(
    std::span<const Participant> participants) {
  ASSIGN_OR_RETURN(const std::vector<std::string> missing,
                   Missing(participants));
  if (missing.empty()) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat("barrier '", prefix_, "': of ", participants.size(),
                   " participants these did not arrive in time: ",
                   absl::StrJoin(missing, ", ")));
}

}  // namespace hawser::store
