#ifndef HAWSER_EXAMPLES_USER_TYPE_INTERVAL_H_
#define HAWSER_EXAMPLES_USER_TYPE_INTERVAL_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "async/status_macros.h"
#include "rpc/functions/function.h"
#include "rpc/wire/decoder.h"
#include "rpc/wire/encoder.h"
#include "rpc/wire/wire_traits.h"

// A user-defined type that is sent as a pair of numbers.
struct Interval {
  double low = 0, high = 0;
};

// docs/rpc/wire_format.md contains a copy of this.
template <>
struct hawser::rpc::WireTraits<Interval> {
  using Pair = std::pair<double, double>;
  static std::string TypeName() { return "example.Interval"; }
  static absl::Status Encode(Encoder& encoder, const Interval& value) {
    return WireTraits<Pair>::Encode(encoder, {value.low, value.high});
  }
  static absl::StatusOr<Interval> Decode(Decoder& decoder) {
    ASSIGN_OR_RETURN(const Pair ends, WireTraits<Pair>::Decode(decoder));
    if (ends.first <= ends.second) return Interval{ends.first, ends.second};
    return absl::InvalidArgumentError("an interval ends before it begins");
  }
};

inline constexpr hawser::rpc::Function<Interval(Interval, double)> kWiden{
    "example.Widen"};

#endif  // HAWSER_EXAMPLES_USER_TYPE_INTERVAL_H_
