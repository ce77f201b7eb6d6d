// Details of a failed call besides code and message.

#ifndef HAWSER_RPC_ERRORS_ERROR_DETAIL_H_
#define HAWSER_RPC_ERRORS_ERROR_DETAIL_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "rpc/identity/worker_info.h"

namespace hawser::rpc {

// Travels with the status: every error that a call returns has one, the same
// for synchronous and asynchronous calls. An error that passes several workers
// keeps the detail of the first.
struct ErrorDetail {
  // The worker at fault: the one whose function failed, or that did not answer.
  std::string worker;
  // 0 if it was never known.
  Incarnation incarnation{};
  // Whether the call may have run although it failed. False: it did not run, or
  // what failed is the function itself.
  bool maybe_applied = false;

  friend bool operator==(const ErrorDetail&, const ErrorDetail&) = default;
};

// Adds `detail` to a status that is not OK.
void SetErrorDetail(const ErrorDetail& detail, absl::Status& status);

// `status`; an error that has no detail gets one.
absl::Status WithErrorDetail(absl::Status status, const WorkerInfo& worker,
                             bool maybe_applied);

// None if there is none, or what there is does not parse.
std::optional<ErrorDetail> GetErrorDetail(const absl::Status& status);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_ERRORS_ERROR_DETAIL_H_
