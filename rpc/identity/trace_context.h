// Trace context of a call, in the form of W3C Trace Context.

#ifndef HAWSER_RPC_IDENTITY_TRACE_CONTEXT_H_
#define HAWSER_RPC_IDENTITY_TRACE_CONTEXT_H_

#include <cstddef>
#include <string>

namespace hawser::rpc {

// Identifies the trace and the span that a call belongs to. Both fields have
// the format of the HTTP headers of that name
// (https://www.w3.org/TR/trace-context/). The agent carries them as opaque text
// and reads neither.
struct TraceContext {
  static constexpr size_t kMaxParentBytes = 256;
  static constexpr size_t kMaxStateBytes = 512;

  // "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"; empty if the
  // call is not traced.
  std::string traceparent = {};
  // "vendor=value,..."; may be empty.
  std::string tracestate = {};

  // Whether a request carries it: `traceparent` is not empty, both fields are
  // printable ASCII and within their limits. A context that is not valid is
  // dropped at either end, and the call continues without one.
  bool IsValid() const;

  friend bool operator==(const TraceContext&, const TraceContext&) = default;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_IDENTITY_TRACE_CONTEXT_H_
