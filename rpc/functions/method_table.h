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

// What the method's definition in proto/ says.
struct MethodDefinition {
  // "hawser.v1.RRefService.Create".
  std::string name;
  // "/hawser.v1.RRefService/Create".
  std::string path;
  // Neither sent nor run twice.
  bool at_most_once = true;
};

// kInvalidArgument if no such method is linked into the binary, or it declares
// no delivery class.
absl::StatusOr<MethodDefinition> FindMethodDefinition(std::string_view method);

// A method that is served.
struct RegisteredMethod {
  MethodDefinition definition;
  RawMethodHandler handler;
  MethodOptions options;
};

// By full name. Not thread-safe.
class MethodTable {
 public:
  // kAlreadyExists if it is served; see also above.
  absl::Status Add(std::string_view method, RawMethodHandler handler,
                   MethodOptions options);

  // Valid as long as the table.
  std::vector<const RegisteredMethod*> All() const;

 private:
  std::map<std::string, std::unique_ptr<const RegisteredMethod>, std::less<>>
      methods_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_FUNCTIONS_METHOD_TABLE_H_
