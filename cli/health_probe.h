// Health of several servers at once.

#ifndef HAWSER_CLI_HEALTH_PROBE_H_
#define HAWSER_CLI_HEALTH_PROBE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "net/auth/credentials.h"

namespace hawser::cli {

// A server to ask.
struct ProbedServer {
  std::string name;
  std::string address;
  // The worker that its certificate must name; empty: any worker of the job.
  std::string worker;
};

struct ServerHealth {
  // The reply by grpc.health.v1, such as "SERVING" or "NOT_SERVING"; "NO_REPLY"
  // if the server cannot be reached within the timeout; "UNKNOWN" after other
  // errors.
  std::string status;
  // OK if the server has replied.
  absl::Status error;
};

struct HealthProbeOptions {
  // A service or role of the servers; empty: the servers as a whole.
  std::string service = {};
  absl::Duration timeout;
  std::shared_ptr<const net::Credentials> credentials;
};

// Asks all `servers` at the same time, up to 256 of them, and returns their
// health in the same order. Blocks for at most `timeout` per 256 servers.
std::vector<ServerHealth> ProbeHealth(const std::vector<ProbedServer>& servers,
                                      const HealthProbeOptions& options);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_HEALTH_PROBE_H_
