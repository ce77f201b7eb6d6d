// Interface of observers of an agent's calls, for metrics and tracing.

#ifndef HAWSER_RPC_AGENT_CALL_OBSERVER_H_
#define HAWSER_RPC_AGENT_CALL_OBSERVER_H_

#include <cstdint>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "rpc/identity/trace_context.h"
#include "rpc/identity/worker_info.h"

namespace hawser::rpc {

// A call that begins, at the worker that makes it (kClient) or at the one that
// serves it (kServer).
struct CallStart {
  enum class Side { kClient, kServer };

  Side side;
  // Full name of the protobuf method; "hawser.v1.WorkerService.Call" for a call
  // of a registered function.
  std::string_view method;
  // Name of the registered function; empty for calls of other methods.
  std::string_view function;
  // The other worker. At the server: the caller, as far as it is known.
  const WorkerInfo& peer;
  // Trace context of the call, never null.
  //
  // kClient: that of the inbound call in which this call is made, or empty. The
  // request carries the value that the observers leave here.
  //
  // kServer: that of the request, or empty. CurrentCall::trace() returns the
  // value that the observers leave here, and calls made by the function carry
  // it.
  TraceContext* trace;
};

// The end of a call.
struct CallEnd {
  // The result of the call. At the server: the result that was sent.
  const absl::Status& status;
  // Sizes of the messages on the wire, with headers and tensors. At the client:
  // the sum over all attempts. 0 for a message that was not sent, or did not
  // arrive.
  uint64_t request_bytes;
  uint64_t reply_bytes;
};

// Observes the calls of functions and of methods of services, in both
// directions (AgentOptions::observers). Heartbeats and other control messages
// are not observed, nor are calls that are rejected before they have a peer (at
// the client) or before their sender is verified (at the server).
//
// Thread-safe: methods run concurrently, in the threads of calls and of the
// transport, and must not block or make calls.
class CallObserver {
 public:
  // The observer's state of one call. Destroyed after End.
  class Call {
   public:
    virtual ~Call() = default;
    // Runs once, before the caller's future completes, or before the reply is
    // handed to the transport.
    virtual void End(const CallEnd& end) = 0;
  };

  virtual ~CallObserver() = default;

  // Runs before the request is encoded (at the client) or before its arguments
  // are read (at the server). `start` is valid during the call only. Returns
  // null to ignore this call.
  virtual std::unique_ptr<Call> Begin(const CallStart& start) = 0;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_CALL_OBSERVER_H_
