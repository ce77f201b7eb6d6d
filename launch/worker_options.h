// Options of a worker of a job, a BasicWorker or a Worker.
#ifndef HAWSER_LAUNCH_WORKER_OPTIONS_H_
#define HAWSER_LAUNCH_WORKER_OPTIONS_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "net/auth/credentials_options.h"
#include "rpc/agent/call_observer.h"
#include "rpc/agent/service.h"
#include "rpc/grpc/transport.h"
#include "rpc/membership/liveness_options.h"
#include "rpc/peers/call_quota.h"
#include "rpc/transport/transport.h"
#include "store/store.h"

namespace hawser::rpc {
class FunctionRegistry;
}  // namespace hawser::rpc

namespace hawser::launch {

// The worker's name, rank and roles, as other workers of the job see them.
struct WorkerIdentity {
  // Unique in the job; 1 to 127 letters, digits, "-_:.", the first a letter or
  // digit. Default: "worker<rank>".
  std::string name = {};
  // Environment: the rank that a launcher has given this process, such as RANK
  // of torchrun or `hawser run`, or the variables of MPI and SLURM
  // (launch/process_place.h). Required.
  std::optional<int> rank = {};
  // Number of workers; Start waits for all of them. Environment: that of the
  // launcher, or WORLD_SIZE alone if the rank is set here or in the URL. If
  // unset, workers join and leave at any time.
  std::optional<int> world_size = {};
  // Roles that WorkerInfo::roles shows to other workers, such as "trainer" or
  // "ps". With TLS the worker's certificate must have them (`hawser certs issue
  // --roles`). If empty, the roles are those of the certificate, or, without
  // one, the role that the launcher has given with the rank, if any.
  std::vector<std::string> roles = {};
  // Name of the job. Jobs that share a store do not see each other.
  std::string job = "default";
};

// The store through which workers find each other: a URL, an address of rank 0,
// or a store object of the user. At most one of the three may be set.
struct MeetingPlace {
  // See store::StoreUrl. With tcp://, rank 0 serves the store at this address;
  // with env://, at the address from the environment. May contain rank and
  // world size. Environment, if none of the three is set: HAWSER_INIT.
  std::string url = {};
  // The address at which rank 0 serves the store. Environment: MASTER_ADDR and
  // MASTER_PORT, or the launcher's (launch/process_place.h). Default: 127.0.0.1
  // and 29500. With port 0, rank 0 chooses a free port, which Worker::master()
  // returns.
  std::string master_address = {};
  std::optional<int> master_port = {};
  // Must outlive the worker.
  store::Store* store = nullptr;
};

// Network settings: the worker's server and its connections to other workers.
struct WorkerNetwork {
  // The address on which the worker listens. TLS is required unless this is a
  // loopback address.
  std::string bind_address = "127.0.0.1:0";
  // Name of a network interface, such as "eth0", whose address replaces the
  // host of bind_address. Environment: HAWSER_INTERFACE.
  std::string interface = {};
  // "host:port" at which peers reach the worker. Required if this differs from
  // bind_address: the worker listens on all addresses or is behind NAT. Port 0
  // stands for the port on which it listens.
  std::string advertise_address = {};
  // The worker's certificate, which must be for its name and job, and the job's
  // token. They serve calls and the store of rank 0. Environment: see
  // net::WithEnvironment.
  net::CredentialsOptions credentials = {};
  // Permits addresses other than loopback without TLS, also for the store that
  // rank 0 serves.
  bool allow_insecure_network = false;
  // Replaces gRPC. Brings its own credentials and limits.
  std::unique_ptr<rpc::Transport> transport = {};
  // Limits of the server and of messages, polling, and shared memory on one
  // machine. Its credentials and allow_insecure_network must stay unset; those
  // above apply.
  rpc::GrpcTransportOptions grpc = {};
};

// Pages for monitoring systems, over HTTP: /metrics for Prometheus, /healthz
// and /readyz. docs/metrics.md.
struct WorkerMetrics {
  // "host:port". Port 0 selects a free port, which Worker::metrics_address()
  // returns. Empty: no pages. Environment: HAWSER_METRICS_ADDRESS.
  std::string address = {};
  // Permits addresses other than loopback: everyone who can connect can read
  // the pages, also with TLS among workers.
  bool allow_network = false;
};

// Timeouts, threads, and limits on the resources that peers use.
struct WorkerLimits {
  // Default timeout of calls.
  absl::Duration call_timeout = absl::Seconds(60);
  // Longest wait for the other workers in Start, and in a graceful Shutdown.
  absl::Duration join_timeout = absl::Minutes(5);
  // Threads for registered functions, as in rpc::AgentOptions: `num_threads`
  // does not count blocked threads, `max_threads` does.
  int num_threads = 16;
  int max_threads = 4096;
  rpc::LivenessOptions liveness = {};
  rpc::CallLimits calls = {};
};

// Options of a worker. Unset options are read from the environment variables
// that launchers set; otherwise the defaults apply.
struct WorkerOptions {
  WorkerIdentity identity = {};
  MeetingPlace meeting_place = {};
  // The functions that other workers may call on this worker; null: none. Must
  // outlive the worker.
  const rpc::FunctionRegistry* registry = nullptr;
  WorkerNetwork network = {};
  WorkerLimits limits = {};
  WorkerMetrics metrics = {};
  // Services in addition to those that the worker has by itself
  // (launch/worker.h lists those of a Worker). Attached after those, in this
  // order.
  std::vector<std::unique_ptr<rpc::Service>> services = {};
  // Observers of the worker's calls, in both directions.
  std::vector<std::shared_ptr<rpc::CallObserver>> observers = {};
};

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_WORKER_OPTIONS_H_
