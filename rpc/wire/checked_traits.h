// Calls of WireTraits that catch exceptions, since those of user types may
// throw.

#ifndef HAWSER_RPC_WIRE_CHECKED_TRAITS_H_
#define HAWSER_RPC_WIRE_CHECKED_TRAITS_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/exceptions.h"
#include "rpc/wire/decoder.h"
#include "rpc/wire/encoder.h"
#include "rpc/wire/wire_traits.h"

namespace hawser::rpc::internal {

// Writes all `values`, stopping at the first error; kInternal if one throws.
template <class... T>
absl::Status Encode(Encoder& encoder, const T&... values) {
  return async::CatchExceptions<absl::Status>("the encoding of a value", [&] {
    absl::Status status;
    (void)((status = WireTraits<T>::Encode(encoder, values)).ok() && ...);
    return status;
  });
}

// Reads a value; kInternal if its traits throw.
template <class T>
absl::StatusOr<T> Decode(Decoder& decoder) {
  return async::CatchExceptions<absl::StatusOr<T>>(
      "the decoding of a value",
      [&] { return WireTraits<T>::Decode(decoder); });
}

}  // namespace hawser::rpc::internal

#endif  // HAWSER_RPC_WIRE_CHECKED_TRAITS_H_
