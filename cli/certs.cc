#include "cli/certs.h"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/App.hpp"
#include "CLI/Validators.hpp"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "async/status_macros.h"
#include "cli/authority_files.h"
#include "cli/certificate_report.h"
#include "fs/private_file.h"

namespace hawser::cli {
namespace {

constexpr int kMaxDays = 36500;

struct InitFlags {
  std::string directory;
  std::string job = "default";
  int days = 365;
};

struct IssueFlags {
  std::string directory;
  std::vector<std::string> workers;
  std::vector<std::string> roles;
  std::string output;
  int days = 30;
};

struct RevokeFlags {
  std::string directory;
  RevocationOptions options;
};

struct ShowFlags {
  std::vector<std::string> paths;
};

absl::Duration Days(int days) { return days * absl::Hours(24); }

absl::Status Init(const InitFlags& flags, std::ostream& out) {
  RETURN_IF_ERROR(
      MakeAuthorityFiles(flags.directory, flags.job, Days(flags.days)));
  out << "created " << flags.directory << " for job " << flags.job
      << "; do not copy ca.key to the machines of workers\n";
  return absl::OkStatus();
}

absl::Status Issue(const IssueFlags& flags, std::ostream& out) {
  const std::filesystem::path output =
      flags.output.empty() ? flags.directory : flags.output;
  for (const std::string& worker : flags.workers) {
    ASSIGN_OR_RETURN(
        const std::string made,
        IssueWorkerFiles(flags.directory, {.worker = worker,
                                           .roles = flags.roles,
                                           .output = output.string(),
                                           .lifetime = Days(flags.days)}));
    out << "made " << made << "\n";
  }
  return absl::OkStatus();
}

absl::Status Revoke(const RevokeFlags& flags, std::ostream& out) {
  RevocationOptions options = flags.options;
  if (options.output.empty()) options.output = flags.directory;
  ASSIGN_OR_RETURN(const std::string lists,
                   RevokeCertificates(flags.directory, options));
  out << "added a list to " << lists
      << "; copy this directory to the machines of workers, for "
         "HAWSER_TLS_CRL_DIR\n";
  return absl::OkStatus();
}

// The file of the certificate at `path`, which may be a directory that `hawser
// certs issue` or `hawser certs init` has created.
std::string CertificateFile(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return path;
  const std::filesystem::path worker = path / "worker.crt";
  return std::filesystem::exists(worker) ? worker : path / "ca.crt";
}

absl::Status Show(const ShowFlags& flags, std::ostream& out) {
  std::string expired;
  for (const std::string& path : flags.paths) {
    const std::string file = CertificateFile(path);
    ASSIGN_OR_RETURN(const std::string pem, fs::ReadPublicFile(file));
    const absl::StatusOr<CertificateReport> report =
        ReportCertificate(pem, absl::Now());
    if (!report.ok()) {
      return absl::Status(report.status().code(),
                          absl::StrCat(file, ": ", report.status().message()));
    }
    out << file << "\n" << report->text;
    if (report->expired && expired.empty()) expired = file;
  }
  if (expired.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(expired, ": the certificate has expired"));
}

void AddInit(CLI::App& certs, CommandContext& context) {
  CLI::App* init = certs.add_subcommand(
      "init",
      "Create the certificate authority and the token of a job: DIR/ca.crt, "
      "DIR/ca.key and DIR/token.");
  auto flags = std::make_shared<InitFlags>();
  init->add_option("DIR", flags->directory, "Directory to create.")->required();
  init->add_option("--job", flags->job, "The job's name.")
      ->type_name("NAME")
      ->capture_default_str();
  init->add_option("--days", flags->days, "Validity of the authority, in days.")
      ->type_name("N")
      ->check(CLI::Range(1, kMaxDays))
      ->capture_default_str();
  init->callback(
      [flags, &context] { context.outcome = Init(*flags, context.out); });
}

void AddIssue(CLI::App& certs, CommandContext& context) {
  CLI::App* issue = certs.add_subcommand(
      "issue",
      "Create a directory for each worker, with worker.crt, worker.key, ca.crt "
      "and token. An existing directory is replaced atomically.");
  auto flags = std::make_shared<IssueFlags>();
  issue
      ->add_option("DIR", flags->directory,
                   "Directory created by `hawser certs init`.")
      ->required();
  issue->add_option("WORKER", flags->workers, "Names of workers.")->required();
  issue
      ->add_option(
          "--roles", flags->roles,
          "Roles of these workers, such as ps,trainer. The job chooses "
          "the names, but \"observer\" may only read and \"admin\" may "
          "use debug services. Default: none.")
      ->type_name("ROLE,...")
      ->delimiter(',')
      ->allow_extra_args(false);
  issue
      ->add_option("--out", flags->output,
                   "Parent of the workers' directories. Default: DIR.")
      ->type_name("DIR");
  issue
      ->add_option("--days", flags->days,
                   "Validity of the certificates, in days.")
      ->type_name("N")
      ->check(CLI::Range(1, kMaxDays))
      ->capture_default_str();
  issue->callback(
      [flags, &context] { context.outcome = Issue(*flags, context.out); });
}

void AddRevoke(CLI::App& certs, CommandContext& context) {
  CLI::App* revoke =
      certs.add_subcommand("revoke",
                           "Revoke certificates. Adds a list of all revoked "
                           "certificates to DIR/crl, which every worker needs "
                           "as HAWSER_TLS_CRL_DIR.");
  auto flags = std::make_shared<RevokeFlags>();
  revoke
      ->add_option("DIR", flags->directory,
                   "Directory created by `hawser certs init`.")
      ->required();
  revoke->add_option("WORKER", flags->options.workers,
                     "Workers whose latest certificates are revoked.");
  revoke
      ->add_option("--out", flags->options.output,
                   "Parent of the workers' directories. Default: DIR.")
      ->type_name("DIR");
  revoke
      ->add_option("--certificate", flags->options.certificates,
                   "File of another certificate, such as an earlier one. May "
                   "be repeated.")
      ->type_name("FILE")
      ->allow_extra_args(false);
  revoke->callback(
      [flags, &context] { context.outcome = Revoke(*flags, context.out); });
}

void AddShow(CLI::App& certs, CommandContext& context) {
  CLI::App* show = certs.add_subcommand(
      "show",
      "Show the subject, identity, roles, issuer and validity of certificates. "
      "The exit code is 2 if one has expired.");
  auto flags = std::make_shared<ShowFlags>();
  show->add_option("PATH", flags->paths,
                   "Certificates (PEM), or directories created by `hawser "
                   "certs issue` or `hawser certs init`.")
      ->required();
  show->callback(
      [flags, &context] { context.outcome = Show(*flags, context.out); });
}

}  // namespace

void AddCerts(CLI::App& hawser, CommandContext& context) {
  CLI::App* certs = hawser.add_subcommand(
      "certs",
      "Create, show and revoke the certificates of a job, and create its "
      "token.");
  certs->require_subcommand(1);
  AddInit(*certs, context);
  AddIssue(*certs, context);
  AddRevoke(*certs, context);
  AddShow(*certs, context);
}

}  // namespace hawser::cli
