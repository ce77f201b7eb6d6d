// Handlers of the requests for rows of proto/ps.proto.

#ifndef HAWSER_PS_SERVER_ROW_REQUESTS_H_
#define HAWSER_PS_SERVER_ROW_REQUESTS_H_

#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/clock/decoded_push.h"
#include "ps/storage/logged_table.h"
#include "ps/storage/sparse_table.h"
#include "ps/table_limits.h"
#include "rpc/functions/method.h"

namespace hawser::v1 {
class PullReply;
class PullRequest;
class PullSumsReply;
class PullSumsRequest;
class PushReply;
class PushRequest;
class PushSumsRequest;
enum RowEncoding : int;
}  // namespace hawser::v1

namespace hawser::ps {

// Gradients are read from where the transport has them, partition by partition.
// `call` has the lazy tensors of the request. Errors of all:
//
//   kInvalidArgument     a tensor is missing or has a wrong dtype or shape; for
//                        a push, the keys are not in order; for sums, a bag is
//                        out of range.
//   kFailedPrecondition  this server does not hold a key's shard.
//   kResourceExhausted   a limit, or out of memory.

// Returns the rows, or the results of a read function. Errors of RowReader.
absl::StatusOr<rpc::Message<v1::PullReply>> PullRows(
    LoggedTable& logged, const TableLimits& limits, const rpc::MethodCall& call,
    const v1::PullRequest& request);

// Applies the push, if it was not applied before, and returns the rows after
// it, if they are asked for. After an error nothing was applied, except after
// lack of memory (kResourceExhausted) or an error of a disk for rows, after
// which the same push with the same number applies the rest.
absl::StatusOr<rpc::Message<v1::PushReply>> PushRows(
    LoggedTable& logged, const TableLimits& limits, const rpc::MethodCall& call,
    const v1::PushRequest& request);

// Returns the rows of keys to which a push was applied before.
absl::StatusOr<rpc::Message<v1::PushReply>> ReadPushedRows(
    LoggedTable& logged, std::span<const uint64_t> keys,
    v1::RowEncoding encoding);

// Reads and checks a push, to apply it later.
absl::StatusOr<DecodedPush> ReadPush(const SparseTable& table,
                                     const TableLimits& limits,
                                     const rpc::MethodCall& call,
                                     const v1::PushRequest& request);

// The same for sums of rows.
absl::StatusOr<rpc::Message<v1::PullSumsReply>> PullSums(
    LoggedTable& logged, const TableLimits& limits, const rpc::MethodCall& call,
    const v1::PullSumsRequest& request);
absl::Status PushSums(LoggedTable& logged, const TableLimits& limits,
                      const rpc::MethodCall& call,
                      const v1::PushSumsRequest& request);
absl::StatusOr<DecodedPush> ReadPush(const SparseTable& table,
                                     const TableLimits& limits,
                                     const rpc::MethodCall& call,
                                     const v1::PushSumsRequest& request);

}  // namespace hawser::ps

#endif  // HAWSER_PS_SERVER_ROW_REQUESTS_H_
