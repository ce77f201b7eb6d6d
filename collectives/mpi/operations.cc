#include "collectives/mpi/operations.h"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::collectives {
namespace {

// MPI's tags: those of users, of the group's own messages, which use tags above
// MPI's bound, and of aborts.
constexpr int kOwnTag = 1 << 30;
constexpr int kAbortTag = kOwnTag + 1;

int MpiTag(uint32_t tag) {
  return tag <= MpiOperations::kMaxTag ? static_cast<int>(tag) : kOwnTag;
}

constexpr size_t kMaxReasonBytes = 2000;

// The message of an abort.
struct AbortNotice {
  int code = 0;
  char reason[kMaxReasonBytes] = {};
};

// Receives for which no message was found. A message that arrives after the
// look for one of them must not go to a later receive.
class WaitingReceives {
 public:
  void Add(int from, uint32_t tag) {
    ranks_.insert({from, tag});
    tags_.insert(tag);
  }
  // Whether a message for a receive of these arguments may be for an earlier
  // one.
  bool Precede(int from, uint32_t tag) const {
    if (!tags_.contains(tag)) return false;
    return from == Backend::kAnyRank || ranks_.contains({from, tag}) ||
           ranks_.contains({Backend::kAnyRank, tag});
  }

 private:
  absl::flat_hash_set<std::pair<int, uint32_t>> ranks_;
  absl::flat_hash_set<uint32_t> tags_;
};

}  // namespace

MpiOperations::MpiOperations(MpiThread& thread, MPI_Comm collectives,
                             MPI_Comm messages, int rank, int size)
    : thread_(thread),
      collectives_(collectives),
      messages_(messages),
      rank_(rank),
      size_(size) {}

void MpiOperations::Open() {
  thread_.Post([self = shared_from_this()] {
    self->self_ = self;
    self->thread_.Add(self.get());
  });
}

void MpiOperations::Close() {
  thread_.Post([self = shared_from_this()] {
    self->healthy_ = self->failure_.ok();
    self->Fail(absl::CancelledError("the process group was destroyed"));
    self->closed_ = true;
    // After an error the other ranks may still use them.
    if (self->healthy_ && self->abandoned_.empty()) self->Release();
  });
}

void MpiOperations::Release() {
  MPI_Comm collectives = collectives_;
  MPI_Comm messages = messages_;
  MPI_Comm_free(&collectives);
  MPI_Comm_free(&messages);
  thread_.Remove(this);
  self_ = nullptr;
}

async::Future<void> MpiOperations::Run(int64_t number, Start start,
                                       std::shared_ptr<void> memory,
                                       async::MonotonicTime deadline) {
  Collective collective{
      .number = number, .memory = std::move(memory), .deadline = deadline};
  async::Future<void> done = collective.done.future();
  thread_.Post([self = shared_from_this(), start = std::move(start),
                collective = std::move(collective)]() mutable {
    absl::Status status = self->failure_;
    if (status.ok() && collective.number > self->last_number_) {
      status = self->end_;
    }
    if (status.ok()) {
      absl::StatusOr<MPI_Request> request = start();
      status = request.status();
      if (request.ok()) collective.request = *request;
    }
    if (status.ok()) {
      self->running_.push_back(std::move(collective));
    } else {
      collective.done.Set(status);
    }
  });
  return done;
}

async::Future<void> MpiOperations::Send(ConstBytes data, int to, uint32_t tag,
                                        async::MonotonicTime deadline) {
  if (data.size() > std::numeric_limits<int>::max()) {
    return async::MakeReadyFuture<void>(absl::InvalidArgumentError(absl::StrCat(
        "a message over MPI has at most 2^31 - 1 bytes, not ", data.size())));
  }
  Outgoing send{.memory = std::make_shared<std::byte[]>(data.size()),
                .bytes = data.size(),
                .to = to,
                .tag = tag,
                .deadline = deadline};
  if (!data.empty()) std::memcpy(send.memory.get(), data.data(), data.size());
  async::Future<void> done = send.done.future();
  thread_.Post([self = shared_from_this(), send = std::move(send)]() mutable {
    absl::Status status = self->failure_;
    if (status.ok()) {
      status = MpiStatus(
          MPI_Isend(send.memory.get(), static_cast<int>(send.bytes), MPI_BYTE,
                    send.to, MpiTag(send.tag), self->messages_, &send.request),
          "MPI_Isend");
    }
    if (status.ok()) {
      self->outgoing_.push_back(std::move(send));
    } else {
      send.done.Set(status);
    }
  });
  return done;
}

