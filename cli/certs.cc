#include "cli/certs.h"

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "CLI/App.hpp"
#include "CLI/Validators.hpp"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "async/status_macros.h"
#include "cli/authority_files.h"

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

absl::Duration Days(int days) { return days * absl::Hours(24); }

absl::Status Init(const InitFlags& flags, std::ostream& out) {
  RETURN_IF_ERROR(
      MakeAuthorityFiles(flags.directory, flags.job, Days(flags.days)));
  out << "made " << flags.directory << " for job " << flags.job
      << "; keep ca.key from the machines of workers\n";
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
      << "; copy it to the machines of workers, for HAWSER_TLS_CRL_DIR\n";
  return absl::OkStatus();
}

void AddInit(CLI::App& certs, CommandContext& context) {
  CLI::App* init = certs.add_subcommand(
      "init",
      "Make a job's authority, and its token: DIR/ca.crt, DIR/ca.key and "
      "DIR/token.");
  auto flags = std::make_shared<InitFlags>();
  init->add_option("DIR", flags->directory, "A new directory.")->required();
  init->add_option("--job", flags->job, "The job's name.")
      ->capture_default_str();
  init->add_option("--days", flags->days, "How long the authority is valid.")
      ->check(CLI::Range(1, kMaxDays))
      ->capture_default_str();
  init->callback(
      [flags, &context] { context.outcome = Init(*flags, context.out); });
}

void AddIssue(CLI::App& certs, CommandContext& context) {
  CLI::App* issue = certs.add_subcommand(
      "issue",
      "Make what each worker needs, in a directory of its name: worker.crt, "
      "worker.key, ca.crt and token. One that is there is replaced at once.");
  auto flags = std::make_shared<IssueFlags>();
  issue->add_option("DIR", flags->directory, "What `hawser certs init` made.")
      ->required();
  issue->add_option("WORKER", flags->workers, "Names of workers.")->required();
  issue
      ->add_option("--roles", flags->roles,
                   "What these workers may be, in words of the job's own, such "
                   "as ps,trainer; \"observer\" may only look, \"admin\" may "
                   "debug. None, if not given.")
      ->delimiter(',');
  issue->add_option(
      "--out", flags->output,
      "Where to make the workers' directories; DIR if not given.");
  issue->add_option("--days", flags->days, "How long certificates are valid.")
      ->check(CLI::Range(1, kMaxDays))
      ->capture_default_str();
  issue->callback(
      [flags, &context] { context.outcome = Issue(*flags, context.out); });
}

void AddRevoke(CLI::App& certs, CommandContext& context) {
  CLI::App* revoke =
      certs.add_subcommand("revoke",
                           "Take certificates back: DIR/crl gets a list of "
                           "them and of those before, "
                           "for HAWSER_TLS_CRL_DIR of all workers.");
  auto flags = std::make_shared<RevokeFlags>();
  revoke->add_option("DIR", flags->directory, "What `hawser certs init` made.")
      ->required();
  revoke->add_option("WORKER", flags->options.workers,
                     "Names of workers, for the certificates issued last.");
  revoke->add_option("--out", flags->options.output,
                     "Where the workers' directories are; DIR if not given.");
  revoke->add_option("--certificate", flags->options.certificates,
                     "Files of other certificates, such as older ones.");
  revoke->callback(
      [flags, &context] { context.outcome = Revoke(*flags, context.out); });
}

}  // namespace

void AddCerts(CLI::App& hawser, CommandContext& context) {
  CLI::App* certs = hawser.add_subcommand(
      "certs", "Make and revoke the certificates of a job, and its token.");
  certs->require_subcommand(1);
  AddInit(*certs, context);
  AddIssue(*certs, context);
  AddRevoke(*certs, context);
}

}  // namespace hawser::cli
