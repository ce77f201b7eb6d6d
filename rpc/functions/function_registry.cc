#include "rpc/functions/function_registry.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "async/status_macros.h"
#include "net/auth/role.h"
#include "rpc/functions/function_name.h"
#include "rpc/wire/structs/type_definitions.h"

namespace hawser::rpc {
namespace {

absl::string_view ToAbsl(std::string_view text) {
  return {text.data(), text.size()};
}

// A signature without its definitions, and these.
struct Parts {
  explicit Parts(std::string_view signature)
      : types(signature.substr(0, signature.find(TypeDefinitions::kBegin))) {
    signature.remove_prefix(types.size());
    if (signature.empty()) return;
    signature.remove_prefix(TypeDefinitions::kBegin.size());
    definitions =
        absl::StrSplit(ToAbsl(signature), ToAbsl(TypeDefinitions::kSeparator));
  }

  std::string_view types;
  std::vector<std::string> definitions;
};

// The definitions of `one` that `other` does not contain.
std::string OnlyIn(const Parts& one, const Parts& other) {
  std::vector<std::string> only;
  for (const std::string& definition : one.definitions) {
    if (std::find(other.definitions.begin(), other.definitions.end(),
                  definition) == other.definitions.end()) {
      only.push_back(definition);
    }
  }
  return only.empty() ? "nothing else" : absl::StrJoin(only, "; ");
}

// The difference of the signature of a call, which is not trusted, to that of
// the function.
std::string DescribeDifference(std::string_view name, std::string_view called,
                               std::string_view registered) {
  const Parts caller(called);
  const Parts own(registered);
  if (caller.types != own.types) {
    return absl::StrCat("function '", ToAbsl(name), "' is called as ",
                        ToAbsl(caller.types), " but registered as ",
                        ToAbsl(own.types));
  }
  return absl::StrCat("function '", ToAbsl(name),
                      "' is called with other fields than it has: the caller "
                      "has ",
                      OnlyIn(caller, own), ", the function has ",
                      OnlyIn(own, caller));
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
    return absl::InvalidArgumentError(
        DescribeDifference(name, signature, it->second->signature()));
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
