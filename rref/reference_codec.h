#ifndef HAWSER_RREF_REFERENCE_CODEC_H_
#define HAWSER_RREF_REFERENCE_CODEC_H_

#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/wire/decoder.h"
#include "rpc/wire/encoder.h"
#include "rref/reference.h"

namespace hawser::rref {

// Encoding and decoding of references in calls.

// Encodes a copy of `reference` for the peer of `encoder`.
//
//   kInvalidArgument     `reference` is null.
//   kFailedPrecondition  outside a call, or after the worker's shutdown.
//   the error kept with the reference.
absl::Status EncodeReference(rpc::Encoder& encoder, const Reference* reference);

// Decodes the copy that the peer of `decoder` sent. Adds a prerequisite to the
// decoder until the owner knows it.
absl::StatusOr<std::shared_ptr<Reference>> DecodeReference(
    rpc::Decoder& decoder);

// Returns kInvalidArgument, naming the reference, unless the types are equal.
absl::Status CheckType(const Reference& reference, std::string_view actual,
                       std::string_view expected);

}  // namespace hawser::rref

#endif  // HAWSER_RREF_REFERENCE_CODEC_H_
