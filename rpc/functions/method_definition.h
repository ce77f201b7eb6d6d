// The definitions of protobuf methods, as their proto files declare them.

#ifndef HAWSER_RPC_FUNCTIONS_METHOD_DEFINITION_H_
#define HAWSER_RPC_FUNCTIONS_METHOD_DEFINITION_H_

#include <atomic>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace hawser::rpc {

struct MethodDefinition {
  // "hawser.v1.RRefService.Create".
  std::string name;
  // "/hawser.v1.RRefService/Create".
  std::string path;
  // Neither sent nor run twice.
  bool at_most_once = true;
};

// The definition of the method of that full name. It lives as long as the
// process. Thread-safe; takes a lock and looks into two tables.
//
// kInvalidArgument: the binary links no such method, or the method declares no
// delivery class.
absl::StatusOr<const MethodDefinition*> FindMethodDefinition(
    std::string_view method);

// The full name of a method, which remembers the definition once it was found.
// Meant for constants: `constexpr MethodName kLeave{"..."}`. Thread-safe.
class MethodName {
 public:
  // `name` must be a literal, or outlive the constant.
  constexpr explicit MethodName(std::string_view name) : name_(name) {}
  MethodName(const MethodName&) = delete;
  MethodName& operator=(const MethodName&) = delete;

  constexpr std::string_view name() const { return name_; }

  // As FindMethodDefinition; after the first success one atomic load.
  absl::StatusOr<const MethodDefinition*> Resolve() const {
    if (const MethodDefinition* known =
            definition_.load(std::memory_order_acquire)) {
      return known;
    }
    return ResolveFirst();
  }

 private:
  absl::StatusOr<const MethodDefinition*> ResolveFirst() const;

  const std::string_view name_;
  mutable std::atomic<const MethodDefinition*> definition_{nullptr};
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_FUNCTIONS_METHOD_DEFINITION_H_
