// Options of an agent.

#ifndef HAWSER_RPC_AGENT_AGENT_OPTIONS_H_
#define HAWSER_RPC_AGENT_AGENT_OPTIONS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "async/clock.h"
#include "async/executor.h"
#include "rpc/agent/service.h"
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
  // The number of workers: Start waits for all of them. Unset: workers come
  // one by one and are looked up when first called.
  std::optional<int> world_size;
  // What this worker is for, as others see it in WorkerInfo::roles: names like
  // its own. With TLS its certificate must have them; if empty, they are those
  // of the certificate.
  std::vector<std::string> roles;
  // Workers of different jobs do not talk to each other, also where they share
  // a store. Up to 127 characters as in a name.
  std::string job = "default";

  // Required: where workers find each other. Outlives the agent.
  store::Store* store = nullptr;
  // Required.
  std::unique_ptr<Transport> transport;
  // Where this worker serves, as its transport writes addresses.
  std::string bind_address = "127.0.0.1:0";
  // "host:port" by which peers reach this worker; port 0 stands for the port
  // it serves on. Empty: bind_address, which must then be one of its addresses
  // and not all of them, "0.0.0.0" or "[::]".
  std::string advertise_address = {};
  // Required: what others may call. Outlives the agent.
  const FunctionRegistry* registry = nullptr;
  // What is attached, in the order of Start; drained and stopped in reverse.
  std::vector<std::unique_ptr<Service>> services;

  // Of a call that names none. Positive.
  absl::Duration default_timeout = absl::Seconds(60);
  // How long Start waits for the other workers.
  absl::Duration start_timeout = absl::Minutes(5);
  // How long Agent::Leave, and with it a graceful shutdown, may take.
  absl::Duration shutdown_timeout = absl::Minutes(5);
  LivenessOptions liveness;
  // What peers may have this worker do at once.
  CallLimits limits;

  // Threads for registered functions; blocked ones are not counted.
  int num_threads = 16;
  // All of these, blocked ones included; more than `num_threads`. While but
  // `num_threads` are left, calls are refused with kResourceExhausted instead
  // of waiting for threads that may wait for them.
  int max_threads = 4096;

  // For simulations: a clock, and an executor in place of the threads. Both
  // outlive the agent. Null: the machine's clock, threads of its own.
  async::Clock* clock = nullptr;
  async::Executor* executor = nullptr;
};

}  // namespace hawser::rpc

#endif  // HAWSER_RPC_AGENT_AGENT_OPTIONS_H_
