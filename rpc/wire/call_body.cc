#include "rpc/wire/call_body.h"

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "rpc/wire/wire_format.h"

namespace hawser::rpc {
namespace {

// Fields of `CallRequest`.
constexpr uint32_t kFunction = 1;
constexpr uint32_t kSignature = 2;
constexpr uint32_t kArguments = 3;
// Field of `CallReply`.
constexpr uint32_t kResults = 1;

// Bytes of tags and lengths, and of the header that EncodeMessage appends.
constexpr size_t kHeadroom = 160;

}  // namespace

std::string EncodeCallBody(const CallBody& body) {
  std::string out;
  out.reserve(body.function.size() + body.signature.size() +
              body.arguments.size() + kHeadroom);
  internal::AppendBytesField(kFunction, body.function, out);
  internal::AppendBytesField(kSignature, body.signature, out);
  internal::AppendBytesField(kArguments, body.arguments, out);
  return out;
}

absl::StatusOr<CallBody> ParseCallBody(std::string_view bytes) {
  CallBody body;
  internal::WireReader reader(bytes);
  internal::WireField field;
  while (!reader.AtEnd()) {
    if (!reader.ReadField(field)) {
      return absl::InternalError("the request received is malformed");
    }
    if (field.type != internal::WireType::kBytes) continue;
    if (field.number == kFunction) body.function = field.bytes;
    if (field.number == kSignature) body.signature = field.bytes;
    if (field.number == kArguments) body.arguments = field.bytes;
  }
  return body;
}

std::string EncodeCallResults(std::string_view results) {
  std::string out;
  internal::AppendBytesField(kResults, results, out);
  return out;
}

absl::StatusOr<std::string_view> ParseCallResults(std::string_view bytes) {
  std::string_view results;
  internal::WireReader reader(bytes);
  internal::WireField field;
  while (!reader.AtEnd()) {
    if (!reader.ReadField(field)) {
      return absl::InternalError("the reply is malformed");
    }
    if (field.number == kResults && field.type == internal::WireType::kBytes) {
      results = field.bytes;
    }
  }
  return results;
}

}  // namespace hawser::rpc
