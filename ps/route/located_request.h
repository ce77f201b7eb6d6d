// Requests to the servers of a table that can be sent again.

#ifndef HAWSER_PS_ROUTE_LOCATED_REQUEST_H_
#define HAWSER_PS_ROUTE_LOCATED_REQUEST_H_

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "ps/client/bytes_under_way.h"
#include "ps/route/join_parts.h"
#include "rpc/functions/method.h"
#include "tensor/tensor.h"

namespace hawser::ps {

struct TablePlacement;

// A request, of which TableLocation makes one attempt after the other. The type
// of the result is left to LocatedRequestOf, so that the code that sends
// requests again is compiled once.
//
// Thread-compatible: an attempt begins after the one before is complete.
class LocatedRequest {
 public:
  virtual ~LocatedRequest() = default;

  // Begins an attempt.
  virtual void Send(const TablePlacement& placement,
                    const rpc::MethodCallOptions& options) = 0;
  // Whether the attempt is complete.
  virtual bool ready() const = 0;
  // Returns a function that ends this attempt with kCancelled, in any thread.
  virtual absl::AnyInvocable<void() const> Canceller() const = 0;
  // Calls `callback` once the attempt is complete.
  virtual void OnReady(
      absl::AnyInvocable<void(const absl::Status&) &&> callback) = 0;

  // Completes the request with the result of the attempt, or with an error.
  virtual void Deliver() = 0;
  virtual void Fail(absl::Status status) = 0;
};

// A request with a result of type T.
template <class T>
class LocatedRequestOf final
    : public LocatedRequest,
      public std::enable_shared_from_this<LocatedRequestOf<T>> {
 public:
  using Sender = absl::AnyInvocable<async::Future<T>(
      const TablePlacement&, const rpc::MethodCallOptions&) const>;

  // `bytes` are held until the request is complete.
  LocatedRequestOf(Sender sender, HeldBytes bytes)
      : sender_(std::move(sender)), bytes_(std::move(bytes)) {}
  // A request that was sent and is not sent again.
  explicit LocatedRequestOf(async::Future<T> sent) { Begin(std::move(sent)); }

  // Completes with the request. Called once, after an attempt has begun.
  async::Future<T> future() const { return promise_.future(); }

  void Send(const TablePlacement& placement,
            const rpc::MethodCallOptions& options) override {
    async::Future<T> attempt = sender_(placement, options);
    if (result_.has_value()) {
      attempt_ = std::move(attempt);
    } else {
      Begin(std::move(attempt));
    }
  }
  bool ready() const override { return attempt_.ready(); }
  absl::AnyInvocable<void() const> Canceller() const override {
    return [attempt = attempt_] { attempt.Cancel(); };
  }
  void OnReady(
      absl::AnyInvocable<void(const absl::Status&) &&> callback) override {
    (void)std::move(attempt_).Then(
        [self = this->shared_from_this(),
         callback = std::move(callback)](async::Result<T> result) mutable {
          const absl::Status status = StatusOfResult(result);
          self->result_ = std::move(result);
          std::move(callback)(status);
        });
  }
  void Deliver() override { Complete(*std::exchange(result_, std::nullopt)); }
  void Fail(absl::Status status) override { Complete(std::move(status)); }

 private:
  // The first attempt, before others know the future.
  void Begin(async::Future<T> attempt) {
    promise_.future().SetWaitPoller(attempt.wait_poller());
    attempt_ = std::move(attempt);
  }
  void Complete(async::Result<T> result) {
    // Who waits for the result may send the next request.
    bytes_ = HeldBytes();
    promise_.Set(std::move(result));
  }

  const Sender sender_;
  HeldBytes bytes_;
  async::Promise<T> promise_;
  // Until OnReady.
  async::Future<T> attempt_;
  // Of the last attempt that is complete; unset during the first.
  std::optional<async::Result<T>> result_;
};

extern template class LocatedRequestOf<void>;
extern template class LocatedRequestOf<tensor::Tensor>;
extern template class LocatedRequestOf<std::vector<tensor::Tensor>>;

}  // namespace hawser::ps

#endif  // HAWSER_PS_ROUTE_LOCATED_REQUEST_H_
