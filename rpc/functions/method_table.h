// The protobuf methods that an agent serves or calls.

#ifndef HAWSER_RPC_FUNCTIONS_METHOD_TABLE_H_
#define HAWSER_RPC_FUNCTIONS_METHOD_TABLE_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rpc/functions/method.h"

namespace hawser::rpc {

// Definition of a method in proto/.
struct MethodDefinition {
  // "hawser.v1.RRefService.Create".
  std::string name;
  // "/hawser.v1.RRefService/Create".
  std::string path;
  // Whether a request must not be sent or run twice.
  bool at_most_once = true;
};

// Finds a method's definition. kInvalidArgument if the method is not linked
// into the binary, or lacks a delivery class.
absl::StatusOr<MethodDefinition> FindMethodDefinition(std::string_view method);

// A served method.
struct RegisteredMethod {
  MethodDefinition definition;
  RawMethodHandler handler;
  MethodOptions options;
};

// Served methods by full name. Not thread-safe.
class MethodTable {
 public:
  // kAlreadyExists if the method is already served; other errors as above.
  absl::Status Add(std::string_view method, RawMethodHandler handler,
                   MethodOptions options);

  // Pointers are valid as long as the table.
  std::vector<const RegisteredMethod*> All() const;

 private:
  std::map<std::string, std::unique_ptr<const RegisteredMethod>, std::less<>>
      methods_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_FUNCTIONS_METHOD_TABLE_H_
