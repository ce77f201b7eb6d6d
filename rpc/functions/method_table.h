// The protobuf methods that an agent serves or calls.

#ifndef HAWSER_RPC_FUNCTIONS_METHOD_TABLE_H_
#define HAWSER_RPC_FUNCTIONS_METHOD_TABLE_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "rpc/functions/method.h"
#include "rpc/functions/method_definition.h"

namespace hawser::rpc {

// A served method.
struct RegisteredMethod {
  const MethodDefinition* definition;
  RawMethodHandler handler;
  MethodOptions options;
};

// Served methods by full name. Not thread-safe.
class MethodTable {
 public:
  // kAlreadyExists if the method is already served; errors of
  // MethodName::Resolve.
  absl::Status Add(const MethodName& method, RawMethodHandler handler,
                   MethodOptions options);

  // Pointers are valid as long as the table.
  std::vector<const RegisteredMethod*> All() const;

 private:
  std::map<std::string, std::unique_ptr<const RegisteredMethod>, std::less<>>
      methods_;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_FUNCTIONS_METHOD_TABLE_H_
