#include "rref/reference_codec.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "rref/protocol.h"
#include "rref/rref_service.h"

namespace hawser::rref {
namespace {

constexpr std::string_view kType = "hawser.v1.RRefReference";

absl::Status OutsideCall() {
  return absl::FailedPreconditionError(
      "a reference can be encoded and decoded only in a call between workers");
}

}  // namespace

absl::Status EncodeReference(rpc::Encoder& encoder,
                             const Reference* reference) {
  if (reference == nullptr) {
    return absl::InvalidArgumentError("an empty reference cannot be sent");
  }
  if (encoder.agent() == nullptr || encoder.peer() == nullptr) {
    return OutsideCall();
  }
  ASSIGN_OR_RETURN(const v1::RRefReference proto,
                   reference->protocol().Share(*reference, *encoder.peer()));
  encoder.WriteMessage(kType, proto.SerializeAsString());
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Reference>> DecodeReference(
    rpc::Decoder& decoder) {
  ASSIGN_OR_RETURN(const std::string_view bytes, decoder.ReadMessage(kType));
  v1::RRefReference proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError("cannot parse a reference in a message");
  }
  if (decoder.agent() == nullptr || decoder.peer() == nullptr) {
    return OutsideCall();
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<Protocol> protocol,
                   ProtocolOf(*decoder.agent()));
  ASSIGN_OR_RETURN(Protocol::ReceivedReference received,
                   protocol->Receive(proto, *decoder.peer()));
  if (received.prerequisite.valid()) {
    decoder.AddPrerequisite(std::move(received.prerequisite));
  }
  return std::move(received.reference);
}

absl::Status CheckType(const Reference& reference, std::string_view actual,
                       std::string_view expected) {
  if (actual == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "reference ", reference.id().ToString(), " refers to a value of type ",
      std::string(actual), ", not ", std::string(expected)));
}

}  // namespace hawser::rref
