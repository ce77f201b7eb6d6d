#include "rpc/functions/method_table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"

namespace hawser::rpc {

absl::Status MethodTable::Add(const MethodName& method,
                              RawMethodHandler handler, MethodOptions options) {
  ASSIGN_OR_RETURN(const MethodDefinition* const definition, method.Resolve());
  auto [it, inserted] = methods_.try_emplace(definition->name, nullptr);
  if (!inserted) {
    return absl::AlreadyExistsError(
        absl::StrCat("method '", definition->name, "' is already served"));
  }
  it->second = std::make_unique<const RegisteredMethod>(
      RegisteredMethod{definition, std::move(handler), std::move(options)});
  return absl::OkStatus();
}

std::vector<const RegisteredMethod*> MethodTable::All() const {
  std::vector<const RegisteredMethod*> methods;
  for (const auto& [name, method] : methods_) methods.push_back(method.get());
  return methods;
}

}  // namespace hawser::rpc