async::Future<int> MpiOperations::Receive(MutableBytes data, int from,
                                          uint32_t tag,
                                          async::MonotonicTime deadline) {
  Incoming receive{
      .data = data, .from = from, .tag = tag, .deadline = deadline};
  async::Future<int> done = receive.done.future();
  thread_.Post(
      [self = shared_from_this(), receive = std::move(receive)]() mutable {
        if (self->failure_.ok()) {
          self->incoming_.push_back(std::move(receive));
        } else {
          receive.done.Set(self->failure_);
        }
      });
  return done;
}

void MpiOperations::Abort(const absl::Status& status) {
  thread_.Post([self = shared_from_this(), status] { self->FailAll(status); });
}

void MpiOperations::EndAfter(int64_t number, const absl::Status& status) {
  thread_.Post([self = shared_from_this(), number, status] {
    if (!self->end_.ok()) return;
    self->end_ = status;
    self->last_number_ = number;
  });
}

bool MpiOperations::Poll() {
  if (closed_) {
    const bool any = PollAbandoned();
    if (any && healthy_ && abandoned_.empty()) {
      thread_.Post([self = shared_from_this()] { self->Release(); });
    }
    return any;
  }
  const async::MonotonicTime now = std::chrono::steady_clock::now();
  bool any = PollAborts();
  any = PollCollectives(now) || any;
  any = PollSends(now) || any;
  any = PollReceives(now) || any;
  return PollAbandoned() || any;
}

absl::StatusOr<bool> MpiOperations::Test(MPI_Request& request) {
  int complete = 0;
  RETURN_IF_ERROR(
      MpiStatus(MPI_Test(&request, &complete, MPI_STATUS_IGNORE), "MPI_Test"));
  return complete != 0;
}

bool MpiOperations::PollAborts() {
  int found = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  if (MPI_Improbe(MPI_ANY_SOURCE, kAbortTag, messages_, &found, &message,
                  &status) != MPI_SUCCESS ||
      found == 0) {
    return false;
  }
  AbortNotice notice;
  const int from = status.MPI_SOURCE;
  // It is short, and therefore there.
  if (MPI_Mrecv(&notice, sizeof(notice), MPI_BYTE, &message, &status) !=
      MPI_SUCCESS) {
    return false;
  }
  const std::string reason(notice.reason,
                           strnlen(notice.reason, kMaxReasonBytes));
  // A rank that is gone is the same news to all.
  Fail(notice.code == static_cast<int>(absl::StatusCode::kUnavailable)
           ? absl::UnavailableError(reason)
           : absl::AbortedError(absl::StrCat(
                 "rank ", from, " has ended the group: ", reason)));
  return true;
}

bool MpiOperations::PollCollectives(async::MonotonicTime now) {
  bool any = false;
  for (auto each = running_.begin(); each != running_.end();) {
    const absl::StatusOr<bool> complete = Test(each->request);
    absl::Status result = complete.status();
    if (complete.ok() && !*complete) {
      if (!end_.ok() && each->number > last_number_) {
        result = end_;
      } else if (now >= each->deadline) {
        result =
            absl::DeadlineExceededError("the operation has not ended in time");
      } else {
        ++each;
        continue;
      }
      abandoned_.push_back({.request = each->request, .memory = each->memory});
    }
    any = true;
    async::Promise<void> done = std::move(each->done);
    each = running_.erase(each);
    done.Set(std::move(result));
  }
  return any;
}

bool MpiOperations::PollSends(async::MonotonicTime now) {
  bool any = false;
  for (auto each = outgoing_.begin(); each != outgoing_.end();) {
    const absl::StatusOr<bool> complete = Test(each->request);
    if (complete.ok() && !*complete) {
      if (now >= each->deadline) {
        FailAll(absl::DeadlineExceededError(absl::StrCat(
            "rank ", each->to, " has not received the message of ", each->bytes,
            " bytes with tag ", each->tag, " in time")));
        return true;
      }
      ++each;
      continue;
    }
    any = true;
    async::Promise<void> done = std::move(each->done);
    each = outgoing_.erase(each);
    done.Set(complete.status());
  }
  return any;
}

