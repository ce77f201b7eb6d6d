// Options of an agent.

#ifndef HAWSER_RPC_AGENT_AGENT_OPTIONS_H_
#define HAWSER_RPC_AGENT_AGENT_OPTIONS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "async/clock.h"
#include "async/executor.h"
#include "rpc/agent/call_observer.h"
#include "rpc/agent/service.h"
#include "rpc/identity/worker_info.h"
#include "rpc/membership/liveness_options.h"
#include "rpc/peers/call_quota.h"
#include "rpc/transport/transport.h"

namespace hawser::store {
class Store;
}  // namespace hawser::store

namespace hawser::rpc {

class FunctionRegistry;

struct AgentOptions {
  // Required: unique within the job; 1 to 127 letters, digits, "-_:.", the
  // first a letter or digit.
  std::string name;
  // Required: unique within the job; 0 to WorkerId::kMax.
  int rank = -1;
  // Number of workers: Start waits for all of them. Unset: workers join one by
  // one, and each is looked up when it is first called.
  std::optional<int> world_size;
  // Roles of this worker, which others see in WorkerInfo::roles; format as of
  // names. With TLS the certificate must contain them; if empty, the roles are
  // those of the certificate.
  std::vector<std::string> roles;
  // Workers of different jobs do not communicate, even if they share a store.
  // Up to 127 characters; format as of names.
  std::string job = "default";

  // Required: where workers find each other. Must outlive the agent.
  store::Store* store = nullptr;
  // Required.
  std::unique_ptr<Transport> transport;
  // Address on which this worker serves, in the transport's format.
  std::string bind_address = "127.0.0.1:0";
  // "host:port" at which peers reach this worker; port 0 stands for the port on
  // which it serves. Empty: bind_address, which must then not be a wildcard
  // ("0.0.0.0" or "[::]").
  std::string advertise_address = {};
  // Required: the functions that peers may call. Must outlive the agent.
  const FunctionRegistry* registry = nullptr;
  // Services, in the order of Start; drained and stopped in reverse order.
  std::vector<std::unique_ptr<Service>> services;
  // Observers of all calls, in both directions.
  std::vector<std::shared_ptr<CallObserver>> observers = {};

  // Timeout of a call without one of its own. Positive.
  absl::Duration default_timeout = absl::Seconds(60);
  // Maximum time that Start waits for the other workers, and for a store that
  // does not reply.
  absl::Duration start_timeout = absl::Minutes(5);
  // Maximum time of Agent::Leave, and so of a graceful shutdown.
  absl::Duration shutdown_timeout = absl::Minutes(5);
  LivenessOptions liveness;
  // Limits on the calls that this worker serves at once.
  CallLimits limits;

  // Number of threads of the pool for registered functions, not counting
  // blocked ones. Short functions also run on threads of the transport
  // (rpc/functions/run_on.h).
  int num_threads = 16;
  // Maximum number of threads, including blocked ones; more than `num_threads`.
  // When only `num_threads` are left, calls are rejected with
  // kResourceExhausted rather than made to wait for threads that may wait for
  // them.
  int max_threads = 4096;

  // For simulations: a clock, and an executor that replaces the threads. Both
  // must outlive the agent. Null: the system's clock, and a thread pool.
  async::Clock* clock = nullptr;
  async::Executor* executor = nullptr;
  // For simulations that repeat: the incarnation of this worker, which no other
  // has had. 0: a random one.
  Incarnation incarnation{};
};

// kInvalidArgument, naming the option, if one is missing or wrong.
absl::Status Validate(const AgentOptions& options);

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_AGENT_OPTIONS_H_
