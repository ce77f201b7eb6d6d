// A job's authority, and what it gives to workers, as directories of files.

#ifndef HAWSER_CLI_AUTHORITY_FILES_H_
#define HAWSER_CLI_AUTHORITY_FILES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hawser::cli {

// Makes `directory` (0700) with ca.crt, ca.key (0600) and token (0600), all of
// them or nothing.
//
//   kInvalidArgument  `job` is not a job's name.
//   kAlreadyExists    `directory` holds something.
absl::Status MakeAuthorityFiles(const std::string& directory,
                                const std::string& job,
                                absl::Duration lifetime);

struct WorkerFilesOptions {
  // The worker's name.
  std::string worker;
  // What its certificate says that it may be: net/auth/role.h.
  std::vector<std::string> roles = {};
  // The directory in which to make the worker's.
  std::string output;
  absl::Duration lifetime;
};

// Makes `output`/`worker` (0700) with worker.crt, worker.key (0600), ca.crt and
// token (0600), and returns its path. One of that name gives way to it at once,
// so that a process that watches its files finds either the old or the new.
//
//   kInvalidArgument   `worker` is not a worker's name; a role is none; an
//                      authority's file is malformed.
//   kNotFound          `authority` lacks a file, or there is no `output`.
//   kAlreadyExists     something else has that name.
//   kPermissionDenied  others may read the authority's key or the token.
absl::StatusOr<std::string> IssueWorkerFiles(const std::string& authority,
                                             const WorkerFilesOptions& options);

struct RevocationOptions {
  // Whose certificates no longer hold: those in `output`/`worker`.
  std::vector<std::string> workers = {};
  std::string output;
  // Files of further ones, such as of workers that were issued others since.
  std::vector<std::string> certificates = {};
};

// Adds a list with these certificates, and all that were revoked before, to the
// directory `authority`/crl, and returns its path. Processes whose
// CredentialsOptions::crl_directory has a copy of it refuse new connections of
// theirs.
//
//   kInvalidArgument   a name is no worker's; a certificate is not of this
//                      authority, or not the worker's; none is named.
//   kNotFound          a file is missing.
//   kPermissionDenied  others may read the authority's key.
absl::StatusOr<std::string> RevokeCertificates(
    const std::string& authority, const RevocationOptions& options);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_AUTHORITY_FILES_H_
