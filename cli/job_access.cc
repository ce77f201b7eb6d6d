#include "cli/job_access.h"

#include <filesystem>
#include <optional>
#include <utility>

#include "CLI/Validators.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "async/status_macros.h"
#include "grpc/grpc.h"
#include "launch/master_endpoint.h"
#include "rpc/membership/member_list.h"
#include "store/open_store.h"
#include "store/store_url.h"

namespace hawser::cli {
namespace {

// The store's URL from the flags. With env://, the address is that which a
// worker with the same environment uses.
absl::StatusOr<store::StoreUrl> StoreUrlOf(const JobFlags& flags) {
  ASSIGN_OR_RETURN(store::StoreUrl url, store::ParseStoreUrl(flags.init_url));
  if (url.scheme == store::StoreUrl::Scheme::kEnv) {
    url.scheme = store::StoreUrl::Scheme::kTcp;
    ASSIGN_OR_RETURN(url.endpoint, launch::MasterEndpoint());
  }
  return url;
}

}  // namespace

void AddJobFlags(CLI::App& command, JobFlags& flags) {
  command
      .add_option("--init", flags.init_url,
                  "URL of the job's store, such as tcp://HOST:PORT. env:// is "
                  "the store of rank 0 at MASTER_ADDR (127.0.0.1) and "
                  "MASTER_PORT (29500), as for workers.")
      ->type_name("URL")
      ->envname("HAWSER_INIT")
      ->capture_default_str();
  command.add_option("--job", flags.job, "The job's name.")
      ->type_name("NAME")
      ->capture_default_str();
  command
      .add_option("--tls-dir", flags.tls_dir,
                  "Directory created by `hawser certs issue`. Default: the "
                  "files that the environment names (HAWSER_TLS_CERT, ...); "
                  "without them, TLS is off.")
      ->type_name("DIR");
  command
      .add_option("--as", flags.as,
                  "Name of the caller, which must be the name in its "
                  "certificate. Default: the last part of --tls-dir.")
      ->type_name("NAME");
  command
      .add_option("--timeout", flags.timeout_s,
                  "Timeout of each step, in seconds.")
      ->type_name("SECONDS")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

std::string CallerName(const JobFlags& flags) {
  if (!flags.as.empty()) return flags.as;
  if (flags.tls_dir.empty()) return "hawser-cli";
  const std::filesystem::path directory = flags.tls_dir;
  return (directory.has_filename() ? directory : directory.parent_path())
      .filename();
}

absl::StatusOr<std::shared_ptr<const net::Credentials>> CredentialsOf(
    const JobFlags& flags) {
  net::CredentialsOptions options;
  if (!flags.tls_dir.empty()) {
    const std::filesystem::path directory = flags.tls_dir;
    options.certificate_path = directory / "worker.crt";
    options.key_path = directory / "worker.key";
    options.ca_path = directory / "ca.crt";
    if (std::filesystem::exists(directory / "token")) {
      options.token_path = directory / "token";
    }
  }
  return net::Credentials::Create(net::WithEnvironment(std::move(options)),
                                  std::nullopt);
}

absl::StatusOr<std::unique_ptr<store::Store>> StoreOf(
    const JobFlags& flags,
    const std::shared_ptr<const net::Credentials>& credentials) {
  ASSIGN_OR_RETURN(const store::StoreUrl url, StoreUrlOf(flags));
  absl::StatusOr<std::unique_ptr<store::Store>> store = store::OpenStore(
      url, {.timeout = flags.timeout(), .credentials = credentials});
  if (absl::IsUnavailable(store.status())) {
    return absl::UnavailableError(
        absl::StrCat(store.status().message(),
                     "; --init or HAWSER_INIT sets the address of the store"));
  }
  return store;
}

absl::StatusOr<std::vector<rpc::WorkerInfo>> MembersOf(
    const JobFlags& flags,
    const std::shared_ptr<const net::Credentials>& credentials) {
  ASSIGN_OR_RETURN(const std::unique_ptr<store::Store> store,
                   StoreOf(flags, credentials));
  return rpc::ListMembers(store.get(), flags.job);
}

absl::StatusOr<rpc::WorkerInfo> FindMember(
    const JobFlags& flags,
    const std::shared_ptr<const net::Credentials>& credentials,
    const std::string& name) {
  ASSIGN_OR_RETURN(const std::vector<rpc::WorkerInfo> members,
                   MembersOf(flags, credentials));
  for (const rpc::WorkerInfo& member : members) {
    if (member.name == name) return member;
  }
  return absl::NotFoundError(absl::StrCat(
      "job '", flags.job, "' does not contain worker '", name,
      "'; its workers are ",
      absl::StrJoin(members, ", ",
                    [](std::string* text, const rpc::WorkerInfo& member) {
                      absl::StrAppend(text, "'", member.name, "'");
                    })));
}

}  // namespace hawser::cli
