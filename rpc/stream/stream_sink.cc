#include "rpc/stream/stream_sink.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace hawser::rpc {
namespace {

// Maximum number of waiting requests for one value.
constexpr size_t kMaxSame = 8;

}  // namespace

async::Future<void> StreamSink::Write(StreamItem item) {
  std::deque<async::Promise<Answer>> requests;
  async::Future<void> room = async::MakeReadyFuture<void>(absl::OkStatus());
  Answer answer;
  {
    async::MutexLock lock(&mutex_);
    if (cancelled_) return async::MakeReadyFuture<void>(*end_);
    if (end_.has_value() || writer_.has_value()) {
      return async::MakeReadyFuture<void>(absl::FailedPreconditionError(
          end_.has_value() ? "the function that writes this stream has ended"
                           : "the last Write has not completed: wait for it "
                             "before the next one"));
    }
    const uint64_t sequence = first_ + items_.size();
    items_.push_back(std::move(item));
    if (auto found = requests_.find(sequence); found != requests_.end()) {
      requests = std::move(found->second);
      requests_.erase(found);
      answer.item = items_.back();
    }
    if (!HasRoom()) {
      writer_.emplace();
      room = writer_->future();
    }
  }
  for (auto& request : requests) request.Set(answer);
  return room;
}

void StreamSink::End(absl::Status status) {
  std::map<uint64_t, std::deque<async::Promise<Answer>>> requests;
  {
    async::MutexLock lock(&mutex_);
    if (end_.has_value()) return;
    end_ = status;
    // All waiting requests are for values that were not written.
    requests.swap(requests_);
  }
  for (auto& [sequence, same] : requests) {
    for (auto& request : same) request.Set(Answer{{}, status});
  }
}

void StreamSink::Cancel(absl::Status status) {
  std::optional<async::Promise<void>> writer;
  std::map<uint64_t, std::deque<async::Promise<Answer>>> requests;
  std::deque<StreamItem> items;
  {
    async::MutexLock lock(&mutex_);
    if (cancelled_) return;
    cancelled_ = true;
    end_ = status;
    writer.swap(writer_);
    requests.swap(requests_);
    items.swap(items_);
  }
  cancellation_->Cancel();
  if (writer.has_value()) writer->Set(status);
  for (auto& [sequence, same] : requests) {
    for (auto& request : same) request.Set(status);
  }
}

async::Future<StreamSink::Answer> StreamSink::Next(uint64_t sequence,
                                                   uint64_t acknowledged) {
  std::optional<async::Promise<void>> writer;
  std::optional<async::Promise<Answer>> superseded;
  // Destroyed after the lock is released.
  std::deque<StreamItem> forgotten;
  async::Future<Answer> future;
  {
    async::MutexLock lock(&mutex_);
    if (cancelled_) return async::MakeReadyFuture<Answer>(*end_);
    while (first_ < acknowledged && !items_.empty()) {
      forgotten.push_back(std::move(items_.front()));
      items_.pop_front();
      ++first_;
    }
    if (writer_.has_value() && HasRoom()) writer.swap(writer_);
    if (sequence < first_ || sequence - first_ >= window_) {
      future = async::MakeReadyFuture<Answer>(absl::InvalidArgumentError(
          absl::StrCat("value ", sequence, " of a stream was requested, but ",
                       first_, " is the first available one and the window is ",
                       window_, " values")));
    } else if (sequence < first_ + items_.size()) {
      future = async::MakeReadyFuture<Answer>(
          Answer{items_[sequence - first_], absl::OkStatus()});
    } else if (end_.has_value()) {
      future = async::MakeReadyFuture<Answer>(Answer{{}, *end_});
    } else {
      async::Promise<Answer> request;
      future = request.future();
      std::deque<async::Promise<Answer>>& same = requests_[sequence];
      same.push_back(std::move(request));
      if (same.size() > kMaxSame) {
        superseded = std::move(same.front());
        same.pop_front();
      }
    }
  }
  if (writer.has_value()) writer->Set(absl::OkStatus());
  if (superseded.has_value()) {
    superseded->Set(
        absl::UnavailableError("the value was requested too often"));
  }
  return future;
}

}  // namespace hawser::rpc
