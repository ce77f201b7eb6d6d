// Completion of a caller's future with the values of a reply.

#ifndef HAWSER_RPC_WIRE_REPLY_COMPLETION_H_
#define HAWSER_RPC_WIRE_REPLY_COMPLETION_H_

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/future.h"
#include "rpc/identity/worker_info.h"
#include "rpc/wire/checked_traits.h"
#include "rpc/wire/decoder.h"

namespace hawser::rpc::internal {

absl::Status LeftoverResults();
// Converts `status`, the decoding error of a reply from `peer`, to the caller's
// error: kInternal, maybe applied.
absl::Status UndecodableReply(const WorkerInfo* peer,
                              const absl::Status& status);

// Once all `prerequisites` of a reply from `peer` have completed, runs `done`
// with their first error, or OK.
void AfterPrerequisites(const WorkerInfo* peer,
                        std::vector<async::Future<void>> prerequisites,
                        absl::AnyInvocable<void(absl::Status) &&> done);

template <class R>
async::Result<R> DecodeResult(Decoder& decoder) {
  if constexpr (std::is_void_v<R>) {
    return decoder.AtEnd() ? absl::OkStatus() : LeftoverResults();
  } else {
    absl::StatusOr<R> result = Decode<R>(decoder);
    if (result.ok() && !decoder.AtEnd()) return LeftoverResults();
    return result;
  }
}

// Returns the status of a Result<R> that is not OK.
inline const absl::Status& StatusOf(const absl::Status& status) {
  return status;
}
template <class T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

template <class R>
void CompleteReply(absl::StatusOr<Decoder*> reply, async::Promise<R> promise) {
  if (!reply.ok()) {
    promise.Set(std::move(reply).status());
    return;
  }
  async::Result<R> result = DecodeResult<R>(**reply);
  if (!result.ok()) {
    promise.Set(UndecodableReply((*reply)->peer(), StatusOf(result)));
    return;
  }
  std::vector<async::Future<void>> prerequisites =
      (*reply)->TakePrerequisites();
  if (prerequisites.empty()) {
    promise.Set(std::move(result));
    return;
  }
  AfterPrerequisites((*reply)->peer(), std::move(prerequisites),
                     [promise = std::move(promise),
                      result = std::move(result)](absl::Status status) mutable {
                       if (status.ok()) {
                         promise.Set(std::move(result));
                       } else {
                         promise.Set(std::move(status));
                       }
                     });
}

}  // namespace hawser::rpc::internal

#endif  // HAWSER_RPC_WIRE_REPLY_COMPLETION_H_
