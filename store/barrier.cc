#include "store/barrier.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "async/status_macros.h"

namespace hawser::store {

Barrier::Barrier(Store* store, std::string_view prefix,
                 absl::Duration call_timeout)
    : store_(store), prefix_(prefix), call_timeout_(call_timeout) {}

std::string Barrier::KeyOf(const Participant& participant) const {
  return absl::StrCat(prefix_, "/", participant.id);
}

std::vector<std::string> Barrier::KeysOf(
    std::span<const Participant> participants) const {
  std::vector<std::string> keys;
  keys.reserve(participants.size());
  for (const Participant& participant : participants) {
    keys.push_back(KeyOf(participant));
  }
  return keys;
}

absl::Status Barrier::Arrive(const Participant& self,
                             std::string_view payload) {
  return store_->Set(KeyOf(self), payload, call_timeout_);
}

absl::Status Barrier::Await(std::span<const Participant> participants,
                            absl::Duration timeout) {
  const absl::Status status = store_->Wait(KeysOf(participants), timeout);
  if (!absl::IsDeadlineExceeded(status)) return status;
  ASSIGN_OR_RETURN(const std::vector<size_t> missing, Missing(participants));
  std::vector<std::string> labels;
  labels.reserve(missing.size());
  for (const size_t i : missing) labels.push_back(participants[i].label);
  return absl::DeadlineExceededError(
      absl::StrCat("barrier '", prefix_, "': of ", participants.size(),
                   " participants these did not arrive in time: ",
                   absl::StrJoin(labels, ", ")));
}

absl::StatusOr<std::vector<size_t>> Barrier::Missing(
    std::span<const Participant> participants) {
  std::vector<size_t> missing;
  for (size_t i = 0; i < participants.size(); ++i) {
    const std::string key = KeyOf(participants[i]);
    ASSIGN_OR_RETURN(const bool present,
                     store_->Check({&key, 1}, absl::ZeroDuration()));
    if (!present) missing.push_back(i);
  }
  return missing;
}

absl::StatusOr<std::vector<std::string>> Barrier::Payloads(
    std::span<const Participant> participants) {
  std::vector<std::string> payloads;
  payloads.reserve(participants.size());
  for (const Participant& participant : participants) {
    ASSIGN_OR_RETURN(std::string payload,
                     store_->Get(KeyOf(participant), call_timeout_));
    payloads.push_back(std::move(payload));
  }
  return payloads;
}

}  // namespace hawser::store
