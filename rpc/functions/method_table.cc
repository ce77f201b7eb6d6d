#include "rpc/functions/method_table.h"

#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "proto/options.pb.h"

namespace hawser::rpc {
namespace {

absl::string_view ToAbsl(std::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

absl::StatusOr<MethodDefinition> FindMethodDefinition(std::string_view method) {
  const google::protobuf::MethodDescriptor* descriptor =
      google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(
          std::string(method));
  if (descriptor == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("no method '", ToAbsl(method),
                     "' is defined in the protos linked into this binary"));
  }
  const v1::DeliveryClass::Value delivery =
      descriptor->options().GetExtension(v1::delivery);
  if (delivery == v1::DeliveryClass::UNDECLARED) {
    return absl::InvalidArgumentError(absl::StrCat(
        "method '", ToAbsl(method), "' lacks a delivery class in its proto"));
  }
  return MethodDefinition{
      .name = descriptor->full_name(),
      .path = absl::StrCat("/", descriptor->service()->full_name(), "/",
                           descriptor->name()),
      .at_most_once = delivery == v1::DeliveryClass::AT_MOST_ONCE};
}

absl::Status MethodTable::Add(std::string_view method, RawMethodHandler handler,
                              MethodOptions options) {
  ASSIGN_OR_RETURN(MethodDefinition definition, FindMethodDefinition(method));
  auto [it, inserted] = methods_.try_emplace(definition.name, nullptr);
  if (!inserted) {
    return absl::AlreadyExistsError(
        absl::StrCat("method '", definition.name, "' is already served"));
  }
  it->second = std::make_unique<const RegisteredMethod>(
      RegisteredMethod{std::move(definition), std::move(handler), options});
  return absl::OkStatus();
}

std::vector<const RegisteredMethod*> MethodTable::All() const {
  std::vector<const RegisteredMethod*> methods;
  for (const auto& [name, method] : methods_) methods.push_back(method.get());
  return methods;
}

}  // namespace hawser::rpc
