// Report on a certificate, for people.

#ifndef HAWSER_CLI_CERTIFICATE_REPORT_H_
#define HAWSER_CLI_CERTIFICATE_REPORT_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace hawser::cli {

struct CertificateReport {
  // Lines, each with the name of a property and its value.
  std::string text;
  bool expired = false;
};

// Describes the first certificate of `pem`: its subject, the worker or
// authority that it names, roles, issuer and validity. The last line says
// whether it is valid at `now`, and when it expires. kInvalidArgument if `pem`
// does not begin with a certificate. A certificate that was not made for a
// Hawser job is described with the reason.
absl::StatusOr<CertificateReport> ReportCertificate(std::string_view pem,
                                                    absl::Time now);

}  // namespace hawser::cli

#endif  // HAWSER_CLI_CERTIFICATE_REPORT_H_
