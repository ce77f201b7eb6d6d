#ifndef HAWSER_ASYNC_STATUS_MACROS_H_
#define HAWSER_ASYNC_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Propagation of errors out of functions that return absl::Status or
// absl::StatusOr<T>.
//
//   RETURN_IF_ERROR(expression)        `expression` returns a Status or
//                                      StatusOr.
//   ASSIGN_OR_RETURN(lhs, expression)  `lhs` may be a declaration; put one with
//                                      a comma in parentheses.

namespace hawser::async::internal {

inline absl::Status ToStatus(absl::Status status) { return status; }
template <class T>
absl::Status ToStatus(absl::StatusOr<T>&& result) {
  return std::move(result).status();
}
template <class T>
absl::Status ToStatus(const absl::StatusOr<T>& result) {
  return result.status();
}

}  // namespace hawser::async::internal

#define RETURN_IF_ERROR(...)                                  \
  do {                                                        \
    if (absl::Status hawser_status =                          \
            ::hawser::async::internal::ToStatus(__VA_ARGS__); \
        !hawser_status.ok()) {                                \
      return hawser_status;                                   \
    }                                                         \
  } while (false)

#define ASSIGN_OR_RETURN(lhs, ...)                                             \
  HAWSER_ASSIGN_OR_RETURN_(HAWSER_STATUS_CONCAT_(hawser_result_, __COUNTER__), \
                           lhs, __VA_ARGS__)

#define HAWSER_ASSIGN_OR_RETURN_(result, lhs, ...)     \
  auto result = (__VA_ARGS__);                         \
  if (!result.ok()) return std::move(result).status(); \
  HAWSER_STATUS_UNPAREN_(lhs) = std::move(result).value()

#define HAWSER_STATUS_CONCAT_(a, b) HAWSER_STATUS_CONCAT_INNER_(a, b)
#define HAWSER_STATUS_CONCAT_INNER_(a, b) a##b

// (a, b) -> a, b; anything else is unchanged.
#define HAWSER_STATUS_UNPAREN_(x) HAWSER_STATUS_STRIP_(HAWSER_STATUS_EXTRACT_ x)
#define HAWSER_STATUS_EXTRACT_(...) HAWSER_STATUS_EXTRACT_ __VA_ARGS__
#define HAWSER_STATUS_STRIP_(x) HAWSER_STATUS_STRIP_INNER_(x)
#define HAWSER_STATUS_STRIP_INNER_(...) HAWSER_STATUS_NOTHING_##__VA_ARGS__
#define HAWSER_STATUS_NOTHING_HAWSER_STATUS_EXTRACT_

#endif  // HAWSER_ASYNC_STATUS_MACROS_H_
