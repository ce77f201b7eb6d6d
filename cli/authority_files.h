// Directories of files for a job's certificate authority and its workers.

#ifndef HAWSER_CLI_AUTHORITY_FILES_H_
#define HAWSER_CLI_AUTHORITY_FILES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hawser::cli {

// Creates `directory` (0700) with ca.crt, ca.key (0600) and token (0600),
// atomically.
//
//   kInvalidArgument  `job` is not a valid job name.
//   kAlreadyExists    `directory` exists and is not empty.
absl::Status MakeAuthorityFiles(const std::string& directory,
                                const std::string& job,
                                absl::Duration lifetime);

struct WorkerFilesOptions {
  // The worker's name.
  std::string worker;
  // The roles in its certificate: net/auth/role.h.
  std::vector<std::string> roles = {};
  // The directory in which to create the worker's directory.
  std::string output;
  absl::Duration lifetime;
};

// Creates `output`/`worker` (0700) with worker.crt, worker.key (0600), ca.crt
// and token (0600), and returns its path. An existing directory of the worker
// is replaced atomically, so that a process that watches its files reads either
// the old or the new ones.
//
//   kInvalidArgument   `worker` or a role is not a valid name; a file of the
//                      authority is malformed.
//   kNotFound          `authority` lacks a file, or `output` does not exist.
//   kAlreadyExists     the path exists and does not contain a worker's files.
//   kPermissionDenied  other users may read the authority's key or the token.
absl::StatusOr<std::string> IssueWorkerFiles(const std::string& authority,
                                             const WorkerFilesOptions& options);

struct RevocationOptions {
  // Workers whose certificates, in `output`/`worker`, are revoked.
  std::vector<std::string> workers = {};
  std::string output;
  // Files of other certificates, such as earlier ones of a worker.
  std::vector<std::string> certificates = {};
};

// Adds a list with these and all previously revoked certificates to the
// directory `authority`/crl, and returns the path of that directory. Processes
// that have a copy of it in CredentialsOptions::crl_directory reject new
// connections with these certificates.
//
//   kInvalidArgument   a name is not a valid worker name; a certificate was
//                      issued by another authority, or to another worker; the
//                      options name neither workers nor certificates.
//   kNotFound          a file is missing.
//   kPermissionDenied  other users may read the authority's key.
absl::StatusOr<std::string> RevokeCertificates(
    const std::string& authority, const RevocationOptions& options);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_AUTHORITY_FILES_H_
