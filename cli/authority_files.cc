#include "cli/authority_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "async/status_macros.h"
#include "fs/atomic_directory.h"
#include "fs/open_beneath.h"
#include "fs/private_file.h"
#include "net/auth/certificate.h"
#include "net/auth/identity.h"
#include "net/auth/revocation_list.h"
#include "net/auth/token.h"

namespace hawser::cli {
namespace {

constexpr int kPublic = 0644;
constexpr int kPrivate = 0600;

// OK if `path` exists below `directory` without symbolic links.
absl::Status Find(int directory, const std::string& path, int flags) {
  ASSIGN_OR_RETURN(const int fd,
                   fs::OpenBeneath(directory, path, O_PATH | flags));
  close(fd);
  return absl::OkStatus();
}

// The directory for the files of the worker named `worker`. kAlreadyExists
// unless it is absent or contains a worker's files.
absl::StatusOr<std::string> PathOf(const std::string& output,
                                   const std::string& worker) {
  const std::string path = std::filesystem::path(output) / worker;
  const int directory = open(output.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return absl::ErrnoToStatus(errno, "cannot open " + output);
  const absl::Cleanup closer = [directory] { close(directory); };
  if (absl::IsNotFound(Find(directory, worker, O_DIRECTORY)) ||
      Find(directory, worker + "/worker.crt", O_NOFOLLOW).ok()) {
    return path;
  }
  return absl::AlreadyExistsError(
      absl::StrCat(path,
                   " exists and was not made by `hawser certs issue`: remove "
                   "it, or choose another name"));
}

absl::StatusOr<net::KeyAndCertificate> ReadAuthority(
    const std::filesystem::path& from) {
  net::KeyAndCertificate authority;
  ASSIGN_OR_RETURN(authority.certificate, fs::ReadPublicFile(from / "ca.crt"));
  ASSIGN_OR_RETURN(authority.key, fs::ReadPrivateFile(from / "ca.key"));
  return authority;
}

// The certificate in the files of `worker`.
absl::StatusOr<std::string> CertificateOf(const std::filesystem::path& output,
                                          const net::Identity& worker) {
  RETURN_IF_ERROR(net::Validate(worker));
  const std::string path = output / worker.worker / "worker.crt";
  ASSIGN_OR_RETURN(std::string certificate, fs::ReadPublicFile(path));
  ASSIGN_OR_RETURN(const net::Identity found, net::IdentityOf(certificate));
  if (net::ToUri(found) == net::ToUri(worker)) return certificate;
  return absl::InvalidArgumentError(absl::StrCat(
      path, " is a certificate of ", net::ToUri(found), ", not of ",
      net::ToUri(worker), ": to revoke this one, pass it to --certificate"));
}

// The revocation lists in `directory`, oldest first. Their names are `prefix`
// and a number. Empty if the directory does not exist.
absl::StatusOr<std::vector<std::string>> ReadLists(
    const std::filesystem::path& directory, const std::string& prefix) {
  std::vector<std::string> lists;
  while (true) {
    absl::StatusOr<std::string> list =
        fs::ReadPublicFile(directory / absl::StrCat(prefix, lists.size()));
    if (absl::IsNotFound(list.status())) return lists;
    RETURN_IF_ERROR(list.status());
    lists.push_back(*std::move(list));
  }
}

}  // namespace

absl::Status MakeAuthorityFiles(const std::string& directory,
                                const std::string& job,
                                absl::Duration lifetime) {
  ASSIGN_OR_RETURN(const net::KeyAndCertificate authority,
                   net::MakeAuthority(job, lifetime));
  ASSIGN_OR_RETURN(const std::string token, net::MakeToken());
  ASSIGN_OR_RETURN(fs::AtomicDirectory made,
                   fs::AtomicDirectory::Create(directory));
  RETURN_IF_ERROR(made.Write("ca.crt", authority.certificate, kPublic));
  RETURN_IF_ERROR(made.Write("ca.key", authority.key, kPrivate));
  RETURN_IF_ERROR(made.Write("token", token + "\n", kPrivate));
  RETURN_IF_ERROR(std::move(made).Publish());
  // Workers refuse to start with a directory of revocation lists that does not
  // exist.
  const std::filesystem::path lists = std::filesystem::path(directory) / "crl";
  if (mkdir(lists.c_str(), 0755) != 0) {
    return absl::ErrnoToStatus(errno,
                               absl::StrCat("cannot create ", lists.string()));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> IssueWorkerFiles(
    const std::string& authority, const WorkerFilesOptions& options) {
  const std::filesystem::path from = authority;
  ASSIGN_OR_RETURN(const net::KeyAndCertificate issuer, ReadAuthority(from));
  ASSIGN_OR_RETURN(const std::string token,
                   fs::ReadPrivateFile(from / "token"));
  ASSIGN_OR_RETURN(const std::string job, net::JobOf(issuer.certificate));
  const net::Identity identity{
      .job = job, .worker = options.worker, .roles = options.roles};
  ASSIGN_OR_RETURN(const net::KeyAndCertificate pair,
                   net::IssueCertificate(issuer, identity, options.lifetime));
  ASSIGN_OR_RETURN(const std::string path,
                   PathOf(options.output, options.worker));
  ASSIGN_OR_RETURN(fs::AtomicDirectory made, fs::AtomicDirectory::Create(path));
  RETURN_IF_ERROR(made.Write("worker.crt", pair.certificate, kPublic));
  RETURN_IF_ERROR(made.Write("worker.key", pair.key, kPrivate));
  RETURN_IF_ERROR(made.Write("ca.crt", issuer.certificate, kPublic));
  RETURN_IF_ERROR(made.Write("token", token, kPrivate));
  RETURN_IF_ERROR(std::move(made).Replace());
  return path;
}

absl::StatusOr<std::string> RevokeCertificates(
    const std::string& authority, const RevocationOptions& options) {
  const std::filesystem::path from = authority;
  ASSIGN_OR_RETURN(const net::KeyAndCertificate issuer, ReadAuthority(from));
  ASSIGN_OR_RETURN(const std::string job, net::JobOf(issuer.certificate));
  std::vector<std::string> certificates;
  for (const std::string& worker : options.workers) {
    ASSIGN_OR_RETURN(
        std::string certificate,
        CertificateOf(options.output, {.job = job, .worker = worker}));
    certificates.push_back(std::move(certificate));
  }
  for (const std::string& path : options.certificates) {
    ASSIGN_OR_RETURN(std::string certificate, fs::ReadPublicFile(path));
    certificates.push_back(std::move(certificate));
  }
  if (certificates.empty()) {
    return absl::InvalidArgumentError(
        "certificates to revoke are missing: name workers, or pass files to "
        "--certificate");
  }
  ASSIGN_OR_RETURN(const std::string prefix,
                   net::RevocationListPrefix(issuer.certificate));
  const std::string directory = from / "crl";
  ASSIGN_OR_RETURN(std::vector<std::string> lists,
                   ReadLists(directory, prefix));
  ASSIGN_OR_RETURN(std::string list,
                   net::MakeRevocationList(issuer, certificates,
                                           lists.empty() ? "" : lists.back()));
  lists.push_back(std::move(list));
  // Older lists stay: a process that has read them looks for the next number.
  ASSIGN_OR_RETURN(fs::AtomicDirectory made,
                   fs::AtomicDirectory::Create(directory));
  for (size_t i = 0; i < lists.size(); ++i) {
    RETURN_IF_ERROR(made.Write(absl::StrCat(prefix, i), lists[i], kPublic));
  }
  RETURN_IF_ERROR(lists.size() == 1 ? std::move(made).Publish()
                                    : std::move(made).Replace());
  return directory;
}

}  // namespace hawser::cli
