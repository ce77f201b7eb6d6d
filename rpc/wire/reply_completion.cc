#include "rpc/wire/reply_completion.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "async/join.h"
#include "rpc/errors/error_detail.h"

namespace hawser::rpc::internal {

absl::Status LeftoverResults() {
  return absl::InvalidArgumentError("it has more results than expected");
}

absl::Status UndecodableReply(const WorkerInfo* peer,
                              const absl::Status& status) {
  return WithErrorDetail(
      absl::InternalError(absl::StrCat("the reply received does not decode: ",
                                       status.message())),
      peer != nullptr ? *peer : WorkerInfo(), /*maybe_applied=*/true);
}

void AfterPrerequisites(const WorkerInfo* peer,
                        std::vector<async::Future<void>> prerequisites,
                        absl::AnyInvocable<void(absl::Status) &&> done) {
  async::JoinAll(std::move(prerequisites))
      .OnReady([worker = peer != nullptr ? *peer : WorkerInfo(),
                done = std::move(done)](const absl::Status& status) mutable {
        std::move(done)(
            WithErrorDetail(status, worker, /*maybe_applied=*/true));
      });
}

}  // namespace hawser::rpc::internal
