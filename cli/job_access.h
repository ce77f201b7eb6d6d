// Flags and functions for subcommands that access a running job.

#ifndef HAWSER_CLI_JOB_ACCESS_H_
#define HAWSER_CLI_JOB_ACCESS_H_

#include <memory>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "net/auth/credentials.h"
#include "rpc/identity/worker_info.h"
#include "store/store.h"

namespace hawser::cli {

struct JobFlags {
  std::string init_url = "env://";
  std::string job = "default";
  std::string tls_dir = {};
  // The caller's name; empty: the last part of `tls_dir`, or "hawser-cli" if
  // that is empty too.
  std::string as = {};
  double timeout_s = 10;

  absl::Duration timeout() const { return absl::Seconds(timeout_s); }
};

// The caller's name, as described at JobFlags::as.
std::string CallerName(const JobFlags& flags);

void AddJobFlags(CLI::App& command, JobFlags& flags);

// The caller's credentials, from the flags or the environment.
absl::StatusOr<std::shared_ptr<const net::Credentials>> CredentialsOf(
    const JobFlags& flags);

// The job's store. Errors of store::OpenStore.
absl::StatusOr<std::unique_ptr<store::Store>> StoreOf(
    const JobFlags& flags,
    const std::shared_ptr<const net::Credentials>& credentials);

// The job's members, by rank. Errors of the store and of rpc::ListMembers.
absl::StatusOr<std::vector<rpc::WorkerInfo>> MembersOf(
    const JobFlags& flags,
    const std::shared_ptr<const net::Credentials>& credentials);
// The member of that name. kNotFound lists the existing members.
absl::StatusOr<rpc::WorkerInfo> FindMember(
    const JobFlags& flags,
    const std::shared_ptr<const net::Credentials>& credentials,
    const std::string& name);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_JOB_ACCESS_H_
