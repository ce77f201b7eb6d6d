#include "cli/authority_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "cli/staged_directory.h"
#include "net/certificate.h"
#include "net/identity.h"
#include "net/open_beneath.h"
#include "net/private_file.h"
#include "net/token.h"

namespace hawser::cli {
namespace {

constexpr int kPublic = 0644;
constexpr int kPrivate = 0600;

// OK if `path` is below `directory`, through no symbolic link.
absl::Status Find(int directory, const std::string& path, int flags) {
  ASSIGN_OR_RETURN(const int fd,
                   net::OpenBeneath(directory, path, O_PATH | flags));
  close(fd);
  return absl::OkStatus();
}

// Where a worker's files go: where nothing is, or files of a worker are.
absl::StatusOr<std::string> PathOf(const std::string& output,
                                   const std::string& worker) {
  if (worker.starts_with('.')) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker name '", worker,
                     "' begins with a dot: no directory can have "
                     "that name"));
  }
  const std::string path = std::filesystem::path(output) / worker;
  const int directory = open(output.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return absl::ErrnoToStatus(errno, "cannot open " + output);
  const absl::Cleanup closer = [directory] { close(directory); };
  if (absl::IsNotFound(Find(directory, worker, O_DIRECTORY)) ||
      Find(directory, worker + "/worker.crt", O_NOFOLLOW).ok()) {
    return path;
  }
  return absl::AlreadyExistsError(
      absl::StrCat(path, " is there and was not made by `hawser certs issue`"));
}

}  // namespace

absl::Status MakeAuthorityFiles(const std::string& directory,
                                const std::string& job,
                                absl::Duration lifetime) {
  ASSIGN_OR_RETURN(const net::KeyAndCertificate authority,
                   net::MakeAuthority(job, lifetime));
  ASSIGN_OR_RETURN(const std::string token, net::MakeToken());
  ASSIGN_OR_RETURN(StagedDirectory made, StagedDirectory::Create(directory));
  RETURN_IF_ERROR(made.Write("ca.crt", authority.certificate, kPublic));
  RETURN_IF_ERROR(made.Write("ca.key", authority.key, kPrivate));
  RETURN_IF_ERROR(made.Write("token", token + "\n", kPrivate));
  return std::move(made).Publish();
}

absl::StatusOr<std::string> IssueWorkerFiles(
    const std::string& authority, const WorkerFilesOptions& options) {
  const std::filesystem::path from = authority;
  net::KeyAndCertificate issuer;
  ASSIGN_OR_RETURN(issuer.certificate, net::ReadPublicFile(from / "ca.crt"));
  ASSIGN_OR_RETURN(issuer.key, net::ReadPrivateFile(from / "ca.key"));
  ASSIGN_OR_RETURN(const std::string token,
                   net::ReadPrivateFile(from / "token"));
  ASSIGN_OR_RETURN(const std::string job, net::JobOf(issuer.certificate));
  const net::Identity identity{
      .job = job, .worker = options.worker, .roles = options.roles};
  ASSIGN_OR_RETURN(const net::KeyAndCertificate pair,
                   net::IssueCertificate(issuer, identity, options.lifetime));
  ASSIGN_OR_RETURN(const std::string path,
                   PathOf(options.output, options.worker));
  ASSIGN_OR_RETURN(StagedDirectory made, StagedDirectory::Create(path));
  RETURN_IF_ERROR(made.Write("worker.crt", pair.certificate, kPublic));
  RETURN_IF_ERROR(made.Write("worker.key", pair.key, kPrivate));
  RETURN_IF_ERROR(made.Write("ca.crt", issuer.certificate, kPublic));
  RETURN_IF_ERROR(made.Write("token", token, kPrivate));
  RETURN_IF_ERROR(std::move(made).Replace());
  return path;
}

}  // namespace hawser::cli
