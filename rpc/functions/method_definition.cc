#include "rpc/functions/method_definition.h"

#include <map>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "async/mutex.h"
#include "async/status_macros.h"
#include "google/protobuf/descriptor.h"
#include "proto/options.pb.h"

namespace hawser::rpc {
namespace {

absl::string_view ToAbsl(std::string_view text) {
  return {text.data(), text.size()};
}

absl::StatusOr<MethodDefinition> ReadDefinition(std::string_view method) {
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

// Definitions found before. They are as constant as the generated protos.
struct FoundDefinitions {
  async::Mutex mutex;
  std::map<std::string, std::unique_ptr<const MethodDefinition>, std::less<>>
      by_name ABSL_GUARDED_BY(mutex);
};

FoundDefinitions& Found() {
  static auto* const found = new FoundDefinitions();
  return *found;
}

}  // namespace

absl::StatusOr<const MethodDefinition*> FindMethodDefinition(
    std::string_view method) {
  FoundDefinitions& found = Found();
  async::MutexLock lock(&found.mutex);
  const auto known = found.by_name.find(method);
  if (known != found.by_name.end()) return known->second.get();
  ASSIGN_OR_RETURN(MethodDefinition definition, ReadDefinition(method));
  auto& added = found.by_name[std::string(method)];
  added = std::make_unique<const MethodDefinition>(std::move(definition));
  return added.get();
}

absl::StatusOr<const MethodDefinition*> MethodName::ResolveFirst() const {
  ASSIGN_OR_RETURN(const MethodDefinition* const definition,
                   FindMethodDefinition(name_));
  definition_.store(definition, std::memory_order_release);
  return definition;
}

}  // namespace hawser::rpc
