// Options of a worker of a job.
#ifndef HAWSER_LAUNCH_WORKER_OPTIONS_H_
#define HAWSER_LAUNCH_WORKER_OPTIONS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "dist_autograd/context_limits.h"
#include "net/auth/credentials.h"
#include "rpc/agent/service.h"
#include "rpc/functions/function_registry.h"
#include "rpc/grpc/transport.h"
#include "rpc/membership/liveness_options.h"
#include "rpc/peers/call_quota.h"
#include "rpc/stream/stream_service.h"
#include "rpc/transport/transport.h"
#include "rref/reference_limits.h"
#include "store/store.h"

namespace hawser::launch {

// The worker as the others of the job know it.
struct WorkerIdentity {
  // Unique in the job; 1 to 127 letters, digits, "-_:.", the first a letter or
  // digit. Default: "worker<rank>".
  std::string name = {};
  // The worker's number in the job. Environment: RANK. Required.
  std::optional<int> rank = {};
  // The number of workers: Start waits for all of them. Environment:
  // WORLD_SIZE. Unset: workers join and leave at any time.
  std::optional<int> world_size = {};
  // Roles as others see them in WorkerInfo::roles: "trainer", "ps". With TLS
  // the worker's certificate must have them (`hawser certs issue --roles`); if
  // empty, they are those of the certificate.
  std::vector<std::string> roles = {};
  // Jobs that share a store do not see each other.
  std::string job = "default";
};

// The store through which workers find each other: a URL, an address of rank 0,
// or a store of the user's. At most one of the three may be given.
struct MeetingPlace {
  // See store::StoreUrl. With tcp://, rank 0 serves the store there; with
  // env://, the environment says where. May carry rank and world size.
  // Environment, where none of the three is given: HAWSER_INIT.
  std::string url = {};
  // The address where rank 0 serves the store. Environment: MASTER_ADDR and
  // MASTER_PORT. Default: 127.0.0.1 and 29500. With port 0, rank 0 takes any
  // free port: Worker::master().
  std::string master_address = {};
  std::optional<int> master_port = {};
  // Outlives the worker.
  store::Store* store = nullptr;
};

// The worker's server, and its connections to other workers.
struct WorkerNetwork {
  // The address that the worker serves on. TLS is required unless it is a
  // loopback address.
  std::string bind_address = "127.0.0.1:0";
  // Network interface whose address replaces the host of bind_address, such as
  // "eth0". Environment: HAWSER_INTERFACE.
  std::string interface = {};
  // "host:port" at which peers reach the worker. Needed where that is not
  // bind_address: the worker serves on every address, or behind a translation
  // of addresses. Port 0 stands for the port it serves on.
  std::string advertise_address = {};
  // The worker's certificate, which must be of its name and job, and the job's
  // token, for its calls and for the store that rank 0 serves. Environment:
  // net::WithEnvironment.
  net::CredentialsOptions credentials = {};
  // Permits addresses off loopback without TLS, also for the store that rank 0
  // serves.
  bool allow_insecure_network = false;
  // Carries messages in place of gRPC. It has credentials and limits of its
  // own.
  std::unique_ptr<rpc::Transport> transport = {};
  // Limits of the server, the longest message, polling, memory shared on one
  // machine. Its credentials and allow_insecure_network stay unset: those above
  // count.
  rpc::GrpcTransportOptions grpc = {};
};

// Timeouts, threads, and limits on the resources that peers use.
struct WorkerLimits {
  // Timeout of calls that name none.
  absl::Duration call_timeout = absl::Seconds(60);
  // Longest wait for the other workers in Start, and in a graceful Shutdown.
  absl::Duration join_timeout = absl::Minutes(5);
  // As in rpc::AgentOptions: threads for registered functions without those
  // that are blocked, and with them.
  int num_threads = 16;
  int max_threads = 4096;
  rpc::LivenessOptions liveness = {};
  rpc::CallLimits calls = {};
  rpc::StreamLimits streams = {};
  rref::ReferenceLimits references = {};
  dist_autograd::ContextLimits contexts = {};
};

// Options that are not set are taken from the environment, as launchers set it,
// and then from the defaults.
struct WorkerOptions {
  WorkerIdentity identity = {};
  MeetingPlace meeting_place = {};
  // The functions that other workers may call here; none, if null. Outlives
  // the worker.
  const rpc::FunctionRegistry* registry = nullptr;
  WorkerNetwork network = {};
  WorkerLimits limits = {};
  // Services besides streams, references, distributed autograd and optimizers,
  // which every worker has. Attached after those, in this order.
  std::vector<std::unique_ptr<rpc::Service>> services = {};
};

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_WORKER_OPTIONS_H_
