#ifndef HAWSER_EXAMPLES_USER_TYPE_INTERVAL_H_
#define HAWSER_EXAMPLES_USER_TYPE_INTERVAL_H_

#include <string>
#include <tuple>

#include "absl/status/status.h"
#include "rpc/functions/function.h"
#include "rpc/wire/structs/struct_traits.h"
#include "rpc/wire/wire_traits.h"

// A user-defined type.
struct Interval {
  double low = 0, high = 0;
};

// docs/rpc/wire_format.md contains a copy of this.
template <>
struct hawser::rpc::WireTraits<Interval> : hawser::rpc::StructTraits<Interval> {
  static std::string TypeName() { return "example.Interval"; }
  static constexpr auto kFields =
      std::tuple{Field{"low", &Interval::low}, Field{"high", &Interval::high}};
  static absl::Status Check(const Interval& interval) {
    if (interval.low <= interval.high) return absl::OkStatus();
    return absl::InvalidArgumentError("an interval ends before it begins");
  }
};

inline constexpr hawser::rpc::Function<Interval(Interval, double)> kWiden{
    "example.Widen"};

#endif  // HAWSER_EXAMPLES_USER_TYPE_INTERVAL_H_
