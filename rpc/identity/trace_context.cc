#include "rpc/identity/trace_context.h"

#include <algorithm>

#include "absl/strings/ascii.h"

namespace hawser::rpc {
namespace {

bool IsPrintable(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isprint(static_cast<unsigned char>(c));
  });
}

}  // namespace

bool TraceContext::IsValid() const {
  return !traceparent.empty() && traceparent.size() <= kMaxParentBytes &&
         tracestate.size() <= kMaxStateBytes && IsPrintable(traceparent) &&
         IsPrintable(tracestate);
}

}  // namespace hawser::rpc
