#include "collectives/nccl/device_messages.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "collectives/nccl/communicator_thread.h"

namespace hawser::collectives {
namespace {

using MarkPointer = std::shared_ptr<const Backend::Mark>;

// What a sender announces.
struct Header {
  uint64_t bytes = 0;
  // Of the sender, for the tag of the reply.
  uint32_t message = 0;
  uint32_t unused = 0;
  // The data of a message to the own rank, and where the device has written it.
  const std::byte* data = nullptr;
  const MarkPointer* written = nullptr;
};

// What the receiver replies.
struct Reply {
  // Not so if the sizes differ, or if the receiver has copied the data.
  uint32_t wants_data = 0;
  uint32_t unused = 0;
  // Of the messages from this sender that the receiver has taken.
  uint64_t number = 0;
  NcclId id = {};
};

// Tags of `control`: below are those of messages on the CPU.
uint32_t HeaderTag(uint32_t tag) { return (uint32_t{1} << 30) | tag; }
uint32_t ReplyTag(uint32_t message) {
  return (uint32_t{1} << 31) | (message & DeviceMessages::kMaxTag);
}

}  // namespace

// Shared with the callbacks of futures of `control`.
struct DeviceMessages::State
    : std::enable_shared_from_this<DeviceMessages::State> {
  struct Outgoing {
    ConstBytes data;
    int to = 0;
    uint32_t tag = 0;
    async::MonotonicTime deadline = async::kNever;
    MarkPointer written = nullptr;
    Header header = {};
    Reply reply = {};
    async::TimerId timer = {};
    async::Promise<void> done = {};
  };
  struct Running {
    std::shared_ptr<Outgoing> send;
    async::Future<void> sent;
  };
  struct Incoming {
    MutableBytes data;
    uint32_t tag = 0;
    async::MonotonicTime deadline = async::kNever;
    MarkPointer written = nullptr;
    Header header = {};
    int from = 0;
    Reply reply = {};
    async::TimerId timer = {};
    async::Promise<int> done = {};
  };
  // One direction between this rank and another one.
  struct Channel {
    std::unique_ptr<CommunicatorThread> thread = nullptr;
    NcclId id = {};
    uint64_t next_number = 0;
    // Messages to send whose turn has not come, by number.
    std::map<uint64_t, std::shared_ptr<Outgoing>> waiting = {};
  };

  State(Backend& control_backend, NcclLibrary& nccl, async::Clock& timers,
        int the_rank, const NcclConfig& the_config,
        std::function<void(const absl::Status&)> report)
      : control(control_backend),
        library(nccl),
        rank(the_rank),
        config(the_config),
        on_failure(std::move(report)),
        clock(&timers) {}

  // The group has failed. Never returns OK.
  absl::Status Fail(const absl::Status& status) {
    if (!absl::IsInvalidArgument(status)) on_failure(status);
    return status;
  }

  // Until the other rank takes part, a timer ends the operation and the group:
  // `control` would name tags of its own. False: the timer has done so.
  bool EndTimer(async::TimerId timer);
  absl::Status SendIsLate(const Outgoing& send);
  absl::Status ReceiveIsLate(const Incoming& receive);

  void OnReply(const std::shared_ptr<Outgoing>& send,
               const absl::Status& status);
  // Enqueues the messages whose turn has come.
  std::vector<Running> Transmit(Channel& channel)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void OnHeader(const std::shared_ptr<Incoming>& receive, int from);
  // Makes the channel ready, and enqueues the receive of its next message.
  absl::StatusOr<async::Future<void>> Take(Incoming& receive, int from);
  // The message of this rank to itself.
  absl::StatusOr<async::Future<void>> TakeOwn(Incoming& receive);
  void SendReply(const std::shared_ptr<Incoming>& receive, int from);

  Backend& control;
  NcclLibrary& library;
  const int rank;
  const NcclConfig config;
  const std::function<void(const absl::Status&)> on_failure;

  async::Mutex mutex;
  // Null once the messages are destroyed.
  async::Clock* clock ABSL_GUARDED_BY(mutex);
  // Set by Abort and by the destructor: no channel is made any more.
  absl::Status failure ABSL_GUARDED_BY(mutex);
  uint32_t next_message ABSL_GUARDED_BY(mutex) = 0;
  // By the other rank; that of this rank copies messages to itself.
  std::map<int, Channel> channels_to ABSL_GUARDED_BY(mutex);
  std::map<int, Channel> channels_from ABSL_GUARDED_BY(mutex);
};

DeviceMessages::DeviceMessages(
    Backend& control, NcclLibrary& library, int rank, const NcclConfig& config,
    std::function<void(const absl::Status&)> on_failure)
    : state_(std::make_shared<State>(control, library, clock_, rank, config,
                                     std::move(on_failure))) {}

DeviceMessages::~DeviceMessages() {
  std::map<int, State::Channel> to;
  std::map<int, State::Channel> from;
  {
    const async::MutexLock lock(&state_->mutex);
    if (state_->failure.ok()) {
      state_->failure = absl::CancelledError("the process group was destroyed");
    }
    state_->clock = nullptr;
    to.swap(state_->channels_to);
    from.swap(state_->channels_from);
  }
}

void DeviceMessages::Abort(const absl::Status& status) {
  const async::MutexLock lock(&state_->mutex);
  if (state_->failure.ok()) state_->failure = status;
  for (auto* channels : {&state_->channels_to, &state_->channels_from}) {
    for (auto& [other, channel] : *channels) {
      if (channel.thread != nullptr) channel.thread->Abort(status);
    }
  }
}

async::Future<void> DeviceMessages::Send(ConstBytes data, int to, uint32_t tag,
                                         async::MonotonicTime deadline) {
  auto send = std::make_shared<State::Outgoing>();
  send->data = data;
  send->to = to;
  send->tag = tag;
  send->deadline = deadline;
  absl::StatusOr<MarkPointer> written = state_->library.Mark();
  if (!written.ok()) return async::MakeReadyFuture<void>(written.status());
  send->written = *std::move(written);
  send->header.bytes = data.size();
  if (to == state_->rank) {
    send->header.data = data.data();
    send->header.written = &send->written;
  }
  {
    const async::MutexLock lock(&state_->mutex);
    send->header.message = state_->next_message++;
  }
  async::Future<void> done = send->done.future();
  const auto state = state_;
  send->timer = clock_.CallAt(
      deadline, [state, send] { send->done.Set(state->SendIsLate(*send)); });
  // The receive comes first: the reply must find it.
  async::Future<int> reply =
      state->control.Receive(std::as_writable_bytes(std::span(&send->reply, 1)),
                             to, ReplyTag(send->header.message), async::kNever);
  state->control
      .Send(std::as_bytes(std::span(&send->header, 1)), to, HeaderTag(tag),
            deadline)
      .OnReady([send](const absl::Status&) {
        // Its error is that of the reply too; this keeps the header.
      });
  reply.OnReady([state, send](const absl::StatusOr<int>& from) {
    state->OnReply(send, from.status());
  });
  return done;
}

bool DeviceMessages::State::EndTimer(async::TimerId timer) {
  const async::MutexLock lock(&mutex);
  return clock == nullptr || clock->Cancel(timer);
}

absl::Status DeviceMessages::State::SendIsLate(const Outgoing& send) {
  return Fail(absl::DeadlineExceededError(absl::StrCat(
      "rank ", send.to, " has not received the message of ", send.data.size(),
      " bytes with tag ", send.tag, " in time")));
}

absl::Status DeviceMessages::State::ReceiveIsLate(const Incoming& receive) {
  return Fail(absl::DeadlineExceededError(
      absl::StrCat(receive.from == Backend::kAnyRank
                       ? std::string("no rank has")
                       : absl::StrCat("rank ", receive.from, " has not"),
                   " sent a message of ", receive.data.size(),
                   " bytes with tag ", receive.tag, " in time")));
}

void DeviceMessages::State::OnReply(const std::shared_ptr<Outgoing>& send,
                                    const absl::Status& status) {
  if (!EndTimer(send->timer)) return;
  if (!status.ok() || send->reply.wants_data == 0) {
    send->done.Set(status.ok() ? status : Fail(status));
    return;
  }
  absl::Status refused;
  std::vector<Running> running;
  {
    const async::MutexLock lock(&mutex);
    refused = failure;
    if (refused.ok()) {
      Channel& channel = channels_to[send->to];
      if (channel.thread == nullptr) {
        channel.thread = std::make_unique<CommunicatorThread>(
            library,
            CommunicatorThread::Options{
                .id = send->reply.id, .rank = 0, .size = 2, .config = config});
      }
      channel.waiting.emplace(send->reply.number, send);
      running = Transmit(channel);
    }
  }
  if (!refused.ok()) send->done.Set(refused);
  for (const Running& each : running) {
    each.sent.OnReady([state = shared_from_this(),
                       sender = each.send](const absl::Status& result) {
      sender->done.Set(result.ok() ? result : state->Fail(result));
    });
  }
}

std::vector<DeviceMessages::State::Running> DeviceMessages::State::Transmit(
    Channel& channel) {
  std::vector<Running> running;
  while (!channel.waiting.empty() &&
         channel.waiting.begin()->first == channel.next_number) {
    std::shared_ptr<Outgoing> send = channel.waiting.begin()->second;
    channel.waiting.erase(channel.waiting.begin());
    ++channel.next_number;
    async::Future<void> sent = channel.thread->Run(
        send->written,
        [data = send->data](NcclCommunicator& communicator) {
          return communicator.Send(data.data(), data.size(), /*peer=*/1);
        },
        send->deadline);
    running.push_back({.send = std::move(send), .sent = std::move(sent)});
  }
  return running;
}

async::Future<int> DeviceMessages::Receive(MutableBytes data, int from,
                                           uint32_t tag,
                                           async::MonotonicTime deadline) {
  auto receive = std::make_shared<State::Incoming>();
  receive->data = data;
  receive->tag = tag;
  receive->deadline = deadline;
  receive->from = from;
  // What is enqueued reads the memory before it is overwritten.
  absl::StatusOr<MarkPointer> written = state_->library.Mark();
  if (!written.ok()) return async::MakeReadyFuture<int>(written.status());
  receive->written = *std::move(written);
  async::Future<int> done = receive->done.future();
  receive->timer = clock_.CallAt(deadline, [state = state_, receive] {
    receive->done.Set(state->ReceiveIsLate(*receive));
  });
  state_->control
      .Receive(std::as_writable_bytes(std::span(&receive->header, 1)), from,
               HeaderTag(tag), async::kNever)
      .OnReady([state = state_, receive](const absl::StatusOr<int>& sender) {
        if (!state->EndTimer(receive->timer)) return;
        if (sender.ok()) {
          state->OnHeader(receive, *sender);
        } else {
          receive->done.Set(state->Fail(sender.status()));
        }
      });
  return done;
}

void DeviceMessages::State::OnHeader(const std::shared_ptr<Incoming>& receive,
                                     int from) {
  if (receive->header.bytes != receive->data.size()) {
    SendReply(receive, from);
    receive->done.Set(absl::InvalidArgumentError(
        absl::StrCat("rank ", from, " has sent ", receive->header.bytes,
                     " bytes with tag ", receive->tag, " to rank ", rank,
                     ", which receives ", receive->data.size())));
    return;
  }
  const bool own = from == rank;
  absl::StatusOr<async::Future<void>> taken =
      own ? TakeOwn(*receive) : Take(*receive, from);
  if (!taken.ok()) {
    receive->done.Set(Fail(taken.status()));
    return;
  }
  if (!own) SendReply(receive, from);
  taken->OnReady([state = shared_from_this(), receive, from,
                  own](const absl::Status& status) {
    if (own && status.ok()) state->SendReply(receive, from);
    if (status.ok()) {
      receive->done.Set(from);
    } else {
      receive->done.Set(state->Fail(status));
    }
  });
}

absl::StatusOr<async::Future<void>> DeviceMessages::State::Take(
    Incoming& receive, int from) {
  const async::MutexLock lock(&mutex);
  RETURN_IF_ERROR(failure);
  Channel& channel = channels_from[from];
  if (channel.thread == nullptr) {
    ASSIGN_OR_RETURN(channel.id, library.GetUniqueId());
    channel.thread = std::make_unique<CommunicatorThread>(
        library, CommunicatorThread::Options{
                     .id = channel.id, .rank = 1, .size = 2, .config = config});
  }
  receive.reply = {
      .wants_data = 1, .number = channel.next_number++, .id = channel.id};
  return channel.thread->Run(
      receive.written,
      [data = receive.data](NcclCommunicator& communicator) {
        return communicator.Recv(data.data(), data.size(), /*peer=*/0);
      },
      receive.deadline);
}

absl::StatusOr<async::Future<void>> DeviceMessages::State::TakeOwn(
    Incoming& receive) {
  const async::MutexLock lock(&mutex);
  RETURN_IF_ERROR(failure);
  Channel& channel = channels_from[rank];
  if (channel.thread == nullptr) {
    ASSIGN_OR_RETURN(channel.id, library.GetUniqueId());
    channel.thread = std::make_unique<CommunicatorThread>(
        library, CommunicatorThread::Options{
                     .id = channel.id, .rank = 0, .size = 1, .config = config});
  }
  return channel.thread->Run(
      receive.written,
      [data = receive.data, own = receive.header.data,
       written = *receive.header.written](NcclCommunicator& communicator) {
        RETURN_IF_ERROR(communicator.WaitFor(*written));
        return communicator.Copy(own, data.data(), data.size());
      },
      receive.deadline);
}

void DeviceMessages::State::SendReply(const std::shared_ptr<Incoming>& receive,
                                      int from) {
  control
      .Send(std::as_bytes(std::span(&receive->reply, 1)), from,
            ReplyTag(receive->header.message), async::kNever)
      .OnReady([receive](const absl::Status&) {
        // Its error is that of the group; this keeps the reply.
      });
}

}  // namespace hawser::collectives