absl::StatusOr<bool> MpiOperations::Match(Incoming& receive) {
  int found = 0;
  MPI_Message message = MPI_MESSAGE_NULL;
  MPI_Status status;
  RETURN_IF_ERROR(MpiStatus(
      MPI_Improbe(
          receive.from == Backend::kAnyRank ? MPI_ANY_SOURCE : receive.from,
          MpiTag(receive.tag), messages_, &found, &message, &status),
      "MPI_Improbe"));
  if (found == 0) return false;
  int bytes = 0;
  RETURN_IF_ERROR(
      MpiStatus(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count"));
  receive.from = status.MPI_SOURCE;
  receive.bytes = static_cast<size_t>(bytes);
  receive.memory = std::make_shared<std::byte[]>(receive.bytes);
  RETURN_IF_ERROR(MpiStatus(MPI_Imrecv(receive.memory.get(), bytes, MPI_BYTE,
                                       &message, &receive.request),
                            "MPI_Imrecv"));
  return true;
}

bool MpiOperations::PollReceives(async::MonotonicTime now) {
  bool any = false;
  WaitingReceives waiting;
  for (auto each = incoming_.begin(); each != incoming_.end();) {
    absl::StatusOr<bool> complete = false;
    if (each->memory == nullptr && !waiting.Precede(each->from, each->tag)) {
      complete = Match(*each);
    }
    if (each->memory == nullptr) waiting.Add(each->from, each->tag);
    if (each->memory != nullptr && complete.ok()) {
      complete = Test(each->request);
    }
    if (complete.ok() && !*complete) {
      if (now >= each->deadline) {
        FailAll(absl::DeadlineExceededError(
            absl::StrCat(each->from == Backend::kAnyRank
                             ? std::string("no rank has")
                             : absl::StrCat("rank ", each->from, " has not"),
                         " sent a message of ", each->data.size(),
                         " bytes with tag ", each->tag, " in time")));
        return true;
      }
      ++each;
      continue;
    }
    any = true;
    Incoming receive = std::move(*each);
    each = incoming_.erase(each);
    if (!complete.ok()) {
      receive.done.Set(complete.status());
    } else if (receive.bytes != receive.data.size()) {
      receive.done.Set(absl::InvalidArgumentError(
          absl::StrCat("rank ", receive.from, " has sent ", receive.bytes,
                       " bytes with tag ", receive.tag, " to rank ", rank_,
                       ", which receives ", receive.data.size())));
    } else {
      if (receive.bytes > 0) {
        std::memcpy(receive.data.data(), receive.memory.get(), receive.bytes);
      }
      receive.done.Set(receive.from);
    }
  }
  return any;
}

bool MpiOperations::PollAbandoned() {
  const size_t before = abandoned_.size();
  abandoned_.remove_if([](Abandoned& each) {
    const absl::StatusOr<bool> complete = Test(each.request);
    return complete.ok() && *complete;
  });
  return abandoned_.size() != before;
}

void MpiOperations::Fail(const absl::Status& status) {
  if (!failure_.ok()) return;
  failure_ = status;
  std::list<Collective> running;
  std::list<Outgoing> outgoing;
  std::list<Incoming> incoming;
  running.swap(running_);
  outgoing.swap(outgoing_);
  incoming.swap(incoming_);
  for (Collective& each : running) {
    abandoned_.push_back({.request = each.request, .memory = each.memory});
  }
  for (Outgoing& each : outgoing) {
    abandoned_.push_back({.request = each.request, .memory = each.memory});
  }
  for (Incoming& each : incoming) {
    if (each.memory == nullptr) continue;
    abandoned_.push_back({.request = each.request, .memory = each.memory});
  }
  for (Collective& each : running) each.done.Set(status);
  for (Outgoing& each : outgoing) each.done.Set(status);
  for (Incoming& each : incoming) each.done.Set(status);
}

void MpiOperations::FailAll(const absl::Status& status) {
  if (!failure_.ok()) return;
  const auto notice = std::make_shared<AbortNotice>();
  notice->code = static_cast<int>(status.code());
  const std::string reason(status.message());
  std::memcpy(notice->reason, reason.data(),
              std::min(reason.size(), kMaxReasonBytes));
  for (int other = 0; other < size_; ++other) {
    if (other == rank_) continue;
    MPI_Request request = MPI_REQUEST_NULL;
    if (MPI_Isend(notice.get(), sizeof(AbortNotice), MPI_BYTE, other, kAbortTag,
                  messages_, &request) == MPI_SUCCESS) {
      abandoned_.push_back({.request = request, .memory = notice});
    }
  }
  Fail(status);
}

}  // namespace hawser::collectives
