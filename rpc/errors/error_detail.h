// Details of a failed call besides code and message.

#ifndef HAWSER_RPC_ERRORS_ERROR_DETAIL_H_
#define HAWSER_RPC_ERRORS_ERROR_DETAIL_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "rpc/identity/worker_info.h"

namespace hawser::rpc {

// Attached to the status: every error returned by a synchronous or asynchronous
// call has one. An error forwarded by several workers keeps the detail of the
// first.
struct ErrorDetail {
  // The worker at fault: the one whose function failed, or that did not reply.
  std::string worker;
  // 0 if unknown.
  Incarnation incarnation{};
  // Whether the call may have run although it failed. False if it did not run,
  // or if the function itself failed.
  bool maybe_applied = false;

  friend bool operator==(const ErrorDetail&, const ErrorDetail&) = default;
};

// Adds `detail` to a status that is not OK.
void SetErrorDetail(const ErrorDetail& detail, absl::Status& status);

// Returns `status`, with a detail added if it is an error without one.
absl::Status WithErrorDetail(absl::Status status, const WorkerInfo& worker,
                             bool maybe_applied);

// Returns nullopt if the detail is absent or malformed.
std::optional<ErrorDetail> GetErrorDetail(const absl::Status& status);

// "worker 'ps0' (incarnation 00c0ffee00c0ffee), the call may have run".
std::string ToString(const ErrorDetail& detail);

// Makes `operator<<` and ToString of statuses print details in words instead of
// as bytes, unless the program has set a printer of its own
// (absl/status/status_payload_printer.h). Applies to the whole process;
// idempotent and thread-safe.
void PrintErrorDetailsInWords();

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_ERRORS_ERROR_DETAIL_H_
