#include "rpc/functions/function_registry.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "net/auth/role.h"
#include "rpc/functions/function_name.h"

namespace hawser::rpc {
namespace {

absl::string_view ToAbsl(std::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

absl::Status FunctionRegistry::Register(
    std::unique_ptr<const RegisteredFunction> function) {
  if (function->name().empty()) {
    return absl::InvalidArgumentError("a remote function needs a name");
  }
  RETURN_IF_ERROR(CheckFunctionName(function->name(), function->signature()));
  for (const std::string& role : function->options().allowed_roles) {
    if (absl::Status status = net::ValidateRole(role); !status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "function '", function->name(), "': ", status.message()));
    }
  }
  async::MutexLock lock(&mutex_);
  auto [it, inserted] = functions_.try_emplace(function->name(), nullptr);
  if (!inserted) {
    return absl::AlreadyExistsError(
        absl::StrCat("a function '", function->name(),
                     "' is already registered, as ", it->second->signature()));
  }
  it->second = std::move(function);
  return absl::OkStatus();
}

absl::StatusOr<const RegisteredFunction*> FunctionRegistry::Find(
    std::string_view name, std::string_view signature) const {
  async::MutexLock lock(&mutex_);
  auto it = functions_.find(ToAbsl(name));
  if (it == functions_.end()) {
    return absl::UnimplementedError(
        absl::StrCat("function '", ToAbsl(name), "' is not registered"));
  }
  if (it->second->signature() != signature) {
    return absl::InvalidArgumentError(absl::StrCat(
        "function '", ToAbsl(name), "' is called as ", ToAbsl(signature),
        " but registered as ", it->second->signature()));
  }
  return it->second.get();
}

std::vector<const RegisteredFunction*> FunctionRegistry::All() const {
  std::vector<const RegisteredFunction*> all;
  {
    async::MutexLock lock(&mutex_);
    for (const auto& [name, function] : functions_) {
      all.push_back(function.get());
    }
  }
  std::sort(all.begin(), all.end(),
            [](const auto* a, const auto* b) { return a->name() < b->name(); });
  return all;
}

namespace internal {

absl::Status LeftoverArguments(std::string_view function) {
  return absl::InvalidArgumentError(absl::StrCat(
      "more arguments than function '", ToAbsl(function), "' takes"));
}

absl::Status InvalidFuture(std::string_view function) {
  return absl::InternalError(absl::StrCat(
      "function '", ToAbsl(function), "' returned a Future that is not valid"));
}

}  // namespace internal
}  // namespace hawser::rpc
