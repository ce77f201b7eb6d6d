// A job of processes with roles, as one of them sees it.

#ifndef HAWSER_LAUNCH_JOB_JOB_OPTIONS_H_
#define HAWSER_LAUNCH_JOB_JOB_OPTIONS_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "launch/supervisor.h"
#include "net/auth/credentials_options.h"
#include "net/auth/identity.h"
#include "rpc/membership/liveness_options.h"

namespace hawser::launch {

// Processes of a job that do the same work. Their workers are named after the
// role: "server0", "server1", ...
struct JobRole {
  std::string name = {};
  int count = 1;
};

inline std::string WorkerName(const std::string& role, int index) {
  return absl::StrCat(role, index);
}

// A plain value.
struct JobOptions {
  // In the order of their ranks.
  std::vector<JobRole> roles = {};
  // The role of this process, and its index among those of the role, from 0.
  // Empty: it runs no part of the job, but may launch it.
  std::string role = {};
  int index = 0;

  // URL of the job's store.
  std::string master = {};
  // Whether another process, such as the launcher, serves the store at
  // `master`; otherwise rank 0 serves a tcp:// URL.
  bool external_store = false;

  // Address on which this process listens, "host:port", and the network
  // interface whose address replaces the host. Empty: a free port of loopback.
  std::string bind_address = {};
  std::string interface = {};
  // Credentials of this process.
  net::CredentialsOptions credentials = {};

  // Silence after which a process is declared lost, and time for the other
  // processes to report errors after one has ended.
  absl::Duration silent_limit = rpc::LivenessOptions().silent_limit;
  absl::Duration notice_period = SupervisorOptions().notice_period;

  int world_size() const {
    int size = 0;
    for (const JobRole& each : roles) size += each.count;
    return size;
  }
  // Number of processes of a role; 0 if there is no such role.
  int count(const std::string& of_role) const {
    for (const JobRole& each : roles) {
      if (each.name == of_role) return each.count;
    }
    return 0;
  }
  // The names of the workers of a role.
  std::vector<std::string> workers(const std::string& of_role) const {
    std::vector<std::string> names;
    for (int i = 0; i < count(of_role); ++i) {
      names.push_back(WorkerName(of_role, i));
    }
    return names;
  }
  // Rank of this process.
  int rank() const {
    int rank = index;
    for (const JobRole& each : roles) {
      if (each.name == role) break;
      rank += each.count;
    }
    return rank;
  }
  // Name of this process, which its certificate must have.
  std::string name() const {
    return role.empty() ? "launcher" : WorkerName(role, index);
  }
  net::Identity identity() const {
    return {.job = "default", .worker = name()};
  }
};

}  // namespace hawser::launch

#endif  // HAWSER_LAUNCH_JOB_JOB_OPTIONS_H_
