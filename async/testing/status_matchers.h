#ifndef HAWSER_ASYNC_TESTING_STATUS_MATCHERS_H_
#define HAWSER_ASYNC_TESTING_STATUS_MATCHERS_H_

#include <ostream>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"

// GoogleTest matchers for absl::Status and absl::StatusOr<T>:
//
//   EXPECT_THAT(result, IsOk());
//   EXPECT_THAT(result, IsOkAndHolds(Gt(3)));
//   EXPECT_THAT(result, StatusIs(absl::StatusCode::kAborted));
//   EXPECT_THAT(result, StatusIs(absl::StatusCode::kAborted, HasSubstr("x")));

namespace hawser::async {
namespace internal {

inline const absl::Status& StatusOf(const absl::Status& status) {
  return status;
}
template <class T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

template <class Value>
class IsOkAndHoldsMatcher {
 public:
  explicit IsOkAndHoldsMatcher(Value value) : value_(std::move(value)) {}

  template <class Result>
  operator testing::Matcher<Result>() const {  // NOLINT: implicit as gmock's.
    return testing::Matcher<Result>(new Impl<Result>(value_));
  }

 private:
  template <class Result>
  class Impl : public testing::MatcherInterface<Result> {
   public:
    using T = typename std::remove_cvref_t<Result>::value_type;

    explicit Impl(const Value& value)
        : matcher_(testing::SafeMatcherCast<const T&>(value)) {}

    bool MatchAndExplain(
        Result result, testing::MatchResultListener* listener) const override {
      if (!result.ok()) {
        *listener << "which is " << result.status().ToString();
        return false;
      }
      return matcher_.MatchAndExplain(*result, listener);
    }
    void DescribeTo(std::ostream* os) const override {
      *os << "is OK and holds a value that ";
      matcher_.DescribeTo(os);
    }

   private:
    testing::Matcher<const T&> matcher_;
  };

  Value value_;
};

}  // namespace internal

MATCHER(IsOk, negation ? "is not OK" : "is OK") {
  const absl::Status& status = internal::StatusOf(arg);
  *result_listener << "which is " << status.ToString();
  return status.ok();
}

template <class Value>
internal::IsOkAndHoldsMatcher<std::decay_t<Value>> IsOkAndHolds(Value&& value) {
  return internal::IsOkAndHoldsMatcher<std::decay_t<Value>>(
      std::forward<Value>(value));
}

MATCHER_P2(StatusIs, code, message,
           std::string(negation ? "is not " : "is ") +
               absl::StatusCodeToString(code) + " with a message that " +
               testing::DescribeMatcher<std::string>(message)) {
  const absl::Status& status = internal::StatusOf(arg);
  *result_listener << "which is " << status.ToString();
  return status.code() == code &&
         testing::Value(std::string(status.message()), message);
}

inline auto StatusIs(absl::StatusCode code) {
  return StatusIs(code, testing::_);
}

}  // namespace hawser::async

#endif  // HAWSER_ASYNC_TESTING_STATUS_MATCHERS_H_
